"""Data sets of users: each layout is read as it was written, and damage is refused in one line before training."""

import gzip
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite.io.storage import DamagedFile
from magnetite.tasks import Distances, Sorting, Supervised, shards
from magnetite.tasks.datasets import LAYOUTS, DataSet, data_set
from magnetite.tasks.schema import Schema

HLS = Path(__file__).parents[1] / "data" / "hls-dfg"


def refused(task, match: str) -> None:
    """Check that a call is refused in one line."""
    with pytest.raises((ValueError, OSError), match=match) as caught:
        task()
    assert "\n" not in str(caught.value)


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text, encoding="utf-8")
    return folder


def saved(count: int = 12, seed: int = 0) -> mt.Digraphs:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 7, count).tolist()
    graphs = mt.Digraphs.from_edges([np.stack([np.arange(n - 1), np.arange(1, n)]) for n in sizes], sizes)
    return graphs.replace(
        node_features={"x": torch.randn(sum(sizes), 40), "kind": torch.randint(0, 3, (sum(sizes),))},
        edge_features={"e": torch.rand(graphs.num_edges)},
        graph_features={"y": torch.randn(count), "z": torch.randn(count)},
    )


def equal(first: mt.Digraphs, second: mt.Digraphs) -> bool:
    one, two = first.tensors(), second.tensors()
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


# Digraphs saved by us


def test_a_saved_file_and_a_folder_of_several_are_the_same_graphs(tmp_path):
    graphs = saved()
    graphs.save(tmp_path / "all.safetensors")
    for number, part in enumerate((graphs[:5], graphs[5:9], graphs[9:])):
        part.save(tmp_path / "parts" / f"{number:02d}.safetensors")
    for path in (tmp_path / "all.safetensors", tmp_path / "parts", str(tmp_path / "parts")):
        found = data_set(path)
        assert equal(found.graphs, graphs) and found.source == str(Path(path).resolve())
    assert data_set(tmp_path / "parts").fingerprint == DataSet(graphs).fingerprint
    task = Supervised(tmp_path / "parts", target="y")
    assert task.options()["data"] == str(tmp_path / "parts") and task.node_inputs == {"x": 40, "kind": (4,)}


@pytest.mark.parametrize("form", ["json", "marked json", "named json", "csv", "csv.gz", "split"])
def test_splits_beside_saved_graphs_are_used(form, tmp_path):
    saved().save(tmp_path / "g.safetensors")
    ids = {"train": [0, 1, 2, 3, 4, 5, 6, 11], "valid": [7, 8], "test": [10, 9]}
    if form.endswith("json"):
        content = ids if form == "json" else {"mine": ids}
        encoding = "utf-8-sig" if form == "marked json" else "utf-8"  # with a byte order mark, as Windows writes it
        (tmp_path / "splits.json").write_text(json.dumps(content), encoding=encoding)
    else:
        folder, extension = ("split", "csv") if form == "split" else ("splits", form)
        write(
            tmp_path,
            {f"{folder}/mine/{part}.{extension}": "".join(f"{i}\n" for i in ids[part]) for part in ids},
        )
    masks = Supervised(tmp_path, target="y").targets.masks
    assert {part: mask.nonzero().squeeze(1).tolist() for part, mask in masks.items()} == {
        part: sorted(each) for part, each in ids.items()
    }
    if form != "json":
        assert torch.equal(Supervised(tmp_path, target="y", splits="mine").targets.masks["test"], masks["test"])
    refused(lambda: Supervised(tmp_path, target="y", splits="other"), "unknown split 'other'")


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_unsigned_features_become_numbers_that_can_be_computed_with(dtype):
    kinds = torch.arange(3)
    graph = mt.Digraphs.from_edges([[0, 1], [1, 2]]).replace(node_features={"kind": kinds.to(dtype)})
    found = data_set(graph).graphs.node_features["kind"]
    assert found.dtype == torch.int64 and found.tolist() == kinds.tolist()


def test_unsigned_features_beyond_int64_are_refused():
    kinds = torch.from_numpy(np.array([1, 2**63, 3], np.uint64))
    graph = mt.Digraphs.from_edges([[0, 1], [1, 2]]).replace(node_features={"kind": kinds})
    with pytest.raises(ValueError, match=r"'kind' has numbers of 2\^63 and above"):
        data_set(graph)


def test_of_several_splits_one_must_be_chosen(tmp_path):
    saved().save(tmp_path / "g.safetensors")
    ids = {"train": list(range(10)), "valid": [10], "test": [11]}
    (tmp_path / "splits.json").write_text(json.dumps({"a": ids, "b": {**ids, "valid": [11], "test": [10]}}))
    refused(lambda: Supervised(tmp_path), "several splits: choose one of a, b")
    assert Supervised(tmp_path, splits="b").targets.masks["test"].nonzero().tolist() == [[10]]


