import gzip
import json
import shutil
import tracemalloc

import pyarrow as pa
import pytest
import torch

import magnetite as mt
from magnetite.code import blocks as stored
from magnetite.code.blocks import Place
from magnetite.code.code2 import FILES, Code2
from magnetite.code.vocabulary import NONE, UNKNOWN
from magnetite.io import storage

from .code2_folder import compressed, own_functions, pandas_json, write_code2

COUNT = 30


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("code2")
    return folder, write_code2(folder, COUNT)


@pytest.fixture
def damaged(small, tmp_path):
    """A copy, whose files may be changed."""
    return shutil.copytree(small[0], tmp_path / "ogbg_code2")


def content(folder, name: str) -> str:
    return gzip.decompress((folder / name).read_bytes()).decode()


def same(one, other) -> None:
    """Both are equal, apart from whether weights of 1 are stored."""
    left, right = one.tensors(), other.tensors()
    assert left.keys() - {"weights"} == right.keys() - {"weights"}
    assert all(torch.equal(left[name], right[name]) for name in left if name != "weights")
    torch.testing.assert_close(one.edge_weight.double(), other.edge_weight.double())


def names_of(block) -> dict[int, tuple[str, ...]]:
    return dict(zip(block.ids.tolist(), block.words, strict=True))


def test_the_folder_as_a_whole(small):
    data = Code2(small[0])
    assert repr(data) == "Code2(30 functions, 24 train, 3 valid, 3 test)"
    assert (len(data), len(data.types), len(data.attributes)) == (30, 98, 102)
    assert data.places(10) == [*(Place("train", n) for n in range(3)), Place("valid", 0), Place("test", 0)]
    sources = dict(data.sources("train")) | dict(data.sources("valid")) | dict(data.sources("test"))
    assert [sources[number] for number in range(COUNT)] == small[1]
    words = dict(data.words("train"))
    assert list(words) == list(range(24))
    assert " ".join(words[3]) == own_functions()[3][0].strip("_").replace("_", " ").lower()


@pytest.mark.parametrize("graphs", ["ogb", "ogb-directed"])
def test_given_graphs_are_those_that_are_built_from_the_source(small, graphs):
    data = Code2(small[0])
    for block in data.blocks(graphs, size=7):
        assert block.graphs is not None and not block.failed
        assert block.rows.tolist() == list(range(len(block)))
        for number, found in zip(block.ids.tolist(), block.graphs, strict=True):
            if number == COUNT - 1:  # its source is of Python 2
                continue
            kind = graphs.replace("ogb", "ast")
            built = mt.code.build(small[1][number], kind, keep_docstrings=True)
            same(found, built.to_digraphs(data.attributes))


@pytest.mark.parametrize("graphs", ["dataflow", "ast", "ast-directed", "tokens"])
def test_built_graphs_and_functions_that_cannot_be_parsed(small, graphs):
    data = Code2(small[0])
    blocks = list(data.blocks(graphs, size=7))
    assert [block.place for block in blocks] == data.places(7)
    assert sorted(number for block in blocks for number in block.ids.tolist()) == list(range(COUNT))
    for block in blocks:
        for row, found in zip(block.rows.tolist(), block.graphs, strict=True):
            same(found, mt.code.build(small[1][int(block.ids[row])], graphs).to_digraphs(data.attributes))
    last = blocks[-1]
    assert list(last.failed) == [COUNT - 1] and "cannot parse it" in last.failed[COUNT - 1]
    assert names_of(last)[COUNT - 1] == ("show", "all")  # an empty answer of the evaluation
    assert len(last.graphs) == len(last) - 1 == len(last.rows)


def test_a_block_without_any_graph(small):
    data = Code2(small[0])
    block = list(data.blocks("dataflow", ["test"], size=1))[-1]
    assert (len(block), block.graphs, block.rows.tolist(), list(block.failed)) == (1, None, [], [COUNT - 1])


def test_a_builder_that_breaks_on_one_function_does_not_stop_the_others(small, monkeypatch):
    def build(source: str, *args, **options):
        if source == small[1][1]:
            raise IndexError("broken")
        return mt.code.build(source, *args, **options)

    monkeypatch.setattr("magnetite.code.code2.build", build)
    block = next(Code2(small[0]).blocks("dataflow", size=4))
    assert block.failed == {1: "IndexError: broken"} and block.rows.tolist() == [0, 2, 3]


