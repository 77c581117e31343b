"""Many graphs as rectangular tensors: padding and masks. The only place where padding exists."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from magnetite.asked import AskedPairs, PaddedPairs
from magnetite.encodings.results import Eigenpairs, NodeEncoding, PairEncoding
from magnetite.graphs import Digraphs
from magnetite.packed import Packed
from magnetite.shapes import MULTIPLE, Shape
from magnetite.slots import PaddedEigenpairs, Slots

__all__ = ["MULTIPLE", "Batch", "PaddedEigenpairs", "PaddedPairs", "Shape", "pad", "pad_several"]

NAMES: dict[type[Packed], str] = {Eigenpairs: "eigenpairs", NodeEncoding: "nodes", PairEncoding: "pairs"}
"""The names of encodings that are given without one."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Graphs in slots, with masks that say which slots are filled.

    `edges` hold rows of the flattened slots, `graph · n + node`, so that messages are one gather and one scatter; those
    that `edge_mask` leaves out point anywhere. Other empty slots hold zeros. `encodings` are found by name, and so is
    everything else that was given to `pad` by name. `asked` are the pairs of nodes that a `PairHead` answers for; where
    there is none it answers for all. `total` is that of its `Shape`.
    """

    sizes: Int[Tensor, " b"]
    mask: Bool[Tensor, "b n"]
    edges: Int[Tensor, "2 m"]
    edge_mask: Bool[Tensor, " m"]
    edge_weight: Float[Tensor, " m"]
    node_features: Mapping[str, Shaped[Tensor, "b n ..."]]
    edge_features: Mapping[str, Shaped[Tensor, "m ..."]]
    graph_features: Mapping[str, Shaped[Tensor, "b ..."]]
    encodings: Mapping[str, Any]
    asked: PaddedPairs | None = None
    total: int = 0

    def __len__(self) -> int:
        return self.sizes.numel()

    def __repr__(self) -> str:
        return f"Batch({len(self)} graphs, {self.mask.shape[1]} slots, {', '.join(self.encodings) or 'no encodings'})"

    @property
    def device(self) -> torch.device:
        """The device that holds the tensors."""
        return self.mask.device

    @property
    def graph_mask(self) -> Bool[Tensor, " b"]:
        """Which graphs are real: a batch of fixed size may end in empty ones."""
        return self.sizes > 0

    def encoding(self, name: str) -> Any:
        """The encoding of this name.

        >>> pad(Digraphs.from_edges([[0], [1]])).encoding("eigenpairs")
        Traceback (most recent call last):
        ValueError: the batch holds no encoding 'eigenpairs' (it holds none): pad(graphs, eigenpairs=…)
        """
        if name not in self.encodings:
            known = ", ".join(self.encodings) or "none"
            raise ValueError(f"the batch holds no encoding {name!r} (it holds {known}): pad(graphs, {name}=…)")
        return self.encodings[name]

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "Batch":
        """The same batch on `device`."""
        return self.map(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def map(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        """The same batch with every tensor changed."""
        return _map(self, change)

    def tensors(self) -> list[Tensor]:
        """Every tensor, in the same order for all batches with the same features and encodings."""
        found: list[Tensor] = []
        _map(self, lambda tensor: found.append(tensor) or tensor)
        return found

    def degrees(self) -> Float[Tensor, "b n"]:
        """Number of edges at each node, either way; what is repeated counts again."""
        ones = self.edge_mask.float()
        flat = torch.zeros(self.mask.numel(), device=self.device)
        return flat.index_add(0, self.edges[0], ones).index_add(0, self.edges[1], ones).view(self.mask.shape)

    def adjacency(self) -> Float[Tensor, "b n n"]:
        """`A[g, u, v] = w` in single precision; repeated edges are summed, empty slots have none.

        >>> pad(Digraphs.from_edges([[0], [1]], num_nodes=2)).adjacency()[0, :2, :2].tolist()
        [[0.0, 1.0], [0.0, 0.0]]
        """
        count, slots = self.mask.shape
        source, target = self.edges
        flat = torch.zeros(count * slots * slots, device=self.device)
        flat = flat.index_add(0, source * slots + target % slots, self.edge_weight * self.edge_mask)
        return flat.view(count, slots, slots)


def pad(
    graphs: Digraphs,
    *encodings: Packed,
    device: torch.device | str | None = None,
    shape: Shape | None = None,
    ids: Int[Tensor, " chosen"] | None = None,
    asked: AskedPairs | None = None,
    **named: Packed,
) -> Batch:
    """Put graphs and what belongs to them into slots: `out[g, i] = rows[node_ptr[g] + i]`, empty where `i ≥ n_g`.

    An encoding without a name is known by its kind: eigenpairs, nodes or pairs. `ids` choose some of the graphs;
    `shape` fixes the slots, for kernels compiled once, and fills up with empty graphs. Nothing waits for a GPU where
    both are given. `asked` pairs of nodes stand one after the other, graph after graph.

    >>> from magnetite.encodings import MagneticLaplacian
    >>> graphs = Digraphs.from_edges([torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0], [1]])])
    >>> batch = pad(graphs, MagneticLaplacian(k=2)(graphs))
    >>> batch, batch.mask.sum(1).tolist(), batch.encoding("eigenpairs").vectors.shape
    (Batch(2 graphs, 8 slots, eigenpairs), [3, 2], torch.Size([2, 8, 2, 2]))
    """
    parts = {**_by_kind(encodings), **named}
    _check_lengths(graphs, parts if asked is None else {**parts, "asked": asked})
    if device is not None:
        graphs, parts = graphs.to(device), {name: part.to(device) for name, part in parts.items()}
        asked = None if asked is None else asked.to(device)
    if ids is None:
        ids = torch.arange(len(graphs), device=graphs.device)
    if shape is None:
        _check_ids(ids, len(graphs))
    ids = torch.where(ids < 0, ids + len(graphs), ids)  # counted from the end, as everywhere
    return pad_several(graphs, ids, [shape or Shape.of(graphs, ids, asked)], parts, asked)[0]


def _check_ids(ids: Int[Tensor, " chosen"], graphs: int) -> None:
    """Refuse what no shape can be found for."""
    if not ids.numel():
        raise ValueError(f"none of {graphs} graphs is chosen, so no shape is known: choose one, or give shape=Shape(…)")
    wrong = ids[(ids < -graphs) | (ids >= graphs)]
    if wrong.numel():
        raise IndexError(f"there is no graph {int(wrong[0])}: ids go from 0 to {graphs - 1}, or from -{graphs} to -1")


def pad_several(
    graphs: Digraphs,
    ids: Int[Tensor, " chosen"],
    shapes: Sequence[Shape],
    parts: Mapping[str, Packed],
    asked: AskedPairs | None = None,
) -> list[Batch]:
    """Put the chosen graphs into batches of these shapes, one after the other, at the cost of one: `pad` of each.

    >>> graphs = Digraphs.from_edges([torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0], [1]])])
    >>> pad_several(graphs, torch.tensor([1, 0, 1]), [Shape(1, 8, 8), Shape(2, 16, 8)], {})
    [Batch(1 graphs, 8 slots, no encodings), Batch(2 graphs, 16 slots, no encodings)]
    """
    slots = Slots(graphs, ids, shapes)
    columns = (
        slots.sizes(),
        slots.mask(),
        slots.edges(graphs.edges),
        slots.filled_edges(),
        slots.edge_weight(graphs),
        _each(graphs.node_features, slots.node_rows, len(shapes)),
        _each(graphs.edge_features, slots.edge_rows, len(shapes)),
        _each(graphs.graph_features, slots.graph_rows, len(shapes)),
        _each(parts, slots.encoding, len(shapes)),
        [None] * len(shapes) if asked is None else slots.asked(asked),
        [shape.total for shape in shapes],
    )
    return [Batch(*row) for row in zip(*columns, strict=True)]


def _each(named: Mapping[str, Any], place: Callable[[Any], list[Any]], batches: int) -> list[dict[str, Any]]:
    """What is placed by name, for each batch."""
    placed = {name: place(part) for name, part in named.items()}
    return [{name: parts[number] for name, parts in placed.items()} for number in range(batches)]


def _by_kind(encodings: tuple[Packed, ...]) -> dict[str, Packed]:
    parts: dict[str, Packed] = {}
    for part in encodings:
        if not isinstance(part, Packed):
            raise TypeError(f"{part!r} is no result of an encoding: give encoding(graphs), not the encoding itself")
        name = NAMES.get(type(part))
        if name is None:
            raise TypeError(f"{type(part).__name__} has no name of its own: give it by keyword, pad(graphs, name=…)")
        if name in parts:
            raise ValueError(f"two encodings are both known as {name!r}: name them, pad(graphs, first=…, second=…)")
        parts[name] = part
    return parts


def _check_lengths(graphs: Digraphs, parts: Mapping[str, Packed]) -> None:
    for name, part in parts.items():
        if part.node_ptr is graphs.node_ptr:
            continue
        if len(part) != len(graphs) or not torch.equal(part.node_ptr.cpu(), graphs.node_ptr.cpu()):
            raise ValueError(f"{name} belongs to other graphs ({part}, not {graphs}): encode these graphs")


def _map(item: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Apply `change` to every tensor of nested mappings and dataclasses."""
    if isinstance(item, Tensor):
        return change(item)
    if isinstance(item, Mapping):
        return {name: _map(part, change) for name, part in item.items()}
    if is_dataclass(item) and not isinstance(item, type):
        return type(item)(**{field.name: _map(getattr(item, field.name), change) for field in fields(item)})
    return item
