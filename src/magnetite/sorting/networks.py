"""SortingNetwork: one network, a frozen list of comparators."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from magnetite.graphs import Digraphs
from magnetite.io.storage import read_json, write_json
from magnetite.sorting import counting, drawing

Comparator = tuple[int, int]

LONGEST_CHECK = 32
"""All 2^32 inputs take some ten seconds; beyond, a check would not end."""


def kernels() -> ModuleType:
    """The compiled loops, imported when first used: numba takes longer to load than all the rest."""
    from magnetite.kernels.cpu import sorting

    return sorting


@dataclass(frozen=True)
class SortingNetwork:
    """Comparators on `length` wires, applied one after the other; `(i, j)` puts the smaller value on wire `i`.

    >>> network = SortingNetwork(length=3, comparators=[(0, 2), (0, 1), (1, 2)])
    >>> network.is_correct(), network.reverse().is_correct()
    (True, False)
    >>> network.sort("cab")
    ['a', 'b', 'c']
    """

    length: int
    comparators: Sequence[Comparator]

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ValueError(f"a network of length {self.length} has no wires: give a length of at least 1")
        pairs = tuple(_pair(given, self.length) for given in self.comparators)
        object.__setattr__(self, "comparators", pairs)

    def __len__(self) -> int:
        return len(self.comparators)

    def is_correct(self) -> bool:
        """Whether the network sorts every input: by the 0-1 principle, all `2^length` inputs of zeros and ones."""
        if self.length > LONGEST_CHECK:
            raise ValueError(
                f"a network of length {self.length} has 2^{self.length} inputs to check: "
                f"lengths up to {LONGEST_CHECK} are checked"
            )
        state = np.empty((self.length, kernels().BLOCK), np.uint64)
        return bool(kernels().sorts_all(self._wires(), self.length, state))

    def sort(self, values: Iterable[Any]) -> list[Any]:
        """What the network makes of `values`.

        >>> SortingNetwork(2, [(0, 1)]).sort([5, 3])
        [3, 5]
        """
        wires = list(values)
        if len(wires) != self.length:
            raise ValueError(f"{len(wires)} values for a network of length {self.length}: give one a wire")
        for low, high in self.comparators:
            wires[low], wires[high] = sorted((wires[low], wires[high]))
        return wires

    def reverse(self) -> "SortingNetwork":
        """The comparators in reverse order: the graph with every edge turned around."""
        return SortingNetwork(self.length, self.comparators[::-1])

    def without_last(self) -> "SortingNetwork":
        """The network less its last comparator."""
        return SortingNetwork(self.length, self.comparators[:-1])

    def to_digraphs(self) -> Digraphs:
        """One node a comparator, an edge from the last comparator on each wire to the next one on that wire.

        >>> SortingNetwork(3, [(0, 2), (0, 1), (1, 2)]).to_digraphs().edges.tolist()
        [[0, 1, 0], [1, 2, 2]]
        """
        from magnetite.sorting.collection import SortingNetworks  # here, since a collection is made of networks

        return SortingNetworks.from_networks([self]).to_digraphs()

    def topological_sorts(self, max_states: int = counting.MAX_STATES) -> int:
        """Exact number of orders of the comparators that give the same graph, see `counting`.

        >>> SortingNetwork(4, [(0, 1), (2, 3), (0, 2)]).topological_sorts()
        2
        """
        return counting.count_topological_sorts(self.to_digraphs(), max_states)

    def layers(self) -> list[list[Comparator]]:
        """The comparators in parallel steps, each in the earliest that its wires allow.

        >>> SortingNetwork(4, [(0, 1), (1, 2), (2, 3), (0, 1)]).layers()
        [[(0, 1)], [(1, 2)], [(2, 3), (0, 1)]]
        """
        free = [0] * self.length
        steps: list[list[Comparator]] = []
        for low, high in self.comparators:
            step = max(free[low], free[high])
            free[low] = free[high] = step + 1
            steps += [[] for _ in range(step + 1 - len(steps))]
            steps[step].append((low, high))
        return steps

    def draw(self) -> str:
        """The usual picture in characters, see `drawing`."""
        return drawing.ascii_art(self.length, self.layers())

    def to_svg(self) -> str:
        """The usual picture as SVG, see `drawing`."""
        return drawing.svg(self.length, self.layers())

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, as they stand in a JSON file.

        >>> SortingNetwork(2, [(0, 1)]).to_dict()
        {'length': 2, 'comparators': [[0, 1]]}
        """
        return {"length": self.length, "comparators": [list(pair) for pair in self.comparators]}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "SortingNetwork":
        """From what `to_dict` gives."""
        shape = {name: type(value) for name, value in content.items()}
        if shape != {"length": int, "comparators": list}:
            raise ValueError(f'{content!r:.60} is no network: expected {{"length": 3, "comparators": [[0, 2], …]}}')
        return cls(content["length"], [_pair(given, content["length"]) for given in content["comparators"]])

    def save(self, path: str | Path) -> None:
        """Write as JSON, whole or not at all."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> "SortingNetwork":
        """Read what `save` wrote."""
        return cls.from_dict(read_json(path, "sorting network", "write it with SortingNetwork.save"))

    def _wires(self) -> np.ndarray:
        return np.array(self.comparators, dtype=np.int16).reshape(-1, 2)


def _pair(given: Any, length: int) -> Comparator:
    try:
        low, high = (int(wire) for wire in given)
    except (TypeError, ValueError):
        raise ValueError(f"{given!r} is no comparator: give two wires, such as (0, 1)") from None
    if low == high or not (0 <= low < length and 0 <= high < length):
        raise ValueError(f"comparator {given!r} needs two different wires of 0…{length - 1}: correct it or the length")
    return low, high
