import importlib
import multiprocessing
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import magnetite as mt
from magnetite.encodings import cache

from ..conftest import odd_digraphs
from ..kills import after_every_kill


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


def test_missing_shards_are_computed_together(graphs, calls, tmp_path, monkeypatch):
    encoding, store, parts = Counting(str(calls)), tmp_path / "store", list(cache.shards(graphs))
    first = mt.cached(encoding, graphs, store)
    for part in parts[1:-1]:
        (store / f"{cache.key(encoding, part)}.safetensors").unlink()
    before = len(list(calls.iterdir()))
    monkeypatch.setattr(cache, "NODES_TOGETHER", sum(part.num_nodes for part in parts[1:-3]))
    cache.store_together(encoding, parts, store, "cpu")
    assert len(list(calls.iterdir())) == before + 2  # the last two missing ones do not fit into the first call
    second = mt.cached(encoding, graphs, store)
    assert len(list(calls.iterdir())) == before + 2
    assert torch.allclose(first.values, second.values, atol=1e-6)
    assert torch.equal(first.node_ptr, second.node_ptr)


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


@pytest.mark.parametrize("other", ["encoding", "graphs", "code"])
def test_an_entry_is_not_trusted_by_its_name(graphs, tmp_path, monkeypatch, other):
    """A file that was copied to the name of another key, or computed by other code, is computed again."""
    first = mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 3]])
    second = first.reverse() if other == "graphs" else first
    one, two = mt.Laplacian(k=2), mt.Laplacian(k=2, normalised=False) if other == "encoding" else mt.Laplacian(k=2)
    expected = two(second)
    mt.cached(one, first, tmp_path)
    (wrong,) = tmp_path.glob("*.safetensors")
    if other == "code":
        monkeypatch.setattr(cache, "code_of", lambda kind: "another version")
    shutil.copy(wrong, tmp_path / f"{cache.key(two, second)}.safetensors")
    calls, compute = [], type(two).__call__
    monkeypatch.setattr(type(two), "__call__", lambda self, graphs: calls.append(1) or compute(self, graphs))
    assert same(mt.cached(two, second, tmp_path), expected) and calls == [1]
    assert same(mt.cached(two, second, tmp_path), expected) and calls == [1]


def test_code_of_ones_own_is_part_of_the_key(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    path, codes = tmp_path / "own_encoding_module.py", set()
    for value in (1, 2):
        path.write_text(f"class Own:\n    def __call__(self, graphs):\n        return {value}\n")
        sys.modules.pop("own_encoding_module", None)
        importlib.invalidate_caches()
        codes.add(cache.code_of(importlib.import_module("own_encoding_module").Own))
    sys.modules.pop("own_encoding_module", None)
    for value in (1, 2):  # as in a notebook
        typed = {"__name__": "typed"}
        exec(f"class Own:\n    def __call__(self, graphs):\n        return {value}\n", typed)
        codes.add(cache.code_of(typed["Own"]))
    assert len(codes) == 4


def test_an_encoding_without_a_full_repr_is_refused(graphs, tmp_path):
    with pytest.raises(ValueError, match="cannot be cached, because its repr does not show every parameter"):
        mt.cached(lambda graphs: graphs, graphs, tmp_path)


def test_nothing_but_entries_is_left(graphs, tmp_path):
    mt.cached(mt.Laplacian(k=2), graphs, tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".safetensors"}


def test_every_kill_leaves_a_cache_that_gives_the_same(graphs, tmp_path):
    few, folder = graphs[:20], tmp_path / "cache"
    expected = by_shard(mt.Laplacian(k=2), few)
    folder.mkdir()
    for _ in after_every_kill(lambda: mt.cached(mt.Laplacian(k=2), few, folder), folder):
        assert same(mt.cached(mt.Laplacian(k=2), few, folder), expected)
        assert {path.suffix for path in folder.iterdir()} == {".safetensors"}
