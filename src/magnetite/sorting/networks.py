"""SortingNetwork, a frozen list of comparators, and SortingNetworks, many of them packed in one object."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from magnetite.graphs import Digraphs
from magnetite.io.storage import read_json, write_json
from magnetite.linalg.threads import spread
from magnetite.packed import Axis, Dtypes, Packed, first_outside, starts
from magnetite.sorting import drawing, topological_sorts

Comparator = tuple[int, int]

LONGEST_CHECK = 32
"""Length of the longest networks that are checked; all 2^32 inputs take about ten seconds."""

SPAN = 512
"""Number of networks that a thread processes at once."""


def kernels() -> ModuleType:
    """The compiled loops, imported on first use because numba is slow to load."""
    from magnetite.kernels.cpu import sorting

    return sorting


@dataclass(frozen=True)
class SortingNetwork:
    """A network of comparators, applied one after the other.

    Args:
        length: Number of wires.
        comparators: Pairs of wires; `(i, j)` puts the smaller value on wire `i` and the larger one on wire `j`.

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
            raise ValueError(f"length must be a positive integer, got {self.length}")
        pairs = tuple(_pair(given, self.length) for given in self.comparators)
        object.__setattr__(self, "comparators", pairs)

    def __len__(self) -> int:
        return len(self.comparators)

    def is_correct(self) -> bool:
        """Whether the network sorts every input: it checks all `2^length` inputs of zeros and ones (0-1 principle)."""
        if self.length > LONGEST_CHECK:
            raise ValueError(
                f"a network of length {self.length} has 2^{self.length} inputs to check: "
                f"only lengths up to {LONGEST_CHECK} can be checked"
            )
        state = np.empty((self.length, kernels().BLOCK), np.uint64)
        wires = np.array(self.comparators, dtype=np.int16).reshape(-1, 2)
        return bool(kernels().sorts_all(wires, self.length, state))

    def sort(self, values: Iterable[Any]) -> list[Any]:
        """Apply the network to values.

        Args:
            values: One value per wire.

        >>> SortingNetwork(2, [(0, 1)]).sort([5, 3])
        [3, 5]
        """
        wires = list(values)
        if len(wires) != self.length:
            raise ValueError(f"a network of length {self.length} needs one value per wire, got {len(wires)}")
        for low, high in self.comparators:
            wires[low], wires[high] = sorted((wires[low], wires[high]))
        return wires

    def reverse(self) -> "SortingNetwork":
        """The comparators in reverse order, which reverses every edge of the graph."""
        return SortingNetwork(self.length, self.comparators[::-1])

    def without_last(self) -> "SortingNetwork":
        """The network without its last comparator."""
        return SortingNetwork(self.length, self.comparators[:-1])

    def to_digraphs(self) -> Digraphs:
        """The graph: one node per comparator, an edge from each comparator to the next one on each of its wires.

        >>> SortingNetwork(3, [(0, 2), (0, 1), (1, 2)]).to_digraphs().edges.tolist()
        [[0, 1, 0], [1, 2, 2]]
        """
        return SortingNetworks.from_networks([self]).to_digraphs()

    def topological_sorts(self, max_states: int = topological_sorts.MAX_STATES) -> int:
        """Exact number of orders of the comparators that give the same graph.

        Args:
            max_states: Memory limit, see `count_topological_sorts`.

        >>> SortingNetwork(4, [(0, 1), (2, 3), (0, 2)]).topological_sorts()
        2
        """
        return topological_sorts.count_topological_sorts(self.to_digraphs(), max_states)

    def layers(self) -> list[list[Comparator]]:
        """The comparators in parallel steps, each in the earliest step possible.

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
        """The network drawn in text characters."""
        return drawing.ascii_art(self.length, self.layers())

    def to_svg(self) -> str:
        """The network as an SVG image."""
        return drawing.svg(self.length, self.layers())

    def to_dict(self) -> dict[str, Any]:
        """The network as plain lists, as in a JSON file.

        >>> SortingNetwork(2, [(0, 1)]).to_dict()
        {'length': 2, 'comparators': [[0, 1]]}
        """
        return {"length": self.length, "comparators": [list(pair) for pair in self.comparators]}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "SortingNetwork":
        """A network from the result of `to_dict`."""
        shape = {name: type(value) for name, value in content.items()}
        if shape != {"length": int, "comparators": list}:
            raise ValueError(
                f'expected a network such as {{"length": 3, "comparators": [[0, 2], …]}}, got {content!r:.60}'
            )
        return cls(content["length"], [_pair(given, content["length"]) for given in content["comparators"]])

    def save(self, path: str | Path) -> None:
        """Write the network as JSON, atomically."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> "SortingNetwork":
        """Read a network written by `save`."""
        return cls.from_dict(read_json(path, "sorting network", "write it with SortingNetwork.save"))


