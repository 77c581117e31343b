"""Lanczos steps of one sparse Hermitian matrix at several potentials side by side, in single precision."""

from magnetite.kernels.cpu.compile import kernel

LANES = 16
"""Potentials side by side: one row of them fills a cache line."""


@kernel(seconds=3)
def turned_product(start, columns, level, weights, cosine, sine, real, imag, to_real, to_imag, first, last):
    """`y_j ← N_j x_j` for the rows `first … last`: `N_j[u, v] = weights · exp(i angle_j[level])` of potential `j`."""
    for i in range(first, last):
        for j in range(LANES):
            to_real[i, j] = 0
            to_imag[i, j] = 0
        for place in range(start[i], start[i + 1]):
            v, a, w = columns[place], level[place], weights[place]
            for j in range(LANES):
                to_real[i, j] += w * (cosine[a, j] * real[v, j] - sine[a, j] * imag[v, j])
                to_imag[i, j] += w * (cosine[a, j] * imag[v, j] + sine[a, j] * real[v, j])


@kernel(seconds=3)
def coefficients(real, imag, count, first, last, on_real, on_imag):
    """`⟨v_c, v_count⟩` over the rows `first … last`, for all basis vectors `c < count`, added to the results."""
    for c in range(count):
        for i in range(first, last):
            for j in range(LANES):
                on_real[c, j] += real[c, i, j] * real[count, i, j] + imag[c, i, j] * imag[count, i, j]
                on_imag[c, j] += real[c, i, j] * imag[count, i, j] - imag[c, i, j] * real[count, i, j]


@kernel(seconds=3)
def subtract(real, imag, count, first, last, on_real, on_imag, square):
    """`v_count ← v_count − Σ_c coefficient_c v_c` on the rows `first … last`; adds its squared length to `square`."""
    for i in range(first, last):
        for c in range(count):
            for j in range(LANES):
                a, b = on_real[c, j], on_imag[c, j]
                real[count, i, j] -= a * real[c, i, j] - b * imag[c, i, j]
                imag[count, i, j] -= a * imag[c, i, j] + b * real[c, i, j]
        for j in range(LANES):
            square[j] += real[count, i, j] * real[count, i, j] + imag[count, i, j] * imag[count, i, j]
