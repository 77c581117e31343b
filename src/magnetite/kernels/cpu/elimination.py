"""Elimination of the nodes of a magnetic Laplacian without a single subtraction, and solves with its factors.

`L = D − H` with `D_uu = excess_u + Σ_v |H_uv|`. Eliminating a node leaves a matrix of the same kind, whose entries
`H_uv + H_uk H_kv / D_kk` and excesses are sums and products of known numbers. The diagonal is never stored, so nothing
cancels: every factor is accurate relative to itself, however far apart the weights are.
"""

from math import sqrt

import numpy as np

from magnetite.kernels.cpu.compile import kernel, part


@part
def _modulus(a):
    return sqrt(a.real * a.real + a.imag * a.imag)


@part
def _lost(a, b, one, two, whole):
    """`|a| + |b| − |a + b|`, given the three, accurate also if the phases of `a` and `b` are nearly equal."""
    product = one * two
    if product == 0.0:
        return 0.0
    dot, cross = a.real * b.real + a.imag * b.imag, a.imag * b.real - a.real * b.imag
    if dot > 0:
        return 2.0 * (cross / (product + dot)) * (cross / (one + two + whole))
    return 2.0 * (product - dot) / (one + two + whole)


@part
def _unlink(node, degree, head, after, before):
    if before[node] >= 0:
        after[before[node]] = after[node]
    else:
        head[degree] = after[node]
    if after[node] >= 0:
        before[after[node]] = before[node]


@part
def _link(node, degree, head, after, before):
    before[node] = -1
    after[node] = head[degree]
    if head[degree] >= 0:
        before[head[degree]] = node
    head[degree] = node


@part
def _grown(array, needed):
    """The array, or a copy of it of twice the size, if it has fewer than `needed` entries."""
    if needed <= array.size:
        return array
    larger = np.empty(max(2 * array.size, needed), array.dtype)
    larger[: array.size] = array
    return larger


@part
def _compact(begin, stored, target, names, pairs, place):
    """Move the entries of a row that are not eliminated to `target`, and return how many they are."""
    kept = target
    for entry in range(begin, begin + stored):
        if place[names[entry]] < 0:
            names[kept], pairs[kept] = names[entry], pairs[entry]
            kept += 1
    return kept - target


@part
def _update(real, node, nodes, entries, own, pivot, place, rows, values, made, excess, mark, first):
    """Add the products of the entries `H_kv` of one node to the pairs of its neighbours; the rows have room for that.

    Returns the number of pairs. The row of the last neighbour is not read. `mark` holds the pair of each node of the
    row that is read, and which row that was.
    """
    begin, stored, names, pairs = rows
    data, moduli = values
    inverse = 1.0 / pivot
    for t in range(nodes.size):
        excess[nodes[t]] += own[nodes[t]] * inverse * excess[node]
    for t in range(nodes.size - 1):
        u = nodes[t]
        back, size, surplus = np.conj(entries[t]) * inverse, own[u] * inverse, 0.0
        kept, now = begin[u], (first + t) << 32
        for entry in range(begin[u], begin[u] + stored[u]):
            v, p = names[entry], pairs[entry]
            if place[v] < 0:
                names[kept], pairs[kept] = v, p
                mark[v] = now | p
                kept += 1
        stored[u] = kept - begin[u]
        for r in range(t + 1, nodes.size):
            v = nodes[r]
            term, more, p = back * entries[r], size * own[v], mark[v] ^ now
            if u > v:
                term = np.conj(term)
            if p >> 32:
                data[made], moduli[made] = term, more
                names[begin[u] + stored[u]], pairs[begin[u] + stored[u]] = v, made
                names[begin[v] + stored[v]], pairs[begin[v] + stored[v]] = u, made
                stored[u] += 1
                stored[v] += 1
                made += 1
            elif real:
                data[p] += term
                moduli[p] += more
            else:
                total = data[p] + term
                whole = _modulus(total)
                lost = _lost(data[p], term, moduli[p], more, whole)
                surplus += lost
                excess[v] += lost
                data[p], moduli[p] = total, whole
        excess[u] += surplus
    return made


