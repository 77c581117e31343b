"""Counter-based random numbers for tensors on any device, bit for bit those of `magnetite.kernels.cpu.random`."""

import torch
from jaxtyping import Int
from torch import Tensor


def signed(value: int) -> int:
    """The 64 bits of `value` as a signed integer, which is all that torch calculates with.

    >>> signed(2**64 - 1)
    -1
    """
    return value - 2**64 if value >= 2**63 else value


GOLDEN = signed(0x9E3779B97F4A7C15)
FIRST = signed(0xBF58476D1CE4E5B9)
SECOND = signed(0x94D049BB133111EB)


def mix(key: Int[Tensor, "*#shape"], counter: Int[Tensor, "*#shape"]) -> Int[Tensor, "..."]:
    """Splitmix64 `h(key + (counter + 1) φ)` of broadcast tensors, modulo 2^64, as signed integers.

    >>> mix(torch.tensor(0), torch.tensor(0)).item() == 0xE220A8397B1DCDAF - 2**64
    True
    """
    value = key + (counter + 1) * GOLDEN
    value = (value ^ shift_right(value, 30)) * FIRST
    value = (value ^ shift_right(value, 27)) * SECOND
    return value ^ shift_right(value, 31)


def shift_right(value: Int[Tensor, "*shape"], bits: int) -> Int[Tensor, "*shape"]:
    """A shift that fills with zeros; torch's own repeats the sign.

    >>> shift_right(torch.tensor(-1), 60).item()
    15
    """
    return (value >> bits) & (2 ** (64 - bits) - 1)


def derive(seed: int, *path: int) -> int:
    """The key of a stream below a seed: `mix(… mix(seed, path[0]) …)`, as an unsigned number.

    >>> derive(0, 1) == derive(0, 2)
    False
    """
    key = torch.tensor(signed(seed % 2**64))
    for step in path:
        key = mix(key, torch.tensor(step))
    return int(key) % 2**64
