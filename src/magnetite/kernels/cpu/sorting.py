"""Bit-sliced sorting networks: one word holds 64 inputs of one wire, a comparator is one AND and one OR.

By the 0-1 principle, a network of length p sorts all inputs if it sorts all 2^p inputs of zeros and ones. Input x has
the bit `x >> w & 1` on wire w, so the first six wires are constant patterns, and wire w ≥ 6 is all ones in every word
whose number has bit w − 6.
"""

import numpy as np

from magnetite.kernels.cpu.compile import kernel, part
from magnetite.kernels.cpu.random import below, mix

PATTERNS = np.array(
    [
        0xAAAAAAAAAAAAAAAA,
        0xCCCCCCCCCCCCCCCC,
        0xF0F0F0F0F0F0F0F0,
        0xFF00FF00FF00FF00,
        0xFFFF0000FFFF0000,
        0xFFFFFFFF00000000,
    ],
    dtype=np.uint64,
)
BLOCK = 64
"""Words per wire that are checked at once: all wires of a block fit into the L1 cache."""


@part
def fill_inputs(state, length, first, words):
    """Words `first … first + words − 1` of every wire, before any comparator."""
    for wire in range(length):
        for word in range(words):
            if wire < 6:
                state[wire, word] = PATTERNS[wire]
            else:
                bit = np.uint64((first + word) >> (wire - 6)) & np.uint64(1)
                state[wire, word] = np.uint64(0) - bit


@part
def compare(low, high, words):
    """One comparator: the smaller value to `low`, the larger to `high`."""
    for word in range(words):
        both = low[word] & high[word]
        high[word] = low[word] | high[word]
        low[word] = both


@kernel(seconds=5)
def tables(lengths):
    """All inputs of each length, and their sorted values (by odd-even transposition sort)."""
    longest = lengths.max()
    both = np.zeros((lengths.size, 2, longest, 1 << max(longest - 6, 0)), np.uint64)
    for choice in range(lengths.size):
        length = lengths[choice]
        words = 1 << max(length - 6, 0)
        inputs, outputs = both[choice]
        fill_inputs(inputs, length, 0, words)
        outputs[:] = inputs
        for turn in range(length):
            for wire in range(turn % 2, length - 1, 2):
                compare(outputs[wire], outputs[wire + 1], words)
    return both


@part
def first_difference(row, goal, start, words):
    """A word in which the two differ, searched cyclically from `start`; −1 if there is none."""
    for word in range(start, words):
        if row[word] != goal[word]:
            return word
    for word in range(start):
        if row[word] != goal[word]:
            return word
    return -1


@part
def generate_network(key, draws, length, words, state, goals, open_wires, witness, most, wires):
    """Generate random comparators until every input is sorted; their number, or −1 if more than `most` are needed.

    `open_wires` are the wires with a wrong value for some input. A comparator changes only its two wires, and a wire
    that is correct for all inputs is not chosen again. `witness[w]` is a word in which wire w was last wrong; usually
    it still is, so the wire need not be searched.
    """
    remaining = length
    for wire in range(length):
        open_wires[wire] = wire
        witness[wire] = 0
    count = 0
    before_low, before_high = -1, -1
    while remaining > 0:
        bits = mix(key, draws)
        draws += np.uint64(1)
        one = below(bits >> np.uint64(32), remaining)
        two = below(bits & np.uint64(0xFFFFFFFF), remaining - 1)
        two += two >= one
        one, two = max(one, two), min(one, two)
        low, high = min(open_wires[one], open_wires[two]), max(open_wires[one], open_wires[two])
        if low == before_low and high == before_high:
            continue
        if count == most:
            return -1
        before_low, before_high = low, high
        wires[count, 0], wires[count, 1] = low, high
        count += 1
        compare(state[low], state[high], words)
        for place in (one, two):  # the later one first, since closing a wire moves the last one into its place
            wire = open_wires[place]
            witness[wire] = first_difference(state[wire], goals[wire], witness[wire], words)
            if witness[wire] < 0:
                remaining -= 1
                open_wires[place] = open_wires[remaining]
    return count


