import xml.etree.ElementTree as ElementTree

from magnetite.sorting import SortingNetwork, batcher, generate
from magnetite.sorting.drawing import columns


def test_characters():
    assert SortingNetwork(4, [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)]).draw().splitlines() == [
        "0 ──●──●────────",
        "    │  │",
        "1 ──●──┼──●──●──",
        "       │  │  │",
        "2 ──●──●──┼──●──",
        "    │     │",
        "3 ──●─────●─────",
    ]


def test_an_inverted_comparator_is_marked():
    assert "▲" in SortingNetwork(2, [(1, 0)]).draw()
    assert "<path" in SortingNetwork(2, [(1, 0)]).to_svg()
    assert "▲" not in batcher(8).draw()


def test_svg_has_every_wire_and_comparator():
    network = generate(1, [9], seed=0)[0]
    root = ElementTree.fromstring(network.to_svg())
    shapes = [element.tag.rpartition("}")[2] for element in root]
    assert shapes.count("line") == 9 + len(network)
    assert shapes.count("circle") == 2 * len(network)


def test_no_two_comparators_of_a_column_overlap():
    layers = generate(1, [11], seed=0)[0].layers()
    drawn = columns(layers)
    assert sorted(pair for column in drawn for pair in column) == sorted(pair for layer in layers for pair in layer)
    for column in drawn:
        covered = [wire for low, high in column for wire in range(low, high + 1)]
        assert len(covered) == len(set(covered))


def test_wide_networks_keep_their_margin():
    lines = batcher(12).draw().splitlines()
    assert {line.index("─") for line in lines[::2]} == {3}
