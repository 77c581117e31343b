"""Sparse Hermitian matrices: assembly from node pairs, and products with blocks of vectors."""

import numpy as np

from magnetite.kernels.cpu.compile import kernel, prefetch_row


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


@kernel(seconds=4, reorder=False)
def combine_complex(start, columns, data, x, z, shift, scale, carry, first, last, steps, ahead):
    """`z_i ← scale · ((L x)_i − shift · x_i) − carry · z_i` for the rows `first … last`; pairs of real numbers.

    One pass computes a product and a step of a three-term recurrence; `x` and `z` change places from step to step. Sums
    of real and imaginary products of two entries at a time are eight independent chains of operations. With `ahead`,
    the entries of `x` for the matrix entries that many places further on are prefetched. Unsigned indices need no test
    for negative ones.
    """
    end = np.int64(start[last]) - ahead
    one, two = np.uint64(1), np.uint64(2)
    for step in range(steps):
        old, new = (x, z) if step % 2 == 0 else (z, x)
        for i in range(first, last):
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            if ahead and np.int64(start[i + 1]) < end:
                for place in range(start[i], start[i + 1]):
                    prefetch_row(old, columns[place + np.uint64(ahead)])
            e, f, g, h = 0.0, 0.0, 0.0, 0.0
            place, stop = start[i], start[i + 1]
            while place + one < stop:
                p, q, v = data[place, 0], data[place, 1], columns[place]
                r, u, w = data[place + one, 0], data[place + one, 1], columns[place + one]
                s, t, y, j = old[v, 0], old[v, 1], old[w, 0], old[w, 1]
                a += p * s
                b += q * t
                c += p * t
                d += q * s
                e += r * y
                f += u * j
                g += r * j
                h += u * y
                place += two
            if place < stop:
                p, q, v = data[place, 0], data[place, 1], columns[place]
                s, t = old[v, 0], old[v, 1]
                a += p * s
                b += q * t
                c += p * t
                d += q * s
            new[i, 0] = scale * (a - b + (e - f) - shift * old[i, 0]) - carry * new[i, 0]
            new[i, 1] = scale * (c + d + (g + h) - shift * old[i, 1]) - carry * new[i, 1]


@kernel(seconds=4, reorder=False)
def combine_real(start, columns, data, x, z, shift, scale, carry, first, last, steps, ahead):
    """The same for real numbers, each a row of its own."""
    end = np.int64(start[last]) - ahead
    for step in range(steps):
        old, new = (x, z) if step % 2 == 0 else (z, x)
        for i in range(first, last):
            a = 0.0
            if ahead and np.int64(start[i + 1]) < end:
                for place in range(start[i], start[i + 1]):
                    prefetch_row(old, columns[place + np.uint64(ahead)])
            for place in range(start[i], start[i + 1]):
                a += data[place, 0] * old[columns[place], 0]
            new[i, 0] = scale * (a - shift * old[i, 0]) - carry * new[i, 0]
