"""Stable and expressive positional encodings from complex eigenvectors: the same for every basis of an eigenspace."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.encodings import Laplacian, MagneticLaplacian
from magnetite.nn.eigenpairs import eigenpairs_of, part_count, potential_count
from magnetite.nn.layers import activation_named, full_precision
from magnetite.nn.pair_layers import PairBias, PairSum
from magnetite.nn.positions import PositionEncoder, Positions


class SPE(PositionEncoder):
    """`W_c = V diag(φ_c(λ)) Vᴴ` in `channels` channels, given as what is asked for.

    `width` gives nodes, `f₁(Σ_u f₂(W[u, v]))`; `heads` and `layers` give biases of the attention, linear in `W[u, v]`;
    `pairs=True` gives `[Re W, Im W]` itself, `SPE.pair_channels` numbers a pair. `φ` is a network that sees all
    eigenvalues and gives equal ones equal values, so neither phases nor the basis of an eigenspace matter, as long as
    all of the eigenspace is among the `k` vectors. Several potentials are summed, each with a `φ` of its own.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> positions = SPE(k=4, width=32, pairs=True)(mt.pad(graphs, mt.MagneticLaplacian(k=4)(graphs)))
    >>> positions.nodes.shape, positions.pairs.shape
    (torch.Size([1, 8, 32]), torch.Size([1, 8, 8, 32]))
    """

    def __init__(
        self,
        k: int,
        width: int | None = None,
        heads: int | None = None,
        layers: int = 1,
        pairs: bool = False,
        channels: int = 16,
        hidden: int = 64,
        encoding: MagneticLaplacian | Laplacian | None = None,
        of: str = "eigenpairs",
        activation: str = "gelu",
    ):
        super().__init__()
        if width is None and heads is None and not pairs:
            raise ValueError("SPE is asked for nothing: give width=… for nodes, heads=… for biases, or pairs=True")
        self.of, self.encoding = of, encoding if encoding is not None else MagneticLaplacian(k=k)
        if self.encoding.k != k:
            raise ValueError(f"k={k} eigenvalues are not those of {self.encoding}: give both the same k")
        self.pairs, self.pair_channels = pairs, channels * part_count(self.encoding)
        self.spectrum = SpectralWeights(potential_count(self.encoding), hidden, channels, activation)
        self.nodes = None if width is None else PairSum(self.pair_channels, hidden, width, activation)
        self.bias = None if heads is None else PairBias(self.pair_channels, heads, layers)

    def forward(self, batch: Batch) -> Positions:
        """The forms that were asked for."""
        found = eigenpairs_of(batch, self.of, self.encoding)
        with full_precision(batch.device):
            weights = self.spectrum(found.values, found.mask)
            pairs = spectral_pairs(found.vectors.flatten(2, -2), weights.flatten(1, -2))
        return Positions(
            nodes=None if self.nodes is None else self.nodes(pairs, batch.sizes),
            biases=() if self.bias is None else self.bias(pairs),
            pairs=pairs if self.pairs else None,
        )


class SpectralWeights(torch.nn.Module):
    """`φ(λ_j) = W₃ σ(z_j + W₂ mean_i σ(z_i))` with `z_j = W₁λ_j + p_q`, zero where there is no eigenvalue.

    `p_q` tells potentials apart.
    """

    def __init__(self, potentials: int, hidden: int, channels: int, activation: str):
        super().__init__()
        self.lift = torch.nn.Linear(1, hidden)
        self.potential = torch.nn.Parameter(torch.randn(potentials, 1, hidden)) if potentials > 1 else None
        self.context = torch.nn.Linear(hidden, hidden)
        self.out = torch.nn.Linear(hidden, channels)
        self.activation = activation_named(activation)

    def forward(self, values: Float[Tensor, "b *Q k"], mask: Bool[Tensor, "b *Q k"]) -> Float[Tensor, "b *Q k c"]:
        """One weight a channel for each eigenvalue."""
        lifted = self.lift(values[..., None])
        if self.potential is not None:
            lifted = lifted + self.potential
        filled = mask[..., None].to(lifted)
        mean = (self.activation(lifted) * filled).sum(-2, keepdim=True) / filled.sum(-2, keepdim=True).clamp(min=1)
        return self.out(self.activation(lifted + self.context(mean))) * filled


def spectral_pairs(
    vectors: Float[Tensor, "b n t parts"], weights: Float[Tensor, "b t c"]
) -> Float[Tensor, "b n n channels"]:
    """`W_c[u, v] = Σ_j γ_j(u) φ_c(λ_j) γ̄_j(v)`: the real parts of all channels, then the imaginary ones.

    One product of real matrices a graph, `n × 2t` by `2t × (n·2c)`; nothing has all of `n`, `n` and `t` as axes.

    >>> spectral_pairs(torch.tensor([[[[0.6, 0.8]]]]), torch.ones(1, 1, 1)).round(decimals=3).tolist()
    [[[[1.0, 0.0]]]]
    """
    turned = (
        [vectors] if vectors.shape[-1] == 1 else [vectors, torch.stack([-vectors[..., 1], vectors[..., 0]], dim=-1)]
    )
    right = torch.cat([torch.einsum("bvtp,btc->btpvc", side, weights) for side in turned], dim=-1)
    size, channels = right.shape[-2:]
    return torch.bmm(vectors.flatten(2), right.flatten(3).flatten(1, 2)).unflatten(-1, (size, channels))
