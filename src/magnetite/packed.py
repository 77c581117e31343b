"""Packed: tensors of many graphs stored one after the other, with pointers to where each graph begins.

Graphs, eigenpairs, node encodings and pair encodings are all packed, so slicing, selecting, concatenating, moving to a
device, saving and loading are written here once.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, dataclass, fields
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from magnetite.io.storage import DamagedFile, read_tensors, write_tensors
from magnetite.linalg.pointers import starts
from magnetite.version import __version__

Axis = Literal["graph", "node", "edge", "pair", "query", "name"]
Value = Tensor | Mapping[str, Tensor] | None
Dtypes = tuple[torch.dtype, ...]

INTEGERS: Dtypes = (torch.int16, torch.int32, torch.int64)
REALS: Dtypes = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

LARGEST = 2**31 - 1
"""Largest number of nodes of a graph, because the nodes of a graph are numbered with 32 bits."""

SHORT, TOGETHER = 32, 16_384
"""Where graphs have fewer than `SHORT` entries on average, `TOGETHER` graphs are checked at a time."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Packed:
    """Base class of the packed containers.

    A subclass declares in `axes` what the entries of each field stand for, and along which dimension:
    `axes = {"vectors": ("node", 0)}` says that `vectors` has one row per node. `pointers` lists the fields that hold,
    for one kind of entry, where each graph begins: `node_ptr` for nodes, `edge_ptr` for edges. Fields other than
    `node_ptr` may be None. `dtypes` lists the types that a field may have, if not any. These declarations are checked
    by `check`, to which a subclass adds what else must hold.

    Args:
        node_ptr: Where the nodes of each graph begin, `[graphs + 1]`; the last entry is the number of nodes.
    """

    node_ptr: Int[Tensor, " starts"]

    axes: ClassVar[dict[str, tuple[Axis, int]]] = {}
    pointers: ClassVar[tuple[str, ...]] = ("node_ptr",)
    dtypes: ClassVar[dict[str, Dtypes]] = {}
    name_axes: ClassVar[dict[str, tuple[Axis, int]]] = {}
    """Further entries of `axes`, for the names of the nodes."""

    @classmethod
    @cache
    def _axes(cls) -> dict[str, tuple[Axis, int]]:
        return {**cls.axes, **cls.name_axes}

    @classmethod
    @cache
    def _pointers(cls) -> tuple[str, ...]:
        return (*cls.pointers, "name_ptr") if cls.name_axes else cls.pointers

    def __len__(self) -> int:
        return self.node_ptr.numel() - 1

    @property
    def device(self) -> torch.device:
        """The device that holds the tensors."""
        return self.node_ptr.device

    @cached_property
    def sizes(self) -> Int[Tensor, " graphs"]:
        """Number of nodes per graph."""
        return sizes_of(self.node_ptr)

    @property
    def node_graph(self) -> Int[Tensor, " nodes"]:
        """The graph of each node (PyG's `batch` vector)."""
        return torch.repeat_interleave(torch.arange(len(self), device=self.device), self.sizes)

    def __getitem__(self, index: int | slice | Sequence[int] | Tensor) -> Any:
        if isinstance(index, int | np.integer):
            if not -len(self) <= index < len(self):
                raise IndexError(f"index {index} is out of range for {len(self)} graphs")
            return self.one(int(index) % len(self))
        return self.select(index)

    def __iter__(self) -> Iterator[Any]:
        return (self.one(position) for position in range(len(self)))

    def one(self, position: int) -> Any:
        """The result of indexing with a single integer."""
        return self._slice(position, position + 1)

    def select(self, index: slice | Sequence[int] | Tensor) -> Self:
        """A subset of the graphs.

        Args:
            index: A slice (returns views of the same memory), integer ids in any order, or a boolean mask with one
                entry per graph (both return copies).
        """
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return self._slice(start, max(start, stop))
            index = range(start, stop, step)
        return self._gather(_as_ids(index, len(self), self.device))

    def to(self, device: torch.device | str) -> Self:
        """A copy with every tensor on `device`; the same object if it is there already."""
        if device == self.device:
            return self
        return self._rebuild(lambda value, _name: value.to(device))

    @classmethod
    def concat(cls, items: Iterable[Any]) -> Self:
        """Concatenate containers."""
        items = list(items)
        if not items:
            raise ValueError(f"{cls.__name__}.concat needs at least one item, got none")
        joined: dict[str, Any] = {}
        for name in cls._pointers():
            counts = [None if (pointer := getattr(item, name)) is None else pointer.diff() for item in items]
            total = _join(counts, 0, f"{cls.__name__}.{name}")
            joined[name] = starts(total) if isinstance(total, Tensor) else None
        for name, (_, dim) in cls._axes().items():
            joined[name] = _join([getattr(item, name) for item in items], dim, f"{cls.__name__}.{name}")
        return cls._trusted(**joined)

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name; entries of a mapping are named `field/key`."""
        named: dict[str, Tensor] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Mapping):
                named.update({f"{field.name}/{key}": tensor for key, tensor in value.items()})
            elif value is not None:
                named[field.name] = value
        return named

    def save(self, path: str | Path) -> None:
        """Write to a safetensors file, atomically."""
        write_tensors(path, self.tensors(), {"kind": type(self).__name__, "version": __version__})

    @classmethod
    def load(cls, path: str | Path, verify: bool = True) -> Self:
        """Read a file written by `save`, memory-mapped. Its content is validated in any case.

        Args:
            path: The file.
            verify: Whether to check the checksum, which reads the whole file once.
        """
        # The checksum takes longer than the validation and hardly needs Python, so both are done at the same time.
        with ThreadPoolExecutor(1) as pool:
            verified = pool.submit(read_tensors, path) if verify else None
            named, metadata = read_tensors(path, verify=False)
            result, problem = cls._of_file(named, metadata)
            if verified is not None:
                verified.result()
        if result is None:
            raise DamagedFile(f"{path} {problem}")
        return result

    @classmethod
    def _of_file(cls, named: Mapping[str, Tensor], metadata: Mapping[str, str]) -> tuple[Self | None, str]:
        """The content of a file, or None and what is wrong with it."""
        if metadata.get("kind") != cls.__name__:
            kind = " ".join(str(metadata.get("kind", "tensors that magnetite did not write")).split())[:60]
            return None, f"contains {kind}, expected {cls.__name__}: load it with the matching class"
        try:
            result = cls.from_tensors(named)
            if cls.name_axes and "names" in metadata:
                result = result._rebuild(
                    lambda value, _name: value, packed_names(json.loads(metadata["names"]), result)
                )
            return result, ""
        except (ValueError, AttributeError, TypeError) as error:
            return None, f"is damaged or was not written by magnetite: {error}"

    @classmethod
    def from_tensors(cls, named: Mapping[str, Tensor], validate: bool = True) -> Self:
        """The inverse of `tensors()`; a `DamagedFile` error if they are not valid.

        Args:
            named: Tensors by name.
            validate: Whether to check the tensors; pass False only for tensors that were computed to be valid.
        """
        values: dict[str, Any] = {field.name: {} for field in fields(cls) if field.default_factory is dict}
        unknown = []
        for name, tensor in named.items():
            field, _, key = name.partition("/")
            if key and isinstance(values.get(field), dict):
                values[field][key] = tensor
            elif name in (*cls._pointers(), *cls._axes()) and not isinstance(values.get(name), dict):
                values[name] = tensor
            elif name not in NAME_AXES:
                unknown.append(name)
        if "name_ptr" not in values and {*NAME_AXES, "node_ptr"} <= set(values):  # as `magnetite encode` writes them
            values["name_ptr"] = _name_ptr(values["name_lengths"], values["node_ptr"])
        result = cls._trusted(**values)
        if not validate:
            return result
        missing = [field.name for field in fields(cls) if field.name not in values and _is_required(field)]
        try:
            if unknown or missing:
                listed = ", ".join((*cls._pointers(), *cls._axes()))
                found = f"unknown tensor {unknown[0][:60]!r}" if unknown else f"no tensor {missing[0]!r}"
                raise ValueError(f"{found} among {listed}")
            result.check()
        except ValueError as error:
            raise DamagedFile(f"these are not valid {cls.__name__}: {error}") from error
        return result

    def check(self) -> None:
        """Raise a `ValueError` unless types, shapes, pointers and numbers fit together."""
        for name in self._pointers():
            pointer = getattr(self, name)
            if pointer is not None:
                self._check_pointer(name, pointer)
        sizes = sizes_of(self.node_ptr)
        if len(self) and int(plain(sizes).max()) > LARGEST:
            graph = int((sizes > LARGEST).nonzero()[0])
            raise ValueError(f"graph {graph} has {int(sizes[graph])} nodes: a graph has at most {LARGEST} nodes")
        for name, (axis, dim) in self._axes().items():
            value: Value = getattr(self, name)
            if value is None:
                continue
            entries = value if isinstance(value, Mapping) else {"": value}
            for key, tensor in entries.items():
                if tensor is not None:
                    self._check_tensor(name, f"{name}[{key!r}]" if key else name, tensor, axis, dim)

    def _check_pointer(self, name: str, pointer: Tensor) -> None:
        if not isinstance(pointer, Tensor) or pointer.dtype != torch.int64 or pointer.ndim != 1:
            raise ValueError(f"{name} must be a vector of 64-bit integers, got {_described(pointer)}")
        values = plain(pointer)
        wrong = len(values) != self.node_ptr.numel() or len(values) == 0 or int(values[0]) != 0
        if wrong or _decreases(values):
            raise ValueError(f"{name} must have {len(self) + 1} entries that start at 0 and never decrease")

    def _check_tensor(self, field: str, label: str, tensor: Tensor, axis: Axis, dim: int) -> None:
        dtypes = (NAME_DTYPES if field in NAME_AXES else self.dtypes).get(field)
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{label} must be a tensor, got {type(tensor).__name__}: use torch.as_tensor")
        if dtypes is not None and tensor.dtype not in dtypes:
            raise ValueError(f"{label} must have dtype {_listed(dtypes)}, got {_described(tensor)}")
        if tensor.device != self.device:
            raise ValueError(f"{label} is on {tensor.device}, but node_ptr is on {self.device}: move it with .to()")
        pointer = None if axis == "graph" else getattr(self, f"{axis}_ptr")
        if axis != "graph" and pointer is None:
            raise ValueError(f"{label} needs {axis}_ptr, which is None")
        count = len(self) if pointer is None else int(plain(pointer)[-1])
        if tensor.ndim <= dim or tensor.shape[dim] != count:
            if label == field and pointer is not None:
                raise ValueError(
                    f"{axis}_ptr ends at {count}, but {label} have {_described(tensor)}: they do not match"
                )
            raise ValueError(f"{label} must have {count} rows, one per {axis}, got {_described(tensor)}")

    @classmethod
    def _trusted(cls, **values: Any) -> Self:
        """Construct without validation, from values known to be valid."""
        result = object.__new__(cls)
        for field in fields(cls):
            default = field.default_factory() if callable(field.default_factory) else field.default
            object.__setattr__(result, field.name, values.get(field.name, default))
        return result

    def _rebuild(self, change: Callable[[Tensor, str], Tensor], more: Mapping[str, Value] | None = None) -> Self:
        """A copy with every tensor replaced by `change(tensor, field name)`, and `more` fields set."""
        values: dict[str, Value] = {}
        for field in fields(self):
            value: Value = getattr(self, field.name)
            if isinstance(value, Mapping):
                values[field.name] = {key: change(tensor, field.name) for key, tensor in value.items()}
            else:
                values[field.name] = None if value is None else change(value, field.name)
        return self._trusted(**values | dict(more or {}))

    def _axis_pointers(self) -> Iterator[tuple[str, Tensor | None]]:
        """The axes that have entries, each with its pointer; "graph" needs none."""
        for axis in {axis for axis, _ in self._axes().values()}:
            if axis == "graph":
                yield axis, None
            elif (pointer := getattr(self, f"{axis}_ptr")) is not None:
                yield axis, pointer

    def _slice(self, start: int, stop: int) -> Self:
        if (start, stop) == (0, len(self)):
            return self
        bounds: dict[str, tuple[int, int]] = {}
        for axis, pointer in self._axis_pointers():
            begin, end = (start, stop) if pointer is None else pointer[[start, stop]].tolist()
            bounds[axis] = begin, end - begin

        def narrow(tensor: Tensor, name: str) -> Tensor:
            if name in self._pointers():
                return tensor[start : stop + 1] - tensor[start]
            axis, dim = self._axes()[name]
            return tensor.narrow(dim, *bounds[axis])

        return self._rebuild(narrow)

    def _gather(self, ids: Int[Tensor, " chosen"]) -> Self:
        rows: dict[str, Tensor] = {}
        for axis, pointer in self._axis_pointers():
            rows[axis] = ids if pointer is None else ragged_rows(pointer, ids)

        def gather(tensor: Tensor, name: str) -> Tensor:
            if name in self._pointers():
                return starts(tensor.diff()[ids])
            axis, dim = self._axes()[name]
            return tensor.index_select(dim, rows[axis])

        return self._rebuild(gather)


NAME_AXES: dict[str, tuple[Axis, int]] = {"name_bytes": ("name", 0), "name_lengths": ("node", 0)}
NAME_DTYPES: dict[str, Dtypes] = {"name_bytes": (torch.uint8,), "name_lengths": INTEGERS}
"""The fields of names: what their entries stand for, and their types."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Named(Packed):
    """Base class of the containers whose nodes may have names.

    Args:
        name_bytes: The names of all nodes in UTF-8, one after the other; set them with `replace(names=…)`.
        name_lengths: Number of bytes of each node's name.
        name_ptr: Where the names of each graph begin in `name_bytes`, `[graphs + 1]`.
    """

    name_bytes: UInt8[Tensor, " bytes"] | None = None
    name_lengths: Int[Tensor, " nodes"] | None = None
    name_ptr: Int[Tensor, " starts"] | None = None

    name_axes: ClassVar[dict[str, tuple[Axis, int]]] = NAME_AXES

    @property
    def names(self) -> list[str] | None:
        """One name per packed node, or None if the nodes have no names."""
        if self.name_bytes is None or self.name_lengths is None:
            return None
        text = self.name_bytes.cpu().numpy().tobytes()
        bounds = starts(self.name_lengths.cpu().long()).tolist()
        return [text[begin:end].decode("utf-8", "surrogatepass") for begin, end in pairwise(bounds)]

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields replaced.

        Args:
            **changes: New values by field. `names` is a list with one string per packed node, or None.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)} | changes
        if "names" in changes:
            values |= packed_names(values.pop("names"), values["node_ptr"])
        return type(self)(**values)

    def check(self) -> None:
        """Raise a `ValueError` unless the tensors fit together, and the names are text."""
        super().check()
        _check_names(self)


