"""Crafted graph files, wrong in one place or mutated bytewise: refused in one line, or read as valid graphs."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

import magnetite as mt
from magnetite.encodings.results import RESULTS
from magnetite.io.storage import write_tensors
from tests.conftest import odd_digraph, odd_digraphs
from tests.fuzz import refusing

CASES = 5_000

SMALL = 200
"""Graphs of more nodes are not encoded."""

INTEGERS = [-(2**63), -(2**31), -9, -1, 0, 1, 2, 3, 5, 255, 2**15, 2**31 - 1, 2**31, 2**40, 2**62]
TORCH = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32]
TORCH += [torch.float64, torch.complex64, torch.bool]
NUMPY = ["i1", "u1", "i4", ">i4", "i8", "u8", "f2", "f4", "f8", "c16", "?", "U3", "S2", "M8[s]"]


def case(random: np.random.Generator, folder: Path) -> None:
    make = [_graphs, _result, _sparse, _arrays, _text, _graphml, _node_link]
    path: Path = make[int(random.integers(len(make)))](random, folder)
    if random.random() < 0.25:
        path.write_bytes(_mutated(random, path.read_bytes()))
    if path.name.startswith("result"):
        kind = path.stem.split("-")[1]
        with refusing():
            valid_result(RESULTS[kind].load(path, verify=bool(random.random() < 0.5)))
        return
    graphs = None
    with refusing():
        graphs = mt.Digraphs.load(path, verify=False) if path.suffix == ".safetensors" else mt.read(path)
    if graphs is None:
        return
    if 0 < graphs.num_nodes <= SMALL:
        with refusing():
            mt.MagneticLaplacian(k=2)(graphs)
        with refusing():
            mt.RandomWalk(steps=2)(graphs)
    valid(graphs)


def valid(graphs: mt.Digraphs) -> None:
    """What must hold for graphs, written here once more with NumPy."""
    sizes, edges = np.diff(graphs.node_ptr.numpy()), graphs.edges.numpy().astype(np.int64)
    assert graphs.node_ptr.dtype == graphs.edge_ptr.dtype == torch.int64
    assert graphs.node_ptr[0] == graphs.edge_ptr[0] == 0
    assert (sizes > 0).all()
    assert graphs.edge_ptr.shape == graphs.node_ptr.shape
    counts = np.diff(graphs.edge_ptr.numpy())
    assert (counts >= 0).all()
    assert edges.shape == (2, counts.sum())
    assert ((edges >= 0) & (edges < np.repeat(sizes, counts))).all()
    if graphs.weights is not None:
        weights = graphs.weights.numpy()
        assert weights.shape == edges.shape[1:]
        assert ((weights > 0) & np.isfinite(weights)).all()
    rows = (("node_features", sizes.sum()), ("edge_features", counts.sum()), ("graph_features", len(sizes)))
    for features, count in rows:
        assert all(tensor.shape[0] == count for tensor in getattr(graphs, features).values())
    names = graphs.names
    assert names is None or len(names) == sizes.sum()


def valid_result(result: Any) -> None:
    """A valid result can be cut into graphs and joined again."""
    parts = [result.select(slice(i, i + 1)) for i in range(min(len(result), 3))]
    if len(result) > 1:
        type(result).concat(parts)
    if len(result) and not (isinstance(result, mt.Eigenpairs) and result.values.ndim < result.vectors.ndim):
        result.one(0)


def _graphs(random: np.random.Generator, folder: Path) -> Path:
    graphs = odd_digraphs(int(random.integers(1000)), int(random.integers(1, 5)), 1, 9, bool(random.random() < 0.5))
    if random.random() < 0.5:
        graphs = graphs.replace(names=[f"é{i}" * int(random.integers(3)) for i in range(graphs.num_nodes)])
    if random.random() < 0.5:
        graphs = graphs.replace(node_features={"x": torch.ones(graphs.num_nodes, 2)})
    path = folder / "graphs.safetensors"
    _write_damaged(random, path, graphs.tensors(), "Digraphs")
    return path


def _result(random: np.random.Generator, folder: Path) -> Path:
    graphs = odd_digraphs(int(random.integers(1000)), int(random.integers(1, 4)), 1, 9)
    encodings = [mt.MagneticLaplacian(k=3), mt.Laplacian(k=2), mt.RandomWalk(steps=2), mt.Depth()]
    result = encodings[int(random.integers(len(encodings)))](graphs)
    path = folder / f"result-{type(result).__name__}.safetensors"
    _write_damaged(random, path, result.tensors(), type(result).__name__)
    return path


def _write_damaged(random: np.random.Generator, path: Path, tensors: dict[str, torch.Tensor], kind: str) -> None:
    for _ in range(int(random.integers(3))):
        name = str(random.choice(sorted(tensors)))
        tensors = {**tensors, name: _wrong_tensor(random, tensors[name])}
        if random.random() < 0.1:
            del tensors[str(random.choice(sorted(tensors)))]
        if random.random() < 0.1:
            tensors[str(random.choice(["weight", "edges/x", "node_features", "a\nb", "name_bytes"]))] = torch.ones(2)
        if not tensors:
            return _write_damaged(random, path, {"node_ptr": torch.zeros(1)}, kind)
    stored = {name: tensor.clone().contiguous() for name, tensor in tensors.items()}
    write_tensors(path, stored, {"kind": kind, "version": "0"})
    return None


def _wrong_tensor(random: np.random.Generator, tensor: torch.Tensor) -> torch.Tensor:
    how = int(random.integers(6))
    if how == 0:
        return tensor.to(TORCH[int(random.integers(len(TORCH)))])
    if how == 1:
        return tensor[..., : int(random.integers(3))] if tensor.ndim else tensor
    if how == 2:
        return tensor.unsqueeze(int(random.integers(tensor.ndim + 1)))
    if how == 3:
        return torch.cat([tensor, tensor], int(random.integers(tensor.ndim))) if tensor.ndim else tensor
    if how == 4 and tensor.numel() and not tensor.is_complex():
        changed = tensor.clone().reshape(-1)
        value = INTEGERS[int(random.integers(len(INTEGERS)))]
        if tensor.dtype in (torch.float32, torch.float64):
            changed[int(random.integers(changed.numel()))] = float(random.choice([0, -1, np.nan, np.inf, 1e-40, 1e30]))
        elif tensor.dtype != torch.bool and not tensor.is_floating_point():
            limits = torch.iinfo(tensor.dtype)
            changed[int(random.integers(changed.numel()))] = min(max(value, limits.min), limits.max)
        return changed.reshape(tensor.shape)
    return tensor.flip(0) if tensor.ndim else tensor


def _wrong_array(random: np.random.Generator, array: np.ndarray) -> np.ndarray:
    how = int(random.integers(5))
    if how == 0:
        with np.errstate(all="ignore"):
            try:
                return array.astype(NUMPY[int(random.integers(len(NUMPY)))])
            except (TypeError, ValueError):
                return array
    if how == 1:
        return array[..., : int(random.integers(3))] if array.ndim else array
    if how == 2:
        return array[None]
    if how == 3 and array.size and array.dtype.kind in "iu":
        changed = array.copy().reshape(-1)
        limits = np.iinfo(array.dtype)
        value = INTEGERS[int(random.integers(len(INTEGERS)))]
        changed[int(random.integers(changed.size))] = min(max(value, int(limits.min)), int(limits.max))
        return changed.reshape(array.shape)
    return np.flip(array).copy() if array.ndim else array


def _damaged_npz(random: np.random.Generator, path: Path, arrays: dict[str, Any]) -> Path:
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    for _ in range(int(random.integers(3))):
        name = str(random.choice(sorted(arrays)))
        arrays[name] = np.asarray(_wrong_array(random, arrays[name]))
        if random.random() < 0.1:
            arrays.pop(str(random.choice(sorted(arrays))))
        if random.random() < 0.1 or not arrays:
            arrays[str(random.choice(["weight", "format", "x", "names", "edge_weights"]))] = np.ones(2)
    np.savez(path, **arrays)
    if random.random() < 0.1:
        _claim_shape(random, path)
    return path


def _claim_shape(random: np.random.Generator, path: Path) -> None:
    """Write the archive again with an array whose header asks for terabytes."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = str(random.choice(sorted(members)))
    header = io.BytesIO()
    shape = tuple(int(size) for size in random.choice([0, 3, 2**20, 2**44], 2))
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": shape})
    members[name] = header.getvalue() + members[name][128:]
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)


