"""WireRelations: what any two wires of a network have to do with each other, changed by one node after the other."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn import relation_steps
from magnetite.nn.embeddings import Embedding, node_feature
from magnetite.nn.gnn import no_biases
from magnetite.nn.heads import Head
from magnetite.nn.model import GraphModel, Part
from magnetite.nn.positions import PositionEncoder
from magnetite.nn.rows import as_rows, first_rows, joined, per_slot
from magnetite.slots import require


class WireRelations(GraphModel):
    """A vector `R_ab` of `state` numbers for every two wires of a network; its nodes change it one after the other.

    A node with states `x` on wires `i < j` changes what both have to do with every wire `k`:
    `R_ik, R_jk ← N(R + σ(g) ⊙ u)`, `[g, u] = C gelu(M [R_ik, R_jk] + L R_ij + kind_k + D x)`; `kind_k` says if `k`
    is below, between, above, or one of the two. At the end, `max_k gelu(W R_{k,k+1})` is the token that the head reads.
    Nothing depends on how many wires there are, or on their numbers but for their order.

    Nodes act in parallel steps, in each from the first wire on, so that only the graph decides their order; they have
    to be numbered in the order of some run. Their feature `wires` has the two, the graphs' feature `length` the number
    of wires; in training, shapes are fixed, and have room for `wires` of them.

    >>> from magnetite.nn import GraphHead
    >>> from magnetite.sorting import SortingNetwork
    >>> model = WireRelations(32, GraphHead(2), state=8).eval()
    >>> model(SortingNetwork(3, [(0, 2), (0, 1), (1, 2)]).to_digraphs()).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        width: int,
        head: Head,
        position: PositionEncoder | Sequence[PositionEncoder] | None = None,
        embedding: Embedding | None = None,
        state: int = 32,
        wires: int = 16,
    ):
        super().__init__(width, head, position, embedding)
        if not head.needs_cls:
            raise ValueError("this model knows whole graphs, and no nodes: give a head such as GraphHead(2)")
        if state < 1 or wires < 2:
            raise ValueError(f"state={state} and wires={wires} leave no relations: give state from 1, wires from 2")
        self.wires, inner = wires, 4 * state
        self.start = torch.nn.Parameter(torch.randn(2, state))
        self.kinds = torch.nn.Parameter(torch.randn(relation_steps.KINDS, inner) / 2)
        self.drive = torch.nn.Linear(width, inner)
        self.mix = torch.nn.Linear(2 * state, inner, bias=False)
        self.lean = torch.nn.Linear(state, inner, bias=False)
        self.change = torch.nn.Linear(inner, 4 * state)
        self.out = torch.nn.Linear(state, width)

    def body(self, parts: Sequence[Part]) -> list[Float[Tensor, "_ 1 d"]]:
        """The token of each graph, in the only slot."""
        no_biases(parts)
        batches = [part.batch for part in parts]
        order = run_order(tuple(tuple(batch.mask.shape) for batch in batches), batches[0].device)  # pyright: ignore
        lengths = joined([_lengths(batch) for batch in batches])[order.graphs]
        room = self.wires if self.training else max(2, int(lengths.max()))
        require((lengths <= room).all(), lambda: f"{int(lengths.max())} wires do not fit into wires={room}: give more")
        rows, wires, live = _run(batches, order, room)
        drive = self.drive(as_rows([part.states for part in parts])[rows])
        matrices = (self.kinds, self.mix.weight, self.lean.weight, self.change.weight, self.change.bias)
        relations, *_ = relation_steps.steps(
            torch.nn.functional.layer_norm(self.start, self.start.shape[-1:]),
            drive,
            *(matrix.to(drive) for matrix in matrices),
            wires,
            live,
            order.starts,
            order.slots,
            order.counts,
            room,
        )
        tokens = self._tokens(relations, lengths)[order.places]
        return [token[:, None] for token in tokens.split([len(batch) for batch in batches])]

    def _tokens(self, relations: Float[Tensor, "b w w c"], lengths: Int[Tensor, " b"]) -> Float[Tensor, "b d"]:
        """The largest over neighbouring wires."""
        near = torch.nn.functional.gelu(self.out(relations.diagonal(1, 1, 2).transpose(1, 2)))
        real = torch.arange(1, near.shape[1] + 1, device=lengths.device) < lengths[:, None]
        return torch.where(real[..., None], near, -1).amax(1)  # gelu is above -1 everywhere