def test_splits_without_functions_and_graphs_of_one_node(tmp_path):
    write_code2(tmp_path, 2, python_2=False)
    compressed(tmp_path / "raw/num-node-list.csv.gz", "1\n1\n")
    compressed(tmp_path / "raw/num-edge-list.csv.gz", "0\n0\n")
    for name in ("edge", "node-feat", "node_is_attributed", "node_dfs_order", "node_depth"):
        text = {"edge": "", "node-feat": "0,0\n0,0\n"}.get(name, "0\n0\n")
        compressed(tmp_path / f"raw/{name}.csv.gz", text)
    data = Code2(tmp_path)
    assert repr(data) == "Code2(2 functions, 1 train, 0 valid, 1 test)"
    one, other = data.blocks("ogb")
    assert (one.place, other.place) == (Place("train", 0), Place("test", 0))
    assert (one.graphs.num_nodes, one.graphs.num_edges) == (1, 0)
    assert [list(data.words(split)) for split in ("valid", "test")] == [[], [(1, other.words[0])]]


def test_nodes_that_are_not_in_depth_first_order(damaged):
    """Next-token edges follow the column of the order, not the numbers of the nodes."""
    compressed(damaged / "raw/num-node-list.csv.gz", "3\n" * COUNT)
    compressed(damaged / "raw/num-edge-list.csv.gz", "2\n" * COUNT)
    compressed(damaged / "raw/edge.csv.gz", "0,1\n0,2\n" * COUNT)
    compressed(damaged / "raw/node-feat.csv.gz", "0,0\n" * 3 * COUNT)
    compressed(damaged / "raw/node_is_attributed.csv.gz", "1\n" * 3 * COUNT)
    compressed(damaged / "raw/node_dfs_order.csv.gz", "0\n2\n1\n" * COUNT)
    compressed(damaged / "raw/node_depth.csv.gz", "0\n1\n1\n" * COUNT)
    block = next(Code2(damaged).blocks("ogb-directed", size=5))
    for graph in block.graphs:
        assert graph.edges.T.tolist() == [[0, 1], [0, 2], [0, 2], [2, 1]]
        assert graph.edge_weight.tolist() == [1, 0.5, 0.5, 1]  # 0 → 2 is there twice, and counts once


def test_a_reader_may_stop_early(small):
    for graphs in ("ogb", "dataflow"):
        blocks = Code2(small[0]).blocks(graphs, size=2)
        next(blocks)
        blocks.close()


def test_a_vocabulary_of_one_s_own(small):
    data = Code2(small[0])
    counted = mt.code.Vocabulary.most_frequent(
        attribute for _, source in data.sources("train") for attribute in mt.code.build(source).attributes
    )
    (block,) = data.blocks("dataflow", ["train"], attributes=counted)
    numbers = block.graphs.node_features["attribute"]
    assert int(numbers.max()) < len(counted) and not (numbers == UNKNOWN).any()
    (given,) = data.blocks("ogb", ["train"], attributes=mt.code.Vocabulary(["self"]))
    assert set(given.graphs.node_features["attribute"].tolist()) == {UNKNOWN, NONE, 2}


def test_splits_whose_numbers_are_mixed(damaged):
    everything = {number: words for block in Code2(damaged).blocks("ogb") for number, words in names_of(block).items()}
    for start, split in enumerate(("train", "valid", "test")):
        text = "".join(f"{n}\n" for n in reversed(range(start, COUNT, 3)))
        compressed(damaged / f"split/project/{split}.csv.gz", text)
    data = Code2(damaged)
    for kind in ("ogb", "dataflow"):
        blocks = list(data.blocks(kind, size=4))
        assert sorted(block.place for block in blocks) == sorted(data.places(4))
        for block in blocks:
            start = ("train", "valid", "test").index(block.place.split)
            assert block.ids.tolist() == list(range(start, COUNT, 3))[block.place.number * 4 :][:4]
            assert all(words == everything[number] for number, words in names_of(block).items())


