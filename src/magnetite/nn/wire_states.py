"""WireStates: what a node is, told by the states of its wires, which travel from node to node."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn import wire_steps
from magnetite.nn.embeddings import Embedding, WireNodes, node_feature
from magnetite.nn.rows import as_rows, united
from magnetite.slots import require

WIRES = 2
"""Wires that meet in a comparator."""


class WireStates(Embedding):
    """`x_v + W s_v`, where `s_v` are the states of a comparator's two wires, handed on from comparator to comparator.

    `s_v = N(s + σ(g) ⊙ u)`, `[g, u] = W₂ gelu(W₁ s + W' x_v)`: `s` are the states that the wires bring along, from the
    last comparator on each or, where there is none, made of `x_v`, the codes of the wires (see `WireNodes`, which the
    other options are for). Comparators have to be numbered in the order of some run: edges lead to higher numbers.

    >>> from magnetite.sorting import SortingNetwork
    >>> import magnetite as mt
    >>> model = mt.nn.DigraphTransformer(32, 1, mt.nn.GraphHead(2), embedding=WireStates(state=16))
    >>> model(SortingNetwork(3, [(0, 2), (0, 1), (1, 2)]).to_digraphs()).shape
    torch.Size([1, 2])
    """

    def __init__(self, state: int = 128, places: int | None = None, borders: int = 0, feature: str = "wires"):
        super().__init__()
        self.state, self.feature = state, feature
        self.codes = WireNodes(places=places, borders=borders, feature=feature)

    def setup(self, width: int) -> None:
        """Make the matrices."""
        self.codes.setup(width)
        inner, both = 3 * self.state, WIRES * self.state
        self.start = torch.nn.Linear(width, both)
        self.drive = torch.nn.Linear(width, inner)
        self.mix = torch.nn.Linear(both, inner, bias=False)
        self.change = torch.nn.Linear(inner, 2 * both)
        self.out = torch.nn.Linear(both, width)

    def forward(self, batch: Batch) -> Float[Tensor, "b n d"]:
        """The nodes of one batch."""
        return self.several([batch]).view(*batch.mask.shape, -1)

    def several(self, batches: Sequence[Batch]) -> Float[Tensor, "rows d"]:
        """The nodes of all batches, step by step together."""
        shapes = tuple(tuple(batch.mask.shape) for batch in batches)
        order = step_order(shapes, batches[0].device)  # pyright: ignore (the decorator hides what it takes)
        nodes = self.codes.several(batches)
        sorted_nodes = nodes[order.rows]
        start = self.start(sorted_nodes).unflatten(-1, (WIRES, -1))
        start = start.to(torch.promote_types(start.dtype, torch.float32))  # halves would blur what travels far
        drive = self.drive(sorted_nodes)
        weights = (self.mix.weight, self.change.weight, self.change.bias)
        states, *_ = wire_steps.steps(
            torch.nn.functional.layer_norm(start, start.shape[-1:]),
            drive,
            *(weight.to(drive) for weight in weights),
            self._came(batches, order),
            order.counts,
        )
        return nodes + self.out(states[len(nodes) :].flatten(1))[order.place]

    def _came(self, batches: Sequence[Batch], order: "StepOrder") -> Int[Tensor, "rows 2"]:
        """For each wire of each node, where its state comes from: the last node on it, or else its own start."""
        wires, graph = as_rows([node_feature(batch, self.feature) for batch in batches]), united(batches)
        source, target = order.place[graph.edges]
        backwards = (order.step[graph.edges[0]] >= order.step[graph.edges[1]]) & graph.edge_mask
        require(~backwards.any(), lambda: "an edge leads to a node of lower number: number nodes in the order of a run")
        ends = wires[graph.edges]
        same = (ends[0, :, :, None] == ends[1, :, None, :]) & graph.edge_mask[:, None, None]
        port, rows = torch.arange(WIRES, device=wires.device), wires.shape[0]
        given = (rows + source)[:, None, None] * WIRES + port[:, None]
        taken = torch.where(same, target[:, None, None] * WIRES + port, rows * WIRES)
        own = torch.arange(rows * WIRES + 1, device=wires.device)
        # Of two nodes that both share a wire with a third, the later one is the last on it.
        came = own.scatter_reduce(0, taken.flatten(), given.expand_as(taken).flatten(), "amax")
        return came[:-1].view(rows, WIRES)


@dataclass(frozen=True, eq=False)
class StepOrder:
    """The slots of batches in the order of their numbers: the first slot of every graph, then the second, and so on.

    `rows` says which slot each is, `place` where each slot went, `step` its number in its graph, `counts` how many
    graphs have so many slots.
    """

    rows: Int[Tensor, " rows"]
    place: Int[Tensor, " rows"]
    step: Int[Tensor, " rows"]
    counts: list[int]


@torch.compiler.disable  # a compiler would look through the cache, and order the slots anew in every step
def step_order(shapes: tuple[tuple[int, ...], ...], device: torch.device) -> StepOrder:
    """The order for batches of so many graphs and slots.

    >>> step_order(((1, 3), (1, 2)), torch.device("cpu")).rows.tolist()
    [0, 3, 1, 4, 2]
    """
    return _ordered(shapes, device)


@functools.lru_cache(maxsize=16)
def _ordered(shapes: tuple[tuple[int, ...], ...], device: torch.device) -> StepOrder:
    step = np.concatenate([np.tile(np.arange(slots), graphs) for graphs, slots in shapes])
    order = np.argsort(step, kind="stable")
    rows, place, numbers = (torch.from_numpy(part).to(device) for part in (order, np.argsort(order), step))
    return StepOrder(rows, place, numbers, np.bincount(step).tolist())
