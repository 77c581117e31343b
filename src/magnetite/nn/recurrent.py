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
from magnetite.kernels.cuda import recurrence
from magnetite.nn.embeddings import Embedding, embedding_of
from magnetite.nn.layers import full_precision
from magnetite.nn.module import Module

CHUNK = 2**16
"""Nodes whose gates the backward pass holds at once, or those of a single level if it has more."""


@dataclass(frozen=True, eq=False)
class Levels:
    """Nodes in an order in which each comes after its predecessors, level by level, and their edges.

    For CUDA kernels, nodes are in the order of graphs, and within each graph in that of its levels. The kernels take
    all of them at once, so that they count as a single level here.

    Args:
        nodes: The nodes; those of a level, which are updated together, follow each other.
        sources: Place of each edge's source in `nodes`.
        targets: Place of each edge's target in `nodes`, of which those of a level follow each other, too.
        edges: Number of each edge among all edges.
        node_ptr: Where the nodes of each level begin.
        edge_ptr: Where the edges to the nodes of each level begin.
        order: What the kernels read.
    """

    nodes: Int[Tensor, " nodes"]
    sources: Int[Tensor, " edges"]
    targets: Int[Tensor, " edges"]
    edges: Int[Tensor, " edges"]
    node_ptr: list[int]
    edge_ptr: list[int]
    order: recurrence.Order | None = None

    def __len__(self) -> int:
        return len(self.node_ptr) - 1


