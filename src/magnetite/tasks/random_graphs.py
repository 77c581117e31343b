"""Erdős–Rényi digraphs and DAGs, drawn by counters: the same on the CPU and on an accelerator."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from magnetite.graphs import Digraphs
from magnetite.linalg.counter import mix, shift_right, signed
from magnetite.linalg.distances import dense_spans
from magnetite.linalg.threads import spread
from magnetite.packed import starts

SPAN = 1024
"""Graphs that a thread draws at once."""

DENSE_ENTRIES = 2**23
"""Pairs of nodes whose random numbers are held at once on an accelerator, some 50 bytes each."""

# What the random numbers of a graph are for: draw `c` of its key.
SIZE, DEGREE, PAIRS, RANKS = range(4)


@dataclass(frozen=True)
class Drawn:
    """What is drawn of a graph first: the key of its other numbers, its nodes, and its edges' probability · 2^53."""

    keys: Int[Tensor, " graphs"]
    sizes: Int[Tensor, " graphs"]
    thresholds: Int[Tensor, " graphs"]


def begin(key: int, numbers: Int[Tensor, " graphs"], sizes: Tensor, degrees: Sequence[float]) -> Drawn:
    """Draw size and mean degree of graphs `numbers` of a stream; `p = degree / (n − 1)`.

    `sizes` has one row a graph, from which its size is drawn.

    >>> begin(0, torch.arange(3), sizes=torch.tensor([[16], [17], [18]]), degrees=[1.5]).sizes.tolist()
    [16, 17, 18]
    """
    device = numbers.device
    keys = mix(torch.tensor(signed(key), device=device), numbers)
    chosen = sizes.gather(1, _below(keys, SIZE, sizes.shape[1])[:, None]).squeeze(1)
    degree = torch.tensor(degrees, dtype=torch.float64, device=device)[_below(keys, DEGREE, len(degrees))]
    return Drawn(keys, chosen, (degree / (chosen - 1) * 2**53).long())


def finish(drawn: Drawn, acyclic: bool) -> Digraphs:
    """Draw the edges, and keep the largest weak component.

    An edge `u → v` exists with probability `p`; in an acyclic graph only where `u` stands before `v` in a random order,
    which is the upper triangle, permuted. Among components of one size the one with the lowest node is kept.

    >>> drawn = begin(0, torch.arange(3), sizes=torch.tensor([[16, 17]]).expand(3, -1), degrees=[1.5])
    >>> finish(drawn, acyclic=True)
    Digraphs(3 graphs, ...)
    """
    if drawn.keys.device.type == "cpu":
        return _finish_on_cpu(drawn, acyclic)
    parts = [_finish_dense(drawn, acyclic, slice(*span)) for span in dense_spans(drawn.sizes, DENSE_ENTRIES)]
    return Digraphs.concat(parts)


def _below(keys: Int[Tensor, " graphs"], use: int, bound: int) -> Int[Tensor, " graphs"]:
    return (shift_right(mix(keys, torch.tensor(use, device=keys.device)), 32) * bound) >> 32


def _finish_on_cpu(drawn: Drawn, acyclic: bool) -> Digraphs:
    from magnetite.kernels.cpu.random_graphs import sample  # here, so that numba is loaded only when it is used

    keys, thresholds = (tensor.numpy().view(np.uint64) for tensor in (drawn.keys, drawn.thresholds))
    sizes = drawn.sizes.numpy()

    def work(start: int, stop: int) -> tuple[np.ndarray, ...]:
        return sample(keys[start:stop], sizes[start:stop], thresholds[start:stop], acyclic)

    nodes, edge_counts, edges = zip(*spread(work, sizes.size, SPAN), strict=True)
    return Digraphs.from_tensors(
        {
            "node_ptr": starts(torch.from_numpy(np.concatenate(nodes))),
            "edge_ptr": starts(torch.from_numpy(np.concatenate(edge_counts))),
            "edges": torch.from_numpy(np.concatenate(edges, axis=1)),
        }
    )


def _finish_dense(drawn: Drawn, acyclic: bool, span: slice) -> Digraphs:
    """The same graphs by tensor operations, for accelerators."""
    keys, sizes, thresholds = drawn.keys[span], drawn.sizes[span], drawn.thresholds[span]
    adjacency = _dense_edges(keys, sizes, thresholds, acyclic)
    kept = _largest_component(adjacency, sizes)
    adjacency = adjacency & kept[:, :, None] & kept[:, None, :]
    number = kept.cumsum(1, dtype=torch.int32) - 1
    graph, source, target = adjacency.nonzero(as_tuple=True)
    return Digraphs.from_tensors(
        {
            "node_ptr": starts(kept.sum(1)),
            "edge_ptr": starts(adjacency.sum((1, 2))),
            "edges": torch.stack([number[graph, source], number[graph, target]]),
        }
    )


def _dense_edges(keys: Tensor, sizes: Tensor, thresholds: Tensor, acyclic: bool) -> Bool[Tensor, "g n n"]:
    nodes = torch.arange(int(sizes.max()), device=keys.device)
    source, target = nodes[:, None], nodes[None, :]
    pair = source * sizes[:, None, None] + target
    use = torch.tensor([PAIRS, RANKS], device=keys.device)
    pair_key, rank_key = mix(keys[:, None], use).unbind(1)
    present = shift_right(mix(pair_key[:, None, None], pair), 11) < thresholds[:, None, None]
    inside = nodes < sizes[:, None]
    present &= inside[:, :, None] & inside[:, None, :] & (source != target)
    if acyclic:
        rank = shift_right(mix(rank_key[:, None], nodes), 1)
        present &= rank[:, :, None] < rank[:, None, :]
    return present


def _largest_component(adjacency: Bool[Tensor, "g n n"], sizes: Int[Tensor, " g"]) -> Bool[Tensor, "g n"]:
    """Members of the largest weak component: the closure of `I + A + Aᵀ` by squaring, then its fullest row."""
    count = adjacency.shape[-1]
    precision = torch.float16 if adjacency.is_cuda else torch.float32
    joined = adjacency | adjacency.mT | torch.eye(count, dtype=torch.bool, device=adjacency.device)
    for _ in range((count - 1).bit_length()):
        part = joined.to(precision)
        joined = part @ part > 0
    nodes = torch.arange(count, device=adjacency.device)
    # The lowest node decides between equals: argmax itself promises no order among them.
    score = torch.where(nodes < sizes[:, None], joined.sum(2) * count + (count - 1 - nodes), -1)
    return joined[torch.arange(len(sizes), device=sizes.device), score.argmax(1)]
