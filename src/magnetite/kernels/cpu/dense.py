"""The lowest eigenpairs of many small Laplacians, one after the other, from node pairs to normalised vectors."""

from math import sqrt

import numpy as np

from magnetite.kernels.cpu.compile import LANES, kernel, part
from magnetite.kernels.cpu.householder import back_transform, tridiagonalise
from magnetite.kernels.cpu.pairs import gauge
from magnetite.kernels.cpu.phases import normalise
from magnetite.kernels.cpu.tridiagonal import bisect, inverse_iterate


@part
def scale_rows(low, high, weights, first, last, n, normalised, isolated, diagonal, scale):
    """The diagonal of `L` and the factors of its rows, from the degrees: `L[u, v] = −scale_u H[u, v] scale_v`."""
    diagonal[:n] = 0.0
    for p in range(first, last):
        diagonal[low[p]] += weights[p]
        if low[p] != high[p]:
            diagonal[high[p]] += weights[p]
    for v in range(n):
        scale[v] = 1.0
        if normalised:
            connected = diagonal[v] > 0
            scale[v] = 1.0 / sqrt(diagonal[v]) if connected else 0.0
            diagonal[v] = 1.0 if connected else isolated


scale_all_rows = kernel(seconds=10)(scale_rows.py_func)
"""`scale_rows` for Python to call."""


@part
def _assemble(low, high, entries, first, last, n, real, diagonal, scale, norm, ar, ai):
    """Lower triangle (and blocks of 8 on the diagonal) of `L / norm`, or of `|L| / norm` if the problem is real."""
    for i in range(n):
        ar[i, :] = 0.0
        ai[i, :] = 0.0
        ar[i, i] = diagonal[i] / norm
    for p in range(first, last):
        u, v = low[p], high[p]
        entry = entries[p]
        if real and u != v:
            entry = complex(sqrt(entry.real * entry.real + entry.imag * entry.imag), 0.0)
        factor = -scale[u] * scale[v] / norm
        ar[v, u] += factor * entry.real
        if u != v:
            ai[v, u] = -factor * entry.imag
            if u // LANES == v // LANES:
                ar[u, v] = ar[v, u]
                ai[u, v] = -ai[v, u]


@part
def _residual(low, high, entries, first, last, n, kept, diagonal, scale, values, zr, zi, yr, yi):
    """Largest `‖Lγ_j − λ_jγ_j‖`, computed from the node pairs."""
    width = zr.shape[1]
    for i in range(n):
        for j in range(width):
            yr[i, j] = (diagonal[i] - values[j]) * zr[i, j]
            yi[i, j] = (diagonal[i] - values[j]) * zi[i, j]
    for p in range(first, last):
        u, v = low[p], high[p]
        factor = -scale[u] * scale[v]
        a, b = factor * entries[p].real, factor * entries[p].imag
        for j in range(width):
            yr[u, j] += a * zr[v, j] - b * zi[v, j]
            yi[u, j] += a * zi[v, j] + b * zr[v, j]
        if u != v:
            for j in range(width):
                yr[v, j] += a * zr[u, j] + b * zi[u, j]
                yi[v, j] += a * zi[u, j] - b * zr[u, j]
    worst = 0.0
    for j in range(kept):
        total = 0.0
        for i in range(n):
            total += yr[i, j] * yr[i, j] + yi[i, j] * yi[i, j]
        worst = total if not total <= worst else worst
    return sqrt(worst)


@part
def _unitarity(n, kept, zr, zi, gr, gi):
    """Largest entry of `|ΓᴴΓ − I|`."""
    gr[:, :] = 0.0
    gi[:, :] = 0.0
    for i in range(n):
        for a in range(kept):
            real, imaginary = zr[i, a], zi[i, a]
            for b in range(zr.shape[1]):
                gr[a, b] += real * zr[i, b] + imaginary * zi[i, b]
                gi[a, b] += real * zi[i, b] - imaginary * zr[i, b]
    worst = 0.0
    for a in range(kept):
        gr[a, a] -= 1.0
        for b in range(kept):
            square = gr[a, b] * gr[a, b] + gi[a, b] * gi[a, b]
            worst = square if not square <= worst else worst
    return sqrt(worst)


