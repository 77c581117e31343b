import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import torch
import typer

import magnetite as mt
from magnetite import cli
from magnetite.cli.encode import SIZES
from magnetite.encodings import ENCODINGS


def run(*arguments: str, cwd) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "magnetite", *map(str, arguments)], cwd=cwd, capture_output=True, text=True
    )


def call(monkeypatch, capsys, *arguments) -> tuple[int, str, str]:
    """The command line in this process: exit code, standard output, standard error."""
    monkeypatch.setattr(sys, "argv", ["magnetite", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return caught.value.code or 0, *capsys.readouterr()


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "graph.txt"
    file.write_text("a b\nb c\nc d\n")
    return file


def test_the_design_example_as_a_program(tmp_path):
    import networkx as nx

    nx.write_graphml(nx.gn_graph(20, seed=1), tmp_path / "graph.graphml")
    command = "encode graph.graphml --encoding magnetic --k 16 --out pe.npz --plot pe.png"
    done = run(*command.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "pe.npz")["vectors"].shape == (20, 16)
    assert (tmp_path / "pe.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("extension", ["npz", "safetensors"])
def test_every_encoding(path, tmp_path, monkeypatch, capsys, encoding, extension):
    out = tmp_path / f"pe.{extension}"
    sized = any(field.name in SIZES for field in dataclasses.fields(ENCODINGS[encoding]))
    number = ("--k", 4) if sized else ()
    options = ("--encoding", encoding, *number, "--out", out)
    code, stdout, stderr = call(monkeypatch, capsys, "encode", path, *options)
    assert code == 0, stderr
    assert str(out) in stdout
    assert out.exists()


def test_options_reach_the_encoding(path, tmp_path, monkeypatch, capsys):
    out = tmp_path / "pe.npz"
    options = ["--q", 0.1, "--q", 0.2, "--k", 2, "--no-normalised", "--convention", "pygsd"]
    code, *_ = call(monkeypatch, capsys, "encode", path, "--out", out, *options)
    assert code == 0
    graph = mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 3]])
    expected = mt.MagneticLaplacian(k=2, q=(0.1, 0.2), normalised=False, convention="pygsd")(graph)
    np.testing.assert_array_equal(np.load(out)["vectors"], expected.vectors.numpy())


def test_many_graphs_with_a_cache(tmp_path, odd, monkeypatch, capsys):
    odd.save(tmp_path / "many.safetensors")
    arguments = ("encode", tmp_path / "many.safetensors", "--out", tmp_path / "pe.npz", "--cache", tmp_path / "cache")
    for _ in range(2):
        code, stdout, _ = call(monkeypatch, capsys, *arguments)
        assert code == 0
        assert "200 graphs" in stdout
    assert len(list((tmp_path / "cache").glob("*.safetensors"))) == 1


def test_data_sets_are_written_and_kept(tmp_path, monkeypatch, capsys):
    arguments = ("data", "sorting", "--out", tmp_path / "nets", "--split", "train", "--train", 50, "--shard-size", 25)
    first = call(monkeypatch, capsys, *arguments)
    content = {path.name: path.read_bytes() for path in (tmp_path / "nets").glob("*.*")}
    assert first == call(monkeypatch, capsys, *arguments)
    assert first[0] == 0
    assert {"manifest.json", "train-00000.safetensors", "train-00001.safetensors"} <= content.keys()
    assert content == {path.name: path.read_bytes() for path in (tmp_path / "nets").glob("*.*")}


