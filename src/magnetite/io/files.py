"""Users' files: checks of inputs and outputs, and the writers of results as tensors or as tables.

To add a format, write a function and name its extension in `TENSOR_WRITERS` or `TABLE_WRITERS`. The readers are in
`magnetite.io.readers`.
"""

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from magnetite.io.storage import check_writable, replacing, write_tensors

Column = np.ndarray | Sequence[str] | Sequence[list[str]]

PICKLES = (".pt", ".pth", ".pkl", ".pickle")

WIDE = 16
"""Names are stored one after the other if an array of equally wide entries takes more than this times their size."""

LONGEST_HEADER = 2**24
"""Names of more bytes are stored as tensors, because the header of a safetensors file must not exceed 100 MB."""


@contextmanager
def explain_errors(path: Path, formats: Mapping[str, str]) -> Iterator[None]:
    """Check that `path` can be read, and make any error within the context say the file and the expected content.

    Args:
        path: The file that is read.
        formats: The expected content by file extension.
    """
    if path.suffix in PICKLES:
        raise ValueError(
            f"{path} is a {path.suffix} file, a Python pickle, which runs code when it is loaded: "
            "save the graph as safetensors (Digraphs.from_pyg(data).save(…)), GraphML or an edge list instead"
        )
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file: give the files in it")
    if path.suffix not in formats:
        raise ValueError(f"{path} has an unknown file extension: use one of {' '.join(formats)}")
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist or is not a file: check the path")
    try:
        yield
    except Exception as error:  # parsers raise many types on damaged files
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} cannot be read: {reason}; expected {formats[path.suffix]}") from error


def check_outputs(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise an error if an output is an input or in a folder of inputs, whatever path or link leads to it.

    An output is replaced, and a new file in a folder would be an input of the next command.

    Args:
        outputs: Files that will be written.
        inputs: Files and folders that will be read.

    >>> check_outputs([Path("g.csv")], [Path("./g.csv")])
    Traceback (most recent call last):
    ValueError: g.csv is also an input, which would be overwritten: choose another output
    """
    inputs = list(inputs)
    for output in outputs:
        if any(_is_same(output, given) for given in inputs):
            raise ValueError(f"{output} is also an input, which would be overwritten: choose another output")
        for folder in filter(Path.is_dir, inputs):
            if Path(os.path.realpath(output)).is_relative_to(os.path.realpath(folder)):
                raise ValueError(f"{output} is in the folder {folder}, which is an input: choose another output")


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return os.path.realpath(one) == os.path.realpath(other)


def check_output(path: Path) -> None:
    """Raise an error for an unknown file extension or a path that cannot be written to, before any work is done."""
    known = [*TENSOR_WRITERS, *TABLE_WRITERS]
    if path.suffix not in known:
        raise ValueError(f"{path} has an unknown file extension: use one of {' '.join(known)}")
    check_writable(path)


def write_arrays(path: Path, tensors: Mapping[str, Tensor], names: Sequence[str], metadata: Mapping[str, str]) -> None:
    """Write named tensors and one name per node, in a format of `TENSOR_WRITERS`.

    Args:
        path: The file; its extension sets the format.
        tensors: Tensors by name.
        names: One name per node.
        metadata: Strings that are stored in the header, where the format has one.
    """
    TENSOR_WRITERS[path.suffix](path, tensors, names, metadata)


def write_table(path: Path, columns: Mapping[str, Column]) -> None:
    """Write columns of equal length, in a format of `TABLE_WRITERS`.

    Args:
        path: The file; its extension sets the format.
        columns: Arrays, lists of strings, or lists of lists of strings, by the name of the column.
    """
    TABLE_WRITERS[path.suffix](path, columns)


def _write_npz(path: Path, tensors: Mapping[str, Tensor], names: Sequence[str], _metadata: Mapping[str, str]) -> None:
    arrays: dict[str, Any] = {name: tensor.cpu().numpy() for name, tensor in tensors.items()}
    if fits_in_columns(names):
        arrays["names"] = np.array(names)
    else:
        arrays |= packed_names(names)
    with replacing(path) as part:
        np.savez(part, **arrays)


def fits_in_columns(names: Sequence[str]) -> bool:
    """Whether names can be an array of NumPy, whose entries all take the space of the longest and lose final NULs.

    >>> fits_in_columns(["a", "bc"]), fits_in_columns(["a"] * 5_000 + ["long" * 500_000])
    (True, False)
    """
    widest = max(map(len, names), default=0)
    size = sum(map(len, names)) + 64 * len(names)
    return widest * len(names) <= WIDE * size and not any(name.endswith("\0") for name in names)


def packed_names(names: Sequence[str]) -> dict[str, np.ndarray]:
    """Names as their bytes in UTF-8, one after the other, and the number of bytes of each."""
    encoded = [name.encode("utf-8", "surrogatepass") for name in names]
    return {
        "name_bytes": np.frombuffer(b"".join(encoded), np.uint8),
        "name_lengths": np.array([len(name) for name in encoded], np.int64),
    }


def _write_safetensors(
    path: Path, tensors: Mapping[str, Tensor], names: Sequence[str], metadata: Mapping[str, str]
) -> None:
    listed = json.dumps(list(names))
    if len(listed) <= LONGEST_HEADER:
        write_tensors(path, tensors, {**metadata, "names": listed})
    else:
        packed = {name: torch.from_numpy(array.copy()) for name, array in packed_names(names).items()}
        write_tensors(path, {**tensors, **packed}, metadata)


def _write_parquet(path: Path, columns: Mapping[str, Column]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    with replacing(path) as part:
        parquet.write_table(pa.table({name: pa.array(_storable(column)) for name, column in columns.items()}), part)


def _write_csv(path: Path, columns: Mapping[str, Column]) -> None:
    with replacing(path) as part, part.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(_listed(column) for column in columns.values()), strict=True))


def _storable(column: Column) -> Column:
    """A column whose strings are valid UTF-8; the halves of surrogate pairs are written as escapes."""
    if isinstance(column, np.ndarray):
        return column
    return [_storable_cell(cell) for cell in column]


def _storable_cell(cell: Any) -> Any:
    if isinstance(cell, list):
        return [_storable_cell(each) for each in cell]
    return cell.encode("utf-8", "backslashreplace").decode("utf-8")


def _listed(column: Column) -> Iterable[object]:
    return column.tolist() if isinstance(column, np.ndarray) else column


TENSOR_WRITERS = {".npz": _write_npz, ".safetensors": _write_safetensors}


def _write_json(path: Path, columns: Mapping[str, Column]) -> None:
    rows = zip(*(_listed(column) for column in columns.values()), strict=True)
    # JSON has no NaN: a missing number is null.
    records = [{name: None if cell != cell else cell for name, cell in zip(columns, row, strict=True)} for row in rows]
    with replacing(path) as part:
        part.write_text(json.dumps(records, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


TABLE_WRITERS = {".parquet": _write_parquet, ".csv": _write_csv, ".json": _write_json}
