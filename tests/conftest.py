"""Shared by all tests: hypothesis settings and unusual random digraphs."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import settings

import magnetite as mt
from magnetite.encodings import solve

settings.register_profile("magnetite", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("magnetite")


def odd_digraph(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A random digraph of one of many kinds, and positive weights for it."""
    kind = rng.integers(9)
    density = rng.choice([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 8.0]) / max(size - 1, 1)
    matrix = rng.random((size, size)) < density
    if kind == 0:  # complete
        matrix[:] = True
    elif kind == 1:  # DAG
        matrix = np.triu(matrix, 1)
    elif kind == 2:  # undirected
        matrix = matrix | matrix.T
    elif kind == 3:  # two components
        matrix[: size // 2, size // 2 :] = matrix[size // 2 :, : size // 2] = False
    elif kind == 4:  # isolated nodes
        lonely = rng.random(size) < 0.4
        matrix[lonely] = matrix[:, lonely] = False
    elif kind == 5:  # tree, path or circle
        matrix[:] = False
        parent = [(rng.integers(v), v) for v in range(1, size)]
        path = [(v, (v + 1) % size) for v in range(size - int(rng.integers(2)))]
        for u, v in parent if rng.random() < 0.5 else path:
            matrix[u, v] = True
    if kind < 6:
        np.fill_diagonal(matrix, False)
    edges = np.stack(matrix.nonzero())
    if kind == 8 and edges.shape[1]:  # repeated edges
        edges = edges[:, rng.integers(edges.shape[1], size=2 * edges.shape[1])]
    return edges, rng.choice([0.25, 1.0, 3.5], size=edges.shape[1]) * rng.uniform(0.5, 1.5)


def odd_digraphs(seed: int, count: int, low: int = 1, high: int = 30, weighted: bool = False) -> mt.Digraphs:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(low, high + 1, size=count).tolist()
    drawn = [odd_digraph(rng, size) for size in sizes]
    weights = [weight for _, weight in drawn] if weighted else None
    return mt.Digraphs.from_edges([edges for edges, _ in drawn], sizes, weights)


@pytest.fixture
def dense_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch the CPU's engine off: small graphs go to LAPACK's drivers in dense batches."""
    monkeypatch.setattr(solve, "ENGINE_UP_TO", 0)


@pytest.fixture(scope="session")
def odd() -> mt.Digraphs:
    """Two hundred odd graphs, unweighted."""
    return odd_digraphs(seed=1, count=200)


@pytest.fixture(scope="session")
def odd_weighted() -> mt.Digraphs:
    """Two hundred odd graphs with weights."""
    return odd_digraphs(seed=2, count=200, weighted=True)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """For models that are too small for several threads, which would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
