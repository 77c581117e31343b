import ast
import textwrap

import pytest

from magnetite.code.ast_graph import NODE_TYPES, UNKNOWN, ast_graph
from magnetite.code.graph import EDGE_TYPE_NUMBER, MASK, NODE_TYPE_NUMBER


def graph_of(source: str, **options):
    return ast_graph(ast.parse(textwrap.dedent(source)).body[0], **options)


def expression(source: str) -> list[str]:
    """The nodes of an expression as `Type` or `Type=attribute`, with one dot per level of depth."""
    graph = graph_of(f"def f():\n    {source}")
    rows = zip(graph.types, graph.attributes, graph.depths, strict=True)
    words = ["." * (depth - 3) + kind + ("" if value is None else f"={value}") for kind, value, depth in rows]
    return words[words.index("Expr") + 1 :]


def test_a_function_node_by_node():
    graph = graph_of("""
        def transform_add(a, b: float = 3.14):
            a = a**2
            c = math.sqrt(b)
            return c + a
    """)
    rows = list(zip(graph.depths, graph.types, graph.attributes, strict=True))
    assert rows == [
        (0, "Module", None),
        (1, "FunctionDef", "transform_add"),
        (2, "arguments", None),
        (3, "arg", "a"),
        (3, "arg", "b"),
        (4, "Name", "float"),
        (5, "Load", None),
        (3, "Num", "3.14"),
        (2, "Assign", None),
        (3, "Name", "a"),
        (4, "Store", None),
        (3, "BinOp", None),
        (4, "Name", "a"),
        (5, "Load", None),
        (4, "Pow", None),
        (4, "Num", "2"),
        (2, "Assign", None),
        (3, "Name", "c"),
        (4, "Store", None),
        (3, "Call", None),
        (4, "Attribute", "sqrt"),
        (5, "Name", "math"),
        (6, "Load", None),
        (5, "Load", None),
        (4, "Name", "b"),
        (5, "Load", None),
        (2, "Return", None),
        (3, "BinOp", None),
        (4, "Name", "c"),
        (5, "Load", None),
        (4, "Add", None),
        (4, "Name", "a"),
        (5, "Load", None),
    ]
    assert (graph.name, graph.kind, graph.lines[8]) == ("transform_add", "ast", 3)


def test_edges_in_the_order_of_ogb():
    graph = graph_of("def f(a):\n    return a")  # Module FunctionDef arguments arg Return Name Load
    tree, tokens = [(0, 1), (1, 2), (1, 4), (2, 3), (4, 5), (5, 6)], [(1, 3), (3, 5)]
    expected = [(*pair, "FIELD") for pair in tree] + [(v, u, "FIELD_INVERSE") for u, v in tree]
    expected += [(*pair, "NEXT_TOKEN") for pair in tokens] + [(v, u, "NEXT_TOKEN_INVERSE") for u, v in tokens]
    assert [edge[:3] for edge in graph.edges] == expected


def test_the_97_types_of_python_36_have_their_numbers():
    assert len(NODE_TYPES) == 97
    assert set(NODE_TYPE_NUMBER) >= NODE_TYPES
    assert set(EDGE_TYPE_NUMBER) >= {"FIELD", "FIELD_INVERSE", "NEXT_TOKEN", "NEXT_TOKEN_INVERSE"}


EXPRESSIONS = {
    "1": ["Num=1"],
    "-1": ["UnaryOp", ".USub", ".Num=1"],
    "1.50": ["Num=1.5"],
    "2j": ["Num=2j"],
    "0xff": ["Num=255"],
    "0x" + "f" * 5000: ["Num=0x" + "f" * 5000],
    "None, True, False, ...": ["Tuple", ".NameConstant", ".NameConstant", ".NameConstant", ".Ellipsis", ".Load"],
    "('', 'é')": ["Tuple", ".Str=", ".Str=é", ".Load"],
    "b'x'": ["Bytes=b'x'"],
    "f''": ["Str="],
    "f'a' 'b'": ["Str=ab"],
    "f'{x}'": ["JoinedStr", ".FormattedValue", "..Name=x", "...Load"],
    "f'a{x!r:>{w}}'": ["JoinedStr", ".Str=a", ".FormattedValue", "..Name=x", "...Load", "..JoinedStr", "...Str=>",
                       "...FormattedValue", "....Name=w", ".....Load"],
    "f'{x:.3}'": ["JoinedStr", ".FormattedValue", "..Name=x", "...Load", "..Str=.3"],
    "x[1]": ["Subscript", ".Name=x", "..Load", ".Index", "..Num=1", ".Load"],
    "x[1, 2]": ["Subscript", ".Name=x", "..Load", ".Index", "..Tuple", "...Num=1", "...Num=2", "...Load", ".Load"],
    "x[1:2]": ["Subscript", ".Name=x", "..Load", ".Slice", "..Num=1", "..Num=2", ".Load"],
    "x[:, 1]": ["Subscript", ".Name=x", "..Load", ".ExtSlice", "..Slice", "..Index", "...Num=1", ".Load"],
    "x[...]": ["Subscript", ".Name=x", "..Load", ".Index", "..Ellipsis", ".Load"],
    "f(a, *b, k=c, **d)": ["Call", ".Name=f", "..Load", ".Name=a", "..Load", ".Starred", "..Name=b", "...Load",
                           "..Load", ".keyword=k", "..Name=c", "...Load", ".keyword", "..Name=d", "...Load"],
    "{**a, 1: b}": ["Dict", ".Num=1", ".Name=a", "..Load", ".Name=b", "..Load"],
    "a < b <= c": ["Compare", ".Name=a", "..Load", ".Lt", ".LtE", ".Name=b", "..Load", ".Name=c", "..Load"],
    "[i for i in x if i]": ["ListComp", ".Name=i", "..Load", ".comprehension", "..Name=i", "...Store", "..Name=x",
                            "...Load", "..Name=i", "...Load"],
    "lambda *a, k=1: a": ["Lambda", ".arguments", "..arg=a", "..arg=k", "..Num=1", ".Name=a", "..Load"],
    "(y := 1)": [UNKNOWN, ".Name=y", "..Store", ".Num=1"],
}  # fmt: skip


