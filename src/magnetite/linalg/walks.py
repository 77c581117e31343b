"""Random walks along and against the edges: all node pairs of dense batches, or the likeliest ones of large graphs."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from magnetite.linalg.pointers import starts
from magnetite.linalg.scale import divided
from magnetite.linalg.threads import cores, on_cores, spread


def transition(adjacency: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch n n"]:
    """Row-stochastic `T[u, v] = A[u, v] / Σ_v A[u, v]`; a walk stays at a node without out-edges.

    >>> transition(torch.tensor([[0.0, 3.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])).tolist()
    [[0.0, 0.75, 0.25], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    degree = adjacency.sum(-1, keepdim=True)
    identity = torch.eye(adjacency.shape[-1], dtype=adjacency.dtype, device=adjacency.device)
    return torch.where(degree > 0, adjacency / degree, identity)


def pagerank(step: Float[Tensor, "*batch n n"], restart: float) -> Float[Tensor, "*batch n n"]:
    """Personalised PageRank `Π = p (I − (1 − p) T)^{-1}`: row `u` is the distribution of a walk that restarts at `u`.

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
    """`[Π(R), R^k, …, R, T, …, T^k, Π(T)]`: entry `[u, v]` is the probability that a walk from `u` lands at `v`.

    Args:
        adjacency: Weights `A[u, v]` of the edges `u → v`.
        steps: Number of powers k.
        restart: Restart probability of PageRank; None omits `Π`.
        reverse: Include walks against the edges, `R`.

    >>> walk_features(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), steps=1, restart=0.5)[0, 1].tolist()
    [0.0, 0.0, 1.0, 0.5]
    """
    forward = _one_way(transition(adjacency), steps, restart)
    backward = _one_way(transition(adjacency.mT), steps, restart) if reverse else []
    return torch.stack([*reversed(backward), *forward], dim=-1)


GRAPHS_AT_ONCE = 64
"""Number of graphs that one thread encodes at once."""


def pair_walks(
    edges: Int[Tensor, "2 m"],
    edge_ptr: Int[Tensor, " starts"],
    sizes: Int[Tensor, " b"],
    weights: Shaped[Tensor, " m"] | None,
    steps: int,
    restart: float | None,
    reverse: bool,
    dtype: torch.dtype,
) -> Float[Tensor, "pairs f"]:
    """`walk_features` of all node pairs of small graphs, one graph after the other, from their edges, on all cores.

    Args:
        edges: Source and target of each edge, numbered within its graph.
        edge_ptr: First edge of each graph.
        sizes: Number of nodes of each graph.
        weights: Edge weights; all 1 if None.
        steps: Number of powers k.
        restart: Restart probability of PageRank; None omits `Π`.
        reverse: Include walks against the edges.
        dtype: Type of the result.

    >>> options = {"steps": 1, "restart": 0.5, "reverse": True, "dtype": torch.float64}
    >>> pair_walks(torch.tensor([[0], [1]]), torch.tensor([0, 1]), torch.tensor([2]), None, **options)[1].tolist()
    [0.0, 0.0, 1.0, 0.5]
    """
    from magnetite.kernels.cpu.walks import encode_pairs

    heavy, _ = divided(weights, edge_ptr)
    arrays = (
        edges.to(torch.int32).contiguous().numpy(),
        np.ones(edges.shape[1]) if heavy is None else heavy.numpy(),
        edge_ptr.numpy(),
        sizes.numpy(),
    )
    before, after, width = _indices(steps, restart is not None, 2 if reverse else 1)
    pair_ptr = starts(sizes.square()).numpy()
    values = torch.empty((int(pair_ptr[-1]), width), dtype=dtype)
    options = steps, restart or -1.0, before, after

    def run(first: int, last: int) -> None:
        if dtype != torch.float16:
            encode_pairs(*arrays, pair_ptr, first, last, 0, *options, values.numpy())
            return
        rows = slice(int(pair_ptr[first]), int(pair_ptr[last]))  # numba has no half precision
        part = torch.empty((rows.stop - rows.start, width))
        encode_pairs(*arrays, pair_ptr, first, last, rows.start, *options, part.numpy())
        values[rows] = part

    spread(run, len(sizes), GRAPHS_AT_ONCE)
    return values


def step_means(features: Float[Tensor, "*pairs f"], steps: int) -> Float[Tensor, "*pairs f"]:
    """`p_k^{1/k}`, the geometric mean over the steps of a walk, comparable between walks of different lengths.

    Args:
        features: `walk_features` without PageRank, of both directions (`[p_k, …, p_1, p_1, …, p_k]`) or of one.
        steps: Number of powers k.

    >>> step_means(torch.tensor([2.0**-20, 0.0, 0.5, 0.25]), steps=2).tolist()
    [0.0009765625, 0.0, 0.5, 0.5]
    """
    number = torch.arange(1, steps + 1, device=features.device)
    number = torch.cat([number.flip(0), number]) if features.shape[-1] > steps else number
    return features ** number.reciprocal()


def _one_way(step: Tensor, steps: int, restart: float | None) -> list[Tensor]:
    features = powers(step, steps)
    return features if restart is None else [*features, pagerank(step, restart)]


@dataclass(frozen=True)
class TopWalks:
    """`landing` nodes of each start node (−1 if there are fewer), their features, and the `lost` probability."""

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
    """`walk_features` of the `top` likeliest landing nodes of each start node, by sparse steps and pushes.

    Every probability is at most the exact one, and lower by no more than `lost` of its start node and feature; with
    `tolerance = 0` and no `restart` all are exact. A core needs memory for a few vectors of n numbers.

    Args:
        edges: Source and target of each edge.
        size: Number of nodes n.
        weights: Edge weights; all 1 if None.
        steps: Number of powers k.
        restart: Restart probability of PageRank; None omits it.
        reverse: Include walks against the edges.
        top: Number of landing nodes per start node.
        tolerance: Probabilities below this are dropped between steps.
        starts: Number of start nodes; all nodes if None.

    >>> walks = top_walks(torch.tensor([[0, 1], [1, 2]]), 3, None, steps=1, restart=None, top=2)
    >>> walks.landing.tolist(), walks.values[1].tolist()
    ([[0, 1], [0, 2], [2, 1]], [[1.0, 0.0], [0.0, 1.0]])
    """
    count = size if starts is None else min(starts, size)
    walker = _Walker(edges, size, weights, steps, restart, reverse, top, tolerance)
    return walker.walks(0, count)


SUMMED_AT_ONCE = 65_536
"""Number of start nodes whose walks are kept until they are added up."""


def landing_sums(
    edges: Int[Tensor, "2 m"],
    size: int,
    weights: Shaped[Tensor, " m"] | None,
    steps: int,
    restart: float | None,
    reverse: bool = True,
    top: int = 64,
    tolerance: float = 1e-3,
) -> Float[Tensor, "n f"]:
    """`Σ_u p(u→v)` and `Σ_u p(u→v)²` of every feature of `top_walks`, per landing node `v`.

    Args:
        edges: Source and target of each edge.
        size: Number of nodes n.
        weights: Edge weights; all 1 if None.
        steps: Number of powers k.
        restart: Restart probability of PageRank; None omits it.
        reverse: Include walks against the edges.
        top: Number of landing nodes per start node.
        tolerance: Probabilities below this are dropped between steps.

    >>> landing_sums(torch.tensor([[0, 1], [2, 2]]), 3, None, steps=1, restart=None, reverse=False, top=2).tolist()
    [[0.0, 0.0], [0.0, 0.0], [3.0, 3.0]]
    """
    walker = _Walker(edges, size, weights, steps, restart, reverse, top, tolerance)
    sums = torch.zeros(size, 2 * walker.width)
    for first in range(0, size, SUMMED_AT_ONCE):
        walks = walker.walks(first, min(first + SUMMED_AT_ONCE, size))
        found = walks.landing >= 0
        values = walks.values[found]
        sums.index_add_(0, walks.landing[found], torch.cat([values, values.square()], dim=1))
    return sums


class _Walker:
    """Walks of any start nodes of one graph."""

    def __init__(
        self,
        edges: Tensor,
        size: int,
        weights: Tensor | None,
        steps: int,
        restart: float | None,
        reverse: bool,
        top: int,
        tolerance: float,
    ):
        directions = 2 if reverse else 1
        self.rows = _transitions(edges, size, weights, directions)
        self.before, self.after, self.width = _indices(steps, restart is not None, directions)
        self.steps, self.restart, self.top, self.tolerance = steps, restart, top, tolerance

    def walks(self, begin: int, end: int) -> TopWalks:
        """The walks of the start nodes `begin … end − 1`."""
        from magnetite.kernels.cpu.walks import encode_nodes

        count, restart = end - begin, -1.0 if self.restart is None else self.restart
        landing = np.empty((count, self.top), np.int64)
        values = np.empty((count, self.top, self.width), np.float32)
        lost = np.zeros((count, self.width))
        step = max(1, min(16384, -(-count // (8 * cores()))))

        def run(first: int) -> None:
            last = min(first + step, end)
            rows = slice(first - begin, last - begin)
            encode_nodes(
                *self.rows, first, last, self.steps, restart, self.tolerance,
                self.before, self.after, landing[rows], values[rows], lost[rows],
            )  # fmt: skip

        on_cores(run, range(begin, end, step))
        return TopWalks(torch.from_numpy(landing), torch.from_numpy(values), torch.from_numpy(lost))


def _transitions(
    edges: Tensor, size: int, weights: Tensor | None, directions: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compressed sparse rows of the walk along the edges and, with two directions, of the walk against them."""
    from magnetite.kernels.cpu.walks import transition_rows

    source, target = np.ascontiguousarray(edges.long().numpy())
    heavy, _ = divided(weights, torch.tensor([0, source.size]))
    weight = np.ones(source.size) if heavy is None else heavy.numpy()
    start = np.empty((directions, size + 1), np.int64)
    columns, probability = np.empty((directions, source.size), np.int32), np.empty((directions, source.size))
    for d, ends in enumerate([(source, target), (target, source)][:directions]):
        transition_rows(*ends, weight, size, start[d], columns[d], probability[d])
    return start, columns, probability


def _indices(steps: int, ranked: bool, directions: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Indices of the powers and of PageRank of each direction among the features."""
    middle = (steps + ranked) * (directions - 1)
    power = np.arange(steps)
    before = np.stack([middle + power, middle - 1 - power][:directions])
    after = np.array([middle + steps, 0][:directions])
    return before, after, middle + steps + ranked
