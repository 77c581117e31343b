"""The files that `magnetite encode` writes."""

import numpy as np
import pytest
import torch
from pyarrow import parquet

import magnetite as mt
from magnetite.cli.encode import make_encoding, node_table
from magnetite.encodings import ENCODINGS
from magnetite.io.files import write_arrays, write_table
from tests.cli.test_app import call


@pytest.fixture
def named(odd):
    graphs = odd[:4]
    return graphs.replace(names=[f"v{i}" for i in range(graphs.num_nodes)])


@pytest.mark.parametrize("extension", ["npz", "safetensors", "parquet", "csv"])
def test_outputs_contain_the_encoding_and_the_names(tmp_path, named, monkeypatch, capsys, extension):
    named.save(tmp_path / "graphs.safetensors")
    out = tmp_path / f"pe.{extension}"
    code, _, stderr = call(monkeypatch, capsys, "encode", tmp_path / "graphs.safetensors", "--k", 3, "--out", out)
    assert code == 0, stderr
    vectors = mt.MagneticLaplacian(k=3)(named).vectors
    if extension == "npz":
        arrays = np.load(out)
        assert arrays["names"].tolist() == named.names
        np.testing.assert_array_equal(arrays["vectors"], vectors.numpy())
    elif extension == "safetensors":
        assert torch.equal(mt.Eigenpairs.load(out).vectors, vectors)
    elif extension == "parquet":
        table = parquet.read_table(out).to_pydict()
        assert table["node"] == named.names
        np.testing.assert_array_equal(np.array(table["im_2"], dtype=np.float32), vectors[:, 2].imag.numpy())
    else:
        lines = out.read_text().splitlines()
        assert lines[0] == "graph,node,value_0,value_1,value_2,re_0,re_1,re_2,im_0,im_1,im_2"
        assert [line.split(",")[1] for line in lines[1:]] == named.names


def test_files_with_and_without_names_are_encoded_together(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.txt").write_text("b a\n")
    np.savez(tmp_path / "b.npz", edge_index=np.array([[0, 1], [1, 2]]))
    inputs, out = (tmp_path / "a.txt", tmp_path / "b.npz"), tmp_path / "pe.npz"
    assert call(monkeypatch, capsys, "encode", *inputs, "--out", out)[0] == 0
    assert np.load(out)["names"].tolist() == ["b", "a", "0", "1", "2"]


def test_names_do_not_change_the_cache(tmp_path, monkeypatch, capsys):
    for name, content in (("a.txt", "a b\nb c\n"), ("b.txt", "x y\ny z\n")):
        (tmp_path / name).write_text(content)
        arguments = ("encode", tmp_path / name, "--out", tmp_path / "pe.npz", "--cache", tmp_path / "cache")
        assert call(monkeypatch, capsys, *arguments)[0] == 0
    assert len(list((tmp_path / "cache").glob("*.safetensors"))) == 1


def test_tables_have_nan_beyond_the_last_eigenpair_and_number_the_potentials(tmp_path):
    edge = mt.Digraphs.from_edges([[0], [1]])
    write_table(tmp_path / "pe.csv", node_table(mt.MagneticLaplacian(k=3, q=(0.1, 0.2))(edge), ["a", "b"]))
    header, row, _ = (tmp_path / "pe.csv").read_text().splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    assert {"value_0_0", "value_1_2", "re_1_1", "im_0_2"} <= cells.keys()
    assert cells["value_0_2"] == cells["re_1_2"] == "nan"
    assert cells["re_1_1"] != "nan"


def test_pair_encodings_are_written_as_arrays_only(tmp_path, odd):
    walks = mt.RandomWalk()(odd[:2])
    with pytest.raises(ValueError, match=r"\.npz"):
        node_table(walks, [])
    write_arrays(tmp_path / "walks.npz", walks.tensors(), ["x"] * int(walks.node_ptr[-1]), {})
    assert np.load(tmp_path / "walks.npz")["values"].shape == tuple(walks.values.shape)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("magnetic", {}, mt.MagneticLaplacian(k=16)),
        ("magnetic", {"q": [0.1]}, mt.MagneticLaplacian(k=16, q=0.1)),
        ("magnetic", {"relative_q": [0.5, 1.0]}, mt.MagneticLaplacian(k=16, q=(mt.Relative(0.5), mt.Relative(1.0)))),
        ("laplacian", {"k": 3, "normalised": False}, mt.Laplacian(k=3, normalised=False)),
        ("walks", {"steps": 5}, mt.RandomWalk(steps=5)),
        ("svd", {"k": 3}, mt.SVD(rank=3)),
        ("sinusoidal", {"k": 4}, mt.Sinusoidal(width=4)),
        ("depth", {}, mt.Depth()),
        ("depth", {"k": 3}, mt.Depth(cap=3)),
    ],
)
def test_options_set_the_fields_of_the_encoding(name, options, expected):
    assert make_encoding(name, options) == expected
    assert type(expected) is ENCODINGS[name]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_files_are_encoded_together_as_each_alone(tmp_path, odd, odd_weighted, monkeypatch, capsys, encoding):
    """Bit for bit, also if only some of the files have weights."""
    files = []
    for number, graphs in enumerate((odd[:5], odd_weighted[5:9], odd[9:10])):
        files.append(tmp_path / f"graphs{number}.safetensors")
        graphs.save(files[-1])

    def encoded(*paths):
        out = tmp_path / "pe.safetensors"
        code, _, stderr = call(monkeypatch, capsys, "encode", *paths, "--encoding", encoding, "--out", out)
        assert code == 0, stderr
        return kind.load(out)

    kind = type(make_encoding(encoding, {})(odd[:1]))
    together, alone = encoded(*files), [encoded(path) for path in files]
    joined = type(together).concat(alone).tensors()
    assert all(torch.equal(tensor, joined[name]) for name, tensor in together.tensors().items())
