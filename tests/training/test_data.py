import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import islice
from unittest import mock

import pytest
import torch

import magnetite as mt
from magnetite.buckets import shapes_for
from magnetite.tasks import Distances, Sorting, draw
from magnetite.training.capture import ALONE
from magnetite.training.config import Data
from magnetite.training.data import EvaluationData, TrainingData, _ahead
from magnetite.training.pools import Pool, Share, _stored

TASK = Distances(target="reachability", train=50, per_size=4)
ENCODINGS = {"eigenpairs": mt.MagneticLaplacian(k=3), "pairs": mt.RandomWalk(steps=1)}


def batches(data: TrainingData, step: int, count: int) -> list[list[list[torch.Tensor]]]:
    """The chunks of some steps, each as all of its tensors."""
    shapes = data.shapes(epochs=2)
    found = []
    for block in data.blocks(step):
        shapes = shapes_for(shapes, block.most)
        for row in range(len(block)):
            found.append([batch.tensors() for batch in block.chunks(row, shapes)])
            if len(found) == count:
                return found
    raise AssertionError("blocks ended")


def assert_same(first: list, second: list) -> None:
    assert len(first) == len(second)
    for one, two in zip(first, second, strict=True):
        for chunk, other in zip(one, two, strict=True):
            for tensor, twin in zip(chunk, other, strict=True):
                assert torch.equal(tensor, twin)


def make(mode: str, share: Share | None = None, pool: int = 16, task=TASK) -> TrainingData:
    return TrainingData(task, ENCODINGS, Data(mode=mode, pool=pool, tokens=200), 8, 0, "cpu", share)


def test_pools_hold_what_resident_data_hold():
    resident, pooled = make("resident"), make("pooled")
    assert (resident.mode, pooled.mode, resident.steps) == ("resident", "pooled", 6)
    assert_same(batches(resident, 0, 14), batches(pooled, 0, 14))


def test_a_gpu_keeps_features_of_pairs_in_half_precision():
    walks, eigen = mt.RandomWalk(steps=1), mt.MagneticLaplacian(k=3)
    assert _stored(walks, torch.device("cuda")) == mt.RandomWalk(steps=1, dtype=torch.float16)
    assert _stored(walks, torch.device("cpu")) is walks
    assert _stored(eigen, torch.device("cuda")) is eigen


@pytest.mark.gpu
def test_pools_on_a_gpu_hold_what_the_walks_round_to():
    found, expected = (Pool.encode(draw(TASK, "train", device), ENCODINGS).parts["pairs"] for device in ("cuda", "cpu"))
    assert found.values.dtype == torch.float16
    torch.testing.assert_close(found.values.cpu(), expected.values.half(), rtol=1e-3, atol=1e-6)


def test_no_block_is_made_while_a_step_is_captured(monkeypatch):
    for name in ("Stream", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, mock.MagicMock())
    for name in ("device", "stream"):
        monkeypatch.setattr(torch.cuda, name, lambda _: nullcontext())
    made = threading.Event()
    blocks = _ahead(lambda: made.set() or "block", torch.device("cuda"))
    with ThreadPoolExecutor(1) as thread:
        with ALONE:
            first = thread.submit(next, blocks)
            assert not made.wait(0.2)
        assert first.result(timeout=10) == "block"
        assert made.is_set()
        thread.submit(blocks.close).result(timeout=10)
    assert not ALONE.locked()


def test_any_step_can_be_the_first():
    for mode in ("resident", "pooled", "fresh"):
        whole = batches(make(mode), 0, 12)
        for start in (1, 3, 7):
            assert_same(whole[start:], batches(make(mode), start, 12 - start))


def test_fresh_data_never_repeat():
    blocks = make("fresh", task=Sorting(train=40)).blocks()
    pools = [next(blocks).pool.graphs for _ in range(12)]  # two epochs
    networks = [tuple(graph.node_features["wires"].flatten().tolist()) for graphs in pools for graph in graphs]
    assert len(set(networks)) == len(networks) > 150


def test_processes_share_a_batch():
    whole = make("resident")
    shapes = whole.shapes(epochs=1)
    block = next(whole.blocks())
    parts = [make(mode, Share(process, 2)) for mode in ("resident", "pooled") for process in (0, 1)]
    for part in parts:
        mine = next(part.blocks())
        assert mine.totals[0] == block.totals[0]
        sizes = torch.cat([batch.sizes for batch in mine.chunks(0, part.shapes(1))])
        everyone = torch.cat([batch.sizes for batch in block.chunks(0, shapes)])
        assert sizes.tolist() == everyone[part.share.process :: 2].tolist()


def test_totals_are_the_weights_of_a_batch():
    data = make("resident")
    block = next(data.blocks())
    for step in range(len(block)):
        pairs = 0
        for batch in block.chunks(step, data.shapes(1)):
            pairs += int((batch.sizes * (batch.sizes - 1)).sum())
        assert float(block.totals[step]) == pairs


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("mode", ["resident", "pooled"])
def test_all_asked_pairs_of_every_epoch_have_slots(mode, processes):
    task, epochs = Distances("directed-distance", acyclic=True, train=50), 3
    every = [make(mode, Share(process, processes), task=task) for process in range(processes)]
    shapes = every[0].shapes(epochs)
    assert len({shape.pairs for shape in shapes}) > 1
    assert all(data.shapes(epochs) == shapes for data in every)
    step = 0
    for blocks in zip(*(data.blocks() for data in every), strict=True):
        assert shapes_for(shapes, blocks[0].most) == shapes
        for row in range(len(blocks[0])):
            chunks = [list(block.chunks(row, shapes)) for block in blocks]
            slots = [[batch.asked.mask.numel() for batch in own] for own in chunks]
            assert slots == [[shape.pairs // processes for shape in shapes]] * processes
            asked = sum(int(batch.asked.mask.sum()) for own in chunks for batch in own)
            assert asked == blocks[0].totals[row]
        step += len(blocks[0])
        if step == epochs * every[0].steps:
            return


def test_fresh_pairs_find_slots_that_grow():
    task = Distances("directed-distance", train=50)
    data = make("fresh", task=task)
    shapes = data.shapes(epochs=1)
    for block in islice(data.blocks(), 12):
        grown = shapes_for(shapes, block.most)
        assert all(new.pairs >= old.pairs for new, old in zip(grown, shapes, strict=True))
        shapes = grown
        for row in range(len(block)):
            assert sum(int(batch.asked.mask.sum()) for batch in block.chunks(row, shapes)) == block.totals[row]


def test_an_evaluation_sees_every_graph_whether_encodings_fit_or_not():
    seen = []
    for memory in (1.0, 0.0):
        data = EvaluationData(TASK, "test", ENCODINGS, Data(memory=memory, tokens=300), "cpu")
        found = list(data.batches())
        seen.append(found)
        assert sum(int(batch.graph_mask.sum()) for batch in found) == len(data) == 32
    for first, second in zip(*seen, strict=True):
        assert all(torch.equal(one, two) for one, two in zip(first.tensors(), second.tensors(), strict=True))
    halves = [EvaluationData(TASK, "test", ENCODINGS, Data(tokens=300), "cpu", Share(process, 2)) for process in (0, 1)]
    assert sum(int(batch.graph_mask.sum()) for half in halves for batch in half.batches()) == 32