class TopologicalGRU(Module):
    """A gated recurrent unit along the edges and one against them, as in DAGNN (Thost and Chen, 2021).

    `m_v = Σ_u a_uv h_u` over the predecessors `u`, with `a_uv = softmax_u(w · h_u)`, and `h_v = GRU(x_v, m_v)`. With
    edge features, `tanh(W h_u + e_uv)` stands for `h_u` in both. A node is updated after all its predecessors, so one
    pass carries a message along a path of any length; the second unit does the same against the edges. A further pass
    reads what both found, and a linear layer reads all passes. All nodes of a level, over all graphs, are updated at
    once: time and memory grow with nodes and edges, and the number of sequential steps with the longest path.

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

    @not_compiled
    def forward(self, states: Float[Tensor, "nodes d"], batch: Batch) -> Float[Tensor, "nodes d"]:
        """States that know their ancestors and descendants; not compiled, since each batch has its own levels."""
        edges, ways = None if self.embedding is None else self.embedding(batch), both_ways(batch, states)
        found = []
        for number, each in enumerate(self.passes):
            found.append(each(self.between[number - 1](found[-1]) if found else states, edges, ways))
        return self.out(torch.cat(found, dim=-1))


class _Pass(torch.nn.Module):
    """One pass along the edges and one against them."""

    def __init__(self, width: int, edges: bool):
        super().__init__()
        self.along, self.against = _Cell(width, edges), _Cell(width, edges)

    def forward(
        self,
        states: Float[Tensor, "nodes d"],
        features: Float[Tensor, "edges d"] | None,
        ways: tuple[Levels, Levels],
    ) -> Float[Tensor, "nodes both"]:
        """The states after the pass along the edges, and after the one against them."""
        with full_precision(states.device):
            own = None if features is None else features.float()
            both = [cell(states.float(), own, way) for cell, way in zip((self.along, self.against), ways, strict=True)]
            return torch.cat(both, dim=-1)


class _Cell(torch.nn.Module):
    """The recurrence in one direction."""

    def __init__(self, width: int, edges: bool):
        super().__init__()
        self.message = torch.nn.Linear(width, width, bias=False) if edges else None
        self.score = torch.nn.Linear(width, 1, bias=False)
        self.unit = torch.nn.GRUCell(width, width)

    def forward(
        self, states: Float[Tensor, "nodes d"], features: Float[Tensor, "edges d"] | None, levels: Levels
    ) -> Float[Tensor, "nodes d"]:
        """The new states of all nodes, from their own states and edge features."""
        unit, matrix = self.unit, None if self.message is None else self.message.weight
        own = None if features is None else features.index_select(0, levels.edges)
        # What does not depend on predecessors is computed for all nodes at once.
        given = torch.nn.functional.linear(states, unit.weight_ih, unit.bias_ih).index_select(0, levels.nodes)
        hidden = _Recurrence.apply(levels, given, own, matrix, self.score.weight[0], unit.weight_hh, unit.bias_hh)
        return torch.empty_like(states).index_copy(0, levels.nodes, hidden)  # pyright: ignore[reportArgumentType]


class _Recurrence(torch.autograd.Function):
    """All levels; autograd would copy the states of all nodes once per level.

    Nodes and edges are in the order of the levels. Only hidden states are kept: given these, the backward pass computes
    everything else for many levels at once, and only gradients go level by level.
    """

    @staticmethod
    def forward(
        ctx: Any,
        levels: Levels,
        given: Float[Tensor, "nodes gates"],
        features: Float[Tensor, "edges d"] | None,
        matrix: Float[Tensor, "d d"] | None,
        score: Float[Tensor, " d"],
        recurrent: Float[Tensor, "gates d"],
        bias: Float[Tensor, " gates"],
    ) -> Float[Tensor, "nodes d"]:
        if levels.order is None:
            hidden = _states(levels, given, features, matrix, score, recurrent, bias)
        else:
            hidden = recurrence.forward(given, features, matrix, score, recurrent, bias, levels.order)
        ctx.levels = levels
        ctx.save_for_backward(given, features, matrix, score, recurrent, bias, hidden)
        return hidden

    @staticmethod
    def backward(ctx: Any, upper: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        levels: Levels = ctx.levels
        given, features, matrix, score, recurrent, bias, hidden = ctx.saved_tensors
        of_given, of_features = torch.empty_like(given), None if features is None else torch.empty_like(features)
        of_hidden = upper.clone()  # gradients by level are added to it
        of_sent = of_hidden if matrix is None else torch.zeros_like(hidden)
        of_matrix = None if matrix is None else torch.zeros_like(matrix)
        of_score, of_recurrent, of_bias = (torch.zeros_like(each) for each in (score, recurrent, bias))
        sent = hidden if matrix is None else hidden @ matrix.T
        for first, stop in reversed(_chunks(levels)):
            chunk = _Span.of(levels, first, stop)
            heard = chunk.heard(sent, features, score)
            products = torch.addmm(bias, heard.message, recurrent.T)
            factors = _factors(given[chunk.nodes], products, heard)
            if levels.order is None:
                own = None if of_features is None else of_features[chunk.edges]
                found = _gradients(
                    levels,
                    (first, stop),
                    factors,
                    of_hidden,
                    of_sent,
                    of_given[chunk.nodes],
                    own,
                    matrix,
                    score,
                    recurrent,
                )
            else:  # all nodes are one chunk
                found = recurrence.backward(of_hidden, factors, matrix, score, recurrent, levels.order)
                of_given, of_features = found.given, None if features is None else found.states
            of_score += found.scores @ heard.states
            of_recurrent.addmm_(found.gates.T, heard.message)
            of_bias += found.gates.sum(0)
            if of_matrix is not None:
                of_matrix.addmm_(found.sent.T, hidden[chunk.nodes])
        return None, of_given, of_features, of_matrix, of_score, of_recurrent, of_bias


def _states(
    levels: Levels,
    given: Float[Tensor, "nodes gates"],
    features: Float[Tensor, "edges d"] | None,
    matrix: Float[Tensor, "d d"] | None,
    score: Float[Tensor, " d"],
    recurrent: Float[Tensor, "gates d"],
    bias: Float[Tensor, " gates"],
) -> Float[Tensor, "nodes d"]:
    """The hidden states, level by level."""
    hidden = given.new_empty(len(given), len(score))
    sent = hidden if matrix is None else torch.empty_like(hidden)
    for level in range(len(levels)):
        span = _Span.of(levels, level, level + 1)
        message = span.heard(sent, features, score).message
        _renew(given[span.nodes], torch.addmm(bias, message, recurrent.T), message, hidden[span.nodes])
        if matrix is not None:
            torch.mm(hidden[span.nodes], matrix.T, out=sent[span.nodes])
    return hidden


def _gradients(
    levels: Levels,
    span: tuple[int, int],
    factors: recurrence.Factors,
    of_hidden: Float[Tensor, "nodes d"],
    of_sent: Float[Tensor, "nodes d"],
    of_given: Float[Tensor, "chunk gates"],
    of_features: Float[Tensor, "edges d"] | None,
    matrix: Float[Tensor, "d d"] | None,
    score: Float[Tensor, " d"],
    recurrent: Float[Tensor, "gates d"],
) -> recurrence.Gradients:
    """The gradients of some levels, from the last one to the first; adds to those of the states before them.

    Args:
        levels: All levels.
        span: The first of the levels, and the one after the last.
        factors: What is known of the forward pass of these levels.
        of_hidden: Gradients of the states.
        of_sent: Gradients of what nodes send; the same tensor if that is their states.
        of_given: Where to write the gradients of what is given to the gates.
        of_features: Where to write the gradients of the edge features, if there are any.
        matrix: From states to what nodes send.
        score: From what comes along an edge to its score.
        recurrent: From messages to gates.
    """
    chunk = _Span.of(levels, *span)
    of_gates, of_scores = torch.empty_like(of_given), torch.empty_like(factors.shares)
    of_states = torch.empty_like(factors.states) if of_features is None else of_features
    for level in reversed(range(*span)):
        part = _Span.of(levels, level, level + 1)
        rows, edges = (_moved(each, -other.start) for each, other in ((part.nodes, chunk.nodes),
                                                                     (part.edges, chunk.edges)))  # fmt: skip
        own = of_hidden[part.nodes]
        if matrix is not None:
            own.addmm_(of_sent[part.nodes], matrix)
        message = _to_gates(own, factors, rows, of_given, of_gates).addmm_(of_gates[rows], recurrent)
        _to_edges(part, message, factors, rows, edges, score, of_features is not None, of_states, of_scores, of_sent)
    return recurrence.Gradients(of_given, of_gates, of_sent[chunk.nodes], of_states, of_scores)


@dataclass(frozen=True, eq=False)
class _Heard:
    """What the nodes of some levels hear.

    Args:
        states: What comes along each edge.
        shares: The softmax of the scores of each node's edges.
        message: The mean of the states by these shares.
    """

    states: Float[Tensor, "edges d"]
    shares: Float[Tensor, " edges"]
    message: Float[Tensor, "nodes d"]


@dataclass(frozen=True, eq=False)
class _Span:
    """The nodes of some consecutive levels and their edges.

    Args:
        nodes: Places of the nodes.
        edges: Places of the edges.
        sources: Place of each edge's source among all nodes.
        targets: Place of each edge's target among these nodes.
    """

    nodes: slice
    edges: slice
    sources: Int[Tensor, " edges"]
    targets: Int[Tensor, " edges"]

    @classmethod
    def of(cls, levels: Levels, first: int, stop: int) -> "_Span":
        """Those of levels `first` to `stop − 1`."""
        nodes = slice(levels.node_ptr[first], levels.node_ptr[stop])
        edges = slice(levels.edge_ptr[first], levels.edge_ptr[stop])
        return cls(nodes, edges, levels.sources[edges], levels.targets[edges] - nodes.start)

    def heard(
        self, sent: Float[Tensor, "nodes d"], features: Float[Tensor, "edges d"] | None, score: Float[Tensor, " d"]
    ) -> _Heard:
        """What the nodes hear of what all nodes have sent."""
        count = self.nodes.stop - self.nodes.start
        if _has_kernels(sent):
            states, shares = sent.new_empty(len(self.sources), sent.shape[1]), sent.new_empty(len(self.sources))
            message = sent.new_empty(count, sent.shape[1])
            own = sent[:0] if features is None else features[self.edges]
            tensors = sent, own, score, self.sources, self.targets, states, shares, message
            _kernels().hear(*(each.numpy() for each in tensors))
            return _Heard(states, shares, message)
        states = sent[self.sources]
        if features is not None:
            states = states.add_(features[self.edges]).tanh_()
        scores = states @ score
        largest = scores.new_zeros(count).scatter_reduce(0, self.targets, scores, "amax", include_self=False)
        weights = (scores - largest[self.targets]).exp()
        shares = weights / weights.new_zeros(count).index_add(0, self.targets, weights)[self.targets]
        message = sent.new_zeros(count, sent.shape[1]).index_add(0, self.targets, shares[:, None] * states)
        return _Heard(states, shares, message)


# The formulas of a gated recurrent unit, `h = (1 − z) n + z m` with `n = tanh(a + r b)`. On the CPU, where levels are
# too small for operations of torch, compiled kernels compute them.


def _renew(
    given: Float[Tensor, "nodes gates"],
    products: Float[Tensor, "nodes gates"],
    message: Float[Tensor, "nodes d"],
    hidden: Float[Tensor, "nodes d"],
) -> None:
    """Set `hidden` to the new states, from what is given to the gates and their products with the messages."""
    if _has_kernels(hidden):
        _kernels().renew(*(each.numpy() for each in (given, products, message, hidden)))
        return
    _, kept, new = _gates(given, products)
    torch.lerp(new, message, kept, out=hidden)


def _gates(
    given: Float[Tensor, "nodes gates"], products: Float[Tensor, "nodes gates"]
) -> tuple[Float[Tensor, "nodes d"], Float[Tensor, "nodes d"], Float[Tensor, "nodes d"]]:
    """The gate `r` that resets, the gate `z` that keeps the message, and `n`."""
    width = given.shape[1] // 3
    reset, kept = (given[:, : 2 * width] + products[:, : 2 * width]).sigmoid_().chunk(2, dim=1)
    return reset, kept, torch.addcmul(given[:, 2 * width :], reset, products[:, 2 * width :]).tanh_()


def _factors(
    given: Float[Tensor, "nodes gates"], products: Float[Tensor, "nodes gates"], heard: _Heard
) -> recurrence.Factors:
    """What a gradient is multiplied by on its way to the gates, which needs no order."""
    message = heard.message
    if _has_kernels(message):
        found = [torch.empty_like(message) for _ in range(5)]
        _kernels().factors(*(each.numpy() for each in (given, products, message, *found)))
    else:
        (reset, kept, new), recalled = _gates(given, products), products[:, 2 * message.shape[1] :]
        found = [
            (1 - kept) * (1 - new.square()),
            (message - new) * kept * (1 - kept),
            recalled * reset * (1 - reset),
            kept,
            reset,
        ]
    return recurrence.Factors(*found, message=message, states=heard.states, shares=heard.shares)


def _to_gates(
    upper: Float[Tensor, "nodes d"],
    factors: recurrence.Factors,
    rows: slice,
    of_given: Float[Tensor, "chunk gates"],
    of_gates: Float[Tensor, "chunk gates"],
) -> Float[Tensor, "nodes d"]:
    """From the gradients of the states in `rows` to those of the gates; what of them reaches the messages directly."""
    given, gates = of_given[rows], of_gates[rows]
    parts = [each[rows] for each in (factors.to_new, factors.to_kept, factors.to_reset, factors.kept, factors.reset)]
    if _has_kernels(upper):
        message = torch.empty_like(upper)
        _kernels().to_gates(*(each.numpy() for each in (upper, *parts, given, gates, message)))
        return message
    to_new, to_kept, to_reset, kept, reset = parts
    new, width = upper * to_new, upper.shape[1]
    torch.cat([new * to_reset, upper * to_kept, new * reset], dim=1, out=gates)
    given[:, : 2 * width], given[:, 2 * width :] = gates[:, : 2 * width], new
    return upper * kept


def _to_edges(
    part: _Span,
    of_message: Float[Tensor, "nodes d"],
    factors: recurrence.Factors,
    rows: slice,
    edges: slice,
    score: Float[Tensor, " d"],
    featured: bool,
    of_states: Float[Tensor, "edges d"],
    of_scores: Float[Tensor, " edges"],
    of_sent: Float[Tensor, "all d"],
) -> None:
    """From the gradients of messages to those of the edges of a level; what their sources get is added to `of_sent`."""
    message, states, shares = factors.message[rows], factors.states[edges], factors.shares[edges]
    if _has_kernels(of_message):
        tensors = of_message, message, states, shares, score, part.sources, part.targets
        found = of_states[edges], of_scores[edges], of_sent
        _kernels().to_edges(*(each.numpy() for each in tensors), featured, *(each.numpy() for each in found))
        return
    # Softmax: the mean of the gradients of a node's edges is the gradient of its message along the message.
    each, mean = of_message[part.targets], (of_message * message).sum(1)
    scores = shares * ((each * states).sum(1) - mean[part.targets])
    gradients = torch.addcmul(scores[:, None] * score, each, shares[:, None])
    if featured:
        gradients *= 1 - states.square()
    of_scores[edges], of_states[edges] = scores, gradients
    of_sent.index_add_(0, part.sources, gradients)


def _has_kernels(states: Tensor) -> bool:
    """Whether compiled kernels exist for the device of the states."""
    return states.device.type == "cpu"


def _kernels() -> Any:
    """The compiled kernels, which take a moment to load."""
    from magnetite.kernels.cpu import recurrence

    return recurrence


def _chunks(levels: Levels) -> list[tuple[int, int]]:
    """Spans of consecutive levels with up to `CHUNK` nodes, or of a single level that has more."""
    found, first = [], 0
    for level in range(1, len(levels) + 1):
        if level == len(levels) or levels.node_ptr[level + 1] - levels.node_ptr[first] > CHUNK:
            found.append((first, level))
            first = level
    return found


def _moved(part: slice, shift: int) -> slice:
    return slice(part.start + shift, part.stop + shift)


def both_ways(batch: Batch, states: Float[Tensor, "nodes d"]) -> tuple[Levels, Levels]:
    """The levels along and against the edges of a batch, from one copy of its edges to the CPU."""
    edges = torch.cat([batch.edge_index, batch.edge_mask[None]])
    if not recurrence.suits(states):
        (*ends, real), graph = edges.cpu().numpy(), None
    else:
        # Padding is divided among all graphs, since a kernel takes as long as its largest one.
        anywhere = torch.arange(batch.num_nodes, device=batch.device) % len(batch)
        graph = torch.where(batch.node_mask, batch.node_graph, anywhere)
        held = torch.cat([edges.flatten(), graph]).cpu().numpy()
        (*ends, real), graph = held[: edges.numel()].reshape(edges.shape), held[edges.numel() :]
    numbers = np.flatnonzero(real)
    source, target = (end[numbers] for end in ends)
    rest = numbers, batch.num_nodes, batch.device, graph
    return _levels(source, target, *rest), _levels(target, source, *rest)


def levels_of(edges: Int[Tensor, "2 edges"], size: int, graph: Int[Tensor, " nodes"] | None = None) -> Levels:
    """The nodes by the length of the longest path to them, with the edges between strongly connected components.

    Args:
        edges: Source and target of each edge.
        size: Number of nodes.
        graph: The graph of each node, for the order that CUDA kernels need.

    >>> levels = levels_of(torch.tensor([[0, 0, 2, 3], [1, 2, 3, 2]]), size=4)
    >>> levels.nodes.tolist(), levels.node_ptr, levels.edges.tolist()
    ([0, 1, 2, 3], [0, 1, 4], [0, 1])
    """
    source, target = edges.cpu().numpy()
    part = None if graph is None else graph.cpu().numpy()
    return _levels(source, target, np.arange(source.size), size, edges.device, part)


def _levels(
    source: Int[np.ndarray, " edges"],
    target: Int[np.ndarray, " edges"],
    numbers: Int[np.ndarray, " edges"],
    size: int,
    device: torch.device,
    part: Int[np.ndarray, " nodes"] | None,
) -> Levels:
    level, between = _depths(source, target, size)
    source, target, numbers = source[between], target[between], numbers[between]
    depth = int(level.max(initial=-1)) + 1
    parts = 1 if part is None else int(part.max(initial=-1)) + 1
    start, nodes = _sorted(level if part is None else part * depth + level, parts * depth)
    place = np.empty(size, np.int64)
    place[nodes] = np.arange(size)
    entering, by_target = _sorted(place[target], size)
    sources = place[source[by_target]]
    arrays = [nodes, sources, place[target[by_target]], numbers[by_target]]
    if part is None:
        edge_start = entering[start]
        return Levels(*_on(arrays, device), node_ptr=start.tolist(), edge_ptr=edge_start.tolist())
    leaving, left = _sorted(sources, size)
    *found, entering, leaving, left, start = _on([*arrays, entering, leaving, left, start], device)
    order = recurrence.Order(found[1], entering, leaving, left, start, depth)
    return Levels(*found, node_ptr=[0, size], edge_ptr=[0, numbers.size], order=order)


def _sorted(keys: Int[np.ndarray, " keys"], count: int) -> tuple[Int[np.ndarray, " starts"], Int[np.ndarray, " keys"]]:
    """Where each of `count` keys begins when they are sorted, and their order."""
    from magnetite.kernels.cpu.levels import sort_by

    start, order = np.zeros(count + 1, np.int64), np.empty(keys.size, np.int64)
    sort_by(keys, start, order)
    return start, order


def _depths(
    source: Int[np.ndarray, " edges"], target: Int[np.ndarray, " edges"], size: int
) -> tuple[Int[np.ndarray, " nodes"], Int[np.ndarray, " kept"] | slice]:
    """The level of each node, and the edges between strongly connected components."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    from magnetite.kernels.cpu.levels import longest_paths

    level = np.empty(size, np.int64)
    if longest_paths(*_sorted(source, size), target, level):
        return level, slice(None)
    ones = np.ones(source.size, np.int8)
    count, part = connected_components(coo_array((ones, (source, target)), shape=(size, size)), connection="strong")
    part = part.astype(np.int64)
    between = np.flatnonzero(part[source] != part[target])
    source, target = part[source[between]], part[target[between]]
    level = np.empty(count, np.int64)
    longest_paths(*_sorted(source, count), target, level)
    return level[part], between


def _on(arrays: Sequence[np.ndarray], device: torch.device) -> list[Tensor]:
    """The arrays as tensors on a device, in one copy."""
    joined = torch.from_numpy(np.concatenate(arrays)).to(device)
    return list(joined.split([array.size for array in arrays]))
