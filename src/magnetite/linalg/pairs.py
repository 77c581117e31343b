"""Many graphs as lists of connected node pairs, from which every Laplacian is built without n² entries."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor


@dataclass(slots=True)
class PairArrays:
    """`NodePairs` as NumPy arrays, whose operations on a single small graph take a quarter of the time of torch's."""

    low: np.ndarray
    high: np.ndarray
    forward: np.ndarray
    backward: np.ndarray
    start: np.ndarray
    count: np.ndarray
    one_way: np.ndarray
    sizes: np.ndarray
    exponent: np.ndarray | None = None


@dataclass(frozen=True)
class NodePairs:
    """Connected node pairs `low ≤ high`, each once, with the weights of `low → high` and `high → low`.

    The node pairs of graph `g` are `start[g] … start[g] + count[g]`; unused entries after them hold the harmless pair
    0–0. `one_way` is the number of node pairs with an edge in one direction only. A self-loop has the same weight in
    both directions. The weights of graph `g` were divided by `2^exponent[g]` (see `linalg.scale`), or by 1 if None.
    """

    low: Int[Tensor, " m"]
    high: Int[Tensor, " m"]
    forward: Float[Tensor, " m"]
    backward: Float[Tensor, " m"]
    start: Int[Tensor, " starts"]
    count: Int[Tensor, " g"]
    one_way: Int[Tensor, " g"]
    sizes: Int[Tensor, " g"]
    exponent: Int[Tensor, " g"] | None = None

    @classmethod
    def of_arrays(cls, arrays: PairArrays) -> "NodePairs":
        """The same memory as tensors."""
        return cls(**_mapped(torch.from_numpy, arrays))

    def arrays(self) -> PairArrays:
        """The same memory as arrays."""
        return PairArrays(**_mapped(Tensor.numpy, self))


def _mapped(convert: Callable[[Any], Any], pairs: NodePairs | PairArrays) -> dict[str, Any]:
    """All fields, converted where they are not None."""
    named = {field.name: getattr(pairs, field.name) for field in fields(pairs)}
    return {name: None if values is None else convert(values) for name, values in named.items()}


def pair_edges(
    edges: Int[Tensor, "2 m"],
    edge_ptr: Int[Tensor, " starts"],
    sizes: Int[Tensor, " g"],
    weights: Shaped[Tensor, " m"] | None,
    exponent: Int[Tensor, " g"] | None = None,
) -> NodePairs:
    """The connected node pairs of each graph; repeated edges are summed in their order.

    >>> pairs = pair_edges(torch.tensor([[0, 2, 1], [1, 1, 0]]), torch.tensor([0, 3]), torch.tensor([3]), None)
    >>> pairs.low.tolist()[:2], pairs.high.tolist()[:2], pairs.forward.tolist()[:2], pairs.backward.tolist()[:2]
    ([0, 1], [1, 2], [1.0, 0.0], [1.0, 1.0])
    """
    heavy = None if weights is None else weights.double().numpy()
    start = edge_ptr.numpy() - int(edge_ptr[0])
    given = None if exponent is None else exponent.numpy()
    return NodePairs.of_arrays(pair_arrays(edges.numpy(), start, sizes.numpy(), heavy, given))


def pair_arrays(
    edges: np.ndarray, start: np.ndarray, sizes: np.ndarray, weights: np.ndarray | None, exponent: np.ndarray | None
) -> PairArrays:
    """`pair_edges` of arrays: edges of any integer type, pointers from 0, and weights in double precision."""
    from magnetite.kernels.cpu.pairs import pair_up_all

    m, g = edges.shape[1], len(sizes)
    weight = np.ones(m) if weights is None else weights
    low, high = np.empty(m, np.int64), np.empty(m, np.int64)
    forward, backward = np.empty(m), np.empty(m)
    count, one_way = np.empty(g, np.int64), np.empty(g, np.int64)
    source, target = np.ascontiguousarray(edges, np.int64)
    pair_up_all(source, target, weight, start, sizes, low, high, forward, backward, count, one_way)
    return PairArrays(low, high, forward, backward, start, count, one_way, sizes, exponent)
