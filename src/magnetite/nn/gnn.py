"""Message passing along the edges, after which the state of each node depends on its neighbourhood."""

from collections.abc import Sequence
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.encodings.checks import DEPTH, LATER, SIZE, Domain
from magnetite.nn.embeddings import Embedding, embedding_of
from magnetite.nn.layers import Norm, activation_named
from magnetite.nn.module import Module
from magnetite.nn.sparse import SparseMatrix

Nodes = Float[Tensor, "nodes *middle d"]
NewNodes = Float[Tensor, "nodes *middle inner"]
Edges = Float[Tensor, "edges *middle c"]
NewEdges = Float[Tensor, "edges *middle inner"]


class EdgeNodeStep(torch.nn.Module):
    """`e ← σ(W [e ‖ h_u ‖ h_v])` for each edge `u → v`, then `h_v ← σ(W [h_v ‖ Σ_in e ‖ Σ_out e])` for each node.

    If undirected, `h_u + h_v` and `Σ_in e + Σ_out e` replace the concatenations. The first matrix is applied to the
    nodes before their states are copied to the edges, since there are fewer nodes than ends of edges.
    """

    def __init__(self, nodes: int, edges: int, inner: int, directed: bool, activation: str):
        super().__init__()
        self.directed, sides = directed, 2 if directed else 1
        self.ends = torch.nn.Linear(nodes, sides * inner)
        self.edge = torch.nn.Linear(edges, inner, bias=False) if edges else None
        self.node = torch.nn.Linear(nodes + sides * inner, inner)
        self.activation = activation_named(activation)

    def forward(self, nodes: Nodes, edges: Edges | Embedding | None, batch: Batch) -> tuple[NewNodes, NewEdges]:
        """The states of nodes and edges after one step."""
        source, target = batch.edge_index
        ends = self.ends(nodes)
        # In single precision, since the backward pass adds one gradient per edge.
        leaving, entering = ends.float().chunk(2, dim=-1) if self.directed else (ends.float(),) * 2
        messages = (leaving.index_select(0, source) + entering.index_select(0, target)).to(ends.dtype)
        if self.edge is not None and edges is not None:
            messages = messages + _product(self.edge, edges, batch)
        messages = self.activation(messages)
        inward, outward = (batch.sum_edges(messages, end, len(nodes)) for end in (target, source))
        heard = [inward, outward] if self.directed else [inward + outward]
        return self.activation(self.node(torch.cat([nodes, *heard], dim=-1))), messages


class GCNStep(torch.nn.Module):
    """`h_v ← σ(Σ_u σ(W h_u + W' e) / √(d_u d_v) + σ(W h_v + r) / d_v)` over all neighbours, `d = degree + 1`."""

    def __init__(self, nodes: int, edges: int, inner: int, activation: str):
        super().__init__()
        self.linear = torch.nn.Linear(nodes, inner)
        self.edge = torch.nn.Linear(edges, inner, bias=False) if edges else None
        self.root = torch.nn.Parameter(torch.zeros(inner))
        self.activation = activation_named(activation)

    def forward(
        self, nodes: Nodes, edges: Edges | Embedding | None, batch: Batch
    ) -> tuple[NewNodes, Edges | Embedding | None]:
        """The states of the nodes after one step; those of the edges do not change."""
        source, target = batch.edge_index
        isolated = len(nodes) - batch.num_nodes  # graph tokens have no edges
        degree = torch.nn.functional.pad(batch.degrees(), (0, isolated)) + 1
        degree = degree.view(-1, *[1] * (nodes.ndim - 1))
        scale = (degree[source] * degree[target]).rsqrt()
        states = self.linear(nodes)
        shift = 0 if self.edge is None or edges is None else _product(self.edge, edges, batch)
        along, against = (self.activation(states[end] + shift) * scale for end in (source, target))
        own = self.activation(states + self.root) / degree
        inward, outward = batch.sum_edges(along, target, len(nodes)), batch.sum_edges(against, source, len(nodes))
        return self.activation(inward + outward + own), edges


def _product(matrix: torch.nn.Linear, edges: Edges | Embedding, batch: Batch) -> NewEdges:
    """The product of a matrix and the states or the features of the edges."""
    return edges.projected(batch, matrix) if isinstance(edges, Embedding) else matrix(edges)


