"""The recurrence in topological order: what its levels need beside products of matrices, node by node.

Arrays are in single precision; nodes and edges are in the order of the levels, and edges in that of their targets.
"""

import numpy as np

from magnetite.kernels.cpu.compile import float_of_bits, kernel, part

SATURATED = np.float32(87.0)
"""Arguments of the exponential function are limited to ± this, where its values are normal numbers."""

LOG2_E, LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)
HALF, ONE, TWO = np.float32(0.5), np.float32(1.0), np.float32(2.0)
C_2, C_3, C_4, C_5, C_6 = (np.float32(1 / each) for each in (2, 6, 24, 120, 720))


@part
def _exp(x):
    """`exp(x)` by powers of two and a polynomial, which loops can compute for several entries at a time."""
    x = SATURATED if x > SATURATED else x  # these keep NaN
    x = -SATURATED if x < -SATURATED else x
    power = np.floor(x * LOG2_E + HALF)
    rest = x - power * LN_2
    value = ONE + rest * (ONE + rest * (C_2 + rest * (C_3 + rest * (C_4 + rest * (C_5 + rest * C_6)))))
    return value * float_of_bits((np.int32(power) + np.int32(127)) << np.int32(23))


@part
def _sigmoid(x):
    return ONE / (ONE + _exp(-x))


@part
def _tanh(x):
    return ONE - TWO / (ONE + _exp(TWO * x))


@kernel(seconds=2)
def hear(sent, features, score, sources, targets, states, shares, message):
    """What comes along each edge, its share, and the message to each target; zeros where no edge ends.

    Without features, which are then empty, what comes along an edge is what its source has sent.
    """
    width, edge = sent.shape[1], 0
    message[:] = np.float32(0)
    while edge < sources.size:
        target, first = targets[edge], edge
        largest = np.float32(-np.inf)
        while edge < sources.size and targets[edge] == target:
            source, value = sources[edge], np.float32(0)
            if features.shape[0]:
                for j in range(width):
                    states[edge, j] = _tanh(sent[source, j] + features[edge, j])
            else:
                for j in range(width):
                    states[edge, j] = sent[source, j]
            for j in range(width):
                value += states[edge, j] * score[j]
            shares[edge] = value
            largest = largest if value < largest else value
            edge += 1
        total = np.float32(0)
        for other in range(first, edge):
            shares[other] = _exp(shares[other] - largest)
            total += shares[other]
        for other in range(first, edge):
            shares[other] /= total
            for j in range(width):
                message[target, j] += shares[other] * states[other, j]


@kernel(seconds=2)
def renew(given, products, message, hidden):
    """The new states `h = (1 − z) n + z m`, from what is given to the gates and their products with the messages."""
    width = hidden.shape[1]
    for row in range(hidden.shape[0]):
        for j in range(width):
            reset = _sigmoid(given[row, j] + products[row, j])
            kept = _sigmoid(given[row, width + j] + products[row, width + j])
            new = _tanh(given[row, 2 * width + j] + reset * products[row, 2 * width + j])
            hidden[row, j] = new + kept * (message[row, j] - new)


@kernel(seconds=2)
def factors(given, products, message, to_new, to_kept, to_reset, kept, reset):
    """What the gradient of a state is multiplied by on its way to the gates."""
    width = message.shape[1]
    for row in range(message.shape[0]):
        for j in range(width):
            r = _sigmoid(given[row, j] + products[row, j])
            z = _sigmoid(given[row, width + j] + products[row, width + j])
            recalled = products[row, 2 * width + j]
            n = _tanh(given[row, 2 * width + j] + r * recalled)
            to_new[row, j] = (ONE - z) * (ONE - n * n)
            to_kept[row, j] = (message[row, j] - n) * z * (ONE - z)
            to_reset[row, j] = recalled * r * (ONE - r)
            kept[row, j] = z
            reset[row, j] = r


@kernel(seconds=2)
def to_gates(upper, to_new, to_kept, to_reset, kept, reset, given, gates, message):
    """From gradients of states to those of the gates, and what of them reaches the messages beside the gates."""
    width = upper.shape[1]
    for row in range(upper.shape[0]):
        for j in range(width):
            new = upper[row, j] * to_new[row, j]
            at_reset, at_kept = new * to_reset[row, j], upper[row, j] * to_kept[row, j]
            given[row, j], given[row, width + j], given[row, 2 * width + j] = at_reset, at_kept, new
            gates[row, j], gates[row, width + j], gates[row, 2 * width + j] = at_reset, at_kept, new * reset[row, j]
            message[row, j] = upper[row, j] * kept[row, j]


@kernel(seconds=2)
def to_edges(of_message, message, states, shares, score, sources, targets, featured, of_states, of_scores, of_sent):
    """From gradients of messages to those of edges and scores; what the sources get is added to `of_sent`.

    Softmax: the mean of the gradients of a node's edges is the gradient of its message along the message.
    """
    width = message.shape[1]
    for edge in range(sources.size):
        target, source = targets[edge], sources[edge]
        own, mean = np.float32(0), np.float32(0)
        for j in range(width):
            own += of_message[target, j] * states[edge, j]
            mean += of_message[target, j] * message[target, j]
        share = shares[edge]
        value = share * (own - mean)
        of_scores[edge] = value
        for j in range(width):
            gradient = value * score[j] + share * of_message[target, j]
            if featured:
                gradient *= ONE - states[edge, j] * states[edge, j]
            of_states[edge, j] = gradient
            of_sent[source, j] += gradient
