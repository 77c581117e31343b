"""Sparse Hermitian matrices: assembly from node pairs, and products with blocks of vectors."""

import numpy as np

from magnetite.kernels.cpu.compile import kernel, prefetch_row

AHEAD = 32
"""Number of matrix entries between prefetching a row of the block and using it, enough to hide memory latency."""


@kernel(seconds=4)
def row_starts(low, high, n, start):
    """Row pointers of a matrix that stores every pair in both rows, and the whole diagonal."""
    start[:] = 0
    for v in range(n):
        start[v + 1] = 1
    for p in range(low.size):
        if low[p] != high[p]:
            start[low[p] + 1] += 1
            start[high[p] + 1] += 1
    for v in range(n):
        start[v + 1] += start[v]


@kernel(seconds=4)
def fill_rows(low, high, entries, diagonal, scale, start, place, columns, data):
    """`L[u, v] = −scale_u H[u, v] scale_v` off the diagonal; columns are sorted because the pairs are."""
    n = diagonal.size
    for v in range(n):
        place[v] = start[v]
    for p in range(low.size):
        u, v = low[p], high[p]
        if u != v:
            columns[place[v]] = u
            data[place[v]] = -scale[u] * scale[v] * np.conj(entries[p])
            place[v] += 1
    for v in range(n):
        columns[place[v]] = v
        data[place[v]] = diagonal[v]
        place[v] += 1
    for p in range(low.size):
        u, v = low[p], high[p]
        if u != v:
            columns[place[u]] = v
            data[place[u]] = -scale[u] * scale[v] * entries[p]
            place[u] += 1
        else:
            own = start[u]
            while columns[own] != u:
                own += 1
            data[own] -= scale[u] * scale[u] * entries[p]


@kernel(seconds=4)
def combine_complex(start, columns, data, x, z, shift, scale, carry, first, last):
    """`z_i ← scale · ((L x)_i − shift · x_i) − carry · z_i` for the rows `first … last` of blocks of 4 complex vectors.

    A row of a block is 4 real parts and 4 imaginary ones, one cache line, prefetched before its use. One pass computes
    a product and a step of a three-term recurrence. The sums are scalars because an array would be kept in memory.
    """
    end = start[last]
    for i in range(first, last):
        a0, a1, a2, a3, b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for place in range(start[i], start[i + 1]):
            if place + AHEAD < end:
                prefetch_row(x, columns[place + AHEAD])
            a, b, v = data[place].real, data[place].imag, columns[place]
            a0 += a * x[v, 0] - b * x[v, 4]
            a1 += a * x[v, 1] - b * x[v, 5]
            a2 += a * x[v, 2] - b * x[v, 6]
            a3 += a * x[v, 3] - b * x[v, 7]
            b0 += a * x[v, 4] + b * x[v, 0]
            b1 += a * x[v, 5] + b * x[v, 1]
            b2 += a * x[v, 6] + b * x[v, 2]
            b3 += a * x[v, 7] + b * x[v, 3]
        sums = (a0, a1, a2, a3, b0, b1, b2, b3)
        for j in range(8):
            z[i, j] = scale * (sums[j] - shift * x[i, j]) - carry * z[i, j]


@kernel(seconds=4)
def combine_real(start, columns, data, x, z, shift, scale, carry, first, last):
    """The same for blocks of 8 real vectors."""
    end = start[last]
    for i in range(first, last):
        a0, a1, a2, a3, a4, a5, a6, a7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for place in range(start[i], start[i + 1]):
            if place + AHEAD < end:
                prefetch_row(x, columns[place + AHEAD])
            a, v = data[place], columns[place]
            a0 += a * x[v, 0]
            a1 += a * x[v, 1]
            a2 += a * x[v, 2]
            a3 += a * x[v, 3]
            a4 += a * x[v, 4]
            a5 += a * x[v, 5]
            a6 += a * x[v, 6]
            a7 += a * x[v, 7]
        sums = (a0, a1, a2, a3, a4, a5, a6, a7)
        for j in range(8):
            z[i, j] = scale * (sums[j] - shift * x[i, j]) - carry * z[i, j]
