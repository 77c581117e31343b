import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import islice
from typing import Any
from unittest import mock

import pytest
import torch

import magnetite as mt
from magnetite.batching.buckets import grow
from magnetite.tasks import Distances, Sorting
from magnetite.training import data as data_module
from magnetite.training.capture import CAPTURE_LOCK
from magnetite.training.config import Data
from magnetite.training.data import EvaluationData, Pool, Share, TrainingData, _ahead, _stored

TASK = Distances(target="reachability", train=50, per_size=4)
ENCODINGS = {"eigenpairs": mt.MagneticLaplacian(k=3), "pairs": mt.RandomWalk(steps=1)}


def batches(data: TrainingData, step: int, count: int) -> list[list[list[torch.Tensor]]]:
    """The micro-batches of some steps, each as all of its tensors."""
    shapes = data.shapes(epochs=2)
    found = []
    for block in data.blocks(step):
        shapes = grow(shapes, block.extent)
        for ids in block.ids:
            found.append([batch.tensors() for batch in block.batches(ids, shapes)])
            if len(found) == count:
                return found
    raise AssertionError("blocks ended")


def assert_same(first: list, second: list) -> None:
    assert len(first) == len(second)
    for one, two in zip(first, second, strict=True):
        for batch, other in zip(one, two, strict=True):
            for tensor, twin in zip(batch, other, strict=True):
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
    found, expected = (
        Pool.encode(TASK.examples("train", device), ENCODINGS).encodings["pairs"] for device in ("cuda", "cpu")
    )
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
        with CAPTURE_LOCK:
            first = thread.submit(next, blocks)
            assert not made.wait(0.2)
        assert first.result(timeout=10) == "block"
        assert made.is_set()
        thread.submit(blocks.close).result(timeout=10)
    assert not CAPTURE_LOCK.locked()


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


def sizes_of(block, data: TrainingData) -> list[int]:
    return [size for batch in block.batches(block.ids[0], data.shapes(1)) for size in batch.sizes.tolist()]


def test_processes_share_a_batch():
    whole = make("resident")
    block = next(whole.blocks())
    for mode in ("resident", "pooled"):
        for process in (0, 1):
            data = make(mode, Share(process, 2))
            mine = next(data.blocks())
            assert mine.weights[0] == block.weights[0]
            assert sizes_of(mine, data) == sizes_of(block, whole)[process::2]


def test_weights_are_those_of_a_whole_batch():
    data = make("resident")
    block = next(data.blocks())
    for step in range(len(block)):
        pairs = 0
        for batch in block.batches(block.ids[step], data.shapes(1)):
            pairs += int((batch.sizes * (batch.sizes - 1)).sum())
        assert float(block.weights[step]) == pairs


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("mode", ["resident", "pooled"])
def test_all_query_pairs_of_every_epoch_fit(mode, processes):
    task, epochs = Distances("directed-distance", acyclic=True, train=50), 3
    every = [make(mode, Share(process, processes), task=task) for process in range(processes)]
    shapes = every[0].shapes(epochs)
    assert all(data.shapes(epochs) == shapes for data in every)
    step = 0
    for blocks in zip(*(data.blocks() for data in every), strict=True):
        assert grow(shapes, blocks[0].extent) == shapes
        for row in range(len(blocks[0])):
            batches = [block.batches(block.ids[row], shapes) for block in blocks]
            found = [[batch.query.mask.numel() for batch in own] for own in batches]
            assert found == [[shape.queries for shape in shapes]] * processes
            queries = sum(int(batch.query.mask.sum()) for own in batches for batch in own)
            assert queries == blocks[0].weights[row]
        step += len(blocks[0])
        if step == epochs * every[0].steps:
            return


def test_shapes_grow_with_fresh_query_pairs():
    data = make("fresh", task=Distances("directed-distance", train=50))
    shapes = data.shapes(epochs=1)
    for block in islice(data.blocks(), 12):
        grown = grow(shapes, block.extent)
        assert all(new.queries >= old.queries for new, old in zip(grown, shapes, strict=True))
        shapes = grown
        for ids, weight in zip(block.ids, block.weights, strict=True):
            assert sum(int(batch.query.mask.sum()) for batch in block.batches(ids, shapes)) == weight


def test_an_evaluation_sees_every_graph_whether_encodings_fit_or_not():
    seen = []
    for memory in (1.0, 0.0):
        data = EvaluationData(TASK.examples("test"), ENCODINGS, Data(memory=memory, tokens=300))
        found = list(data.batches())
        seen.append(found)
        assert sum(len(batch) for batch in found) == len(data) == 32
    for first, second in zip(*seen, strict=True):
        assert all(torch.equal(one, two) for one, two in zip(first.tensors(), second.tensors(), strict=True))
    halves = [
        EvaluationData(TASK.examples("test"), ENCODINGS, Data(tokens=300), Share(process, 2)) for process in (0, 1)
    ]
    assert sum(len(batch) for half in halves for batch in half.batches()) == 32


