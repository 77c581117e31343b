"""Warnings about potentials that are too small to be seen, or so large that they are mirrored."""

import warnings

import networkx as nx
import pytest

import magnetite as mt
from tests.linalg.test_adaptive import blocks


def test_an_invisible_potential_gives_one_warning_per_call():
    edges, _ = blocks(500, "cycle", 1)
    small = [[0, 1], [1, 2]]
    graphs = mt.Digraphs.from_edges([small, edges, edges], num_nodes=[3, 500, 500])
    with pytest.warns(mt.PotentialWarning) as caught:
        mt.MagneticLaplacian(2, q=mt.Relative(0.25))(graphs)
    (warning,) = caught
    text = str(warning.message)
    assert "\n" not in text
    assert "graph 1 " in text
    assert "q=0.0005 " in text
    assert "Adaptive()" in text


@pytest.mark.parametrize("q", [mt.Adaptive(), (mt.Adaptive(), mt.Adaptive(0.5)), 0.2, 0, mt.Relative(0)])
def test_visible_potentials_and_zero_give_none(q):
    edges, _ = blocks(300, "cycle", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mt.MagneticLaplacian(2, q=q)(mt.Digraphs.from_edges(edges, num_nodes=300))


def test_graphs_of_the_paper_give_none():
    """A long path has tiny potentials, but its phases span 90°; undirected graphs have no direction to see."""
    trees = mt.Digraphs.from_networkx([nx.balanced_tree(2, 7, nx.DiGraph), nx.path_graph(800, nx.DiGraph)])
    undirected = mt.Digraphs.from_networkx([nx.star_graph(300).to_directed()])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for graphs in (trees, undirected, mt.sorting.batcher(16).to_digraphs()):
            mt.MagneticLaplacian(2, q=mt.Relative(0.25))(graphs)


def test_small_absolute_potentials_are_noticed():
    with pytest.warns(mt.PotentialWarning, match="q=1e-05 turns the phases of graph 0"):
        mt.MagneticLaplacian(2, q=1e-5)(mt.Digraphs.from_edges([[0, 1], [1, 2]]))


def test_relative_potentials_above_half_a_turn_are_noticed():
    """On small graphs only: the paper's sweep has such potentials on large ones."""
    small, path = mt.Digraphs.from_edges([[0, 1], [1, 2]]), mt.Digraphs.from_networkx([nx.path_graph(9, nx.DiGraph)])
    with pytest.warns(mt.PotentialWarning, match=r"Relative\(2\) is q=1 in graph 1 with 3 nodes and 2 one-way edges"):
        mt.MagneticLaplacian(2, q=(0.1, mt.Relative(2)))(mt.Digraphs.concat([path, small]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mt.MagneticLaplacian(2, q=mt.Relative(2))(path)
        mt.MagneticLaplacian(2, q=mt.Relative(1))(mt.Digraphs.from_networkx([nx.complete_graph(4).to_directed()]))
