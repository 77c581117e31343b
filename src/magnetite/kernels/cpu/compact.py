"""Compact sorting networks, merge sorts of relabelled wires, incorrect variants and depths, in bit-slices."""

import numpy as np

from magnetite.kernels.cpu.compile import kernel, part
from magnetite.kernels.cpu.random import below, mix
from magnetite.kernels.cpu.sorting import BLOCK, compare, fill_inputs, generate_network

REMOVE, REWIRE, SWAP, LAST = 0, 1, 2, 3
"""Changes: remove a comparator, change its wires, let it change places with the next one, drop the last one."""

ATTEMPTS = 64
"""Number of changes that are tried before a network counts as one that stays correct."""


@part
def draw(key, counter, bound):
    """A random integer in `0 … bound − 1`."""
    return below(mix(key, counter) >> np.uint64(32), bound)


@part
def fails_in(wires, count, left_out, length, state, first, words):
    """Whether the comparators without number `left_out` leave an input of this block unsorted."""
    fill_inputs(state, length, first, words)
    for number in range(count):
        if number != left_out:
            compare(state[wires[number, 0]], state[wires[number, 1]], words)
    for wire in range(length - 1):
        for word in range(words):
            if state[wire, word] & ~state[wire + 1, word]:
                return True
    return False


@part
def failing_block(wires, count, left_out, length, state, start):
    """First word of a block with an unsorted input, searched cyclically from `start`; −1 if there is none."""
    words = 1 << max(length - 6, 0)
    blocks = (words + BLOCK - 1) // BLOCK
    for turn in range(blocks):
        first = (start // BLOCK + turn) % blocks * BLOCK
        if fails_in(wires, count, left_out, length, state, first, min(BLOCK, words - first)):
            return first
    return -1


@part
def drop_idle(wires, count, length, state, swaps):
    """Remove comparators that never swap; the number of those that stay."""
    words = 1 << max(length - 6, 0)
    swaps[:count] = False
    for first in range(0, words, BLOCK):
        block = min(BLOCK, words - first)
        fill_inputs(state, length, first, block)
        for number in range(count):
            low, high = state[wires[number, 0]], state[wires[number, 1]]
            if not swaps[number]:
                for word in range(block):
                    if low[word] & ~high[word]:
                        swaps[number] = True
                        break
            compare(low, high, block)
    kept = 0
    for number in range(count):
        if swaps[number]:
            wires[kept, 0], wires[kept, 1] = wires[number, 0], wires[number, 1]
            kept += 1
    return kept


@part
def prune_network(key, wires, count, length, state, swaps, order):
    """Remove what never swaps, then in random order each comparator without which the rest sorts; the number left."""
    count = drop_idle(wires, count, length, state, swaps)
    for number in range(count):
        order[number] = number
    for number in range(count - 1, 0, -1):
        other = draw(key, number, number + 1)
        order[number], order[other] = order[other], order[number]
    place = 0
    for turn in range(count):
        number = order[turn]
        found = failing_block(wires, count, number, length, state, place)
        if found >= 0:
            place = found
            continue
        for later in range(number, count - 1):
            wires[later, 0], wires[later, 1] = wires[later + 1, 0], wires[later + 1, 1]
        count -= 1
        for later in range(turn + 1, order.size):
            if order[later] > number:
                order[later] -= 1
    return count


@kernel(seconds=5)
def prune(key, first, wires, pointer, lengths, counts):
    """Prune each network in place; `counts` has the numbers of comparators left, at the beginning of its old place."""
    longest = 0
    for network in range(lengths.size):
        longest = max(longest, pointer[network + 1] - pointer[network])
    state = np.empty((max(lengths.max(), 1), BLOCK), np.uint64)
    swaps, order = np.empty(longest, np.bool_), np.empty(longest, np.int64)
    for network in range(lengths.size):
        begin, end = pointer[network], pointer[network + 1]
        counts[network] = prune_network(
            mix(key, first + network),
            wires[begin:end],
            end - begin,
            lengths[network],
            state,
            swaps,
            order[: end - begin],
        )


@part
def untangled(key, source, length, wires, relabelled):
    """The comparators with randomly permuted wires, each with the smaller value on the lower wire (Knuth, 5.3.4)."""
    for wire in range(length):
        relabelled[wire] = wire
    for wire in range(length - 1, 0, -1):
        other = draw(key, wire, wire + 1)
        relabelled[wire], relabelled[other] = relabelled[other], relabelled[wire]
    for number in range(source.shape[0]):
        one, two = source[number, 0], source[number, 1]
        if relabelled[one] > relabelled[two]:  # from here on, the two wires have changed places
            relabelled[one], relabelled[two] = relabelled[two], relabelled[one]
        wires[number, 0], wires[number, 1] = relabelled[one], relabelled[two]


@kernel(seconds=5)
def relabel(key, first, source, pointer, lengths, wires):
    """Each network with randomly permuted wires."""
    relabelled = np.empty(max(lengths.max(), 1), np.int64)
    for network in range(lengths.size):
        begin, end = pointer[network], pointer[network + 1]
        own = mix(key, first + network)
        untangled(own, source[begin:end], lengths[network], wires[begin:end], relabelled)


@kernel(seconds=5)
def complete(key, first, count, choices, inputs_outputs, sources, pointer, per_length, most):
    """Networks that begin like a relabelled source and end at random: how much of the source they keep is random.

    `sources[pointer[c * per_length + s]:]` is source `s` of length `choices[c]`.
    """
    wires = np.empty((count * most, 2), np.int16)
    counts = np.empty(count, np.int64)
    lengths = np.empty(count, np.int64)
    state = np.empty(inputs_outputs.shape[2:], np.uint64)
    open_wires = np.empty(state.shape[0], np.int64)
    witness = np.empty(state.shape[0], np.int64)
    total = 0
    for network in range(count):
        own = mix(key, first + network)
        choice = draw(own, 0, choices.size)
        length = choices[choice]
        words = 1 << max(length - 6, 0)
        inputs, outputs = inputs_outputs[choice]
        number = choice * per_length + draw(own, 1, per_length)
        begin, end = pointer[number], pointer[number + 1]
        size, attempt, kept = -1, 1, 0
        while size < 0:
            untangled(mix(own, 2 * attempt), sources[begin:end], length, wires[total:], open_wires)
            # The larger of two numbers: many networks keep nearly all of their source.
            bits, bound = mix(own, 2 * attempt + 1), end - begin + 1
            kept = max(below(bits >> np.uint64(32), bound), below(bits & np.uint64(0xFFFFFFFF), bound))
            state[:length, :words] = inputs[:length, :words]
            for comparator in range(kept):
                low, high = wires[total + comparator, 0], wires[total + comparator, 1]
                compare(state[low], state[high], words)
            draws = np.uint64(attempt) << np.uint64(32)
            rest = wires[total + kept :]
            size = generate_network(own, draws, length, words, state, outputs, open_wires, witness, most - kept, rest)
            attempt += 1
        lengths[network], counts[network] = length, kept + size
        total += kept + size
    return wires[:total].copy(), counts, lengths


@part
def changed(key, attempt, change, source, length, wires):
    """Write a changed copy of a network; the number of its comparators, or −1 if this change is impossible."""
    count = source.shape[0]
    counter = np.int64(attempt) * 8
    wires[:count] = source
    if change == LAST:
        return count - 1
    chosen = draw(key, counter + 1, count)
    low, high = source[chosen, 0], source[chosen, 1]
    if change == REMOVE:
        for number in range(chosen, count - 1):
            wires[number, 0], wires[number, 1] = source[number + 1, 0], source[number + 1, 1]
        return count - 1
    if change == REWIRE:
        kept = low if draw(key, counter + 2, 2) else high
        if draw(key, counter + 3, 3) == 0:  # both wires are new
            kept = draw(key, counter + 4, length)
        other = draw(key, counter + 5, length - 1)
        other += other >= kept
        wires[chosen, 0], wires[chosen, 1] = min(kept, other), max(kept, other)
        return -1 if wires[chosen, 0] == low and wires[chosen, 1] == high else count
    following, one, two = chosen + 1, low, high
    while following < count:
        one, two = source[following, 0], source[following, 1]
        if one in (low, high) or two in (low, high):
            break
        following += 1
    if following == count or (one == low and two == high):
        return -1
    for number in range(chosen, following):
        wires[number, 0], wires[number, 1] = source[number + 1, 0], source[number + 1, 1]
    wires[following, 0], wires[following, 1] = low, high
    return count


@kernel(seconds=5)
def spoil(key, first, source, pointer, lengths, changes, wires, counts):
    """An incorrect variant of each network by one random change; its size is −1 if no attempt gave one."""
    state = np.empty((max(lengths.max(), 1), BLOCK), np.uint64)
    for network in range(lengths.size):
        begin, end = pointer[network], pointer[network + 1]
        own = mix(key, first + network)
        change = changes[draw(own, 0, changes.size)]
        counts[network] = -1
        for attempt in range(ATTEMPTS):
            size = changed(own, attempt, change, source[begin:end], lengths[network], wires[begin:end])
            if size > 0 and failing_block(wires[begin:end], size, -1, lengths[network], state, 0) >= 0:
                counts[network] = size
                break


@kernel(seconds=5)
def depths(wires, pointer, lengths, result):
    """Number of parallel steps of each network."""
    free = np.empty(max(lengths.max(), 1), np.int64)
    for network in range(lengths.size):
        free[:] = 0
        for number in range(pointer[network], pointer[network + 1]):
            low, high = wires[number, 0], wires[number, 1]
            step = max(free[low], free[high]) + 1
            free[low] = step
            free[high] = step
        result[network] = free.max()