def test_other_splits_are_other_data(tmp_path):
    saved().save(tmp_path / "g.safetensors")
    before = Supervised(tmp_path)
    (tmp_path / "splits.json").write_text(json.dumps({"train": list(range(10)), "valid": [10], "test": [11]}))
    refused(lambda: Supervised(tmp_path, fingerprint=before.fingerprint), "not those of the run")
    given = {"train": list(range(10)), "valid": [10], "test": [11]}
    graphs = saved()
    first = Supervised(graphs, splits=given)
    refused(
        lambda: Supervised(graphs, splits={**given, "valid": [11], "test": [10]}, fingerprint=first.fingerprint),
        "not those of the run",
    )
    assert Supervised(graphs, splits=given, fingerprint=first.fingerprint).fingerprint == first.fingerprint


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"train": [0, 0, 1], "valid": [2], "test": [3]}', "train split has id 0 twice"),
        ('{"train": [0, 1], "valid": [1], "test": [3]}', "graph 1 is in train and valid"),
        ('{"train": [0, 99], "valid": [2], "test": [3]}', "has id 99, but ids go from 0 to 11"),
        ('{"train": [0, -1], "valid": [2], "test": [3]}', "has id -1"),
        ('{"train": [0], "valid": [], "test": [3]}', "valid split has no graph"),
        ('{"train": [0], "valid": [1]}', "splits must have train, valid and test"),
        ('{"train": [0.5], "valid": [1], "test": [2]}', "list of whole numbers"),
        ('{"train": 3}', "list of whole numbers"),
        ("[1, 2]", "must hold an object"),
        ('{"mine": {"training": [1]}}', "'mine' must have lists of ids"),
        ('{"train": [0', "splits.json cannot be read"),
    ],
)
def test_damaged_split_files_are_refused(text, match, tmp_path):
    saved().save(tmp_path / "g.safetensors")
    (tmp_path / "splits.json").write_text(text)
    refused(lambda: Supervised(tmp_path), match)


@pytest.mark.parametrize(("text", "match"), [("0\nx\n", "line 2"), ("0,1\n", "2 columns"), ("0\n1.5\n", "line 2")])
def test_damaged_split_tables_name_the_line(text, match, tmp_path):
    saved().save(tmp_path / "g.safetensors")
    write(tmp_path, {"splits/a/train.csv": text, "splits/a/valid.csv": "1\n", "splits/a/test.csv": "2\n"})
    refused(lambda: Supervised(tmp_path), rf"train.csv.*{match}")


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    graphs = saved()
    graphs[:5].save(tmp_path / "a.safetensors")
    for change, match in (
        ({"x": torch.randn(100, 41), "kind": graphs.node_features["kind"]}, r"b.safetensors: .*'x' have 41 columns"),
        ({"x": graphs.node_features["x"]}, "has the node features x, but a.safetensors has kind, x"),
        ({"x": graphs.node_features["x"].round().long(), "kind": graphs.node_features["kind"]}, "'x' are torch.int64"),
    ):
        rows = {name: values[: graphs.num_nodes] for name, values in change.items()}
        if "kind" in rows and rows["x"].shape[0] != graphs.num_nodes:
            rows["x"] = torch.randn(graphs.num_nodes, 41)
        graphs.replace(node_features=rows)[5:].save(tmp_path / "b.safetensors")
        refused(lambda: Supervised(tmp_path), match)
    (tmp_path / "b.safetensors").write_bytes((tmp_path / "a.safetensors").read_bytes()[:-9])
    with pytest.raises(DamagedFile, match=r"b\.safetensors"):
        Supervised(tmp_path)


def test_unknown_folders_list_what_was_found_and_what_is_expected(tmp_path):
    write(tmp_path, {"notes.md": "", "a.py": "", ".hidden": ""})
    refused(lambda: Supervised(tmp_path), "it has a.py, notes.md, expected .*manifest.json.*OGB.*labels.csv.*Digraphs")
    refused(lambda: Supervised(tmp_path / "none"), "does not exist")
    (tmp_path / "empty").mkdir()
    refused(lambda: Supervised(tmp_path / "empty"), "no files")
    refused(lambda: Supervised("memory"), "were in memory")
    assert list(LAYOUTS) == ["encoded", "shards", "ogb", "labelled", "saved", "files"]


# OGB's CSV layout


