"""Models by name: each is a frozen dataclass of options that builds a model with a task's embedding and head."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

import torch

from magnetite import nn
from magnetite.encodings.checks import DEPTH, DEPTH_OR_NONE, DROPOUT, NON_NEGATIVE, SIZE, Domain, check_fields
from magnetite.linalg.memory import check_memory
from magnetite.nn.attention import REACHES
from magnetite.nn.embeddings import Embeddings
from magnetite.nn.encoders import PositionEncoder
from magnetite.nn.heads import READOUTS, Head
from magnetite.nn.layers import INITS, start_by_fan_in
from magnetite.tasks import Task
from magnetite.training.encodings import PositionalEncodings
from magnetite.training.options import later

ATTENTIONS: dict[str, Callable[[int, int], nn.GraphAttention | None]] = {
    "full": lambda width, heads: None,  # noqa: ARG005
    "linear": nn.LinearAttention,
    "sparse": nn.SparseAttention,
}
"""Attention by name; None for full attention, which has further options."""


@dataclass(frozen=True)
class ModelOptions:
    """Base class of the options of a model.

    Args:
        width: Size of a node's state.
        init: How linear layers start: `uniform`, as PyTorch's, or `fan-in`, truncated normal matrices of standard
            deviation `1/√fan_in` and biases of 0.
        position_scale: Standard deviation of the entries of a node's position at the beginning, which a LayerNorm sets;
            0 to add positions as their encoders give them.
    """

    width: Annotated[int, SIZE] = 256
    init: Annotated[str, Domain(choices=INITS)] = later("uniform")
    position_scale: Annotated[float, NON_NEGATIVE] = later(0.0)

    def __post_init__(self) -> None:
        """Check the fields against their types and domains; a class that checks more calls this first."""
        check_fields(self)

    @property
    def biased(self) -> tuple[int, int]:
        """Numbers of attention heads and layers to which a position encoder may add biases."""
        return 1, 1

    @property
    def graph_readout(self) -> str:
        """How a whole graph is read out: cls, mean, sum or max."""
        return "mean"

    def build(
        self, position: PositionEncoder | None, embedding: Embeddings, head: Head, edges: Embeddings
    ) -> nn.GraphModel:
        """The model with new parameters."""
        raise NotImplementedError


@dataclass(frozen=True)
class Transformer(ModelOptions):
    """Full attention between the nodes of a graph.

    Args:
        width: Size of a node's state.
        layers: Number of layers.
        heads: Number of attention heads.
        expansion: Hidden size of the feed-forward layers, in multiples of `width`.
        dropout: Dropout rate.
        norm: Where the layers normalise: `post` or `pre`.
        local: Number of GNN steps that compute queries and keys (a SAT); 0 for a plain transformer.
        length_scaled: Whether attention logits are scaled by the logarithm of the graph's size.
        readout: How a whole graph is read out: cls, mean, sum or max.
        local_added: Whether the states of the GNN, if there is one, are also added to the output of attention.
        repeats: How often the layers are applied one after the other, with the same parameters.
        reach: Which nodes a node attends to: all, relatives (ancestors and descendants) or directions (ancestors in
            half of the heads, descendants in the other half).
        attention: full; linear, whose cost grows linearly with the number of nodes; or sparse, to the nodes that the
            encoding relatives or sparse-walks lists.
        init: How linear layers start, uniform or fan-in.
        position_scale: Standard deviation of the entries of a node's position at the beginning; 0 to leave them alone.
        inner_dropout: Whether dropout also acts inside the feed-forward networks, after their activations.
    """

    layers: Annotated[int, DEPTH] = 4
    heads: Annotated[int, SIZE] = 4
    expansion: Annotated[int, DEPTH] = 4
    dropout: Annotated[float, DROPOUT] = 0.185
    norm: Annotated[str, Domain(choices=("post", "pre"))] = "post"
    local: Annotated[int, DEPTH_OR_NONE] = 0
    length_scaled: bool = False
    readout: Annotated[str, Domain(choices=tuple(READOUTS))] = "cls"
    local_added: bool = later(False)
    repeats: Annotated[int, DEPTH] = later(1)
    reach: Annotated[str, Domain(choices=REACHES)] = later("all")
    attention: Annotated[str, Domain(choices=tuple(ATTENTIONS))] = later("full")
    inner_dropout: bool = later(False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads, got width={self.width} and heads={self.heads}")
        if self.attention != "full" and (self.length_scaled or self.reach != "all"):
            raise ValueError(
                f"attention={self.attention} has neither length_scaled nor reach: set model.length_scaled=false and "
                "model.reach=all, or attention=full"
            )

    @property
    def biased(self) -> tuple[int, int]:
        """Heads and layers."""
        return self.heads, self.layers

    @property
    def graph_readout(self) -> str:
        """The chosen readout."""
        return self.readout

    def build(
        self, position: PositionEncoder | None, embedding: Embeddings, head: Head, edges: Embeddings
    ) -> nn.GraphModel:
        """The transformer."""
        return nn.DigraphTransformer(
            self.width,
            self.layers,
            head,
            position,
            embedding,
            heads=self.heads,
            expansion=self.expansion,
            dropout=self.dropout,
            norm=self.norm,
            length_scaled=self.length_scaled,
            local=self.local_network(edges) if self.local else None,
            local_added=self.local_added and self.local > 0,
            repeats=self.repeats,
            reach=self.reach,
            attention=ATTENTIONS[self.attention](self.width, self.heads),
            inner_dropout=self.inner_dropout,
            **self.further(),
        )

    def local_network(self, edges: Embeddings) -> nn.Module:
        """The network that computes queries and keys."""
        return nn.GNN(self.width, self.local, edge_features=edges)

    def further(self) -> dict[str, Any]:
        """Further arguments of the model."""
        return {}


@dataclass(frozen=True)
class StructureAware(Transformer):
    """A Structure-Aware Transformer (SAT): a network over the edges computes queries and keys, nodes scale by degree.

    Args:
        width: Size of a node's state.
        layers: Number of layers.
        heads: Number of attention heads.
        expansion: Hidden size of the feed-forward layers, in multiples of `width`.
        dropout: Dropout rate.
        norm: Where the layers normalise: `post` or `pre`.
        local: Number of steps of the network that computes queries and keys; 0 for none.
        length_scaled: Whether attention logits are scaled by the logarithm of the graph's size.
        readout: How a whole graph is read out: cls, mean, sum or max.
        local_added: Whether the states of that network are also added to the output of attention.
        repeats: How often the layers are applied one after the other, with the same parameters.
        reach: Which nodes a node attends to: all, relatives (ancestors and descendants) or directions (ancestors in
            half of the heads, descendants in the other half).
        attention: full; linear, whose cost grows linearly with the number of nodes; or sparse, to the nodes that the
            encoding relatives or sparse-walks lists.
        init: How linear layers start, uniform or fan-in.
        position_scale: Standard deviation of the entries of a node's position at the beginning; 0 to leave them alone.
        inner_dropout: Whether dropout also acts inside the feed-forward networks, after their activations.
        network: The network: gnn; dirgnn, whose memory does not grow with the edges; recurrent, which follows the
            topological order of acyclic graphs; or gcn, which ignores direction.
        activation: gelu or relu.
        degree_scaled: Whether the output of attention is scaled by `1/√(degree + 1)`.
        normalised: Whether the states of the network gnn are normalised after each of its steps.
    """

    local: Annotated[int, DEPTH_OR_NONE] = 3
    network: Annotated[str, Domain(choices=("gnn", "gcn", "dirgnn", "recurrent"))] = "gnn"
    activation: Annotated[str, Domain(choices=("gelu", "relu"))] = "gelu"
    degree_scaled: bool = True
    normalised: bool = later(False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.normalised and self.network != "gnn":
            raise ValueError(f"model.normalised belongs to network=gnn, got {self.network}: leave it out")

    def local_network(self, edges: Embeddings) -> nn.Module:
        """The network that computes queries and keys."""
        if self.network == "recurrent":
            return nn.TopologicalGRU(self.width, self.local, edge_features=edges)
        options: dict[str, Any] = {"activation": self.activation}
        if self.network == "dirgnn":
            return nn.DirGNN(self.width, self.local, **options)
        if self.network == "gcn":
            return nn.GCN(self.width, self.local, edge_features=edges, **options)
        return nn.GNN(self.width, self.local, edge_features=edges, normalised=self.normalised, **options)

    def further(self) -> dict[str, Any]:
        """Further arguments of the model."""
        return {"activation": self.activation, "degree_scaled": self.degree_scaled}


@dataclass(frozen=True)
class MessagePassing(ModelOptions):
    """A GNN alone.

    Args:
        width: Size of a node's state.
        steps: Number of message passing steps, or of passes of the network recurrent.
        directed: Whether messages along and against the edges are distinguished.
        network: The network: gnn; dirgnn, whose memory does not grow with the edges; or recurrent, which follows the
            topological order of acyclic graphs. The last two are always directed.
        init: How linear layers start, uniform or fan-in.
        position_scale: Standard deviation of the entries of a node's position at the beginning; 0 to leave them alone.
        readout: How a whole graph is read out: mean, sum or max.
        marked: Whether node pairs are read from a copy of the graph in which their source is marked; the network runs
            once per source.
    """

    steps: Annotated[int, DEPTH] = 3
    directed: bool = True
    network: Annotated[str, Domain(choices=("gnn", "dirgnn", "recurrent"))] = later("gnn")
    readout: Annotated[str, Domain(choices=("mean", "sum", "max"))] = later("mean")
    marked: bool = later(False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.network != "gnn" and not self.directed:
            raise ValueError(f"model.network={self.network} is always directed: leave out model.directed, or use gnn")

    @property
    def graph_readout(self) -> str:
        """The chosen readout."""
        return self.readout

    def build(
        self, position: PositionEncoder | None, embedding: Embeddings, head: Head, edges: Embeddings
    ) -> nn.GraphModel:
        """The GNN."""
        networks: dict[str, Callable[[], nn.Module]] = {
            "gnn": lambda: nn.GNN(self.width, self.steps, self.directed, edge_features=edges),
            "dirgnn": lambda: nn.DirGNN(self.width, self.steps),
            "recurrent": lambda: nn.TopologicalGRU(self.width, self.steps, edge_features=edges),
        }
        return nn.DigraphGNN(self.width, head, networks[self.network](), position, embedding, self.marked)


@dataclass(frozen=True)
class MagneticFilters(ModelOptions):
    """MagNet: complex Chebyshev filters of the magnetic Laplacian.

    Args:
        width: Size of a node's state.
        layers: Number of layers.
        q: Potential of the magnetic Laplacian.
        init: How linear layers start, uniform or fan-in.
        position_scale: Standard deviation of the entries of a node's position at the beginning; 0 to leave them alone.
        order: Degree of the Chebyshev polynomials.
        real_start: Whether the signal is real at the start: its imaginary part is zero.
    """

    layers: Annotated[int, DEPTH] = 3
    q: Annotated[float, Domain(0, 0.5)] = 0.1
    order: Annotated[int, DEPTH] = later(2)
    real_start: bool = later(False)

    def build(
        self,
        position: PositionEncoder | None,
        embedding: Embeddings,
        head: Head,
        edges: Embeddings,  # noqa: ARG002
    ) -> nn.GraphModel:
        """The MagNet."""
        return nn.MagNet(
            self.width, self.layers, head, position, embedding, self.order, self.q, real_start=self.real_start
        )


TRAINING_BYTES = 16
"""Memory per parameter: itself, its gradient and two moments."""

MODELS: dict[str, type[ModelOptions]] = {
    "transformer": Transformer,
    "sat": StructureAware,
    "gnn": MessagePassing,
    "magnet": MagneticFilters,
}
"""The models by name."""


def build_model(task: Task, encoding: PositionalEncodings, model: ModelOptions, seed: int) -> nn.GraphModel:
    """A model with new parameters, which are a function of the seed.

    Args:
        task: Provides embedding and head.
        encoding: Provides the position encoder.
        model: Provides the layers between them.
        seed: Seed of the parameters.

    >>> from magnetite.tasks import Sorting
    >>> encoding = PositionalEncodings.from_dict({"magnetic": {"k": 4}})
    >>> build_model(Sorting(), encoding, Transformer(width=32, layers=1), seed=0).head
    GraphHead(
      (linear): Linear(in_features=32, out_features=2, bias=True)
    )
    """
    with torch.device("meta"), suppress(RuntimeError):  # parts that cannot be made this way are not measured
        count = _assembled(task, encoding, model).parameter_count
        what = f"a model of {count:,} parameters with its gradients and the state of AdamW"
        check_memory(TRAINING_BYTES * count, torch.device("cpu"), what, "choose a smaller width, k or number of layers")
    torch.manual_seed(seed)
    made = _assembled(task, encoding, model)
    if model.init == "fan-in":
        start_by_fan_in(made)
    return made


def _assembled(task: Task, encoding: PositionalEncodings, model: ModelOptions) -> nn.GraphModel:
    position = encoding.build(model.width, *model.biased)
    if position is not None and model.position_scale:
        position = nn.Normalised(position, model.width, model.position_scale)
    channels = 0 if position is None else position.pair_channels
    head = task.head(model.graph_readout, channels)
    if channels and getattr(head, "pair_channels", 0) != channels:
        names = "+".join(part.name for part in encoding.parts)
        raise ValueError(
            f"encoding {names} has features of node pairs, which {type(task).__name__} does not use: leave them out"
        )
    return model.build(position, task.embedding(), head, task.edge_embedding())