def packed_names(names: Sequence[str] | None, of: "Packed | Tensor") -> dict[str, Any]:
    """The fields that store one name per node.

    Args:
        names: The names, or None.
        of: Where the nodes of each graph begin, or a container that says it.
    """
    node_ptr = of.node_ptr if isinstance(of, Packed) else of
    if names is None:
        return {"name_bytes": None, "name_lengths": None, "name_ptr": None}
    if len(names) != int(node_ptr[-1]):
        raise ValueError(f"names must have one entry per node, got {len(names)} for {int(node_ptr[-1])} nodes")
    encoded = [name.encode("utf-8", "surrogatepass") for name in names]
    lengths = torch.tensor([len(name) for name in encoded], dtype=torch.int32, device=node_ptr.device)
    text = torch.from_numpy(np.frombuffer(b"".join(encoded), dtype=np.uint8).copy())
    return {"name_bytes": text.to(node_ptr.device), "name_lengths": lengths, "name_ptr": starts(lengths)[node_ptr]}


def _name_ptr(lengths: Tensor, node_ptr: Tensor) -> Tensor | None:
    """Where the names of each graph begin; None if the tensors do not fit together, which `check` refuses."""
    try:
        return starts(lengths.long())[node_ptr]
    except (IndexError, RuntimeError, TypeError):
        return None