def test_a_slice_of_real_data_is_read():
    task = Supervised(HLS, target=("dsp", "lut", "ff", "cp"))
    graphs = task.data_set.graphs
    assert len(graphs) == 30 and graphs.node_features["x"].shape == (graphs.num_nodes, 7)
    assert graphs.edge_features["edge_attr"].shape == (graphs.num_edges, 2)
    assert [int(task.targets.masks[split].sum()) for split in ("train", "valid", "test")] == [20, 5, 5]
    assert task.targets.values.shape == (30, 4) and task.schema().edge_features == {"edge_attr": 2}
    lines = gzip.decompress((HLS / "raw/edge.csv.gz").read_bytes()).decode().split()
    assert graphs.edges.T.tolist() == [list(map(int, line.split(","))) for line in lines]
    assert graphs.sizes.tolist() == list(
        map(int, gzip.decompress((HLS / "raw/num-node-list.csv.gz").read_bytes()).split())
    )


OGB = {
    "num-node-list.csv": "3\n2\n1\n2\n",
    "num-edge-list.csv": "2\n1\n0\n1\n",
    "edge.csv": "0,1\n1,2\n1,0\n0,1\n",
    "node-feat.csv": "".join(f"{i % 3},{i}\n" for i in range(8)),
    "edge-feat.csv": "0.5\n1\n2\n3\n",
    "graph-label.csv": "1.5\n2\n3\n4\n",
    "node-label.csv": "".join(f"{i % 2}\n" for i in range(8)),
}
THREE = {"splits": {"train": [0, 1], "valid": [2], "test": [3]}}


@pytest.mark.parametrize("place", ["", "raw/"])
@pytest.mark.parametrize("extension", ["", ".gz"])
def test_ogb_folders_with_and_without_compression(place, extension, tmp_path):
    write(tmp_path, {f"{place}{name}{extension}": text for name, text in OGB.items()})
    found = data_set(tmp_path)
    graphs = found.graphs
    assert graphs.sizes.tolist() == [3, 2, 1, 2] and graphs.edges.tolist() == [[0, 1, 1, 0], [1, 2, 0, 1]]
    assert graphs.node_features["x"].dtype == torch.int64 and graphs.node_features["x"].shape == (8, 2)
    assert graphs.edge_features["edge_attr"].dtype == torch.float32 and graphs.edge_features["edge_attr"].shape == (
        4,
        1,
    )
    assert graphs.graph_features["y"].tolist() == [1.5, 2, 3, 4] and found.labels == ("y",)


def test_node_labels_are_no_inputs_unless_named(tmp_path):
    write(tmp_path, OGB)
    assert list(Supervised(tmp_path, **THREE).node_inputs) == ["x"]
    assert list(Supervised(tmp_path, features=("x", "y"), **THREE).node_inputs) == ["x", "y"]
    nodes = Supervised(tmp_path, level="node", kind="classification", **THREE)
    assert list(nodes.node_inputs) == ["x"] and nodes.targets.classes == (0, 1)


def test_ogb_columns_with_names_are_features_of_their_own(tmp_path):
    more = {"node-feat.csv": "kind,size\n" + "".join(f"{i % 3},{i}.5\n" for i in range(8)), "node_year.csv": "7\n" * 8}
    write(tmp_path, {**OGB, **more, "node-feat-flag.csv": "true\n" * 4 + "false\n" * 4})
    features = data_set(tmp_path).graphs.node_features
    assert set(features) == {"kind", "size", "node_year", "flag", "y"}
    assert features["kind"].dtype == torch.int64 and features["size"].dtype == torch.float32
    assert features["flag"].dtype == torch.bool
    write(tmp_path, {"node_year.csv": "7.5\n" * 7 + "1e39\n"})
    assert data_set(tmp_path).graphs.node_features["node_year"].dtype == torch.float64
    refused(lambda: Supervised(tmp_path, **THREE), "'node_year' has the value 1e\\+39, beyond single precision")


def test_an_ogb_folder_with_a_single_graph(tmp_path):
    files = {
        "num-node-list.csv": "5\n",
        "num-edge-list.csv": "2\n",
        "edge.csv": "0,1\n4,3\n",
        "node-label.csv": "0\n1\n0\n1\n1\n",
    }
    files |= {"split/time/train.csv": "0\n1\n4\n", "split/time/valid.csv": "2\n", "split/time/test.csv": "3\n"}
    task = Supervised(write(tmp_path, files), level="node", kind="classification")
    assert len(task.data_set.graphs) == 1 and task.targets.masks["train"].tolist() == [True, True, False, False, True]


def test_an_ogb_folder_without_any_edge(tmp_path):
    write(tmp_path, {"num-node-list.csv": "5\n1\n", "num-edge-list.csv": "0\n0\n", "edge.csv": ""})
    assert data_set(tmp_path).graphs.num_edges == 0