BAD = {
    "negative weight": (["encode", "negative.txt", "--out", "pe.npz"], "weight -1.0"),
    "NaN weight": (["encode", "nan.txt", "--out", "pe.npz"], "weight nan"),
    "node id out of range": (["encode", "range.npz", "--out", "pe.npz"], "outside its nodes"),
    "k below 1": (["encode", "good.txt", "--out", "pe.npz", "--k", "0"], "k must be a positive integer, got 0"),
    "k no number": (["encode", "good.txt", "--out", "pe.npz", "--k", "many"], "--k"),
    "q above 0.5": (["encode", "good.txt", "--out", "pe.npz", "--q", "0.6"], "outside [0, 0.5]"),
    "q below 0": (["encode", "good.txt", "--out", "pe.npz", "--q", "-0.1"], "outside [0, 0.5]"),
    "q NaN": (["encode", "good.txt", "--out", "pe.npz", "--q", "nan"], "outside [0, 0.5]"),
    "both kinds of q": (["encode", "good.txt", "--out", "pe.npz", "--q", "0.1", "--relative-q", "1"], "both given"),
    "negative relative q": (["encode", "good.txt", "--out", "pe.npz", "--relative-q", "-1"], "relative potential"),
    "empty graph": (["encode", "empty.json", "--out", "pe.npz"], "empty"),
    "empty file": (["encode", "empty.txt", "--out", "pe.npz"], "no edges"),
    "missing file": (["encode", "missing.txt", "--out", "pe.npz"], "does not exist"),
    "a folder": (["encode", "folder.txt", "--out", "pe.npz"], "--out must be a folder for a corpus"),
    "truncated file": (["encode", "short.safetensors", "--out", "pe.npz"], "not a complete safetensors file"),
    "pickle": (["encode", "data.pt", "--out", "pe.npz"], "pickle"),
    "unknown extension": (["encode", "data.xyz", "--out", "pe.npz"], "extension"),
    "unknown output": (["encode", "good.txt", "--out", "pe.xyz"], "extension"),
    "unknown encoding": (["encode", "good.txt", "--out", "pe.npz", "--encoding", "cubic"], "magnetic, laplacian"),
    "unknown convention": (["encode", "good.txt", "--out", "pe.npz", "--convention", "x"], "paper, networkx"),
    "unwritable output": (["encode", "good.txt", "--out", "/proc/pe.npz"], "cannot be written"),
    "unwritable plot": (["encode", "good.txt", "--out", "pe.npz", "--plot", "/proc/pe.png"], "cannot be written"),
    "output is a folder": (["encode", "good.txt", "--out", "folder.npz"], "is a folder"),
    "shards in a file": (["data", "sorting", "--out", "good.txt"], "is a file"),
    "empty archive": (["encode", "empty.npz", "--out", "pe.npz"], "not a complete .npz archive"),
    "unknown device": (["encode", "good.txt", "--out", "pe.npz", "--device", "abacus"], "'abacus' is not available"),
    "a device without numbers": (["encode", "good.txt", "--out", "pe.npz", "--device", "meta"], "choose one of cpu"),
    "no such GPU": (["encode", "good.txt", "--out", "pe.npz", "--device", "cuda:99"], "choose one of cpu"),
    "meta to train": (["train", "sorting", "--device", "meta"], "choose auto, cpu or cuda"),
    "meta to evaluate": (["evaluate", "run", "--device", "meta"], "choose auto, cpu or cuda"),
    "a seed below 0": (["bench", "--seed", "-1"], "--seed must be a non-negative integer, got -1"),
    "huge k": (["encode", "good.txt", "--out", "pe.npz", "--k", "1000000000"], "k must be at most 1,048,576"),
    "a potential that is no number": (["encode", "good.txt", "--out", "pe.npz", "--q", "nan"], "outside [0, 0.5]"),
    "endless training": (["train", "sorting", "--epochs", "1e300"], "epochs must be at most 1,000,000, got 1e+300"),
    "a rate that is no number": (["train", "sorting", "--set", "optim.lr=nan"], "lr must be a positive number"),
    "a huge model": (["train", "sorting", "--set", "model.width=1048576", "--out", "run"], "GiB of memory"),
    "biases without attention": (
        ["train", "distances", "--encoding", "relative-walks", "--set", "model.name=gnn", "--out", "run"],
        "has attention biases, but this model has no attention",
    ),
    "a width that heads do not divide": (["train", "sorting", "--set", "model.width=65"], "a multiple of heads"),
    "unknown task": (["data", "knitting", "--out", "d"], "distances, sorting"),
    "unknown split": (["data", "sorting", "--out", "d", "--split", "rest"], "rest"),
    "unknown target": (["data", "distances", "--out", "d", "--target", "colour"], "colour"),
    "an option of another task": (["data", "sorting", "--out", "d", "--acyclic"], "--acyclic"),
    "no training graphs": (["data", "sorting", "--out", "d", "--train", "-1"], "must be a positive integer, got -1"),
    "huge data": (["data", "sorting", "--out", "d", "--train", "9" * 400], "train must be at most 2,147,483,647"),
    "unknown task to train": (["train", "knitting"], "sorting"),
    "unknown encoding to train": (["train", "sorting", "--encoding", "cubic"], "magnetic, laplacian"),
    "unknown preset": (["train", "sorting", "--preset", "royal"], "paper, best, flat, quick"),
    "unknown setting": (["train", "sorting", "--set", "optim.rate=1"], "unknown option optim.rate"),
    "setting without a value": (["train", "sorting", "--set", "optim.lr"], "table.option=value"),
    "setting of another type": (["train", "sorting", "--set", "optim.lr=fast"], "optim.lr must be a number"),
    "option of another task to train": (["train", "sorting", "--acyclic"], "--acyclic"),
    "unknown device to train": (["train", "sorting", "--device", "abacus"], "choose auto, cpu or cuda"),
    "no processes": (["train", "sorting", "--devices", "0"], "devices must be at least 1, got 0"),
    "unknown precision": (["train", "sorting", "--precision", "8"], "32-true, bf16-mixed"),
    "negative budget": (["train", "sorting", "--budget", "-1"], "budget must be a number in (0, 1], got -1"),
    "train nothing": (["train", "--out", "run"], "a task (distances, naming, sorting, supervised), --data FOLDER"),
    "resume nothing": (["train", "sorting", "--out", "nowhere", "--resume"], "config.json does not exist"),
    "run in a file": (["train", "sorting", "--out", "good.txt"], "is a file"),
    "evaluate nothing": (["evaluate", "nowhere"], "config.json does not exist"),
    "evaluate no run": (["evaluate", "nowhere", "--split", "rest"], "nowhere/config.json does not exist"),
    "one colon": (["graph", "two.py:f", "--out", "g.svg"], "two colons"),
    "no such function": (["graph", "two.py::h", "--out", "g.svg"], "choose one of f, C.g"),
    "several functions": (["graph", "two.py", "--out", "g.svg"], "several functions (f, C.g)"),
    "no function": (["graph", "none.py", "--out", "g.svg"], "no function"),
    "no Python": (["graph", "wrong.py::f", "--out", "g.svg"], "wrong.py, line 2"),
    "null bytes": (["graph", "null.py::f", "--out", "g.svg"], "null bytes"),
    "a wrong encoding": (["graph", "latin.py::f", "--out", "g.svg"], "latin.py"),
    "an unknown encoding": (["graph", "klingon.py::f", "--out", "g.svg"], "klingon.py"),
    "no source": (["graph", "missing.py::f", "--out", "g.svg"], "missing.py"),
    "a folder of sources": (["graph", "folder.npz::f", "--out", "g.svg"], "folder.npz"),
    "unknown kind": (["graph", "two.py::f", "--out", "g.svg", "--kind", "flow"], "dataflow, ast"),
    "unknown mask": (["graph", "two.py::f", "--out", "g.svg", "--mask", "iron"], "strict, paper, none"),
    "unknown layout": (["graph", "two.py::f", "--out", "g.svg", "--layout", "spiral"], "auto, layers"),
    "unknown picture": (["graph", "two.py::f", "--out", "g.bmp"], "extension"),
    "no picture to compare in": (["graph", "two.py::f", "--out", "g.json", "--compare"], "--compare"),
    "unwritable graph": (["graph", "two.py::f", "--out", "/proc/g.svg"], "cannot be written"),
    "no graph": (["graph", "two.py::f"], "--out"),
    "unknown benchmark": (["bench", "patience"], "eigen, walks"),
    "nothing to plot": (["encode", "good.txt", "--out", "pe.npz", "--encoding", "svd", "--plot", "a.png"], "--plot"),
    "vector of no graph": (
        ["encode", "good.txt", "--out", "pe.npz", "--k", "9", "--plot", "a.png", "--vector", "7"],
        "vector must be from 0 to 2, got 7",
    ),
    "unknown plot": (["encode", "good.txt", "--out", "pe.npz", "--plot", "a.xyz"], "extension"),
    "an old name": (["encode", "good.txt", "--out", "pe.npz", "--encoding", "walk"], "unknown encoding 'walk'"),
    "steps of eigenvectors": (["encode", "good.txt", "--out", "pe.npz", "--steps", "3"], "--steps does not apply"),
    "k of walks": (["encode", "good.txt", "--out", "pe.npz", "--encoding", "walks", "--k", "3"], "--k does not apply"),
    "potential of svd": (["encode", "good.txt", "--out", "pe.npz", "--encoding", "svd", "--q", "0"], "--q does not"),
    "relative potential": (
        ["encode", "good.txt", "--out", "pe.npz", "--encoding", "laplacian", "--relative-q", "1"], "--k --normalised"
    ),
    "pairs as a table": (["encode", "good.txt", "--out", "pe.csv", "--encoding", "walks"], "use .npz or .safetensors"),
    "no output": (["encode", "good.txt"], "--out"),
    "unknown command": (["decode"], "decode"),
    "restart": (["encode", "good.txt", "--out", "pe.npz", "--encoding", "walks", "--restart", "2"], "got 2.0"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, case):
    (tmp_path / "good.txt").write_text("0 1\n1 2\n")
    (tmp_path / "negative.txt").write_text("0 1 -1\n")
    (tmp_path / "nan.txt").write_text("0 1 nan\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "empty.json").write_text('{"nodes": [], "links": []}')
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "empty.npz").touch()
    (tmp_path / "data.pt").touch()
    (tmp_path / "data.xyz").touch()
    (tmp_path / "two.py").write_text("def f(a):\n    return a\n\nclass C:\n    def g(self):\n        pass\n")
    (tmp_path / "none.py").write_text("x = 1\n")
    (tmp_path / "wrong.py").write_text("x = 1\ndef f(:\n")
    (tmp_path / "null.py").write_bytes(b"def f(): pass\x00\n")
    (tmp_path / "latin.py").write_bytes(b"def f(): return '\xe9'\n")
    (tmp_path / "klingon.py").write_bytes(b"# coding: klingon\ndef f(): pass\n")
    np.savez(tmp_path / "range.npz", edge_index=np.array([[0], [5]]), num_nodes=3)
    mt.Digraphs.from_edges([[0], [1]]).save(tmp_path / "short.safetensors")
    (tmp_path / "short.safetensors").write_bytes((tmp_path / "short.safetensors").read_bytes()[:-3])
    monkeypatch.chdir(tmp_path)
    before = {file.name for file in tmp_path.iterdir()}
    arguments, message = BAD[case]
    code, stdout, stderr = call(monkeypatch, capsys, *arguments)
    assert code == 2
    assert message in stderr
    assert stderr.count("\n") == 1
    assert stdout == ""
    assert {file.name for file in tmp_path.iterdir()} == before


def test_a_full_gpu_is_told_in_one_line(path, monkeypatch, tmp_path, capsys):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 5.63 GiB. GPU 0 has a total capacity of")

    monkeypatch.setattr(cli.encode, "write_arrays", full)
    code, _, stderr = call(monkeypatch, capsys, "encode", str(path), "--out", str(tmp_path / "pe.npz"))
    assert code == 2
    assert stderr.startswith("magnetite: CUDA out of memory. Tried to allocate 5.63 GiB: free GPU memory")
    assert stderr.count("\n") == 1


def test_nothing_to_do_shows_the_help_alone(monkeypatch, capsys):
    code, stdout, stderr = call(monkeypatch, capsys)
    assert code == 2
    assert "Usage: magnetite" in stdout + stderr
    assert "magnetite:" not in stderr


def test_who_stops_it_is_told_so(path, monkeypatch, tmp_path, capsys):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.encode, "write_arrays", stop)
    code, _, stderr = call(monkeypatch, capsys, "encode", str(path), "--out", str(tmp_path / "pe.npz"))
    assert (code, stderr) == (130, "magnetite: stopped\n")


