"""Breadth-first search from every node of every graph."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def neighbours(edges, size, undirected):
    """Compressed rows: the out-neighbours of node `u` are `found[offset[u] : offset[u + 1]]`."""
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


@njit(cache=True, nogil=True)
def from_source(source, offset, found, queue, distance):
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


@njit(cache=True, nogil=True)
def all_pairs(edges, node_pointer, edge_pointer, pair_pointer, undirected, distances):
    """Hops between all pairs of each graph, −1 where there is no path, rows of sources end to end."""
    for graph in range(node_pointer.size - 1):
        size = node_pointer[graph + 1] - node_pointer[graph]
        own = distances[pair_pointer[graph] : pair_pointer[graph + 1]].reshape(size, size)
        own[:] = -1
        offset, found = neighbours(edges[:, edge_pointer[graph] : edge_pointer[graph + 1]], size, undirected)
        queue = np.empty(size, np.int32)
        for source in range(size):
            from_source(source, offset, found, queue, own[source])
