import pytest
import torch

import magnetite as mt
from magnetite.code.graph import EDGE_TYPES
from magnetite.code.vocabulary import NONE, UNKNOWN

SOURCE = "def f(a, b):\n    c = a.size + len(b)\n    while c:\n        c = c - None\n    return f(c)"
KINDS = ["dataflow", "ast", "ast-directed", "tokens"]


def distinct(graph) -> set[tuple[int, int]]:
    return {(edge.source, edge.target) for edge in graph.edges}


@pytest.mark.parametrize("kind", KINDS[:3])  # the path of tokens has no parallel edges
def test_parallel_edges_count_once_in_the_laplacian(kind):
    graph = mt.code.build(SOURCE, kind)
    assert len(distinct(graph)) < len(graph.edges)  # otherwise nothing is tested
    simple = mt.Digraphs.from_edges(torch.tensor(sorted(distinct(graph))).T, num_nodes=len(graph))
    for normalised in (True, False):
        encoding = mt.MagneticLaplacian(k=8, q=0.1, normalised=normalised)
        torch.testing.assert_close(encoding(graph.digraphs).values, encoding(simple).values)
    walk = mt.RandomWalk(steps=2)
    torch.testing.assert_close(walk(graph.digraphs)[0], walk(simple)[0])


def test_phases_are_zero_with_inverse_edges_and_not_without():
    encoding = mt.MagneticLaplacian(k=4, q=0.1)
    assert encoding(mt.code.build(SOURCE, "ast").digraphs).vectors.imag.abs().max() < 1e-5
    assert encoding(mt.code.build(SOURCE, "ast-directed").digraphs).vectors.imag.abs().max() > 1e-2


def test_the_directed_graph_is_the_ast_graph_without_inverses():
    directed, graph = mt.code.build(SOURCE, "ast-directed"), mt.code.build(SOURCE, "ast")
    kept = tuple(edge for edge in graph.edges if not edge.type.endswith("_INVERSE"))
    assert directed.edges == kept and 2 * len(kept) == len(graph.edges)
    assert (directed.types, directed.attributes, directed.depths) == (graph.types, graph.attributes, graph.depths)


@pytest.mark.parametrize("kind", KINDS)
def test_features_of_many_graphs_are_those_of_each(kind):
    graphs = [mt.code.build(source, kind) for source in (SOURCE, "def g():\n    pass", "def h(x):\n    return x + 1")]
    vocabulary = mt.code.Vocabulary.most_frequent(text for graph in graphs for text in graph.attributes)
    together = mt.code.to_digraphs(graphs, vocabulary)
    for graph, found in zip(graphs, together, strict=True):
        alone = graph.to_digraphs(vocabulary)
        assert torch.equal(found.edges, alone.edges)
        assert torch.equal(found.edge_weight.double(), alone.edge_weight.double())
        for name, tensor in (alone.node_features | alone.edge_features).items():
            assert torch.equal((found.node_features | found.edge_features)[name], tensor)
        inverse = [EDGE_TYPES[number].endswith("INVERSE") for number in alone.edge_features["edge_type"]]
        assert alone.edge_features["edge_direction"].bool().tolist() == inverse


def test_none_the_text_none_and_unknown_are_three_categories():
    graph = mt.code.build("def f(a):\n    return g(a, None)")
    numbers = graph.to_digraphs(mt.code.Vocabulary(["None", "a"])).node_features["attribute"].tolist()
    found = dict(zip(graph.attributes, numbers, strict=True))
    assert (found[None], found["None"], found["a"], found["g"]) == (NONE, 2, 3, UNKNOWN)
    assert set(graph.digraphs.node_features["attribute"].tolist()) == {UNKNOWN, NONE}


def test_vocabularies_keep_the_most_frequent_texts_in_a_fixed_order():
    texts = ["b", "a", "c", "c", None, "b", "a", "d"]
    assert mt.code.Vocabulary.most_frequent(texts, size=4).texts == ("a", "b")
    assert mt.code.Vocabulary.most_frequent(reversed(texts), size=4).texts == ("a", "b")
    with pytest.raises(ValueError, match="has 'a' twice: give each text once"):
        mt.code.Vocabulary(["a", "b", "a"])
    with pytest.raises(ValueError, match="size must be at least 2"):
        mt.code.Vocabulary.most_frequent(texts, size=1)