def _check_names(graphs: Named) -> None:
    text, lengths, pointer = graphs.name_bytes, graphs.name_lengths, graphs.name_ptr
    if text is None and lengths is None and pointer is None:
        return
    if (
        text is None
        or lengths is None
        or pointer is None
        or text.ndim != 1
        or lengths.ndim != 1
        or bool((lengths < 0).any())
        or not torch.equal(starts(lengths.long())[graphs.node_ptr], pointer)
    ):
        raise ValueError("name_bytes, name_lengths and name_ptr do not match: set names with replace(names=…)")
    stored = text.cpu().numpy()
    try:
        stored.tobytes().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise ValueError(f"name_bytes are not UTF-8 (byte {error.start}): set names with replace(names=…)") from None
    begins = starts(lengths.cpu().long()).numpy()[:-1]
    inner = stored[begins[begins < stored.size]] & 0xC0 == 0x80  # a byte within a character
    if inner.any():
        raise ValueError("name_lengths split a character of name_bytes: set names with replace(names=…)")


def counts_of(pointer: Int[Tensor, " starts"], ids: Int[Tensor, " chosen"]) -> Int[Tensor, " chosen"]:
    """Number of entries of each selected graph, without reading the pointers of the others.

    >>> counts_of(torch.tensor([0, 2, 5]), torch.tensor([1])).tolist()
    [3]
    """
    return pointer[ids + 1] - pointer[ids]


