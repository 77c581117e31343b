"""Sampled subgraphs of large graphs: some nodes, a bounded number of their neighbours, and the edges between them.

PyG's `NeighborLoader` needs pyg-lib or torch-sparse for this, on which magnetite does not depend; a compiled CPU kernel
does it here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from magnetite.batching.batch import Batch
from magnetite.batching.buckets import BatchShape, split_sizes
from magnetite.batching.gather import gather
from magnetite.encodings.results import Eigenpairs, NodeEncoding, TopPairs
from magnetite.graphs import Digraphs
from magnetite.packed import Packed, starts


@dataclass(frozen=True, eq=False)
class Sample:
    """Some nodes of packed graphs, graph by graph, and the edges between them.

    Args:
        nodes: Packed numbers of the nodes.
        edges: Numbers of the edges, in the direction that they have in the whole graphs.
        graphs: Numbers of the graphs that have nodes in the sample.
        node_ptr: Where the nodes of each of these graphs begin.
        edge_ptr: Where their edges begin.
        ends: Source and target of each edge, numbered within its graph of the sample.
        seeds: Where the nodes that the sample was taken around are among its nodes, in their order.
        number: For each node of the whole graphs, its number within its graph of the sample; −1 if it is not in it.
    """

    nodes: Int[Tensor, " chosen"]
    edges: Int[Tensor, " between"]
    graphs: Int[Tensor, " some"]
    node_ptr: Int[Tensor, " starts"]
    edge_ptr: Int[Tensor, " starts"]
    ends: Int[Tensor, "2 between"]
    seeds: Int[Tensor, " seeds"]
    number: Int[Tensor, " nodes"]


@dataclass(frozen=True)
class Neighbourhoods:
    """Samples of the neighbourhoods of nodes in large graphs, along and against the edges.

    In hop `h`, each node that the hop before reached adds up to `fanouts[h]` random successors and as many
    predecessors. The sample has all edges between its nodes, in their true direction.

    Args:
        graphs: The graphs, on any device; sampling is done on the CPU.
        fanouts: Number of successors and of predecessors per node, for each hop.

    >>> graphs = Digraphs.from_edges([[0, 1, 2, 3], [1, 2, 3, 4]])
    >>> sample = Neighbourhoods(graphs, (1,)).sample(torch.tensor([3]), key=0)
    >>> sample.nodes.tolist(), sample.ends.tolist()
    ([3, 4, 2], [[0, 2], [1, 0]])
    """

    graphs: Digraphs
    fanouts: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(not isinstance(count, int) or isinstance(count, bool) or count < 1 for count in self.fanouts):
            raise ValueError(f"numbers of neighbours must be positive integers such as (8, 4), got {self.fanouts!r}")

    @cached_property
    def _rows(self) -> tuple[np.ndarray, ...]:
        """Compressed rows of successors, the edge of each, and compressed rows of predecessors."""
        source, target = self.graphs.edge_index.cpu().numpy()
        size, order = self.graphs.num_nodes, np.argsort(source, kind="stable")
        starts_of = [np.bincount(end, minlength=size).cumsum() for end in (source, target)]
        out_start, in_start = (np.concatenate([np.zeros(1, np.int64), counts]) for counts in starts_of)
        return out_start, target[order], order, in_start, source[np.argsort(target, kind="stable")]

    @cached_property
    def _node_graph(self) -> np.ndarray:
        return self.graphs.node_graph.cpu().numpy()

    def sample(self, seeds: Int[Tensor, " seeds"], key: int) -> Sample:
        """The neighbourhoods of some nodes, a function of these nodes and the key alone.

        Args:
            seeds: Packed numbers of the nodes.
            key: Seed of the random numbers.
        """
        from magnetite.kernels.cpu.neighbours import edges_between, sample_neighbours

        out_start, out_node, out_edge, in_start, in_node = self._rows
        asked = np.ascontiguousarray(seeds.cpu().numpy(), dtype=np.int64)
        number = np.full(self.graphs.num_nodes, -1, np.int64)
        fanouts = np.array(self.fanouts, np.int64)
        nodes = sample_neighbours(out_start, out_node, in_start, in_node, asked, fanouts, key, number)
        graph = self._node_graph[nodes]
        if len(self.graphs) > 1:  # graph by graph, within a graph the seeds first
            order = np.argsort(graph, kind="stable")
            nodes, graph = nodes[order], graph[order]
        places = edges_between(out_start, out_node, nodes, number)
        edges = out_edge[places]
        graphs, first, counts = np.unique(graph, return_index=True, return_counts=True)
        number[nodes] = np.arange(nodes.size) - np.repeat(first, counts)
        source, target = self._ends
        place = number[asked] + first[np.searchsorted(graphs, self._node_graph[asked])]
        edge_graph = np.searchsorted(graphs, self._node_graph[source[edges]])
        edge_counts = np.bincount(edge_graph, minlength=graphs.size)
        ends = np.stack([number[source[edges]], number[target[edges]]])
        return Sample(
            nodes=torch.from_numpy(nodes),
            edges=torch.from_numpy(edges),
            graphs=torch.from_numpy(graphs),
            node_ptr=starts(torch.from_numpy(counts)),
            edge_ptr=starts(torch.from_numpy(edge_counts)),
            ends=torch.from_numpy(ends),
            seeds=torch.from_numpy(place),
            number=torch.from_numpy(number),
        )

    @cached_property
    def _ends(self) -> np.ndarray:
        return self.graphs.edge_index.cpu().numpy()


def sampled_batch(
    graphs: Digraphs, sample: Sample, encodings: Mapping[str, Packed], changed: Mapping[str, Tensor] | None = None
) -> Batch:
    """The batch of a sample; positions are those of the whole graphs.

    Args:
        graphs: The whole graphs.
        sample: Some of their nodes and edges.
        encodings: Encodings of the whole graphs, by name.
        changed: Node features of the sample that replace those of the graphs.
    """
    part = restricted_graphs(graphs, sample)
    if changed:
        part = part.replace(node_features={**part.node_features, **changed})
    parts = {name: restricted(encoding, sample, name) for name, encoding in encodings.items()}
    buckets, order = split_sizes(part.sizes.cpu().numpy())
    shape, ids = BatchShape(buckets, part.num_nodes, part.num_edges), torch.arange(len(part), device=part.device)
    whole = graphs.sizes[sample.graphs.to(graphs.device)]
    return gather(part, ids, shape, parts, order=order, whole_sizes=whole)


def restricted_graphs(graphs: Digraphs, sample: Sample) -> Digraphs:
    """The subgraphs of a sample, with the features of their nodes, edges and graphs."""
    nodes, edges, chosen = (each.to(graphs.device) for each in (sample.nodes, sample.edges, sample.graphs))

    def rows(features: Mapping[str, Tensor], numbers: Tensor) -> dict[str, Tensor]:
        return {name: values.index_select(0, numbers) for name, values in features.items()}

    return Digraphs(
        node_ptr=sample.node_ptr.to(graphs.device),
        edge_ptr=sample.edge_ptr.to(graphs.device),
        edges=sample.ends.to(graphs.edges),
        weights=None if graphs.weights is None else graphs.weights.index_select(0, edges),
        node_features=rows(graphs.node_features, nodes),
        edge_features=rows(graphs.edge_features, edges),
        graph_features=rows(graphs.graph_features, chosen),
    )


def restricted(encoding: Packed, sample: Sample, name: str) -> Any:
    """The rows of an encoding of the whole graphs that belong to a sample."""
    nodes, graphs = sample.nodes.to(encoding.device), sample.graphs.to(encoding.device)
    node_ptr = sample.node_ptr.to(encoding.device)
    if isinstance(encoding, Eigenpairs):
        per_graph = {each: getattr(encoding, each)[graphs] for each in ("values", "mask", "group", "anchored")}
        return Eigenpairs._trusted(node_ptr=node_ptr, vectors=encoding.vectors.index_select(0, nodes), **per_graph)
    if isinstance(encoding, NodeEncoding):
        return NodeEncoding._trusted(node_ptr=node_ptr, values=encoding.values.index_select(0, nodes))
    if isinstance(encoding, TopPairs):
        return _restricted_pairs(encoding, sample, nodes, node_ptr)
    raise ValueError(
        f"encoding {name!r} has features of all node pairs, which sampled subgraphs do not have: use one with node "
        "vectors (magnetic, svd, walk-sums), or data.neighbours=[] to train on whole graphs"
    )


def _restricted_pairs(encoding: TopPairs, sample: Sample, nodes: Tensor, node_ptr: Tensor) -> TopPairs:
    """The landing nodes that are in the sample; others are left out, as if they were less likely."""
    landing = encoding.landing.index_select(0, nodes).long()
    first = encoding.node_ptr[encoding.node_graph[nodes]][:, None]
    number = sample.number.to(encoding.device)
    landing = torch.where(landing >= 0, number[(first + landing).clamp(min=0)], -1)
    values = encoding.values.index_select(0, nodes) * (landing >= 0)[..., None]
    lost = encoding.lost.index_select(0, nodes)
    return TopPairs._trusted(node_ptr=node_ptr, landing=landing, values=values, lost=lost)


def evenly(seeds: Int[Tensor, " seeds"], most: int) -> Sequence[Tensor]:
    """Nodes in groups of at most `most`, all of nearly the same size.

    >>> [len(group) for group in evenly(torch.arange(10), most=4)]
    [4, 3, 3]
    """
    return seeds.tensor_split(max(1, -(-len(seeds) // most)))
