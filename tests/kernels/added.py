"""A small kernel, compiled by `test_compile.py` in processes of their own."""

from magnetite.kernels.cpu.compile import kernel


@kernel(seconds=7)
def add(one, two):
    return one + two
