"""Message passing along the edges: as a model, and as what gives a transformer the neighbourhoods of its nodes."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn.edges import EdgeEmbedding, gathered
from magnetite.nn.embeddings import Embedding
from magnetite.nn.heads import Head
from magnetite.nn.layers import Norm, activation_named
from magnetite.nn.maglapnet import SignNet
from magnetite.nn.model import GraphModel, Part
from magnetite.nn.module import Module, unused
from magnetite.nn.positions import PositionEncoder
from magnetite.nn.rows import as_rows, slots, united

Rows = Float[Tensor, "r *middle d"]
NewRows = Float[Tensor, "r *middle inner"]
Messages = Float[Tensor, "m *middle c"]
NewMessages = Float[Tensor, "m *middle inner"]


class EdgeNodeStep(torch.nn.Module):
    """`e ← σ(W [e ‖ h_u ‖ h_v])` for each edge `u → v`, then `h_v ← σ(W [h_v ‖ Σ_in e ‖ Σ_out e])` for each node.

    Undirected, `h_u + h_v` and `Σ_in e + Σ_out e` take the place of what stands side by side. The first matrix meets
    the nodes before they are copied to their edges: there are fewer nodes than ends of edges.
    """

    def __init__(self, nodes: int, edges: int, inner: int, directed: bool, activation: str):
        super().__init__()
        self.directed, sides = directed, 2 if directed else 1
        self.ends = torch.nn.Linear(nodes, sides * inner)
        self.edge = torch.nn.Linear(edges, inner, bias=False) if edges else None
        self.node = torch.nn.Linear(nodes + sides * inner, inner)
        self.activation = activation_named(activation)

    def forward(self, rows: Rows, edges: Messages | None, batch: Batch) -> tuple[NewRows, NewMessages]:
        """The states of nodes and edges after one step."""
        source, target = batch.edges
        seen = self.ends(rows)
        leaving, entering = seen.chunk(2, dim=-1) if self.directed else (seen, seen)
        messages = leaving[source] + entering[target]
        if self.edge is not None and edges is not None:
            messages = messages + self.edge(edges)
        messages = self.activation(messages)
        inward, outward = gathered(messages, target, batch), gathered(messages, source, batch)
        heard = [inward, outward] if self.directed else [inward + outward]
        return self.activation(self.node(torch.cat([rows, *heard], dim=-1))), messages


class GCNStep(torch.nn.Module):
    """`h_v ← σ(Σ_u σ(W h_u + W' e) / √(d_u d_v) + σ(W h_v + r) / d_v)` over neighbours either way, `d = degree + 1`."""

    def __init__(self, nodes: int, edges: int, inner: int, activation: str):
        super().__init__()
        self.linear = torch.nn.Linear(nodes, inner)
        self.edge = torch.nn.Linear(edges, inner, bias=False) if edges else None
        self.root = torch.nn.Parameter(torch.zeros(inner))
        self.activation = activation_named(activation)

    def forward(self, rows: Rows, edges: Messages | None, batch: Batch) -> tuple[NewRows, Messages | None]:
        """The states of the nodes after one step; those of the edges stay."""
        source, target = batch.edges
        degree = (batch.degrees() + 1).view(-1, *[1] * (rows.ndim - 1))
        scale = (degree[source] * degree[target]).rsqrt()
        states = self.linear(rows)
        shift = 0 if self.edge is None or edges is None else self.edge(edges)
        along, against = (self.activation(states[end] + shift) * scale for end in (source, target))
        own = self.activation(states + self.root) / degree
        return self.activation(gathered(along, target, batch) + gathered(against, source, batch) + own), edges


class LocalNetwork(torch.nn.Module):
    """Some steps, the states before and after each of them side by side, and one linear layer of all."""

    def __init__(self, steps: Sequence[torch.nn.Module], widths: Sequence[int], outputs: int, norm: bool):
        super().__init__()
        self.steps = torch.nn.ModuleList(steps)
        self.norm = Norm(sum(widths)) if norm else torch.nn.Identity()
        self.out = torch.nn.Linear(sum(widths), outputs)

    def forward(self, states: Tensor, edges: Messages | None, batch: Batch) -> Tensor:
        """`[b, n, …, inputs]` to `[b, n, …, outputs]`."""
        rows = [states.flatten(0, 1)]
        if edges is not None:
            edges = edges.view(edges.shape[0], *[1] * (states.ndim - 3), -1)
        for step in self.steps:
            new, edges = step(rows[-1], edges, batch)
            rows.append(new)
        return self.out(self.norm(torch.cat(rows, dim=-1))).unflatten(0, states.shape[:2])


def edge_node_network(
    inputs: int, inner: int, outputs: int, steps: int, directed: bool, edges: int, activation: str, norm: bool
) -> LocalNetwork:
    """The network of `GNN` with widths of its own."""
    widths = [inputs] + [inner] * steps
    layers = [EdgeNodeStep(widths[i], inner if i else edges, inner, directed, activation) for i in range(steps)]
    return LocalNetwork(layers, widths, outputs, norm)


class GNN(Module):
    """`steps` updates of edges, then nodes, of half the width; all states side by side, normalised, linear to `width`.

    `directed=False` does not see which way edges point. `edge_features` embeds what the edges are.

    >>> import magnetite as mt
    >>> batch = mt.pad(mt.Digraphs.from_edges([[0, 1], [1, 2]]))
    >>> GNN(width=32)(torch.zeros(1, 8, 32), batch).shape
    torch.Size([1, 8, 32])
    """

    def __init__(
        self,
        width: int,
        steps: int = 3,
        directed: bool = True,
        edge_features: EdgeEmbedding | None = None,
        activation: str = "gelu",
    ):
        super().__init__()
        self.embedding, inner = edge_features, width // 2
        if edge_features is not None:
            unused(edge_features).setup(width)
        edges = width if edge_features is not None else 0
        self.network = edge_node_network(width, inner, width, steps, directed, edges, activation, norm=True)

    def forward(self, states: Float[Tensor, "b n *middle d"], batch: Batch) -> Float[Tensor, "b n *middle d"]:
        """States that know their neighbourhood."""
        return self.network(states, None if self.embedding is None else self.embedding(batch), batch)


class GCN(Module):
    """`steps` graph convolutions that hear neighbours either way; all states side by side, normalised, linear.

    >>> import magnetite as mt
    >>> batch = mt.pad(mt.Digraphs.from_edges([[0, 1], [1, 2]]))
    >>> GCN(width=32)(torch.zeros(1, 8, 32), batch).shape
    torch.Size([1, 8, 32])
    """

    def __init__(
        self, width: int, steps: int = 2, edge_features: EdgeEmbedding | None = None, activation: str = "relu"
    ):
        super().__init__()
        self.embedding = edge_features
        if edge_features is not None:
            unused(edge_features).setup(width)
        edges = width if edge_features is not None else 0
        layers = [GCNStep(width, edges, width, activation) for _ in range(steps)]
        self.network = LocalNetwork(layers, [width] * (steps + 1), width, norm=True)

    def forward(self, states: Float[Tensor, "b n *middle d"], batch: Batch) -> Float[Tensor, "b n *middle d"]:
        """States that know their neighbourhood."""
        return self.network(states, None if self.embedding is None else self.embedding(batch), batch)


class SignGNN(SignNet):
    """`f` of a SignNet is a GNN over the graph, applied to each eigenvector alone."""

    def __init__(self, steps: int = 1, directed: bool = True, activation: str = "gelu"):
        super().__init__()
        self.steps, self.directed, self.activation = steps, directed, activation

    def setup(self, parts: int, channels: int) -> None:
        """Make the network."""
        options = {"directed": self.directed, "edges": 0, "activation": self.activation, "norm": False}
        self.network = edge_node_network(parts, channels, channels, self.steps, **options)

    def one_sign(self, vectors: Float[Tensor, "b n *Q k parts"], batch: Batch) -> Float[Tensor, "b n *Q k c"]:
        """The GNN."""
        return self.network(vectors, None, batch)


class DigraphGNN(GraphModel):
    """Embedding + positions → a local network, such as `GNN(width)` → head.

    >>> import magnetite as mt
    >>> model = mt.nn.DigraphGNN(width=32, head=mt.nn.GraphHead(2, readout="mean"))
    >>> model(mt.Digraphs.from_edges([[0, 1], [1, 2]])).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        width: int,
        head: Head,
        local: GNN | GCN | None = None,
        position: PositionEncoder | Sequence[PositionEncoder] | None = None,
        embedding: Embedding | None = None,
    ):
        super().__init__(width, head, position, embedding)
        no_token(head)
        self.local = local if local is not None else GNN(width)

    def body(self, parts: Sequence[Part]) -> list[Float[Tensor, "_ _ d"]]:
        """The local network."""
        no_biases(parts)
        batches, rows = [part.batch for part in parts], as_rows([part.states for part in parts])
        return slots(self.local(rows[None], united(batches))[0], batches)


def no_biases(parts: Sequence[Part]) -> None:
    """Refuse biases of attention where there is no attention."""
    if any(part.positions.biases for part in parts):
        raise ValueError("these positions bias attention, and this model has none: give an encoder of nodes")


def no_token(head: Head) -> None:
    """Refuse a head that reads a token of the whole graph, which no message would reach."""
    if head.needs_cls:
        raise ValueError("readout='cls' needs attention to fill the token of the graph: give readout='mean' or 'sum'")