def _lengths(batch: Batch) -> Int[Tensor, " b"]:
    if "length" not in batch.graph_features:
        raise ValueError("the graphs have no feature 'length': add the number of wires to graph_features")
    return batch.graph_features["length"].long()


def _run(
    batches: Sequence[Batch], order: "RunOrder", room: int
) -> tuple[Int[Tensor, " rows"], Int[Tensor, "rows 2"], Bool[Tensor, " rows"]]:
    """The slots in the order of a run that only the graph decides: by parallel steps, in each from the first wire on.

    Then their wires, and which of them are nodes; others get any two wires.
    """
    live = as_rows([batch.mask for batch in batches])
    wires = as_rows([node_feature(batch, "wires").long() for batch in batches])
    wires = torch.where(live[:, None], wires, torch.arange(2, device=wires.device))
    require(
        (wires[:, 0] < wires[:, 1]).all(),
        lambda: "a node's first wire is not below its second: only such nodes are known here",
    )
    known = (wires[:, 0] >= 0) & (wires[:, 1] < per_slot([_lengths(batch) for batch in batches], batches)) | ~live
    require(known.all(), lambda: "a node has a wire that its network has not: correct `wires`, or `length`")
    for batch in batches:
        backwards = (batch.edges[0] >= batch.edges[1]) & batch.edge_mask
        require(~backwards.any(), lambda: "an edge leads to a node of lower number: number nodes in the order of a run")
    steps = torch.empty_like(wires[:, 0])
    run = wires[order.rows], live[order.rows], order.starts, order.slots, order.counts
    steps[order.rows] = relation_steps.parallel_steps(*run, room)
    place = steps * room + wires[:, 0]
    counts = [batch.mask.numel() for batch in batches]
    each = zip(place.split(counts), first_rows(batches), batches, strict=True)
    chosen = joined([_sorted(part.view(batch.mask.shape), first).flatten() for part, first, batch in each])
    rows = chosen[order.rows]
    return rows, wires[rows], live[rows]


def _sorted(place: Int[Tensor, "b n"], first: int) -> Int[Tensor, "b n"]:
    """The rows of the slots of each graph, sorted by their place."""
    return first + torch.arange(place.numel(), device=place.device).view(place.shape).gather(1, place.argsort(1))


@dataclass(frozen=True, eq=False)
class RunOrder:
    """The slots of batches in the order of a run: the first of every graph, then the second, graphs with most first.

    `rows` says which slot each is, `counts` how many graphs have so many slots, `starts` where they start among the
    rows; `graphs` in which order the graphs are taken, `places` where each of them went, `slots` how many each has.
    """

    rows: Int[Tensor, " rows"]
    graphs: Int[Tensor, " graphs"]
    places: Int[Tensor, " graphs"]
    starts: Int[Tensor, " steps"]
    slots: Int[Tensor, " graphs"]
    counts: list[int]


@torch.compiler.disable  # a compiler would look through the cache, and order the slots anew in every step
def run_order(shapes: tuple[tuple[int, ...], ...], device: torch.device) -> RunOrder:
    """The order for batches of so many graphs and slots.

    >>> run_order(((1, 2), (1, 3)), torch.device("cpu")).rows.tolist()
    [2, 0, 3, 1, 4]
    """
    return _ordered(shapes, device)


@functools.cache  # a captured step reads the order of its shapes: it must not be forgotten
@torch.inference_mode(False)  # and be of use to a training, whoever asked first
def _ordered(shapes: tuple[tuple[int, ...], ...], device: torch.device) -> RunOrder:
    slots = np.concatenate([np.full(graphs, size) for graphs, size in shapes])
    graphs = np.argsort(-slots, kind="stable")
    first = (np.cumsum(slots) - slots)[graphs]
    counts = [int((slots > step).sum()) for step in range(slots.max())]
    rows = np.concatenate([first[:count] + step for step, count in enumerate(counts)])
    arrays = rows, graphs, np.argsort(graphs), np.cumsum(counts) - counts, slots[graphs]
    tensors = (torch.from_numpy(part).to(device) for part in arrays)
    return RunOrder(*tensors, counts)  # pyright: ignore