@pytest.mark.slow
def test_several_processes_give_the_same_blocks(small):
    data = Code2(small[0])
    pairs = zip(data.blocks("dataflow", size=12), data.blocks("dataflow", size=12, workers=2), strict=True)
    for one, other in pairs:
        assert (one.place, one.words, one.failed) == (other.place, other.words, other.failed)
        same(one.graphs, other.graphs)


def test_models_read_the_blocks(small):
    data = Code2(small[0])
    for graphs in ("ogb", "ogb-directed", "dataflow"):
        block = next(data.blocks(graphs, size=4))
        sizes = mt.nn.CodeSizes.of(graphs.replace("ogb", "ast"), len(data.attributes), words=12)
        assert mt.nn.sat_plus_plus(sizes, width=32, layers=1)(block.graphs).shape == (4, 5, 12)


def test_texts_of_a_mapping_are_kept_as_they_are(damaged):
    texts = ["nan", "", "a,b", 'say "x"', "two\nlines", "\t", "__UNK__", "__NONE__", "NULL"]
    quoted = "".join(f'{number},"{text.replace(chr(34), chr(34) * 2)}"\n' for number, text in enumerate(texts))
    compressed(damaged / "mapping/attridx2attr.csv.gz", "attr idx,attr\n" + quoted + "9,a\rb\n")
    assert Code2(damaged).attributes.texts == ("nan", "", "a,b", 'say "x"', "two\nlines", "\t", "NULL", "a\rb")