@pytest.mark.parametrize("source", EXPRESSIONS)
def test_an_expression_node_by_node(source):
    assert expression(source) == EXPRESSIONS[source]


STATEMENTS = {
    "import a.b as c, d": [".Import", "..alias=a.b", "..alias=d"],
    "from m import a as b": [".ImportFrom", "..alias=a"],
    "global g": [".Global"],
    "del x.y": [".Delete", "..Attribute=y", "...Name=x", "....Load", "...Del"],
    "try: pass\n    except E as e: pass": [".Try", "..Pass", "..ExceptHandler=e", "...Name=E", "....Load", "...Pass"],
    "with a as b: pass": [".With", "..withitem", "...Name=a", "....Load", "...Name=b", "....Store", "..Pass"],
    "x: int = 1": [".AnnAssign", "..Name=x", "...Store", "..Name=int", "...Load", "..Num=1"],
    "class C(B, metaclass=M): pass": [".ClassDef=C", "..Name=B", "...Load", "..keyword=metaclass", "...Name=M",
                                      "....Load", "..Pass"],
    "match x:\n        case [y, *z]: pass": ["." + UNKNOWN, "..Name=x", "...Load", ".." + UNKNOWN, "..." + UNKNOWN,
                                             "...." + UNKNOWN + "=y", "...." + UNKNOWN + "=z", "...Pass"],
}  # fmt: skip


@pytest.mark.parametrize("source", STATEMENTS)
def test_a_statement_node_by_node(source):
    graph = graph_of(f"def f():\n    {source}")
    rows = zip(graph.types, graph.attributes, graph.depths, strict=True)
    words = ["." * (depth - 1) + kind + ("" if value is None else f"={value}") for kind, value, depth in rows]
    assert words[3:] == STATEMENTS[source]


def test_docstrings_are_left_out_unless_kept():
    source = 'def f():\n    """Text."""\n    class C:\n        """Text."""\n    "no docstring"'
    assert graph_of(source).attributes.count("Text.") == 0
    assert graph_of(source).attributes.count("no docstring") == 1
    kept = graph_of(source, keep_docstrings=True)
    assert kept.types[3:5] == ("Expr", "Str")
    assert kept.attributes.count("Text.") == 2


def test_masked_nodes_stay_tokens():
    function = ast.parse("def f(a):\n    return f(a)").body[0]
    graph = ast_graph(function, masked=[function])
    assert graph.attributes[1] == MASK
    assert graph.attributes.count("f") == 1
    assert ("NEXT_TOKEN", 1, 3) in [(edge.type, edge.source, edge.target) for edge in graph.edges]


def test_the_order_of_statements_matters():
    one = graph_of("def f(a, b):\n    x = a\n    y = b")
    two = graph_of("def f(a, b):\n    y = b\n    x = a")
    assert one.hash != two.hash


def test_deep_trees_need_no_deep_stack():
    tree = ast.Name("x", ast.Load())
    for _ in range(50_000):
        tree = ast.UnaryOp(ast.Not(), tree)
    function = ast.parse("def f(): pass").body[0]
    function.body = [ast.Expr(tree)]
    assert max(ast_graph(function).depths) == 50_004
    while isinstance(tree, ast.UnaryOp):  # dismantled by hand, since freeing a deep tree needs a deep stack
        tree.operand, tree = None, tree.operand
