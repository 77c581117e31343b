"""Inverses of the Laplacian of a connected graph, by eliminating its nodes without a subtraction."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from magnetite.linalg.laplacian import Operator
from magnetite.linalg.pairs import NodePairs
from magnetite.linalg.sparse import find_turn


@dataclass(frozen=True)
class Inverse:
    """`(L + sI)^{-1}` as a product of sparse factors, or the pseudoinverse of a singular `L` for orthogonal vectors.

    `L` is the gauged Laplacian (`gauged_laplacian`): real if a gauge transformation makes it real.
    """

    factors: tuple[np.ndarray, ...]
    order: Shaped[Tensor, " n"]
    root: Float[Tensor, " n"] | None
    null: Shaped[Tensor, "n 1"] | None
    turn: Shaped[Tensor, " n"] | None
    dtype: torch.dtype

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.order)

    @property
    def entries(self) -> int:
        """Number of entries of a factor outside its diagonal."""
        return int(self.factors[0][-1])

    def empty(self) -> Shaped[Tensor, "n 0"]:
        """A matrix without columns."""
        return torch.empty((self.size, 0), dtype=self.dtype)

    def times(self, vectors: Shaped[Tensor, "n *b"]) -> Shaped[Tensor, "n *b"]:
        """The product with each column, or with a single vector."""
        from magnetite.kernels.cpu.elimination import solve_block, solve_vector

        result = vectors.new_empty(vectors.shape)
        root = None if self.root is None else self.root if vectors.ndim == 1 else self.root[:, None]
        permuted = (vectors if root is None else vectors * root)[self.order]
        (solve_vector if vectors.ndim == 1 else solve_block)(*self.factors, permuted.numpy())
        result[self.order] = permuted
        return result if root is None else result.mul_(root)


class Eliminator:
    """The matrix `D − H` of one connected graph, as `H` and the excess of `D` over the row sums of `|H|`.

    Args:
        pairs: The node pairs of the graph.
        operator: Which Laplacian, with an absolute potential.
    """

    def __init__(self, pairs: NodePairs, operator: Operator):
        n, count = int(pairs.sizes[0]), int(pairs.count[0])
        entries, weights, surplus = (part[:count] for part in (*operator.entries(pairs), operator.surplus(pairs)))
        low, high = pairs.low[:count], pairs.high[:count]
        self.turn = None if operator.real else find_turn(pairs, entries)
        self.real = operator.real or self.turn is not None
        modulus = entries.abs() if bool(surplus.any()) else weights
        off = low != high
        # A self-loop with a negative entry adds to the diagonal.
        surplus = torch.where(off, surplus, surplus - 2 * entries.real.clamp(max=0))
        self.degree, self.excess = (_at_nodes(part, low, high, n) for part in (weights, surplus))
        self.normalised = operator.normalised
        held = off & (modulus > 0)
        values = modulus[held] if self.real else torch.polar(modulus[held], entries[held].angle())
        self.pairs = n, low[held].numpy(), high[held].numpy(), values.numpy()

    def inverse(self, shift: float, budget: int) -> Inverse | None:
        """`(L + shift · I)^{-1}`; None if it needs more than `budget` updates of entries."""
        from magnetite.kernels.cpu.elimination import eliminate

        excess = self.excess + (shift * self.degree if self.normalised else shift)
        order, *factors = eliminate(*self.pairs, self.real, excess.numpy().copy(), budget)
        if not order.size:
            return None
        root = self.degree.sqrt() if self.normalised else None
        null = None
        if self.real and not bool(excess.any()):
            null = torch.ones(order.size, dtype=torch.float64) if root is None else root
            null = (null / torch.linalg.vector_norm(null))[:, None]
        dtype = torch.float64 if self.real else torch.complex128
        return Inverse(tuple(factors), torch.from_numpy(order), root, null, self.turn, dtype)


def _at_nodes(values: Tensor, low: Tensor, high: Tensor, n: int) -> Tensor:
    """Sums over the node pairs of each node; a self-loop counts once."""
    sums = torch.zeros(n, dtype=torch.float64).index_add_(0, low, values)
    return sums.index_add_(0, high, torch.where(low == high, 0.0, values))
