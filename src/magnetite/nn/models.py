"""Models: embedding + positions → body → head. They take batches, graphs or PyG batches, and are saved as a folder."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import Batch, batch, by_source
from magnetite.encodings.carried import carried, carried_names, fits
from magnetite.encodings.checks import DEPTH, DROPOUT, SIZE
from magnetite.graphs import Digraphs
from magnetite.io.interop import check_pyg
from magnetite.io.pyg import joined
from magnetite.nn import checkpoint
from magnetite.nn.attention import Attention, Block, GraphAttention
from magnetite.nn.embeddings import Embedding, SameNodes, embedding_of
from magnetite.nn.encoders.base import Combined, PositionEncoder, Positions
from magnetite.nn.gnn import GNN
from magnetite.nn.heads import Head, PairHead, Rescaled
from magnetite.nn.layers import Norm
from magnetite.nn.module import Module, of_kind, remade, unused

States = Float[Tensor, "nodes d"]


NO_ATTENTION = "the position encoder has attention biases, but this model has no attention: use another one"


class GraphModel(Module):
    """Base class of models: states are packed, `[nodes, width]`, from the embedding to the head.

    Args:
        width: Size of a node's state.
        head: Head, which makes the predictions.
        position: Position encoder, or a list of them.
        embedding: Embedding of the node features, or a list of them; by default all nodes have the same vector.
    """

    def __init__(
        self,
        width: Annotated[int, SIZE],
        head: Head,
        position: PositionEncoder | Sequence[PositionEncoder] | None = None,
        embedding: Embedding | Sequence[Embedding] | None = None,
    ):
        super().__init__()
        for part in position if isinstance(position, Sequence) else [position]:
            if part is not None and not isinstance(part, PositionEncoder):
                raise TypeError(f"position must be an encoder such as MagLapNet(k=8, width={width}), got {part!r}")
        self.width = width
        self.position = Combined(position) if isinstance(position, Sequence) else position
        self.embedding = embedding_of(SameNodes() if embedding is None else embedding, width)
        self.head = unused(of_kind(head, Head, "head"))
        self.head.setup(width)

    def forward(self, graphs: Any) -> Tensor:
        """The predictions for a `Batch`, `Digraphs`, or PyG's `Data` or `Batch`; graphs are encoded first."""
        batch = graphs if isinstance(graphs, Batch) else self.prepare(graphs)
        states, batch, positions = self.embed(batch)
        return self.head(self.body(states, batch, positions), batch, positions)

    def embed(self, batch: Batch) -> tuple[States, Batch, Positions]:
        """The states of the nodes with their positions, and what the layers and the head read beside them."""
        positions = Positions() if self.position is None else self.position(batch)
        states = self.embedding(batch)
        if positions.nodes is None:
            return states, batch, positions
        if positions.nodes.shape[-1] != self.width:
            raise ValueError(
                f"the position encoder has width {positions.nodes.shape[-1]}, the model {self.width}: give both the "
                "same width"
            )
        return states + positions.nodes, batch, positions

    def body(self, states: States, batch: Batch, positions: Positions) -> Float[Tensor, "tokens d"]:
        """The layers between embedding and head, from packed states to packed states."""
        raise NotImplementedError

    def prepare(self, graphs: Any) -> Batch:
        """Encode and batch graphs (`Digraphs`, or PyG's `Data` or `Batch`) on the device of the parameters.

        Encodings that PyG data carry from a transform are used if they are those of the position encoder and of these
        edges, otherwise computed.
        """
        device = next(self.parameters()).device
        given = graphs
        if not isinstance(graphs, Digraphs):
            if not hasattr(graphs, "edge_index") and not isinstance(graphs, list):
                check_pyg(graphs)
                raise TypeError(
                    f"expected magnetite.batch(graphs, …), Digraphs, or PyG's Data or Batch, got {type(graphs)}"
                )
            graphs = Digraphs.from_pyg(graphs)
        graphs = graphs.to(device)
        encodings = {} if self.position is None else self.position.encodings()
        return batch(graphs, **{name: _encoded(encoding, graphs, given) for name, encoding in encodings.items()})

    def save(self, folder: str | Path) -> None:
        """Write `model.json` and `model.safetensors` into a folder."""
        checkpoint.save(self, folder)

    @property
    def parameter_count(self) -> int:
        """Number of trainable parameters."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)

    def _without_attention(self) -> None:
        """Raise an error if the head reads a graph token, or the encoder gives biases: both need attention."""
        if self.position is not None and self.position.has_biases:
            raise ValueError(NO_ATTENTION)
        if self.head.needs_graph_token:
            raise ValueError("readout='cls' needs attention: give the head readout='mean' or 'sum'")


class DigraphTransformer(GraphModel):
    """Embedding + positions → layers of attention between the nodes of each graph → head.

    Args:
        width: Size of a node's state.
        layers: Number of layers.
        head: Head, which makes the predictions.
        position: Position encoder, or a list of them.
        embedding: Embedding of the node features, or a list of them; by default all nodes have the same vector.
        heads: Number of attention heads.
        expansion: Hidden size of the feed-forward networks, as a multiple of `width`.
        dropout: Dropout on the output of attention and feed-forward networks.
        activation: gelu or relu.
        norm: post or pre.
        local: A network such as `GNN(width)` for queries and keys, which makes it a Structure-Aware Transformer; each
            layer gets its own copy.
        degree_scaled: Whether the output of attention is scaled by `1/√(degree + 1)`, as in SAT.
        length_scaled: Whether attention logits grow with the logarithm of the number of nodes.
        local_added: Whether the states that `local` computes are also added to the output of attention, so that
            messages along the edges reach the states themselves, as in GPS.
        repeats: How often the layers are applied one after the other, with the same parameters.
        reach: Which nodes a node attends to along the edges: `all`; `relatives`, its ancestors and descendants;
            `directions`, ancestors in half of the heads and descendants in the other half.
        attention: Attention in place of full attention with `heads`, `length_scaled` and `reach`, such as
            `LinearAttention(width)`, whose cost grows linearly with the nodes; each layer gets its own copy.
        inner_dropout: Whether dropout also acts inside the feed-forward networks, after their activations.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> position = mt.nn.MagLapNet(k=4, width=32)
    >>> model = mt.nn.DigraphTransformer(width=32, layers=1, position=position, head=mt.nn.GraphHead(2))
    >>> model(mt.batch(graphs, mt.MagneticLaplacian(k=4)(graphs))).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        width: Annotated[int, SIZE],
        layers: Annotated[int, DEPTH],
        head: Head,
        position: PositionEncoder | Sequence[PositionEncoder] | None = None,
        embedding: Embedding | Sequence[Embedding] | None = None,
        heads: Annotated[int, SIZE] = 4,
        expansion: Annotated[int, DEPTH] = 4,
        dropout: Annotated[float, DROPOUT] = 0.185,
        activation: str = "gelu",
        norm: str = "post",
        local: Module | None = None,
        degree_scaled: bool = False,
        length_scaled: bool = False,
        local_added: bool = False,
        repeats: Annotated[int, DEPTH] = 1,
        reach: str = "all",
        attention: GraphAttention | None = None,
        inner_dropout: bool = False,
    ):
        super().__init__(width, head, position, embedding)
        if attention is not None:
            of_kind(attention, GraphAttention, "attention")
            if length_scaled or reach != "all":
                raise ValueError("length_scaled and reach belong to full attention: leave them out, or attention")
        self.repeats = repeats
        options = {"dropout": dropout, "activation": activation, "norm": norm, "local_added": local_added}
        options |= {"expansion": expansion, "degree_scaled": degree_scaled, "inner_dropout": inner_dropout}

        def attend() -> GraphAttention:
            return Attention(width, heads, length_scaled, reach) if attention is None else remade(attention)

        self.blocks = torch.nn.ModuleList(
            Block(width, local=remade(local), attention=attend(), **options) for _ in range(layers)
        )
        self.blocks[0].attention.check(self.position, head.needs_graph_token)  # type: ignore[union-attr, operator]
        self.cls = torch.nn.Parameter(torch.randn(width) * 0.02) if head.needs_graph_token else None
        self.final = Norm(width) if norm == "pre" else torch.nn.Identity()

    def body(self, states: States, batch: Batch, positions: Positions) -> Float[Tensor, "tokens d"]:
        """All layers; if the head reads graph tokens, they follow the nodes."""
        states, contexts = self.tokens(states, batch, positions)
        for _ in range(self.repeats):
            for block, context in zip(self.blocks, contexts, strict=True):
                states = block(states, batch, context)
        return self.final(states)

    def tokens(self, states: States, batch: Batch, positions: Positions) -> tuple[Float[Tensor, "tokens d"], list[Any]]:
        """Nodes and graph tokens, and what the attention of each layer needs beside them."""
        kind = states.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else states.dtype
        first: GraphAttention = self.blocks[0].attention  # type: ignore[assignment]
        contexts = first.contexts(batch, positions, len(self.blocks), dtype, self.cls is not None)
        if self.cls is None:
            return states, contexts
        return torch.cat([states, self.cls.to(states).expand(len(batch), -1)]), contexts


