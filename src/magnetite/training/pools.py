"""Examples on the device with their encodings, and batches gathered from them without waiting."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.asked import AskedPairs
from magnetite.batching import Batch, Shape, pad_several
from magnetite.buckets import Profile
from magnetite.encodings import RandomWalk
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
        graphs = examples.graphs
        parts = {name: _stored(encoding, graphs.device)(graphs) for name, encoding in encodings.items()}
        return cls(graphs, parts, None if examples.targets is None else examples.targets.asked())

    def batches(self, ids: Int[Tensor, " chosen"], shapes: Sequence[Shape]) -> list[Batch]:
        """Some of the examples in the slots of batches of these shapes."""
        return pad_several(self.graphs, ids, shapes, self.parts, self.asked)

    @property
    def bytes(self) -> int:
        """Memory of all tensors."""
        held = [self.graphs, *self.parts.values(), *([] if self.asked is None else [self.asked])]
        return sum(tensor.nbytes for part in held for tensor in part.tensors().values())


def _stored(encoding: Callable[[Any], Packed], device: torch.device) -> Callable[[Any], Packed]:
    """The encoding as a pool keeps it: features of pairs in half precision on a GPU.

    They are probabilities, which autocast would round further, to bfloat16; and half the memory lets larger data stay
    on the GPU. The walks write each chunk of graphs where it stays, as halves,
    so the whole is never there in single precision.
    """
    if device.type == "cuda" and isinstance(encoding, RandomWalk):
        return replace(encoding, dtype=torch.float16)
    return encoding


@dataclass(frozen=True)
class Block:
    """Steps that follow each other and share a pool: one row a step, sorted by size, to be cut into chunks."""

    pool: Pool
    rows: Int[Tensor, "steps mine"]
    totals: Float[Tensor, " steps"]
    most: Profile

    def __len__(self) -> int:
        return self.rows.shape[0]

    def chunks(self, step: int, shapes: tuple[Shape, ...]) -> list[Batch]:
        """The batches of one step, of this process's part of these shapes."""
        processes = sum(shape.graphs for shape in shapes) // self.rows.shape[1]
        return self.pool.batches(self.rows[step], [shape.part(processes) for shape in shapes])