@dataclass(frozen=True, eq=False, kw_only=True)
class SortingNetworks(Packed):
    """Many sorting networks, packed; an integer index returns a `SortingNetwork`, other indices return a collection.

    Args:
        node_ptr: Where the comparators of each network begin.
        lengths: Number of wires per network.
        wires: The packed comparators of all networks; those of network `i` start at `node_ptr[i]`.

    >>> from magnetite.sorting import generate
    >>> nets = generate(1000, lengths=range(7, 12), seed=0)
    >>> nets
    SortingNetworks(1000 networks, 70709 comparators)
    >>> bool(nets.is_correct().all()), bool(nets.without_last().is_correct().any())
    (True, False)
    """

    lengths: Int[Tensor, " networks"]
    wires: Int[Tensor, "comparators 2"]

    axes: ClassVar[dict[str, tuple[Axis, int]]] = {"lengths": ("graph", 0), "wires": ("node", 0)}
    dtypes: ClassVar[dict[str, Dtypes]] = {"lengths": (torch.int64,), "wires": (torch.int16,)}

    def check(self) -> None:
        """Raise a `ValueError` unless every comparator has two different wires of its network."""
        super().check()
        if self.lengths.ndim != 1 or bool((self.lengths < 1).any()):
            raise ValueError("lengths must have shape [networks] and be positive")
        if self.wires.ndim != 2 or self.wires.shape[1] != 2:
            raise ValueError(f"wires must have shape [comparators, 2], got {list(self.wires.shape)}")
        wrong = first_outside(self.wires.T, self.node_ptr, self.lengths)
        if wrong is None:
            same = (self.wires[:, 0] == self.wires[:, 1]).nonzero()
            wrong = int(same[0]) if same.numel() else None
        if wrong is not None:
            raise ValueError(f"comparator {wrong} must have two different wires, got {self.wires[wrong].tolist()}")

    def __repr__(self) -> str:
        return f"SortingNetworks({len(self)} networks, {self.wires.shape[0]} comparators)"

    def one(self, position: int) -> SortingNetwork:
        """The network at a position."""
        begin, end = self.node_ptr[position : position + 2].tolist()
        return SortingNetwork(
            int(self.lengths[position]), [(low, high) for low, high in self.wires[begin:end].tolist()]
        )

    @classmethod
    def from_networks(cls, networks: Iterable[SortingNetwork]) -> "SortingNetworks":
        """Pack single networks.

        Args:
            networks: The networks.

        >>> SortingNetworks.from_networks([SortingNetwork(2, [(0, 1)])])[0]
        SortingNetwork(length=2, comparators=((0, 1),))
        """
        networks = list(networks)
        pairs = [pair for network in networks for pair in network.comparators]
        return cls(
            node_ptr=starts(torch.tensor([len(network) for network in networks], dtype=torch.long)),
            lengths=torch.tensor([network.length for network in networks], dtype=torch.long),
            wires=torch.tensor(pairs, dtype=torch.int16).reshape(-1, 2),
        )

    def is_correct(self) -> Bool[Tensor, " networks"]:
        """Whether each network sorts every input."""
        if len(self) and int(self.lengths.max()) > LONGEST_CHECK:
            raise ValueError(f"only lengths up to {LONGEST_CHECK} can be checked, got {int(self.lengths.max())}")
        correct = np.empty(len(self), np.bool_)
        wires, pointer, lengths = self._arrays()

        def work(start: int, stop: int) -> None:
            kernels().check(wires, pointer[start : stop + 1], lengths[start:stop], correct[start:stop])

        spread(work, len(self), SPAN)
        return torch.from_numpy(correct)

    def sorts(self, inputs: Bool[Tensor, "networks inputs wires"]) -> Bool[Tensor, "networks inputs"]:
        """Whether each network sorts each of its own inputs of zeros and ones.

        Args:
            inputs: The values on the wires; those beyond the length of a network are not read.

        >>> networks = SortingNetworks.from_networks([SortingNetwork(3, [(0, 1), (1, 2)])])
        >>> networks.sorts(torch.tensor([[[1, 0, 0], [1, 1, 0]]]).bool())
        tensor([[ True, False]])
        """
        count, longest = len(self), max(int(self.lengths.max()), 1) if len(self) else 0
        if inputs.ndim != 3 or inputs.shape[0] != count or inputs.shape[2] < longest or inputs.dtype != torch.bool:
            raise ValueError(
                f"inputs must be a bool tensor [{count}, inputs, {longest}], "
                f"got {str(inputs.dtype).removeprefix('torch.')} {list(inputs.shape)}"
            )
        packed = np.packbits(inputs.mT.cpu().numpy(), axis=2, bitorder="little")
        words = -(-inputs.shape[1] // 64)
        padded = np.zeros((count, inputs.shape[2], 8 * words), np.uint8)
        padded[:, :, : packed.shape[2]] = packed
        given, failed = padded.view(np.uint64), np.empty((count, words), np.uint64)
        wires, pointer, lengths = self._arrays()

        def work(start: int, stop: int) -> None:
            kernels().run(wires, pointer[start : stop + 1], lengths[start:stop], given[start:stop], failed[start:stop])

        spread(work, count, SPAN)
        bits = np.unpackbits(failed.view(np.uint8), axis=1, bitorder="little", count=inputs.shape[1])
        return torch.from_numpy(bits == 0)

    def reverse(self) -> "SortingNetworks":
        """The comparators of each network in reverse order.

        >>> SortingNetworks.from_networks([SortingNetwork(3, [(0, 2), (0, 1), (1, 2)])]).reverse()[0].comparators
        ((1, 2), (0, 1), (0, 2))
        """
        positions = torch.arange(self.wires.shape[0])
        ends = torch.repeat_interleave(self.node_ptr[:-1] + self.node_ptr[1:] - 1, self.sizes)
        return self._trusted(node_ptr=self.node_ptr, lengths=self.lengths, wires=_select(self.wires, ends - positions))

    def without_last(self) -> "SortingNetworks":
        """Each network without its last comparator; those of generated networks are incorrect."""
        kept = torch.ones(self.wires.shape[0], dtype=torch.bool)
        kept[self.node_ptr[1:] - 1] = False
        return self._trusted(node_ptr=starts(self.sizes - 1), lengths=self.lengths, wires=_select(self.wires, kept))

    def to_digraphs(self, ports: bool = False) -> Digraphs:
        """The graphs: one node per comparator, an edge from each comparator to the next one on each of its wires.

        Node features: `wires`. Graph features: `length`, and `label`, 1 if the network is correct. Two comparators that
        follow each other on both wires are joined by two edges.

        Args:
            ports: Whether edges have the feature `ports`: which output of the source an edge carries, 0 for the smaller
                value and 1 for the larger, and which input of the target it enters.

        >>> from magnetite.sorting import generate
        >>> graphs = generate(10, lengths=[5], seed=0).to_digraphs()
        >>> graphs.graph_features["label"].tolist()
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
        """
        if bool((self.sizes == 0).any()):
            empty = int((self.sizes == 0).nonzero()[0])
            raise ValueError(f"network {empty} has no comparators and therefore no graph: remove it")
        edges, edge_ptr = self._edges()
        return Digraphs.from_tensors(
            validate=False,
            named={
                "node_ptr": self.node_ptr,
                "edges": edges,
                "edge_ptr": edge_ptr,
                "node_features/wires": self.wires,
                "graph_features/length": self.lengths,
                "graph_features/label": self.is_correct().long(),
                **({"edge_features/ports": self._ports(edge_ptr)} if ports else {}),
            },
        )

    def _ports(self, edge_ptr: Int[Tensor, " starts"]) -> Int[Tensor, "edges 2"]:
        wires, pointer, lengths = self._arrays()
        ports = torch.empty((int(edge_ptr[-1]), 2), dtype=torch.int8)
        if len(self):
            kernels().fill_ports(wires, pointer, lengths, edge_ptr.numpy(), ports.numpy())
        return ports

    def _edges(self) -> tuple[Int[Tensor, "2 edges"], Int[Tensor, " starts"]]:
        wires, pointer, lengths = self._arrays()
        counts = np.empty(len(self), np.int64)

        def count(start: int, stop: int) -> None:
            kernels().count_edges(wires, pointer[start : stop + 1], lengths[start:stop], counts[start:stop])

        spread(count, len(self), SPAN)
        edge_ptr = starts(torch.from_numpy(counts))
        edges = torch.empty((2, int(edge_ptr[-1])), dtype=torch.int32)
        target, edge_pointer = edges.numpy(), edge_ptr.numpy()

        def fill(start: int, stop: int) -> None:
            kernels().fill_edges(
                wires, pointer[start : stop + 1], lengths[start:stop], edge_pointer[start:stop], target
            )

        spread(fill, len(self), SPAN)
        return edges, edge_ptr

    def _arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.wires.numpy(), self.node_ptr.numpy(), self.lengths.numpy()


def _pair(given: Any, length: int) -> Comparator:
    try:
        low, high = (int(wire) for wire in given)
    except (TypeError, ValueError):
        raise ValueError(f"a comparator must be two wires, such as (0, 1), got {given!r}") from None
    if low == high or not (0 <= low < length and 0 <= high < length):
        raise ValueError(f"a comparator must have two different wires from 0 to {length - 1}, got {given!r}")
    return low, high


def _select(wires: Int[Tensor, "comparators 2"], index: Shaped[Tensor, " chosen"]) -> Int[Tensor, "selected 2"]:
    """`wires[index]`, about four times as fast: the two wires of a comparator are moved as one integer."""
    return wires.contiguous().view(torch.int32).squeeze(1)[index].unsqueeze(1).view(torch.int16)
