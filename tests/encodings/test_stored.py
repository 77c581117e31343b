"""The files of `magnetite encode`, read back."""

import json

import numpy as np
import pytest
import torch
from pyarrow import parquet

import magnetite as mt
from magnetite.encodings import ENCODINGS
from magnetite.encodings.stored import node_table
from magnetite.io.files import TABLE_WRITERS, TENSOR_WRITERS, write_arrays, write_table
from tests.cli.test_app import call

METHODS = {
    "magnetic": mt.MagneticLaplacian(k=5),
    "multi-q": mt.MagneticLaplacian(k=5, q=(0.1, 0.2)),
    "laplacian": mt.Laplacian(k=5, normalised=False),
    "svd": mt.SVD(rank=2),
    "svd in double precision": mt.SVD(rank=2, dtype=torch.float64),
    "sinusoidal": mt.Sinusoidal(width=4),
    "depth": mt.Depth(),
    "walks": mt.RandomWalk(steps=2),
    "sparse walks": mt.SparseRandomWalk(steps=2, top=3),
    "sums": mt.WalkSums(steps=2, top=3),
    "relatives, like walks": mt.Relatives(reach=2, top=3),
}


@pytest.fixture
def graphs(odd):
    graphs = odd[:4]
    return graphs.replace(names=[f"v;{i},\n" for i in range(graphs.num_nodes - 1)] + [""])


@pytest.mark.parametrize("extension", [*TENSOR_WRITERS, *TABLE_WRITERS])
@pytest.mark.parametrize("name", METHODS)
def test_an_encoding_comes_back(tmp_path, graphs, name, extension):
    result, path = METHODS[name](graphs), tmp_path / f"pe{extension}"
    if extension in TENSOR_WRITERS:
        write_arrays(path, result.tensors(), graphs.names, {"kind": type(result).__name__})
    elif "walks" in name:
        return
    else:
        write_table(path, node_table(result, graphs.names))
    read = mt.read(path)
    assert type(read) is type(result)
    assert read.names == graphs.names
    assert read[:2].names == graphs[:2].names
    derived = {"group", "anchored"} if extension in TABLE_WRITERS else set()
    for key, tensor in result.tensors().items():
        if key not in derived:
            assert torch.equal(read.tensors()[key], tensor), key
            assert read.tensors()[key].dtype == tensor.dtype or key == "node_ptr"
    if isinstance(result, mt.Eigenpairs):
        assert read[0].names == graphs[0].names
        assert read.anchored.any() == (not derived and result.anchored.any())
        assert torch.equal(read.group, result.group)


@pytest.mark.parametrize("extension", ["npz", "safetensors", "parquet", "csv", "json"])
def test_the_command_line_writes_what_read_reads(tmp_path, monkeypatch, capsys, extension):
    (tmp_path / "g.csv").write_text("source;target\nb;a\na;c\n")
    out = tmp_path / f"pe.{extension}"
    code, _, stderr = call(monkeypatch, capsys, "encode", tmp_path / "g.csv", "--k", 4, "--out", out)
    assert code == 0, stderr
    read, expected = mt.read(out), mt.MagneticLaplacian(k=4)(mt.read(tmp_path / "g.csv"))
    assert read.names == ["b", "a", "c"]
    assert torch.equal(read.vectors, expected.vectors)
    assert torch.equal(read.mask, expected.mask)


def test_long_and_odd_names_come_back(tmp_path):
    graphs = mt.Digraphs.from_edges(np.stack([np.arange(3000), np.arange(3000) + 1]))
    names = [f"v{i}" for i in range(3000)] + ["x" * 200_000 + "\0"]
    write_arrays(tmp_path / "pe.npz", mt.Depth()(graphs).tensors(), names, {})
    assert mt.read(tmp_path / "pe.npz").names == names


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [row | {"other": 1} for row in rows], "no nodes"),
        (
            lambda rows: [{key: row[key] for key in row if key != "re_0"} for row in rows],
            "not complete: some are missing",
        ),
        (lambda rows: [row | {"graph": 1} for row in rows], "must be numbered from 0"),
        (lambda rows: [rows[0], *(row | {"value_0": 0.5} for row in rows[1:])], "row 2 has other eigenvalues"),
        (lambda rows: [row | {"re_0": "x"} for row in rows], "column 're_0' must have numbers"),
    ],
)
def test_a_table_that_is_no_encoding_is_refused(tmp_path, change, message):
    graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    write_table(tmp_path / "pe.json", node_table(mt.Laplacian(k=2)(graphs), ["a", "b", "c"]))
    rows = json.loads((tmp_path / "pe.json").read_text())
    (tmp_path / "pe.json").write_text(json.dumps(change(rows)))
    with pytest.raises(ValueError, match=message) as caught:
        mt.read(tmp_path / "pe.json")
    assert "\n" not in str(caught.value)


def test_other_tables_are_refused_in_one_line(tmp_path):
    write_table(tmp_path / "t.parquet", {"a": np.arange(3)})
    with pytest.raises(ValueError, match="the column 'a' is not one of an encoding"):
        mt.read(tmp_path / "t.parquet")
    assert parquet.read_table(tmp_path / "t.parquet").num_rows == 3
    (tmp_path / "t.parquet").write_bytes(b"PAR1 short")
    with pytest.raises(ValueError, match=r"t\.parquet cannot be read"):
        mt.read(tmp_path / "t.parquet")


def test_an_encoding_has_no_weights_and_is_no_graph(tmp_path, monkeypatch, capsys):
    graphs = mt.Digraphs.from_edges([[0], [1]])
    write_arrays(tmp_path / "pe.npz", mt.Depth()(graphs).tensors(), ["a", "b"], {})
    with pytest.raises(ValueError, match="is an encoding, not a graph"):
        mt.read(tmp_path / "pe.npz", weight="cost")
    code, _, stderr = call(monkeypatch, capsys, "encode", tmp_path / "pe.npz", "--out", tmp_path / "x.npz")
    assert code == 2
    assert stderr.count("\n") == 1


def test_every_encoding_is_tried():
    assert {type(method) for method in METHODS.values()} >= set(ENCODINGS.values())