def _sparse(random: np.random.Generator, folder: Path) -> Path:
    size = int(random.integers(1, 5)) * 2
    edges, weights = odd_digraph(random, size)
    matrix = sparse.coo_array((weights, tuple(edges)), shape=(size, size)).asformat(
        str(random.choice(["csr", "csc", "coo", "bsr", "dia"]))
    )
    path = folder / "sparse.npz"
    sparse.save_npz(path, matrix)
    with np.load(path) as arrays:
        return _damaged_npz(random, path, dict(arrays))


def _arrays(random: np.random.Generator, folder: Path) -> Path:
    size = int(random.integers(1, 9))
    edges, weights = odd_digraph(random, size)
    arrays: dict[str, Any] = {"edge_index": edges}
    if random.random() < 0.5:
        arrays["edge_weight"] = weights
    if random.random() < 0.5:
        arrays["num_nodes"] = np.array(size)
    return _damaged_npz(random, folder / "arrays.npz", arrays)


CELLS = [
    "a",
    "b",
    "0",
    "1",
    "007",
    "7",
    "²",
    "٣",
    "",
    " ",
    '"',
    '"q"',
    "1e400",
    "-1",
    "nan",
    "0.5",
    "1_0",
    "#",
    "# x",
    "\t",
]
CELLS += [
    "source",
    "target",
    "weight",
    "u",
    "v",
    "Source",
    "\ufeff",
    "\x1c",
    "\u2028",
    "9" * 5000,
    "x" * 140_000,
    "\0",
    ";",
]


