"""Packed: tensors of many graphs laid end to end, with pointers that say where each graph starts.

Graphs, eigenpairs, node and pair encodings all are such objects, so slicing, gathering, joining, moving to a device,
saving and loading are written here once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from magnetite.io.storage import DamagedFile, read_tensors, write_tensors
from magnetite.version import __version__

Axis = Literal["graph", "node", "edge", "pair", "query"]
Value = Tensor | Mapping[str, Tensor] | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Packed:
    """Base of the packed containers. A subclass names, for each of its fields, what its rows are and in which dim.

    `axes = {"vectors": ("node", 0)}`: `vectors` has one row a node, in dim 0.
    """

    node_ptr: Int[Tensor, " starts"]

    axes: ClassVar[dict[str, tuple[Axis, int]]] = {}
    pointers: ClassVar[tuple[str, ...]] = ("node_ptr",)
    empty: ClassVar[float] = 0
    """What `magnetite.pad` puts where there is nothing."""

    def __len__(self) -> int:
        return self.node_ptr.numel() - 1

    @property
    def device(self) -> torch.device:
        """The device that holds the tensors."""
        return self.node_ptr.device

    @property
    def sizes(self) -> Int[Tensor, " graphs"]:
        """Number of nodes of each graph."""
        return self.node_ptr.diff()

    @property
    def node_graph(self) -> Int[Tensor, " nodes"]:
        """For every node, the number of its graph (PyG's `batch` vector)."""
        return torch.repeat_interleave(torch.arange(len(self), device=self.device), self.sizes)

    def __getitem__(self, index: int | slice | Sequence[int] | Tensor) -> Any:
        if isinstance(index, int | np.integer):
            if not -len(self) <= index < len(self):
                raise IndexError(f"graph {index} does not exist: there are {len(self)} graphs, counted from 0")
            return self.one(int(index) % len(self))
        return self.select(index)

    def __iter__(self) -> Iterator[Any]:
        return (self.one(position) for position in range(len(self)))

    def one(self, position: int) -> Any:
        """What indexing with a single number gives."""
        return self._slice(position, position + 1)

    def select(self, index: slice | Sequence[int] | Tensor) -> Self:
        """Some of the graphs: a slice gives views of the same memory, ids or a mask give copies in that order."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return self._slice(start, max(start, stop))
            index = range(start, stop, step)
        return self._gather(_as_ids(index, len(self), self.device))

    def to(self, device: torch.device | str) -> Self:
        """The same object with every tensor on `device`."""
        return self._rebuild(lambda value, _name: value.to(device))

    @classmethod
    def concat(cls, items: Iterable[Any]) -> Self:
        """Join containers end to end."""
        items = list(items)
        if not items:
            raise ValueError("nothing to concatenate: give at least one object")
        joined: dict[str, Any] = {}
        for name in cls.pointers:
            joined[name] = starts(torch.cat([getattr(item, name).diff() for item in items]))
        for name, (_, dim) in cls.axes.items():
            joined[name] = _join([getattr(item, name) for item in items], dim, f"{cls.__name__}.{name}")
        return cls._trusted(**joined)

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by name; members of a mapping as `field/name`."""
        named: dict[str, Tensor] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Mapping):
                named.update({f"{field.name}/{key}": tensor for key, tensor in value.items()})
            elif value is not None:
                named[field.name] = value
        return named

    def save(self, path: str | Path) -> None:
        """Write to one safetensors file, whole or not at all."""
        write_tensors(path, self.tensors(), {"kind": type(self).__name__, "version": __version__})

    @classmethod
    def load(cls, path: str | Path, verify: bool = True) -> Self:
        """Read what `save` wrote, memory-mapped; `verify=False` leaves out the pass over all bytes."""
        named, metadata = read_tensors(path, verify)
        if metadata.get("kind") != cls.__name__:
            raise DamagedFile(
                f"{path} holds {metadata.get('kind', 'foreign tensors')}, not {cls.__name__}: load it as such"
            )
        return cls.from_tensors(named)

    @classmethod
    def from_tensors(cls, named: Mapping[str, Tensor]) -> Self:
        """The container whose `tensors()` these are; they are trusted, not validated."""
        values: dict[str, Any] = {}
        for name, tensor in named.items():
            field, _, key = name.partition("/")
            if key:
                values.setdefault(field, {})[key] = tensor
            else:
                values[field] = tensor
        return cls._trusted(**values)

    @classmethod
    def _trusted(cls, **values: Any) -> Self:
        """Build without validation, from parts that were valid already."""
        result = object.__new__(cls)
        for field in fields(cls):
            default = field.default_factory() if callable(field.default_factory) else field.default
            object.__setattr__(result, field.name, values.get(field.name, default))
        return result

    def _rebuild(self, change: Callable[[Tensor, str], Tensor]) -> Self:
        """The same container with every tensor replaced by `change(tensor, field name)`."""
        values: dict[str, Value] = {}
        for field in fields(self):
            value: Value = getattr(self, field.name)
            if isinstance(value, Mapping):
                values[field.name] = {key: change(tensor, field.name) for key, tensor in value.items()}
            else:
                values[field.name] = None if value is None else change(value, field.name)
        return self._trusted(**values)

    def _slice(self, start: int, stop: int) -> Self:
        if (start, stop) == (0, len(self)):
            return self
        bounds: dict[str, tuple[int, int]] = {}
        for axis in {axis for axis, _ in self.axes.values()}:
            begin, end = (start, stop) if axis == "graph" else getattr(self, f"{axis}_ptr")[[start, stop]].tolist()
            bounds[axis] = begin, end - begin

        def narrow(tensor: Tensor, name: str) -> Tensor:
            if name in self.pointers:
                return tensor[start : stop + 1] - tensor[start]
            axis, dim = self.axes[name]
            return tensor.narrow(dim, *bounds[axis])

        return self._rebuild(narrow)

    def _gather(self, ids: Int[Tensor, " chosen"]) -> Self:
        rows: dict[str, Tensor] = {}
        for axis in {axis for axis, _ in self.axes.values()}:
            rows[axis] = ids if axis == "graph" else ragged_rows(getattr(self, f"{axis}_ptr"), ids)

        def gather(tensor: Tensor, name: str) -> Tensor:
            if name in self.pointers:
                return starts(tensor.diff()[ids])
            axis, dim = self.axes[name]
            return tensor.index_select(dim, rows[axis])

        return self._rebuild(gather)


