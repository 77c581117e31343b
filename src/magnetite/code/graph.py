"""CodeGraph: the directed graph of one function of either kind, its vocabularies, and its export to other formats.

The numbers of the vocabularies are part of the data format: new entries are appended.
"""

import json
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from magnetite.graphs import Digraphs

if TYPE_CHECKING:
    import networkx as nx

    from magnetite.code.vocabulary import Vocabulary

MASK = "_mask_"
"""The attribute that replaces a masked function name."""

POSITIONS = 8
"""Number of positions that edge names distinguish: `args`, `args:2`, …, `args:8`."""

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

_EDGE_TYPES = "FIELD CFG_NEXT LAST_WRITE CALCULATED_FROM CALLS FIELD_INVERSE NEXT_TOKEN NEXT_TOKEN_INVERSE"
EDGE_TYPES = tuple(_EDGE_TYPES.split())
"""The first five occur in the data-flow graph; `FIELD` and the last three in the AST graph, in the directed one no
inverses."""

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
"""Fields of `ast` with their positions; edges without a name have the empty one."""

NODE_TYPE_NUMBER = {name: number for number, name in enumerate(NODE_TYPES)}
EDGE_TYPE_NUMBER = {name: number for number, name in enumerate(EDGE_TYPES)}
EDGE_NAME_NUMBER = {name: number for number, name in enumerate(EDGE_NAMES)}


class Edge(NamedTuple):
    """A typed, named edge.

    Args:
        source: Node from which the edge points.
        target: Node to which the edge points.
        type: Type of the edge, one of `EDGE_TYPES`.
        name: Name of the edge, one of `EDGE_NAMES`; empty for edges without a name.
    """

    source: int
    target: int
    type: str
    name: str = ""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CodeGraph:
    """One function as a directed graph. Node 0 is the root of the syntax tree; every column has one entry per node.

    Args:
        kind: "dataflow", "ast", "ast-directed", "tokens" or "dataflow-sequential".
        name: Qualified name of the function.
        types: Node types, the names of the classes of `ast`; "unknown" for tokens that are neither names nor numbers.
        attributes: Names and constants as text, None for a node with neither; the constant `None` is the text "None".
        depths: Distance from the root in the syntax tree.
        lines: Line in the source, counted from 1; 0 for a node without a line.
        edges: Typed, named edges.

    >>> from magnetite import code
    >>> graph = code.build("def f(a, b):\\n    return a + b")
    >>> graph
    CodeGraph(f, dataflow, 11 nodes, 13 edges)
    >>> graph.hash == code.build("def f(a, b):\\n    return b + a").hash
    True
    """

    kind: str
    name: str
    types: tuple[str, ...]
    attributes: tuple[str | None, ...]
    depths: tuple[int, ...]
    lines: tuple[int, ...]
    edges: tuple[Edge, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.types)

    def __repr__(self) -> str:
        return f"CodeGraph({self.name}, {self.kind}, {len(self)} nodes, {len(self.edges)} edges)"

    @cached_property
    def hash(self) -> str:
        """Canonical hash, equal for graphs that differ only in the numbering of their nodes; see `code.hashing`."""
        from magnetite.code.hashing import canonical_hash

        return canonical_hash(self)

    @cached_property
    def digraphs(self) -> Digraphs:
        """A container of this one graph, with the features of `to_digraphs`; without a vocabulary of attributes."""
        return self.to_digraphs()

    def to_digraphs(self, attributes: "Vocabulary | None" = None) -> Digraphs:
        """A container of this one graph with numbers as features, see `code.features.to_digraphs`.

        Args:
            attributes: Vocabulary of the attributes; without one, all texts are "unknown".
        """
        # Imported here because it imports this file.
        return import_module("magnetite.code.features").to_digraphs([self], attributes)

    def to_networkx(self) -> "nx.MultiDiGraph":
        """With `type`, `attribute`, `depth` and `line` on the nodes, `type` and `name` on the edges."""
        return self._networkx([{"attribute": None, **columns} for columns in self._columns()])

    def _networkx(self, nodes: list[dict[str, Any]]) -> "nx.MultiDiGraph":
        import networkx as nx

        graph = nx.MultiDiGraph(kind=self.kind, name=self.name)
        graph.add_nodes_from(enumerate(nodes))
        for source, target, kind, name in self.edges:
            graph.add_edge(source, target, type=kind, name=name)
        return graph

    def to_pyg(self) -> Any:
        """As a PyG `Data`, with the features of `digraphs`."""
        return self.digraphs.to_pyg()[0]

    def to_svg(self) -> str:
        """As a picture: the text of an SVG file."""
        # Imported here because the drawing imports this file.
        return import_module("magnetite.code.drawing").to_svg(self)

    def to_json(self) -> str:
        """As node-link data, which networkx and `magnetite encode` read; a node without an attribute lacks the key."""
        edges = [edge._asdict() | {"key": key} for key, edge in enumerate(self.edges)]
        about = {"kind": self.kind, "name": self.name}
        nodes = [{"id": node} | columns for node, columns in enumerate(self._columns())]
        return json.dumps({"directed": True, "multigraph": True, "graph": about, "nodes": nodes, "edges": edges}) + "\n"

    def to_graphml(self) -> str:
        """As GraphML for networkx, Gephi, yEd and Cytoscape; characters that XML cannot hold are escaped."""
        import networkx as nx

        file = BytesIO()
        escaped = [
            {key: _escaped(value) if isinstance(value, str) else value for key, value in columns.items()}
            for columns in self._columns()
        ]
        nx.write_graphml_xml(self._networkx(escaped), file)
        return file.getvalue().decode()

    def _columns(self) -> list[dict[str, Any]]:
        """The columns of each node, without an attribute where it has none."""
        names = ("type", "attribute", "depth", "line")
        columns = zip(self.types, self.attributes, self.depths, self.lines, strict=True)
        return [{name: value for name, value in zip(names, row, strict=True) if value is not None} for row in columns]


def _escaped(text: str) -> str:
    """Escape control characters and lone surrogates.

    >>> _escaped("a\\x00b")
    'a\\\\x00b'
    """
    return "".join(letter if letter.isprintable() or letter in "\t\n" else repr(letter)[1:-1] for letter in text)
