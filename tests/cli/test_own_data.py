"""Your own data from the command line: train, evaluate, predict."""

import csv
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite import cli
from tests.cli.test_app import call

CIRCUITS = Path(__file__).parents[1] / "data" / "hls-dfg"
SMALL = ["--set", "model.width=16", "--set", "model.layers=1", "--set", "encoding.k=4", "--epochs", "1"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run on thirty circuits with two targets."""
    folder = tmp_path_factory.mktemp("own") / "run"
    arguments = ["train", "--data", CIRCUITS, "--target", "dsp,lut", *SMALL, "--out", folder]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["magnetite", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
    assert not caught.value.code
    return folder


def test_predictions_are_those_of_the_test_split(trained, tmp_path, monkeypatch, capsys):
    answers = tmp_path / "answers.csv"
    code, _, stderr = call(monkeypatch, capsys, "predict", trained, CIRCUITS, "--out", answers)
    assert code == 0, stderr
    with answers.open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["graph"]) for row in rows] == list(range(30))
    task = mt.Run(trained).config.task
    test = task.targets.masks["test"]
    found = torch.tensor([[float(row["dsp"]), float(row["lut"])] for row in rows])
    errors = (found - task.targets.values)[test].square().mean(0).sqrt()
    metrics = mt.Run(trained).metrics["test"]
    assert errors.tolist() == pytest.approx([metrics["rmse/dsp"], metrics["rmse/lut"]], rel=1e-4)


@pytest.mark.parametrize("extension", ["parquet", "json"])
def test_answers_in_other_formats(trained, tmp_path, monkeypatch, capsys, extension):
    from pyarrow import parquet

    path = tmp_path / f"answers.{extension}"
    assert call(monkeypatch, capsys, "predict", trained, CIRCUITS, "--out", path)[0] == 0
    rows = parquet.read_table(path).to_pylist() if extension == "parquet" else json.loads(path.read_text())
    assert len(rows) == 30
    assert set(rows[0]) == {"graph", "dsp", "lut"}


def test_a_moved_run_predicts_the_same(trained, tmp_path):
    graphs = mt.Run(trained).config.task.data_set.graphs
    before = mt.Run(trained).predict(graphs)
    moved = trained.rename(tmp_path / "moved")
    try:
        assert torch.equal(mt.Run(moved).predict(graphs), before)
    finally:
        moved.rename(trained)


def test_a_run_is_evaluated_and_resumed(trained, monkeypatch, capsys):
    assert call(monkeypatch, capsys, "evaluate", trained)[0] == 0
    assert call(monkeypatch, capsys, "train", "--resume", "--out", trained)[0] == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--epochs", "9"], "leave out --epochs, or repeat the whole command with --data"),
        (["--target", "dsp", "--seed", "1"], "leave out --target, --seed, or"),
    ],
)
def test_a_resumed_run_keeps_its_configuration(trained, monkeypatch, capsys, given, message):
    code, _, stderr = call(monkeypatch, capsys, "train", "--resume", "--out", trained, *given)
    assert (code, stderr.count("\n")) == (2, 1)
    assert (
        "a resumed run keeps its configuration: " in stderr and message in stderr and "may change data.mode" in stderr
    )


@pytest.mark.parametrize("name", ["config.json", "schema.json", "predictions.parquet", "checkpoints/a.csv"])
def test_predictions_do_not_replace_files_of_the_run(trained, monkeypatch, capsys, name):
    monkeypatch.chdir(trained.parent)
    before = {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}
    code, _, stderr = call(monkeypatch, capsys, "predict", trained, CIRCUITS, "--out", f"run/{name}")
    assert (code, stderr.count("\n")) == (2, 1) and "is a file of the run" in stderr
    assert {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "--out", "data/raw/node-feat.csv"], "is in the folder data, which is an input"),
        (["data", "--pairs", "pairs.csv", "--out", "./pairs.csv"], "pairs.csv is also an input"),
    ],
)
def test_predictions_do_not_replace_inputs(trained, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(CIRCUITS, tmp_path / "data")
    (tmp_path / "pairs.csv").write_text("source,target\n0,1\n")
    code, _, stderr = call(monkeypatch, capsys, "predict", trained, *arguments)
    assert (code, stderr.count("\n")) == (2, 1) and message in stderr
    assert (tmp_path / "pairs.csv").read_text() == "source,target\n0,1\n"


@pytest.mark.parametrize(
    ("given", "features", "continuous"),
    [
        (["--features", "x", "--continuous", "x"], ["x"], ["x"]),
        (["--features", "x, edge_attr,", "--continuous", "x,"], ["x", "edge_attr"], ["x"]),
        (["--set", "task.features=x,edge_attr", "--set", "task.continuous=x"], ["x", "edge_attr"], ["x"]),
        (["--features", "none", "--set", 'task.continuous=["x"]'], None, ["x"]),
    ],
)
def test_lists_of_names_may_be_one_name(tmp_path, monkeypatch, capsys, given, features, continuous):
    monkeypatch.chdir(tmp_path)
    arguments = ["train", "--data", CIRCUITS, "--target", "dsp,", *given, *SMALL, "--dry-run"]
    code, stdout, stderr = call(monkeypatch, capsys, *arguments)
    assert code == 0, stderr
    task = json.JSONDecoder().raw_decode(stdout)[0]["task"]
    assert (task["target"], task["features"], task["continuous"]) == (["dsp"], features, continuous)


def test_changed_data_are_refused(tmp_path, monkeypatch, capsys):
    def write(shift: float) -> None:
        graphs = mt.Digraphs.from_edges([np.array([[0, 1], [1, 2]])] * 20)
        graphs.replace(graph_features={"y": torch.arange(20.0) + shift}).save(tmp_path / "data.safetensors")

    write(0)
    arguments = ["train", "--data", tmp_path / "data.safetensors", *SMALL, "--out", tmp_path / "run"]
    assert call(monkeypatch, capsys, *arguments)[0] == 0
    write(1)
    code, _, stderr = call(monkeypatch, capsys, "evaluate", tmp_path / "run")
    assert code == 2
    assert "are not those of the run" in stderr
    assert stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--data", "nowhere"], "nowhere does not exist"),
        (["train", "--data", CIRCUITS, "--target", "area"], "area"),
        (["train", "--data", CIRCUITS, "--target", "dsp", "--level", "edge"], "level"),
        (["train", "--data", CIRCUITS, "--target", "dsp", "--splits", "0.5,0.5"], "splits"),
        (["train", "--data", CIRCUITS, "--target", "dsp", "--preset", "best"], "preset"),
        (["train", "supervised"], "data"),
        (["data", "supervised", "--out", "x"], "unknown task"),
        (["predict", "nowhere", CIRCUITS, "--out", "a.csv"], "nowhere/config.json does not exist: give the folder of"),
        (["predict", "nowhere", CIRCUITS, "--out", "a.txt"], "extension"),
    ],
)
def test_errors_are_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, _, stderr = call(monkeypatch, capsys, *arguments)
    assert code == 2
    assert message in stderr
    assert stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


# Every level from the command line


def write(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


WEB = list(dict.fromkeys((u, (u * step + 3) % 30) for step in (7, 11) for u in range(30)))
WEB = [(u, v) for u, v in WEB if u != v]
EDGES = "source,target\n" + "".join(f"n{u},n{v}\n" for u, v in WEB)
ROLES = (f"n{u},{'in' if u % 2 else 'out'},{'hub' if u % 3 else 'leaf'}\n" for u in range(30))
NODES = f"node,role,kind\n{''.join(ROLES)}"


@pytest.fixture
def folders(tmp_path) -> Path:
    """Folders as in the documentation: circuits, shapes and web."""
    (tmp_path / "circuits").symlink_to(CIRCUITS)
    shapes = {f"g{n}.txt": "a b\n" if n % 2 else "a b\nb c\nc a\n" for n in range(20)}
    labels = "graph,shape\n" + "".join(f"g{n},{'short' if n % 2 else 'round'}\n" for n in range(20))
    write(tmp_path / "shapes", {**shapes, "labels.csv": labels})
    pairs = "source,target,distance\n" + "".join(f"n{u},n{v},{abs(u - v)}\n" for u, v in WEB)
    write(tmp_path / "web", {"web.csv": EDGES, "nodes.csv": NODES, "pairs.csv": pairs})
    return tmp_path


def documented_commands() -> list[str]:
    text = (Path(__file__).parents[2] / "docs" / "howto" / "own-data.md").read_text()
    block = text.split("The same on the command line:")[1].split("```shell\n")[1].split("```")[0]
    return [line.removeprefix("magnetite ") for line in block.strip().splitlines()]


@pytest.mark.parametrize("command", documented_commands())
def test_the_commands_of_the_documentation(folders, monkeypatch, capsys, command):
    monkeypatch.chdir(folders)
    arguments = [*command.split(), *SMALL, "--out", "run"]
    code, _, stderr = call(monkeypatch, capsys, *arguments)
    assert code == 0, stderr
    assert call(monkeypatch, capsys, *arguments[:-2], "--dry-run")[0] == 0


def test_links_are_predicted_for_pairs_by_name(folders, monkeypatch, capsys):
    monkeypatch.chdir(folders)
    command = "train --data web --level link --target existence --negatives both --folds 2 --select mrr --out run"
    assert call(monkeypatch, capsys, *command.split(), *SMALL)[0] == 0
    assert json.loads(Path("run/schema.json").read_text())["categories"]["kind"] == ["hub", "leaf"]
    write(folders, {"pairs.csv": "source,target\nn3,n5\nn5,n3\nn0,n1\n"})
    code, _, stderr = call(monkeypatch, capsys, "predict", "run", "web", "--pairs", "pairs.csv", "--out", "a.csv")
    assert code == 0, stderr
    with Path("a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["source"], row["target"]) for row in rows] == [("n3", "n5"), ("n5", "n3"), ("n0", "n1")]
    assert {row["graph"] for row in rows} == {"web.csv"}
    found = [float(row["existence_probability"]) for row in rows]
    for graph in ("web", "web.csv", "0"):  # by file, or by number
        write(folders, {"named.csv": f"graph,source,target\n{graph},n3,n5\n{graph},n5,n3\n{graph},n0,n1\n"})
        assert call(monkeypatch, capsys, "predict", "run", "web", "--pairs", "named.csv", "--out", "c.csv")[0] == 0
        assert Path("c.csv").read_bytes() == Path("a.csv").read_bytes()
    run = mt.Run("run")
    with pytest.raises(ValueError, match=r"pairs must have the shape \[2, m\]"):
        run.predict("web", [[3, 5], [5, 3], [0, 1]])
    names = run.config.task.data_set.graphs.names
    pairs = [[names.index(f"n{u}") for u in side] for side in ((3, 5, 0), (5, 3, 1))]
    assert run.predict("web", pairs).tolist() == pytest.approx(found, rel=1e-5)
    every = run.predict("web").reshape(30, 30)  # all pairs, source by source
    assert every[tuple(pairs)].tolist() == pytest.approx(found, rel=1e-4) and 0 < float(every.min()) < 1
    for text, message in (
        ("source,target\nn3,n5\nn5,nobody\n", "pairs.csv line 3: web.csv has no node 'nobody'"),
        ("from,to\nn3,n5\n", "no column 'source'"),
    ):
        write(folders, {"pairs.csv": text})
        code, _, stderr = call(monkeypatch, capsys, "predict", "run", "web", "--pairs", "pairs.csv", "--out", "b.csv")
        assert (code, stderr.count("\n"), Path("b.csv").exists()) == (2, 1, False) and message in stderr
    write(folders / "other", {"web.csv": EDGES, "nodes.csv": NODES.replace("n4,out,hub", "n4,out,bridge")})
    code, _, stderr = call(monkeypatch, capsys, "predict", "run", "other", "--out", "b.csv")
    assert code == 2 and "node feature 'kind' of node 'n4' of graph 0" in stderr and "is 'bridge'" in stderr
    monkeypatch.setattr("magnetite.training.trained.MOST_PAIRS", 800)
    code, _, stderr = call(monkeypatch, capsys, "predict", "run", "web", "--out", "b.csv")
    assert code == 2 and "the graphs have 900 node pairs" in stderr


def links(*rows: str, first: str = "source,target,split") -> str:
    parts = ("train",) * (len(WEB) - 20) + ("valid",) * 10 + ("test",) * 10
    listed = [f"n{u},n{v},{split}" for (u, v), split in zip(WEB, parts, strict=True)]
    return "\n".join([first, *listed, *rows]) + "\n"


SHAPES = {f"g{n}.txt": "a b\n" if n % 2 else "a b\nb c\n" for n in range(9)}
SPLIT = ["train"] * 5 + ["valid"] * 2 + ["test"] * 2
LABELS = ["graph,y,shape,split", *(f"g{n},{n},{'ab'[n % 2]},{SPLIT[n]}" for n in range(9))]
GRAPH, CLASS, LINK = ["--target", "y"], ["--target", "shape", "--kind", "classification"], ["--level", "link"]


def labels(changes: dict[int, str | None]) -> str:
    lines = [changes.get(number, line) for number, line in enumerate(LABELS)]
    return "\n".join(line for line in lines if line is not None) + "\n"


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({**SHAPES, "labels.csv": labels({3: None})}, GRAPH, "labels.csv has no label for g2.txt"),
        ({**SHAPES, "labels.csv": labels({}) + "h,1,a,test\n"}, GRAPH, "line 11: there is no graph file 'h'"),
        ({**SHAPES, "labels.csv": labels({}) + "g1,1,a,test\n"}, GRAPH, "line 11: g1.txt is in line 3 already"),
        (
            {**SHAPES, "labels.csv": labels({}), "splits.json": '{"train": [0, 1], "valid": [1], "test": [2]}'},
            [*GRAPH, "--splits", "splits"],
            "graph 1 is in train and valid",
        ),
        ({**SHAPES, "labels.csv": labels({4: "g3,nan,b,train"})}, GRAPH, "target 'y' of graph 3 (g3.txt) is nan"),
        ({**SHAPES, "labels.csv": labels({9: "g8,8,c,test"})}, CLASS, "class 'c' of target 'shape' is in the test"),
        (
            {**SHAPES, "labels.csv": labels({}), "nodes.json": json.dumps(
                [{"graph": f"g{n}", "node": each, "x": [0.5] * (3 if (n, each) == (4, "b") else 2)}
                 for n in range(9) for each in ("ab" if n % 2 else "abc")]
            )},
            GRAPH,
            "'x' has 3 columns, but 2 in the first row",
        ),
        ({"web.csv": EDGES, "links.csv": links("n0,n9,test")}, LINK, "the graph has no edge from 'n0' to 'n9'"),
        ({"web.csv": EDGES, "links.csv": links("n0,n99,test")}, LINK, "web.csv has no node 'n99'"),
        ({"web.csv": EDGES, "links.csv": links("n0,n3,test")}, LINK, "this edge is in line 2 already"),
        ({"web.csv": EDGES, "links.csv": links().replace("test", "")}, LINK, "the test split has no edge"),
        ({"web.csv": EDGES, "links.csv": links().replace("test", "maybe")}, LINK, "maybe"),
        ({"web.csv": EDGES, "links.csv": links(first="from,to,split")}, LINK, "no column 'source'"),
        ({"web.csv": EDGES, "links.csv": links(first="source,target,part")}, LINK, "no column 'split'"),
        ({"web.csv": EDGES}, [*LINK, "--target", "length"], "target of links must be one of existence"),
        ({"web.csv": "source,target\na,b\nb,a\n"}, [*LINK, "--target", "direction"], "no edge to predict"),
    ],
)  # fmt: skip
def test_damaged_folders_are_refused_before_training(tmp_path, monkeypatch, capsys, files, options, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "data", files)
    target = ["--target", "existence"] if options == LINK else []
    code, _, stderr = call(monkeypatch, capsys, "train", "--data", "data", *options, *target, "--out", "run")
    assert code == 2
    assert message in stderr
    assert stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_links_csv_says_which_edges_are_held_out(tmp_path):
    folder = write(tmp_path, {"web.csv": EDGES, "links.csv": links()})
    task = mt.tasks.Supervised(folder, level="link", target="existence", reverse_in_training=True)
    assert task.edge_inputs == {}
    named = task.data_set.graphs
    for split, part in (("valid", WEB[-20:-10]), ("test", WEB[-10:])):
        pairs = task.examples(split).pairs
        asked = pairs.nodes[:, pairs.labels.reshape(-1) == 1].T.tolist()
        assert {(named.names[u], named.names[v]) for u, v in asked} == {(f"n{u}", f"n{v}") for u, v in part}
