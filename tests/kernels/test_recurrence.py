"""The kernels of the recurrence equal its loop over the levels."""

from pathlib import Path

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.kernels.cuda import recurrence
from magnetite.nn import recurrent
from magnetite.nn.recurrent import levels_of
from magnetite.tasks import Distances, Sorting
from tests.kernels.cases import DEVICES, assert_near, kernels

SHAPES = [(32, True), (32, False), (64, True)]
"""Width, and whether edges have features."""


def random_graphs() -> mt.Digraphs:
    """Networks, acyclic graphs with levels of many nodes, nodes alone, and cycles."""
    networks = Sorting(train=2, valid=2, test=2).shard("train", 0).graphs
    acyclic = Distances(target="directed-distance", acyclic=True, train=3).shard("train", 0).graphs
    edges = torch.tensor([[0, 1, 2, 2, 3], [1, 2, 1, 3, 4]])
    others = mt.Digraphs.from_edges([edges, edges[:, :0], edges.flip(0)], num_nodes=[30, 1, 5])
    bare = [graphs.replace(node_features={}, edge_features={}, graph_features={}) for graphs in (networks, acyclic)]
    graphs = mt.Digraphs.concat([*bare, others])
    return graphs.replace(edge_features={"kind": torch.arange(graphs.num_edges) % 3})


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("width", "featured"), SHAPES)
def test_the_kernels_are_the_loop(width: int, featured: bool, device: str, tmp_path: Path, monkeypatch) -> None:
    torch.manual_seed(0)
    features = nn.CategoryEdges({"kind": 3}) if featured else None
    network, batch = (
        nn.TopologicalGRU(width, edge_features=features).to(device),
        mt.batch(random_graphs(), device=device),
    )
    states = torch.randn(batch.num_nodes, width, device=device, requires_grad=True)
    inputs, upper, results = [states, *network.parameters()], torch.randn_like(states), []
    for suits in (False, True):
        monkeypatch.setattr(recurrence, "suits", lambda states, suits=suits: suits)
        with kernels(tmp_path, device):
            found = network(states, batch)
            results.append([found, *torch.autograd.grad(found, inputs, upper)])
    for looped, fused in zip(*results, strict=True):
        assert_near(fused, looped, error=2e-5)


@pytest.mark.parametrize(("width", "featured"), [(8, True), (19, False), (64, True)])
def test_the_cpu_kernels_are_the_operations_of_torch(width: int, featured: bool, monkeypatch) -> None:
    torch.manual_seed(0)
    features = nn.CategoryEdges({"kind": 3}) if featured else None
    network, batch = nn.TopologicalGRU(width, steps=2, edge_features=features), mt.batch(random_graphs())
    states = (4 * torch.randn(batch.num_nodes, width)).requires_grad_()
    inputs, upper, results = [states, *network.parameters()], torch.randn_like(states), []
    for has_kernels in (False, True):
        monkeypatch.setattr(recurrent, "_has_kernels", lambda _states, found=has_kernels: found)
        found = network(states, batch)
        results.append([found, *torch.autograd.grad(found, inputs, upper)])
    for plain, compiled in zip(*results, strict=True):
        assert_near(compiled, plain, error=1e-5)


def test_cpu_kernels_saturate_and_keep_nan() -> None:
    network, batch = nn.TopologicalGRU(8), mt.batch(mt.Digraphs.from_edges([[0, 1, 3], [1, 2, 4]]))
    states = torch.zeros(5, 8)
    states[0], states[3] = 1e30, torch.nan
    found = network(states, batch)
    assert found[:3].isfinite().all()
    assert found[3:].isnan().all()


def test_levels_of_a_graph_follow_each_other() -> None:
    edges, graph = torch.tensor([[0, 3, 1], [3, 2, 4]]), torch.tensor([0, 1, 0, 0, 1])
    levels = levels_of(edges, 5, graph)
    order = levels.order
    assert order is not None
    assert levels.nodes.tolist() == [0, 3, 2, 1, 4]
    assert (order.parts, order.depth, order.starts.tolist()) == (2, 3, [0, 1, 2, 3, 4, 5, 5])
    assert order.entering.tolist() == [0, 0, 1, 2, 2, 3]
    assert order.leaving.tolist() == [0, 1, 2, 2, 3, 3]
    assert torch.equal(order.sources, levels.sources)
    assert order.sources[order.left].tolist() == [0, 1, 3]
