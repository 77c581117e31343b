"""MagLapNet: from eigenvectors of a Laplacian to one vector per node."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from magnetite.batching import Batch, BatchedEigenpairs
from magnetite.encodings import Laplacian, MagneticLaplacian
from magnetite.encodings.checks import DROPOUT, LATER, SIZE
from magnetite.kernels.cuda import eigen_attention as cuda
from magnetite.nn.encoders.base import PositionEncoder, Positions
from magnetite.nn.gnn import edge_node_network
from magnetite.nn.layers import Norm, activation_named, aligned_linear, full_precision
from magnetite.nn.module import Module, unused

Spectral = MagneticLaplacian | Laplacian


class MagLapNet(PositionEncoder):
    """One vector per node from the entries of `k` eigenvectors, each of which is a token of the node.

    `t_j = N([σ(W [Re γ_j, Im γ_j]), λ_j])`, `t ← t + A(t)`, `ζ = σ(W' [t_1, …, t_k])`, where `A` is self-attention over
    the tokens of a node; in single precision up to the last line. Several potentials give `Q·k` tokens.

    Args:
        k: Number of eigenvectors.
        width: Size of a node's vector.
        encoding: The encoding that computes the eigenpairs; `MagneticLaplacian(k)` by default.
        of: Name of the eigenpairs in the batch.
        heads: Number of attention heads.
        dropout: Dropout before the last layer.
        attention: Whether tokens attend to each other.
        scaling: How entries of graphs of different sizes are made comparable: nodes (`√n γ`), parts, or none for the
            unit vectors of the paper.
        sign: A SignNet, `f(γ_j) + f(−γ_j)` in place of `W γ_j` for all but the first vector: `SignMLP()` or
            `SignGNN()`, or their names `"mlp"` and `"gnn"`.
        random_signs: Whether training flips the sign of each eigenvector at random; None does so for real eigenvectors
            without a SignNet.
        activation: gelu or relu.
        attention_dropout: Dropout on the attention weights between tokens.
        attention_biases: Whether the linear layers of attention between tokens have biases.
        absolute_first: Whether the first vector is replaced by its absolute values, `|γ_0|`, which have no sign.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> MagLapNet(k=4, width=32)(mt.batch(graphs, mt.MagneticLaplacian(k=4)(graphs))).nodes.shape
    torch.Size([3, 32])
    """

    reads: ClassVar[tuple[type, ...]] = (MagneticLaplacian, Laplacian)

    def __init__(
        self,
        k: Annotated[int, SIZE],
        width: Annotated[int, SIZE],
        encoding: Spectral | None = None,
        of: str = "eigenpairs",
        heads: Annotated[int, SIZE] = 4,
        dropout: Annotated[float, DROPOUT] = 0.15,
        attention: bool = True,
        scaling: str = "nodes",
        sign: "SignNet | str | None" = None,
        random_signs: bool | None = None,
        activation: str = "gelu",
        attention_dropout: Annotated[float, DROPOUT, LATER] = 0.0,
        attention_biases: Annotated[bool, LATER] = True,
        absolute_first: Annotated[bool, LATER] = False,
    ):
        super().__init__()
        self.absolute_first = absolute_first
        self.of, self.encoding = of, encoding if encoding is not None else MagneticLaplacian(k=k)
        check_same_k(k, self.encoding)
        tokens, parts = k * potential_count(self.encoding), part_count(self.encoding)
        self.random_signs = parts == 1 and sign is None if random_signs is None else random_signs
        self.scale = scaling_named(scaling)
        channels = max(2 * (width // 32), heads)
        net = sign_named(sign) if isinstance(sign, str) else sign
        self.project = torch.nn.Linear(parts, channels) if net is None else net
        if net is not None:
            unused(net).setup(parts, channels)
        self.norm = Norm(channels + 1)
        sizes = channels + 1, heads, channels // heads
        self.attend = EigenAttention(*sizes, attention_dropout, attention_biases) if attention else None
        self.activation, self.dropout = activation_named(activation), torch.nn.Dropout(dropout)
        self.out = torch.nn.Linear(tokens * (channels + 1), width)

    @classmethod
    def build(cls, encoding: Spectral, width: int, heads: int, layers: int, **options: Any) -> "MagLapNet":  # noqa: ARG003
        """The encoder for the number of eigenvectors that the encoding has."""
        return cls(encoding.k, width, encoding, **options)

    def forward(self, batch: Batch) -> Positions:
        """One vector per node."""
        with full_precision(batch.device):
            pairs = self._prepared(batch)
            if isinstance(self.project, SignNet):
                states = self.project(pairs.vectors, batch)
            else:
                states = self.project(pairs.vectors)
            states = self.activation(states).flatten(1, -2)
            values, mask = batch.per_node(pairs.values.flatten(1)), batch.per_node(pairs.mask.flatten(1))
            tokens = self.norm(torch.cat([states, values[..., None]], dim=-1))
            if self.attend is not None:
                tokens = self.attend(tokens, mask)
            tokens = (tokens * mask[..., None]).flatten(1)
        return Positions(nodes=self.activation(aligned_linear(self.out, self.dropout(tokens))))

    def _prepared(self, batch: Batch) -> BatchedEigenpairs:
        """The eigenpairs, scaled, with random signs, and the first vector without a sign if it is to have none."""
        pairs = eigenpairs_of(batch, self.of, self.encoding)
        vectors = self.scale(pairs.vectors, batch)
        if self.random_signs and self.training:
            signs = torch.randint(2, pairs.mask.shape, device=batch.device).float() * 2 - 1
            vectors = vectors * batch.per_node(signs)[..., None]
        if self.absolute_first:
            vectors = torch.cat([vectors[..., :1, :].abs(), vectors[..., 1:, :]], dim=-2)
        return replace(pairs, vectors=vectors)


class LaplacianEncoder(MagLapNet):
    """MagLapNet over real eigenvectors of the combinatorial Laplacian, with random signs in training.

    Args:
        k: Number of eigenvectors.
        width: Size of a node's vector.
        of: Name of the eigenpairs in the batch.
        sign: A SignNet, which makes random signs unnecessary.
        options: Further arguments of `MagLapNet`.
    """

    def __init__(self, k: int, width: int, of: str = "laplacian", sign: "SignNet | str | None" = None, **options: Any):
        super().__init__(k, width, Laplacian(k=k), of, sign=sign, **options)


class Weights(NamedTuple):
    """The two linear layers of `EigenAttention`: queries, keys and values of all heads from the tokens, and back."""

    inner: Float[Tensor, "3*hc w"]
    inner_bias: Float[Tensor, " 3*hc"] | None
    out: Float[Tensor, "w hc"]
    out_bias: Float[Tensor, " w"] | None


class EigenAttention(Module):
    """Self-attention over the tokens of each node, `x + W_o softmax(q kᵀ/√c) v`.

    In plain tensor operations, queries, keys, values and scores of all nodes are the largest tensors of a whole model.
    On a GPU, one fused kernel keeps them in registers, and computes them again in the backward pass; on the CPU,
    PyTorch's attention keeps the scores in the cache.

    Args:
        width: Channels of a token.
        heads: Number of attention heads.
        channels: Channels per head.
        dropout: Dropout on the attention weights; training with it uses plain tensor operations.
        biases: Whether the linear layers have biases.
    """

    def __init__(self, width: int, heads: int, channels: int, dropout: float = 0.0, biases: bool = True):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.inner = torch.nn.Linear(width, 3 * heads * channels, bias=biases)
        self.out = torch.nn.Linear(heads * channels, width, bias=biases)

    def forward(self, tokens: Float[Tensor, "nodes t w"], mask: Bool[Tensor, "nodes t"]) -> Float[Tensor, "nodes t w"]:
        """The tokens after attention; tokens outside of the mask are not attended to."""
        weights = Weights(self.inner.weight, self.inner.bias, self.out.weight, self.out.bias)
        return eigen_attention(tokens, mask, weights, self.heads, self.dropout if self.training else 0.0)


def eigen_attention(
    tokens: Float[Tensor, "nodes t w"],
    mask: Bool[Tensor, "nodes t"],
    weights: Weights,
    heads: int,
    dropout: float = 0.0,
) -> Float[Tensor, "nodes t w"]:
    """`x + W_o softmax(q kᵀ/√c) v` over the tokens of each node, by a fused kernel where there is one.

    `dropout` acts on the softmax, in plain tensor operations; fused kernels have none.

    >>> layers = torch.nn.Linear(3, 6), torch.nn.Linear(2, 3)
    >>> weights = Weights(*layers[0].parameters(), *layers[1].parameters())
    >>> eigen_attention(torch.ones(2, 4, 3), torch.ones(2, 4, dtype=torch.bool), weights, heads=1).shape
    torch.Size([2, 4, 3])
    """
    if dropout:
        return plain_eigen_attention(tokens, mask, weights, heads, dropout)
    if cuda.suits(tokens, channels=weights.out.shape[1]):
        bias = weights.inner.new_zeros(len(weights.inner)) if weights.inner_bias is None else weights.inner_bias
        mixed = cuda.fused(tokens, mask, weights.inner, bias, weights.out, heads)
        return mixed if weights.out_bias is None else mixed + weights.out_bias
    if tokens.device.type == "cpu":
        return cached_eigen_attention(tokens, mask, weights, heads)
    return plain_eigen_attention(tokens, mask, weights, heads)


def cached_eigen_attention(
    tokens: Float[Tensor, "nodes t w"], mask: Bool[Tensor, "nodes t"], weights: Weights, heads: int
) -> Float[Tensor, "nodes t w"]:
    """The same by PyTorch's attention, which on the CPU never writes the scores to memory."""
    inner = torch.nn.functional.linear(tokens, weights.inner, weights.inner_bias)
    query, key, value = inner.unflatten(-1, (3, heads, -1)).transpose(1, 3).unbind(2)
    # The smallest number rather than −∞, which would make a node without any token NaN.
    bias = torch.zeros_like(mask, dtype=tokens.dtype).masked_fill_(~mask, torch.finfo(tokens.dtype).min)
    mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias[:, None, None])
    return tokens + torch.nn.functional.linear(mixed.transpose(1, 2).flatten(-2), weights.out, weights.out_bias)


