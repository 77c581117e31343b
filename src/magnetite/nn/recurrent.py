"""A recurrent network along the topological order of acyclic graphs, level by level over all graphs of a batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch
from magnetite.encodings.checks import SIZE
from magnetite.kernels._compat import not_compiled
from magnetite.nn.layers import full_precision
from magnetite.nn.module import Module


@dataclass(frozen=True, eq=False)
class Level:
    """Nodes that are updated together, and their edges from nodes of earlier levels.

    Args:
        nodes: The nodes.
        sources: Source of each edge.
        slots: Target of each edge, as an index into `nodes`.
    """

    nodes: Int[Tensor, " nodes"]
    sources: Int[Tensor, " edges"]
    slots: Int[Tensor, " edges"]


class TopologicalGRU(Module):
    """A gated recurrent unit along the edges and one against them, as in DAGNN (Thost and Chen, 2021).

    `m_v = Σ_u a_uv h_u` over the predecessors `u`, with `a_uv = softmax_u(w · h_u)`, and `h_v = GRU(x_v, m_v)`. A node
    is updated after all its predecessors, so one pass carries a message along a path of any length; the second unit
    does the same against the edges, and a linear layer reads both. All nodes of a level, over all graphs, are updated
    at once, and the backward pass computes each level again: time and memory grow with nodes and edges, and the number
    of sequential steps with the longest path.

    Graphs with cycles are condensed: edges within a strongly connected component carry no messages.

    Args:
        width: Size of a node's state.

    >>> import magnetite as mt
    >>> batch = mt.batch(mt.Digraphs.from_edges([[0, 1], [1, 2]]))
    >>> TopologicalGRU(width=32)(torch.zeros(3, 32), batch).shape
    torch.Size([3, 32])
    """

    def __init__(self, width: Annotated[int, SIZE]):
        super().__init__()
        self.along, self.against = _Cell(width), _Cell(width)
        self.out = torch.nn.Linear(2 * width, width)

    def forward(self, states: Float[Tensor, "nodes d"], batch: Batch) -> Float[Tensor, "nodes d"]:
        """States that know their ancestors and descendants; levels are not compiled, since each batch has its own."""
        return self.out(_both_ways(states, batch, self.along, self.against))


@not_compiled
def _both_ways(states: Tensor, batch: Batch, along: "_Cell", against: "_Cell") -> Float[Tensor, "nodes both"]:
    """The states after a pass along the edges, and after one against them."""
    edges = batch.edge_index[:, batch.edge_mask]
    with full_precision(batch.device):
        both = [
            _Recurrence.apply(cell, levels_of(ends, len(states)), states.float(), *cell.parameters())
            for cell, ends in ((along, edges), (against, edges.flip(0)))
        ]
        return torch.cat(both, dim=-1)  # pyright: ignore[reportArgumentType]


class _Cell(torch.nn.Module):
    """The update of one level."""

    def __init__(self, width: int):
        super().__init__()
        self.score = torch.nn.Linear(width, 1, bias=False)
        self.unit = torch.nn.GRUCell(width, width)

    def forward(
        self, states: Float[Tensor, "nodes d"], heard: Float[Tensor, "edges d"], slots: Int[Tensor, " edges"]
    ) -> Float[Tensor, "nodes d"]:
        """New states of the nodes of a level, from their own and from those at the sources of their edges."""
        score = self.score(heard).squeeze(1)
        largest = score.new_zeros(len(states)).scatter_reduce(0, slots, score.detach(), "amax", include_self=False)
        weight = (score - largest[slots]).exp()
        total = weight.new_zeros(len(states)).index_add(0, slots, weight)
        message = torch.zeros_like(states).index_add(0, slots, (weight / total[slots])[:, None] * heard)
        return self.unit(states, message)


class _Recurrence(torch.autograd.Function):
    """All levels; autograd would copy the states of all nodes once per level."""

    @staticmethod
    def forward(ctx: Any, cell: _Cell, levels: Sequence[Level], states: Tensor, *parameters: Tensor) -> Tensor:  # noqa: ARG004
        hidden = torch.zeros_like(states)
        for level in levels:
            hidden[level.nodes] = cell(states[level.nodes], hidden[level.sources], level.slots)
        ctx.cell, ctx.levels = cell, levels
        ctx.save_for_backward(states, hidden)
        return hidden

    @staticmethod
    def backward(ctx: Any, upper: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        states, hidden = ctx.saved_tensors
        parameters = list(ctx.cell.parameters())
        gradients = [torch.zeros_like(parameter) for parameter in parameters]
        of_hidden, of_states = upper.clone(), torch.zeros_like(states)
        for level in reversed(ctx.levels):
            own = states[level.nodes].requires_grad_()
            heard = hidden[level.sources].requires_grad_()
            with torch.enable_grad():
                new = ctx.cell(own, heard, level.slots)
            found = torch.autograd.grad(new, [own, heard, *parameters], of_hidden[level.nodes], allow_unused=True)
            of_states[level.nodes] = found[0]
            if found[1] is not None:
                of_hidden.index_add_(0, level.sources, found[1])
            for gradient, part in zip(gradients, found[2:], strict=True):
                if part is not None:
                    gradient += part
        return None, None, of_states, *gradients


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
    between = part[source] != part[target]
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
    return [
        Level(*(torch.from_numpy(array).to(edges.device) for array in (mine, source[entering], slot[target[entering]])))
        for mine, entering in parts
    ]
