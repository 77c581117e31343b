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
def _lost(a, b, two):
    """`|a| + |b| − |a + b|` with `two = |b|`, accurate also if the phases of `a` and `b` are nearly equal."""
    one = _modulus(a)
    product = one * two
    if product == 0.0:
        return 0.0
    dot, cross = a.real * b.real + a.imag * b.imag, a.imag * b.real - a.real * b.imag
    apart = cross / (product + dot) * cross if dot > 0 else product - dot
    return 2.0 * apart / (one + two + _modulus(a + b))


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


@kernel(seconds=10)
def eliminate(start, columns, entries, real, excess, budget):
    """Eliminate nodes in the order of least degree; entries are real and positive, or complex; `excess` is overwritten.

    Returns the nodes in that order, their pivots `D_kk`, and where in two further arrays the neighbours and entries
    `H_kv` of each node begin and how many they are. The first array is empty if this takes more than `budget` steps.
    """
    n = start.size - 1
    pool = columns.size * 2 + 16 * n
    names, data = np.empty(pool, np.int32), np.empty(pool, entries.dtype)
    begin, length, room = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    head = np.full(n + 1, -1, np.int64)
    after, before = np.empty(n, np.int64), np.empty(n, np.int64)
    place, moduli = np.full(n, -1, np.int64), np.empty(n)
    order, pivots = np.empty(n, np.int64), np.empty(n)
    used = 0
    for u in range(n):
        begin[u], length[u] = used, start[u + 1] - start[u]
        room[u] = length[u] + 4
        for entry in range(length[u]):
            names[used + entry] = columns[start[u] + entry]
            data[used + entry] = entries[start[u] + entry]
        used += room[u]
        _link(u, length[u], head, after, before)
    least, work = 0, 0
    for step in range(n):
        least = max(least - 1, 0)
        while head[least] < 0:
            least += 1
        k = head[least]
        _unlink(k, least, head, after, before)
        order[step] = k
        first, count = begin[k], length[k]
        pivot = excess[k]
        for entry in range(first, first + count):
            moduli[names[entry]] = abs(data[entry])
            pivot += moduli[names[entry]]
        pivots[step] = pivot
        work += count * count
        for entry in range(first, first + count):
            u = names[entry]
            work += length[u]
            if work > budget:
                return order[:0], pivots, begin, length, names, data
            back, size = np.conj(data[entry]) * (1.0 / pivot), moduli[u] / pivot
            excess[u] += size * excess[k]
            degree, base = length[u], begin[u]
            if degree + count > room[u]:
                wanted = 2 * (degree + count)
                if used + wanted > names.size:
                    more = max(names.size, wanted)
                    names = np.concatenate((names, np.empty(more, np.int32)))
                    data = np.concatenate((data, np.empty(more, entries.dtype)))
                for other in range(degree):
                    names[used + other] = names[base + other]
                    data[used + other] = data[base + other]
                begin[u], room[u] = used, wanted
                base = used
                used += wanted
            for other in range(base, base + degree):
                place[names[other]] = other
            # Node k leaves the row of u.
            own, last = place[k], base + degree - 1
            names[own], data[own] = names[last], data[last]
            place[names[own]] = own
            place[k] = -1
            now = degree - 1
            for other in range(first, first + count):
                v = names[other]
                if v == u:
                    continue
                term = back * data[other]
                if place[v] >= 0:
                    if not real:
                        excess[u] += _lost(data[place[v]], term, size * moduli[v])
                    data[place[v]] += term
                else:
                    names[base + now], data[base + now] = v, term
                    place[v] = base + now
                    now += 1
            for other in range(base, base + now):
                place[names[other]] = -1
            length[u] = now
            _unlink(u, degree, head, after, before)
            _link(u, now, head, after, before)
            least = min(least, now)
    return order, pivots, begin, length, names, data


@kernel(seconds=4)
def solve_factors(order, pivots, begin, length, names, data, x):
    """`X ← L^{-1} X` for a block of columns; a pivot of 0, of the last node of a singular matrix, gives a row of 0."""
    n, width = x.shape
    for step in range(n):
        k = order[step]
        for entry in range(begin[k], begin[k] + length[k]):
            factor, v = np.conj(data[entry]) * (1.0 / pivots[step]), names[entry]
            for j in range(width):
                x[v, j] += factor * x[k, j]
    for step in range(n - 1, -1, -1):
        k, pivot = order[step], pivots[step]
        for entry in range(begin[k], begin[k] + length[k]):
            factor, v = data[entry], names[entry]
            for j in range(width):
                x[k, j] += factor * x[v, j]
        inverse = 1.0 / pivot if pivot > 0 else 0.0
        for j in range(width):
            x[k, j] *= inverse