@pytest.mark.parametrize("extension", ["", ".gz"])
@pytest.mark.parametrize("count", [10**9, 2**63 - 1])
def test_huge_counts_in_small_ogb_folders_are_refused(count, extension, tmp_path):
    files = {"num-node-list.csv": f"{count}\n{count}\n3\n", "num-edge-list.csv": "1\n1\n0\n", "edge.csv": "0,1\n" * 2}
    write(tmp_path, {f"{name}{extension}": text for name, text in files.items()})
    total = 2 * count + 3
    refused(lambda: data_set(tmp_path), f"num-node-list.csv{extension} has {total} nodes in all, but 2 edges")
    write(tmp_path, {f"num-node-list.csv{extension}": "1000000\n2\n3\n"})
    assert data_set(tmp_path).graphs.num_nodes == 1_000_005
    write(tmp_path, {f"num-edge-list.csv{extension}": f"{2**63 - 1}\n{2**63 - 1}\n4\n"})  # 2 in 64 bits
    refused(lambda: data_set(tmp_path), f"has 2 rows, but num-edge-list has {2**64 + 2} edges")


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("num-node-list.csv", "3\n2\n1\n", "num-node-list has 3 lines, but num-edge-list has 4"),
        ("num-node-list.csv", "3\n2\n0\n3\n", "num-node-list.csv line 3: expected at least 1, got 0"),
        ("num-node-list.csv", "3\n2\n\n2\n", "num-node-list.csv line 3: expected a whole number, got nothing"),
        ("num-node-list.csv", "3\n2\nx\n2\n", "num-node-list.csv line 3: expected a number, got 'x'"),
        ("num-node-list.csv", "3\n2\n1.5\n2\n", "line 3: expected a whole number, got 1.5"),
        ("num-node-list.csv", "3\n2\n1\n3\n", "has 8 rows, but num-node-list has 9 nodes"),
        ("num-edge-list.csv", "2\n1\n0\n2\n", "edge.csv has 4 rows, but num-edge-list has 5 edges"),
        ("edge.csv", "0,1\n1,3\n1,0\n0,1\n", "edge.csv line 2: edge 1 → 3, but graph 0 has nodes 0 to 2"),
        ("edge.csv", "0,1\n1,2\n1,0\n0,7\n", "edge.csv line 4: edge 0 → 7, but graph 3 has nodes 0 to 1"),
        ("edge.csv", "0,1\n1,2\n1,0\n0,-1\n", "edge.csv line 4"),
        ("edge.csv", "0,1\n1\n1,0\n0,1\n", "edge.csv line 2 has 1 columns, but the first line has 2"),
        ("edge.csv", "0,1,2\n" * 4, "edge.csv has 3 columns"),
        ("node-feat.csv", "0,1\n" * 7, "node-feat.csv has 7 rows"),
        ("node-feat.csv", "0,1\n" * 6 + "0,\n0,1\n", "node-feat.csv line 7: column 2 is empty"),
        ("node-feat.csv", "0,1\n" * 6 + "0,1,2\n0,1\n", "node-feat.csv line 7 has 3 columns"),
        ("node-feat.csv", "0,1\n" * 6 + "0,inf\n0,1\n", "node-feat.csv line 7: column 2 is inf"),
        ("graph-label.csv", "1\n2\n3\n", "graph-label.csv has 3 rows"),
        ("graph-label.csv", "1\n2\nnan\n4\n", "target 'y' of graph 2 is nan"),
        ("graph-label.csv", "1\n2\n\n4\n", "target 'y' of graph 2 is nan"),
        ("graph-label.csv.gz", "1\n2\n3\n4\n", "another file has a graph label 'y'"),
        ("graph-label-a.csv", "1\n", "graph-label-a.csv has 1 rows"),
        ("split/s/train.csv", "0\n1\n1\n", "has id 1 twice"),
    ],
)
def test_damaged_ogb_folders_are_refused(name, text, match, tmp_path):
    splits = {"split/s/train.csv": "0\n1\n", "split/s/valid.csv": "2\n", "split/s/test.csv": "3\n"}
    write(tmp_path, {**OGB, **splits, name: text})
    refused(lambda: Supervised(tmp_path), match)


def test_a_truncated_file_is_refused_by_name(tmp_path):
    shutil.copytree(HLS, tmp_path / "hls")
    path = tmp_path / "hls/raw/edge.csv.gz"
    path.write_bytes(path.read_bytes()[:-50])
    refused(lambda: Supervised(tmp_path / "hls", target="dsp"), "edge.csv.gz cannot be read")
    path.unlink()
    refused(lambda: Supervised(tmp_path / "hls", target="dsp"), "has no edge.csv or edge.csv.gz")


# Graph files with tables

