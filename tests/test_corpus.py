"""A corpus: every layout and format, the same bytes from any number of processes and after any kill."""

import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

import magnetite as mt
from magnetite.cli import app
from magnetite.io.storage import DamagedFile
from magnetite.tasks import Distances
from magnetite.tasks.datasets import data_set
from magnetite.tasks.shards import write
from magnetite.workers import local
from tests.conftest import odd_digraphs
from tests.kills import after_every_kill
from tests.workers.cluster import contents, shards
from tests.workers.test_local import forked

ENCODING = mt.MagneticLaplacian(k=3, q=0.1)


def featured(graphs: mt.Digraphs) -> mt.Digraphs:
    random = torch.Generator().manual_seed(0)
    return graphs.replace(
        names=[f"node {number}" for number in range(graphs.num_nodes)],
        node_features={"x": torch.randn(graphs.num_nodes, 2, generator=random)},
        edge_features={"cost": torch.rand(graphs.num_edges, generator=random) + 0.5},
        graph_features={"y": torch.arange(len(graphs))},
    )


@pytest.fixture
def saved(tmp_path):
    """Three files of graphs with weights, names and features."""
    for number in range(3):
        graphs = featured(odd_digraphs(number, 30, high=12, weighted=True))
        graphs.save(tmp_path / "in" / f"{number}.safetensors")
    return tmp_path / "in"


def encode(inputs, out, **options):
    return mt.encode_corpus(inputs, ENCODING, out, **{"workers": 1, "shard_nodes": 60, **options})


def same(one, two) -> None:
    one, two = one.tensors(), two.tensors()
    assert one.keys() == two.keys()
    assert all(torch.equal(tensor, two[name]) and tensor.dtype == two[name].dtype for name, tensor in one.items())


@pytest.mark.parametrize("file_format", ["safetensors", "parquet"])
def test_graphs_and_encodings_are_read_back(file_format, saved, tmp_path):
    corpus = encode(saved, tmp_path / "out", format=file_format)
    graphs = data_set(saved).graphs
    assert corpus.complete and len(corpus) == len(graphs) == 90 and len(corpus.files) > 9
    read = mt.read(tmp_path / "out")
    same(read.graphs, graphs)
    same(data_set(tmp_path / "out").graphs, graphs)
    bare = graphs.replace(names=None, node_features={}, edge_features={}, graph_features={})
    whole = ENCODING(bare)
    assert torch.allclose(read.encoding.values, whole.values, atol=1e-6)
    assert torch.equal(read.encoding.mask, whole.mask)
    first, second = (list(read.shards(process, 2)) for process in (0, 1))
    assert sum(map(len, first + second)) == 90 and abs(len(first) - len(second)) < 2
    one = mt.read(next(iter(sorted((tmp_path / "out").glob("graphs-*")))))
    same(one.graphs, first[0].graphs)
    same(one.encoding, first[0].encoding)


