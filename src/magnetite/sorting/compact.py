"""Compact networks, networks that begin like a merge sort, relabelled networks, and incorrect variants of networks.

The compiled loops are in `magnetite.kernels.cpu.compact`.
"""

from collections.abc import Iterable, Sequence
from types import ModuleType

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from magnetite.linalg.counter import derive, mix, signed
from magnetite.linalg.threads import spread
from magnetite.packed import starts
from magnetite.sorting.generator import MOST_COMPARATORS, check_request, generate
from magnetite.sorting.known import batcher, bitonic
from magnetite.sorting.networks import SPAN, SortingNetworks, kernels

CHANGES = {"remove": 0, "rewire": 1, "swap": 2, "last": 3}
"""Changes that `spoil` makes: remove a comparator, give it other wires, let it change places with the next comparator
on one of its wires, remove the last comparator."""


def prune(networks: SortingNetworks, seed: int, start: int = 0) -> SortingNetworks:
    """Remove comparators that are not needed: those that never swap, then any without which the network sorts.

    The latter are tried in a random order, each once. A network of 7 wires keeps about 19 of 35 comparators, one of 11
    wires 44 of 113. Networks that do not sort only lose comparators that never swap.

    Args:
        networks: The networks.
        seed: Seed of the order.
        start: Number of the first network in the random sequence.

    >>> from magnetite.sorting import generate
    >>> nets = generate(100, lengths=[7], seed=0)
    >>> short = prune(nets, seed=0)
    >>> bool(short.is_correct().all()), bool((short.sizes <= nets.sizes).all())
    (True, True)
    """
    key = np.uint64(derive(seed, 1))
    wires, counts = networks.wires.clone(), torch.empty_like(networks.lengths)
    pointer, lengths = networks.node_ptr.numpy(), networks.lengths.numpy()

    def work(begin: int, end: int) -> None:
        part = pointer[begin : end + 1]
        _kernels().prune(key, start + begin, wires.numpy(), part, lengths[begin:end], counts.numpy()[begin:end])

    spread(work, len(networks), _span(networks))
    return _shortened(networks.node_ptr, networks.lengths, wires, counts)


def compact(count: int, lengths: Iterable[int], seed: int, start: int = 0) -> SortingNetworks:
    """Generate correct networks without superfluous comparators: `generate`, then `prune`.

    Args:
        count: Number of networks.
        lengths: Numbers of wires to choose from.
        seed: Seed of the random numbers.
        start: Number of networks of the sequence to skip.

    >>> float(compact(1000, lengths=[7], seed=0).sizes.double().mean()) < 19.5
    True
    """
    return prune(generate(count, lengths, seed, start), seed, start)


def merging(count: int, lengths: Iterable[int], seed: int, start: int = 0) -> SortingNetworks:
    """Generate compact correct networks that begin like a merge sort, which are close to the smallest ones known.

    Batcher's odd-even merge sort or bitonic sorter gets randomly permuted wires; a random number of its first
    comparators is kept, random ones complete the network, and it is pruned.

    Args:
        count: Number of networks.
        lengths: Numbers of wires to choose from.
        seed: Seed of the random numbers.
        start: Number of networks of the sequence to skip.

    >>> nets = merging(1000, lengths=[8], seed=0)
    >>> bool(nets.is_correct().all()), int(nets.sizes.min())
    (True, 19)
    """
    choices = check_request(count, lengths, start)
    key = np.uint64(derive(seed, 2))
    tables = kernels().tables(choices)
    known = SortingNetworks.from_networks(make(int(length)) for length in choices for make in (batcher, bitonic))
    sources, pointer = known.wires.numpy(), known.node_ptr.numpy()

    def work(begin: int, end: int) -> tuple[np.ndarray, ...]:
        return _kernels().complete(
            key, start + begin, end - begin, choices, tables, sources, pointer, 2, MOST_COMPARATORS
        )

    parts = spread(work, count, SPAN) or [work(0, 0)]
    wires, counts, chosen = (torch.from_numpy(np.concatenate(column)) for column in zip(*parts, strict=True))
    return prune(SortingNetworks._trusted(node_ptr=starts(counts), lengths=chosen, wires=wires), seed, start)