GRAPHS = {
    "a.csv": "source,target\nu,v\nv,w\n",
    "b.txt": "0 1\n1 2\n2 3\n",
    "c.json": '{"directed": true, "nodes": [{"id": "p"}, {"id": "q"}], "links": [{"source": "p", "target": "q"}]}',
    "d.edges": "x y\n",
}
LABELS = "graph,y,kind,split\nd,4,good,test\na.csv,1.5,bad,train\nb,2,good,train\nc,3,bad,valid\n"
NODES = "graph,node,size,role\n" + "".join(
    f"{graph},{node},{number}.5,{'in' if number % 2 else 'out'}\n"
    for number, (graph, node) in enumerate(
        [("c", "q"), ("c", "p"), *(("a", n) for n in "uvw"), *(("b", n) for n in "0123"), ("d", "x"), ("d", "y")]
    )
)


def test_graph_files_with_labels_in_any_order(tmp_path):
    task = Supervised(write(tmp_path, {**GRAPHS, "labels.csv": LABELS}))
    assert task.data_set.names == ("a.csv", "b.txt", "c.json", "d.edges")
    assert task.targets.values.squeeze(1).tolist() == [1.5, 2, 3, 4]
    assert [task.targets.masks[split].tolist().index(True) for split in ("train", "valid", "test")] == [0, 2, 3]
    moved = tmp_path / "moved"
    write(moved, {**{f"graphs/{name}": text for name, text in GRAPHS.items()}, "labels.csv": LABELS})
    assert Supervised(moved).fingerprint == task.fingerprint


@pytest.mark.parametrize("form", [".tsv", ".csv.gz", ";", ".parquet", ".json", "columns"])
def test_labels_in_every_format_are_the_same(form, tmp_path):
    expected = Supervised(write(tmp_path / "csv", {**GRAPHS, "labels.csv": LABELS})).fingerprint
    folder = write(tmp_path / "other", GRAPHS)
    header, *rows = [line.split(",") for line in LABELS.split()]
    records = [dict(zip(header, [row[0], float(row[1]), *row[2:]], strict=True)) for row in rows]
    columns = {name: [record[name] for record in records] for name in header}
    if form == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table(columns), folder / "labels.parquet")
    elif form in (".json", "columns"):
        (folder / "labels.json").write_text(json.dumps(records if form == ".json" else columns))
    else:
        separator = {".tsv": "\t", ";": ";"}.get(form, ",")
        name = f"labels{form if form.startswith('.') else '.csv'}"
        write(folder, {name: LABELS.replace(",", separator)})
    assert Supervised(folder).fingerprint == expected


def test_text_classes_come_back_as_names(tmp_path):
    labels = "graph,kind\n" + "".join(f"g{i},{('low', 'high')[i % 2]}\n" for i in range(20))
    files = {f"g{i}.txt": "a b\n" + "b c\n" * (i % 2) for i in range(20)}
    task = Supervised(write(tmp_path, {**files, "labels.csv": labels}), target="kind", kind="classification")
    assert task.targets.classes == ("high", "low")
    schema = Schema.from_dict(json.loads(json.dumps(task.schema().to_dict())))
    assert schema.answers(torch.tensor([[2.0, 1.0], [0.0, 1.0]])) == ["high", "low"]
    table = schema.table(torch.tensor([[2.0, 1.0], [0.0, 1.0]]))
    assert list(table) == ["kind", "kind_probability_high", "kind_probability_low"]
    names = [task.targets.classes[number] for number in task.targets.values.tolist()]
    by_file = dict(line.split(",") for line in labels.split()[1:])
    assert names == [by_file[Path(name).stem] for name in task.data_set.names]


@pytest.mark.parametrize("kind", ["regression", "multilabel"])
def test_text_is_no_number_to_predict(kind, tmp_path):
    folder = write(tmp_path, {**GRAPHS, "labels.csv": LABELS})
    refused(lambda: Supervised(folder, target="kind", kind=kind), f"'kind' is text .'bad', 'good', ….*{kind} needs num")


@pytest.mark.parametrize(
    "change", [lambda text: text, lambda text: text.replace("in", "0").replace("out", "1")], ids=["text", "numbers"]
)
def test_a_column_of_both_tables_is_not_text_in_one_of_them(change, tmp_path):
    nodes = change(NODES).replace("role", "kind")
    folder = write(tmp_path, {**GRAPHS, "labels.csv": LABELS, "nodes.csv": nodes})
    refused(lambda: Supervised(folder), "two tables have a column 'kind', one of text: rename one")


def test_class_numbers_that_floats_do_not_tell_apart_are_refused(tmp_path):
    labels = LABELS.replace("1.5", "1").replace(",4,", f",{2**64},").replace(",3,", f",{2**65},")
    folder = write(tmp_path, {**GRAPHS, "labels.csv": labels})
    refused(lambda: Supervised(folder, kind="classification"), "has the class 3.689348.*19, beyond the whole numbers")


