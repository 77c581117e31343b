"""Counter-based random numbers: number `c` of stream `key` is a hash of the two, computed in any order."""

import numpy as np

from magnetite.kernels import shared
from magnetite.kernels.cpu.compile import part

_mix = part(shared.mix)


@part
def mix(key, counter):
    """Splitmix64 of a stream and a counter: 64 random bits as an unsigned integer."""
    return np.uint64(_mix(np.int64(key), np.int64(counter)))


@part
def below(half, bound):
    """An integer in `0 … bound − 1` from 32 random bits; the bias is below `bound / 2^32`."""
    return np.int64((half * np.uint64(bound)) >> np.uint64(32))
