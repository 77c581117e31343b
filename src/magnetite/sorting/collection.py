"""SortingNetworks: many networks packed end to end; drawing them, checking them, making graphs of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from magnetite.graphs import Digraphs
from magnetite.linalg.counter import derive
from magnetite.linalg.threads import spread
from magnetite.packed import Axis, Packed, starts
from magnetite.sorting.networks import LONGEST_CHECK, SortingNetwork, kernels

MOST_COMPARATORS = 512
"""A network that needs more is given up and drawn anew."""

LONGEST_DRAW = 20
"""Beyond, hardly any network is complete within 512 comparators."""

SPAN = 512
"""Networks that a thread works on at once."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SortingNetworks(Packed):
    """Many sorting networks; indexing with a number gives a `SortingNetwork`, other indices give a collection.

    `wires` has the comparators of all networks end to end, those of network `i` from `node_ptr[i]` on.

    >>> nets = generate(1000, lengths=range(7, 12), seed=0)
    >>> nets
    SortingNetworks(1000 networks, 70709 comparators)
    >>> bool(nets.is_correct().all()), bool(nets.without_last().is_correct().any())
    (True, False)
    """

    lengths: Int[Tensor, " networks"]
    wires: Int[Tensor, "comparators 2"]

    axes: ClassVar[dict[str, tuple[Axis, int]]] = {"lengths": ("graph", 0), "wires": ("node", 0)}

    def __repr__(self) -> str:
        return f"SortingNetworks({len(self)} networks, {self.wires.shape[0]} comparators)"

    def one(self, position: int) -> SortingNetwork:
        """One network."""
        begin, end = self.node_ptr[position : position + 2].tolist()
        return SortingNetwork(
            int(self.lengths[position]), [(low, high) for low, high in self.wires[begin:end].tolist()]
        )

    @classmethod
    def from_networks(cls, networks: Iterable[SortingNetwork]) -> "SortingNetworks":
        """Pack single networks.

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
        """Whether each network sorts all inputs."""
        if len(self) and int(self.lengths.max()) > LONGEST_CHECK:
            raise ValueError(
                f"a network of length {int(self.lengths.max())} is too long to check: {LONGEST_CHECK} at most"
            )
        correct = np.empty(len(self), np.bool_)
        wires, pointer, lengths = self._arrays()

        def work(start: int, stop: int) -> None:
            kernels().check(wires, pointer[start : stop + 1], lengths[start:stop], correct[start:stop])

        spread(work, len(self), SPAN)
        return torch.from_numpy(correct)

    def reverse(self) -> "SortingNetworks":
        """Each network's comparators in reverse order.

        >>> SortingNetworks.from_networks([SortingNetwork(3, [(0, 2), (0, 1), (1, 2)])]).reverse()[0].comparators
        ((1, 2), (0, 1), (0, 2))
        """
        rows = torch.arange(self.wires.shape[0])
        ends = torch.repeat_interleave(self.node_ptr[:-1] + self.node_ptr[1:] - 1, self.sizes)
        return self._trusted(node_ptr=self.node_ptr, lengths=self.lengths, wires=_rows(self.wires, ends - rows))

    def without_last(self) -> "SortingNetworks":
        """Each network less its last comparator: the twins of drawn networks, which are incorrect."""
        kept = torch.ones(self.wires.shape[0], dtype=torch.bool)
        kept[self.node_ptr[1:] - 1] = False
        return self._trusted(node_ptr=starts(self.sizes - 1), lengths=self.lengths, wires=_rows(self.wires, kept))

    def to_digraphs(self) -> Digraphs:
        """The networks' graphs: a node a comparator, an edge from the last comparator on each wire.

        Node features `wires`, graph features `length` and `label` (1 if the network sorts). Two comparators that follow
        each other on both wires are joined by two edges.

        >>> graphs = generate(10, lengths=[5], seed=0).to_digraphs()
        >>> graphs.graph_features["label"].tolist()
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
        """
        if bool((self.sizes == 0).any()):
            empty = int((self.sizes == 0).nonzero()[0])
            raise ValueError(f"network {empty} has no comparators and so no graph: leave it out")
        edges, edge_ptr = self._edges()
        return Digraphs.from_tensors(
            {
                "node_ptr": self.node_ptr,
                "edges": edges,
                "edge_ptr": edge_ptr,
                "node_features/wires": self.wires,
                "graph_features/length": self.lengths,
                "graph_features/label": self.is_correct().long(),
            }
        )

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


def generate(count: int, lengths: Iterable[int], seed: int, start: int = 0) -> SortingNetworks:
    """Draw correct networks: numbers `start … start + count − 1` of the endless sequence that belongs to the seed.

    A length is drawn from `lengths`; then, until all inputs are sorted, a pair of wires that are out of place for some
    input, but not the pair just drawn. A network beyond 512 comparators is drawn anew. The result is the same on any
    number of threads, and `generate(n, …)` begins with `generate(m, …)` for `m < n`.

    >>> generate(3, lengths=[3], seed=0)[1].comparators
    ((1, 2), (0, 2), (0, 1))
    """
    choices = np.array(sorted(set(lengths)), dtype=np.int64)
    if count < 0 or start < 0:
        raise ValueError(f"count={count}, start={start} are no numbers of networks: give integers ≥ 0")
    if not choices.size or choices[0] < 2 or choices[-1] > LONGEST_DRAW:
        raise ValueError(f"lengths={choices.tolist()} cannot be drawn: give lengths from 2 to {LONGEST_DRAW}")
    key = np.uint64(derive(seed, 0))
    tables = kernels().tables(choices)

    def work(begin: int, end: int) -> tuple[np.ndarray, ...]:
        return kernels().generate(key, start + begin, end - begin, choices, tables, MOST_COMPARATORS)

    parts = spread(work, count, SPAN) or [kernels().generate(key, 0, 0, choices, tables, MOST_COMPARATORS)]
    wires, counts, drawn = (torch.from_numpy(np.concatenate(column)) for column in zip(*parts, strict=True))
    return SortingNetworks._trusted(node_ptr=starts(counts), lengths=drawn, wires=wires)


def _rows(wires: Int[Tensor, "comparators 2"], index: Shaped[Tensor, " chosen"]) -> Int[Tensor, "rows 2"]:
    """`wires[index]`, some four times as fast: a comparator's two wires are moved as one number."""
    return wires.contiguous().view(torch.int32).squeeze(1)[index].unsqueeze(1).view(torch.int16)
