"""`.npz` files: SciPy sparse matrices, or `edge_index` with weights; without pickles."""

import math
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from magnetite.io.interop import EdgeList, from_edges, from_scipy
from magnetite.io.readers.attributes import Weight

FREE_BYTES = 2**28
RATIO = 100
"""An archive may unpack to `FREE_BYTES`, or to `RATIO` times its size if that is more."""

SPARSE = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "dia": ("data", "offsets"),
    "coo": ("data", "row", "col"),
}
"""The arrays of SciPy's sparse formats in a file, beside `format` and `shape`."""


def read_npz(path: Path, weight: Weight) -> EdgeList:
    """One graph without names."""
    arrays = arrays_of(path)
    if isinstance(weight, str) and weight != "edge_weight":
        raise ValueError(f"the weights of an .npz file are called edge_weight, got weight={weight!r:.60}: leave it out")
    if "format" in arrays:
        return from_scipy(_sparse(arrays))
    _check_names(arrays, ("edge_index",), ("edge_weight", "num_nodes"))
    size = arrays.get("num_nodes")
    if size is not None and (size.size != 1 or size.dtype.kind not in "iu"):
        raise ValueError(f"num_nodes must be one integer, got shape {list(size.shape)}, dtype {size.dtype}")
    [item] = from_edges(arrays["edge_index"], None if size is None else int(size.item()), arrays.get("edge_weight"))
    return item


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an archive, without pickles, and without more memory than its size justifies."""
    if not zipfile.is_zipfile(path):
        raise ValueError("it is not a complete .npz archive")
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        if total > max(FREE_BYTES, RATIO * path.stat().st_size):
            raise ValueError(f"it unpacks to {total} bytes, more than {RATIO} times its size: save it uncompressed")
        arrays: dict[str, np.ndarray] = {}
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in arrays:
                raise ValueError(f"it has two arrays {name!r:.60}")
            with archive.open(member) as file:
                arrays[name] = _array(file, name, member.file_size)
    return arrays


def _array(file: IO[bytes], name: str, size: int) -> np.ndarray:
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"array {name!r:.60} has an unknown format or named fields")
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = header(file)
    if dtype.hasobject:
        raise ValueError(f"array {name!r:.60} contains Python objects, a pickle, which runs code when it is loaded")
    if math.prod(shape) * dtype.itemsize != size - file.tell() or dtype.itemsize == 0:
        raise ValueError(
            f"array {name!r:.60} has {size - file.tell()} bytes, which is not shape {list(shape)} of {dtype}"
        )
    values = np.frombuffer(file.read(), dtype)
    return values.reshape(shape, order="F" if by_columns else "C")


def _check_names(arrays: Mapping[str, np.ndarray], needed: Sequence[str], optional: Sequence[str]) -> None:
    expected = ", ".join(needed) + (f" and optionally {', '.join(optional)}" if optional else "")
    for name in needed:
        if name not in arrays:
            raise ValueError(
                f"it has no array {name}, only {', '.join(map(repr, arrays)) or 'none':.200}: rename them, or give "
                "them to Digraphs.from_edges"
            )
    for name in arrays:
        if name not in (*needed, *optional):
            raise ValueError(f"it has an unknown array {name!r:.60}; it may have {expected}: rename or remove it")


def _sparse(arrays: Mapping[str, np.ndarray]) -> Any:
    """The sparse matrix of a file by `scipy.sparse.save_npz`; its arrays are checked before SciPy's C++ sees them."""
    from scipy import sparse

    kind = arrays["format"].item() if arrays["format"].size == 1 else None
    name = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    if name not in SPARSE:
        raise ValueError(f"format must be one of {', '.join(SPARSE)}, got {name!r:.60}")
    if name == "coo" and "coords" in arrays and arrays["coords"].shape[:1] == (2,):
        row, col = arrays["coords"]
        arrays = {key: array for key, array in arrays.items() if key != "coords"} | {"row": row, "col": col}
    parts = SPARSE[name]
    _check_names(arrays, ("format", "shape", *parts), ("_is_array",))
    shape, data, *indices = (arrays[part] for part in ("shape", *parts))
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or not 0 <= int(shape.min()) <= int(shape.max()) < 2**31:
        raise ValueError(f"shape must be two integers below 2**31, got {shape.tolist()!r:.60}")
    for part, index in zip(parts[1:], indices, strict=True):
        if index.ndim != 1 or index.dtype.kind not in "iu":
            raise ValueError(f"{part} must be a vector of integers, got shape {list(index.shape)}, dtype {index.dtype}")
    if data.dtype.kind not in "biuf" or data.ndim != {"bsr": 3, "dia": 2}.get(name, 1):
        raise ValueError(f"data must be real numbers, got shape {list(data.shape)}, dtype {data.dtype}")
    if name == "bsr" and (data.size == 0 or data.shape[0] != len(indices[0])):
        raise ValueError(
            f"data must be one block per index, got shape {list(data.shape)} for {len(indices[0])} indices"
        )
    indices = [index.astype(np.int64) for index in indices]
    data = data.astype(data.dtype.newbyteorder("="))
    square = tuple(int(size) for size in shape)
    if name == "coo":
        return sparse.coo_array((data, tuple(indices)), shape=square)
    build = {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array, "dia": sparse.dia_array}[name]
    return build((data, *indices), shape=square)
