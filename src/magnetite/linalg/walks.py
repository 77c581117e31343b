"""Directional random walks: transition matrices, their powers, and personalised PageRank, for dense batches."""

import torch
from jaxtyping import Float
from torch import Tensor


def transition(adjacency: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch n n"]:
    """Row-stochastic `T[u, v] = A[u, v] / Σ_v A[u, v]`; a node without out-edges stays where it is.

    >>> transition(torch.tensor([[0.0, 3.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])).tolist()
    [[0.0, 0.75, 0.25], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    degree = adjacency.sum(-1, keepdim=True)
    identity = torch.eye(adjacency.shape[-1], dtype=adjacency.dtype, device=adjacency.device)
    return torch.where(degree > 0, adjacency / degree, identity)


def pagerank(step: Float[Tensor, "*batch n n"], restart: float) -> Float[Tensor, "*batch n n"]:
    """Personalised PageRank `Π = p (I − (1 − p) T)^{-1}`: row `u` is where a walk that restarts at `u` is found.

    >>> pagerank(torch.tensor([[0.0, 1.0], [0.0, 1.0]]), restart=0.5).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    identity = torch.eye(step.shape[-1], dtype=step.dtype, device=step.device)
    return torch.linalg.solve(identity - (1 - restart) * step, (restart * identity).expand_as(step))


def powers(step: Float[Tensor, "*batch n n"], count: int) -> list[Float[Tensor, "*batch n n"]]:
    """`T, T², …, T^count`."""
    result = [step]
    for _ in range(count - 1):
        result.append(result[-1] @ step)
    return result


def walk_features(
    adjacency: Float[Tensor, "*batch n n"], steps: int, restart: float | None = 0.05, reverse: bool = True
) -> Float[Tensor, "*batch n n f"]:
    """`[Π(R), R^k, …, R, T, …, T^k, Π(T)]`: entry `[u, v]` is the probability of landing at `v` when starting at `u`.

    `T` walks along the edges, `R` against them. `restart=None` leaves out `Π`, `reverse=False` leaves out `R`.

    >>> walk_features(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), steps=1, restart=0.5)[0, 1].tolist()
    [0.0, 0.0, 1.0, 0.5]
    """
    forward = _one_way(transition(adjacency), steps, restart)
    backward = _one_way(transition(adjacency.mT), steps, restart) if reverse else []
    return torch.stack([*reversed(backward), *forward], dim=-1)


def step_means(features: Float[Tensor, "*pairs f"], steps: int) -> Float[Tensor, "*pairs f"]:
    """`p_k^{1/k}`, the geometric mean of a walk's steps: of the size of one step's probability, however long the walk.

    `features` are `walk_features` of both directions without PageRank, `[p_k, …, p_1, p_1, …, p_k]`, or of one.

    >>> step_means(torch.tensor([2.0**-20, 0.0, 0.5, 0.25]), steps=2).tolist()
    [0.0009765625, 0.0, 0.5, 0.5]
    """
    number = torch.arange(1, steps + 1, device=features.device)
    number = torch.cat([number.flip(0), number]) if features.shape[-1] > steps else number
    return features ** number.reciprocal()


def _one_way(step: Tensor, steps: int, restart: float | None) -> list[Tensor]:
    features = powers(step, steps)
    return features if restart is None else [*features, pagerank(step, restart)]
