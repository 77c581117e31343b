"""Neighbourhoods of some nodes of a large graph, sampled along and against the edges."""

import numpy as np

from magnetite.kernels.cpu.compile import kernel, part
from magnetite.kernels.cpu.random import below, mix


@part
def choose(key, node, count, most, chosen):
    """`most` different numbers below `count` by Floyd's method, in `chosen`; all of them if there are no more."""
    if count <= most:
        for i in range(count):
            chosen[i] = i
        return count
    for i in range(most):
        last = count - most + i
        pick = below(mix(mix(key, node), i) >> np.uint64(32), last + 1)
        for j in range(i):
            if chosen[j] == pick:
                pick = last
                break
        chosen[i] = pick
    return most


@kernel(seconds=3)
def sample_neighbours(out_start, out_node, in_start, in_node, seeds, fanouts, key, number):
    """Number the seeds and the nodes sampled around them in `number`, which is −1 elsewhere; return these nodes.

    In each hop, every node reached in the hop before adds up to `fanouts[hop]` successors and as many predecessors.
    """
    nodes = np.empty(max(2 * seeds.size, 16), np.int64)
    total = 0
    for seed in seeds:
        if number[seed] < 0:
            number[seed] = total
            nodes[total] = seed
            total += 1
    begin = 0
    chosen = np.empty(max(fanouts.max(), 1) if fanouts.size else 1, np.int64)
    for hop in range(fanouts.size):
        end = total
        for place in range(begin, end):
            node = nodes[place]
            for direction in range(2):
                first = out_start[node] if direction == 0 else in_start[node]
                last = out_start[node + 1] if direction == 0 else in_start[node + 1]
                taken = choose(mix(key, 2 * hop + direction), node, last - first, fanouts[hop], chosen)
                for i in range(taken):
                    other = out_node[first + chosen[i]] if direction == 0 else in_node[first + chosen[i]]
                    if number[other] < 0:
                        if total == nodes.size:
                            larger = np.empty(2 * total, np.int64)
                            larger[:total] = nodes
                            nodes = larger
                        number[other] = total
                        nodes[total] = other
                        total += 1
        begin = end
    return nodes[:total].copy()


@kernel(seconds=1)
def edges_between(out_start, out_node, nodes, number):
    """Places, in the rows of successors, of all edges between these nodes, which `number` numbers; −1 elsewhere."""
    count = 0
    for node in nodes:
        for place in range(out_start[node], out_start[node + 1]):
            count += number[out_node[place]] >= 0
    places = np.empty(count, np.int64)
    count = 0
    for node in nodes:
        for place in range(out_start[node], out_start[node + 1]):
            if number[out_node[place]] >= 0:
                places[count] = place
                count += 1
    return places