def relabel(networks: SortingNetworks, seed: int, start: int = 0) -> SortingNetworks:
    """Permute the wires of each network at random; every comparator still puts the smaller value on the lower wire.

    The result sorts if the network does, and has as many comparators and parallel steps (Knuth, TAOCP 3, 5.3.4).

    Args:
        networks: The networks.
        seed: Seed of the permutations.
        start: Number of the first network in the random sequence.

    >>> from magnetite.sorting import batcher
    >>> relabel(SortingNetworks.from_networks([batcher(8)]), seed=1)[0].is_correct()
    True
    """
    key = np.uint64(derive(seed, 3))
    wires = torch.empty_like(networks.wires)
    source, pointer, lengths = networks.wires.numpy(), networks.node_ptr.numpy(), networks.lengths.numpy()

    def work(begin: int, end: int) -> None:
        part = pointer[begin : end + 1]
        _kernels().relabel(key, start + begin, source, part, lengths[begin:end], wires.numpy())

    spread(work, len(networks), SPAN)
    return SortingNetworks._trusted(node_ptr=networks.node_ptr, lengths=networks.lengths, wires=wires)


def spoil(
    networks: SortingNetworks, seed: int, changes: Sequence[str] = ("remove", "rewire", "swap"), start: int = 0
) -> tuple[SortingNetworks, Int[Tensor, " found"]]:
    """Make incorrect networks by one random change anywhere; the checker decides, and further changes are tried.

    Args:
        networks: The networks.
        seed: Seed of the changes.
        changes: Changes to choose from: remove, rewire, swap or last.
        start: Number of the first network in the random sequence.

    Returns:
        The incorrect networks, and for each the number of the network that it was made of; networks that no change
        of the chosen kind makes incorrect are left out.

    >>> from magnetite.sorting import generate
    >>> wrong, source = spoil(generate(100, lengths=[7], seed=0), seed=0)
    >>> bool(wrong.is_correct().any()), len(wrong) == len(source)
    (False, True)
    """
    unknown = [change for change in changes if change not in CHANGES]
    if unknown or not tuple(changes):
        raise ValueError(f"changes must be some of {', '.join(CHANGES)}, got {tuple(changes)}")
    key, chosen = np.uint64(derive(seed, 4)), np.array([CHANGES[change] for change in changes])
    wires, counts = torch.empty_like(networks.wires), torch.empty_like(networks.lengths)
    source, pointer, lengths = networks.wires.numpy(), networks.node_ptr.numpy(), networks.lengths.numpy()

    def work(begin: int, end: int) -> None:
        part = pointer[begin : end + 1]
        _kernels().spoil(
            key, start + begin, source, part, lengths[begin:end], chosen, wires.numpy(), counts.numpy()[begin:end]
        )

    spread(work, len(networks), _span(networks))
    found = (counts > 0).nonzero().squeeze(1)
    made = _shortened(networks.node_ptr, networks.lengths, wires, counts.clamp(min=0))
    return made.select(found), found


def beginnings(networks: SortingNetworks, seed: int, start: int = 0) -> SortingNetworks:
    """Cut each network after a random number of comparators, from 1 to all but the last; one with a single one stays.

    A beginning of a network that does not sort does not sort either, since more comparators keep sorted values sorted.

    Args:
        networks: The networks.
        seed: Seed of the numbers of comparators.
        start: Number of the first network in the random sequence.

    >>> from magnetite.sorting import batcher
    >>> beginnings(SortingNetworks.from_networks([batcher(8)] * 3), seed=0).sizes.tolist()
    [15, 16, 16]
    """
    numbers = mix(torch.tensor(signed(derive(seed, 5))), torch.arange(start, start + len(networks)))
    counts = 1 + numbers.remainder((networks.sizes - 1).clamp(min=1))
    return _shortened(networks.node_ptr, networks.lengths, networks.wires, torch.minimum(counts, networks.sizes))


def depths(networks: SortingNetworks) -> Int[Tensor, " networks"]:
    """Number of parallel steps of each network.

    Args:
        networks: The networks.

    >>> from magnetite.sorting import batcher
    >>> depths(SortingNetworks.from_networks([batcher(8), batcher(16)])).tolist()
    [6, 10]
    """
    result = torch.zeros_like(networks.lengths)
    if len(networks):
        _kernels().depths(networks.wires.numpy(), networks.node_ptr.numpy(), networks.lengths.numpy(), result.numpy())
    return result


def _shortened(pointer: Tensor, lengths: Tensor, wires: Tensor, counts: Tensor) -> SortingNetworks:
    """The first `counts` comparators of each network."""
    rows = torch.arange(int(counts.sum())) + torch.repeat_interleave(pointer[:-1] - starts(counts)[:-1], counts)
    return SortingNetworks._trusted(node_ptr=starts(counts), lengths=lengths, wires=wires[rows])


def _span(networks: SortingNetworks) -> int:
    """Number of networks that a thread processes at once; the longest take milliseconds each."""
    return SPAN if not len(networks) or int(networks.lengths.max()) <= 12 else 16


def _kernels() -> ModuleType:
    """The compiled loops, imported on first use because numba is slow to load."""
    from magnetite.kernels.cpu import compact

    return compact