def plain_eigen_attention(
    tokens: Float[Tensor, "nodes t w"],
    mask: Bool[Tensor, "nodes t"],
    weights: Weights,
    heads: int,
    dropout: float = 0.0,
) -> Float[Tensor, "nodes t w"]:
    """The same in plain tensor operations, since torch's fused attention overflows its grid above 65,535 nodes."""
    inner = torch.nn.functional.linear(tokens, weights.inner, weights.inner_bias)
    query, key, value = inner.unflatten(-1, (3, heads, -1)).unbind(2)
    scores = torch.einsum("nihc,njhc->nhij", query, key) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask[:, None, None, :], torch.finfo(scores.dtype).min)
    attention = torch.nn.functional.dropout(scores.softmax(-1), dropout, training=dropout > 0)
    mixed = torch.einsum("nhij,njhc->nihc", attention, value).flatten(-2)
    return tokens + torch.nn.functional.linear(mixed, weights.out, weights.out_bias)


class SignNet(Module):
    """Base class of networks that do not depend on the sign of an eigenvector: `f(γ) + f(−γ)`.

    For the first eigenvector, whose sign is known, the result is `f(γ)`.
    """

    def setup(self, parts: int, channels: int) -> None:
        """Make the parameters of `f`, from `parts` real numbers per entry to `channels`."""
        raise NotImplementedError

    def one_sign(self, vectors: Float[Tensor, "nodes *Q k parts"], batch: Batch) -> Float[Tensor, "nodes *Q k c"]:
        """`f`."""
        raise NotImplementedError

    def forward(self, vectors: Float[Tensor, "nodes *Q k parts"], batch: Batch) -> Float[Tensor, "nodes *Q k c"]:
        """Both signs together."""
        first = torch.arange(vectors.shape[-2], device=vectors.device)[:, None] == 0
        return self.one_sign(vectors, batch) + self.one_sign(-vectors, batch) * ~first