PAIRS = """graph,source,target,distance,split
b,0,2,2,train
a.csv,u,w,2,test
b,3,0,-1,valid
c,p,q,1,train
a,v,w,1,train
"""


def test_pairs_have_targets_by_name(tmp_path):
    folder = write(tmp_path, {**GRAPHS, "labels.csv": LABELS, "pairs.csv": PAIRS})
    task = Supervised(folder, target="distance", level="pair")
    pairs = task.data_set.pairs
    assert pairs.counts.tolist() == [2, 2, 1, 0] and pairs.labels.tolist() == [2, 1, 2, -1, 1]
    assert pairs.nodes.tolist() == [[0, 1, 0, 3, 0], [2, 2, 2, 0, 1]]
    assert task.targets.masks["valid"].tolist() == [False, False, False, True, False]
    assert [len(task.examples(split)) for split in ("train", "valid", "test")] == [3, 1, 1]
    assert Supervised(folder).targets.masks["valid"].tolist() == [False, False, True, False]  # of the graphs
    words = PAIRS.replace("2,t", "far,t").replace("1,", "near,").replace("-near", "far")
    classes = write(tmp_path / "words", {**GRAPHS, "pairs.csv": words})
    assert Supervised(classes, target="distance", level="pair", kind="classification").targets.classes == (
        "far",
        "near",
    )


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (("distance", "y"), "have the target 'y', got 'distance'"),
        (("b,3,0", "b,3,9"), "pairs.csv line 4: b.txt has no node '9'"),
        (("c,p,q", "e,p,q"), "pairs.csv line 5: there is no graph file 'e'"),
        (("2,train", ",train"), "target 'distance' of pair 2 .b.txt. is nan"),
        ((",distance", ""), "needs one column with a target"),
    ],
)
def test_damaged_tables_of_pairs_are_refused(change, match, tmp_path):
    text = PAIRS.replace(*change) if change[1] else "\n".join(",".join(line.split(",")[:3]) for line in PAIRS.split())
    folder = write(tmp_path, {**GRAPHS, "pairs.csv": text})
    refused(lambda: Supervised(folder, target="distance", level="pair"), match)


def test_values_beyond_single_precision_are_refused_by_name(tmp_path):
    folder = write(tmp_path, {**GRAPHS, "labels.csv": LABELS, "nodes.csv": NODES.replace(",3.5,", ",1e39,")})
    refused(lambda: Supervised(folder), "node feature 'size' has the value 1e.39, beyond single precision")


def test_encodings_that_a_transform_stored_are_not_features():
    from torch_geometric.data import Data

    from magnetite.transforms import AddDirectedWalkPE, AddMagneticLaplacianPE, AddSVDPE

    data = Data(edge_index=torch.randint(0, 30, (2, 80), generator=torch.Generator().manual_seed(0)), num_nodes=30)
    data.x, data.pos_pe = torch.randn(30, 2), torch.randn(30, 2)
    for transform in (AddMagneticLaplacianPE(3), AddDirectedWalkPE(pairs=True), AddSVDPE(3)):
        data = transform(data)
    for given in (data, [data, data]):
        graphs = data_set(given).graphs
        assert set(graphs.node_features) == {"x", "pos_pe"} and not graphs.graph_features and not graphs.edge_features
    refused(lambda: Supervised(data, target="existence", level="link"), "'pos_pe' is the encoding of all edges")
    assert list(Supervised(data, target="existence", level="link", features=("x",)).node_inputs) == ["x"]


def test_nodes_have_features_and_targets_by_name(tmp_path):
    folder = write(tmp_path, {**GRAPHS, "nodes.csv": NODES})
    splits = {"train": [0, 1], "valid": [2], "test": [3]}
    task = Supervised(folder, target="role", level="node", kind="classification", splits=splits)
    graphs = task.data_set.graphs
    sizes = dict(zip(graphs.names or (), graphs.node_features["size"].tolist(), strict=True))
    assert sizes["q"] == 0.5 and sizes["p"] == 1.5 and sizes["u"] == 2.5 and sizes["y"] == 10.5
    assert task.targets.classes == ("in", "out") and task.node_inputs == {"size": 1}
    task = Supervised(folder, target="size", level="node", splits=splits)
    assert task.node_inputs == {"role": (3,)} and task.schema().categories == {"role": ("in", "out")}
    assert Supervised(folder, target="size", level="node", splits=splits, features=()).node_inputs == {}


