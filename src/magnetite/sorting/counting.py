"""How many topological sorts an acyclic graph has: exactly, or estimated without bias where that is too much."""

import random
from dataclasses import dataclass
from math import isqrt, log10

from magnetite.graphs import Digraphs

MAX_STATES = 1_000_000
"""Sets of nodes held at once by the exact count, some 300 bytes each."""

FRACTION_BITS = 64
"""Sampling weights are fractions; they are kept as whole multiples of 2^-64."""


class TooManyStates(ValueError):
    """The exact count needs more memory than it was allowed."""


@dataclass(frozen=True)
class Estimate:
    """An unbiased estimate with its standard error; whole numbers, since counts leave the range of floats."""

    value: int
    error: int
    samples: int

    def __str__(self) -> str:
        return f"10^{log10(self.value):.2f} ± {100 * self.error / self.value:.1f} %"


@dataclass(frozen=True)
class Order:
    """One acyclic graph as bit sets: bit `u` of `before[v]` is set where an edge points from `u` to `v`."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    @classmethod
    def of(cls, graph: Digraphs) -> "Order":
        """From a container of one graph; cycles are refused, since they have no topological sort."""
        if len(graph) != 1:
            raise ValueError(f"{len(graph)} graphs were given: topological sorts are counted one graph at a time")
        size = graph.num_nodes
        before, after = [0] * size, [0] * size
        for source, target in graph.edges.T.tolist():
            before[target] |= 1 << source
            after[source] |= 1 << target
        order = cls(tuple(before), tuple(after))
        if len(order.any_sort()) < size:
            raise ValueError("the graph has a cycle, and so no topological sort: count acyclic graphs only")
        return order

    def sources(self) -> int:
        """The nodes that may come first."""
        return sum(1 << node for node, needed in enumerate(self.before) if not needed)

    def take(self, node: int, done: int, ready: int) -> tuple[int, int]:
        """After `node`: the nodes that are done, and those that may come next."""
        done |= 1 << node
        ready &= ~(1 << node)
        for next_node in members(self.after[node]):
            if not self.before[next_node] & ~done:
                ready |= 1 << next_node
        return done, ready

    def any_sort(self) -> list[int]:
        """Some topological sort; shorter than the graph if that has a cycle."""
        done, ready, found = 0, self.sources(), []
        while ready:
            found.append(ready.bit_length() - 1)
            done, ready = self.take(found[-1], done, ready)
        return found

    def descendants(self) -> list[int]:
        """For each node, how many nodes can be reached from it, itself included."""
        reached = [0] * len(self.before)
        for node in reversed(self.any_sort()):
            reached[node] = 1 << node
            for next_node in members(self.after[node]):
                reached[node] |= reached[next_node]
        return [nodes.bit_count() for nodes in reached]


def members(nodes: int) -> list[int]:
    """The elements of a bit set.

    >>> members(0b1101)
    [0, 2, 3]
    """
    found = []
    while nodes:
        low = nodes & -nodes
        found.append(low.bit_length() - 1)
        nodes ^= low
    return found


def count_topological_sorts(graph: Digraphs, max_states: int = MAX_STATES) -> int:
    """Exact number of topological sorts, `N(D) = Σ_{v maximal in D} N(D \\ v)` over the down-sets `D`.

    A down-set holds all predecessors of its members; those of one size are kept at a time, and there are as many as
    antichains. More than `max_states` of one size raise `TooManyStates`.

    >>> count_topological_sorts(Digraphs.from_edges([[0, 0], [1, 2]]))
    2
    """
    order = Order.of(graph)
    layer = {0: (1, order.sources())}
    for _ in order.before:
        following: dict[int, tuple[int, int]] = {}
        for done, (ways, ready) in layer.items():
            for node in members(ready):
                reached = done | 1 << node
                known = following.get(reached)
                options = order.take(node, done, ready)[1] if known is None else known[1]
                following[reached] = (ways if known is None else ways + known[0], options)
            if len(following) > max_states:
                raise TooManyStates(
                    f"more than {max_states} sets of nodes at once: raise max_states, or use estimate_topological_sorts"
                )
        layer = following
    ((total, _),) = layer.values()
    return total


def estimate_topological_sorts(graph: Digraphs, samples: int = 1000, seed: int = 0) -> Estimate:
    """Unbiased estimate `E[Π 1/p_t]`: sorts are drawn node by node, the next one with probability `p_t`.

    A node is drawn in proportion to its number of descendants. For a forest that makes every sort equally likely
    (the hook length formula), and the error zero; for other graphs it keeps the error small.

    >>> estimate_topological_sorts(Digraphs.from_edges([[0, 0], [1, 2]])).value
    2
    """
    if samples < 2:
        raise ValueError(f"samples={samples} give no error bar: draw at least 2")
    order, randomness = Order.of(graph), random.Random(seed)
    descendants = order.descendants()
    weights = [_draw(order, descendants, randomness) for _ in range(samples)]
    mean = sum(weights) // samples
    variance = sum((weight - mean) ** 2 for weight in weights) // (samples - 1)
    return Estimate(
        value=(mean + (1 << FRACTION_BITS - 1)) >> FRACTION_BITS,
        error=isqrt(variance // samples) >> FRACTION_BITS,
        samples=samples,
    )


def _draw(order: Order, descendants: list[int], randomness: random.Random) -> int:
    """One sort's weight `Π 1/p_t`, in units of 2^-64."""
    done, ready = 0, order.sources()
    numerator = denominator = 1
    while ready:
        options = members(ready)
        chances = [descendants[node] for node in options]
        node = randomness.choices(options, chances)[0]
        numerator *= sum(chances)
        denominator *= descendants[node]
        done, ready = order.take(node, done, ready)
    return (numerator << FRACTION_BITS) // denominator
