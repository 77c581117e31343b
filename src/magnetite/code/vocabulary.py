"""The closed vocabularies of code graphs: node types, edge types and edge names, each with its number.

The numbers are part of the data format: new entries go to the end.
"""

MASK = "_mask_"
"""What stands in the place of a masked function name."""

POSITIONS = 8
"""Positions in an edge's name are told apart up to here: `args`, `args:2`, …, `args:8`."""

_NODE_TYPES = """
    unknown Module Interactive Expression FunctionType Suite
    FunctionDef AsyncFunctionDef ClassDef Return Delete Assign TypeAlias AugAssign AnnAssign For AsyncFor While If With
    AsyncWith Match Raise Try TryStar Assert Import ImportFrom Global Nonlocal Expr Pass Break Continue
    BoolOp NamedExpr BinOp UnaryOp Lambda IfExp Dict Set ListComp SetComp DictComp GeneratorExp Await Yield YieldFrom
    Compare Call FormattedValue Interpolation JoinedStr TemplateStr Constant Attribute Subscript Starred Name List Tuple
    Slice Load Store Del And Or Add Sub Mult MatMult Div Mod Pow LShift RShift BitOr BitXor BitAnd FloorDiv Invert Not
    UAdd USub Eq NotEq Lt LtE Gt GtE Is IsNot In NotIn
    comprehension ExceptHandler arguments arg keyword alias withitem match_case
    MatchValue MatchSingleton MatchSequence MatchMapping MatchClass MatchStar MatchAs MatchOr
    TypeIgnore TypeVar ParamSpec TypeVarTuple
    Num Str Bytes NameConstant Ellipsis Index ExtSlice AugLoad AugStore Param
"""
NODE_TYPES = tuple(_NODE_TYPES.split())
"""Every class of Python's `ast` from 3.6 to 3.14."""

EDGE_TYPES = (
    "FIELD",
    "CFG_NEXT",
    "LAST_WRITE",
    "CALCULATED_FROM",
    "CALLS",
    "FIELD_INVERSE",
    "NEXT_TOKEN",
    "NEXT_TOKEN_INVERSE",
)
"""The five of the data-flow graph; `FIELD`, its inverse and the two of the next token make up the sequential graph."""

_PLAIN_FIELDS = """
    annotation arg args asname attr bases body bound cases cause cls comparators context_expr ctx decorator_list
    default_value defaults elt elts exc finalbody format_spec func generators guard handlers ifs input items iter
    key keys keywords kw_defaults kwarg kwd_patterns kwonlyargs left lower msg name names op operand ops
    optional_vars orelse pattern patterns posonlyargs returns right slice step subject target targets test type
    type_params upper value values vararg
"""
PLAIN_FIELDS = tuple(_PLAIN_FIELDS.split())
"""Every field of `ast` that holds nodes, and `input` for operands."""

EDGE_NAMES = ("", *(f if k == 1 else f"{f}:{k}" for f in PLAIN_FIELDS for k in range(1, POSITIONS + 1)))
"""Fields of `ast` with their positions; the empty name is that of edges without one."""

NODE_TYPE_NUMBER = {name: number for number, name in enumerate(NODE_TYPES)}
EDGE_TYPE_NUMBER = {name: number for number, name in enumerate(EDGE_TYPES)}
EDGE_NAME_NUMBER = {name: number for number, name in enumerate(EDGE_NAMES)}
