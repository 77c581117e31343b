import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetite import code
from magnetite.code.graph import CodeGraph, Edge
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
