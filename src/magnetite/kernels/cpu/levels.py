"""Levels of acyclic graphs, and the nodes within some steps of each node."""

import numpy as np

from magnetite.kernels.cpu.compile import kernel


@kernel(seconds=1)
def sort_by(keys, start, order):
    """Set `order` to the numbers of the keys, sorted and stable, and `start` to where each key begins; it has zeros."""
    for key in keys:
        start[key + 1] += 1
    for key in range(len(start) - 1):
        start[key + 1] += start[key]
    following = start.copy()
    for number in range(len(keys)):
        order[following[keys[number]]] = number
        following[keys[number]] += 1


@kernel(seconds=1)
def longest_paths(start, order, target, level):
    """Set `level` to the length of the longest path to each node; whether there is one, since the graph has no cycle.

    The edges from each node are given by `start` and `order`.
    """
    n = len(level)
    queue, before = np.empty(n, np.int64), np.zeros(n, np.int64)
    for node in target:
        before[node] += 1
    first, last = 0, 0
    for node in range(n):
        level[node] = 0
        if before[node] == 0:
            queue[last] = node
            last += 1
    while first < last:
        node = queue[first]
        first += 1
        for place in range(start[node], start[node + 1]):
            other = target[order[place]]
            level[other] = max(level[other], level[node] + 1)
            before[other] -= 1
            if before[other] == 0:
                queue[last] = other
                last += 1
    return last == n


@kernel(seconds=2)
def nearest_relatives(out_start, out_node, in_start, in_node, reach, landing, values):
    """The nodes within `reach` steps along and against the edges, nearest first, and the inverse of their distances.

    Along each direction by breadth-first search; a node that is found both ways has both numbers. The node itself
    comes first.
    """
    n, top = landing.shape
    seen, place_of = np.full((2, n), -1, np.int64), np.full(n, -1, np.int64)
    queue = np.empty((2, n), np.int64)
    for node in range(n):
        landing[node, 0], values[node, 0, 0], values[node, 0, 1] = node, 0.0, 0.0
        count = 1
        place_of[node] = 0
        begin, end, total = np.zeros(2, np.int64), np.ones(2, np.int64), np.ones(2, np.int64)
        for direction in range(2):
            queue[direction, 0] = node
            seen[direction, node] = node
        for step in range(1, reach + 1):
            for direction in range(2):
                for position in range(begin[direction], end[direction]):
                    here = queue[direction, position]
                    low = out_start[here] if direction == 0 else in_start[here]
                    high = out_start[here + 1] if direction == 0 else in_start[here + 1]
                    for edge in range(low, high):
                        other = out_node[edge] if direction == 0 else in_node[edge]
                        if seen[direction, other] == node:
                            continue
                        seen[direction, other] = node
                        queue[direction, total[direction]] = other
                        total[direction] += 1
                        if place_of[other] < 0:
                            if count == top:
                                continue
                            place_of[other] = count
                            landing[node, count] = other
                            values[node, count, 0], values[node, count, 1] = 0.0, 0.0
                            count += 1
                        values[node, place_of[other], direction] = 1.0 / step
                begin[direction], end[direction] = end[direction], total[direction]
            if count == top:
                break
        for place in range(count):
            place_of[landing[node, place]] = -1
        for place in range(count, top):
            landing[node, place], values[node, place, 0], values[node, place, 1] = -1, 0.0, 0.0
