"""The lowest eigenpairs of a real symmetric tridiagonal matrix: bisection, then inverse iteration, for all at once.

One lane per eigenvalue: the loops over lanes are the inner ones, so that 8 recurrences run in one register.
"""

from math import sqrt

import numpy as np

from magnetite.kernels.cpu.compile import part

EPSILON = 2.0**-52
ROUNDS = 4
"""Largest number of solves of inverse iteration: two are enough for separate eigenvalues, clusters need all."""


@part
def _sturm_counts(d, e2, n, smallest, x, q, count):
    """`count[j]`: the number of eigenvalues below `x[j]`, from the signs of the pivots of `T − x I`."""
    width = x.size
    for j in range(width):
        t = d[0] - x[j]
        t = -smallest if abs(t) < smallest else t
        q[j] = t
        count[j] = 1.0 if t < 0 else 0.0
    for i in range(1, n):
        diagonal, square = d[i], e2[i]
        for j in range(width):
            t = diagonal - x[j] - square / q[j]
            t = -smallest if abs(t) < smallest else t
            q[j] = t
            count[j] += 1.0 if t < 0 else 0.0


@part
def bisect(d, e, n, values, low, high, e2, q, count):
    """Eigenvalue number `j` (from below) into `values[j]`, for every lane `j < n`; further lanes repeat the last."""
    bottom, top, largest = d[0], d[0], 0.0
    for i in range(n):
        radius = e[i] + (e[i + 1] if i + 1 < n else 0.0)
        bottom = min(bottom, d[i] - radius)
        top = max(top, d[i] + radius)
        e2[i] = e[i] * e[i]
        largest = max(largest, e2[i])
    size = max(abs(bottom), abs(top))
    width = values.size
    low[:] = bottom - 2 * n * EPSILON * size
    high[:] = top + 2 * n * EPSILON * size
    # Quotients stay finite: e² / smallest ≤ 2^1000.
    smallest = max(largest, 2.0**-900) * 2.0**-100
    gap = high[0] - low[0]
    while gap > 2 * EPSILON * size:
        for j in range(width):
            values[j] = 0.5 * (low[j] + high[j])
        _sturm_counts(d, e2, n, smallest, values, q, count)
        for j in range(width):
            below = count[j] <= min(j, n - 1)
            low[j] = values[j] if below else low[j]
            high[j] = high[j] if below else values[j]
        gap *= 0.5
    for j in range(width):
        values[j] = 0.5 * (low[j] + high[j])


@part
def _factorise(d, e, n, floor, values, u0, u1, u2, multiplier, swapped, a, b):
    """`P (T − λ_j I) = L U` with row exchanges, in every lane; `u0` are the reciprocals of the pivots."""
    width = values.size
    for j in range(width):
        a[j] = d[0] - values[j]
        b[j] = e[1] if n > 1 else 0.0
    for i in range(n - 1):
        c, diagonal = e[i + 1], d[i + 1]
        behind = e[i + 2] if i + 2 < n else 0.0
        for j in range(width):
            shifted = diagonal - values[j]
            swap = abs(a[j]) < c
            pivot = c if swap else a[j]
            other = a[j] if swap else c
            pivot = floor if abs(pivot) < floor else pivot
            inverse = 1.0 / pivot
            factor = other * inverse
            upper = shifted if swap else b[j]
            lower = b[j] if swap else shifted
            second = behind if swap else 0.0
            u0[i, j] = inverse
            u1[i, j] = upper
            u2[i, j] = second
            multiplier[i, j] = factor
            swapped[i, j] = 1.0 if swap else 0.0
            a[j] = lower - factor * upper
            b[j] = (0.0 if swap else behind) - factor * second
    for j in range(width):
        pivot = a[j]
        u0[n - 1, j] = 1.0 / (floor if abs(pivot) < floor else pivot)
        u1[n - 1, j] = 0.0
        u2[n - 1, j] = 0.0


@part
def _eliminate(n, multiplier, swapped, z, a):
    """`Z ← L^{-1} P Z`."""
    width = a.size
    for j in range(width):
        a[j] = z[0, j]
    for i in range(n - 1):
        for j in range(width):
            here, there = a[j], z[i + 1, j]
            swap = swapped[i, j] > 0
            first = there if swap else here
            last = here if swap else there
            z[i, j] = first
            a[j] = last - multiplier[i, j] * first
    for j in range(width):
        z[n - 1, j] = a[j]


@part
def _substitute(n, u0, u1, u2, z, a, b):
    """`Z ← U^{-1} Z`."""
    width = a.size
    for j in range(width):
        a[j] = 0.0
        b[j] = 0.0
    for i in range(n - 1, -1, -1):
        for j in range(width):
            x = (z[i, j] - u1[i, j] * a[j] - u2[i, j] * b[j]) * u0[i, j]
            z[i, j] = x
            b[j] = a[j]
            a[j] = x


@part
def _orthonormalise(n, kept, z, s):
    """Modified Gram–Schmidt over the columns, from the left; True if one lost most of its length."""
    width = s.size
    s[:] = 0.0
    for i in range(n):
        for j in range(width):
            s[j] += z[i, j] * z[i, j]
    for j in range(width):
        s[j] = 1.0 / sqrt(s[j]) if s[j] > 0 else 0.0
    for i in range(n):
        for j in range(width):
            z[i, j] *= s[j]
    lost = False
    for column in range(kept):
        square = 0.0
        for i in range(n):
            square += z[i, column] * z[i, column]
        lost = lost or square < 0.25
        scale = 1.0 / sqrt(square) if square > 0 else 0.0
        s[:] = 0.0
        for i in range(n):
            own = z[i, column] * scale
            z[i, column] = own
            for j in range(width):
                s[j] += own * z[i, j]
        for j in range(column + 1):
            s[j] = 0.0
        for i in range(n):
            own = z[i, column]
            for j in range(width):
                z[i, j] -= own * s[j]
    return lost


@part
def inverse_iterate(d, e, n, kept, values, z, factors, lanes):
    """Orthonormal eigenvectors for accurate eigenvalues, into the columns of `z`, from a fixed pseudo-random start."""
    size = 0.0
    for i in range(n):
        size = max(size, abs(d[i]) + e[i] + (e[i + 1] if i + 1 < n else 0.0))
    floor = EPSILON * max(size, EPSILON)
    u0, u1, u2, multiplier, swapped = factors[0], factors[1], factors[2], factors[3], factors[4]
    a, b, shift = lanes[0], lanes[1], lanes[2]
    # A little below the eigenvalue, all directions of a cluster grow alike; at the eigenvalue, one would dominate.
    for j in range(values.size):
        shift[j] = values[j] - 16 * EPSILON * size
    _factorise(d, e, n, floor, shift, u0, u1, u2, multiplier, swapped, a, b)
    state = np.uint64(88172645463325252)
    for i in range(n):
        for j in range(values.size):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            z[i, j] = np.float64(state >> np.uint64(11)) * 2.0**-52 - 1.0
    for round in range(ROUNDS):
        if round > 0:
            _eliminate(n, multiplier, swapped, z, a)
        _substitute(n, u0, u1, u2, z, a, b)
        # Vectors of one cluster are nearly parallel: the remainders of the later ones need a second pass, and a third
        # if the second left only rounding errors.
        clustered = _orthonormalise(n, kept, z, a)
        passes = 1
        while clustered and passes < 4:
            clustered = _orthonormalise(n, kept, z, a)
            passes += 1
        if round > 0 and passes == 1:
            break
