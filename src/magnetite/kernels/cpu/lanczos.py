"""Lanczos iteration of one sparse Hermitian matrix at several potentials side by side, in single precision."""

import numpy as np

from magnetite.kernels.cpu.compile import kernel, prefetch_row

LANES = 8
"""Potentials side by side: the real and imaginary parts of a node fill one cache line, which a neighbour reads."""

ROWS = 1024
"""Rows over which sums are kept in single precision."""


@kernel(seconds=6, reorder=False)
def lanczos(start, columns, level, weights, cosine, sine, basis, new, sums, diagonal, beside, smallest, ahead):
    """Extend the unit vector `v_0` to an orthonormal basis in which `N_j` is tridiagonal, for each potential `j`.

    `N_j[u, v] = weights · exp(i angle_j[level])`. `basis[s, v]` has the real parts of vector s at node v, then the
    imaginary ones. A basis that is complete is continued with zeros. With `ahead`, the entries of a vector for the
    matrix entries that many places further on are prefetched. `new` and `sums` are memory to work in.
    """
    steps, n = diagonal.shape[0], basis.shape[1]
    on_real, on_imag, length = np.empty((steps, LANES)), np.empty((steps, LANES)), np.empty(LANES)
    end = start[n] - ahead
    for step in range(steps):
        for i in range(n):
            for j in range(2 * LANES):
                sums[j] = 0
            if ahead and start[i + 1] < end:
                for place in range(start[i], start[i + 1]):
                    prefetch_row(basis[step], columns[place + ahead])
            for place in range(start[i], start[i + 1]):
                v, a, w = columns[place], level[place], weights[place]
                for j in range(LANES):
                    sums[j] += w * (cosine[a, j] * basis[step, v, j] - sine[a, j] * basis[step, v, LANES + j])
                for j in range(LANES):
                    sums[LANES + j] += w * (cosine[a, j] * basis[step, v, LANES + j] + sine[a, j] * basis[step, v, j])
            for j in range(2 * LANES):
                new[i, j] = sums[j]
        on_real[:], on_imag[:], length[:] = 0, 0, 0
        # Against all vectors before, not just the last two: in single precision the rest would grow back.
        for first in range(0, n, ROWS):
            last = min(first + ROWS, n)
            for c in range(step + 1):
                for j in range(2 * LANES):
                    sums[j] = 0
                for i in range(first, last):
                    for j in range(LANES):
                        sums[j] += basis[c, i, j] * new[i, j] + basis[c, i, LANES + j] * new[i, LANES + j]
                    for j in range(LANES):
                        sums[LANES + j] += basis[c, i, j] * new[i, LANES + j] - basis[c, i, LANES + j] * new[i, j]
                for j in range(LANES):
                    on_real[c, j] += sums[j]
                    on_imag[c, j] += sums[LANES + j]
        diagonal[step] = on_real[step]
        for first in range(0, n, ROWS):
            last = min(first + ROWS, n)
            for c in range(step + 1):
                for j in range(LANES):
                    sums[j], sums[LANES + j] = on_real[c, j], on_imag[c, j]
                for i in range(first, last):
                    for j in range(LANES):
                        new[i, j] -= sums[j] * basis[c, i, j] - sums[LANES + j] * basis[c, i, LANES + j]
                    for j in range(LANES):
                        new[i, LANES + j] -= sums[j] * basis[c, i, LANES + j] + sums[LANES + j] * basis[c, i, j]
            for j in range(LANES):
                sums[j] = 0
            for i in range(first, last):
                for j in range(LANES):
                    sums[j] += new[i, j] * new[i, j] + new[i, LANES + j] * new[i, LANES + j]
            for j in range(LANES):
                length[j] += sums[j]
        for j in range(LANES):
            root = np.sqrt(length[j])
            beside[step, j] = root if root > smallest else 0
            sums[j] = 1 / root if root > smallest else 0
        for i in range(n):
            for j in range(LANES):
                basis[step + 1, i, j] = new[i, j] * sums[j]
                basis[step + 1, i, LANES + j] = new[i, LANES + j] * sums[j]
