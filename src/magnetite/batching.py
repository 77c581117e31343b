"""Many graphs as rectangular tensors: padding and masks. The only place where padding exists."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from magnetite.asked import AskedPairs, PaddedPairs, columns
from magnetite.encodings.results import Eigenpairs, NodeEncoding, PairEncoding
from magnetite.graphs import Digraphs
from magnetite.packed import Packed, counts_of

MULTIPLE = 8
"""Padded widths are multiples of this, as the fused attention kernels like them."""

NAMES: dict[type[Packed], str] = {Eigenpairs: "eigenpairs", NodeEncoding: "nodes", PairEncoding: "pairs"}
"""The names of encodings that are given without one."""


@dataclass(frozen=True)
class Shape:
    """Graphs of a batch, slots for the nodes and for the edges of each, and slots for the asked pairs of all together.

    At least one slot for a node stays empty, at the end: a model may put a token of its own there.

    >>> Shape.of(Digraphs.from_edges([[0, 1], [1, 2]]))
    Shape(graphs=1, nodes=8, edges=8, pairs=0)
    """

    graphs: int
    nodes: int
    edges: int
    pairs: int = 0

    @classmethod
    def of(
        cls, graphs: Digraphs, ids: Int[Tensor, " chosen"] | None = None, asked: AskedPairs | None = None
    ) -> "Shape":
        """The smallest shape that holds the chosen graphs, all of them if none are named, and their asked pairs."""
        chosen = slice(None) if ids is None else ids
        sizes, degrees = graphs.sizes[chosen], graphs.edge_ptr.diff()[chosen]
        pairs = sizes.new_zeros(()) if asked is None else asked.counts[chosen].sum()
        most = torch.stack([sizes.max() + 1, degrees.max().clamp(min=1), pairs]).tolist()
        return cls(sizes.numel(), *(-(-int(count) // MULTIPLE) * MULTIPLE for count in most))


@dataclass(frozen=True, eq=False)
class PaddedEigenpairs:
    """Eigenpairs in slots: real and imaginary parts on the last axis of `vectors`; several potentials on axis `Q`."""

    values: Float[Tensor, "b *Q k"]
    vectors: Float[Tensor, "b n *Q k parts"]
    mask: Bool[Tensor, "b *Q k"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Graphs in slots, with masks that say which slots are filled.

    `edges` hold rows of the flattened slots, `graph · n + node`, so that messages are one gather and one scatter; those
    that `edge_mask` leaves out point anywhere. Other empty slots hold zeros. `encodings` are found by name, and so is
    everything else that was given to `pad` by name. `asked` are the pairs of nodes that a `PairHead` answers for; where
    there is none it answers for all.
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
    slots = _Slots(graphs, ids, shape or Shape.of(graphs, ids, asked))
    return Batch(
        sizes=slots.sizes,
        mask=slots.node_mask,
        edges=slots.edges(graphs.edges),
        edge_mask=slots.edge_mask.flatten(),
        edge_weight=slots.edge_rows(graphs.edge_weight).float(),
        node_features={name: slots.node_rows(rows) for name, rows in graphs.node_features.items()},
        edge_features={name: slots.edge_rows(rows) for name, rows in graphs.edge_features.items()},
        graph_features={name: slots.graph_rows(rows) for name, rows in graphs.graph_features.items()},
        encodings={name: slots.encoding(part) for name, part in parts.items()},
        asked=None if asked is None else slots.asked(asked),
    )


class _Slots:
    """Where the rows of the chosen graphs go: gathers, without a loop over graphs and without waiting for a GPU."""

    def __init__(self, graphs: Digraphs, ids: Int[Tensor, " chosen"], shape: Shape):
        if ids.numel() > shape.graphs:
            raise ValueError(f"{ids.numel()} graphs do not fit into {shape}: give a larger shape")
        self.ids = torch.nn.functional.pad(ids, (0, shape.graphs - ids.numel()))
        self.real = torch.arange(shape.graphs, device=ids.device) < ids.numel()
        self.sizes = counts_of(graphs.node_ptr, self.ids) * self.real
        degrees = counts_of(graphs.edge_ptr, self.ids) * self.real
        _check_fit(self.sizes, degrees, shape)
        self.shape = shape
        self.node = torch.arange(shape.nodes, device=ids.device)
        self.node_mask = self.node < self.sizes[:, None]
        edge = torch.arange(shape.edges, device=ids.device)
        self.edge_mask = edge < degrees[:, None]
        self.node_place = graphs.node_ptr[self.ids, None] + self.node
        self.edge_place = graphs.edge_ptr[self.ids, None] + edge

    def graph_rows(self, rows: Shaped[Tensor, "graphs ..."]) -> Shaped[Tensor, "b ..."]:
        return _gather(rows, self.ids, self.real)

    def node_rows(self, rows: Shaped[Tensor, "nodes ..."], empty: int | float = 0) -> Shaped[Tensor, "b n ..."]:
        return _gather(rows, self.node_place, self.node_mask, empty)

    def edge_rows(self, rows: Shaped[Tensor, "edges ..."]) -> Shaped[Tensor, "m ..."]:
        return _gather(rows, self.edge_place, self.edge_mask).flatten(0, 1)

    def edges(self, edges: Int[Tensor, "2 edges"]) -> Int[Tensor, "2 m"]:
        """Both ends of each edge as rows of the flattened slots. Empty slots point anywhere, each at another row.

        If they all pointed at row 0, thousands of atomic additions of nothing would wait for each other on a GPU.
        """
        first = torch.arange(self.ids.numel(), device=self.ids.device)[:, None] * self.node.numel()
        rows = first + columns(edges, torch.where(self.edge_mask, self.edge_place, 0))
        anywhere = torch.arange(self.edge_mask.numel(), device=self.ids.device) % self.node_mask.numel()
        return torch.where(self.edge_mask.flatten(), rows.flatten(1), anywhere)

    def pair_rows(
        self, pointer: Int[Tensor, " starts"], rows: Shaped[Tensor, "pairs ..."], empty: int | float
    ) -> Shaped[Tensor, "b n n ..."]:
        start = pointer[self.ids, None] + self.node * self.sizes[:, None]
        place = start[..., None] + self.node
        return _gather(rows, place, self.node_mask[:, :, None] & self.node_mask[:, None], empty)

    def asked(self, asked: AskedPairs) -> PaddedPairs:
        count = (counts_of(asked.asked_ptr, self.ids) * self.real).sum()
        _require(
            count <= self.shape.pairs,
            lambda: f"{int(count)} asked pairs do not fit into {self.shape}: give a larger shape",
        )
        return asked.in_slots(self.ids, self.real, self.shape.nodes, self.shape.pairs)

    def encoding(self, part: Any) -> Any:
        if isinstance(part, Eigenpairs):
            vectors = torch.view_as_real(part.vectors) if part.vectors.is_complex() else part.vectors[..., None]
            values, mask = self.graph_rows(part.values), self.graph_rows(part.mask)
            return PaddedEigenpairs(values.float(), self.node_rows(vectors).float(), mask)
        axis, _ = part.axes.get("values", (None, 0))
        if axis == "pair":
            return self.pair_rows(part.pair_ptr, part.values, part.empty)
        if axis == "node" and len(part.axes) == 1:
            return self.node_rows(part.values, part.empty)
        raise TypeError(f"{type(part).__name__} cannot be padded: give eigenpairs, node or pair encodings")


def _gather(
    rows: Shaped[Tensor, "all ..."], place: Int[Tensor, "*slots"], mask: Bool[Tensor, "*slots"], empty: int | float = 0
) -> Shaped[Tensor, "..."]:
    """`rows[place]`, and `empty` where the mask says so."""
    if not rows.shape[0]:
        return rows.new_full((*place.shape, *rows.shape[1:]), empty)
    whole = _whole_rows(rows)
    blank = rows.new_full(rows.shape[1:], empty).view(-1).view(whole.dtype).view(whole.shape[1:])
    chosen = whole[torch.where(mask, place, 0)]
    chosen = torch.where(mask.view(*mask.shape, *[1] * (chosen.ndim - mask.ndim)), chosen, blank)
    return chosen if whole is rows else chosen.view(rows.dtype).view(*place.shape, *rows.shape[1:])


def _whole_rows(rows: Shaped[Tensor, "all ..."]) -> Shaped[Tensor, "all ..."]:
    """Short rows as one number of the same bytes each, as eight halves are one complex number of double precision.

    Numbers are gathered one a thread of a GPU, rows one a block; on the CPU, too, one number is faster than several.
    """
    length, start = rows.shape[1:].numel() * rows.itemsize, rows.storage_offset() * rows.itemsize
    dtype = {4: torch.int32, 8: torch.int64, 16: torch.complex128}.get(length) if rows.ndim > 1 else None
    if dtype is None or rows.requires_grad or not rows.is_contiguous() or start % length or rows.data_ptr() % length:
        return rows
    return rows.view(len(rows), -1).view(dtype).view(-1)


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


def _check_fit(sizes: Int[Tensor, " b"], degrees: Int[Tensor, " b"], shape: Shape) -> None:
    _require(
        (sizes.max() < shape.nodes) & (degrees.max() <= shape.edges),
        lambda: (
            f"a graph of {int(sizes.max())} nodes and {int(degrees.max())} edges at most does not fit into {shape}: "
            "give a larger shape; one slot for a node stays empty"
        ),
    )


def _require(fits: Bool[Tensor, ""], message: Callable[[], str]) -> None:
    if fits.device.type == "cuda":
        torch._assert_async(fits)  # pyright: ignore (private; but looking at it would wait for the GPU)
    elif not fits:
        raise ValueError(message())


def _map(item: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Apply `change` to every tensor of nested mappings and dataclasses."""
    if isinstance(item, Tensor):
        return change(item)
    if isinstance(item, Mapping):
        return {name: _map(part, change) for name, part in item.items()}
    if is_dataclass(item) and not isinstance(item, type):
        return type(item)(**{field.name: _map(getattr(item, field.name), change) for field in fields(item)})
    return item
