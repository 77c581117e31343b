"""MagNet: convolutions with polynomials of the magnetic Laplacian."""

from collections.abc import Sequence
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.encodings.checks import DEPTH, SIZE
from magnetite.linalg.laplacian import shifted_laplacian
from magnetite.nn.embeddings import Embedding
from magnetite.nn.encoders.base import PositionEncoder, Positions
from magnetite.nn.heads import Head
from magnetite.nn.layers import full_precision
from magnetite.nn.models import GraphModel, no_biases
from magnetite.nn.sparse import SparseMatrix

States = Float[Tensor, "nodes d"]


class ChebyshevFilter(torch.nn.Module):
    """`X ← ReLU(Σ_k T_k(L̃) X W_k + b)` of complex `X`, with real `W_k`.

    The ReLU keeps the real and the imaginary part where the real part is positive, and is zero elsewhere.

    `T_0 = I`, `T_1 = L̃`, `T_k = 2 L̃ T_{k−1} − T_{k−2}`; `L̃ = L_N − I` has its spectrum in `[−1, 1]`.
    """

    def __init__(self, width: int, order: int):
        super().__init__()
        self.order = order
        self.linear = torch.nn.Linear((order + 1) * width, width)

    def forward(self, real: States, imag: States, shifted: tuple[SparseMatrix, SparseMatrix]) -> tuple[States, States]:
        """Real and imaginary part of the states after one filter; `shifted` has the two parts of `L̃`."""
        terms = [(real, imag)]
        for degree in range(1, self.order + 1):
            term = complex_product(shifted, terms[-1])
            if degree > 1:
                term = 2 * term[0] - terms[-2][0], 2 * term[1] - terms[-2][1]
            terms.append(term)
        real, imag = (self.linear(torch.cat(side, dim=-1)) for side in zip(*terms, strict=True))
        passed = real > 0
        return real * passed, imag * passed


class MagNet(GraphModel):
    """Embedding + positions → filters of the magnetic Laplacian → real and imaginary parts, linear → head.

    The real part starts from the embedded nodes, and so does the imaginary part, unless it starts from zero. The
    Laplacian is sparse: time and memory grow with nodes and edges.

    Args:
        width: Size of a node's state.
        layers: Number of filters.
        head: Head, which makes the predictions; it must not read a graph token.
        position: Position encoder, or a list of them.
        embedding: Embedding of the node features, or a list of them; by default all nodes have the same vector.
        order: Degree of the Chebyshev polynomials.
        q: Absolute potential, in `[0, 0.5]`.
        real_start: Whether the signal is real at the start: its imaginary part is zero.

    >>> import magnetite as mt
    >>> model = mt.nn.MagNet(width=32, layers=2, head=mt.nn.GraphHead(2, readout="mean"))
    >>> model(mt.Digraphs.from_edges([[0, 1], [1, 2]])).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        width: Annotated[int, SIZE],
        layers: Annotated[int, DEPTH],
        head: Head,
        position: PositionEncoder | Sequence[PositionEncoder] | None = None,
        embedding: Embedding | Sequence[Embedding] | None = None,
        order: int = 2,
        q: float = 0.1,
        real_start: bool = False,
    ):
        super().__init__(width, head, position, embedding)
        self._without_attention()
        if not 0 <= q <= 0.5:
            raise ValueError(f"q={q} is outside [0, 0.5]: q and 1-q mirror each other; try q=0.1")
        if order < 1:
            raise ValueError(f"order must be at least 1, got {order}: at order 0 no node sees another")
        self.q, self.real_start = q, real_start
        self.filters = torch.nn.ModuleList(ChebyshevFilter(width, order) for _ in range(layers))
        self.out = torch.nn.Linear(2 * width, width)

    def body(self, states: Float[Tensor, "nodes d"], batch: Batch, positions: Positions) -> Float[Tensor, "nodes d"]:
        """All filters."""
        no_biases(positions)
        with full_precision(batch.device):
            weight = batch.edge_weight * batch.edge_mask
            (row, column), *parts = shifted_laplacian(batch.edge_index, weight, batch.num_nodes, self.q)
        real, imag = (SparseMatrix(row, column, part, batch.num_nodes) for part in parts)
        both = states, torch.zeros_like(states) if self.real_start else states
        for layer in self.filters:
            both = layer(*both, (real, imag))
        return self.out(torch.cat(both, dim=-1))


def complex_product(left: tuple[SparseMatrix, SparseMatrix], right: tuple[States, States]) -> tuple[States, States]:
    """`(A + iB)(X + iY)` as products of real matrices.

    >>> at, one = torch.tensor([0]), torch.ones(1, 1)
    >>> zero, unit = SparseMatrix(at, at, torch.zeros(1), size=1), SparseMatrix(at, at, torch.ones(1), size=1)
    >>> real, imag = complex_product((zero, unit), (torch.zeros(1, 1), one))
    >>> real.item(), imag.item()
    (-1.0, 0.0)
    """
    block = torch.cat(right, dim=-1)
    (real_x, real_y), (imag_x, imag_y) = (part.times(block).chunk(2, dim=-1) for part in left)
    return real_x - imag_y, real_y + imag_x
