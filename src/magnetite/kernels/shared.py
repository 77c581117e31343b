"""Constants and functions shared by torch code and compiled kernels: plain Python, without torch or numba."""

GOLDEN = 0x9E3779B97F4A7C15 - 2**64
FIRST = 0xBF58476D1CE4E5B9 - 2**64
SECOND = 0x94D049BB133111EB - 2**64
"""Constants of splitmix64 as signed integers."""

MASK_30, MASK_27, MASK_31 = 2**34 - 1, 2**37 - 1, 2**33 - 1
"""Bits that a shift to the right by 30, 27 and 31 leaves."""

ZERO = 1e-4
"""Sums and entries of unit vectors below this value have no reliable phase."""

TIE = 1e-5
"""Angles (in radians) and moduli closer than this are considered equal."""


def mix(key, counter):
    """Splitmix64 `h(key + (counter + 1) φ)` modulo 2^64, of signed 64-bit integers that wrap around.

    Works on torch tensors, and on integers when compiled by numba. Right shifts of signed integers repeat the sign,
    hence the masks.
    """
    value = key + (counter + 1) * GOLDEN
    value = (value ^ ((value >> 30) & MASK_30)) * FIRST
    value = (value ^ ((value >> 27) & MASK_27)) * SECOND
    return value ^ ((value >> 31) & MASK_31)
