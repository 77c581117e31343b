"""GraphModel: embedding + positions → body → head; takes batches, graphs or PyG's batches; saved as one folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import Batch, pad
from magnetite.graphs import Digraphs
from magnetite.nn import checkpoint
from magnetite.nn.embeddings import Embedding, SameNodes
from magnetite.nn.heads import Head
from magnetite.nn.module import Module, unused
from magnetite.nn.positions import Combined, PositionEncoder, Positions
from magnetite.nn.rows import as_rows, slots


@dataclass(frozen=True, eq=False)
class Part:
    """A batch on its way through a model: the states of its nodes, and what is known of their positions.

    A model with attention keeps beside them what it adds to its logits, one tensor a layer.
    """

    states: Float[Tensor, "b n d"]
    batch: Batch
    positions: Positions
    biases: tuple[Float[Tensor, "b h n n"], ...] = ()


class GraphModel(Module):
    """Base of the models: subclasses say what happens between the embedding and the head."""

    def __init__(
        self,
        width: int,
        head: Head,
        position: PositionEncoder | Sequence[PositionEncoder] | None = None,
        embedding: Embedding | None = None,
    ):
        super().__init__()
        for part in position if isinstance(position, Sequence) else [position]:
            if part is not None and not isinstance(part, PositionEncoder):
                raise TypeError(f"position={part!r} is no encoder: give a module such as MagLapNet(k=8, width={width})")
        self.width = width
        self.position = Combined(position) if isinstance(position, Sequence) else position
        self.embedding = embedding if embedding is not None else SameNodes()
        self.head = head
        for part in (self.embedding, self.head):
            unused(part).setup(width)

    def body(self, parts: Sequence[Part]) -> list[Float[Tensor, "_ _ d"]]:
        """What the model does with the embedded nodes of batches of several shapes."""
        raise NotImplementedError

    def forward(self, graphs: Any) -> Tensor:
        """The head's answer for a `Batch`; graphs and PyG's batches are encoded and padded first."""
        return self.answers([graphs if isinstance(graphs, Batch) else self.prepare(graphs)])[0]

    def answers(self, batches: Sequence[Batch]) -> list[Tensor]:
        """The head's answers for batches of several shapes: `model(batch)` of each, at less cost.

        Small and large graphs need not share a shape, and still share the products that look at no neighbour.
        """
        parts = self.embed(batches)
        return self.read(self.body(parts), parts)

    def embed(self, batches: Sequence[Batch]) -> list[Part]:
        """What goes into the body: nodes with their positions."""
        positions = [Positions()] * len(batches) if self.position is None else self.position.several(batches)
        rows = self.embedding.several(batches)
        nodes = [part.nodes for part in positions if part.nodes is not None]
        if nodes:
            if nodes[0].shape[-1] != self.width:
                raise ValueError(
                    f"positions of width {nodes[0].shape[-1]} cannot be added to nodes of width {self.width}: "
                    "give both the same width"
                )
            rows = rows + as_rows(nodes)
        each = zip(slots(rows, batches), batches, positions, strict=True)
        return [Part(*part) for part in each]

    def read(self, states: Sequence[Float[Tensor, "_ _ d"]], parts: Sequence[Part]) -> list[Tensor]:
        """The head's answers from what comes out of the body."""
        return self.head.several(states, [part.batch for part in parts], [part.positions for part in parts])

    def prepare(self, graphs: Any) -> Batch:
        """Encode and pad graphs (`Digraphs`, or PyG's `Data` or `Batch`), on the device of the parameters."""
        device = next(self.parameters()).device
        if not isinstance(graphs, Digraphs) and not hasattr(graphs, "edge_index") and not isinstance(graphs, list):
            raise TypeError(
                f"{type(graphs).__name__} is no batch: give magnetite.pad(graphs, …), Digraphs, or PyG's Data or Batch"
            )
        graphs = (graphs if isinstance(graphs, Digraphs) else Digraphs.from_pyg(graphs)).to(device)
        wanted = {} if self.position is None else self.position.encodings()
        return pad(graphs, **{name: encoding(graphs) for name, encoding in wanted.items()})

    def save(self, folder: str | Path) -> None:
        """Write `model.json` and `model.safetensors` into a folder."""
        checkpoint.save(self, folder)

    @property
    def parameter_count(self) -> int:
        """Number of trained values."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)


def load(folder: str | Path, device: torch.device | str = "cpu") -> GraphModel:
    """The model that `GraphModel.save` wrote, in evaluation mode."""
    return checkpoint.load(folder, device).eval()
