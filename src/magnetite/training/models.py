"""The models that a training can be asked for by name, and what each task adds to them: embedding and head."""

from dataclasses import dataclass

import torch

from magnetite import nn
from magnetite.nn.embeddings import Embedding
from magnetite.nn.heads import Head
from magnetite.nn.positions import PositionEncoder
from magnetite.tasks import Playground, Sorting, Task
from magnetite.training.encodings import EncodingChoice, Room


@dataclass(frozen=True)
class Parts:
    """What a task and an encoding give to a model."""

    position: PositionEncoder | None
    embedding: Embedding
    head: Head


@dataclass(frozen=True)
class ModelChoice:
    """What all models share.

    Of sorting networks, `places` moves the wires on, among so many; 0 leaves them. `borders` tells how near a wire is
    to the first and the last one. Of pairs of nodes, `pair_layer` gives what the encoding knows of them a layer of its
    own in the head.
    """

    width: int = 256
    places: int = 0
    borders: int = 0
    pair_layer: bool = True

    def __post_init__(self) -> None:
        for name in ("places", "borders"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}={getattr(self, name)} is negative: give 0 to leave it out")

    def check(self, task: Task) -> None:
        """Refuse a task that the model is not for."""

    @property
    def room(self) -> Room:
        """What a position encoder has to fit; without attention there is nothing to be biased."""
        return Room(self.width, 1, 1)

    @property
    def graph_readout(self) -> str:
        """How a whole graph is read: cls, mean, sum or max."""
        return "mean"

    @property
    def codes_wires(self) -> bool:
        """Whether a comparator is told by the codes of its wires."""
        return True

    def build(self, parts: Parts) -> nn.GraphModel:
        """The model."""
        raise NotImplementedError


@dataclass(frozen=True)
class Transformer(ModelChoice):
    """Full attention between the nodes of a graph; `local` steps of a GNN for queries and keys make it a SAT.

    `readout` is how a whole graph is read: cls, mean, sum or max.
    """

    layers: int = 4
    heads: int = 4
    expansion: int = 4
    dropout: float = 0.185
    norm: str = "post"
    local: int = 0
    length_scaled: bool = False
    readout: str = "cls"

    @property
    def graph_readout(self) -> str:
        """As it was asked for."""
        return self.readout

    @property
    def room(self) -> Room:
        """What a position encoder has to fit."""
        return Room(self.width, self.heads, self.layers)

    def build(self, parts: Parts) -> nn.GraphModel:
        """The model."""
        return nn.DigraphTransformer(
            self.width,
            self.layers,
            parts.head,
            parts.position,
            parts.embedding,
            heads=self.heads,
            expansion=self.expansion,
            dropout=self.dropout,
            norm=self.norm,
            length_scaled=self.length_scaled,
            local=nn.GNN(self.width, self.local) if self.local else None,
        )


@dataclass(frozen=True)
class MessagePassing(ModelChoice):
    """A GNN alone; `directed` tells messages along the edges from those against them."""

    steps: int = 3
    directed: bool = True

    def build(self, parts: Parts) -> nn.GraphModel:
        """The model."""
        local = nn.GNN(self.width, self.steps, self.directed)
        return nn.DigraphGNN(self.width, parts.head, local, parts.position, parts.embedding)


@dataclass(frozen=True)
class MagneticFilters(ModelChoice):
    """MagNet: complex Chebyshev filters of the magnetic Laplacian."""

    layers: int = 3
    q: float = 0.1

    def build(self, parts: Parts) -> nn.GraphModel:
        """The model."""
        return nn.MagNet(self.width, self.layers, parts.head, parts.position, parts.embedding, q=self.q)


@dataclass(frozen=True)
class Relations(ModelChoice):
    """Sorting networks by `state` numbers for every two wires, which each comparator changes.

    `wires` is the room for wires in training; numbers of wires are not seen, only their order.
    """

    state: int = 32
    wires: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.state < 1:
            raise ValueError(f"state={self.state} holds nothing of two wires: give a number such as 32")
        if self.places or self.borders:
            raise ValueError(
                f"places={self.places}, borders={self.borders} change codes of wires, which relations do not use: "
                "leave them out"
            )

    def check(self, task: Task) -> None:
        """Refuse graphs without wires, and too little room for them."""
        if not isinstance(task, Sorting):
            raise ValueError("model relations reads wires, which only sorting networks have: give another model")
        if self.wires < task.train_longest:
            raise ValueError(
                f"model.wires={self.wires} has no room for networks of length {task.train_longest}: give at least that"
            )

    @property
    def graph_readout(self) -> str:
        """The token."""
        return "cls"

    @property
    def codes_wires(self) -> bool:
        """They are told by what they do."""
        return False

    def build(self, parts: Parts) -> nn.GraphModel:
        """The model."""
        return nn.WireRelations(
            self.width, parts.head, parts.position, parts.embedding, state=self.state, wires=self.wires
        )


MODELS: dict[str, type[ModelChoice]] = {
    "transformer": Transformer,
    "gnn": MessagePassing,
    "magnet": MagneticFilters,
    "relations": Relations,
}
"""The models by the names that the configuration uses."""


def build_model(task: Task, encoding: EncodingChoice, model: ModelChoice, seed: int) -> nn.GraphModel:
    """A model with fresh parameters, a function of the seed.

    >>> from magnetite.training.encodings import Magnetic
    >>> build_model(Sorting(), Magnetic(k=4), Transformer(width=32, layers=1), seed=0).head
    GraphHead(
      (linear): Linear(in_features=32, out_features=2, bias=True)
    )
    """
    torch.manual_seed(seed)
    return model.build(Parts(encoding.encoder(model.room), _embedding(task, model), _head(task, encoding, model)))


def _embedding(task: Task, model: ModelChoice) -> Embedding:
    if isinstance(task, Sorting) and model.codes_wires:
        return nn.WireNodes(places=model.places or None, borders=model.borders)
    return nn.SameNodes()


def _head(task: Task, encoding: EncodingChoice, model: ModelChoice) -> Head:
    if isinstance(task, Playground):
        channels, layer = encoding.pair_channels, model.pair_layer
        return nn.PairHead(positive=not task.classifies, pair_channels=channels, pair_layer=layer)
    return nn.GraphHead(2, model.graph_readout)
