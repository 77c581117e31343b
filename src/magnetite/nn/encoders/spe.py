"""SPE: stable and expressive positional encodings, which are the same for every basis of an eigenspace."""

from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.encodings import Laplacian, MagneticLaplacian
from magnetite.encodings.checks import DEPTH, SIZE
from magnetite.nn.encoders.base import PositionEncoder, Positions
from magnetite.nn.encoders.maglapnet import (
    Spectral,
    check_same_k,
    eigenpairs_of,
    part_count,
    potential_count,
    scaling_named,
)
from magnetite.nn.encoders.pairs import PairBias, PairSum
from magnetite.nn.layers import activation_named, full_precision


class SPE(PositionEncoder):
    """`W_c = V diag(φ_c(λ)) Vᴴ` in `channels` channels, as node vectors, attention biases or pair features.

    Node vectors are `f₁(Σ_u f₂(W[u, v]))`, biases are linear in `W[u, v]`, and pair features are `[Re W, Im W]`. `φ` is
    a network that sees all eigenvalues and maps equal ones to equal values, so neither phases nor the basis of an
    eigenspace matter, as long as the whole eigenspace is among the `k` vectors. Several potentials are summed, each
    with its own `φ`.

    Args:
        k: Number of eigenvectors.
        width: Size of a node's vector; None for no node vectors.
        heads: Attention heads to bias; None for no biases.
        layers: Attention layers to bias.
        pairs: Whether to give pair features, `SPE.pair_channels` per pair.
        channels: Number of channels of `φ`.
        hidden: Size of hidden layers.
        encoding: The encoding that computes the eigenpairs; `MagneticLaplacian(k)` by default.
        of: Name of the eigenpairs in the batch.
        activation: gelu or relu.
        scaling: "nodes" for vectors `√n γ`, so that `W` has entries of the same size in graphs of every size, or
            "none" for unit vectors.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> positions = SPE(k=4, width=32, pairs=True)(mt.batch(graphs, mt.MagneticLaplacian(k=4)(graphs)))
    >>> positions.nodes.shape, positions.pairs[0].shape
    (torch.Size([3, 32]), torch.Size([1, 8, 8, 32]))
    """

    reads: ClassVar[tuple[type, ...]] = (MagneticLaplacian, Laplacian)

    def __init__(
        self,
        k: Annotated[int, SIZE],
        width: Annotated[int, SIZE] | None = None,
        heads: Annotated[int, SIZE] | None = None,
        layers: Annotated[int, DEPTH] = 1,
        pairs: bool = False,
        channels: Annotated[int, SIZE] = 16,
        hidden: Annotated[int, SIZE] = 64,
        encoding: Spectral | None = None,
        of: str = "eigenpairs",
        activation: str = "gelu",
        scaling: str = "nodes",
    ):
        super().__init__()
        if scaling not in ("nodes", "none"):
            raise ValueError(f"scaling must be one of nodes, none, got {scaling!r}")
        self.scale = scaling_named(scaling)
        if width is None and heads is None and not pairs:
            raise ValueError("SPE has no output: give width=… for nodes, heads=… for biases, or pairs=True")
        self.of, self.encoding = of, encoding if encoding is not None else MagneticLaplacian(k=k)
        check_same_k(k, self.encoding)
        self.pairs, features = pairs, channels * part_count(self.encoding)
        self.features = features
        self.spectrum = SpectralWeights(potential_count(self.encoding), hidden, channels, activation)
        self.nodes = None if width is None else PairSum(features, hidden, width, activation)
        self.bias = None if heads is None else PairBias(features, heads, layers)

    @classmethod
    def build(
        cls,
        encoding: Spectral,
        width: int,
        heads: int,
        layers: int,
        nodes: bool = True,
        bias: bool = False,
        **options: Any,
    ) -> "SPE":
        """With `nodes`, node vectors; with `bias`, attention biases."""
        return cls(encoding.k, width if nodes else None, heads if bias else None, layers, encoding=encoding, **options)

    @property
    def pair_channels(self) -> int:
        """Real and imaginary parts of each channel."""
        return self.features if self.pairs else 0

    @property
    def has_biases(self) -> bool:
        """Whether it was made with heads."""
        return self.bias is not None

    def forward(self, batch: Batch) -> Positions:
        """Node vectors, biases and pair features, as configured."""
        found = eigenpairs_of(batch, self.of, self.encoding)
        with full_precision(batch.device):
            weights = self.spectrum(found.values, found.mask).flatten(1, -2)
            vectors = batch.pad(self.scale(found.vectors, batch).flatten(1, -2))
            pairs = [
                spectral_pairs(part, weight) for part, weight in zip(vectors, batch.by_bucket(weights), strict=True)
            ]
        return Positions(
            nodes=None if self.nodes is None else self.nodes(pairs, batch),
            biases=() if self.bias is None else self.bias(pairs),
            pairs=pairs if self.pairs else None,
        )


class SpectralWeights(torch.nn.Module):
    """`φ(λ_j) = W₃ σ(z_j + W₂ mean_i σ(z_i))` with `z_j = W₁λ_j + p_q`, zero where there is no eigenvalue.

    `p_q` distinguishes potentials.
    """

    def __init__(self, potentials: int, hidden: int, channels: int, activation: str):
        super().__init__()
        self.lift = torch.nn.Linear(1, hidden)
        self.potential = torch.nn.Parameter(torch.randn(potentials, 1, hidden)) if potentials > 1 else None
        self.context = torch.nn.Linear(hidden, hidden)
        self.out = torch.nn.Linear(hidden, channels)
        self.activation = activation_named(activation)

    def forward(self, values: Float[Tensor, "b *Q k"], mask: Bool[Tensor, "b *Q k"]) -> Float[Tensor, "b *Q k c"]:
        """One weight per channel and eigenvalue."""
        lifted = self.lift(values[..., None])
        if self.potential is not None:
            lifted = lifted + self.potential
        real = mask[..., None].to(lifted)
        mean = (self.activation(lifted) * real).sum(-2, keepdim=True) / real.sum(-2, keepdim=True).clamp(min=1)
        return self.out(self.activation(lifted + self.context(mean))) * real


def spectral_pairs(
    vectors: Float[Tensor, "b n t parts"], weights: Float[Tensor, "b t c"]
) -> Float[Tensor, "b n n channels"]:
    """`W_c[u, v] = Σ_j γ_j(u) φ_c(λ_j) γ̄_j(v)`: the real parts of all channels, then the imaginary ones.

    One product of real matrices per graph, `n × 2t` by `2t × (n·2c)`; no tensor has all of `n`, `n` and `t` as axes.

    >>> spectral_pairs(torch.tensor([[[[0.6, 0.8]]]]), torch.ones(1, 1, 1)).round(decimals=3).tolist()
    [[[[1.0, 0.0]]]]
    """
    turned = (
        [vectors] if vectors.shape[-1] == 1 else [vectors, torch.stack([-vectors[..., 1], vectors[..., 0]], dim=-1)]
    )
    right = torch.cat([torch.einsum("bvtp,btc->btpvc", side, weights) for side in turned], dim=-1)
    size, channels = right.shape[-2:]
    return torch.bmm(vectors.flatten(2), right.flatten(3).flatten(1, 2)).unflatten(-1, (size, channels))
