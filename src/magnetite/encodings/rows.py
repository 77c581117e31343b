"""Packed containers as Parquet files with one row per graph.

Each tensor is a column: a number or a list of fixed length for what a graph has once, and a list with one entry per
node, edge or node pair for the rest. Columns of complex numbers have pairs of real and imaginary part. Any reader of
Parquet can process the rows; here they are read back bit for bit.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from magnetite.io.storage import CHECKSUM, HEADER, DamagedFile, checksum, replacing
from magnetite.packed import Packed, starts

if TYPE_CHECKING:
    import pyarrow as pa

NODES = "nodes"
"""The column with the number of nodes of each graph."""

TENSORS = "tensors"
"""The entry of the metadata with axis, dtype and shape of the entries of each column."""


def write_rows(path: Path, items: Mapping[str, Packed], metadata: Mapping[str, str]) -> str:
    """Write packed containers of the same graphs, with metadata and a checksum of both, atomically.

    Args:
        path: The file.
        items: The containers; the name of a column is that of its container and of its tensor.
        metadata: Strings.

    Returns:
        The checksum, which is that of `write_tensors` for the same tensors and metadata.
    """
    import pyarrow as pa
    from pyarrow import parquet

    first = next(iter(items.values()))
    columns: dict[str, pa.Array] = {NODES: pa.array(first.sizes.numpy())}
    described: dict[str, list[Any]] = {}
    for prefix, packed in items.items():
        for name, tensor in packed.tensors().items():
            if name in type(packed)._pointers():
                continue
            axis, dim = type(packed)._axes()[name.partition("/")[0]]
            entries = tensor.detach().cpu().movedim(dim, 0).contiguous()
            described[f"{prefix}/{name}"] = [axis, dim, str(tensor.dtype), list(entries.shape[1:])]
            columns[f"{prefix}/{name}"] = _column(entries, None if axis == "graph" else getattr(packed, f"{axis}_ptr"))
    value = checksum(stored_tensors(items), metadata)
    header = json.dumps({**metadata, CHECKSUM: value, TENSORS: json.dumps(described)}, sort_keys=True)
    table = pa.table(columns).replace_schema_metadata({HEADER: header})
    with replacing(path) as part:
        parquet.write_table(table, part, compression="zstd", use_dictionary=False, write_statistics=False)
    return value


def read_rows(path: Path, verify: bool = True) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of `stored_tensors` and the metadata of a file written by `write_rows`.

    Args:
        path: The file.
        verify: Whether to check the checksum.
    """
    import pyarrow as pa
    from pyarrow import parquet

    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist or is not a file: check the path")
    try:
        table = parquet.read_table(path)
        metadata = dict(json.loads((table.schema.metadata or {})[HEADER.encode()]))
        described = json.loads(metadata.pop(TENSORS))
        node_ptr = starts(torch.from_numpy(table[NODES].to_numpy().copy()))
        tensors = {f"{next(iter(described)).partition('/')[0]}/node_ptr": node_ptr}
        for name, (axis, dim, dtype, shape) in described.items():
            prefix = name.partition("/")[0]
            entries, pointer = _entries(table[name], dtype, shape, axis == "graph")
            tensors[name] = entries.movedim(0, dim)
            if pointer is not None and axis != "node":
                tensors[f"{prefix}/{axis}_ptr"] = pointer
    except (OSError, pa.ArrowException, LookupError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise DamagedFile(
            f"{path} is not a complete Parquet file of encoded graphs ({error}): write it again"
        ) from None
    if verify:
        content = {name: value for name, value in metadata.items() if name != CHECKSUM}
        if metadata.get(CHECKSUM) != checksum(tensors, content):
            raise DamagedFile(f"{path} does not match its checksum because it was changed or damaged: write it again")
    return tensors, metadata


def kind_of_rows(path: Path) -> str | None:
    """What a file says it holds, without reading its columns."""
    from pyarrow import parquet

    return json.loads((parquet.read_schema(path).metadata or {}).get(HEADER.encode(), b"{}")).get("kind")


def stored_tensors(items: Mapping[str, Packed]) -> dict[str, Tensor]:
    """All tensors of some containers of the same graphs, by the name of the container and their own.

    `node_ptr`, which they share, is that of the first.
    """
    first = next(iter(items))
    return {
        f"{prefix}/{name}": tensor
        for prefix, packed in items.items()
        for name, tensor in packed.tensors().items()
        if name != "node_ptr" or prefix == first
    }


def _column(entries: Tensor, pointer: Tensor | None) -> "pa.Array":
    """One entry per graph: `[graphs, …]`, or `[n, …]` with pointers to where each graph begins."""
    import pyarrow as pa

    if entries.dtype == torch.bfloat16 or 0 in entries.shape[1:]:
        raise ValueError(f"Parquet has no column for {entries.dtype} of shape {list(entries.shape)}: use safetensors")
    plain = torch.view_as_real(entries) if entries.is_complex() else entries
    column: pa.Array = pa.array(plain.reshape(-1).numpy())
    for size in reversed(plain.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column if pointer is None else pa.LargeListArray.from_arrays(pa.array(pointer.cpu().numpy()), column)


def _entries(column: "pa.ChunkedArray", dtype: str, shape: list[int], whole: bool) -> tuple[Tensor, Tensor | None]:
    """The tensor of a column, and where each graph begins in it."""
    import pyarrow as pa

    chunk = column.combine_chunks()
    values: pa.Array = pa.concat_arrays(chunk.chunks) if isinstance(chunk, pa.ChunkedArray) else chunk
    pointer = None
    if not whole:
        lengths = values.value_lengths().to_numpy(zero_copy_only=False)
        pointer, values = starts(torch.from_numpy(lengths.copy()).long()), values.flatten()
    while pa.types.is_fixed_size_list(values.type):
        values = values.flatten()
    numbers = torch.from_numpy(values.to_numpy(zero_copy_only=False).copy())
    kind = getattr(torch, dtype.removeprefix("torch."))
    if kind.is_complex:
        return torch.view_as_complex(numbers.view(-1, *shape, 2)), pointer
    return numbers.to(kind).view(-1, *shape), pointer
