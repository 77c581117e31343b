"""`magnetite.linalg.phase.normalise` of one graph, compiled; a test compares the two."""

from math import atan2, inf, pi, sqrt

import numpy as np

from magnetite.kernels.cpu.compile import part
from magnetite.kernels.shared import TIE, ZERO


@part
def _axis(zr, zi, n, j):
    """The direction of `√Σγ²` that makes the largest |Re| positive; where it vanishes, that of the largest entry."""
    square = 0.0 + 0.0j
    largest = 0.0
    for i in range(n):
        z = complex(zr[i, j], zi[i, j])
        square += z * z
        largest = max(largest, abs(z))
    known = abs(square) > ZERO
    if not known:
        for i in range(n):
            z = complex(zr[i, j], zi[i, j])
            if abs(z) > largest - TIE:
                square = z * z
                break
    if abs(square) == 0.0:
        return 1.0 + 0.0j, False
    axis = (square / abs(square)) ** 0.5
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(zr[i, j] * axis.real + zi[i, j] * axis.imag))
    sign = 0.0
    for i in range(n):
        real = zr[i, j] * axis.real + zi[i, j] * axis.imag
        if abs(real) > largest - TIE:
            sign = (1.0 if real > 0 else -1.0) if sign == 0.0 else sign
            known = known and real * sign > 0
    return axis * sign, known


@part
def _direction(zr, zi, n, j, reference, mean):
    """The phase to divide vector `j` by, and whether the graph alone determines it."""
    choice = reference if abs(reference) > ZERO else mean
    if abs(choice) > ZERO:
        return choice / abs(choice), True
    return _axis(zr, zi, n, j)


@part
def _foremost(zr, zi, n, by, weight):
    """1 at the node (or the tied nodes) of the largest angle and, among those, the largest modulus; else 0."""
    leading = -inf
    for i in range(n):
        a, b = zr[i, 0] * by.real + zi[i, 0] * by.imag, zi[i, 0] * by.real - zr[i, 0] * by.imag
        weight[i] = -inf
        if sqrt(a * a + b * b) > ZERO:
            angle = atan2(b, a)
            weight[i] = angle + 2 * pi if angle < TIE - pi else angle
        leading = max(leading, weight[i])
    modulus = -1.0
    for i in range(n):
        leads = weight[i] >= leading - TIE
        weight[i] = sqrt(zr[i, 0] * zr[i, 0] + zi[i, 0] * zi[i, 0]) if leads else -1.0
        modulus = max(modulus, weight[i])
    for i in range(n):
        weight[i] = 1.0 if weight[i] >= modulus - TIE else 0.0


@part
def normalise(zr, zi, n, kept, root, weight, mr, mi, rr, ri, anchored):
    """Rotate every vector so that its value at the root (node `root`, or the foremost source if that is < 0) is > 0."""
    width = mr.size
    mr[:], mi[:], rr[:], ri[:] = 0.0, 0.0, 0.0, 0.0
    total = 0.0 + 0.0j
    for i in range(n):
        total += complex(zr[i, 0], zi[i, 0])
        for j in range(width):
            modulus = sqrt(zr[i, j] * zr[i, j] + zi[i, j] * zi[i, j])
            mr[j] += modulus * zr[i, j]
            mi[j] += modulus * zi[i, j]
    certain = True
    if root < 0:
        by, certain = _direction(zr, zi, n, np.int64(0), total, complex(mr[0], mi[0]))
        _foremost(zr, zi, n, by, weight)
    else:
        weight[:n] = 0.0
        weight[root] = 1.0
    for i in range(n):
        if weight[i] > 0:
            for j in range(width):
                rr[j] += zr[i, j]
                ri[j] += zi[i, j]
    for j in range(kept):
        at_root = complex(rr[j], ri[j])
        by, decided = _direction(zr, zi, n, j, at_root, complex(mr[j], mi[j]))
        anchored[j] = decided and (certain or abs(at_root) <= ZERO)
        rr[j], ri[j] = by.real, by.imag
    for i in range(n):
        for j in range(width):
            a, b = zr[i, j], zi[i, j]
            zr[i, j] = a * rr[j] + b * ri[j]
            zi[i, j] = b * rr[j] - a * ri[j]