def _text(random: np.random.Generator, folder: Path) -> Path:
    suffix = str(random.choice([".csv", ".tsv", ".txt", ".edges"]))
    between = "," if suffix == ".csv" and random.random() < 0.9 else str(random.choice([" ", "\t", ";", ", "]))
    chosen = (
        [str(cell) for cell in random.choice(CELLS, int(random.integers(1, 8)))]
        if random.random() < 0.5
        else ["a", "b", "1"]
    )
    width = int(random.integers(1, 5))
    lines = []
    for _ in range(int(random.integers(0, 8))):
        count = width if random.random() < 0.9 else int(random.integers(1, 5))
        lines.append(between.join(str(cell) for cell in random.choice(chosen, count)))
    if random.random() < 0.5:
        lines.insert(0, between.join(str(cell) for cell in random.permutation(["source", "target", "weight"])[:width]))
    text = str(random.choice(["\n", "\r\n", "\r"])).join(lines)
    encoding = str(random.choice(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-32"]))
    path = folder / f"graph{suffix}"
    path.write_bytes(text.encode(encoding))
    return path


MIXED = "directed='false'"


def _graphml(random: np.random.Generator, folder: Path) -> Path:
    def pick(*words: str) -> str:
        return str(random.choice(words))

    doctype = '<!DOCTYPE g [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    nodes = "<node id='a'/><node id='b'/><node id='c'/><node id='d'/>"
    if random.random() < 0.3:
        inner = ("", "", "<port name='p'/>", "<graph/>")
        nodes = "".join(f"<node id='{pick('a', 'b', 'c', '&lt;', 'é')}'>{pick(*inner)}</node>" for _ in range(4))
    edges = ""
    for _ in range(int(random.integers(5))):
        edges += f"<edge source='{pick('a', 'b', 'c')}' target='{pick('a', 'b', 'd')}' {pick('', MIXED)}>"
        edges += pick("", *(f"<data key='w'>{text}</data>" for text in ("2", "0.5", "x", "", "-1"))) + "</edge>"
    direction = pick("edgedefault='directed'", "edgedefault='undirected'", "", "edgedefault='up'")
    graph = f"<graph {direction}>{nodes}{edges}{pick('', '', '', '<hyperedge/>')}</graph>"
    graph *= 2 if random.random() < 0.1 else 1
    key = "<key id='w' for='edge' attr.name='weight' attr.type='double'><default>3</default></key>"
    key *= int(random.choice([0, 1, 1, 2]))
    head = doctype if random.random() < 0.1 else ""
    deep = 50_000 if random.random() < 0.02 else 0
    path = folder / "graph.graphml"
    path.write_text(f"{head}<graphml>{key}{graph}{'<a>' * deep}{'</a>' * deep}</graphml>", encoding="utf-8")
    return path


def _node_link(random: np.random.Generator, folder: Path) -> Path:
    odd: list[Any] = [0, 1, 2, "0", "a", 1.0, True, None, [0, 1], {}, 10**30, float("nan"), "\ud800", "\0", "", -1, []]

    def pick(*plain: Any) -> Any:
        return odd[int(random.integers(len(odd)))] if random.random() < 0.1 else plain[int(random.integers(len(plain)))]

    nodes = [{"id": pick(i)} for i in range(int(random.integers(5)))]
    links = [
        {"source": pick(0, 1), "target": pick(0, 2), "weight": pick(1, 2.5)} for _ in range(int(random.integers(5)))
    ]
    content: dict[str, Any] = {"nodes": pick(nodes), str(random.choice(["links", "edges"])): pick(links)}
    if random.random() < 0.5:
        content |= {"directed": pick(True, False), "multigraph": pick(True, False)}
    text = json.dumps(pick(content))
    if random.random() < 0.05:
        text = text.replace("[", "[" * 100_000, 1)
    if random.random() < 0.05:
        text = text.replace("0", "9" * 10_000, 1)
    path = folder / "graph.json"
    path.write_text(text, encoding="utf-8")
    return path


def _mutated(random: np.random.Generator, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(int(random.integers(1, 6))):
        if not changed:
            break
        place = int(random.integers(len(changed)))
        changes: list[Callable[[], Any]] = [
            lambda at=place: changed.__setitem__(at, int(random.integers(256))),
            lambda at=place: changed.__setitem__(at, changed[at] ^ (1 << int(random.integers(8)))),
            lambda at=place: changed.insert(at, int(random.integers(256))),
            lambda at=place: changed.__delitem__(slice(at, at + int(random.integers(1, 20)))),
            lambda at=place: changed.extend(changed[at : at + 50]),
        ]
        changes[int(random.integers(len(changes)))]()
    return bytes(changed)
