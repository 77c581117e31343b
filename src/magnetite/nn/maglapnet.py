"""MagLapNet: from eigenvectors to one vector a node."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from magnetite.batching import Batch, PaddedEigenpairs
from magnetite.encodings import Laplacian, MagneticLaplacian
from magnetite.nn.eigen_attention import Weights, eigen_attention
from magnetite.nn.eigenpairs import eigenpairs_of, part_count, potential_count
from magnetite.nn.layers import Norm, activation_named, aligned_linear, full_precision
from magnetite.nn.module import Module, unused
from magnetite.nn.positions import PositionEncoder, Positions
from magnetite.nn.rows import as_rows, per_slot, slots
from magnetite.nn.scaling import scaling_named


class MagLapNet(PositionEncoder):
    """Each of a node's k eigenvector entries is a token; attention over the tokens; all of them side by side → width.

    `t_j = N([σ(W [Re γ_j, Im γ_j]), λ_j])`, `t ← t + A(t)`, `ζ = σ(W' [t_1, …, t_k])`, in single precision up to
    the last line. `sign` makes it a SignNet: `f(γ_j) + f(−γ_j)` in place of `W γ_j` for all but the first vector, with
    `SignMLP()` or `SignGNN()` as `f`. `attention=False` leaves the attention out, `scaling` says how entries of graphs
    of different sizes are made comparable (`magnetite.nn.scaling`). Several potentials give `Q·k` tokens.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> batch = mt.pad(graphs, mt.MagneticLaplacian(k=4)(graphs))
    >>> MagLapNet(k=4, width=32)(batch).nodes.shape
    torch.Size([1, 8, 32])
    """

    def __init__(
        self,
        k: int,
        width: int,
        encoding: MagneticLaplacian | Laplacian | None = None,
        of: str = "eigenpairs",
        heads: int = 4,
        dropout: float = 0.15,
        attention: bool = True,
        scaling: str = "none",
        sign: "SignNet | None" = None,
        random_signs: bool = False,
        activation: str = "gelu",
    ):
        super().__init__()
        self.of, self.encoding = of, encoding if encoding is not None else MagneticLaplacian(k=k)
        if self.encoding.k != k:
            raise ValueError(f"k={k} tokens cannot hold the vectors of {self.encoding}: give both the same k")
        tokens, parts = k * potential_count(self.encoding), part_count(self.encoding)
        self.random_signs, self.scale = random_signs, scaling_named(scaling)
        channels = max(2 * (width // 32), heads)
        self.project = torch.nn.Linear(parts, channels) if sign is None else sign
        if sign is not None:
            unused(sign).setup(parts, channels)
        self.norm = Norm(channels + 1)
        self.attend = EigenAttention(channels + 1, heads, channels // heads) if attention else None
        self.activation, self.dropout = activation_named(activation), torch.nn.Dropout(dropout)
        self.out = torch.nn.Linear(tokens * (channels + 1), width)

    def forward(self, batch: Batch) -> Positions:
        """One vector a node; zero-filled slots give a vector that means nothing."""
        return self.several([batch])[0]

    def several(self, batches: Sequence[Batch]) -> list[Positions]:
        """The nodes of all batches are rows of one matrix: only their own graph's eigenpairs matter to them."""
        with full_precision(batches[0].device):
            pairs = [self._scaled(batch) for batch in batches]
            states = self._project([part.vectors for part in pairs], batches)
            levels = per_slot([part.values.flatten(1) for part in pairs], batches)
            mask = per_slot([part.mask.flatten(1) for part in pairs], batches)
            tokens = self.norm(torch.cat([states, levels[..., None]], dim=-1))
            if self.attend is not None:
                sizes = as_rows([batch.mask for batch in batches]).long()  # each row a graph of one node, or of none
                tokens = self.attend(tokens[:, None], mask, sizes)[:, 0]
            tokens = (tokens * mask[..., None]).flatten(1)
        nodes = self.activation(aligned_linear(self.out, self.dropout(tokens)))
        return [Positions(nodes=part) for part in slots(nodes, batches)]

    def _scaled(self, batch: Batch) -> PaddedEigenpairs:
        pairs = eigenpairs_of(batch, self.of, self.encoding)
        values, vectors = self.scale(pairs.values, pairs.vectors, batch.sizes)
        if self.random_signs and self.training:
            vectors = vectors * _signs(pairs.mask)[:, None, ..., None]
        return PaddedEigenpairs(values, vectors, pairs.mask)

    def _project(
        self, vectors: Sequence[Float[Tensor, "_ _ *Q k parts"]], batches: Sequence[Batch]
    ) -> Float[Tensor, "rows tokens c"]:
        if not isinstance(self.project, SignNet):
            return self.activation(self.project(as_rows(vectors).flatten(1, -2)))
        each = [self.project(part, batch) for part, batch in zip(vectors, batches, strict=True)]
        return self.activation(as_rows(each)).flatten(1, -2)