def ragged_rows(pointer: Int[Tensor, " starts"], ids: Int[Tensor, " chosen"]) -> Int[Tensor, " rows"]:
    """Indices of the entries of the selected graphs, one graph after the other.

    >>> ragged_rows(torch.tensor([0, 2, 5]), torch.tensor([1, 0])).tolist()
    [2, 3, 4, 0, 1]
    """
    if pointer.numel() == 2 and ids.numel() == 1:
        return torch.arange(int(pointer[1]), device=pointer.device)
    counts = pointer.diff()[ids]
    target = starts(counts)
    shift = torch.repeat_interleave(pointer[:-1][ids] - target[:-1], counts)
    return torch.arange(shift.numel(), device=pointer.device) + shift


def first_outside(
    numbers: Int[Tensor, "rows entries"], pointer: Int[Tensor, " starts"], sizes: Int[Tensor, " graphs"]
) -> int | None:
    """The first column with a number outside `0 … size − 1` of its graph, or None.

    Args:
        numbers: Numbers of nodes within their graph.
        pointer: Where the columns of each graph begin.
        sizes: Number of nodes of each graph.

    >>> first_outside(torch.tensor([[0, 1, 2], [1, 0, 0]]), torch.tensor([0, 2, 3]), torch.tensor([2, 2]))
    2
    """
    if numbers.numel() == 0 or (numbers.device.type == "cpu" and _all_inside(numbers, pointer, sizes)):
        return None
    limits = torch.repeat_interleave(sizes, pointer.diff())
    wrong = ((numbers < 0) | (numbers >= limits)).any(0).nonzero()
    return int(wrong[0]) if wrong.numel() else None


