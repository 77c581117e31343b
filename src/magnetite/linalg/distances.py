"""Distances in hops between all node pairs of many graphs; edge weights are ignored."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Int, Int16
from torch import Tensor

from magnetite.linalg.pointers import starts
from magnetite.linalg.threads import spread

SPAN = 256
"""Number of graphs per task of a thread."""

DENSE_ENTRIES = 2**26
"""Largest number of entries of the adjacency matrices processed at once on an accelerator."""

LARGEST = 32_767
"""Largest number of nodes: distances are 16-bit integers."""


def hop_distances(
    edges: Int[Tensor, "2 edges"],
    node_ptr: Int[Tensor, " starts"],
    edge_ptr: Int[Tensor, " starts"],
    undirected: bool = False,
) -> Int16[Tensor, " pairs"]:
    """Lengths of shortest directed paths of packed graphs, in hops; −1 where there is none.

    `d(u, v) = min {t : (A^t)[u, v] > 0}`. The result contains the matrices of all graphs one after the other, row by
    row. On the CPU by breadth-first search, elsewhere by products of boolean matrices.

    Args:
        edges: Source and target of each edge, as node numbers within the graph.
        node_ptr: Where the nodes of each graph begin, and their total.
        edge_ptr: Where the edges of each graph begin, and their total.
        undirected: Ignore directions: `A + Aᵀ` instead of `A`.

    >>> pointer = torch.tensor([0, 3]), torch.tensor([0, 2])
    >>> hop_distances(torch.tensor([[0, 1], [1, 2]]), *pointer).view(3, 3).tolist()
    [[0, 1, 2], [-1, 0, 1], [-1, -1, 0]]
    """
    sizes = node_ptr.diff()
    if sizes.numel() and int(sizes.max()) > LARGEST:
        raise ValueError(f"all-pairs distances need graphs of at most {LARGEST} nodes, got {int(sizes.max())}")
    if node_ptr.device.type == "cpu":
        return _searched(edges, node_ptr, edge_ptr, undirected)
    parts = []
    for start, stop in dense_spans(sizes, DENSE_ENTRIES):
        begin, end = edge_ptr[[start, stop]].tolist()
        adjacency = dense(edges[:, begin:end], edge_ptr[start : stop + 1] - begin, int(sizes[start:stop].max()))
        if undirected:
            adjacency = adjacency | adjacency.mT
        real = torch.arange(adjacency.shape[-1], device=sizes.device) < sizes[start:stop, None]
        parts.append(matrix_distances(adjacency)[real[:, :, None] & real[:, None, :]])
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.int16, device=sizes.device)


def matrix_distances(adjacency: Bool[Tensor, "g n n"]) -> Int16[Tensor, "g n n"]:
    """`d(u, v)` of a dense batch: nodes that `R_t = (R_{t−1} A > 0)` reaches first at `t` are at distance `t`.

    >>> matrix_distances(torch.tensor([[[False, True], [False, False]]])).tolist()
    [[[0, 1], [-1, 0]]]
    """
    precision = torch.float16 if adjacency.is_cuda else torch.float32  # sums of ones stay positive in either
    step = adjacency.to(precision)
    reached = torch.eye(adjacency.shape[-1], dtype=torch.bool, device=adjacency.device).expand_as(adjacency)
    distances = reached.to(torch.int16) - 1
    frontier, hops = reached, 0
    while bool(frontier.any()):
        distances = distances.masked_fill(frontier, hops)
        frontier = (frontier.to(precision) @ step > 0) & ~reached
        reached = reached | frontier
        hops += 1
    return distances


def dense(edges: Int[Tensor, "2 edges"], edge_ptr: Int[Tensor, " starts"], size: int) -> Bool[Tensor, "g n n"]:
    """Adjacency matrices of packed graphs, padded to `size`.

    >>> dense(torch.tensor([[0], [1]]), torch.tensor([0, 1]), 2).tolist()
    [[[False, True], [False, False]]]
    """
    count = edge_ptr.numel() - 1
    graph = torch.repeat_interleave(torch.arange(count, device=edges.device), edge_ptr.diff())
    adjacency = torch.zeros((count, size, size), dtype=torch.bool, device=edges.device)
    adjacency[graph, edges[0].long(), edges[1].long()] = True
    return adjacency


def dense_spans(sizes: Int[Tensor, " graphs"], entries: int) -> Iterator[tuple[int, int]]:
    """Ranges of graphs whose matrices, padded to the largest, have at most `entries` entries in total.

    >>> list(dense_spans(torch.tensor([3, 2, 3]), entries=18))
    [(0, 2), (2, 3)]
    """
    if sizes.numel():
        step = max(1, entries // max(int(sizes.max()), 1) ** 2)
        for start in range(0, sizes.numel(), step):
            yield start, min(start + step, sizes.numel())


def _searched(edges: Tensor, node_ptr: Tensor, edge_ptr: Tensor, undirected: bool) -> Int16[Tensor, " pairs"]:
    from magnetite.kernels.cpu.distances import all_pairs  # here, so that numba is loaded only when it is used

    pair_ptr = starts(node_ptr.diff() ** 2)
    distances = torch.empty(int(pair_ptr[-1]), dtype=torch.int16)
    nodes, links, pairs = node_ptr.numpy(), edge_ptr.numpy(), pair_ptr.numpy()
    ends = edges.to(torch.int32).contiguous().numpy()  # one type, so that the kernel is compiled once

    def work(start: int, stop: int) -> None:
        part = slice(start, stop + 1)
        all_pairs(ends, nodes[part], links[part], pairs[part], undirected, distances.numpy())

    spread(work, node_ptr.numel() - 1, SPAN)
    return distances
