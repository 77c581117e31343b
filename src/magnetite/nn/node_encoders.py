"""Encoders of encodings that are one row a node already: singular vectors, sinusoids and depths."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.encodings import SVD, Depth, Sinusoidal
from magnetite.nn.positions import PositionEncoder, Positions


class SVDEncoder(PositionEncoder):
    """`W [U√S ‖ V√S]_v + b`; in training the singular pairs get random signs, the same for `u_j` and `v_j`.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> SVDEncoder(rank=4, width=32)(mt.pad(graphs, svd=mt.SVD(rank=4)(graphs))).nodes.shape
    torch.Size([1, 8, 32])
    """

    def __init__(self, rank: int, width: int, of: str = "svd"):
        super().__init__()
        self.of, self.encoding = of, SVD(rank=rank)
        self.linear = torch.nn.Linear(2 * rank, width)

    def forward(self, batch: Batch) -> Positions:
        """The singular vectors, transformed."""
        values = node_rows(batch, self, self.linear.in_features)
        if self.training:
            sign = torch.randint(2, (values.shape[0], 1, 1, self.encoding.rank), device=values.device) * 2 - 1
            values = (values.unflatten(-1, (2, -1)) * sign).flatten(-2)
        return Positions(nodes=self.linear(values))


class SinusoidalEncoder(PositionEncoder):
    """Cosines and sines of the node's number, as they are. That is the number of its slot: batches need hold nothing.

    >>> import magnetite as mt
    >>> SinusoidalEncoder(width=32)(mt.pad(mt.Digraphs.from_edges([[0, 1], [1, 2]]))).nodes.shape
    torch.Size([1, 8, 32])
    """

    def __init__(self, width: int):
        super().__init__()
        self.encoding = Sinusoidal(width=width)

    def encodings(self) -> dict[str, Any]:
        """None: it needs no graph."""
        return {}

    def forward(self, batch: Batch) -> Positions:
        """The sinusoids."""
        rows = self.encoding.of_numbers(torch.arange(batch.mask.shape[1], device=batch.device))
        return Positions(nodes=rows.expand(len(batch), -1, -1))


class DepthEncoder(PositionEncoder):
    """One learned vector a depth below the root, up to a cap.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> DepthEncoder(width=32)(mt.pad(graphs, depth=mt.Depth()(graphs))).nodes.shape
    torch.Size([1, 8, 32])
    """

    def __init__(self, width: int, cap: int = 20, of: str = "depth"):
        super().__init__()
        self.of, self.encoding = of, Depth(cap=cap)
        self.table = torch.nn.Embedding(cap + 1, width)

    def forward(self, batch: Batch) -> Positions:
        """The looked-up vectors."""
        return Positions(nodes=self.table(batch.encoding(self.of).clamp(0, self.encoding.cap)))


def node_rows(batch: Batch, encoder: PositionEncoder, channels: int) -> Float[Tensor, "b n channels"]:
    """The batch's encoding of nodes that the encoder wants, if it has the right number of columns."""
    values = batch.encoding(encoder.of)
    if values.shape[2:] != (channels,):
        raise ValueError(
            f"{encoder.of!r} of the batch has shape {tuple(values.shape)}, this encoder takes {channels} columns a "
            f"node: encode with {encoder.encoding}"
        )
    return values.float()
