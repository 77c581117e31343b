"""Batch: packed nodes, edges, features and encodings of some graphs, and how they are padded, bucket by bucket."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from magnetite.batching.buckets import Bucket, Layout
from magnetite.batching.query import Query, all_nodes

Padded = list[Shaped[Tensor, "_ _ ..."]]
"""One `[b, n, …]` tensor per bucket."""


@dataclass(frozen=True, eq=False)
class BatchedEigenpairs:
    """Eigenpairs of the graphs of a batch; with several potentials, every shape has an axis `Q` before `k`.

    Args:
        values: Eigenvalues per graph.
        vectors: Entries per node, real and imaginary parts on the last axis.
        mask: Which of the `k` eigenpairs exist.
    """

    values: Float[Tensor, "graphs *Q k"]
    vectors: Float[Tensor, "nodes *Q k parts"]
    mask: Bool[Tensor, "graphs *Q k"]


@dataclass(frozen=True, eq=False)
class BatchedTopPairs:
    """Features of some node pairs of the graphs of a batch: those of each node with up to `top` others.

    Args:
        landing: The other nodes, as packed node numbers; the node itself where there are fewer.
        mask: Which of them exist; a node always has itself, even if no other node is listed.
        values: Features of the pairs, zero where there is none.
    """

    landing: Int[Tensor, "nodes top"]
    mask: Bool[Tensor, "nodes top"]
    values: Float[Tensor, "nodes top f"]


@dataclass(frozen=True, eq=False)
class Places:
    """The mapping between packed tokens (all nodes, then one graph token per graph) and positions in padded buckets.

    Padded positions are numbered across all buckets, one bucket after the other.

    Args:
        token: For each padded position, the token at it.
        filled: For each padded position, whether there is a token at it.
        place: For each token, its padded position.
        real: For each token, whether it is real, not padding at the end of the packed nodes.
        layout: The padded positions of each graph, a function of the buckets alone.
    """

    token: Int[Tensor, " places"]
    filled: Bool[Tensor, " places"]
    place: Int[Tensor, " tokens"]
    real: Bool[Tensor, " tokens"]
    layout: Layout


class Batch:
    """Some graphs, packed: the nodes of all graphs one after the other, `[N, …]`.

    Use `magnetite.batch` instead of the constructor. A batch of fixed shape, as training uses for compiled kernels,
    ends in padding nodes, edges and query pairs, for which the masks are false; otherwise all masks are true. (Not a
    dataclass, because Lightning Fabric would convert its fields.)

    Args:
        sizes: Nodes per graph.
        whole_sizes: Nodes per graph before neighbourhoods were sampled from it; otherwise equal to `sizes`.
        node_graph: The graph of each node.
        node_mask: Which nodes are real.
        edge_index: Source and target of each edge, as packed node numbers.
        edge_mask: Which edges are real.
        edge_weight: Weight of each edge, 1 where the graphs have none.
        node_features: Features per node, by name.
        edge_features: Features per edge, by name.
        graph_features: Features per graph, by name.
        encodings: Encodings by name: `BatchedEigenpairs`, `BatchedTopPairs`, a tensor with one row per node, or one
            `[b, n, n, f]` tensor per bucket.
        query: Query pairs for which a `PairHead` predicts; None for all node pairs.
        buckets: The padded shapes.
        places: The padded positions of nodes and graph tokens.
    """

    def __init__(
        self,
        *,
        sizes: Int[Tensor, " graphs"],
        whole_sizes: Int[Tensor, " graphs"],
        node_graph: Int[Tensor, " nodes"],
        node_mask: Bool[Tensor, " nodes"],
        edge_index: Int[Tensor, "2 edges"],
        edge_mask: Bool[Tensor, " edges"],
        edge_weight: Float[Tensor, " edges"],
        node_features: Mapping[str, Tensor],
        edge_features: Mapping[str, Tensor],
        graph_features: Mapping[str, Tensor],
        encodings: Mapping[str, Any],
        query: Query | None,
        buckets: tuple[Bucket, ...],
        places: Places,
    ):
        self.sizes, self.whole_sizes = sizes, whole_sizes
        self.node_graph, self.node_mask = node_graph, node_mask
        self.edge_index, self.edge_mask, self.edge_weight = edge_index, edge_mask, edge_weight
        self.node_features, self.edge_features, self.graph_features = node_features, edge_features, graph_features
        self.encodings, self.query, self.buckets, self.places = encodings, query, buckets, places

    def __len__(self) -> int:
        return self.sizes.numel()

    def __repr__(self) -> str:
        held = ", ".join(self.encodings) or "no encodings"
        return f"Batch({len(self)} graphs, {self.num_nodes} nodes, {self.num_edges} edges, {held})"

    @property
    def device(self) -> torch.device:
        """The device that holds the tensors."""
        return self.sizes.device

    @property
    def num_nodes(self) -> int:
        """Number of packed nodes, `N`."""
        return self.node_graph.numel()

    @property
    def num_edges(self) -> int:
        """Number of edges, `M`."""
        return self.edge_mask.numel()

    def encoding(self, name: str) -> Any:
        """The encoding with this name.

        >>> import magnetite as mt
        >>> mt.batch(mt.Digraphs.from_edges([[0], [1]])).encoding("eigenpairs")
        Traceback (most recent call last):
        ValueError: the batch has no encoding 'eigenpairs' (it has none): call mt.batch(graphs, eigenpairs=…)
        """
        if name not in self.encodings:
            known = ", ".join(self.encodings) or "none"
            raise ValueError(f"the batch has no encoding {name!r} (it has {known}): call mt.batch(graphs, {name}=…)")
        return self.encodings[name]

    def per_node(self, values: Shaped[Tensor, "graphs ..."]) -> Shaped[Tensor, "nodes ..."]:
        """For each node, the value of its graph."""
        return values.index_select(0, self.node_graph)

    def node_numbers(self) -> Int[Tensor, " nodes"]:
        """For each node, its number within its graph."""
        return self.places.place[: self.num_nodes] - self.places.layout.first[self.node_graph]

    def sum_nodes(self, states: Float[Tensor, "nodes ..."]) -> Float[Tensor, "graphs ..."]:
        """`Σ_v h_v` per graph, in single precision.

        >>> import magnetite as mt
        >>> mt.batch(mt.Digraphs.from_edges([[0], [1]])).sum_nodes(torch.ones(2, 3)).tolist()
        [[2.0, 2.0, 2.0]]
        """
        return self._by_graph([padded.float().sum(1) for padded in self.pad(states)])

    def mean_nodes(self, states: Float[Tensor, "nodes ..."]) -> Float[Tensor, "graphs ..."]:
        """`Σ_v h_v / n` per graph, in single precision."""
        return self.sum_nodes(states) / self.sizes.view(-1, *[1] * (states.ndim - 1))

    def max_nodes(self, states: Float[Tensor, "nodes ..."]) -> Float[Tensor, "graphs ..."]:
        """`max_v h_v` per graph, in single precision."""
        both = zip(self.pad(states), self.filled(), strict=True)
        return self._by_graph(
            [padded.float().masked_fill(~mask.view(*mask.shape, *[1] * (padded.ndim - 2)), -torch.inf).amax(1)
             for padded, mask in both]
        )  # fmt: skip

    def attend_nodes(
        self, scores: Float[Tensor, "nodes heads"], states: Float[Tensor, "nodes d"]
    ) -> Float[Tensor, "graphs heads d"]:
        """`Σ_v α_v h_v` per graph and head, where `α` is the softmax of the scores over the nodes of the graph.

        >>> import magnetite as mt
        >>> batch = mt.batch(mt.Digraphs.from_edges([[0], [1]]))
        >>> batch.attend_nodes(torch.zeros(2, 1), torch.tensor([[1.0], [3.0]])).tolist()
        [[[2.0]]]
        """
        each = zip(self.pad(scores), self.pad(states), self.filled(), strict=True)
        # Not −∞, since a graph of a fixed shape may have no nodes; its states are zero.
        return self._by_graph(
            [
                shares.float().masked_fill(~mask[..., None], -1e30).softmax(1).transpose(1, 2) @ padded.float()
                for shares, padded, mask in each
            ]
        )

    def sum_edges(
        self, messages: Float[Tensor, "edges ..."], at: Int[Tensor, " edges"], rows: int
    ) -> Float[Tensor, "rows ..."]:
        """`Σ_{e: at(e) = v} message_e` for `v < rows`, in single precision.

        >>> import magnetite as mt
        >>> batch = mt.batch(mt.Digraphs.from_edges([[0, 1], [2, 2]]))
        >>> batch.sum_edges(torch.ones(2, 1), at=batch.edge_index[1], rows=3).flatten().tolist()
        [0.0, 0.0, 2.0]
        """
        mask = self.edge_mask.view(-1, *[1] * (messages.ndim - 1))
        sums = messages.new_zeros((rows, *messages.shape[1:]), dtype=torch.float32)
        return sums.index_add(0, at, messages.float() * mask)

    def degrees(self) -> Float[Tensor, " nodes"]:
        """Number of edges at each node, in either direction; repeated edges are all counted."""
        ones = self.edge_mask.float()
        counts = torch.zeros(self.num_nodes, device=self.device)
        return counts.index_add(0, self.edge_index[0], ones).index_add(0, self.edge_index[1], ones)

    def pad(self, states: Shaped[Tensor, "tokens ..."]) -> Padded:
        """Pad packed states, of nodes or of nodes and graph tokens: one `[b, n, …]` tensor per bucket, zero in padding.

        The last padded position of each graph is reserved for its graph token.
        """
        token, filled, place, real = self._way(states.shape[0] > self.num_nodes)
        flat = _Move.apply(states, token, filled, place, real)
        return self._split(flat)  # type: ignore[arg-type]

    def unpad(self, padded: Sequence[Shaped[Tensor, "_ _ ..."]], graph_tokens: bool = False) -> Shaped[Tensor, "_ ..."]:
        """Pack padded states, the inverse of `pad`: nodes, followed by the graph tokens if `graph_tokens` is true."""
        token, filled, place, real = self._way(graph_tokens)
        flat = _joined([part.flatten(0, 1) for part in padded])
        return _Move.apply(flat, place, real, token, filled)  # type: ignore[return-value]

    def filled(self, graph_tokens: bool = False) -> list[Bool[Tensor, "_ _"]]:
        """For each bucket, which padded positions hold a node (with `graph_tokens`, a node or a graph token)."""
        return self._split(self._way(graph_tokens)[1])

    def by_bucket(self, values: Shaped[Tensor, "graphs ..."]) -> list[Shaped[Tensor, "_ ..."]]:
        """Split values per graph by bucket."""
        position = self.places.layout.bucket_position
        ordered = values if position is None else values.index_select(0, position.argsort())
        return list(ordered.split([bucket.graphs for bucket in self.buckets]))

    def adjacency(self) -> list[Float[Tensor, "_ _ _"]]:
        """`A[g, u, v] = w` per bucket, in single precision; repeated edges are summed.

        >>> import magnetite as mt
        >>> mt.batch(mt.Digraphs.from_edges([[0], [1]])).adjacency()[0][0, :2, :2].tolist()
        [[0.0, 1.0], [0.0, 0.0]]
        """
        counts = [bucket.graphs * bucket.nodes**2 for bucket in self.buckets]
        flat = torch.zeros(sum(counts), device=self.device)
        flat = flat.index_add(0, self._pair_places(*self.edge_index), self.edge_weight * self.edge_mask)
        parts = zip(flat.split(counts), self.buckets, strict=True)
        return [part.view(bucket.graphs, bucket.nodes, bucket.nodes) for part, bucket in parts]

    def at_query(self, padded: Sequence[Shaped[Tensor, "_ _ _ c"]], query: Query) -> Shaped[Tensor, "pairs c"]:
        """The entries of padded `[b, n, n, c]` tensors, one per bucket, at the query pairs."""
        flat = _joined([part.flatten(0, 2) for part in padded])
        return flat.index_select(0, self._pair_places(query.source, query.target))

    def all_pairs(self) -> Query:
        """Every ordered pair of nodes of each graph as query pairs, source by source, with labels of zero."""
        graph, source, target = all_nodes(self.sizes)
        first = (self.sizes.cumsum(0) - self.sizes)[graph]
        labels = torch.zeros_like(graph, dtype=torch.int16)
        return Query(first + source, first + target, labels, torch.ones_like(graph, dtype=torch.bool))

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "Batch":
        """The same batch on `device`."""
        return self.map(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def map(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        """The same batch with every tensor changed."""
        return Batch(**{name: _map(value, change) for name, value in vars(self).items()})

    def tensors(self) -> list[Tensor]:
        """Every tensor, in the same order for all batches with the same features and encodings."""
        found: list[Tensor] = []
        self.map(lambda tensor: found.append(tensor) or tensor)
        return found

    def _way(self, graph_tokens: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The fields `token`, `filled`, `place` and `real` of `Places`, with or without the graph tokens."""
        ways, nodes = self.places, self.num_nodes
        if graph_tokens:
            return ways.token, ways.filled, ways.place, ways.real
        node = ways.token < nodes
        return torch.where(node, ways.token, 0), ways.filled & node, ways.place[:nodes], ways.real[:nodes]

    def _split(self, flat: Shaped[Tensor, "places ..."]) -> Padded:
        parts = flat.split([bucket.graphs * bucket.nodes for bucket in self.buckets])
        return [
            part.unflatten(0, (bucket.graphs, bucket.nodes)) for part, bucket in zip(parts, self.buckets, strict=True)
        ]

    def _by_graph(self, parts: Sequence[Shaped[Tensor, "_ ..."]]) -> Shaped[Tensor, "graphs ..."]:
        """Join values per graph of all buckets, in the order of the graphs."""
        joined, order = _joined(parts), self.places.layout.bucket_position
        return joined if order is None else joined.index_select(0, order)

    def _pair_places(self, source: Int[Tensor, " pairs"], target: Int[Tensor, " pairs"]) -> Int[Tensor, " pairs"]:
        """The indices of pairs of packed nodes in flattened `[b, n, n]` tensors, one bucket after the other."""
        layout, graph = self.places.layout, self.node_graph[source]
        first = layout.first[graph]
        u, v = self.places.place[source] - first, self.places.place[target] - first
        return layout.first_pair[graph] + u * layout.width[graph] + v