class LocalNetwork(torch.nn.Module):
    """Several message passing steps; a linear layer reads the states before and after each of them, concatenated.

    If `normalised`, the states of the nodes are normalised after each step. Otherwise they are sums of sums, which grow
    with the power of the degree.
    """

    def __init__(
        self,
        steps: Sequence[torch.nn.Module],
        widths: Sequence[int],
        outputs: int,
        norm: bool,
        normalised: bool = False,
    ):
        super().__init__()
        self.steps = torch.nn.ModuleList(steps)
        self.norms = torch.nn.ModuleList(Norm(width) for width in (widths[1:] if normalised else ()))
        self.norm = Norm(sum(widths)) if norm else torch.nn.Identity()
        self.out = torch.nn.Linear(sum(widths), outputs)

    def forward(self, nodes: Nodes, edges: Edges | Embedding | None, batch: Batch) -> Tensor:
        """`[nodes, …, inputs]` to `[nodes, …, outputs]`."""
        states = [nodes]
        if isinstance(edges, Tensor):
            edges = edges.view(edges.shape[0], *[1] * (nodes.ndim - 2), edges.shape[-1])
        for number, step in enumerate(self.steps):
            new, edges = step(states[-1], edges, batch)
            states.append(self.norms[number](new) if self.norms else new)
        return self.out(self.norm(torch.cat(states, dim=-1)))


def edge_node_network(
    inputs: int,
    inner: int,
    outputs: int,
    steps: int,
    directed: bool,
    edges: int,
    activation: str,
    norm: bool,
    normalised: bool = False,
) -> LocalNetwork:
    """The network of `GNN` with any input and output width."""
    widths = [inputs] + [inner] * steps
    layers = [EdgeNodeStep(widths[i], inner if i else edges, inner, directed, activation) for i in range(steps)]
    return LocalNetwork(layers, widths, outputs, norm, normalised)