@kernel(seconds=5)
def generate(key, first, count, choices, inputs_outputs, most):
    """Networks `first …` of the stream `key`, of random lengths from `choices`; too long ones are generated again."""
    wires = np.empty((count * most, 2), np.int16)
    counts = np.empty(count, np.int64)
    lengths = np.empty(count, np.int64)
    state = np.empty(inputs_outputs.shape[2:], np.uint64)
    open_wires = np.empty(state.shape[0], np.int64)
    witness = np.empty(state.shape[0], np.int64)
    total = 0
    for network in range(count):
        own = mix(key, first + network)
        choice = below(mix(own, 0) >> np.uint64(32), choices.size)
        length = choices[choice]
        words = 1 << max(length - 6, 0)
        inputs, outputs = inputs_outputs[choice]
        size, attempt = -1, 1
        while size < 0:
            state[:length, :words] = inputs[:length, :words]
            draws = np.uint64(attempt) << np.uint64(32)
            size = generate_network(own, draws, length, words, state, outputs, open_wires, witness, most, wires[total:])
            attempt += 1
        lengths[network], counts[network] = length, size
        total += size
    return wires[:total].copy(), counts, lengths


@part
def _sorts(wires, length, state):
    """Whether the comparators sort all 2^length inputs; stops at the first block with a counterexample."""
    words = 1 << max(length - 6, 0)
    for first in range(0, words, BLOCK):
        block = min(BLOCK, words - first)
        fill_inputs(state, length, first, block)
        for comparator in range(wires.shape[0]):
            compare(state[wires[comparator, 0]], state[wires[comparator, 1]], block)
        for wire in range(length - 1):
            for word in range(block):
                if state[wire, word] & ~state[wire + 1, word]:
                    return False
    return True


sorts_all = kernel(seconds=5)(_sorts.py_func)
"""`_sorts` for Python to call."""


@kernel(seconds=5)
def check(wires, pointer, lengths, correct):
    """Write for each network whether it sorts."""
    state = np.empty((max(lengths.max(), 1), BLOCK), np.uint64)
    for network in range(lengths.size):
        correct[network] = _sorts(wires[pointer[network] : pointer[network + 1]], lengths[network], state)


@kernel(seconds=5)
def run(wires, pointer, lengths, inputs, failed):
    """Write for each network, in the bits of `failed`, which of its inputs it does not sort.

    Bit b of `inputs[network, wire, word]` is the value on that wire of input b of that word.
    """
    words = inputs.shape[2]
    state = np.empty((max(lengths.max(), 1), words), np.uint64)
    for network in range(lengths.size):
        length = lengths[network]
        state[:length] = inputs[network, :length]
        for comparator in range(pointer[network], pointer[network + 1]):
            compare(state[wires[comparator, 0]], state[wires[comparator, 1]], words)
        failed[network] = 0
        for wire in range(length - 1):
            for word in range(words):
                failed[network, word] |= state[wire, word] & ~state[wire + 1, word]


@kernel(seconds=5)
def count_edges(wires, pointer, lengths, counts):
    """Number of edges of each network's graph: two per comparator, less one for the first comparator on each wire."""
    for network in range(lengths.size):
        touched = np.zeros(lengths[network], np.bool_)
        fresh = 0
        for node in range(pointer[network], pointer[network + 1]):
            for side in range(2):
                fresh += not touched[wires[node, side]]
                touched[wires[node, side]] = True
        counts[network] = 2 * (pointer[network + 1] - pointer[network]) - fresh


@kernel(seconds=5)
def fill_edges(wires, pointer, lengths, edge_pointer, edges):
    """From the last comparator on each wire to the next one on that wire."""
    for network in range(lengths.size):
        last = np.full(lengths[network], -1, np.int64)
        edge = edge_pointer[network]
        for node in range(pointer[network + 1] - pointer[network]):
            for side in range(2):
                wire = wires[pointer[network] + node, side]
                if last[wire] >= 0:
                    edges[0, edge] = last[wire]
                    edges[1, edge] = node
                    edge += 1
                last[wire] = node


@kernel(seconds=5)
def fill_ports(wires, pointer, lengths, edge_pointer, ports):
    """For the edges of `fill_edges`: the column of their wire in the source comparator, and in the target."""
    for network in range(lengths.size):
        column = np.full(lengths[network], -1, np.int64)
        edge = edge_pointer[network]
        for node in range(pointer[network], pointer[network + 1]):
            for side in range(2):
                wire = wires[node, side]
                if column[wire] >= 0:
                    ports[edge, 0] = column[wire]
                    ports[edge, 1] = side
                    edge += 1
                column[wire] = side
