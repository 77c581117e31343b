from pathlib import Path

import numpy as np
import pytest
import torch
from pyarrow import parquet

import magnetite as mt
from magnetite.encodings import NodeEncoding
from magnetite.io.files import check_outputs, write_arrays, write_table
from magnetite.io.storage import read_tensors


def test_a_huge_name_costs_no_more_than_its_size(tmp_path):
    names = [f"v{i}" for i in range(5000)] + ["x" * 2_000_000, "é\ud800", "end\0"]
    tensors = {"values": torch.zeros(len(names), 1), "node_ptr": torch.tensor([0, len(names)])}
    write_arrays(tmp_path / "a.npz", tensors, names, {})
    assert (tmp_path / "a.npz").stat().st_size < 5_000_000
    with np.load(tmp_path / "a.npz") as arrays:
        sizes, ends = arrays["name_lengths"], np.cumsum(arrays["name_lengths"])
        text = arrays["name_bytes"].tobytes()
    found = [text[end - size : end].decode("utf-8", "surrogatepass") for end, size in zip(ends, sizes, strict=True)]
    assert found == names
    write_table(tmp_path / "a.csv", {"node": names})
    write_table(tmp_path / "a.parquet", {"node": names})
    assert parquet.read_table(tmp_path / "a.parquet")["node"].to_pylist()[-2] == "é\\ud800"


def test_many_names_do_not_exceed_the_header_of_a_safetensors_file(tmp_path, monkeypatch):
    monkeypatch.setattr("magnetite.io.files.LONGEST_HEADER", 10)
    encoding = mt.Sinusoidal(width=2)(mt.Digraphs.from_edges([[0], [1]]))
    write_arrays(tmp_path / "a.safetensors", encoding.tensors(), ["first", "second"], {"kind": "NodeEncoding"})
    named, metadata = read_tensors(tmp_path / "a.safetensors")
    assert bytes(named["name_bytes"].tolist()) == b"firstsecond"
    assert "names" not in metadata
    assert torch.equal(NodeEncoding.load(tmp_path / "a.safetensors").values, encoding.values)


@pytest.mark.parametrize("link", ["same", "relative", "symbolic", "hard", "dangling"])
def test_an_input_is_never_an_output(tmp_path, monkeypatch, link):
    monkeypatch.chdir(tmp_path)
    given, output = tmp_path / "g.csv", tmp_path / "out.csv"
    given.write_text("a,b")
    if link == "same":
        output = given
    elif link == "relative":
        output = Path("./../") / tmp_path.name / "g.csv"
    elif link == "symbolic":
        output.symlink_to(given)
    elif link == "hard":
        output.hardlink_to(given)
    else:
        given.unlink()
        output.symlink_to(given)
    with pytest.raises(ValueError, match="is also an input"):
        check_outputs([tmp_path / "other.csv", output], [tmp_path / "first.csv", given])
    check_outputs([tmp_path / "other.csv"], [given])
