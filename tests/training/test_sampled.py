"""Training on sampled neighbourhoods: every target once an epoch, encoded once, chosen by default for large graphs."""

import pytest
import torch

import magnetite as mt
from magnetite.encodings import MagneticLaplacian
from magnetite.tasks import supervised
from magnetite.training.config import Data, configuration
from magnetite.training.data import Share
from magnetite.training.sampled import SampledEvaluationData, SampledTrainingData
from magnetite.training.trained import Run

NODES = 400
PARTS = 4


def blocks(seed: int = 0, nodes: int = NODES) -> mt.Digraphs:
    """A directed cycle of four classes: three quarters of the edges go to the next class."""
    random = torch.Generator().manual_seed(seed)
    y = torch.randint(PARTS, (nodes,), generator=random)
    source, target = torch.randint(nodes, (2, 60 * nodes), generator=random)
    follows = (y[source] + 1) % PARTS == y[target]
    kept = follows | (torch.rand(len(source), generator=random) < 0.05)
    ends = torch.stack([source, target])[:, kept][:, : 8 * nodes]
    return mt.Digraphs.from_edges(ends, num_nodes=nodes).replace(node_features={"y": y})


@pytest.fixture(scope="module")
def task() -> mt.tasks.Supervised:
    return mt.tasks.Supervised(blocks(), target="y", level="node", kind="classification")


class Counted:
    """Counts how often graphs are encoded."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, graphs):
        self.calls += 1
        return MagneticLaplacian(k=2)(graphs)


def data(task, share: Share | None = None, encodings=None) -> SampledTrainingData:
    return SampledTrainingData(task, encodings or {}, Data(neighbours=(3, 2)), 32, 0, "cpu", share)


def test_every_step_has_other_targets_and_only_these_have_losses(task):
    made = data(task)
    block = next(made.blocks())
    train = task.examples("train").graphs.node_features["selected"]
    seen = block.ids.flatten()
    assert seen.unique().numel() == seen.numel() == made.steps * 32 <= int(train.sum())
    assert train[seen].all()
    for ids, weight in zip(block.ids, block.weights, strict=True):
        (batch,) = block.batches(ids, ())
        targets, selected = task.rows_of(batch)
        assert int(selected.sum()) == 32 == int(weight)
        assert sorted(targets[selected].tolist()) == sorted(blocks().node_features["y"][ids].tolist())
        assert batch.num_nodes < NODES


def test_a_resumed_epoch_continues_with_the_same_batches(task):
    made = data(task)
    first, rest = next(made.blocks()), next(made.blocks(3))
    assert torch.equal(first.ids[3:], rest.ids)
    for one, other in zip(first.batches(first.ids[3], ()), rest.batches(rest.ids[0], ()), strict=True):
        assert all(torch.equal(*pair) for pair in zip(one.tensors(), other.tensors(), strict=True))
    endless = made.blocks()
    assert not torch.equal(next(endless).ids, next(endless).ids)


def test_processes_share_the_targets_of_a_step(task):
    whole = next(data(task).blocks())
    halves = [next(data(task, Share(process, 2)).blocks()) for process in range(2)]
    for step in range(len(whole)):
        both = torch.cat([half.ids[step] for half in halves])
        assert sorted(both.tolist()) == sorted(whole.ids[step].tolist())
        assert all(float(half.weights[step]) == float(whole.weights[step]) for half in halves)


def test_evaluation_has_every_target_once_and_encodes_nothing_again(task):
    counted = Counted()
    made = data(task, encodings={"eigenpairs": counted})
    examples = task.examples("test")
    found = SampledEvaluationData(examples, made._made[1], Data(neighbours=(3,)), task=task, like=made.sampler)
    targets = torch.cat([task.rows_of(batch)[1].nonzero() for batch in found.batches()])
    assert len(targets) == int(task.targets.masks["test"].sum())
    assert counted.calls == 1
    everything = SampledEvaluationData(examples, {}, Data(neighbours=(3,)))
    assert torch.cat([nodes for _, nodes, _ in everything.samples()]).tolist() == list(range(NODES))


def test_large_graphs_are_sampled_by_default_and_small_ones_are_not(task, monkeypatch):
    assert configuration(task, preset="quick").data.neighbours == ()
    monkeypatch.setattr(supervised, "LARGE", NODES - 1)
    config = configuration(task, preset="quick")
    assert (config.data.neighbours, config.model.attention) == ((6, 2), "linear")
    assert config.optim.batch == 256
    whole = configuration(task, preset="quick", overrides=["data.neighbours=[]", "optim.batch=1"])
    assert whole.data.neighbours == ()
    for model in ("gnn", "magnet", "sat"):
        assert configuration(task, preset="quick", changes={"model": {"name": model}}).data.neighbours == (6, 2)
    assert config.hash != configuration(task, preset="quick", overrides=["data.neighbours=[3]"]).hash
    graphs = blocks().replace(graph_features={"z": torch.ones(1)}, node_features={})
    several = mt.Digraphs.concat([graphs] * 12)
    several = several.replace(graph_features={"z": torch.arange(12.0)})
    of_graphs = configuration(mt.tasks.Supervised(several, target="z"), preset="quick")
    assert (of_graphs.data.neighbours, of_graphs.model.attention) == ((), "linear")


def test_targets_of_graphs_cannot_be_sampled():
    graphs = mt.Digraphs.from_edges([torch.tensor([[0], [1]])] * 12).replace(graph_features={"y": torch.arange(12.0)})
    task = mt.tasks.Supervised(graphs, target="y")
    with pytest.raises(ValueError, match="the targets are not those of nodes"):
        SampledTrainingData(task, {}, Data(neighbours=(3,)), 4, 0, "cpu")


def test_a_run_learns_and_predicts_on_neighbourhoods(tmp_path, task, monkeypatch):
    monkeypatch.setattr(supervised, "LARGE", NODES - 1)
    settings = {"model.width": 32, "encoding.k": 4, "optim.batch": 64, "optim.lr": 3e-3}
    run = mt.train(task, out=tmp_path / "run", epochs=6, settings=settings)
    assert run.metrics["test"]["accuracy"] > 0.8
    answers = Run(tmp_path / "run").predict(blocks())
    assert answers.shape == (NODES,)
    assert float((answers == blocks().node_features["y"]).float().mean()) > 0.8
