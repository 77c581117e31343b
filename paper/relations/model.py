"""WireRelations: a vector for every two wires of a sorting network, updated by one comparator after the other."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch
from magnetite.kernels._compat import assert_async
from magnetite.nn.embeddings import Embedding, node_feature
from magnetite.nn.encoders import PositionEncoder
from magnetite.nn.encoders.base import Positions
from magnetite.nn.heads import Head
from magnetite.nn.models import GraphModel, no_biases
from paper.relations import steps
from paper.relations.loop import Networks


class WireRelations(GraphModel):
    """A vector `R_ab` for every two wires of a network; its comparators update them one after the other.

    A comparator with state `x` on wires `i < j` updates the relations of both to every wire `k`:
    `R_ik, R_jk ← N(R + σ(g) ⊙ u)`, `[g, u] = C gelu(M [R_ik, R_jk] + L R_ij + kind_k + D x)`, where `N` is layer
    normalisation and `kind_k` says whether `k` is below, between, above, or one of the two. At the end,
    `max_k gelu(W R_{k,k+1})` is the graph token that the head reads. The parameters do not depend on the number of
    wires, and only the order of the wires matters, not their numbers.

    Comparators act in parallel steps, and within a step from the first wire on, so the result is a function of the
    graph; nodes must be numbered in an order in which the network can run. Graphs need the node feature `wires`, the
    two wires of each comparator, and the graph feature `length`, the number of wires.

    Args:
        width: Size of a node's state and of the graph token.
        head: A head that reads the graph token.
        position: Position encoder, or a list of them.
        embedding: Embedding of the node features, or a list of them; by default all nodes have the same vector.
        state: Size of the vector of two wires.
        wires: Largest number of wires in training, where shapes are fixed.

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
        embedding: Embedding | Sequence[Embedding] | None = None,
        state: int = 32,
        wires: int = 16,
    ):
        super().__init__(width, head, position, embedding)
        if not head.needs_graph_token:
            raise ValueError("WireRelations needs a head that reads the graph token, such as GraphHead(2)")
        if state < 1 or wires < 2:
            raise ValueError(f"state must be at least 1 and wires at least 2, got state={state}, wires={wires}")
        self.wires, inner = wires, 4 * state
        self.start = torch.nn.Parameter(torch.randn(2, state))
        self.kinds = torch.nn.Parameter(torch.randn(steps.KINDS, inner) / 2)
        self.drive = torch.nn.Linear(width, inner)
        self.mix = torch.nn.Linear(2 * state, inner, bias=False)
        self.lean = torch.nn.Linear(state, inner, bias=False)
        self.change = torch.nn.Linear(inner, 4 * state)
        self.out = torch.nn.Linear(state, width)

    def body(self, states: Float[Tensor, "nodes d"], batch: Batch, positions: Positions) -> Float[Tensor, "tokens d"]:
        """The states of the nodes as they were, and the graph tokens."""
        no_biases(positions)
        lengths = _lengths(batch)
        most = self.wires if self.training else max(2, int(lengths.max()))
        assert_async(
            (lengths <= most).all(), lambda: f"networks have up to {int(lengths.max())} wires, but wires={most}"
        )
        order, wires, networks = _run_order(batch, most)
        drive = self.drive(states).index_select(0, order)
        matrices = (self.kinds, self.mix.weight, self.lean.weight, self.change.weight, self.change.bias)
        relations, *_ = steps.steps(
            torch.nn.functional.layer_norm(self.start, self.start.shape[-1:]),
            drive,
            *(matrix.to(drive) for matrix in matrices),
            wires,
            *networks,
            most,
        )
        near = torch.nn.functional.gelu(self.out(relations.diagonal(1, 1, 2).transpose(1, 2)))
        real = torch.arange(1, near.shape[1] + 1, device=lengths.device) < lengths[:, None]
        tokens = torch.where(real[..., None], near, -1).amax(1)  # gelu is above -1 everywhere
        return torch.cat([states.to(tokens), tokens])


def _lengths(batch: Batch) -> Int[Tensor, " graphs"]:
    if "length" not in batch.graph_features:
        raise ValueError("the graphs have no feature 'length': add the number of wires to graph_features")
    return batch.graph_features["length"].long()


def _run_order(batch: Batch, most: int) -> tuple[Int[Tensor, " nodes"], Int[Tensor, "nodes 2"], Networks]:
    """The order in which the nodes of each graph act, which the graph decides; then their wires, and where graphs lie.

    Padding stays at the end, on the first two wires.
    """
    real, wires = batch.node_mask, node_feature(batch, "wires").long()
    wires = torch.where(real[:, None], wires, torch.arange(2, device=wires.device))
    assert_async(
        (wires[:, 0] < wires[:, 1]).all(), lambda: "the first wire of every node must be smaller than its second"
    )
    known = (wires[:, 0] >= 0) & (wires[:, 1] < batch.per_node(_lengths(batch))) | ~real
    assert_async(known.all(), lambda: "node feature 'wires' exceeds the graph's feature 'length'")
    source, target = batch.edge_index
    assert_async(
        ((source < target) | ~batch.edge_mask).all(),
        lambda: "an edge points to a node of lower number: number the nodes in an order in which the network can run",
    )
    networks = networks_of(batch)
    step = steps.parallel_steps(wires, *networks, most)
    graph = torch.where(real, batch.node_graph, len(batch))
    order = ((graph * (len(networks.counts) + 1) + step) * most + wires[:, 0]).argsort(stable=True)
    return order, wires[order], networks


def networks_of(batch: Batch) -> Networks:
    """Where the networks of a batch lie, as a function of its sizes and buckets.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[[0], [1]], [[0, 1], [1, 2]]])
    >>> networks_of(mt.batch(graphs)).first.tolist()
    [0, 2]
    """
    most = max(bucket.nodes for bucket in batch.buckets) - 1  # one position is the graph token's
    counts = [sum(b.graphs for b in batch.buckets if b.nodes - 1 > step) for step in range(most)]
    order = batch.places.layout.width.argsort(descending=True, stable=True)
    return Networks(batch.sizes.cumsum(0) - batch.sizes, batch.sizes, order, counts)
