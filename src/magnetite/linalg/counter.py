"""Counter-based random numbers for tensors on any device: the bits of `magnetite.kernels.cpu.random`."""

import torch
from jaxtyping import Int
from torch import Tensor

from magnetite.kernels import shared


def signed(value: int) -> int:
    """The 64 bits of `value` as a signed integer, since torch has no arithmetic for unsigned ones.

    >>> signed(2**64 - 1)
    -1
    """
    return value - 2**64 if value >= 2**63 else value


def mix(key: Int[Tensor, "*#shape"], counter: Int[Tensor, "*#shape"]) -> Int[Tensor, "..."]:
    """Splitmix64 `h(key + (counter + 1) φ)` of broadcast tensors, modulo 2^64, as signed integers.

    >>> mix(torch.tensor(0), torch.tensor(0)).item() == 0xE220A8397B1DCDAF - 2**64
    True
    """
    return shared.mix(key, counter)


def shift_right(value: Int[Tensor, "*shape"], bits: int) -> Int[Tensor, "*shape"]:
    """Shift right and fill with zeros; torch's own shift repeats the sign.

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
