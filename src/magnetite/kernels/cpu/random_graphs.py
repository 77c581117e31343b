"""Erdős–Rényi graphs and their largest weak components, one graph after the other."""

import numpy as np

from magnetite.kernels.cpu.compile import kernel, part
from magnetite.kernels.cpu.random import mix


@part
def find(parent, node):
    """The root of a node's tree; halves the path to it."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@part
def generate_edges(pair_key, rank, size, threshold, acyclic, self_loops, edges):
    """Edges `u → v` whose random number is below the threshold, by source and target; returns their number."""
    count = 0
    for source in range(size):
        for target in range(size):
            number = mix(pair_key, source * size + target) >> np.uint64(11)
            allowed = (self_loops or source != target) and not (acyclic and rank[source] >= rank[target])
            if number < threshold and allowed:
                edges[0, count] = source
                edges[1, count] = target
                count += 1
    return count


@part
def largest_component(edges, size, numbers):
    """Number the nodes of the largest weak component (the first if equal) from 0, others −1; return its size."""
    parent = np.arange(size)
    for edge in range(edges.shape[1]):
        one, two = find(parent, edges[0, edge]), find(parent, edges[1, edge])
        parent[max(one, two)] = min(one, two)
    sizes = np.zeros(size, np.int64)
    for node in range(size):
        sizes[find(parent, node)] += 1
    largest = np.argmax(sizes)
    count = 0
    for node in range(size):
        numbers[node] = -1
        if find(parent, node) == largest:
            numbers[node] = count
            count += 1
    return count


@kernel(seconds=4)
def sample(keys, sizes, thresholds, acyclic, self_loops):
    """The graphs of these keys: their numbers of nodes and edges, and the edges of all graphs."""
    most = sizes.max() if sizes.size else 0
    numbers = np.empty(most, np.int64)
    rank = np.empty(most, np.uint64)
    node_counts = np.empty(keys.size, np.int64)
    edge_counts = np.empty(keys.size, np.int64)
    edges = np.empty((2, max(most * most, 4 * sizes.sum())), np.int32)
    total = 0
    for graph in range(keys.size):
        size = sizes[graph]
        if edges.shape[1] < total + size * size:
            larger = np.empty((2, 2 * edges.shape[1] + size * size), np.int32)
            larger[:, :total] = edges[:, :total]
            edges = larger
        for node in range(size):
            rank[node] = mix(mix(keys[graph], 3), node) >> np.uint64(1)
        pair_key, room = mix(keys[graph], 2), edges[:, total:]
        generated = generate_edges(pair_key, rank, size, thresholds[graph], acyclic, self_loops, room)
        node_counts[graph] = largest_component(edges[:, total : total + generated], size, numbers)
        kept = total
        for edge in range(total, total + generated):
            if numbers[edges[0, edge]] >= 0:
                edges[0, kept], edges[1, kept] = numbers[edges[0, edge]], numbers[edges[1, edge]]
                kept += 1
        edge_counts[graph] = kept - total
        total = kept
    return node_counts, edge_counts, edges[:, :total].copy()