class DigraphGNN(GraphModel):
    """Embedding + positions → message passing → head.

    Args:
        width: Size of a node's state.
        head: Head, which makes the predictions; it must not read a graph token.
        local: The network, such as `DirGNN(width)` or `TopologicalGRU(width)`; `GNN(width)` by default.
        position: Position encoder, or a list of them.
        embedding: Embedding of the node features, or a list of them; by default all nodes have the same vector.
        marked: Whether a `PairHead` reads each node pair from a copy of the graph in which the source of the pair is
            marked, by a learned vector. The network runs once per distinct source of the query pairs, so that the
            state of a node may depend on how it lies to the source, which is what a path between the two needs
            (the labelling trick of Zhang et al., 2021); it takes as many times as long.

    >>> import magnetite as mt
    >>> model = mt.nn.DigraphGNN(width=32, head=mt.nn.GraphHead(2, readout="mean"))
    >>> model(mt.Digraphs.from_edges([[0, 1], [1, 2]])).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        width: Annotated[int, SIZE],
        head: Head,
        local: Module | None = None,
        position: PositionEncoder | Sequence[PositionEncoder] | None = None,
        embedding: Embedding | Sequence[Embedding] | None = None,
        marked: bool = False,
    ):
        super().__init__(width, head, position, embedding)
        self._without_attention()
        self.local = local if local is not None else GNN(width)
        self.mark = torch.nn.Parameter(torch.randn(width)) if marked else None
        # The number of sources differs from batch to batch.
        self.capturable = not marked and getattr(self.local, "capturable", True)
        if not marked:
            return
        reads = head.head if isinstance(head, Rescaled) else head
        if not isinstance(reads, PairHead):
            raise ValueError(f"marked is about node pairs, got {type(reads).__name__}: leave it out, or use a PairHead")
        if reads.pair_channels:
            raise ValueError("marked networks do not read features of node pairs: leave out the encoding of pairs")

    def embed(self, batch: Batch) -> tuple[States, Batch, Positions]:
        """States, batch and positions; with marked sources those of the copies of the graphs."""
        states, batch, positions = super().embed(batch)
        if self.mark is None:
            return states, batch, positions
        copies = by_source(batch)
        marks = self.mark.to(states).expand(len(copies.sources), -1)
        return states.index_select(0, copies.nodes).index_add(0, copies.sources, marks), copies.batch, positions

    def body(self, states: States, batch: Batch, positions: Positions) -> States:
        """The network."""
        no_biases(positions)
        return self.local(states, batch)


def _encoded(encoding: Any, graphs: Digraphs, data: Any) -> Any:
    """The encoding that PyG data carry, if it is this one of these graphs; otherwise computed, with a warning."""
    if isinstance(data, list) and data and carried_names(data[0]):
        data = joined(data)
    found = carried(data, encoding, graphs)
    if found is not None:
        return found
    others = [name for name in carried_names(data) if fits(name, data, encoding)]
    if others:
        warnings.warn(
            f"the encoding {others[0]!r} of the PyG data has other parameters than {encoding}, or its graphs have "
            "changed since: it is computed again, in every call; give transform and encoder the same parameters",
            UserWarning,
            stacklevel=5,
        )
    return encoding(graphs)


def no_biases(positions: Positions) -> None:
    """Raise an error if a model without attention is given attention biases."""
    if positions.biases or positions.sparse is not None:
        raise ValueError(NO_ATTENTION)


def load(folder: str | Path, device: torch.device | str = "cpu") -> GraphModel:
    """Load a model that `GraphModel.save` wrote, in evaluation mode.

    Args:
        folder: Folder of the model.
        device: Device of its parameters.
    """
    return checkpoint.load(folder, device).eval()
