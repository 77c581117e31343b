"""Random walks on large graphs: for each start node, the landing nodes of the largest probabilities."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from magnetite.linalg.threads import cores, on_cores


@dataclass(frozen=True)
class TopWalks:
    """For each start node, `landing` nodes (−1 where there are fewer), their features, and the probability `lost`."""

    landing: Int[Tensor, "n top"]
    values: Float[Tensor, "n top f"]
    lost: Float[Tensor, "n f"]


def top_walks(
    edges: Int[Tensor, "2 m"],
    size: int,
    weights: Shaped[Tensor, " m"] | None,
    steps: int,
    restart: float | None,
    reverse: bool = True,
    top: int = 64,
    tolerance: float = 1e-3,
    starts: int | None = None,
) -> TopWalks:
    """`[Π(R), R^k, …, R, T, …, T^k, Π(T)]` of the `top` landing nodes of each start node, by sparse steps and pushes.

    Every probability is at most the exact one and falls short of it by no more than `lost` of its start node and
    feature; with `tolerance = 0` and no `restart` all are exact. A core needs memory for a few vectors of n numbers.
    `starts` limits the start nodes to the first so many.

    >>> walks = top_walks(torch.tensor([[0, 1], [1, 2]]), 3, None, steps=1, restart=None, top=2)
    >>> walks.landing.tolist(), walks.values[1].tolist()
    ([[0, 1], [0, 2], [2, 1]], [[1.0, 0.0], [0.0, 1.0]])
    """
    from magnetite.kernels.cpu.walks import encode_nodes

    directions = 2 if reverse else 1
    start, columns, probability = _transitions(edges, size, weights, directions)
    before, after, width = _places(steps, restart is not None, directions)
    count = size if starts is None else min(starts, size)
    landing = np.empty((count, top), np.int64)
    values = np.empty((count, top, width), np.float32)
    lost = np.zeros((count, width))
    step = max(1, min(16384, -(-count // (8 * cores()))))

    def run(first: int) -> None:
        rows = slice(first, min(first + step, count))
        encode_nodes(
            start, columns, probability, first, rows.stop, steps, -1.0 if restart is None else restart, tolerance,
            before, after, landing[rows], values[rows], lost[rows],
        )  # fmt: skip

    on_cores(run, range(0, count, step))
    return TopWalks(torch.from_numpy(landing), torch.from_numpy(values), torch.from_numpy(lost))


def _transitions(
    edges: Tensor, size: int, weights: Tensor | None, directions: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compressed rows of the walk along the edges and, where wanted, of the one against them."""
    from magnetite.kernels.cpu.walks import transition_rows

    source, target = np.ascontiguousarray(edges.long().numpy())
    weight = np.ones(source.size) if weights is None else weights.double().numpy()
    start = np.empty((directions, size + 1), np.int64)
    columns, probability = np.empty((directions, source.size), np.int32), np.empty((directions, source.size))
    for d, ends in enumerate([(source, target), (target, source)][:directions]):
        transition_rows(*ends, weight, size, start[d], columns[d], probability[d])
    return start, columns, probability


def _places(steps: int, ranked: bool, directions: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Where the powers and the PageRank of each direction stand among the features."""
    middle = (steps + ranked) * (directions - 1)
    power = np.arange(steps)
    before = np.stack([middle + power, middle - 1 - power][:directions])
    after = np.array([middle + steps, 0][:directions])
    return before, after, middle + steps + ranked
