"""Examples on the device with their encodings, and batches gathered from them without waiting."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch, Shape, pad
from magnetite.buckets import Profile
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
    """Examples on the device with their encodings, of which batches are gathered."""

    examples: Examples
    parts: Mapping[str, Packed]

    @classmethod
    def encode(cls, examples: Examples, encodings: Encodings) -> "Pool":
        """Compute every encoding of the examples, on their device."""
        parts: dict[str, Packed] = {name: encoding(examples.graphs) for name, encoding in encodings.items()}
        if examples.targets is not None:
            parts["targets"] = examples.targets
        return cls(examples, parts)

    def batch(self, ids: Int[Tensor, " chosen"], shape: Shape) -> Batch:
        """Some of the examples in slots."""
        return pad(self.examples.graphs, device=None, ids=ids, shape=shape, **self.parts)

    @property
    def bytes(self) -> int:
        """Memory of all tensors."""
        held = [*self.parts.values(), self.examples.graphs]
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
            yield self.pool.batch(ids, Shape(ids.numel(), shape.nodes, shape.edges))
