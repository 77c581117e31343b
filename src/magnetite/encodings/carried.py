"""Encodings that PyG graphs carry: how a model recognises that they are the ones it needs, of these very edges."""

import functools
import hashlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.encodings.results import Eigenpairs, NodeEncoding, PairEncoding
from magnetite.encodings.spectral import MagneticLaplacian
from magnetite.encodings.svd import SVD
from magnetite.encodings.walks import RandomWalk, WalkSums
from magnetite.graphs import Digraphs
from magnetite.io.interop import CARRIED
from magnetite.packed import Packed, on_device, plain, starts

NODES = "nodes"


def _root_sizes(graphs: Packed) -> Float[Tensor, "..."]:
    """`√n` of the graph of each node."""
    if len(graphs) == 1:
        root = _root(int(plain(graphs.sizes)[0]))
        return root if graphs.device.type == "cpu" else root.to(graphs.device)
    return graphs.sizes.float().sqrt()[graphs.node_graph][:, None]


@functools.lru_cache(1024)
def _root(size: int) -> Float[Tensor, " one"]:
    return torch.tensor([size]).float().sqrt()


SCALINGS: dict[str, Callable[[Packed], Tensor | float]] = {NODES: _root_sizes, "none": lambda _graphs: 1.0}
"""What the stored entries of eigenvectors are multiplied by, by name."""

_ODD = (-7046029254386353131, -4417276706812531889, 7664345821815920749)
"""Odd numbers, by which integers are multiplied modulo 2^64."""


def key_of(encoding: Any, graphs: Digraphs, variant: str = "") -> Int[Tensor, "graphs 2"]:
    """A number for the parameters of an encoding, and one for the nodes, edges and weights of each graph.

    Args:
        encoding: The encoding.
        graphs: The encoded graphs.
        variant: In which form it is stored.
    """
    ends = plain(graphs.edges if graphs.edges.dtype == torch.int64 else graphs.edges.long())
    mixed = ends[0] * _ODD[0] + ends[1] * _ODD[1] + 1
    if graphs.weights is not None:
        mixed = mixed ^ (plain(graphs.weights.double().view(torch.int64)) * _ODD[2])
    mixed = mixed * (mixed >> 29 | 1)
    keys = on_device(np.empty((len(graphs), 2), np.int64), graphs.device)
    filled = plain(keys)
    filled[:, 0] = _parameters(encoding, variant)
    filled[:, 1] = plain(graphs.sizes) * _ODD[2]
    # Sums modulo 2^64 are exact, and so are their differences.
    sums = mixed.sum() if len(graphs) == 1 else plain(starts(torch.as_tensor(mixed))[graphs.edge_ptr].diff())
    filled[:, 1] += sums
    return keys


@functools.cache
def _parameters(encoding: Any, variant: str) -> int:
    digest = hashlib.sha256(f"{encoding!r} {variant}".encode()).digest()
    return int.from_bytes(digest[:8], "little", signed=True)


def carried(data: Any, encoding: Any, graphs: Digraphs) -> Packed | None:
    """The encoding of these graphs that PyG data carry, as a transform stored it; None if they carry another or none.

    Args:
        data: A `Data` or a `Batch`.
        encoding: The encoding that is needed.
        graphs: The graphs of the data.
    """
    for name in carried_names(data):
        keys = data[name + CARRIED].to(graphs.device)
        for variant in SCALINGS if isinstance(encoding, MagneticLaplacian) else ("",):
            expected = key_of(encoding, graphs, variant)
            if keys.shape == expected.shape and torch.equal(keys, expected):
                return _unpacked(data, name, encoding, graphs, variant)
    return None


def carried_names(data: Any) -> list[str]:
    """The names of the attributes of PyG's `Data` or `Batch` that hold encodings; none for anything else."""
    names = data.keys() if hasattr(data, "_store") else ()
    return [name.removesuffix(CARRIED) for name in names if name.endswith(CARRIED)]


def carried_attributes(data: Any) -> set[str]:
    """The names of all attributes of PyG's `Data` or `Batch` that hold parts of encodings."""
    return {f"{name}{part}" for name in carried_names(data) for part in ("", "_values", "_mask", "_pairs")}


def fits(name: str, data: Any, encoding: Any) -> bool:
    """Whether the carried encoding of this name is of the same kind, whatever its parameters."""
    if isinstance(encoding, MagneticLaplacian):
        return f"{name}_values" in data
    if isinstance(encoding, RandomWalk):
        return f"{name}_pairs" in data
    return isinstance(encoding, SVD | WalkSums) and f"{name}_values" not in data and f"{name}_pairs" not in data


def _unpacked(data: Any, name: str, encoding: Any, graphs: Digraphs, variant: str) -> Packed | None:
    def part(suffix: str = "") -> Tensor | None:
        found = data[name + suffix] if name + suffix in data else None  # noqa: SIM401 (a Data is no dict)
        return found.to(graphs.device) if isinstance(found, Tensor) else None

    if isinstance(encoding, MagneticLaplacian):
        vectors, values, mask = part(), part("_values"), part("_mask")
        if vectors is None or values is None or mask is None:
            return None
        axes = (len(encoding.q), encoding.k) if isinstance(encoding.q, tuple) else (encoding.k,)
        each = math.prod(axes)
        if vectors.shape != (graphs.num_nodes, 2 * each) or not values.shape == mask.shape == (len(graphs), each):
            return None
        vectors = (vectors / SCALINGS[variant](graphs)).unflatten(1, (2, *axes))
        values, mask = values.view(-1, *axes), mask.view(-1, *axes)
        unknown = torch.full_like(values, -1, dtype=torch.long)  # networks do not read groups
        return Eigenpairs(
            node_ptr=graphs.node_ptr,
            values=values,
            vectors=torch.complex(vectors[:, 0].contiguous(), vectors[:, 1].contiguous()),
            mask=mask,
            group=unknown,
            anchored=torch.zeros_like(mask),
        )
    rows = part("_pairs" if isinstance(encoding, RandomWalk) else "")
    pair_ptr = starts(graphs.sizes**2)
    count = int(pair_ptr[-1]) if isinstance(encoding, RandomWalk) else graphs.num_nodes
    if rows is None or rows.ndim != 2 or len(rows) != count:
        return None
    if isinstance(encoding, RandomWalk):
        return PairEncoding(node_ptr=graphs.node_ptr, pair_ptr=pair_ptr, values=rows)
    return NodeEncoding(node_ptr=graphs.node_ptr, values=rows) if isinstance(encoding, SVD | WalkSums) else None
