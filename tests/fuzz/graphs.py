"""Odd digraphs of 1 to 60 nodes: eigenpairs against the definition, written here once more with NumPy."""

from pathlib import Path

import numpy as np
import torch

import magnetite as mt
from tests.conftest import odd_digraph

CASES = 10_000


def case(random: np.random.Generator, folder: Path) -> None:
    size = int(random.integers(1, 61))
    edges, weights = odd_digraph(random, size)
    weights = weights if random.random() < 0.5 else None
    q, k, normalised = random.uniform(0, 0.5), int(random.integers(1, 20)), bool(random.random() < 0.7)
    graphs = mt.Digraphs.from_edges(edges, size, weights)
    pairs = mt.MagneticLaplacian(k=k, q=q, normalised=normalised, dtype=torch.float64)(graphs)
    kept = min(k, size)
    assert pairs.mask.sum() == kept
    values, vectors = pairs.values[0, :kept].numpy(), pairs.vectors[:, :kept].numpy()
    matrix = defined(edges, size, weights, q, normalised)
    scale = max(np.abs(matrix).sum(0).max(), 1.0)
    assert np.abs(matrix @ vectors - vectors * values).max() < 1e-8 * scale
    assert np.abs(vectors.conj().T @ vectors - np.eye(kept)).max() < 1e-8
    assert np.abs(np.linalg.eigvalsh(matrix)[:kept] - values).max() < 1e-8 * scale


def defined(edges: np.ndarray, size: int, weights: np.ndarray | None, q: float, normalised: bool) -> np.ndarray:
    """The magnetic Laplacian as the paper defines it."""
    adjacency = np.zeros((size, size))
    np.add.at(adjacency, tuple(edges), 1.0 if weights is None else weights)
    total = adjacency + adjacency.T
    both = (adjacency > 0) & (adjacency.T > 0)
    symmetric = np.where(both, total / 2, total)
    degrees = symmetric.sum(1)
    phase = np.exp(2j * np.pi * q * (adjacency - adjacency.T) / np.where(total > 0, total, 1))
    if not normalised:
        return np.diag(degrees) - symmetric * phase
    inverse = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
    return np.eye(size) - inverse[:, None] * symmetric * phase * inverse