def sizes_of(pointer: Int[Tensor, " starts"]) -> Int[Tensor, " graphs"]:
    """`pointer.diff()`, without waking up threads on the CPU."""
    if pointer.device.type != "cpu":
        return pointer.diff()
    values = pointer.numpy()
    return torch.from_numpy(values[1:] - values[:-1])


def on_device(array: np.ndarray, device: torch.device) -> Tensor:
    """An array as a tensor on a device; on the CPU, the same memory."""
    tensor = torch.from_numpy(array)
    return tensor if device.type == "cpu" else tensor.to(device)


def plain(tensor: Tensor) -> Any:
    """The values of a tensor on the CPU as an array: one pass by NumPy is faster there than waking up threads."""
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


def _decreases(pointer: Any) -> bool:
    """Whether an entry of a pointer is smaller than the one before it."""
    if len(pointer) == 2:
        return int(pointer[1]) < int(pointer[0])
    return bool((pointer[1:] < pointer[:-1]).any())


def check_pairs(packed: Packed, pair_ptr: Int[Tensor, " starts"]) -> None:
    """Raise a `ValueError` unless every graph of n nodes has n² node pairs."""
    wrong = (pair_ptr.diff() != packed.sizes**2).nonzero()
    if wrong.numel():
        graph = int(wrong[0])
        size, found = int(packed.sizes[graph]), int(pair_ptr.diff()[graph])
        raise ValueError(f"pair_ptr gives graph {graph} of {size} nodes {found} node pairs, expected {size**2}")


