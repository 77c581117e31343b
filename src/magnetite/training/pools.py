"""Examples on the device with their encodings, and batches gathered from them without waiting."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from magnetite.asked import AskedPairs
from magnetite.batching import Batch, Shape, pad
from magnetite.buckets import Profile
from magnetite.graphs import Digraphs
from magnetite.packed import Packed
from magnetite.tasks import Examples

Encodings = Mapping[str, Callable[[Any], Packed]]


@dataclass(frozen=True)
class Share:
    """Which of several processes this is; each takes every `processes`-th graph of a chunk."""

    process: int = 0
    processes: int = 1


@dataclass(frozen=True)
class Pool:
    """Graphs on the device with their encodings and the pairs that are asked about, of which batches are gathered."""

    graphs: Digraphs
    parts: Mapping[str, Packed]
    asked: AskedPairs | None = None

    @classmethod
    def encode(cls, examples: Examples, encodings: Encodings) -> "Pool":
        """Compute every encoding of the examples, on their device."""
        parts = {name: encoding(examples.graphs) for name, encoding in encodings.items()}
        return cls(examples.graphs, parts, None if examples.targets is None else examples.targets.asked())

    def batch(self, ids: Int[Tensor, " chosen"], shape: Shape) -> Batch:
        """Some of the examples in slots."""
        return pad(self.graphs, device=None, ids=ids, shape=shape, asked=self.asked, **self.parts)

    @property
    def bytes(self) -> int:
        """Memory of all tensors."""
        held = [self.graphs, *self.parts.values(), *([] if self.asked is None else [self.asked])]
        return sum(tensor.nbytes for part in held for tensor in part.tensors().values())


@dataclass(frozen=True)
class Block:
    """Steps that follow each other and share a pool: one row a step, sorted by size, to be cut into chunks."""

    pool: Pool
    rows: Int[Tensor, "steps mine"]
    totals: Float[Tensor, " steps"]
    most: Profile

    def __len__(self) -> int:
        return self.rows.shape[0]

    def chunks(self, step: int, shapes: tuple[Shape, ...]) -> Iterator[Batch]:
        """The batches of one step, of this process's part of these shapes."""
        whole = sum(shape.graphs for shape in shapes)
        parts = [shape.graphs * self.rows.shape[1] // whole for shape in shapes]
        for ids, shape in zip(self.rows[step].split(parts), shapes, strict=True):
            pairs = shape.pairs * ids.numel() // shape.graphs
            yield self.pool.batch(ids, Shape(ids.numel(), shape.nodes, shape.edges, pairs))
