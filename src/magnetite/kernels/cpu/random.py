"""Counter-based random numbers: draw `c` of stream `key` is a hash of the two, whoever computes it, and when."""

import numpy as np
from numba import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


@njit(cache=True, nogil=True, inline="always")
def mix(key, counter):
    """Splitmix64: `h(key + (counter + 1) φ)`, 64 bits that pass for random."""
    value = np.uint64(key) + (np.uint64(counter) + np.uint64(1)) * GOLDEN
    value = (value ^ (value >> np.uint64(30))) * FIRST
    value = (value ^ (value >> np.uint64(27))) * SECOND
    return value ^ (value >> np.uint64(31))


@njit(cache=True, nogil=True, inline="always")
def below(half, bound):
    """An integer in `0 … bound − 1` from 32 random bits; the bias is below `bound / 2^32`."""
    return np.int64((half * np.uint64(bound)) >> np.uint64(32))
