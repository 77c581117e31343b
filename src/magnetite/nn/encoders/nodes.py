"""Encoders of encodings with one row per node: singular vectors, sinusoids and depths."""

from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch
from magnetite.encodings import SVD, Depth, Sinusoidal, WalkSums
from magnetite.encodings.checks import LATER, SIZE, Domain
from magnetite.linalg.counter import mix, shift_right
from magnetite.nn.encoders.base import PositionEncoder, Positions
from magnetite.nn.layers import activation_named

SIGNS = ("paired", "independent")
"""Random signs of singular vectors: the same for `u_j` and `v_j`, in training alone; or independent ones, always."""


class SVDEncoder(PositionEncoder):
    """`W [U√S ‖ V√S]_v + b`; in training, singular pairs get random signs, the same for `u_j` and `v_j`.

    With independent signs, `u_j v_jᵀ` is no longer part of the adjacency matrix. The signs of evaluation are a function
    of the number of nodes and their degrees, so that neither batching nor a repetition changes a result.

    Args:
        rank: Number of singular pairs.
        width: Size of a node's vector.
        of: Name of the singular vectors in the batch.
        signs: paired (the same sign for `u_j` and `v_j`), or independent (also in evaluation).

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> SVDEncoder(rank=4, width=32)(mt.batch(graphs, svd=mt.SVD(rank=4)(graphs))).nodes.shape
    torch.Size([3, 32])
    """

    reads: ClassVar[tuple[type, ...]] = (SVD,)

    def __init__(
        self,
        rank: int,
        width: Annotated[int, SIZE],
        of: str = "svd",
        signs: Annotated[str, Domain(choices=SIGNS), LATER] = "paired",
    ):
        super().__init__()
        self.of, self.encoding, self.independent = of, SVD(rank=rank), signs == "independent"
        self.linear = torch.nn.Linear(2 * rank, width)

    @classmethod
    def build(cls, encoding: SVD, width: int, heads: int, layers: int, **options: Any) -> "SVDEncoder":  # noqa: ARG003
        """As many singular pairs as the encoding has."""
        return cls(encoding.rank, width, **options)

    def forward(self, batch: Batch) -> Positions:
        """The singular vectors, transformed."""
        values = node_values(batch, self, self.linear.in_features)
        if self.training or self.independent:
            values = (values.unflatten(-1, (2, -1)) * batch.per_node(self._signs(batch))).flatten(-2)
        return Positions(nodes=self.linear(values))

    def _signs(self, batch: Batch) -> Int[Tensor, "graphs sides rank"]:
        sides, rank = 2 if self.independent else 1, self.encoding.rank
        if self.training:
            return torch.randint(2, (len(batch), sides, rank), device=batch.device) * 2 - 1
        return signs_of_graphs(batch, sides * rank).unflatten(1, (sides, rank))


def signs_of_graphs(batch: Batch, count: int) -> Int[Tensor, "graphs count"]:
    """Signs that look random and depend on the number of nodes and their degrees, not on the order of the nodes.

    Args:
        batch: The graphs.
        count: Number of signs per graph.

    >>> import magnetite as mt
    >>> signs_of_graphs(mt.batch(mt.Digraphs.from_edges([[0, 1], [1, 2]])), 4).tolist()
    [[-1, 1, -1, -1]]
    """
    squares = torch.zeros_like(batch.sizes).index_add(0, batch.node_graph, batch.degrees().to(batch.sizes) ** 2)
    keys = mix(batch.sizes, squares)
    return shift_right(mix(keys[:, None], torch.arange(count, device=batch.device)), 63) * 2 - 1


class WalkSumsEncoder(PositionEncoder):
    """`W' σ(W log(1 + s_v) + b) + b'` of the sums `s_v` of walks that land at a node, for graphs of any size.

    Args:
        width: Size of a node's vector.
        encoding: The encoding that computes the sums; `WalkSums()` by default.
        of: Name of the sums in the batch.
        activation: gelu or relu.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> WalkSumsEncoder(width=32)(mt.batch(graphs, walk_sums=mt.WalkSums()(graphs))).nodes.shape
    torch.Size([3, 32])
    """

    reads: ClassVar[tuple[type, ...]] = (WalkSums,)

    def __init__(
        self,
        width: Annotated[int, SIZE],
        encoding: WalkSums | None = None,
        of: str = "walk_sums",
        activation: str = "gelu",
    ):
        super().__init__()
        self.of, self.encoding = of, encoding if encoding is not None else WalkSums()
        self.channels = self.encoding.width
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(self.channels, width), activation_named(activation), torch.nn.Linear(width, width)
        )

    def forward(self, batch: Batch) -> Positions:
        """One vector per node, from the walks that land there."""
        return Positions(nodes=self.layers(node_values(batch, self, self.channels).log1p()))


class SinusoidalEncoder(PositionEncoder):
    """Cosines and sines of the node's number within its graph; batches need no encoding for it.

    Args:
        width: Size of a node's vector.
        base: Base of the wavelengths.

    >>> import magnetite as mt
    >>> SinusoidalEncoder(width=32)(mt.batch(mt.Digraphs.from_edges([[0, 1], [1, 2]]))).nodes.shape
    torch.Size([3, 32])
    """

    reads: ClassVar[tuple[type, ...]] = (Sinusoidal,)

    def __init__(self, width: int, base: float = 10_000.0):
        super().__init__()
        self.encoding = Sinusoidal(width, base)

    @classmethod
    def build(cls, encoding: Sinusoidal, width: int, heads: int, layers: int, **options: Any) -> "SinusoidalEncoder":  # noqa: ARG003
        """The sinusoids of the encoding."""
        return cls(encoding.width, encoding.base, **options)

    def encodings(self) -> dict[str, Any]:
        """None: it needs no graph."""
        return {}

    def forward(self, batch: Batch) -> Positions:
        """The sinusoids."""
        return Positions(nodes=self.encoding.of_numbers(batch.node_numbers()))


class DepthEncoder(PositionEncoder):
    """One learned vector per depth below the root, up to a cap.

    Args:
        width: Size of a node's vector.
        cap: The largest depth; deeper nodes share its vector.
        of: Name of the depths in the batch.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> DepthEncoder(width=32)(mt.batch(graphs, depth=mt.Depth()(graphs))).nodes.shape
    torch.Size([3, 32])
    """

    reads: ClassVar[tuple[type, ...]] = (Depth,)

    def __init__(self, width: Annotated[int, SIZE], cap: int = 20, of: str = "depth"):
        super().__init__()
        self.of, self.encoding = of, Depth(cap=cap)
        self.table = torch.nn.Embedding(cap + 1, width)

    @classmethod
    def build(cls, encoding: Depth, width: int, heads: int, layers: int, **options: Any) -> "DepthEncoder":  # noqa: ARG003
        """One vector per depth that the encoding has."""
        return cls(width, encoding.cap, **options)

    def forward(self, batch: Batch) -> Positions:
        """The vectors of the nodes' depths."""
        return Positions(nodes=self.table(batch.encoding(self.of).clamp(0, self.encoding.cap)))


def node_values(batch: Batch, encoder: PositionEncoder, channels: int) -> Float[Tensor, "nodes channels"]:
    """The node encoding of the batch that the encoder reads, if it has the right number of columns."""
    values = batch.encoding(encoder.of)
    if values.shape[1:] != (channels,):
        raise ValueError(
            f"encoding {encoder.of!r} of the batch has shape {tuple(values.shape)}, expected {channels} columns per "
            f"node: encode with {encoder.encoding}"
        )
    return values.float()