EIGENPAIRS = {"eigenpairs": mt.MagneticLaplacian(k=3)}


def test_encodings_are_read_from_a_cache(tmp_path, monkeypatch):
    def blocks(config: Data) -> list[Any]:
        data = TrainingData(TASK, EIGENPAIRS, config, batch=10, seed=0, device="cpu")
        every = next(data.blocks()).pool, EvaluationData(TASK.examples("test"), EIGENPAIRS, config)._kept
        return [pool.encodings["eigenpairs"].vectors for pool in every if pool is not None]

    computed = blocks(Data(mode="resident"))
    assert len(computed) == 2
    assert not list(tmp_path.iterdir())
    written = blocks(Data(mode="resident", cache=str(tmp_path)))
    assert list(tmp_path.glob("*.safetensors"))

    def refuse(self: Any, graphs: mt.Digraphs) -> None:
        raise AssertionError("encoded again")

    monkeypatch.setattr(TrainingData, "_fits", lambda *_: True)  # which encodes a sample
    monkeypatch.setattr(mt.MagneticLaplacian, "__call__", refuse)
    train = TrainingData(TASK, EIGENPAIRS, Data(cache=str(tmp_path)), batch=10, seed=0, device="cpu")
    read = [next(train.blocks()).pool.encodings["eigenpairs"].vectors, written[1]]  # type: ignore[attr-defined]
    for one, two, three in zip(computed, written, read, strict=True):
        assert torch.equal(one, two)
        assert torch.equal(one, three)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Says how much memory is free, and what a control group may have, all in bytes."""
    monkeypatch.setattr(data_module, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(data_module, "CONTROL_GROUP", tmp_path)

    def says(free: int | None = None, most: str | None = None, used: int = 0, files: int = 0) -> None:
        if free is not None:
            (tmp_path / "meminfo").write_text(f"MemTotal:  {2**40} kB\nMemAvailable:  {free // 1024} kB\nHuge:  0\n")
        if most is not None:
            (tmp_path / "memory.max").write_text(f"{most}\n")
            (tmp_path / "memory.current").write_text(f"{used}\n")
            (tmp_path / "memory.stat").write_text(f"anon 1\ninactive_file {files}\n")

    return says


@pytest.mark.gpu
def test_encodings_are_kept_where_the_gpu_has_room(monkeypatch):
    for free, mode in ((2**40, "resident"), (0, "pooled")):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _, free=free: (free, 2**40))
        assert TrainingData(TASK, EIGENPAIRS, Data(), 8, 0, "cuda").mode == mode


@pytest.mark.parametrize(("free", "mode"), [(2**36, "resident"), (1024, "pooled"), (None, "resident")])
def test_encodings_are_kept_where_the_machine_has_room(machine, free, mode):
    machine(free)
    assert TrainingData(TASK, EIGENPAIRS, Data(), 8, 0, "cpu").mode == mode


def test_processes_share_a_machine(machine):
    need = TrainingData(TASK, EIGENPAIRS, Data(mode="resident"), 8, 0, "cpu")
    machine(int(6 * next(need.blocks(0)).pool.bytes))
    modes = [TrainingData(TASK, EIGENPAIRS, Data(), 8, 0, "cpu", Share(0, count)).mode for count in (1, 2)]
    assert modes == ["resident", "pooled"]


def test_a_job_may_have_less_than_the_machine(machine):
    assert data_module.room(torch.device("cpu")) == float("inf")
    machine(2**30)
    assert data_module.room(torch.device("cpu")) == 2**28
    machine(most="max")
    assert data_module.room(torch.device("cpu")) == 2**28
    machine(most=str(2**29), used=2**28, files=2**27)
    assert data_module.room(torch.device("cpu")) == (2**28 + 2**27) / 4


def test_a_single_graph_is_encoded_once():
    count = []

    class Counted:
        def __call__(self, graphs):
            count.append(len(graphs))
            return mt.Laplacian(k=2)(graphs)

    graph = mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 3]])
    graph = graph.replace(node_features={"y": torch.tensor([0.0, 1.0, 2.0, 3.0])})
    task = mt.tasks.Supervised(graph, level="node")
    data = TrainingData(task, {"laplacian": Counted()}, Data(), batch=1, seed=0, device="cpu")
    next(data.blocks())
    list(EvaluationData(task.examples("valid"), {"laplacian": Counted()}, Data()).batches())
    assert count == [1, 1]
