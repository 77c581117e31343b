"""Weights of any size and range: eigenpairs of all conventions and both engines against LAPACK on weights near 1."""

from pathlib import Path

import numpy as np
import torch

import magnetite as mt
from tests.conftest import odd_digraph

CASES = 3_000
CONVENTIONS = ("paper", "networkx", "pygsd", "multi-q")


def case(random: np.random.Generator, folder: Path) -> None:
    large = random.random() < 0.01
    size = int(random.integers(1025, 1100)) if large else int(random.integers(2, 61))
    edges = _sparse(random, size) if large else odd_digraph(random, size)[0]
    weights = _weights(random, edges.shape[1])
    convention, normalised = str(random.choice(CONVENTIONS)), bool(random.random() < 0.3)
    q, k = float(random.choice([0, random.uniform(0, 0.5)])), int(random.integers(1, 9))
    scale = float(np.ldexp(1.0, np.frexp(weights.max(initial=1.0))[1]))
    if convention == "pygsd" and q:
        weights, scale = weights / scale, 1.0  # phases grow with these weights
    graphs = mt.Digraphs.from_edges(edges, size, weights)
    encoding = mt.MagneticLaplacian(k=k, q=q, convention=convention, normalised=normalised, dtype=torch.float64)
    pairs = encoding(graphs)
    kept = min(k, size)
    values, vectors = pairs.values[0, :kept].numpy(), pairs.vectors[:, :kept].numpy()
    values = values if normalised else values / scale
    matrix, norm = defined(edges, size, weights / scale, q, convention, normalised)
    assert np.abs(matrix @ vectors - vectors * values).max() < 1e-9 * norm
    assert np.abs(vectors.conj().T @ vectors - np.eye(kept)).max() < 1e-9
    expected = np.linalg.eigvalsh(matrix)[: kept + 1]
    assert np.abs(expected[:kept] - values).max() < 1e-13 * np.sqrt(size) * norm, (expected, values)
    group = pairs.group[0, :kept].numpy()
    apart = np.diff(values) > 2e-6 * np.maximum(values[1:], 1.0 if normalised else 0.0) + 1e-12 * norm
    lightest = 0.0 if normalised or not weights.size else weights.min() / scale
    apart &= np.diff(values) > 2e-6 * lightest
    assert (np.diff(group)[apart] == 1).all(), (values, group)
    assert (np.diff(group)[np.diff(values) < 1e-14 * norm] == 0).all(), (values, group)


def _sparse(random: np.random.Generator, size: int) -> np.ndarray:
    tree = np.stack([random.integers(0, np.arange(1, size)), np.arange(1, size)])
    return np.concatenate([tree, random.integers(0, size, (2, int(random.integers(0, size // 2))))], axis=1)


def _weights(random: np.random.Generator, count: int) -> np.ndarray:
    kind = random.integers(6)
    weights = random.uniform(0.5, 1.5, count)
    if kind == 1:
        weights = 10 ** random.uniform(0, random.uniform(1, 16), count)
    elif kind == 2 and count:
        weights[random.integers(count)] = 10.0 ** random.integers(4, 13)
    elif kind == 3:
        weights = weights * 10.0 ** random.uniform(-290, -7)
    elif kind == 4:
        weights = weights * 10.0 ** random.uniform(7, 290)
    elif kind == 5:
        weights = weights * random.choice([1.0, 1e-200, 1e-9], count)
    return weights


def defined(
    edges: np.ndarray, size: int, weights: np.ndarray, q: float, convention: str, normalised: bool
) -> tuple[np.ndarray, float]:
    """The Laplacian of a convention as `docs/concepts/conventions.md` defines it, and the scale of its rounding errors.

    A heavy self-loop adds to the degree what its entry takes away: their difference has the rounding errors of both.
    """
    a = np.zeros((size, size))
    np.add.at(a, tuple(edges), weights)
    if convention == "pygsd":
        np.fill_diagonal(a, 0)
    b, total = a.T, a + a.T
    phase = 2j * np.pi * q
    symmetric = total / 2
    if convention == "paper":
        symmetric = np.where((a > 0) & (b > 0), total / 2, total)
        hermitian = symmetric * np.exp(phase * (a - b) / np.where(total > 0, total, 1))
    elif convention == "networkx":
        hermitian = symmetric * np.exp(phase * ((a > 0) * 1.0 - (b > 0)))
    elif convention == "pygsd":
        hermitian = symmetric * np.exp(phase * (a - b))
    else:
        symmetric, hermitian = total, a * np.exp(phase) + b * np.exp(-phase)
    degrees = symmetric.sum(1)
    if not normalised:
        return np.diag(degrees) - hermitian, max(float((degrees + np.abs(hermitian).sum(1)).max()), 1e-300)
    inverse = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
    alone = 0.0 if convention == "networkx" else 1.0
    shifted = inverse[:, None] * hermitian * inverse
    return np.diag(np.where(degrees > 0, 1.0, alone)) - shifted, 1 + float(np.abs(shifted).sum(1).max())