@pytest.mark.parametrize(
    "encoding",
    [
        mt.MagneticLaplacian(k=2, q=(0.1, 0.2)),
        mt.RandomWalk(steps=2),
        mt.SVD(rank=2),
        mt.SparseRandomWalk(top=3),
        mt.Depth(),
    ],
)
def test_both_formats_hold_every_encoding_bit_for_bit(encoding, saved, tmp_path):
    one, two = (
        mt.encode_corpus(saved, encoding, tmp_path / each, format=each, workers=1)
        for each in ("safetensors", "parquet")
    )
    same(one.encoding, two.encoding)
    same(one.graphs, two.graphs)
    assert [entry["crc32"] for entry in one.files.values()] == [entry["crc32"] for entry in two.files.values()]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_any_number_of_processes_writes_the_same_bytes(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(local, "process_pool", forked)
    large = mt.Digraphs.from_edges(torch.randint(3000, (2, 9000), generator=torch.Generator().manual_seed(0)))
    large.save(saved.parent / "large.safetensors")
    inputs = [saved, saved.parent / "large.safetensors"]
    for count in (1, 2, 3):
        encode(inputs, tmp_path / f"out{count}", workers=count)
    assert contents(tmp_path / "out1") == contents(tmp_path / "out2") == contents(tmp_path / "out3")


def pyg_graphs():
    return featured(odd_digraphs(7, 20)).to_pyg()


def test_every_layout_gives_its_graphs_in_order(saved, tmp_path):
    write(Distances(target="reachability", train=30, per_size=5, shard_size=20), tmp_path / "data")
    for number, graph in enumerate(odd_digraphs(5, 6, low=3)):
        text = "".join(f"{source} {target}\n" for source, target in graph.edges.T.tolist()) or "0 1\n"
        for folder in ("files", "labelled"):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{number}.txt").write_text(text)
    (tmp_path / "labelled" / "labels.csv").write_text("graph,y\n" + "".join(f"{each},{each}\n" for each in range(6)))
    raw = tmp_path / "ogb" / "raw"
    raw.mkdir(parents=True)
    for name, text in {"num-node-list": "3\n2\n", "num-edge-list": "2\n1\n", "edge": "0,1\n1,2\n0,1\n"}.items():
        (raw / f"{name}.csv").write_text(text)
    folders = [str(tmp_path / name) for name in ("data", "files", "labelled", "ogb")]
    for given in [*folders, str(tmp_path / "files" / "0.txt"), "tests.test_corpus:pyg_graphs"]:
        out = tmp_path / "out" / given.rpartition("/")[2]
        same(encode(given, out).graphs, data_set(given).graphs)
    assert len(encode(folders, tmp_path / "all", weight=None)) == sum(len(data_set(each).graphs) for each in folders)


def test_weights_are_chosen_as_when_reading(saved, tmp_path):
    assert encode(saved, tmp_path / "none", weight=None).graphs.weights is None
    costs = encode(saved, tmp_path / "cost", weight="cost").graphs
    assert torch.equal(costs.weights.float(), costs.edge_features["cost"])
    failed = encode(saved, tmp_path / "missing", weight="price").failed
    assert all("it has no edge feature 'price'" in reason for reason in failed.values()) and len(failed) == 3


def test_a_kill_at_any_operation_leaves_a_corpus_that_is_continued(tmp_path):
    odd_digraphs(0, 4).save(tmp_path / "in.safetensors")
    encode(tmp_path / "in.safetensors", tmp_path / "whole", shard_nodes=20)
    whole, out = contents(tmp_path / "whole"), tmp_path / "out"
    out.mkdir()
    for complete in after_every_kill(lambda: encode(tmp_path / "in.safetensors", out, shard_nodes=20), out):
        kept = shards(out)
        encode(tmp_path / "in.safetensors", out, shard_nodes=20)
        assert contents(out) == whole
        assert kept.items() <= shards(out).items()  # a shard is encoded once
        assert not complete or len(kept) == len(whole) - 1


def test_damaged_files_are_named_and_the_others_go_on(saved, tmp_path):
    whole = contents(encode(saved, tmp_path / "whole").folder)
    damaged, content = saved / "1.safetensors", (saved / "1.safetensors").read_bytes()
    damaged.write_bytes(content[:-5])
    command = ["encode", str(saved), "--k", "3", "--q", "0.1", "--workers", "1", "--out", str(tmp_path / "cli")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 3
    assert f"failed: {damaged.resolve()} (" in result.output and "60 graphs" in result.output
    part = encode(saved, tmp_path / "out")
    assert not part.complete and list(part.failed) == [str(damaged.resolve())] and len(part) == 60
    damaged.write_bytes(content)
    kept = shards(tmp_path / "out")
    assert encode(saved, tmp_path / "out").complete
    assert kept.items() <= shards(tmp_path / "out").items()
    assert contents(tmp_path / "out") == whole
    assert CliRunner().invoke(app, command).exit_code == 0


def test_damaged_shards_and_changed_inputs_are_encoded_again(saved, tmp_path):
    corpus = encode(saved, tmp_path / "out")
    whole, (first, second, *_) = contents(corpus.folder), corpus.files
    (corpus.folder / first).write_bytes(whole[first][:-1])
    (corpus.folder / second).unlink()
    with pytest.raises(DamagedFile, match=first):
        list(mt.read(corpus.folder).shards())
    seen = []
    encode(saved, tmp_path / "out", progress=seen.append)
    assert contents(corpus.folder) == whole
    assert seen[-1].graphs == seen[-1].total == 90
    assert seen[-1].kept == 90 - corpus.files[first]["graphs"] - corpus.files[second]["graphs"]
    mt.Digraphs.load(saved / "2.safetensors")[:5].save(saved / "2.safetensors")
    assert len(encode(saved, tmp_path / "out")) == 65
    assert shards(corpus.folder).keys() == mt.read(corpus.folder).files.keys()


def test_other_folders_and_settings_are_rejected(saved, tmp_path):
    encode(saved, tmp_path / "out")
    before = contents(tmp_path / "out")
    for options in ({"format": "parquet"}, {"shard_nodes": 70}, {"weight": None}):
        with pytest.raises(ValueError, match="holds another corpus of encoded graphs"):
            encode(saved, tmp_path / "out", **options)
    with pytest.raises(ValueError, match=r"inputs .* instead of"):
        encode(saved / "0.safetensors", tmp_path / "out")
    with pytest.raises(ValueError, match="holds another corpus of encoded graphs"):
        mt.encode_corpus(saved, mt.Laplacian(k=3), tmp_path / "out", workers=1, shard_nodes=60)
    assert contents(tmp_path / "out") == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(ValueError, match=r"other files, such as thesis.tex"):
        encode(saved, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    with pytest.raises(ValueError, match="is not a data set"):
        encode(tmp_path / "mine", tmp_path / "new")
    with pytest.raises(ValueError, match="format must be safetensors or parquet, got 'csv'"):
        encode(saved, tmp_path / "new", format="csv")
    with pytest.raises(FileNotFoundError):
        encode(tmp_path / "nowhere", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    for more in (["--plot", "a.png"], ["--cache", "c"], ["--out", "a.npz"]):
        result = CliRunner().invoke(app, ["encode", str(saved), "--out", str(tmp_path / "new"), *more])
        assert isinstance(result.exception, ValueError) and "corpus" in str(result.exception)


def test_ray_is_imported_only_where_it_is_used():
    program = "import sys, magnetite as mt; mt.encode_corpus; import magnetite.cli; print('ray' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
