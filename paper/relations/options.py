"""Options of WireRelations, for the trainer."""

from dataclasses import dataclass
from typing import Annotated

from magnetite import nn
from magnetite.encodings.checks import SIZE
from magnetite.nn.embeddings import Embeddings
from magnetite.nn.encoders import PositionEncoder
from magnetite.nn.heads import Head
from magnetite.training.models import ModelOptions
from paper.relations.model import WireRelations


@dataclass(frozen=True)
class Relations(ModelOptions):
    """Relations of wires; the numbers of wires are not seen, only their order.

    Args:
        width: Size of a node's state and of the graph token.
        state: Size of the vector of two wires.
        wires: Largest number of wires in training.
        init: How linear layers start, uniform or fan-in.
    """

    state: Annotated[int, SIZE] = 32
    wires: Annotated[int, SIZE] = 16

    @property
    def graph_readout(self) -> str:
        """The graph token."""
        return "cls"

    def build(
        self,
        position: PositionEncoder | None,
        embedding: Embeddings,  # noqa: ARG002
        head: Head,
        edges: Embeddings,  # noqa: ARG002
    ) -> nn.GraphModel:
        """The model; it ignores the task's embedding, since a comparator is known by what it does to its wires."""
        return WireRelations(self.width, head, position, state=self.state, wires=self.wires)
