"""The files that `magnetite encode` writes."""

import resource
from itertools import pairwise

import numpy as np
import pytest
import torch
from pyarrow import parquet

import magnetite as mt
from magnetite.cli.encode import make_encoding
from magnetite.encodings import ENCODINGS
from magnetite.encodings.stored import node_table
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


@pytest.mark.parametrize("encoding", ["walks", "sparse-walks", "relatives"])
def test_tables_of_node_pairs_are_refused_before_encoding(tmp_path, monkeypatch, capsys, encoding):
    (tmp_path / "g.csv").write_text("a,b\nb,c\n")
    monkeypatch.setattr("magnetite.cli.encode._with_progress", None)
    arguments = "encode", tmp_path / "g.csv", "--encoding", encoding, "--out", tmp_path / "pe.csv"
    code, _, stderr = call(monkeypatch, capsys, *arguments)
    assert code == 2 and "encodes node pairs, not nodes: use" in stderr
    assert [path.name for path in tmp_path.iterdir()] == ["g.csv"]


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
        ("sparse-walks", {"steps": 2, "top": 5}, mt.SparseRandomWalk(steps=2, top=5)),
        ("walk-sums", {"restart": 0.2, "top": 5}, mt.WalkSums(restart=0.2, top=5)),
        ("relatives", {"reach": 2, "top": 5}, mt.Relatives(reach=2, top=5)),
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


@pytest.mark.parametrize("option", ["--out", "--plot", "--cache"])
def test_an_input_is_never_an_output(tmp_path, monkeypatch, capsys, option):
    monkeypatch.chdir(tmp_path)
    given = tmp_path / "g.csv"
    given.write_text("a,b\nb,c\n")
    (tmp_path / "link.png").hardlink_to(given)
    outputs = {"--out": ["--out", "./g.csv"], "--plot": ["--out", "pe.npz", "--plot", "link.png"],
               "--cache": ["--out", "pe.npz", "--cache", "g.csv"]}  # fmt: skip
    before = sorted(tmp_path.iterdir())
    code, _, stderr = call(monkeypatch, capsys, "encode", "g.csv", *outputs[option])
    assert code == 2
    assert stderr.count("\n") == 1
    assert "choose another" in stderr
    assert sorted(tmp_path.iterdir()) == before
    assert given.read_text() == "a,b\nb,c\n"


def test_an_input_in_the_folder_of_the_cache_is_refused(tmp_path, monkeypatch, capsys):
    mt.Digraphs.from_edges([[0], [1]]).save(tmp_path / "g.safetensors")
    arguments = ("encode", tmp_path / "g.safetensors", "--out", tmp_path / "pe.npz", "--cache", tmp_path)
    code, _, stderr = call(monkeypatch, capsys, *arguments)
    assert code == 2
    assert "is in the folder of --cache" in stderr


@pytest.fixture
def full_disk():
    """Files of more than 2 kB cannot be written."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("extension", ["npz", "safetensors", "parquet", "csv", "png", "svg", "cache"])
def test_a_full_disk_is_told_in_one_line_and_nothing_is_half_written(
    tmp_path, monkeypatch, capsys, full_disk, extension
):
    count = 3 if extension in ("png", "svg") else 1000
    edges = np.stack([np.arange(count), np.arange(count) + 1])
    np.savez(tmp_path / "g.npz", edge_index=edges)
    outputs = {"png": ["pe.csv", "--plot", "pe.png"], "svg": ["pe.csv", "--plot", "pe.svg"],
               "cache": ["pe.npz", "--cache", "c"]}.get(extension, [f"pe.{extension}"])  # fmt: skip
    encoding = "laplacian" if extension in ("png", "svg") else "sinusoidal"
    mt.Laplacian(k=2)(mt.Digraphs.from_edges(edges[:, :3]))  # compile before the disk is full
    monkeypatch.chdir(tmp_path)
    full_disk()
    code, _, stderr = call(monkeypatch, capsys, "encode", "g.npz", "--encoding", encoding, "--k", 2, "--out", *outputs)
    assert code == 2
    assert stderr.count("\n") == 1
    assert "File too large" in stderr
    left = {path.name for path in tmp_path.rglob("*") if path.is_file() and "lock" not in path.name}
    assert left == ({"g.npz", "pe.csv"} if extension in ("png", "svg") else {"g.npz"})


def test_a_huge_name_is_encoded_in_its_size(tmp_path, monkeypatch, capsys):
    names = [f"v{i}" for i in range(5000)] + ["x" * 2_000_000]
    (tmp_path / "g.txt").write_text("".join(f"{a} {b}\n" for a, b in pairwise(names)))
    out = tmp_path / "pe.npz"
    arguments = ("encode", tmp_path / "g.txt", "--encoding", "sinusoidal", "--k", 2, "--out", out)
    code, _, stderr = call(monkeypatch, capsys, *arguments)
    assert code == 0, stderr
    assert out.stat().st_size < 5_000_000


@pytest.mark.parametrize("layout", ["ogb", "saved", "labelled"])
def test_advice_reads_the_folders_that_are_encoded(layout, tmp_path, monkeypatch, capsys):
    graphs = mt.Digraphs.from_edges([np.array([[0, 1], [1, 2]])] * 3, edge_weight=[[1.0, 2.0]] * 3)
    if layout == "ogb":
        for name, text in (("num-node-list", "3\n" * 3), ("num-edge-list", "2\n" * 3), ("edge", "0,1\n1,2\n" * 3)):
            (tmp_path / f"{name}.csv").write_text(text)
    elif layout == "saved":
        graphs.save(tmp_path / "g.safetensors")
    else:
        for number in range(3):
            (tmp_path / f"g{number}.txt").write_text("a b 1\nb c 2\n")
        (tmp_path / "labels.csv").write_text("graph,y\n" + "".join(f"g{number},1\n" for number in range(3)))
    code, out, stderr = call(monkeypatch, capsys, "encode", tmp_path, "--advise", "--unweighted")
    assert code == 0, stderr
    assert out.startswith("Digraphs(3 graphs, 9 nodes, 6 edges)")


def test_advice_is_printed_and_nothing_written(tmp_path, monkeypatch, capsys):
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n", encoding="utf-8")
    code, out, _ = call(monkeypatch, capsys, "encode", tmp_path / "edges.csv", "--advise")
    assert code == 0
    assert all(word in out for word in ("magnetic", "k = 3", "walks", "svd", "Adaptive(q=0.25)"))
    assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]
    again = call(monkeypatch, capsys, "encode", tmp_path, "--advise")
    assert again == (0, out, "")
    code, _, stderr = call(monkeypatch, capsys, "encode", tmp_path, "--advise", "--nodes", "n.csv")
    assert code == 2 and "--nodes does not apply to a corpus" in stderr
    code, _, stderr = call(monkeypatch, capsys, "encode", tmp_path / "edges.csv")
    assert (code, stderr.strip()) == (2, "magnetite: --out is missing: name the file to write, or use --advise")
