"""Breadth-first search from every node of every graph: with bit sets in small graphs, with a queue in large ones."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from magnetite.kernels.cpu.compile import kernel, part

BITS_UP_TO = 256
"""Largest number of nodes for bit sets: a step is then a few words, whatever the number of edges."""

ONE = np.uint64(1)


@intrinsic
def lowest(_context, _word):
    """The smallest element of a non-empty set: one machine instruction, which numba does not offer."""

    def generate(_target, builder, _signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@part
def adjacency_bits(edges, size, undirected):
    """Row `u` is the set of the out-neighbours of node `u`."""
    rows = np.zeros((size, (size + 63) // 64), np.uint64)
    for edge in range(edges.shape[1]):
        source, target = edges[0, edge], edges[1, edge]
        rows[source, target >> 6] |= ONE << np.uint64(target & 63)
        if undirected:
            rows[target, source >> 6] |= ONE << np.uint64(source & 63)
    return rows


@part
def search_bits(source, rows, seen, front, following, distance):
    """Write the hops from `source` to every node that it reaches; `seen`, `front` and `following` are work arrays."""
    words = rows.shape[1]
    seen[:] = 0
    front[:] = 0
    front[source >> 6] = ONE << np.uint64(source & 63)
    hops, alive = 0, True
    while alive:
        following[:] = 0
        for place in range(words):
            word = front[place]
            seen[place] |= word
            while word:
                node = 64 * place + lowest(word)  # pyright: ignore[reportCallIssue] (numba fills in the context)
                word &= word - ONE
                distance[node] = hops
                for other in range(words):
                    following[other] |= rows[node, other]
        alive = False
        for place in range(words):
            front[place] = following[place] & ~seen[place]
            alive |= front[place] != 0
        hops += 1


@part
def neighbours(edges, size, undirected):
    """Compressed sparse rows: the out-neighbours of node `u` are `found[offset[u] : offset[u + 1]]`."""
    offset = np.zeros(size + 1, np.int64)
    sides = 2 if undirected else 1
    for side in range(sides):
        for edge in range(edges.shape[1]):
            offset[edges[side, edge] + 1] += 1
    for node in range(size):
        offset[node + 1] += offset[node]
    found = np.empty(offset[size], np.int32)
    place = offset[:-1].copy()
    for side in range(sides):
        for edge in range(edges.shape[1]):
            node = edges[side, edge]
            found[place[node]] = edges[1 - side, edge]
            place[node] += 1
    return offset, found


@part
def search_queue(source, offset, found, queue, distance):
    """Write the hops from `source` to every node that it reaches."""
    distance[source] = 0
    queue[0] = source
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        for place in range(offset[node], offset[node + 1]):
            if distance[found[place]] < 0:
                distance[found[place]] = distance[node] + 1
                queue[tail] = found[place]
                tail += 1


@part
def one_graph(edges, undirected, distances):
    """Hops between all node pairs of one graph."""
    size = distances.shape[0]
    if size <= BITS_UP_TO:
        rows = adjacency_bits(edges, size, undirected)
        seen, front, following = np.empty((3, rows.shape[1]), np.uint64)
        for source in range(size):
            search_bits(source, rows, seen, front, following, distances[source])
    else:
        offset, found = neighbours(edges, size, undirected)
        queue = np.empty(size, np.int32)
        for source in range(size):
            search_queue(source, offset, found, queue, distances[source])


@kernel(seconds=4)
def all_pairs(edges, node_pointer, edge_pointer, pair_pointer, undirected, distances):
    """Hops between all node pairs of each graph, −1 if there is no path, one row per source."""
    for graph in range(node_pointer.size - 1):
        size = node_pointer[graph + 1] - node_pointer[graph]
        own = distances[pair_pointer[graph] : pair_pointer[graph + 1]].reshape(size, size)
        own[:] = -1
        one_graph(edges[:, edge_pointer[graph] : edge_pointer[graph + 1]], undirected, own)