class SignMLP(SignNet):
    """A SignNet whose `f` is an MLP with one hidden layer, applied to each entry.

    Args:
        hidden: Size of the hidden layer.
    """

    def __init__(self, hidden: int = 64):
        super().__init__()
        self.hidden = hidden

    def setup(self, parts: int, channels: int) -> None:
        """Make the two layers."""
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(parts, self.hidden), torch.nn.GELU(), torch.nn.Linear(self.hidden, channels)
        )

    def one_sign(self, vectors: Float[Tensor, "nodes *Q k parts"], batch: Batch) -> Float[Tensor, "nodes *Q k c"]:  # noqa: ARG002
        """The MLP."""
        return self.layers(vectors)


class SignGNN(SignNet):
    """A SignNet whose `f` is a GNN over the graph, applied to each eigenvector.

    Args:
        steps: Number of message passing steps.
        directed: Whether messages along and against the edges are distinguished.
        activation: gelu or relu.
    """

    def __init__(self, steps: int = 1, directed: bool = True, activation: str = "gelu"):
        super().__init__()
        self.steps, self.directed, self.activation = steps, directed, activation

    def setup(self, parts: int, channels: int) -> None:
        """Make the network."""
        options = {"directed": self.directed, "edges": 0, "activation": self.activation, "norm": False}
        self.network = edge_node_network(parts, channels, channels, self.steps, **options)

    def one_sign(self, vectors: Float[Tensor, "nodes *Q k parts"], batch: Batch) -> Float[Tensor, "nodes *Q k c"]:
        """The GNN."""
        return self.network(vectors, None, batch)


