import pytest
import torch

import magnetite as mt
from magnetite.code.graph import EDGE_NAMES, EDGE_TYPES, NODE_TYPES
from magnetite.nn import CodeSizes, sat, sat_plus_plus

SOURCES = ["def f(a, b):\n    c = a.size\n    return f(c, b, 'x', 1, ...)", "def g(x):\n    x[1:2] = x\n    return x"]
KINDS = ["dataflow", "ast", "ast-directed", "tokens"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [sat, sat_plus_plus])
def test_the_paper_s_models_read_graphs_of_every_kind(make, kind):
    built = [mt.code.build(source, kind) for source in SOURCES]
    vocabulary = mt.code.Vocabulary.most_frequent(text for graph in built for text in graph.attributes)
    graphs = mt.code.to_digraphs(built, vocabulary)
    sizes = CodeSizes.of(kind, len(vocabulary), words=9)
    model = make(sizes, width=32, layers=1).eval()
    assert model(graphs).shape == (2, 5, 9)
    assert not torch.equal(model(graphs), model(mt.code.to_digraphs(built)))  # attributes reach the model
    for features, known in ((graphs.node_features, sizes.nodes), (graphs.edge_features, sizes.edges)):
        assert all(int(features[name].max()) < size for name, size in known.items())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [sat, sat_plus_plus])
def test_default_sizes_fit_a_graph_as_it_is_built(make, kind):
    assert make(width=32, layers=1)(mt.code.build(SOURCES[0], kind).digraphs).shape == (1, 5, 5_002)


def test_no_type_shares_the_last_category():
    assert CodeSizes().nodes["node_type"] == len(NODE_TYPES)
    assert CodeSizes().edges["edge_type"] == len(EDGE_TYPES)
    assert CodeSizes.of("dataflow").edges["edge_name"] == len(EDGE_NAMES)
    with pytest.raises(
        ValueError,
        match="kind must be one of 'dataflow', 'ast', 'ast-directed', 'tokens', 'dataflow-sequential', got 'tree'",
    ):
        CodeSizes.of("tree")
