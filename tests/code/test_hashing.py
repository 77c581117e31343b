import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetite import code
from magnetite.code.graph import CodeGraph, Edge
from magnetite.code.hashing import canonical
from tests.code.random_programs import Programs


def renumbered(graph: CodeGraph, rng: random.Random) -> CodeGraph:
    """The same graph with nodes and edges in another order."""
    place = list(range(len(graph)))
    rng.shuffle(place)
    back = sorted(range(len(graph)), key=place.__getitem__)
    edges = [edge._replace(source=place[edge.source], target=place[edge.target]) for edge in graph.edges]
    rng.shuffle(edges)
    columns = {
        name: tuple(getattr(graph, name)[old] for old in back) for name in ("types", "attributes", "depths", "lines")
    }
    return replace(graph, edges=tuple(edges), **columns)


def plain(size: int, pairs: list[tuple[int, int]]) -> CodeGraph:
    """A graph without any labels."""
    edges = tuple(Edge(one, other, "CALLS") for one, other in pairs)
    none: tuple[None, ...] = (None,) * size
    return CodeGraph(
        kind="dataflow",
        name="",
        types=("Name",) * size,
        attributes=none,
        depths=(0,) * size,
        lines=(0,) * size,
        edges=edges,
    )


def cycle(nodes: list[int]) -> list[tuple[int, int]]:
    return list(zip(nodes, nodes[1:] + nodes[:1], strict=True))


@given(st.integers(0, 10**6))
def test_numbering_does_not_matter(seed):
    rng = random.Random(seed)
    graph = code.build(Programs(rng).generate())
    if not any(edge.name.endswith(":8") for edge in graph.edges):
        assert renumbered(graph, rng).hash == graph.hash


@given(st.integers(0, 10**6))
def test_every_edge_and_label_matters(seed):
    rng = random.Random(seed)
    graph = code.build(Programs(rng).generate())
    place = rng.randrange(len(graph.edges))
    edge = graph.edges[place]
    others = [
        edge._replace(type="CALLS" if edge.type != "CALLS" else "FIELD"),
        edge._replace(source=edge.target, target=edge.source),
        edge._replace(name=edge.name + "x"),
    ]
    for other in others:
        if other != edge:
            assert replace(graph, edges=(*graph.edges[:place], other, *graph.edges[place + 1 :])).hash != graph.hash
    attributes = list(graph.attributes)
    attributes[rng.randrange(len(graph))] = "another"
    assert replace(graph, attributes=tuple(attributes)).hash != graph.hash


def test_graphs_that_refinement_alone_confuses():
    """One cycle of six nodes and two of three: refinement gives all nodes one colour."""
    one, two = plain(6, cycle([*range(6)])), plain(6, cycle([0, 1, 2]) + cycle([3, 4, 5]))
    assert one.hash != two.hash
    assert renumbered(two, random.Random(1)).hash == two.hash


@pytest.mark.parametrize("kind", ["dataflow", "ast"])
def test_lines_and_the_name_of_the_function_are_ignored(kind):
    one, other = code.build("def f(a):\n    return a", kind), code.build("\n\ndef g(a):\n    return a", kind)
    assert one.hash == other.hash


def test_kinds_differ():
    source = "def f():\n    pass"
    assert code.build(source).hash != code.build(source, "ast").hash


def test_many_equal_statements():
    body = "".join("    print('x')\n" for _ in range(200))
    one, other = code.build("def f(a):\n" + body), code.build("def f(a):\n" + body + "    print('x')\n")
    assert one.hash != other.hash


def content(graph: CodeGraph) -> tuple:
    """Everything a model reads, in its order."""
    return graph.types, graph.attributes, graph.depths, graph.edges


@given(st.integers(0, 10**6))
def test_equal_graphs_have_one_canonical_order(seed):
    rng = random.Random(seed)
    source = Programs(rng).generate()
    graph = code.build(source)
    found = canonical(graph)
    assert found.hash == graph.hash
    assert (found.types[0], found.depths[0]) == ("FunctionDef", 0)
    assert sorted(zip(*content(found)[:3], found.lines, strict=True), key=repr) == sorted(
        zip(*content(graph)[:3], graph.lines, strict=True), key=repr
    )
    if not any(edge.name.endswith(":8") for edge in graph.edges):
        assert content(canonical(renumbered(graph, rng))) == content(found)
    for text in code.reorderings(source).sample(3, seed):
        assert content(canonical(code.build(text))) == content(found)


def test_symmetric_graphs_have_one_canonical_order():
    rng = random.Random(0)
    two = plain(6, cycle([0, 1, 2]) + cycle([3, 4, 5]))
    paired = plain(8, [(0, 4), (1, 5), (2, 6), (3, 7)])  # which of the first four belongs to which of the others
    for graph in (plain(6, cycle(list(range(6)))), two, paired):
        orders = {content(canonical(renumbered(graph, rng))) for _ in range(20)}
        assert len(orders) == 1


def test_positions_beyond_the_last_keep_their_order():
    texts = [f"def f():\n    return [{', '.join(map(str, numbers))}]" for numbers in (range(12), range(11, -1, -1))]
    one, other = (canonical(code.build(text)) for text in texts)
    assert [text for text in one.attributes if text] == ["_mask_", *map(str, range(12))]
    assert [text for text in other.attributes if text] == ["_mask_", *map(str, range(11, -1, -1))]


def test_models_get_the_same_numbers_for_equivalent_texts():
    one, other = (
        "def f(a, b):\n    x = a * b\n    y = b + 1\n    return x, y",
        "def f(a, b):\n    y = 1 + b\n    x = b * a\n    return x, y",
    )
    first, second = (canonical(code.build(text)).digraphs.tensors() for text in (one, other))
    assert first.keys() == second.keys()
    assert all(first[name].equal(second[name]) for name in first)