def _all_inside(numbers: Tensor, pointer: Tensor, sizes: Tensor) -> bool:
    """Whether all numbers of each graph are below its size: as unsigned integers, negative numbers are above it."""
    rows, bounds = numbers.numpy(), pointer.numpy()
    if len(bounds) == 2:
        return bool(rows.min() >= 0 and rows.max() < sizes.numpy()[0])
    limits = np.minimum(sizes.numpy(), min(np.iinfo(rows.dtype).max, LARGEST) + 1)
    rows = rows.view(f"u{rows.itemsize}")
    if rows.shape[1] < SHORT * len(limits):
        return _all_below(rows, bounds, limits.astype(rows.dtype))
    begins, held = bounds[:-1], bounds[:-1] < bounds[1:]
    if not held.all():
        begins, limits = begins[held], limits[held]
    limits = limits.astype(rows.dtype)
    return all(bool((np.maximum.reduceat(row, begins) < limits).all()) for row in rows)


def _all_below(rows: np.ndarray, bounds: np.ndarray, limits: np.ndarray) -> bool:
    """The same for many graphs of few entries, some graphs at a time, so that temporary arrays stay in the cache."""
    for first in range(0, len(limits), TOGETHER):
        some = bounds[first : first + TOGETHER + 1]
        each = np.repeat(limits[first : first + TOGETHER], np.diff(some))
        if not all((row[some[0] : some[-1]] < each).all() for row in rows):
            return False
    return True


def _is_required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _described(value: object) -> str:
    if not isinstance(value, Tensor):
        return type(value).__name__
    return f"shape {list(value.shape)}, dtype {_named(value.dtype)}"


def _listed(dtypes: Dtypes) -> str:
    *others, last = map(_named, dtypes)
    return f"{', '.join(others)} or {last}" if others else last


def _named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _as_ids(index: Sequence[int] | Tensor, length: int, device: torch.device) -> Int[Tensor, " chosen"]:
    ids = torch.as_tensor(index, device=device)
    if ids.dtype == torch.bool:
        if ids.shape != (length,):
            raise IndexError(f"a mask must have one entry per graph, got shape {tuple(ids.shape)} for {length} graphs")
        return ids.nonzero().squeeze(1)
    ids = ids.reshape(-1).long()
    if ids.numel() and not (-length <= int(ids.min()) and int(ids.max()) < length):
        raise IndexError(f"graph ids must be in 0…{length - 1}, got {int(ids.min())}…{int(ids.max())}")
    return ids % max(length, 1)


def _join(values: list[Value], dim: int, name: str) -> Value:
    first = values[0]
    if all(value is None for value in values):
        return None
    if isinstance(first, Mapping):
        keys = [set(value) for value in values if isinstance(value, Mapping)]
        if any(key != keys[0] for key in keys):
            raise ValueError(f"{name} must have the same names in all items, got {sorted(map(sorted, keys))}")
        return {key: torch.cat([value[key] for value in values if isinstance(value, Mapping)], dim) for key in first}
    tensors = [value for value in values if isinstance(value, Tensor)]
    if len(tensors) < len(values):
        raise ValueError(f"{name} is None in some items: set it in all of them or in none")
    return torch.cat(tensors, dim)
