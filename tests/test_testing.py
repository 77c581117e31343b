"""The helpers must fail where the law is broken."""

import pytest
import torch

import magnetite as mt
from magnetite.encodings import NodeEncoding
from magnetite.testing import assert_permutation_equivariant, assert_phase_invariant, permute


def test_a_function_of_the_node_order_is_caught(odd):
    with pytest.raises(AssertionError, match="differ"):
        assert_permutation_equivariant(mt.Sinusoidal(width=2), odd)


def test_eigenvectors_with_a_phase_of_the_solver_are_caught(odd):
    def raw(graphs):
        pairs = mt.MagneticLaplacian(k=3)(graphs)
        phase = torch.polar(torch.ones(graphs.num_nodes), torch.arange(graphs.num_nodes).float())
        return mt.Eigenpairs.from_tensors({**pairs.tensors(), "vectors": pairs.vectors * phase[:, None]})

    with pytest.raises(AssertionError, match="eigenvectors differ"):
        assert_permutation_equivariant(raw, odd)


def test_pair_encodings_that_depend_on_order_are_caught(odd):
    def wrong(graphs):
        walks = mt.RandomWalk()(graphs)
        ramp = torch.linspace(0, 1, len(walks.values))[:, None]
        return type(walks).from_tensors({**walks.tensors(), "values": walks.values + ramp})

    with pytest.raises(AssertionError, match="pair encodings differ"):
        assert_permutation_equivariant(wrong, odd)


def test_graph_level_results_must_not_change(odd):
    assert_permutation_equivariant(lambda graphs: graphs.sizes.float(), odd)
    with pytest.raises(AssertionError):
        assert_permutation_equivariant(lambda graphs: graphs.edges[0, graphs.edge_ptr[:-1] - 1].float(), odd)


def test_phase_dependence_is_caught(odd):
    for pairs in (mt.MagneticLaplacian(k=3)(odd), mt.Laplacian(k=3)(odd)):
        assert_phase_invariant(lambda pairs: pairs.vectors.abs(), pairs)
        with pytest.raises(AssertionError):
            assert_phase_invariant(lambda pairs: pairs.vectors.real, pairs)


def test_features_are_permuted_along(odd):
    labelled = odd.replace(node_features={"x": torch.arange(odd.num_nodes)})
    permuted, number = permute(labelled, seed=0)
    assert torch.equal(permuted.node_features["x"][number + odd.node_ptr[odd.node_graph]], torch.arange(odd.num_nodes))
    assert_permutation_equivariant(
        lambda graphs: NodeEncoding(node_ptr=graphs.node_ptr, values=graphs.node_features["x"].float()), labelled
    )


def test_names_are_permuted_along():
    graphs = mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 3]]).replace(names=list("abcd"))
    permuted, number = permute(graphs, seed=1)
    assert [permuted.names[new] for new in number.tolist()] == graphs.names