def starts(counts: Int[Tensor, " graphs"]) -> Int[Tensor, " starts"]:
    """Pointers from counts.

    >>> starts(torch.tensor([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0))


def counts_of(pointer: Int[Tensor, " starts"], ids: Int[Tensor, " chosen"]) -> Int[Tensor, " chosen"]:
    """How many rows the chosen graphs have, without looking at the others.

    >>> counts_of(torch.tensor([0, 2, 5]), torch.tensor([1])).tolist()
    [3]
    """
    return pointer[ids + 1] - pointer[ids]


def ragged_rows(pointer: Int[Tensor, " starts"], ids: Int[Tensor, " chosen"]) -> Int[Tensor, " rows"]:
    """The rows of the chosen graphs, one after the other.

    >>> ragged_rows(torch.tensor([0, 2, 5]), torch.tensor([1, 0])).tolist()
    [2, 3, 4, 0, 1]
    """
    counts = pointer.diff()[ids]
    target = starts(counts)
    shift = torch.repeat_interleave(pointer[:-1][ids] - target[:-1], counts)
    return torch.arange(shift.numel(), device=pointer.device) + shift


def _as_ids(index: Sequence[int] | Tensor, length: int, device: torch.device) -> Int[Tensor, " chosen"]:
    ids = torch.as_tensor(index, device=device)
    if ids.dtype == torch.bool:
        if ids.shape != (length,):
            raise IndexError(
                f"a mask of shape {tuple(ids.shape)} cannot choose among {length} graphs: give one entry a graph"
            )
        return ids.nonzero().squeeze(1)
    ids = ids.reshape(-1).long()
    if ids.numel() and not (-length <= int(ids.min()) and int(ids.max()) < length):
        raise IndexError(f"graph id outside 0…{length - 1}: there are {length} graphs")
    return ids % max(length, 1)


def _join(values: list[Value], dim: int, name: str) -> Value:
    first = values[0]
    if all(value is None for value in values):
        return None
    if isinstance(first, Mapping):
        keys = [set(value) for value in values if isinstance(value, Mapping)]
        if any(key != keys[0] for key in keys):
            raise ValueError(f"{name} have different names {sorted(map(sorted, keys))}: give all graphs the same ones")
        return {key: torch.cat([value[key] for value in values if isinstance(value, Mapping)], dim) for key in first}
    tensors = [value for value in values if isinstance(value, Tensor)]
    if len(tensors) < len(values):
        raise ValueError(f"{name} is set in some of the parts and not in others: set it in all or in none")
    return torch.cat(tensors, dim)