class EigenAttention(Module):
    """Self-attention over the tokens of each node, `x + W_o softmax(q kᵀ/√c) v`; see `magnetite.nn.eigen_attention`."""

    def __init__(self, width: int, heads: int, channels: int):
        super().__init__()
        self.heads = heads
        self.inner = torch.nn.Linear(width, 3 * heads * channels)
        self.out = torch.nn.Linear(heads * channels, width)

    def forward(
        self, tokens: Float[Tensor, "b n t w"], mask: Bool[Tensor, "b t"], sizes: Int[Tensor, " b"]
    ) -> Float[Tensor, "b n t w"]:
        """The tokens, each having looked at the others; zeros in empty slots."""
        weights = Weights(self.inner.weight, self.inner.bias, self.out.weight, self.out.bias)
        return eigen_attention(tokens, mask, sizes, weights, self.heads)


class SignNet(Module):
    """Base: `f(γ) + f(−γ)`, the same for both signs; the first vector, whose sign is known, keeps `f(γ)`."""

    def setup(self, parts: int, channels: int) -> None:
        """Make the parameters of `f`, from `parts` real numbers an entry to `channels`."""
        raise NotImplementedError

    def one_sign(self, vectors: Float[Tensor, "b n *Q k parts"], batch: Batch) -> Float[Tensor, "b n *Q k c"]:
        """`f`."""
        raise NotImplementedError

    def forward(self, vectors: Float[Tensor, "b n *Q k parts"], batch: Batch) -> Float[Tensor, "b n *Q k c"]:
        """Both signs together."""
        first = torch.arange(vectors.shape[-2], device=vectors.device)[:, None] == 0
        return self.one_sign(vectors, batch) + self.one_sign(-vectors, batch) * ~first


class SignMLP(SignNet):
    """`f` is an MLP with one hidden layer, applied to each entry alone."""

    def __init__(self, hidden: int = 64):
        super().__init__()
        self.hidden = hidden

    def setup(self, parts: int, channels: int) -> None:
        """Make the two layers."""
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(parts, self.hidden), torch.nn.GELU(), torch.nn.Linear(self.hidden, channels)
        )

    def one_sign(self, vectors: Float[Tensor, "b n *Q k parts"], batch: Batch) -> Float[Tensor, "b n *Q k c"]:  # noqa: ARG002
        """The MLP."""
        return self.layers(vectors)


class LaplacianEncoder(MagLapNet):
    """MagLapNet over real eigenvectors of the combinatorial Laplacian, with random signs in training.

    With a `sign` net, signs need no drawing.
    """

    def __init__(self, k: int, width: int, of: str = "laplacian", sign: SignNet | None = None, **options: Any):
        super().__init__(k, width, Laplacian(k=k), of, sign=sign, random_signs=sign is None, **options)


def _signs(mask: Bool[Tensor, "b *Q k"]) -> Float[Tensor, "b *Q k"]:
    return torch.randint(2, mask.shape, device=mask.device).float() * 2 - 1
