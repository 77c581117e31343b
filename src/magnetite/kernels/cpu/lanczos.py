"""Lanczos iteration of one sparse Hermitian matrix at several potentials side by side, in single precision."""

import numpy as np

from magnetite.kernels.cpu.compile import kernel

LANES = 16
"""Potentials side by side: one row of them fills a cache line."""

ROWS = 1024
"""Rows over which sums are kept in single precision."""


@kernel(seconds=6)
def lanczos(start, columns, level, weights, cosine, sine, real, imag, diagonal, beside, smallest):
    """Extend the unit vector `v_0` to an orthonormal basis in which `N_j` is tridiagonal, for each potential `j`.

    `N_j[u, v] = weights · exp(i angle_j[level])`. A basis that is complete is continued with zeros.
    """
    steps, n = diagonal.shape[0], real.shape[1]
    on_real, on_imag = np.empty((steps, LANES)), np.empty((steps, LANES))
    part_real, part_imag = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    by_real, by_imag = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    for step in range(steps):
        new_real, new_imag = real[step + 1], imag[step + 1]
        old_real, old_imag = real[step], imag[step]
        for i in range(n):
            for j in range(LANES):
                part_real[j] = 0
                part_imag[j] = 0
            for place in range(start[i], start[i + 1]):
                v, a, w = columns[place], level[place], weights[place]
                for j in range(LANES):
                    part_real[j] += w * (cosine[a, j] * old_real[v, j] - sine[a, j] * old_imag[v, j])
                    part_imag[j] += w * (cosine[a, j] * old_imag[v, j] + sine[a, j] * old_real[v, j])
            for j in range(LANES):
                new_real[i, j] = part_real[j]
                new_imag[i, j] = part_imag[j]
        on_real[:], on_imag[:] = 0, 0
        # Against all vectors before, not just the last two: in single precision the rest would grow back.
        for first in range(0, n, ROWS):
            last = min(first + ROWS, n)
            for c in range(step + 1):
                part_real[:], part_imag[:] = 0, 0
                for i in range(first, last):
                    for j in range(LANES):
                        part_real[j] += real[c, i, j] * new_real[i, j] + imag[c, i, j] * new_imag[i, j]
                        part_imag[j] += real[c, i, j] * new_imag[i, j] - imag[c, i, j] * new_real[i, j]
                for j in range(LANES):
                    on_real[c, j] += part_real[j]
                    on_imag[c, j] += part_imag[j]
        diagonal[step] = on_real[step]
        length = np.zeros(LANES)
        for first in range(0, n, ROWS):
            last = min(first + ROWS, n)
            for c in range(step + 1):
                by_real[:], by_imag[:] = on_real[c], on_imag[c]
                for i in range(first, last):
                    for j in range(LANES):
                        new_real[i, j] -= by_real[j] * real[c, i, j] - by_imag[j] * imag[c, i, j]
                        new_imag[i, j] -= by_real[j] * imag[c, i, j] + by_imag[j] * real[c, i, j]
            part_real[:] = 0
            for i in range(first, last):
                for j in range(LANES):
                    part_real[j] += new_real[i, j] * new_real[i, j] + new_imag[i, j] * new_imag[i, j]
            for j in range(LANES):
                length[j] += part_real[j]
        for j in range(LANES):
            root = np.sqrt(length[j])
            beside[step, j] = root if root > smallest else 0
            by_real[j] = 1 / root if root > smallest else 0
        for i in range(n):
            for j in range(LANES):
                new_real[i, j] *= by_real[j]
                new_imag[i, j] *= by_real[j]