@part
def _row_sums(low, high, entries, first, last, n, diagonal, scale, sums):
    """An upper bound of `‖L‖_∞` (self-loops are counted in addition to the diagonal)."""
    for v in range(n):
        sums[v] = abs(diagonal[v])
    for p in range(first, last):
        u, v = low[p], high[p]
        size = scale[u] * scale[v] * abs(entries[p])
        sums[u] += size
        if u != v:
            sums[v] += size
    largest = 0.0
    for v in range(n):
        largest = max(largest, sums[v])
    return largest


@kernel(seconds=10)
def solve_all(
    low, high, entries, weights, pair_ptr, counts, sizes, roots, k, normalised, isolated, real,
    values, vectors, anchored, residual, unitarity,
):  # fmt: skip
    """Eigenpairs of every graph: values `[g, k]`, normalised vectors `[nodes, k]`, and the errors for verification.

    `real` says that all entries are real. A graph with a gauge transformation is solved as a real problem.
    """
    n_max, m_max = 0, 0
    for g in range(sizes.size):
        n_max, m_max = max(n_max, sizes[g]), max(m_max, counts[g])
    rows = (n_max + LANES - 1) // LANES * LANES
    ar, ai = np.empty((rows, rows)), np.empty((rows, rows))
    work, line = np.empty((8, rows)), np.empty((9, rows))
    begin, queue, known = np.empty(n_max + 2, np.int64), np.empty(n_max, np.int64), np.empty(n_max, np.bool_)
    links, turn = np.empty((2, 2 * m_max), np.int64), np.empty(n_max, np.complex128)
    row = 0
    for g in range(sizes.size):
        n, first = sizes[g], pair_ptr[g]
        last = first + counts[g]
        kept = min(k, n)
        width = (kept + LANES - 1) // LANES * LANES
        z, y, factors = np.empty((2, n, width)), np.empty((2, n, width)), np.empty((5, n, width))
        lane, gram = np.empty((6, width)), np.empty((2, kept, width))
        d, e, fr, fi, tau, e2 = line[0], line[1], line[2], line[3], line[4], line[5]
        diagonal, scale, spare = line[6], line[7], line[8]
        scale_rows(low, high, weights, first, last, n, normalised, isolated, diagonal, scale)
        norm = _row_sums(low, high, entries, first, last, n, diagonal, scale, spare)
        norm = norm if norm > 0 else 1.0
        gauged = (not real) and gauge(low, high, entries, first, last, n, begin, links[0], links[1], queue, known, turn)
        _assemble(low, high, entries, first, last, n, real or gauged, diagonal, scale, norm, ar, ai)
        tridiagonalise(ar, ai, n, real or gauged, d, e, fr, fi, tau, work)
        bisect(d, e, n, lane[0], lane[1], lane[2], e2, lane[3], lane[4])
        inverse_iterate(d, e, n, kept, lane[0], z[0], factors, lane[1:4])
        back_transform(ar, ai, n, width, fr, fi, tau, z[0], z[1], lane[1], lane[2])
        if gauged:
            for i in range(n):
                for j in range(width):
                    z[1, i, j] = z[0, i, j] * turn[i].imag
                    z[0, i, j] *= turn[i].real
        for j in range(width):
            lane[0, j] *= norm
        error = _residual(low, high, entries, first, last, n, kept, diagonal, scale, lane[0], z[0], z[1], y[0], y[1])
        residual[g] = error / max(norm, 1.0)
        unitarity[g] = _unitarity(n, kept, z[0], z[1], gram[0], gram[1])
        normalise(z[0], z[1], n, kept, roots[g], spare, lane[1], lane[2], lane[3], lane[4], anchored[g])
        for j in range(kept):
            values[g, j] = lane[0, j]
        for i in range(n):
            for j in range(kept):
                vectors[row + i, j] = complex(z[0, i, j], z[1, i, j])
        row += n