class GNN(Module):
    """Message passing with edge states: each step updates the edges, then the nodes, both of half the width.

    The states before and after each step are concatenated, normalised, and mapped to `width`.

    Args:
        width: Size of a node's state.
        steps: Number of message passing steps.
        directed: Whether messages along and against the edges are distinguished.
        edge_features: Embedding of the edge features, or a list of embeddings.
        activation: gelu or relu.
        normalised: Whether the states are normalised after each step; otherwise they grow with the degree.

    >>> import magnetite as mt
    >>> batch = mt.batch(mt.Digraphs.from_edges([[0, 1], [1, 2]]))
    >>> GNN(width=32)(torch.zeros(3, 32), batch).shape
    torch.Size([3, 32])
    """

    def __init__(
        self,
        width: int,
        steps: int = 3,
        directed: bool = True,
        edge_features: Embedding | Sequence[Embedding] | None = None,
        activation: str = "gelu",
        normalised: Annotated[bool, LATER] = False,
    ):
        super().__init__()
        self.embedding = None if edge_features is None else embedding_of(edge_features, width)
        edges = 0 if edge_features is None else width
        options = {"norm": True, "normalised": normalised}
        self.network = edge_node_network(width, width // 2, width, steps, directed, edges, activation, **options)

    def forward(self, states: Float[Tensor, "nodes d"], batch: Batch) -> Float[Tensor, "nodes d"]:
        """States that know their neighbourhood."""
        return self.network(states, self.embedding, batch)


class GCN(Module):
    """Graph convolutions that ignore direction.

    The states before and after each convolution are concatenated, normalised, and mapped to `width`.

    Args:
        width: Size of a node's state.
        steps: Number of convolutions.
        edge_features: Embedding of the edge features, or a list of embeddings.
        activation: gelu or relu.

    >>> import magnetite as mt
    >>> batch = mt.batch(mt.Digraphs.from_edges([[0, 1], [1, 2]]))
    >>> GCN(width=32)(torch.zeros(3, 32), batch).shape
    torch.Size([3, 32])
    """

    def __init__(
        self,
        width: int,
        steps: int = 2,
        edge_features: Embedding | Sequence[Embedding] | None = None,
        activation: str = "relu",
    ):
        super().__init__()
        self.embedding = None if edge_features is None else embedding_of(edge_features, width)
        layers = [GCNStep(width, 0 if edge_features is None else width, width, activation) for _ in range(steps)]
        self.network = LocalNetwork(layers, [width] * (steps + 1), width, norm=True)

    def forward(self, states: Float[Tensor, "nodes d"], batch: Batch) -> Float[Tensor, "nodes d"]:
        """States that know their neighbourhood."""
        return self.network(states, self.embedding, batch)


class DirGNNStep(torch.nn.Module):
    """`h ← σ(W h + α W' S h + (1 − α) W'' P h)` with `S = D_out^{-1/2} A D_in^{-1/2}` (successors) and `P = Sᵀ`."""

    def __init__(self, width: int, alpha: float, activation: str):
        super().__init__()
        self.alpha = alpha
        self.own, self.after, self.before = (torch.nn.Linear(width, width, bias=own) for own in (True, False, False))
        self.activation = activation_named(activation)

    def forward(
        self, nodes: Float[Tensor, "nodes d"], to_sources: SparseMatrix, to_targets: SparseMatrix
    ) -> Float[Tensor, "nodes d"]:
        """The states of the nodes after one step."""
        after = to_sources.times(self.after(nodes))
        before = to_targets.times(self.before(nodes))
        return self.activation(self.own(nodes) + self.alpha * after + (1 - self.alpha) * before)


class DirGNN(Module):
    """Directed convolutions, which keep messages from successors and from predecessors apart (Rossi et al., 2023).

    `h ← σ(W h + α W' Ã h + (1 − α) W'' Ãᵀ h)` with `Ã = D_out^{-1/2} A D_in^{-1/2}`. The states before and after each
    convolution are concatenated (jumping knowledge), normalised, and mapped to `width`. Memory grows with the nodes:
    no message is stored per edge.

    Args:
        width: Size of a node's state.
        steps: Number of convolutions.
        alpha: Share of the messages from successors, in [0, 1].
        activation: gelu or relu.

    >>> import magnetite as mt
    >>> batch = mt.batch(mt.Digraphs.from_edges([[0, 1], [1, 2]]))
    >>> DirGNN(width=32)(torch.zeros(3, 32), batch).shape
    torch.Size([3, 32])
    """

    def __init__(
        self,
        width: Annotated[int, SIZE],
        steps: Annotated[int, DEPTH] = 3,
        alpha: Annotated[float, Domain(0, 1)] = 0.5,
        activation: str = "gelu",
    ):
        super().__init__()
        self.steps = torch.nn.ModuleList(DirGNNStep(width, alpha, activation) for _ in range(steps))
        self.norm = Norm((steps + 1) * width)
        self.out = torch.nn.Linear((steps + 1) * width, width)

    def forward(self, states: Float[Tensor, "nodes d"], batch: Batch) -> Float[Tensor, "nodes d"]:
        """States that know their neighbourhood."""
        to_sources = normalised_adjacency(batch, len(states))
        to_targets = to_sources.transpose()
        found = [states]
        for step in self.steps:
            found.append(step(found[-1], to_sources, to_targets))
        return self.out(self.norm(torch.cat(found, dim=-1)))


def normalised_adjacency(batch: Batch, rows: int) -> SparseMatrix:
    """`A[u, v] / √(out(u) in(v))` of the edges `u → v` of a batch; graph tokens, among the `rows`, have no edges.

    >>> import magnetite as mt
    >>> batch = mt.batch(mt.Digraphs.from_edges([[0, 0], [1, 2]]))
    >>> normalised_adjacency(batch, rows=3).times(torch.ones(3, 1)).flatten().mul(100).round().tolist()
    [141.0, 0.0, 0.0]
    """
    source, target = batch.edge_index
    weight = batch.edge_weight * batch.edge_mask
    out, into = (torch.zeros(rows, device=batch.device).index_add(0, end, weight) for end in (source, target))
    product = (out[source] * into[target]).clamp(min=torch.finfo(torch.float32).tiny)
    return SparseMatrix(source, target, weight * product.rsqrt(), rows)