def cut(path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def lines(folder, name: str, change) -> None:
    compressed(folder / name, "".join(line + "\n" for line in change(content(folder, name).split("\n")[:-1])))


def replaced(row: int, text: str):
    return lambda found: [*found[:row], text, *found[row + 1 :]]


DAMAGE = {
    "edges missing": (("raw/edge.csv.gz", lambda found: found[:-1]), "edge.csv.gz ends after .* rows, but raw/num-"),
    "edges left over": (("raw/edge.csv.gz", lambda found: [*found, "0,1"]), "edge.csv.gz has .* rows, but raw/num-"),
    "nodes missing": (("raw/node-feat.csv.gz", lambda found: found[1:]), "node-feat.csv.gz ends after .* rows"),
    "depths left over": (("raw/node_depth.csv.gz", lambda found: [*found, "1"]), "node_depth.csv.gz has .* rows, but"),
    "fewer counts": (("raw/num-edge-list.csv.gz", lambda found: found[1:]), "num-node-list.csv.gz has 30 rows, but"),
    "a graph without nodes": (("raw/num-node-list.csv.gz", replaced(4, "0")), "line 5: expected at least 1, got 0"),
    "a count that is text": (("raw/num-node-list.csv.gz", replaced(4, "x")), "num-node-list.csv.gz cannot be read"),
    "three columns": (("raw/edge.csv.gz", replaced(4, "0,1,2")), "edge.csv.gz cannot be read"),
    "an empty cell": (("raw/edge.csv.gz", replaced(4, "0,")), "edge.csv.gz cannot be read"),
    "an edge outside": (("raw/edge.csv.gz", replaced(0, "0,9999")), "edge.csv.gz: graph 0 has 0, 9999, expected"),
    "a type outside": (("raw/node-feat.csv.gz", replaced(0, "98,0")), "node-feat.csv.gz: graph 0 has 98, expected"),
    "an attribute below 0": (("raw/node-feat.csv.gz", replaced(0, "0,-1")), "node-feat.csv.gz: graph 0 has -1"),
    "a mark that is 2": (("raw/node_is_attributed.csv.gz", replaced(0, "2")), "node_is_attributed.csv.gz: graph 0"),
    "a label missing": (("raw/graph-label.csv.gz", lambda found: found[:-1]), "graph-label.csv.gz has 29 lines, but"),
    "a label left over": (("raw/graph-label.csv.gz", lambda found: [*found, "x"]), "has more than 30 lines, but"),
    "an empty label": (("raw/graph-label.csv.gz", replaced(6, "")), "graph-label.csv.gz line 7 has no words"),
    "twice in a split": (("split/project/valid.csv.gz", lambda found: [*found, found[0]]), "has graph 24 twice"),
    "in two splits": (("split/project/test.csv.gz", replaced(0, "3")), "test.csv.gz line 1: graph 3 is in train, too"),
    "outside": (("split/project/test.csv.gz", replaced(1, "30")), "line 2: graph 30, but there are graphs 0 to 29"),
    "below 0": (("split/project/test.csv.gz", replaced(1, "-1")), "line 2: graph -1, but there are graphs 0 to 29"),
    "a type missing": (("mapping/typeidx2type.csv.gz", lambda found: [*found[:5], *found[6:]]), "no text for number 4"),
    "a long number": (("mapping/typeidx2type.csv.gz", replaced(3, "9" * 5000 + ",x")), "line 4: expected a new number"),
    "a mapping of one column": (("mapping/attridx2attr.csv.gz", replaced(3, "2")), "line 4: expected a new number"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_files_are_named_in_one_line(damaged, case):
    (name, change), message = DAMAGE[case]
    lines(damaged, name, change)
    with pytest.raises(storage.DamagedFile, match=message) as error:
        list(Code2(damaged).blocks("ogb"))
    assert "\n" not in str(error.value) and str(damaged) in str(error.value)


@pytest.mark.parametrize("name", FILES)
def test_missing_files_are_named(damaged, name):
    (damaged / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"has no file {name}, which OGB's Code2 has"):
        Code2(damaged)


@pytest.mark.parametrize("name", FILES)
def test_truncated_files_are_named(damaged, name):
    cut(damaged / name)
    with pytest.raises(storage.DamagedFile) as error:
        list(Code2(damaged).blocks("dataflow" if "json" in name else "ogb"))
    assert str(damaged / name) in str(error.value) and "\n" not in str(error.value)


SOURCES = {
    "not json": ("hello", "is not a table that pandas wrote"),
    "empty": ("", "is not a table that pandas wrote"),
    "cut off": (pandas_json(["def f(): pass"] * COUNT)[:-30], "is cut off or is not"),
    "lines": ('{"code":"def f(): pass"}\n{"code":"def f(): pass"}', "unknown entry 'code'"),
    "no columns": ('{"data":[["def f(): pass"]]}', "has no columns before its data"),
    "another column": ('{"columns":["text"],"data":[[1]]}', "has no column 'code', but text"),
    "too few": (pandas_json(["def f(): pass"] * (COUNT - 1)), "has 29 sources, but raw/num-node-list has 30"),
    "too many": (pandas_json(["def f(): pass"] * (COUNT + 1)), "has more than 30 sources"),
    "a number": (json.dumps({"columns": ["code"], "index": [0], "data": [[1]]}), "graph 0 is not text, but 1"),
    "a long number": ('{"columns":["code"],"index":[' + "9" * 5000 + "],", "is not valid JSON: Exceeds the limit"),
    "deep": ('{"columns":["code"],"data":[' + "[" * 100_000, "graphidx2code"),
    "ragged": (json.dumps({"columns": ["code"], "index": [0], "data": [[]]}), "row 0 of its data does not have 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", SOURCES)
def test_damaged_sources_are_named_in_one_line(damaged, case):
    text, message = SOURCES[case]
    compressed(damaged / "mapping/graphidx2code.json.gz", text)
    with pytest.raises(storage.DamagedFile, match=message) as error:
        list(Code2(damaged).blocks("dataflow"))
    assert "graphidx2code.json.gz" in str(error.value) and "\n" not in str(error.value)


def test_options_that_do_not_exist(small):
    data = Code2(small[0])
    for call, message in {
        lambda: data.blocks("tree"): "graphs must be one of 'ogb', 'ogb-directed', 'dataflow'",
        lambda: data.blocks(splits=["dev"]): "split must be one of train, valid, test, got 'dev'",
        lambda: data.blocks(size=0): "size must be a positive integer, got 0",
        lambda: data.words("dev"): "split must be one of train, valid, test, got 'dev'",
    }.items():
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("graphs", ["ogb-directed", "dataflow"])
def test_written_blocks_are_the_blocks(small, tmp_path, graphs):
    data = Code2(small[0])
    data.write(tmp_path / "out", graphs, size=10)
    for split in ("train", "valid", "test"):
        pairs = zip(stored.read(tmp_path / "out", split), data.blocks(graphs, [split], size=10), strict=True)
        for kept, block in pairs:
            assert (kept.place, kept.words, kept.failed) == (block.place, block.words, block.failed)
            assert torch.equal(kept.ids, block.ids) and torch.equal(kept.rows, block.rows)
            same(kept.graphs, block.graphs)


def test_an_interrupted_run_is_continued_with_the_same_bytes(small, tmp_path):
    data = Code2(small[0])
    data.write(tmp_path / "whole", "dataflow", size=5)
    seen = []

    def stop(block) -> None:
        seen.append(block.place)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        data.write(tmp_path / "part", "dataflow", size=5, progress=stop)
    with pytest.raises(ValueError, match="no complete split 'train'"):
        next(stored.read(tmp_path / "part", "train"))
    damaged = tmp_path / "part" / seen[1].file
    damaged.write_bytes(damaged.read_bytes()[:-3])
    again = []
    data.write(tmp_path / "part", "dataflow", size=5, progress=lambda block: again.append(block.place))
    assert set(again) == set(data.places(5)) - {seen[0], seen[2]}
    files = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "part").iterdir()} == files
    data.write(tmp_path / "part", "dataflow", size=5, progress=lambda _: pytest.fail("it is complete"))


def test_other_blocks_and_other_folders_are_refused(small, tmp_path):
    data = Code2(small[0])
    data.write(tmp_path / "out", "ogb", size=10)
    with pytest.raises(ValueError, match="holds other blocks \\(graphs ogb instead of dataflow\\)"):
        data.write(tmp_path / "out", "dataflow", size=10)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(ValueError, match=r"other files, such as thesis\.tex"):
        data.write(tmp_path / "mine", "ogb")
    with pytest.raises(ValueError, match=r"has no blocks\.json"):
        next(stored.read(tmp_path / "mine", "train"))
    first = tmp_path / "out" / "train-00000.safetensors"
    shutil.copy(tmp_path / "out" / "train-00001.safetensors", first)
    with pytest.raises(storage.DamagedFile, match=r"is not the block that blocks\.json lists"):
        next(stored.read(tmp_path / "out", "train"))


def peak(folder, graphs: str) -> int:
    """Memory that is needed to read all blocks, in bytes, of Python and of Arrow."""
    data = Code2(folder)
    pool = pa.default_memory_pool()
    most = 0
    tracemalloc.start()
    for _ in data.blocks(graphs, size=10):
        most = max(most, pool.bytes_allocated())
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found + most


@pytest.mark.parametrize("graphs", ["ogb", "ast"])
def test_memory_does_not_grow_with_the_file(tmp_path, graphs, monkeypatch):
    monkeypatch.setattr("magnetite.io.streams.PART", 2**14)
    monkeypatch.setattr("magnetite.code.code2.AT_ONCE", 8)
    write_code2(tmp_path / "one", 10, repeats=6)
    write_code2(tmp_path / "many", 10, repeats=36)
    # The least of several measurements, since imports and caches of other tests are counted where they happen.
    one, many = (min(peak(tmp_path / name, graphs) for _ in range(3)) for name in ("one", "many"))
    assert many < 1.3 * one


@pytest.mark.slow
def test_a_thousand_functions(tmp_path):
    sources = write_code2(tmp_path / "data", 1000)
    data = Code2(tmp_path / "data")
    for graphs in ("ogb", "dataflow"):
        data.write(tmp_path / graphs, graphs, size=64)
        blocks = [block for split in ("train", "valid", "test") for block in stored.read(tmp_path / graphs, split)]
        assert [number for block in blocks for number in block.ids.tolist()] == list(range(1000))
        assert sum(len(block.failed) for block in blocks) == (graphs == "dataflow")
    for block in data.blocks("ogb", size=64):
        for number, found in zip(block.ids.tolist(), block.graphs, strict=True):
            if number < 999:
                same(found, mt.code.build(sources[number], "ast", keep_docstrings=True).to_digraphs(data.attributes))
