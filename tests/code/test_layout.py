from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from magnetite.code import layout as module
from magnetite.code.layout import LAYER_GAP, NODE_GAP, back_edges, crossings, layered, longest_path_layers


@st.composite
def digraphs(draw):
    size = draw(st.integers(1, 12))
    node = st.integers(0, size - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=30))
    sizes = draw(st.lists(st.tuples(st.integers(10, 200), st.integers(10, 50)), min_size=size, max_size=size))
    return edges, sizes


@given(digraphs())
def test_without_its_back_edges_every_edge_points_down(graph):
    edges, sizes = graph
    closing = back_edges(len(sizes), edges)
    kept = [edge for edge, closes in zip(edges, closing, strict=True) if not closes]
    layers = longest_path_layers(len(sizes), kept)
    assert all(layers[source] < layers[target] for source, target in kept)
    reached = {target for source, target in kept if layers[source] == layers[target] - 1}
    assert all(layer == 0 or node in reached for node, layer in enumerate(layers))


@given(digraphs())
def test_boxes_do_not_overlap_and_lie_inside(graph):
    edges, sizes = graph
    placed = layered(edges, sizes)
    for node, ((x, y), (width, height)) in enumerate(zip(placed.nodes, sizes, strict=True)):
        assert x - width / 2 >= -1e-6
        assert x + width / 2 <= placed.width + 1e-6
        assert y + height / 2 <= placed.height + 1e-6
        for (other_x, other_y), (other_width, _) in zip(placed.nodes[:node], sizes, strict=False):
            apart = abs(x - other_x) >= (width + other_width) / 2 + NODE_GAP - 1e-6
            assert apart or abs(y - other_y) >= LAYER_GAP


@given(digraphs())
def test_edges_run_from_their_source_to_their_target(graph):
    edges, sizes = graph
    placed = layered(edges, sizes)
    for (source, target), route in zip(edges, placed.edges, strict=True):
        assert (route[0], route[-1]) == (placed.nodes[source], placed.nodes[target])


def test_a_long_edge_bends_round_the_layers_between():
    placed = layered([(0, 1), (1, 2), (0, 2)], [(50.0, 20.0)] * 3)
    assert [len(route) for route in placed.edges] == [2, 2, 3]
    (x, y), _ = placed.edges[2][1], placed.nodes[1]
    assert y == placed.nodes[1][1]
    assert abs(x - placed.nodes[1][0]) >= 25 + NODE_GAP


def test_edges_run_straight_where_bends_would_be_too_many(monkeypatch):
    monkeypatch.setattr(module, "MOST_BENDS", 3)
    edges = [*pairwise(range(10)), (0, 9)]
    assert {len(route) for route in layered(edges, [(10.0, 10.0)] * 10).edges} == {2}


def test_crossings_are_counted_and_removed():
    assert crossings([0, 1, 2], [3, 4, 5], [(0, 5), (1, 4), (2, 3)]) == 3
    placed = layered([(0, 5), (1, 4), (2, 3)], [(10.0, 10.0)] * 6)
    assert [placed.nodes[source][0] for source in (0, 1, 2)] == [placed.nodes[target][0] for target in (5, 4, 3)]


def test_the_parent_in_a_tree_is_centred():
    (parent, _), (left, _), (right, _) = layered([(0, 1), (0, 2)], [(30.0, 10.0)] * 3).nodes
    assert parent == (left + right) / 2


def test_ten_thousand_nodes_are_fast():
    chain = layered(list(pairwise(range(10_000))), [(10.0, 10.0)] * 10_000)
    assert len(chain.nodes) == 10_000
    assert len(layered([(0, leaf) for leaf in range(1, 5000)], [(10.0, 10.0)] * 5000).nodes) == 5000