SIGN_NETS: dict[str, Callable[[], SignNet]] = {"mlp": SignMLP, "gnn": SignGNN}


def sign_named(name: str) -> SignNet:
    """The sign net of this name."""
    if name not in SIGN_NETS:
        raise ValueError(f"sign must be one of {', '.join(SIGN_NETS)}, or None, got {name!r}")
    return SIGN_NETS[name]()


Vectors = Float[Tensor, "nodes *Q k parts"]
Scaling = Callable[[Vectors, Batch], Vectors]


def unscaled(vectors: Vectors, batch: Batch) -> Vectors:  # noqa: ARG001
    """Unit vectors, unchanged: `Σ_v |γ_v|² = 1`, so entries shrink as `1/√n`."""
    return vectors


def scaled_by_nodes(vectors: Vectors, batch: Batch) -> Vectors:
    """`√n γ`: the mean of `|γ_v|²` is 1 for graphs of every size; a sampled subgraph has the `n` of the whole graph."""
    return vectors * batch.per_node(batch.whole_sizes.to(vectors).sqrt()).view(-1, *[1] * (vectors.ndim - 1))


def scaled_by_parts(vectors: Vectors, batch: Batch) -> Vectors:
    """Scale the real and the imaginary part of each vector separately, to a mean square of 1."""
    return vectors * batch.per_node((batch.mean_nodes(vectors.square()) + 1e-12).rsqrt())


SCALINGS: dict[str, Scaling] = {"none": unscaled, "nodes": scaled_by_nodes, "parts": scaled_by_parts}


def scaling_named(name: str) -> Scaling:
    """The scaling of this name."""
    if name not in SCALINGS:
        raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, got {name!r}")
    return SCALINGS[name]


def potential_count(encoding: Spectral) -> int:
    """Number of potentials of an encoding, `Q`.

    >>> potential_count(MagneticLaplacian(k=4, q=(0.1, 0.2)))
    2
    """
    potentials = getattr(encoding, "q", None)
    return len(potentials) if isinstance(potentials, tuple) else 1


def part_count(encoding: Spectral) -> int:
    """Real numbers per entry of an eigenvector: 1 for real vectors, 2 for complex ones.

    >>> part_count(Laplacian(k=4))
    1
    """
    return 2 if isinstance(encoding, MagneticLaplacian) else 1


def check_same_k(k: int, encoding: Spectral) -> None:
    """Raise an error if the encoding has another number of eigenvectors."""
    if encoding.k != k:
        raise ValueError(f"k={k} differs from the k of {encoding}: give both the same k")


def eigenpairs_of(batch: Batch, name: str, encoding: Spectral) -> BatchedEigenpairs:
    """The eigenpairs of the batch with this name; an error unless their shape is that of the encoding."""
    pairs = batch.encoding(name)
    if not isinstance(pairs, BatchedEigenpairs):
        raise ValueError(f"encoding {name!r} of the batch has no eigenpairs: encode with {encoding}")
    kinds = {1: "real", 2: "complex"}
    found, parts = pairs.values.shape[1:].numel(), pairs.vectors.shape[-1]
    expected = encoding.k * potential_count(encoding)
    if (found, parts) != (expected, part_count(encoding)):
        raise ValueError(
            f"encoding {name!r} of the batch has {found} {kinds[parts]} eigenvectors per graph, expected {expected} "
            f"{kinds[part_count(encoding)]} ones: encode with {encoding}"
        )
    return pairs
