"""A recurrent network along the topological order of acyclic graphs, level by level over all graphs of a batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch
from magnetite.encodings.checks import DEPTH, SIZE
from magnetite.kernels._compat import not_compiled
from magnetite.nn.embeddings import Embedding, embedding_of
from magnetite.nn.layers import full_precision
from magnetite.nn.module import Module


@dataclass(frozen=True, eq=False)
class Level:
    """Nodes that are updated together, and their edges from nodes of earlier levels.

    Args:
        nodes: The nodes.
        sources: Source of each edge.
        slots: Target of each edge, as an index into `nodes`.
        edges: Number of each edge among all edges.
    """

    nodes: Int[Tensor, " nodes"]
    sources: Int[Tensor, " edges"]
    slots: Int[Tensor, " edges"]
    edges: Int[Tensor, " edges"]


class TopologicalGRU(Module):
    """A gated recurrent unit along the edges and one against them, as in DAGNN (Thost and Chen, 2021).

    `m_v = Σ_u a_uv h_u` over the predecessors `u`, with `a_uv = softmax_u(w · h_u)`, and `h_v = GRU(x_v, m_v)`. With
    edge features, `tanh(W h_u + e_uv)` stands for `h_u` in both. A node is updated after all its predecessors, so one
    pass carries a message along a path of any length; the second unit does the same against the edges. A further pass
    reads what both found, and a linear layer reads all passes. All nodes of a level, over all graphs, are updated at
    once, and the backward pass computes each level again: time and memory grow with nodes and edges, and the number of
    sequential steps with the longest path.

    Graphs with cycles are condensed: edges within a strongly connected component carry no messages.

    Args:
        width: Size of a node's state.
        steps: Number of passes in both directions.
        edge_features: Embedding of the edge features, or a list of embeddings.

    >>> import magnetite as mt
    >>> batch = mt.batch(mt.Digraphs.from_edges([[0, 1], [1, 2]]))
    >>> TopologicalGRU(width=32)(torch.zeros(3, 32), batch).shape
    torch.Size([3, 32])
    """

    capturable = False  # the levels differ from batch to batch

    def __init__(
        self,
        width: Annotated[int, SIZE],
        steps: Annotated[int, DEPTH] = 1,
        edge_features: Embedding | Sequence[Embedding] | None = None,
    ):
        super().__init__()
        self.embedding = None if edge_features is None else embedding_of(edge_features, width)
        self.passes = torch.nn.ModuleList(_Pass(width, edge_features is not None) for _ in range(steps))
        self.between = torch.nn.ModuleList(torch.nn.Linear(2 * width, width) for _ in range(steps - 1))
        self.out = torch.nn.Linear(2 * width * steps, width)

    def forward(self, states: Float[Tensor, "nodes d"], batch: Batch) -> Float[Tensor, "nodes d"]:
        """States that know their ancestors and descendants."""
        edges = None if self.embedding is None else self.embedding(batch)
        found = []
        for number, each in enumerate(self.passes):
            found.append(each(self.between[number - 1](found[-1]) if found else states, edges, batch))
        return self.out(torch.cat(found, dim=-1))


class _Pass(torch.nn.Module):
    """One pass along the edges and one against them; levels are not compiled, since each batch has its own."""

    def __init__(self, width: int, edges: bool):
        super().__init__()
        self.along, self.against = _Cell(width, edges), _Cell(width, edges)

    @not_compiled
    def forward(
        self, states: Float[Tensor, "nodes d"], features: Float[Tensor, "edges d"] | None, batch: Batch
    ) -> Float[Tensor, "nodes both"]:
        """The states after the pass along the edges, and after the one against them."""
        edges = batch.edge_index[:, batch.edge_mask]
        with full_precision(batch.device):
            own = None if features is None else features[batch.edge_mask].float()
            both = [
                _Recurrence.apply(cell, levels_of(ends, len(states)), states.float(), own, *cell.parameters())
                for cell, ends in ((self.along, edges), (self.against, edges.flip(0)))
            ]
            return torch.cat(both, dim=-1)  # pyright: ignore[reportArgumentType]


class _Cell(torch.nn.Module):
    """The update of one level."""

    def __init__(self, width: int, edges: bool):
        super().__init__()
        self.message = torch.nn.Linear(width, width, bias=False) if edges else None
        self.score = torch.nn.Linear(width, 1, bias=False)
        self.unit = torch.nn.GRUCell(width, width)

    def forward(
        self,
        states: Float[Tensor, "nodes d"],
        heard: Float[Tensor, "edges d"],
        features: Float[Tensor, "edges d"] | None,
        slots: Int[Tensor, " edges"],
    ) -> Float[Tensor, "nodes d"]:
        """New states of the nodes of a level, from their own states, those that they hear, and edge features."""
        if self.message is not None and features is not None:
            heard = (self.message(heard) + features).tanh()
        score = self.score(heard).squeeze(1)
        largest = score.new_zeros(len(states)).scatter_reduce(0, slots, score.detach(), "amax", include_self=False)
        weight = (score - largest[slots]).exp()
        total = weight.new_zeros(len(states)).index_add(0, slots, weight)
        message = torch.zeros_like(states).index_add(0, slots, (weight / total[slots])[:, None] * heard)
        return self.unit(states, message)


class _Recurrence(torch.autograd.Function):
    """All levels; autograd would copy the states of all nodes once per level."""

    @staticmethod
    def forward(
        ctx: Any,
        cell: _Cell,
        levels: Sequence[Level],
        states: Tensor,
        features: Tensor | None,
        *parameters: Tensor,  # noqa: ARG004
    ) -> Tensor:
        hidden = torch.zeros_like(states)
        for level in levels:
            own = None if features is None else features[level.edges]
            hidden[level.nodes] = cell(states[level.nodes], hidden[level.sources], own, level.slots)
        ctx.cell, ctx.levels = cell, levels
        ctx.save_for_backward(states, hidden, features)
        return hidden

    @staticmethod
    def backward(ctx: Any, upper: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        states, hidden, features = ctx.saved_tensors
        parameters = list(ctx.cell.parameters())
        gradients = [torch.zeros_like(parameter) for parameter in parameters]
        of_hidden, of_states = upper.clone(), torch.zeros_like(states)
        of_features = None if features is None else torch.zeros_like(features)
        for level in reversed(ctx.levels):
            given = [states[level.nodes], hidden[level.sources]]
            given += [] if features is None else [features[level.edges]]
            given = [tensor.requires_grad_() for tensor in given]
            with torch.enable_grad():
                new = ctx.cell(given[0], given[1], None if features is None else given[2], level.slots)
            inputs = [*given, *parameters]
            found = torch.autograd.grad(new, inputs, of_hidden[level.nodes], allow_unused=True)
            of_states[level.nodes] = found[0]
            if found[1] is not None:
                of_hidden.index_add_(0, level.sources, found[1])
            if of_features is not None and found[2] is not None:
                of_features[level.edges] = found[2]
            for gradient, part in zip(gradients, found[len(given) :], strict=True):
                if part is not None:
                    gradient += part
        return None, None, of_states, of_features, *gradients


def levels_of(edges: Int[Tensor, "2 edges"], size: int) -> list[Level]:
    """The nodes by the length of the longest path to them, with the edges between strongly connected components.

    Args:
        edges: Source and target of each edge.
        size: Number of nodes.

    >>> [level.nodes.tolist() for level in levels_of(torch.tensor([[0, 0, 2, 3], [1, 2, 3, 2]]), size=4)]
    [[0], [1, 2, 3]]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    from magnetite.kernels.cpu.levels import longest_paths

    source, target = edges.cpu().numpy()
    ones = np.ones(source.size, np.int8)
    count, part = connected_components(coo_array((ones, (source, target)), shape=(size, size)), connection="strong")
    part = part.astype(np.int64)
    between = np.flatnonzero(part[source] != part[target])
    source, target = source[between], target[between]
    order = np.argsort(part[source], kind="stable")
    start = np.concatenate([np.zeros(1, np.int64), np.bincount(part[source], minlength=count).cumsum()])
    level = np.empty(count, np.int64)
    longest_paths(start, part[target][order], np.bincount(part[target], minlength=count), level)
    of_node = level[part]
    nodes, by_target = np.argsort(of_node, kind="stable"), np.argsort(of_node[target], kind="stable")
    slot, depth = np.empty(size, np.int64), int(of_node.max(initial=0)) + 1
    node_ends = np.bincount(of_node, minlength=depth).cumsum()[:-1]
    slot[nodes] = np.arange(size) - np.repeat(np.concatenate([[0], node_ends]), np.bincount(of_node, minlength=depth))
    edge_ends = np.bincount(of_node[target], minlength=depth).cumsum()[:-1]
    parts = zip(np.split(nodes, node_ends), np.split(by_target, edge_ends), strict=True)
    arrays = ((mine, source[entering], slot[target[entering]], between[entering]) for mine, entering in parts)
    return [Level(*(torch.from_numpy(array).to(edges.device) for array in level)) for level in arrays]
