import multiprocessing
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import magnetite as mt
from magnetite.encodings import cache

from ..conftest import odd_digraphs


@dataclass(frozen=True)
class Counting:
    """A Laplacian that leaves one file a call, so that calls can be counted across processes."""

    folder: str
    stop_after: int | None = None

    def __repr__(self) -> str:
        return "Counting()"

    def __call__(self, graphs: mt.Digraphs) -> mt.Eigenpairs:
        calls = Path(self.folder)
        if self.stop_after is not None and len(list(calls.iterdir())) >= self.stop_after:
            raise KeyboardInterrupt
        (calls / cache.key(mt.Laplacian(k=2), graphs)).touch(exist_ok=False)
        return mt.Laplacian(k=2)(graphs)


@pytest.fixture
def graphs(monkeypatch):
    monkeypatch.setattr(cache, "SHARD_NODES", 100)
    return odd_digraphs(seed=4, count=60)


@pytest.fixture
def calls(tmp_path):
    folder = tmp_path / "calls"
    folder.mkdir()
    return folder


def by_shard(encoding, graphs: mt.Digraphs):
    """The encoding without a cache; bases of degenerate eigenspaces may depend on which graphs are solved together."""
    return mt.Eigenpairs.concat(encoding(shard) for shard in cache.shards(graphs))


def same(a: mt.Eigenpairs, b: mt.Eigenpairs) -> bool:
    return all(torch.equal(tensor, b.tensors()[name]) for name, tensor in a.tensors().items())


def test_the_second_time_nothing_is_computed(graphs, calls, tmp_path):
    encoding, store = Counting(str(calls)), tmp_path / "store"
    done = []
    first = mt.cached(encoding, graphs, store, progress=done.append)
    count = len(list(calls.iterdir()))
    assert count > 3
    assert sum(done) == len(graphs)
    second = mt.cached(encoding, graphs, store)
    assert len(list(calls.iterdir())) == count
    assert same(first, second)
    assert same(first, by_shard(mt.Laplacian(k=2), graphs))


def test_an_interrupted_run_continues_where_it_stopped(graphs, calls, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        mt.cached(Counting(str(calls), stop_after=2), graphs, tmp_path / "store")
    result = mt.cached(Counting(str(calls)), graphs, tmp_path / "store")  # touch() fails if a shard is computed twice
    assert same(result, by_shard(mt.Laplacian(k=2), graphs))


@pytest.mark.parametrize(
    "damage", [lambda content: content[: len(content) // 2], lambda content: content[:-1] + b"\xff"]
)
def test_a_damaged_shard_is_rebuilt(graphs, tmp_path, damage):
    first = mt.cached(mt.Laplacian(k=2), graphs, tmp_path)
    shard = sorted(tmp_path.glob("*.safetensors"))[1]
    whole = shard.read_bytes()
    shard.write_bytes(damage(whole))
    assert same(mt.cached(mt.Laplacian(k=2), graphs, tmp_path), first)
    assert shard.read_bytes() == whole


def _work(arguments):
    encoding, graphs, store = arguments
    cache.SHARD_NODES = 100
    mt.cached(encoding, graphs, store)


def test_two_processes_share_the_work(graphs, calls, tmp_path):
    store = tmp_path / "store"
    job = (Counting(str(calls)), graphs, store)
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        pool.map(_work, [job, job])  # touch() fails if a shard is computed twice
    assert len(list(store.glob("*.safetensors"))) == len(list(calls.iterdir()))
    assert same(mt.cached(Counting(str(calls)), graphs, store), by_shard(mt.Laplacian(k=2), graphs))


def test_every_parameter_and_every_byte_is_in_the_key(graphs):
    variants = [
        mt.Laplacian(k=2),
        mt.Laplacian(k=3),
        mt.Laplacian(k=2, normalised=False),
        mt.MagneticLaplacian(k=2),
        mt.MagneticLaplacian(k=2, q=0.25),
        mt.MagneticLaplacian(k=2, convention="pygsd"),
        mt.MagneticLaplacian(k=2, dtype=torch.float64),
        mt.RandomWalk(),
        mt.RandomWalk(restart=0.1),
    ]
    keys = {cache.key(encoding, graphs) for encoding in variants}
    assert len(keys) == len(variants)
    others = [graphs.reverse(), graphs[:-1], graphs.replace(weights=graphs.edge_weight)]
    assert len({cache.key(variants[0], other) for other in [graphs, *others]}) == 4


def test_all_kinds_of_results_come_back(graphs, tmp_path):
    for encoding in (mt.RandomWalk(steps=1), mt.SVD(rank=2), mt.Depth()):
        first, second = mt.cached(encoding, graphs, tmp_path), mt.cached(encoding, graphs, tmp_path)
        assert type(first) is type(second)
        assert torch.equal(first.values, second.values)
        torch.testing.assert_close(first.values, encoding(graphs).values)