def test_one_graph_with_a_table_of_nodes_needs_no_graph_column(tmp_path):
    nodes = "node,x[1],x[0],label,split\n" + "".join(
        f"n{i},{i},{i * 0.5},{'' if i == 9 else 'ab'[i % 2]},{['train', 'train', 'val', 'test', ''][min(i // 2, 4)]}\n"
        for i in range(10)
    )
    edges = "".join(f"n{i} n{i + 1}\n" for i in range(9))
    task = Supervised(
        write(tmp_path, {"net.edges": edges, "nodes.csv": nodes}), target="label", level="node", kind="classification"
    )
    assert [int(task.targets.masks[split].sum()) for split in ("train", "valid", "test")] == [4, 2, 2]
    assert task.targets.classes == ("a", "b") and task.node_inputs == {"x": 2}  # the last label may be missing
    assert task.data_set.graphs.node_features["x"][3].tolist() == [1.5, 3]


def test_both_tables_and_masks_of_nodes(tmp_path):
    header, *lines = NODES.strip().split("\n")
    parts = [f"{line},{('train', 'valid', 'test')[number % 3]}" for number, line in enumerate(lines)]
    split = "\n".join([f"{header},split", *parts])
    folder = write(tmp_path, {**GRAPHS, "labels.csv": LABELS, "nodes.csv": split})
    assert Supervised(folder, features=("size",)).targets.masks["train"].tolist() == [True, True, False, False]
    node = Supervised(folder, target="size", level="node", features=())
    assert node.data_set.graphs.node_features["train_mask"].dtype == torch.bool
    assert [int(node.targets.masks[part].sum()) for part in ("train", "valid", "test")] == [4, 4, 3]


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (LABELS.replace("b,2,good,train\n", ""), "labels.csv has no label for b.txt: add it"),
        ("graph,y\na,1\n", "no label for b.txt and 2 more"),
        (LABELS + "e,1,good,train\n", "labels.csv line 6: there is no graph file 'e'"),
        (LABELS + "a,1,good,train\n", "line 6: a.csv is in line 3 already"),
        (LABELS.replace("b,2,", "b,nan,"), r"target 'y' of graph 1 \(b.txt\) is nan"),
        (LABELS.replace("b,2,", "b,,"), r"target 'y' of graph 1 \(b.txt\) is nan"),
        (LABELS.replace("b,2,", "b,inf,"), r"target 'y' of graph 1 \(b.txt\) is inf"),
        (LABELS.replace("b,2,", "b,two,"), "line 2: column 'y' is '4', but line 4 has the text 'two'"),
        (LABELS.replace("b,2,good,train", "b,2,good"), "line 4 has 3 columns, but the first line 4"),
        (LABELS.replace("valid", "validation"), "line 5: split must be train, valid or test, got 'validation'"),
        (LABELS.replace("valid", "train"), "valid split has no graph"),
        (LABELS.replace("graph,", "name,"), "no column 'graph'"),
        (LABELS.replace("kind", "y"), "two columns 'y'"),
        (LABELS.replace("a.csv,", ","), "line 3: column 'graph' is empty"),
        ("", "labels.csv is empty"),
        ('graph,y\n"a,1\n', "labels.csv cannot be read"),
    ],
)
def test_damaged_labels_are_refused(labels, match, tmp_path):
    refused(lambda: Supervised(write(tmp_path, {**GRAPHS, "labels.csv": labels})), match)


def test_labels_that_may_belong_to_two_files_are_refused(tmp_path):
    files = {**GRAPHS, "a.txt": "0 1\n", "labels.csv": LABELS}
    refused(lambda: Supervised(write(tmp_path, files)), "no label for a.txt")
    write(tmp_path, {"labels.csv": LABELS.replace("a.csv", "a")})
    refused(lambda: Supervised(tmp_path), "line 3: graph 'a' may be a.csv or a.txt")


def test_a_class_that_only_the_test_split_has_is_refused(tmp_path):
    folder = write(tmp_path, {**GRAPHS, "labels.csv": LABELS.replace("d,4,good", "d,4,new")})
    task = {"target": "kind", "kind": "classification"}
    refused(lambda: Supervised(folder, **task), "class 'new' of target 'kind' is in the test")
    write(tmp_path, {"labels.csv": LABELS.replace("d,4,good", "d,4,")})
    refused(lambda: Supervised(folder, **task), r"graph 3 \(d.edges\) is missing")


@pytest.mark.parametrize(
    ("nodes", "match"),
    [
        (NODES.replace("a,v,3.5,in\n", ""), "nodes.csv has no row for node 'v' of a.csv: add it"),
        (NODES + "a,z,1,in\n", "line 13: a.csv has no node 'z'"),
        (NODES + "a,v,1,in\n", "line 13: node 'v' of a.csv is in line 5 already"),
        (NODES + "e,v,1,in\n", "line 13: there is no graph file 'e'"),
        (NODES.replace("graph,node", "graf,node"), "no column 'graph', but there are 4 graphs"),
        (NODES.replace("graph,node", "graph,name"), "no column 'node'"),
        (NODES.replace(",3.5,", ",,"), "node feature 'size' of node 'v' of graph 0 \\(a.csv\\) is not finite"),
        (NODES.replace(",3.5,", ",nan,"), "not finite"),
    ],
)
def test_damaged_node_tables_are_refused(nodes, match, tmp_path):
    folder = write(tmp_path, {**GRAPHS, "labels.csv": LABELS, "nodes.csv": nodes})
    refused(lambda: Supervised(folder, features=("size",)), match)


