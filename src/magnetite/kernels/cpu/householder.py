"""Householder reduction of a Hermitian matrix to tridiagonal form, and the transformation of a few vectors back.

`A = Q T Qᴴ` with `Q = H_{n−1} ⋯ H_1`, `H_l = I − τ v vᴴ`. Real and imaginary parts are separate arrays with rows padded
to a multiple of 8, of which the lower triangle is used (and the diagonal blocks of 8, so that no loop has a remainder).
The rank-2 update of one step and the product `A v` of the next share one pass over the matrix: 32 operations per 32
bytes, twice as many as LAPACK's unblocked steps.
"""

from math import sqrt

from magnetite.kernels.cpu.compile import part

NOTHING = 1e-40
"""Squared norm below which a row of a matrix of norm 1 is zero."""


@part
def _update_and_multiply(ar, ai, vr, vi, wr, wi, xr, xi, pr, pi, size):
    """`A ← A − v wᴴ − w vᴴ` on the leading block, and `p += A x`, in one pass over its lower triangle."""
    for i in range(size):
        vri, vii, wri, wii, xri, xii = vr[i], vi[i], wr[i], wi[i], xr[i], xi[i]
        sr = 0.0
        si = 0.0
        block = (i >> 3) << 3
        for j in range(block):
            a = ar[i, j] - vri * wr[j] - vii * wi[j] - wri * vr[j] - wii * vi[j]
            b = ai[i, j] - vii * wr[j] + vri * wi[j] - wii * vr[j] + wri * vi[j]
            ar[i, j] = a
            ai[i, j] = b
            sr += a * xr[j] - b * xi[j]
            si += a * xi[j] + b * xr[j]
            pr[j] += a * xri + b * xii
            pi[j] += a * xii - b * xri
        # A block on the diagonal is stored completely, so each of its entries counts once.
        for j in range(block, block + 8):
            a = ar[i, j] - vri * wr[j] - vii * wi[j] - wri * vr[j] - wii * vi[j]
            b = ai[i, j] - vii * wr[j] + vri * wi[j] - wii * vr[j] + wri * vi[j]
            ar[i, j] = a
            ai[i, j] = b
            sr += a * xr[j] - b * xi[j]
            si += a * xi[j] + b * xr[j]
        pr[i] += sr
        pi[i] += si


@part
def _update_and_multiply_real(ar, vr, wr, xr, pr, size):
    """The same for a real matrix."""
    for i in range(size):
        vri, wri, xri = vr[i], wr[i], xr[i]
        sr = 0.0
        block = (i >> 3) << 3
        for j in range(block):
            a = ar[i, j] - vri * wr[j] - wri * vr[j]
            ar[i, j] = a
            sr += a * xr[j]
            pr[j] += a * xri
        for j in range(block, block + 8):
            a = ar[i, j] - vri * wr[j] - wri * vr[j]
            ar[i, j] = a
            sr += a * xr[j]
        pr[i] += sr


@part
def tridiagonalise(ar, ai, n, real, d, e, fr, fi, tau, work):
    """Diagonal `d`, moduli `e` and phases `f` of the off-diagonal `T[row−1, row]`; each row of `A` becomes its `v`."""
    vr, vi, wr, wi = work[0], work[1], work[2], work[3]
    xr, xi, pr, pi = work[4], work[5], work[6], work[7]
    work[:6, :] = 0.0
    e[0], tau[0] = 0.0, 0.0
    for row in range(n - 1, 0, -1):
        vrl, vil, wrl, wil = vr[row], vi[row], wr[row], wi[row]
        for j in range(row + 1):
            ar[row, j] += -vrl * wr[j] - vil * wi[j] - wrl * vr[j] - wil * vi[j]
            ai[row, j] += -vil * wr[j] + vrl * wi[j] - wil * vr[j] + wrl * vi[j]
        d[row] = ar[row, row]
        below = 0.0
        for j in range(row - 1):
            below += ar[row, j] * ar[row, j] + ai[row, j] * ai[row, j]
        # Do not reflect by the rounding errors of a zero row; the matrix has norm 1.
        below = 0.0 if below < NOTHING else below
        leadr, leadi = ar[row, row - 1], -ai[row, row - 1]
        modulus = sqrt(leadr * leadr + leadi * leadi)
        norm = sqrt(below + modulus * modulus)
        cr, ci = 1.0, 0.0
        if modulus > 0:
            cr, ci = leadr / modulus, leadi / modulus
        e[row] = norm
        reflect = below > 0
        t = 1.0 / (norm * (norm + modulus)) if reflect else 0.0
        tau[row] = t
        sign = -1.0 if reflect else 1.0
        fr[row], fi[row] = sign * cr, sign * ci
        for j in range(row):
            xr[j] = ar[row, j] if reflect else 0.0
            xi[j] = -ai[row, j] if reflect else 0.0
            pr[j] = 0.0
            pi[j] = 0.0
        if reflect:
            xr[row - 1] += cr * norm
            xi[row - 1] += ci * norm
        # The vectors are zero beyond the leading block of `row` rows, where the padded loops read them.
        xr[row], xi[row], vr[row], vi[row], wr[row], wi[row] = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        if real:
            _update_and_multiply_real(ar, vr, wr, xr, pr, row)
        else:
            _update_and_multiply(ar, ai, vr, vi, wr, wi, xr, xi, pr, pi, row)
        half = 0.0
        for j in range(row):
            half += xr[j] * pr[j] + xi[j] * pi[j]
        half *= 0.5 * t * t
        for j in range(row):
            ar[row, j] = xr[j]
            ai[row, j] = xi[j]
            vr[j] = xr[j]
            vi[j] = xi[j]
            wr[j] = t * pr[j] - half * xr[j]
            wi[j] = t * pi[j] - half * xi[j]
    d[0] = ar[0, 0] - 2 * (vr[0] * wr[0] + vi[0] * wi[0])


@part
def back_transform(ar, ai, n, width, fr, fi, tau, zr, zi, sr, si):
    """`Z ← Q P Z` for the real eigenvectors `Z` of the real tridiagonal matrix; `P` restores the phases of `T`."""
    cr, ci = 1.0, 0.0
    for i in range(n):
        if i > 0:
            cr, ci = cr * fr[i] + ci * fi[i], ci * fr[i] - cr * fi[i]
        for j in range(width):
            zi[i, j] = ci * zr[i, j]
            zr[i, j] = cr * zr[i, j]
    for row in range(1, n):
        if tau[row] == 0.0:
            continue
        for j in range(width):
            sr[j] = 0.0
            si[j] = 0.0
        for i in range(row):
            a, b = ar[row, i], ai[row, i]
            for j in range(width):
                sr[j] += a * zr[i, j] + b * zi[i, j]
                si[j] += a * zi[i, j] - b * zr[i, j]
        for j in range(width):
            sr[j] *= tau[row]
            si[j] *= tau[row]
        for i in range(row):
            a, b = ar[row, i], ai[row, i]
            for j in range(width):
                zr[i, j] -= a * sr[j] - b * si[j]
                zi[i, j] -= a * si[j] + b * sr[j]
