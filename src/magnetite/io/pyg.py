"""PyG's graphs as packed tensors, without a loop over the graphs where PyG itself stores them packed."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from magnetite.io.interop import EdgeList, check_pyg, detached, is_feature
from magnetite.linalg.pointers import starts

SIZED_BY = ("x", "pos", "feat", "node_type")
"""Node attributes from which PyG infers the number of nodes."""


class Stored(NamedTuple):
    """Graphs as PyG stores a `Batch` or an `InMemoryDataset`: every attribute packed, with pointers.

    Args:
        values: Attributes of all graphs, one graph after the other.
        slices: Where each graph begins in each attribute.
        sizes: Number of nodes per graph.
        shifted: Whether edges are numbered across all graphs, as in a `Batch`.
    """

    values: Mapping[str, Any]
    slices: Mapping[str, Tensor]
    sizes: Int[Tensor, " graphs"]
    shifted: bool


def stored(data: Any) -> Stored | None:
    """The storage of a `Batch` or an `InMemoryDataset`; None if it has to be read graph by graph."""
    if not hasattr(data, "_slice_dict") and not hasattr(data, "slices"):
        return None
    from torch_geometric.data import Batch, Data, InMemoryDataset

    if isinstance(data, InMemoryDataset):
        inner, slices = data._data, data.slices
        if data._indices is not None:
            return None
    else:
        inner, slices = data, getattr(data, "_slice_dict", None)
    if not isinstance(inner, Data) or not isinstance(slices, Mapping) or "edge_index" not in slices:
        return None
    if type(inner).__cat_dim__ is not Data.__cat_dim__ or type(inner).__inc__ is not Data.__inc__:
        return None  # a class of its own that packs its attributes in another way
    values = {name: inner[name] for name in slices if name in inner}
    if any(isinstance(each, list) and each and isinstance(each[0], np.ndarray) for each in values.values()):
        return None
    slices = {name: torch.as_tensor(pointer).cpu() for name, pointer in slices.items()}
    sizes = inner.ptr.diff().cpu() if isinstance(inner, Batch) else _sizes(inner, slices)
    if sizes is None or len(sizes) != len(slices["edge_index"]) - 1:
        return None
    return Stored(values, slices, sizes, isinstance(inner, Batch))


def _sizes(data: Any, slices: Mapping[str, Tensor]) -> Int[Tensor, " graphs"] | None:
    counted = getattr(data._store, "_num_nodes", None)
    if counted is not None:
        return torch.as_tensor(counted) if all(isinstance(count, int) for count in counted) else None
    name = next((name for name in slices if name in SIZED_BY and isinstance(data[name], Tensor)), None)
    return None if name is None else slices[name].diff()


def stored_graphs(found: Stored) -> dict[str, Any] | None:
    """The fields of `Digraphs` without features, on the device of the edges; None if something is unusual."""
    edges, weights, ptr = found.values["edge_index"], found.values.get("edge_weight"), found.slices["edge_index"]
    if not _is_edge_index(edges) or edges.shape[1] != int(ptr[-1]):
        return None
    node_ptr = starts(found.sizes)
    if found.shifted:
        first = torch.repeat_interleave(node_ptr[:-1], ptr.diff()).to(edges.device)
        edges = edges - first
    if weights is not None:
        if not isinstance(weights, Tensor) or weights.shape != edges.shape[1:] or weights.dtype == torch.bool:
            return None
        if weights.is_complex() or not torch.equal(found.slices["edge_weight"], ptr):
            return None
        weights = detached(weights, "edge_weight").double()
    fields = {"node_ptr": node_ptr, "edge_ptr": ptr - ptr[0], "edges": edges, "weights": weights}
    return {name: value if value is None else value.to(edges.device) for name, value in fields.items()}


def stored_features(found: Stored) -> dict[str, dict[str, Tensor]]:
    """The tensors of all graphs, grouped into node, edge and graph features as `interop.pyg_features` does."""
    features: dict[str, dict[str, Tensor]] = {"node_features": {}, "edge_features": {}, "graph_features": {}}
    counts = {"node_features": found.sizes, "edge_features": found.slices["edge_index"].diff()}
    counts["graph_features"] = torch.ones_like(found.sizes)
    for name, value in found.values.items():
        if not is_feature(name) or not isinstance(value, Tensor):
            continue
        rows = found.slices[name].diff()
        order = ["edge_features"] * ("edge" in name) + ["node_features", "graph_features", "edge_features"]
        group = next((group for group in order if torch.equal(counts[group], rows)), None)
        if group is not None:
            features[group][name] = detached(value, name).cpu()
    return features


def listed_graphs(items: Sequence[Any]) -> dict[str, Any]:
    """The fields of `Digraphs` without features of some `Data`, on the device of the first.

    Args:
        items: `Data` objects, each with an `edge_index`.
    """
    edges, weights, sizes = [], [], []
    for item in items:
        check_pyg(item)
        edge_index, size = item.edge_index, item.num_nodes  # properties that search all attributes
        if edge_index is None:
            raise ValueError(f"{type(item).__name__} has no edge_index: set it, or convert its adj_t first")
        weight = item.edge_weight if "edge_weight" in item else None
        if not _is_edge_index(edge_index) or weight is not None:
            checked = EdgeList(edge_index, size, weight)
            device = getattr(edge_index, "device", "cpu")
            edges.append(torch.from_numpy(checked.edges).long().to(device))
            weights.append(None if weight is None else torch.from_numpy(checked.weights).to(device))
        else:
            edges.append(edge_index)
            weights.append(None)
        sizes.append(size)
    device = edges[0].device
    weighted = any(weight is not None for weight in weights)
    if weighted:
        weights = [
            edge.new_ones(edge.shape[1], dtype=torch.float64) if weight is None else weight
            for edge, weight in zip(edges, weights, strict=True)
        ]
    return {
        "node_ptr": _pointer(sizes, device),
        "edge_ptr": _pointer([edge.shape[1] for edge in edges], device),
        "edges": edges[0] if len(items) == 1 else torch.cat([edge.to(device) for edge in edges], dim=1),
        "weights": torch.cat([weight.to(device) for weight in weights]) if weighted else None,  # type: ignore[union-attr]
    }


def _pointer(counts: Sequence[int], device: torch.device) -> Tensor:
    pointer = torch.from_numpy(np.array([0, *counts]).cumsum())
    return pointer if device.type == "cpu" else pointer.to(device)


def joined(items: list[Any]) -> Any:
    """Some `Data` as a `Batch`."""
    from torch_geometric.data import Batch

    return Batch.from_data_list(items)


def in_32_bits(edges: Int[Tensor, "2 m"]) -> Int[Tensor, "2 m"]:
    """The edges as 32-bit integers; unchanged if a number does not fit, which `Digraphs` refuses."""
    fits = not edges.numel() or (int(edges.max()) < 2**31 and int(edges.min()) >= -(2**31))
    return edges.int() if fits else edges


def _is_edge_index(edges: Any) -> bool:
    """Whether this needs no conversion: everything else is converted, or refused with a message, by `EdgeList`."""
    plain = isinstance(edges, Tensor) and edges.dtype == torch.int64 and edges.layout == torch.strided
    return plain and edges.ndim == 2 and edges.shape[0] == 2