def test_lists_of_different_widths_are_refused(tmp_path):
    nodes = [{"graph": "d", "node": "x", "f": [1.0, 2.0]}, {"graph": "d", "node": "y", "f": [1.0]}]
    folder = write(tmp_path, {"d.edges": "x y\n", "nodes.json": json.dumps(nodes)})
    refused(lambda: data_set(folder), "nodes.json row 2: 'f' has 1 columns, but 2 in the first row")


def test_damaged_graph_files_are_refused_by_name(tmp_path):
    folder = write(tmp_path, {**GRAPHS, "labels.csv": LABELS, "b.txt": "0 1 2 3 4\n"})
    refused(lambda: Supervised(folder), "b.txt cannot be read")
    saved().save(folder / "b.safetensors")
    (folder / "b.txt").unlink()
    refused(lambda: Supervised(folder), "b.safetensors has 12 graphs, but labels are given by file")


# PyG data sets by name

MODULE = """
import torch
from torch_geometric.data import Data, InMemoryDataset

def one(i):
    edges = torch.tensor([[0, 1], [1, 2]])
    return Data(x=torch.randn(3, 5), edge_index=edges, y=torch.tensor([float(i)]), train_mask=torch.ones(3, dtype=bool))

class Circuits(InMemoryDataset):
    def __init__(self):
        super().__init__(None)
        self.data, self.slices = self.collate([one(i) for i in range(10)])
    def get_idx_split(self):
        return {"train": torch.arange(8), "valid": torch.tensor([8]), "test": torch.tensor([9])}

class Held:
    circuits = [one(i) for i in range(10)]

circuits = Held.circuits
broken = lambda: 1 / 0
number = 3
def needs(a): return a
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    pytest.importorskip("torch_geometric")
    (tmp_path / "own_circuits.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield "own_circuits"
    sys.modules.pop("own_circuits", None)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["circuits", "Held.circuits", "Circuits"])
def test_pyg_data_sets_by_name(module, name):
    task = Supervised(f"{module}:{name}")
    assert len(task.data_set.graphs) == 10 and task.options()["data"] == f"{module}:{name}"
    assert task.targets.values.squeeze(1).tolist() == list(range(10))
    assert task.data_set.graphs.node_features["train_mask"].dtype == torch.bool and list(task.node_inputs) == ["x"]
    if name == "Circuits":
        assert task.targets.masks["test"].nonzero().tolist() == [[9]]


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("{}:absent", "AttributeError"),
        ("{}:broken", "ZeroDivisionError"),
        ("{}:number", "own_circuits:number gives no data set"),
        ("{}:needs", "TypeError.*missing 1 required"),
        ("no_such_module:x", "ModuleNotFoundError"),
        ("{}:circuits()", "does not exist"),
    ],
)
def test_names_that_give_no_data_set_are_refused(module, name, match):
    before = list(sys.path)
    refused(lambda: Supervised(name.format(module)), match)
    assert sys.path == before


# The output of `magnetite data`


def test_written_sorting_networks_are_a_data_set(tmp_path):
    task = Sorting(train=30, valid=6, test=6, shard_size=10)
    shards.write(task, tmp_path)
    own = Supervised(tmp_path, target="label", kind="classification")
    for split in ("train", "valid", "test"):
        expected, found = task.examples(split).graphs, own.examples(split).graphs
        assert torch.equal(expected.edges, found.edges) and torch.equal(
            expected.graph_features["label"], found.graph_features["target"]
        )
    shards.write(task, tmp_path / "train", ["train"])
    assert len(Supervised(tmp_path / "train", target="label", kind="classification").examples("valid")) == 6


def test_written_distances_are_a_data_set_of_pairs(tmp_path):
    task = Distances(target="reachability", train=20, per_size=2, shard_size=10)
    shards.write(task, tmp_path)
    own = Supervised(tmp_path, target="reachable", level="pair", kind="classification")
    for split in ("train", "valid", "test"):
        expected, found = task.examples(split).query(), own.examples(split).query()
        assert torch.equal(expected.nodes.long(), found.nodes.long())
        assert torch.equal(expected.labels.long(), found.labels.long())


def test_a_damaged_manifest_is_refused(tmp_path):
    shards.write(Sorting(train=10, valid=4, test=4), tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    refused(lambda: Supervised(tmp_path, target="label"), "manifest.json")