class _Move(torch.autograd.Function):
    """`out[i] = given[there[i]]` where `real[i]`, else 0. The backward pass gathers, too, with the inverse indices.

    No two rows move to the same index. Autograd does not know this, and would add up gradients one by one.
    """

    @staticmethod
    def forward(given: Tensor, there: Tensor, real: Tensor, back: Tensor, back_real: Tensor) -> Tensor:  # noqa: ARG004
        return _moved(given, there, real)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs[3:])

    @staticmethod
    def backward(ctx: Any, upper: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _moved(upper, *ctx.saved_tensors), None, None, None, None


def _moved(given: Tensor, there: Tensor, real: Tensor) -> Tensor:
    return torch.where(real.view(-1, *[1] * (given.ndim - 1)), given.index_select(0, there), 0)


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """The parts one after the other; a single one is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def _map(item: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Apply `change` to every tensor of nested mappings, lists and dataclasses."""
    if isinstance(item, Tensor):
        return change(item)
    if isinstance(item, Mapping):
        return {name: _map(part, change) for name, part in item.items()}
    if isinstance(item, list):
        return [_map(part, change) for part in item]
    if is_dataclass(item) and not isinstance(item, type):
        return type(item)(**{field.name: _map(getattr(item, field.name), change) for field in fields(item)})
    return item