def test_a_mistake_of_ours_keeps_its_traceback(path, monkeypatch, tmp_path):
    def broken(*_):
        raise RuntimeError("ours")

    monkeypatch.setattr(cli.encode, "write_arrays", broken)
    monkeypatch.setattr(sys, "argv", ["magnetite", "encode", str(path), "--out", str(tmp_path / "pe.npz")])
    with pytest.raises(RuntimeError, match="ours"):
        cli.main()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["encode", "--help"],
        ["data", "--help"],
        ["bench", "--help"],
        ["train", "--help"],
        ["evaluate", "--help"],
        ["graph", "--help"],
    ],
)
def test_help_shows_an_example(monkeypatch, capsys, arguments):
    code, stdout, _ = call(monkeypatch, capsys, *arguments)
    assert code == 0
    assert "Example: magnetite" in stdout


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(monkeypatch, capsys, option):
    assert call(monkeypatch, capsys, option)[1] == f"magnetite {mt.__version__}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [("magnetite enc", "encode"), ("magnetite encode --encoding ma", "magnetic"), ("magnetite bench ei", "eigen")],
)
def test_shell_completion(monkeypatch, capsys, words, expected):
    monkeypatch.setenv("_MAGNETITE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    code, stdout, _ = call(monkeypatch, capsys)
    assert code == 0
    assert stdout.split() == [expected]


def test_the_completion_script_can_be_installed(monkeypatch, capsys):
    _, stdout, _ = call(monkeypatch, capsys, "--help")
    assert "--install-completion" in stdout
    assert "--show-completion" in stdout


def test_every_option_has_a_help_text():
    for name, command in typer.main.get_command(cli.app).commands.items():
        for option in command.params:
            assert option.help, f"{name} {option.name}"


def test_a_missing_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "lightning.fabric", None)
    code, _, stderr = call(monkeypatch, capsys, "train", "sorting", "--device", "cpu", "--out", "run")
    assert code == 2
    assert "pip install 'magnetite[train]'" in stderr


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError("Unable to allocate 7 TiB\nfor an array"), "not enough memory (Unable to allocate 7 TiB)"),
        (MemoryError(), "not enough memory (MemoryError)"),
        (RecursionError("maximum recursion depth exceeded"), "the input is nested too deeply"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"), "not enough memory"),
    ],
)
def test_a_machine_that_is_too_small_is_no_traceback(error, line):
    assert line in (cli._one_line(error) or "")


def test_a_bug_is_a_traceback():
    assert cli._one_line(RuntimeError("shapes differ")) is None
