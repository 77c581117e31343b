"""Graphs of functions as numbers: packed arrays with node types, attributes, depths, and types of edges as features."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch

from magnetite.code.graph import EDGE_NAME_NUMBER, EDGE_TYPE_NUMBER, EDGE_TYPES, NODE_TYPE_NUMBER, CodeGraph
from magnetite.code.vocabulary import Vocabulary
from magnetite.graphs import Digraphs

Arrays = Mapping[str, np.ndarray]

INVERSE = np.array([name.endswith("_INVERSE") for name in EDGE_TYPES])
"""Whether an edge type is the inverse of another."""


def to_digraphs(graphs: Sequence[CodeGraph], attributes: Vocabulary | None = None) -> Digraphs:
    """Graphs of functions in one container, with the features that models of code read.

    Node features are `node_type`, `attribute` and `depth`; edge features are `edge_type`, `edge_name` and
    `edge_direction` (1 for the inverse of an edge). The weights of parallel edges, which differ in type, add up to 1.

    Args:
        graphs: The graphs.
        attributes: Vocabulary of the attributes; without one, all texts are "unknown".

    >>> from magnetite import code
    >>> graph = code.build("def f(a, b):\\n    return a + b")
    >>> to_digraphs([graph, graph], Vocabulary(["a"])).node_features["attribute"].tolist()[:6]
    [0, 1, 2, 0, 1, 1]
    """
    return digraphs_of(packed_arrays(graphs, attributes if attributes is not None else Vocabulary()))


def packed_arrays(graphs: Sequence[CodeGraph], attributes: Vocabulary) -> Arrays:
    """The arrays of `to_digraphs` by the names of `Digraphs.tensors`.

    Args:
        graphs: The graphs.
        attributes: Vocabulary of the attributes.
    """
    columns = list(zip(*(edge for graph in graphs for edge in graph.edges), strict=True)) or [(), (), (), ()]
    sources, targets, types, names = columns
    return arrays(
        nodes=[len(graph) for graph in graphs],
        counts=[len(graph.edges) for graph in graphs],
        edges=np.array([sources, targets], dtype=np.int32),
        node_type=_numbers(NODE_TYPE_NUMBER.get(name, 0) for graph in graphs for name in graph.types),
        attribute=_numbers(attributes.numbers(text for graph in graphs for text in graph.attributes)),
        depth=_numbers(depth for graph in graphs for depth in graph.depths),
        edge_type=_numbers(EDGE_TYPE_NUMBER[name] for name in types),
        edge_name=_numbers(EDGE_NAME_NUMBER.get(name, 0) for name in names),
    )


def arrays(
    nodes: Sequence[int] | np.ndarray,
    counts: Sequence[int] | np.ndarray,
    edges: np.ndarray,
    node_type: np.ndarray,
    attribute: np.ndarray,
    depth: np.ndarray,
    edge_type: np.ndarray,
    edge_name: np.ndarray,
) -> Arrays:
    """The arrays of `Digraphs.tensors` from columns; the direction and the weight of each edge follow from them.

    Args:
        nodes: Number of nodes of each graph.
        counts: Number of edges of each graph.
        edges: Sources and targets, `[2, edges]`, numbered within their graph.
        node_type: Number of each node's type.
        attribute: Number of each node's attribute.
        depth: Depth of each node.
        edge_type: Number of each edge's type.
        edge_name: Number of each edge's name.
    """
    node_ptr, edge_ptr = (np.concatenate([[0], np.cumsum(each, dtype=np.int64)]) for each in (nodes, counts))
    found = {
        "node_ptr": node_ptr,
        "edge_ptr": edge_ptr,
        "edges": edges,
        "node_features/node_type": node_type,
        "node_features/attribute": attribute,
        "node_features/depth": depth,
        "edge_features/edge_type": edge_type,
        "edge_features/edge_name": edge_name,
        "edge_features/edge_direction": INVERSE[edge_type].astype(np.int32),
    }
    weights = _shared_weights(edges + np.repeat(node_ptr[:-1], counts), int(node_ptr[-1]))
    return found if weights is None else found | {"weights": weights}


def digraphs_of(found: Arrays) -> Digraphs:
    """A container of these arrays."""
    return Digraphs.from_tensors({name: torch.from_numpy(array) for name, array in found.items()})


def _shared_weights(edges: np.ndarray, size: int) -> np.ndarray | None:
    """`1 / m` for each of `m` parallel edges, so that a Laplacian counts them once; None if there are none."""
    source, target = edges.astype(np.int64)
    _, pair, count = np.unique(source * size + target, return_inverse=True, return_counts=True)
    return 1.0 / count[pair] if (count > 1).any() else None


def _numbers(values: Iterable[int]) -> np.ndarray:
    return np.fromiter(values, dtype=np.int32)
