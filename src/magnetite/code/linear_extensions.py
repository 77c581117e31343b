"""Linear extensions of a partial order: all orders of a list in which some elements must precede others."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from heapq import heappop, heappush
from math import comb
from operator import or_

from magnetite.graphs import Digraphs
from magnetite.sorting.topological_sorts import PartialOrder, TooManyStates, count_topological_sorts, members

MAX_STATES = 50_000
"""Down-sets held at once by the exact count; it takes some seconds."""


@dataclass(frozen=True)
class LinearExtensions:
    """All orders of `len(before)` elements, in lexicographic order, so that the given order comes first.

    Args:
        before: Bit `i` of `before[j]` is set where element `i` must precede element `j`; only `i < j` is allowed.

    >>> orders = LinearExtensions((0, 0b1, 0))
    >>> orders.count, list(orders)
    (3, [(0, 1, 2), (0, 2, 1), (2, 0, 1)])
    """

    before: tuple[int, ...]

    @property
    def is_fixed(self) -> bool:
        """Whether there is only one order: each element must precede the next."""
        return all(needed >> position & 1 for position, needed in enumerate(self.before[1:]))

    @cached_property
    def count(self) -> int:
        """Exact number of orders."""
        return _count(self.before)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        order = self._order
        chosen: list[int] = []
        levels = [(0, order.sources(), iter(members(order.sources())))]
        while levels:
            done, ready, options = levels[-1]
            node = next(options, None)
            if node is None:
                levels.pop()
                if chosen:
                    chosen.pop()
                continue
            chosen.append(node)
            if len(chosen) == len(self.before):
                yield tuple(chosen)
                chosen.pop()
            else:
                done, ready = order.take(node, done, ready)
                levels.append((done, ready, iter(members(ready))))

    def sample(self, randomness: random.Random) -> tuple[int, ...]:
        """A random order, each element chosen from those that may come next; not all orders are equally likely.

        Args:
            randomness: The random number generator.
        """
        order, chosen = self._order, []
        done, ready = 0, order.sources()
        while ready:
            chosen.append(randomness.choice(members(ready)))
            done, ready = order.take(chosen[-1], done, ready)
        return tuple(chosen)

    def smallest(self, keys: Sequence[int]) -> tuple[int, ...]:
        """The order whose keys are lexicographically smallest, a normal form.

        Args:
            keys: One number per element.
        """
        order, chosen = self._order, []
        done, ready = 0, order.sources()
        waiting = [(keys[node], node) for node in members(ready)]
        waiting.sort()
        while waiting:
            node = heappop(waiting)[1]
            chosen.append(node)
            done, after = order.take(node, done, ready)
            for new in members(after & ~ready):
                heappush(waiting, (keys[new], new))
            ready = after
        return tuple(chosen)

    @cached_property
    def _order(self) -> PartialOrder:
        after = [0] * len(self.before)
        for node, needed in enumerate(self.before):
            for other in members(needed):
                after[other] |= 1 << node
        return PartialOrder(self.before, tuple(after))


def _count(before: Sequence[int]) -> int:
    """Series parts multiply, parallel parts also interleave (a binomial), any other part is counted by down-sets."""
    above: list[int] = []  # ancestors
    for needed in before:
        above.append(reduce(or_, [above[node] for node in members(needed)], needed))
    linked = list(above)  # ancestors and descendants
    for node, needed in enumerate(above):
        for other in members(needed):
            linked[other] |= 1 << node
    total, parts = 1, [(1 << len(before)) - 1]
    while parts:
        part = parts.pop()
        pieces = _parallel(part, linked)
        if len(pieces) > 1:
            placed = 0
            for piece in pieces:
                placed += piece.bit_count()
                total *= comb(placed, piece.bit_count())
        else:
            pieces = _series(part, above)
        if len(pieces) > 1:
            parts += pieces
        elif part.bit_count() > 1:
            total *= _count_by_down_sets(members(part), above)
    return total


def _parallel(part: int, linked: Sequence[int]) -> list[int]:
    """The pieces of a part that are pairwise incomparable."""
    pieces = []
    while part:
        piece, fresh = 0, part & -part
        while fresh:
            piece |= fresh
            fresh = reduce(or_, [linked[node] for node in members(fresh)]) & part & ~piece
        pieces.append(piece)
        part &= ~piece
    return pieces


def _series(part: int, above: Sequence[int]) -> list[int]:
    """The pieces of a part each of which wholly precedes the next."""
    nodes = members(part)
    pieces, common, piece = [], part, 0
    for node in reversed(nodes):  # `common`: what precedes everything from `node` on
        common &= above[node]
        piece |= 1 << node
        if not part & ~common & ((1 << node) - 1):
            pieces.append(piece)
            piece = 0
    return pieces


def _count_by_down_sets(nodes: Sequence[int], above: Sequence[int]) -> int:
    index = {node: i for i, node in enumerate(nodes)}
    pairs = [(index[other], i) for node, i in index.items() for other in members(above[node]) if other in index]
    sources, targets = zip(*pairs, strict=True)
    try:
        return count_topological_sorts(Digraphs.from_edges([sources, targets], len(nodes)), MAX_STATES)
    except TooManyStates as error:
        raise ValueError(
            f"{len(nodes)} interdependent statements have too many orders to count exactly: "
            "list some of them with a limit, or use sample"
        ) from error