@kernel(seconds=10)
def eliminate(n, low, high, values, real, excess, budget):
    """Eliminate nodes in the order of least degree; `excess` is overwritten.

    `values` are the entries `H[low, high]` of the pairs `low < high`, real and positive or complex. Returns the nodes
    in that order, and for nodes numbered in it the row starts, columns and entries `H_kv / D_kk` of a triangular
    matrix, and the pivots `D_kk`. The first array is empty if this takes more than `budget` steps, or is bound to: if
    all nodes left have `d` neighbours or more, each costs about `d²`.

    A row lists neighbours and the numbers of pairs, whose entries are stored once. It keeps eliminated nodes until it
    is read or full, so that a leaf of a hub costs one step.
    """
    degree, stored = np.zeros(n, np.int64), np.zeros(n, np.int64)
    begin, room = np.empty(n, np.int64), np.empty(n, np.int64)
    head = np.full(n + 1, -1, np.int64)
    after, before = np.empty(n, np.int64), np.empty(n, np.int64)
    place, mark, own = np.full(n, -1, np.int32), np.full(n, -1, np.int64), np.empty(n)
    order, pivots, start = np.empty(n, np.int64), np.empty(n), np.empty(n + 1, np.int64)
    made = low.size
    data, moduli = np.empty(2 * made + n, values.dtype), np.empty(2 * made + n)
    columns, entries = np.empty(2 * made + n, np.uint32), np.empty(2 * made + n, values.dtype)
    for p in range(made):
        degree[low[p]] += 1
        degree[high[p]] += 1
        data[p], moduli[p] = values[p], abs(values[p])
    used = 0
    for u in range(n):
        begin[u], room[u] = used, degree[u] + 4
        used += room[u]
        _link(u, degree[u], head, after, before)
    names, pairs = np.empty(2 * used, np.uint32), np.empty(2 * used, np.uint32)
    for p in range(made):
        for u, v in ((low[p], high[p]), (high[p], low[p])):
            names[begin[u] + stored[u]], pairs[begin[u] + stored[u]] = v, p
            stored[u] += 1
    least, work, first = 0, 0, 0
    for step in range(n):
        least = max(least - 1, 0)
        while head[least] < 0:
            least += 1
        k, count = head[least], least
        if work + count * count * (n - step - count) > budget:
            return order[:0], start, columns, entries, pivots
        _unlink(k, count, head, after, before)
        order[step], place[k], start[step] = k, step, first
        columns, entries = _grown(columns, first + count), _grown(entries, first + count)
        # The neighbours that are left; the one with the longest row goes last.
        pivot, last, longest = excess[k], first, first
        for entry in range(begin[k], begin[k] + stored[k]):
            v, p = names[entry], pairs[entry]
            if place[v] < 0:
                columns[last], entries[last], own[v] = v, data[p] if k < v else np.conj(data[p]), moduli[p]
                longest = last if stored[v] > stored[columns[longest]] else longest
                pivot += own[v]
                last += 1
        pivots[step] = pivot
        if last > first:
            columns[longest], columns[last - 1] = columns[last - 1], columns[longest]
            entries[longest], entries[last - 1] = entries[last - 1], entries[longest]
        for t in range(first, last):
            u = columns[t]
            _unlink(u, degree[u], head, after, before)
            work += count + (stored[u] if t < last - 1 else 0)
            if stored[u] + count - 1 > room[u]:
                target, wanted = begin[u], 2 * (degree[u] + count)
                if wanted > room[u]:
                    names, pairs = _grown(names, used + wanted), _grown(pairs, used + wanted)
                    target, room[u] = used, wanted
                    used += wanted
                stored[u] = _compact(begin[u], stored[u], target, names, pairs, place)
                begin[u] = target
        if work > budget:
            return order[:0], start, columns, entries, pivots
        data, moduli = _grown(data, made + count * count // 2), _grown(moduli, made + count * count // 2)
        if last > first:
            u, rows = columns[last - 1], (begin, stored, names, pairs)
            degree[u] -= stored[u] + 1
            neighbours, factors = columns[first:last], entries[first:last]
            made = _update(
                real, k, neighbours, factors, own, pivot, place, rows, (data, moduli), made, excess, mark, first
            )
            degree[u] += stored[u]
        for t in range(first, last):
            u = columns[t]
            entries[t] *= 1.0 / pivot
            if t < last - 1:
                degree[u] = stored[u]
            _link(u, degree[u], head, after, before)
            least = min(least, degree[u])
        first = last
    start[n] = first
    for entry in range(first):
        columns[entry] = place[columns[entry]]
    return order, start, columns[:first], entries[:first], pivots


@kernel(seconds=4, reorder=False)
def solve_vector(start, columns, entries, pivots, x):
    """`x ← L^{-1} x`; a pivot of 0, of the last node of a singular matrix, gives 0."""
    n = x.size
    for k in range(n):
        own = x[k]
        for entry in range(start[k], start[k + 1]):
            x[columns[entry]] += np.conj(entries[entry]) * own
    for k in range(n - 1, -1, -1):
        own = x[k] * (1.0 / pivots[k] if pivots[k] > 0 else 0.0)
        for entry in range(start[k], start[k + 1]):
            own += entries[entry] * x[columns[entry]]
        x[k] = own


@kernel(seconds=4)
def solve_block(start, columns, entries, pivots, x):
    """The same for each column of a block."""
    n, width = x.shape
    for k in range(n):
        for entry in range(start[k], start[k + 1]):
            factor, v = np.conj(entries[entry]), columns[entry]
            for j in range(width):
                x[v, j] += factor * x[k, j]
    for k in range(n - 1, -1, -1):
        inverse = 1.0 / pivots[k] if pivots[k] > 0 else 0.0
        for j in range(width):
            x[k, j] *= inverse
        for entry in range(start[k], start[k + 1]):
            factor, v = entries[entry], columns[entry]
            for j in range(width):
                x[k, j] += factor * x[v, j]
