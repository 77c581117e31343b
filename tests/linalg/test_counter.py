import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from magnetite.kernels.cpu import random
from magnetite.kernels.cpu.compile import kernel
from magnetite.linalg.counter import derive, mix, signed

mix_in_kernel = kernel(seconds=1)(random.mix.py_func)
below = kernel(seconds=1)(random.below.py_func)
words = st.integers(0, 2**64 - 1)


def splitmix(key: int, counter: int) -> int:
    """The published algorithm, in whole numbers of any size."""
    value = (key + (counter + 1) * 0x9E3779B97F4A7C15) % 2**64
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


@given(words, st.integers(0, 2**40))
def test_tensors_and_kernels_agree_with_the_published_algorithm(key, counter):
    expected = splitmix(key, counter)
    assert int(mix(torch.tensor(signed(key)), torch.tensor(counter))) % 2**64 == expected
    assert int(mix_in_kernel(np.uint64(key), counter)) == expected
    assert derive(key, counter) == expected


def test_published_values():
    assert [splitmix(0, counter) for counter in range(2)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


@given(words, st.integers(1, 2**20))
def test_below_is_below(bits, bound):
    assert 0 <= below(np.uint64(bits >> 32), bound) < bound
