"""Advice for graphs of all shapes."""

import networkx as nx
import pytest
import torch

import magnetite as mt
from tests.linalg.test_adaptive import blocks

NAMES = {"magnetic", "multi-q", "walks", "svd", "laplacian"}


def shapes():
    edges, _ = blocks(1500, "cycle", 2, share=0.8, degree=5)
    dag = [nx.gn_graph(size, seed=size) for size in range(5, 25)]
    weighted = mt.Digraphs.from_edges([[0, 1], [1, 0]], edge_weight=torch.tensor([1.0, 2.0]))
    return {
        "few small": (mt.Digraphs.from_networkx(dag[:2]), "magnetic", 6),
        "many small": (mt.Digraphs.from_networkx(dag * 10), "magnetic", 16),
        "one large": (mt.Digraphs.from_edges(edges, num_nodes=1500), "magnetic", 8),
        "undirected": (mt.Digraphs.from_networkx([nx.cycle_graph(20).to_directed()]), "laplacian", 16),
        "unequal weights": (weighted, "magnetic", 2),
        "no edges": (mt.Digraphs.from_edges([[], []], num_nodes=5), "laplacian", 5),
        "one node": (mt.Digraphs.from_edges([[], []], num_nodes=1), "laplacian", 1),
    }


@pytest.mark.parametrize("shape", shapes())
def test_graphs_of_any_shape(shape):
    graphs, name, k = shapes()[shape]
    advice = mt.advise(graphs)
    assert (advice.name, advice.k, advice.scaling) == (name, k, "nodes")
    assert {each.name for each in advice.alternatives} == NAMES
    assert advice.alternatives[0].name == name
    assert (advice.q is None) == (name == "laplacian")
    assert all(each.seconds > 0 and each.bytes > 0 for each in advice.alternatives)
    assert advice.encoding.k == k
    for text in (advice.reason, *NAMES):
        assert text in str(advice)
    if graphs.num_nodes < 1000:
        assert len(advice.encoding(graphs)) == len(graphs)


def test_the_potential_is_the_one_that_is_used():
    graphs = shapes()["one large"][0]
    advice = mt.advise(graphs)
    assert float(advice.q[0]) > 0.05
    assert "too small to be seen" in advice.reason
    assert advice.encoding.q == mt.Adaptive()


def test_what_cannot_fit_says_so():
    chain = torch.arange(200_000)
    graphs = mt.Digraphs.from_edges(torch.stack([chain[:-1], chain[1:]]))
    notes = {each.name: each.note for each in mt.advise(graphs).alternatives}
    assert "does not fit" in notes["walks"]
    assert "does not fit" not in notes["svd"] + notes["magnetic"]
