"""Edges of many graphs as connected node pairs with weights in both directions, and their gauge transformation."""

from math import sqrt

import numpy as np

from magnetite.kernels.cpu.compile import kernel, part


@part
def pair_up(source, target, weight, edge_start, size, order, spare, begin, low, high, forward, backward):
    """Pairs `low ≤ high` in order, each once, with the sums of the weights low→high and high→low; their number.

    A counting sort by `high`, then by `low`, keeps repeated edges in order, so that their sum does not depend on the
    rest of the batch. A self-loop is a pair with the same weight in both directions.
    """
    m = source.size
    for key in range(2):
        for v in range(size + 1):
            begin[v] = 0
        for edge in range(m):
            u, v = source[edge], target[edge]
            begin[(max(u, v) if key == 0 else min(u, v)) + 1] += 1
        for v in range(size):
            begin[v + 1] += begin[v]
        for place in range(m):
            edge = place if key == 0 else spare[place]
            u, v = source[edge], target[edge]
            node = max(u, v) if key == 0 else min(u, v)
            if key == 0:
                spare[begin[node]] = edge
            else:
                order[begin[node]] = edge
            begin[node] += 1
    count = 0
    for place in range(m):
        edge = order[place]
        u, v, w = np.int64(source[edge]), np.int64(target[edge]), weight[edge]
        lo, hi = min(u, v), max(u, v)
        here = edge_start + count - 1
        if count == 0 or low[here] != lo or high[here] != hi:
            here += 1
            count += 1
            low[here], high[here], forward[here], backward[here] = lo, hi, 0.0, 0.0
        if u <= v:
            forward[here] += w
        if u >= v:
            backward[here] += w
    return count


@kernel(seconds=8)
def pair_up_all(source, target, weight, edge_ptr, sizes, low, high, forward, backward, counts, one_way):
    """`pair_up` for every graph; its pairs begin where its edges begin. Unused entries hold the pair 0–0."""
    largest_m, largest_n = 0, 0
    for g in range(sizes.size):
        largest_m = max(largest_m, edge_ptr[g + 1] - edge_ptr[g])
        largest_n = max(largest_n, sizes[g])
    order, spare = np.empty(largest_m, np.int64), np.empty(largest_m, np.int64)
    begin = np.empty(largest_n + 2, np.int64)
    for g in range(sizes.size):
        a, b = edge_ptr[g], edge_ptr[g + 1]
        count = pair_up(
            source[a:b], target[a:b], weight[a:b], a, sizes[g], order, spare, begin, low, high, forward, backward
        )
        counts[g] = count
        one_way[g] = 0
        for p in range(a, a + count):
            one_way[g] += (forward[p] > 0) != (backward[p] > 0)
        for p in range(a + count, b):
            low[p], high[p], forward[p], backward[p] = 0, 0, 1.0, 1.0


@part
def gauge(low, high, entries, first, last, n, begin, neighbour, where, queue, known, turn):
    """Find phases `s` with `s_u conj(s_v) = sgn H[u, v]` for every pair; False if the phases around a cycle disagree.

    Then `H = S |H| Sᴴ`: forests, sequences and graphs whose phases cancel around every cycle are real problems. The
    spanning tree is grown breadth first from the lowest node of each component.
    """
    for v in range(n + 1):
        begin[v] = 0
        if v < n:
            known[v] = False
    for p in range(first, last):
        begin[low[p] + 1] += 1
        begin[high[p] + 1] += 1
    for v in range(n):
        begin[v + 1] += begin[v]
    for p in range(first, last):
        for side in range(2):
            v = low[p] if side == 0 else high[p]
            neighbour[begin[v]] = high[p] if side == 0 else low[p]
            where[begin[v]] = p if side == 0 else -p - 1
            begin[v] += 1
    for v in range(n, 0, -1):
        begin[v] = begin[v - 1]
    begin[0] = 0
    for start in range(n):
        if known[start]:
            continue
        known[start] = True
        turn[start] = 1.0
        queue[0] = start
        head, tail = 0, 1
        while head < tail:
            u = queue[head]
            head += 1
            for place in range(begin[u], begin[u + 1]):
                v, p = neighbour[place], where[place]
                entry = entries[p] if p >= 0 else np.conj(entries[-p - 1])
                modulus = sqrt(entry.real * entry.real + entry.imag * entry.imag)
                if modulus == 0.0:
                    continue
                expected = turn[u] * np.conj(entry) / modulus
                if not known[v]:
                    known[v] = True
                    turn[v] = expected
                    queue[tail] = v
                    tail += 1
                elif abs(turn[v] - expected) > 1e-13:
                    return False
    return True


find_gauge = kernel(seconds=8)(gauge.py_func)
"""`gauge` for Python to call."""
