"""Where rows of packed graphs go in batches of fixed shapes: gathers for all batches at once, without waiting."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from magnetite.asked import AskedPairs, PaddedPairs, columns
from magnetite.encodings.results import Eigenpairs
from magnetite.graphs import Digraphs
from magnetite.packed import counts_of
from magnetite.shapes import Layout, Shape


@dataclass(frozen=True, eq=False)
class PaddedEigenpairs:
    """Eigenpairs in slots: real and imaginary parts on the last axis of `vectors`; several potentials on axis `Q`."""

    values: Float[Tensor, "b *Q k"]
    vectors: Float[Tensor, "b n *Q k parts"]
    mask: Bool[Tensor, "b *Q k"]


class Slots:
    """The slots of batches, and what the rows of the chosen graphs put there; a list of results has one a batch.

    The chosen graphs fill the batches one after the other; the end of the last one may stay empty.
    """

    def __init__(self, graphs: Digraphs, ids: Int[Tensor, " chosen"], shapes: Sequence[Shape]):
        self.shapes = tuple(shapes)
        self.counts = [shape.graphs for shape in shapes]
        if ids.numel() > sum(self.counts):
            raise ValueError(f"{ids.numel()} graphs do not fit into {self._told()}: give a larger shape")
        self.layout = layout = Layout.of(self.shapes, ids.device)
        self.ids = torch.nn.functional.pad(ids, (0, sum(self.counts) - ids.numel()))
        self.real = torch.arange(self.ids.numel(), device=ids.device) < ids.numel()
        self.all_sizes = counts_of(graphs.node_ptr, self.ids) * self.real
        degrees = counts_of(graphs.edge_ptr, self.ids) * self.real
        self._check_fit(degrees)
        self.node_mask = layout.node < self.all_sizes[layout.node_graph]
        self.edge_mask = layout.edge < degrees[layout.edge_graph]
        node_place = graphs.node_ptr[self.ids][layout.node_graph] + layout.node
        edge_place = graphs.edge_ptr[self.ids][layout.edge_graph] + layout.edge
        self.node_place = torch.where(self.node_mask, node_place, 0)
        self.edge_place = torch.where(self.edge_mask, edge_place, 0)

    def sizes(self) -> list[Int[Tensor, " _"]]:
        """Number of nodes of each graph."""
        return list(self.all_sizes.split(self.counts))

    def mask(self) -> list[Bool[Tensor, "_ _"]]:
        """Which slots hold a node."""
        return self._node_slots(self.node_mask)

    def filled_edges(self) -> list[Bool[Tensor, " _"]]:
        """Which slots hold an edge."""
        return self._edge_slots(self.edge_mask)

    def graph_rows(self, rows: Shaped[Tensor, "graphs ..."]) -> list[Shaped[Tensor, "_ ..."]]:
        """Rows of graphs in slots."""
        return list(gather(rows, torch.where(self.real, self.ids, 0), self.real).split(self.counts))

    def node_rows(self, rows: Shaped[Tensor, "nodes ..."], empty: float = 0) -> list[Shaped[Tensor, "_ _ ..."]]:
        """Rows of nodes in slots."""
        return self._node_slots(gather(rows, self.node_place, self.node_mask, empty))

    def edge_rows(self, rows: Shaped[Tensor, "edges ..."]) -> list[Shaped[Tensor, "_ ..."]]:
        """Rows of edges in slots, those of all graphs of a batch in one row."""
        return self._edge_slots(gather(rows, self.edge_place, self.edge_mask))

    def edges(self, edges: Int[Tensor, "2 edges"]) -> list[Int[Tensor, "2 _"]]:
        """Both ends of each edge as rows of the flattened slots. Empty slots point anywhere, each at another row.

        If they all pointed at row 0, thousands of atomic additions of nothing would wait for each other on a GPU.
        """
        rows = self.layout.first[self.layout.edge_graph] + columns(edges, self.edge_place)
        rows = torch.where(self.edge_mask, rows, self.layout.anywhere)
        return list(rows.split([shape.graphs * shape.edges for shape in self.shapes], dim=1))

    def edge_weight(self, graphs: Digraphs) -> list[Float[Tensor, " _"]]:
        """Weights of edges, 1 where none were given."""
        if graphs.weights is None:
            return [mask.float() for mask in self.filled_edges()]
        return [weight.float() for weight in self.edge_rows(graphs.weights)]

    def pair_rows(
        self, pointer: Int[Tensor, " starts"], rows: Shaped[Tensor, "pairs ..."], empty: float
    ) -> list[Shaped[Tensor, "_ _ _ ..."]]:
        """Rows of pairs in slots, source × target."""
        each = zip(self.ids.split(self.counts), self.sizes(), self.mask(), strict=True)
        return [_pair_rows(pointer[ids], sizes, mask, rows, empty) for ids, sizes, mask in each]

    def asked(self, asked: AskedPairs) -> list[PaddedPairs]:
        """Asked pairs in slots."""
        found = []
        for ids, real, shape in zip(
            self.ids.split(self.counts), self.real.split(self.counts), self.shapes, strict=True
        ):
            count = (counts_of(asked.asked_ptr, ids) * real).sum()
            require(count <= shape.pairs, _no_room(count, "asked pairs", "pairs", shape))
            found.append(asked.in_slots(ids, real, shape.nodes, shape.pairs))
        return found

    def encoding(self, part: Any) -> list[Any]:
        """An encoding in slots."""
        if isinstance(part, Eigenpairs):
            vectors = torch.view_as_real(part.vectors) if part.vectors.is_complex() else part.vectors[..., None]
            rows = self.graph_rows(part.values), self.node_rows(vectors), self.graph_rows(part.mask)
            return [PaddedEigenpairs(one.float(), two.float(), mask) for one, two, mask in zip(*rows, strict=True)]
        axis, _ = part.axes.get("values", (None, 0))
        if axis == "pair":
            return self.pair_rows(part.pair_ptr, part.values, part.empty)
        if axis == "node" and len(part.axes) == 1:
            return self.node_rows(part.values, part.empty)
        raise TypeError(f"{type(part).__name__} cannot be padded: give eigenpairs, node or pair encodings")

    def _node_slots(self, rows: Shaped[Tensor, "slots ..."]) -> list[Shaped[Tensor, "_ _ ..."]]:
        parts = rows.split([shape.graphs * shape.nodes for shape in self.shapes])
        return [part.unflatten(0, (shape.graphs, shape.nodes)) for part, shape in zip(parts, self.shapes, strict=True)]

    def _edge_slots(self, rows: Shaped[Tensor, "slots ..."]) -> list[Shaped[Tensor, "_ ..."]]:
        return list(rows.split([shape.graphs * shape.edges for shape in self.shapes]))

    def _check_fit(self, degrees: Int[Tensor, " graphs"]) -> None:
        needed = torch.stack([self.all_sizes + 1, degrees], dim=1)
        require(
            (needed <= self.layout.room).all(),
            lambda: (
                f"a graph of {int(self.all_sizes.max())} nodes and {int(degrees.max())} edges at most does not fit "
                f"into {self._told()}: give a larger shape; one slot for a node stays empty"
            ),
        )
        for sizes, shape in zip(self.sizes(), self.shapes, strict=True):
            if shape.total:
                require(sizes.sum() <= shape.total, _no_room(sizes.sum(), "nodes", "total", shape))

    def _told(self) -> str:
        return ", ".join(map(str, self.shapes))


def _pair_rows(
    start: Int[Tensor, " b"], sizes: Int[Tensor, " b"], mask: Bool[Tensor, "b n"], rows: Tensor, empty: float
) -> Shaped[Tensor, "b n n ..."]:
    node = torch.arange(mask.shape[1], device=mask.device)
    place = (start[:, None] + node * sizes[:, None])[..., None] + node
    both = mask[:, :, None] & mask[:, None]
    return gather(rows, torch.where(both, place, 0), both, empty)


def _no_room(count: Int[Tensor, ""], what: str, option: str, shape: Shape) -> Callable[[], str]:
    return lambda: f"{int(count)} {what} do not fit into {shape}: give at least {option}={int(count)}"


def gather(
    rows: Shaped[Tensor, "all ..."], place: Int[Tensor, "*slots"], mask: Bool[Tensor, "*slots"], empty: int | float = 0
) -> Shaped[Tensor, "..."]:
    """`rows[place]`, and `empty` where the mask says so; there, `place` is any row."""
    if not rows.shape[0]:
        return rows.new_full((*place.shape, *rows.shape[1:]), empty)
    whole = whole_rows(rows)
    blank = rows.new_full(rows.shape[1:], empty).view(-1).view(whole.dtype).view(whole.shape[1:])
    chosen = whole[place]
    chosen = torch.where(mask.view(*mask.shape, *[1] * (chosen.ndim - mask.ndim)), chosen, blank)
    return chosen if whole is rows else chosen.view(rows.dtype).view(*place.shape, *rows.shape[1:])


def whole_rows(rows: Shaped[Tensor, "all ..."]) -> Shaped[Tensor, "all ..."]:
    """Short rows as one number of the same bytes each, as eight halves are one complex number of double precision.

    Numbers are gathered one a thread of a GPU, rows one a block; on the CPU, too, one number is faster than several.
    """
    length, start = rows.shape[1:].numel() * rows.itemsize, rows.storage_offset() * rows.itemsize
    dtype = {4: torch.int32, 8: torch.int64, 16: torch.complex128}.get(length) if rows.ndim > 1 else None
    if dtype is None or rows.requires_grad or not rows.is_contiguous() or start % length or rows.data_ptr() % length:
        return rows
    return rows.view(len(rows), -1).view(dtype).view(-1)


def require(fits: Bool[Tensor, ""], message: Callable[[], str]) -> None:
    """Refuse what does not fit; on a GPU without waiting, and therefore without words."""
    if fits.device.type == "cuda":
        torch._assert_async(fits)  # pyright: ignore (private; but looking at it would wait for the GPU)
    elif not fits:
        raise ValueError(message())
