"""An encoding of one's own with its encoder, in one file: the degrees of the nodes."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from magnetite.encodings import ENCODINGS, NodeEncoding
from magnetite.graphs import Digraphs
from magnetite.nn import PositionEncoder, Positions
from magnetite.nn.encoders import ENCODERS


@dataclass(frozen=True)
class Degrees:
    """In-degree and out-degree, to a power.

    Args:
        power: The power.
    """

    power: float = 0.5

    def __call__(self, graphs: Digraphs) -> NodeEncoding:
        counts = [torch.bincount(ends, minlength=graphs.num_nodes) for ends in graphs.edge_index]
        return NodeEncoding(node_ptr=graphs.node_ptr, values=torch.stack(counts, dim=1).float() ** self.power)


class DegreeEncoder(PositionEncoder):
    """A linear layer.

    Args:
        width: Size of a node's vector.
        encoding: The encoding that computes the degrees.
        scale: Factor of the degrees.
        of: Name of the degrees in the batch.
    """

    reads: ClassVar[tuple[type, ...]] = (Degrees,)

    def __init__(self, width: int, encoding: Degrees | None = None, scale: float = 1.0, of: str = "degrees"):
        super().__init__()
        self.of, self.encoding, self.scale = of, encoding or Degrees(), scale
        self.linear = torch.nn.Linear(2, width)

    def forward(self, batch) -> Positions:
        return Positions(nodes=self.linear(self.scale * batch.encoding(self.of)))


def register(monkeypatch) -> None:
    """Add encoding and encoder for the duration of a test; a user writes `ENCODINGS["degrees"] = Degrees`."""
    monkeypatch.setitem(ENCODINGS, "degrees", Degrees)
    monkeypatch.setitem(ENCODERS, "degrees", DegreeEncoder)
