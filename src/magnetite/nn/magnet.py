"""MagNet: convolutions with polynomials of the magnetic Laplacian."""

from collections.abc import Sequence
from math import pi

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn.embeddings import Embedding
from magnetite.nn.gnn import no_biases, no_token
from magnetite.nn.heads import Head
from magnetite.nn.model import GraphModel, Part
from magnetite.nn.positions import PositionEncoder

Matrices = Float[Tensor, "b n n"]
States = Float[Tensor, "b n d"]


class ChebyshevFilter(torch.nn.Module):
    """`X ← ReLU(Σ_k T_k(L̃) X W_k + b)` of complex `X`, with real `W_k`; both parts pass where the real one is positive.

    `T_0 = I`, `T_1 = L̃`, `T_k = 2 L̃ T_{k−1} − T_{k−2}`; `L̃ = L_N − I` has its spectrum in `[−1, 1]`.
    """

    def __init__(self, width: int, order: int):
        super().__init__()
        self.order = order
        self.linear = torch.nn.Linear((order + 1) * width, width)

    def forward(self, real: States, imag: States, shifted: tuple[Matrices, Matrices]) -> tuple[States, States]:
        """Real and imaginary part of the states after one filter."""
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
    """Embedding + positions → `layers` filters of the magnetic Laplacian → real and imaginary parts, linear → head.

    `q` is absolute, the same for all graphs; the real and the imaginary part both start from the embedded nodes.

    >>> import magnetite as mt
    >>> model = mt.nn.MagNet(width=32, layers=2, head=mt.nn.GraphHead(2, readout="mean"))
    >>> model(mt.Digraphs.from_edges([[0, 1], [1, 2]])).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        width: int,
        layers: int,
        head: Head,
        position: PositionEncoder | Sequence[PositionEncoder] | None = None,
        embedding: Embedding | None = None,
        order: int = 2,
        q: float = 0.1,
    ):
        super().__init__(width, head, position, embedding)
        no_token(head)
        if not 0 <= q <= 0.5:
            raise ValueError(f"q={q} is outside [0, 0.5]: q and 1-q mirror each other; try q=0.1")
        if order < 1:
            raise ValueError(f"order={order} lets no node hear another: give an order ≥ 1, such as order=2")
        self.q = q
        self.filters = torch.nn.ModuleList(ChebyshevFilter(width, order) for _ in range(layers))
        self.out = torch.nn.Linear(2 * width, width)

    def body(self, parts: Sequence[Part]) -> list[Float[Tensor, "_ _ d"]]:
        """All filters."""
        no_biases(parts)
        return [self._filtered(part.states, part.batch) for part in parts]

    def _filtered(self, states: States, batch: Batch) -> States:
        shifted, both = shifted_laplacian(batch, self.q), (states, states)
        for layer in self.filters:
            both = layer(*both, shifted)
        return self.out(torch.cat(both, dim=-1))


def shifted_laplacian(batch: Batch, q: float) -> tuple[Matrices, Matrices]:
    """`L̃ = L_N − I = −D^{-1/2} A_s D^{-1/2} ⊙ exp(iΘ)`, real and imaginary part; isolated nodes have rows of zeros.

    >>> import magnetite as mt
    >>> real, imag = shifted_laplacian(mt.pad(mt.Digraphs.from_edges([[0], [1]])), q=0.25)
    >>> real[0, 0, 1].abs().round().item(), imag[0, 0, 1].item(), imag[0, 1, 0].item()
    (0.0, -1.0, 1.0)
    """
    forward = batch.adjacency()
    backward, total = forward.mT, forward + forward.mT
    weight = torch.where((forward > 0) & (backward > 0), total / 2, total)
    degree = weight.sum(-1)
    scale = torch.where(degree > 0, degree.clamp(min=torch.finfo(degree.dtype).tiny).rsqrt(), 0)
    angle = 2 * pi * q * (forward - backward) / torch.where(total > 0, total, 1)
    shifted = -weight * scale[:, :, None] * scale[:, None]
    return shifted * angle.cos(), shifted * angle.sin()


def complex_product(left: tuple[Matrices, Matrices], right: tuple[States, States]) -> tuple[States, States]:
    """`(A + iB)(X + iY)` as real products, both columns of a block at once.

    >>> one, zero = torch.ones(1, 1, 1), torch.zeros(1, 1, 1)
    >>> real, imag = complex_product((zero, one), (zero, one))
    >>> real.item(), imag.item()
    (-1.0, 0.0)
    """
    block = torch.cat(right, dim=-1)
    (real_x, real_y), (imag_x, imag_y) = ((part @ block).chunk(2, dim=-1) for part in left)
    return real_x - imag_y, real_y + imag_x
