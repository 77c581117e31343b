import json
from collections import Counter

import pytest

from magnetite.code import build
from magnetite.code.corpus import Settings, load, write, writing
from magnetite.code.corpus import index as index_module
from magnetite.code.corpus.index import Index
from magnetite.code.corpus.statistics import check_sums
from magnetite.io.storage import DamagedFile, InUse, locked
from magnetite.workers import local
from tests.code.corpus.fake_index import FakeIndex, module, served, twenty_packages
from tests.workers.test_local import forked

METHOD = '''
class Box:
    @staticmethod
    def __init__(self):
        self.a = 1
        self.b = 2
        self.c = 3

    def countDown(self, n):
        """A docstring
  that is indented less."""
        if n:
            return self.countDown(n - 1)
        return n
'''


@pytest.fixture
def projects(tmp_path):
    """Twelve projects, with a vendored copy, a test, a file that does not parse, and one that cannot be decoded."""
    root = tmp_path / "projects"
    for number in range(10):
        (root / f"project{number}").mkdir(parents=True)
        (root / f"project{number}" / "code.py").write_text(module(f"item{number}", f"save_item{number}"))
        (root / f"project{number}" / "vendored.py").write_text(module("sharedHelper"))
    (root / "project0" / "tests").mkdir()
    (root / "project0" / "tests" / "code.py").write_text(module("tested"))
    (root / "project0" / "old.py").write_text("print 'Python 2'\n")
    (root / "project0" / "bytes.py").write_bytes(b"x = '\xff'\n")
    (root / "project0" / "box.py").write_text(METHOD)
    (root / "alone.py").write_text(module("stands_alone"))
    return root


@pytest.fixture
def index(monkeypatch):
    monkeypatch.setattr(index_module, "PAUSE", 0.0)
    with served(FakeIndex()) as found:
        monkeypatch.setattr(writing, "pip_index", lambda: Index((found.url,)))
        yield found


def test_a_folder(projects, tmp_path):
    corpus = write(projects, tmp_path / "corpus", workers=1)
    assert corpus.complete
    assert corpus.info["projects"]["read"] == 11
    assert corpus.info["files"]["found"] == 25
    assert sorted(corpus.info["files"]["left_out"].values()) == [1, 1, 1]
    left_out = corpus.info["functions"]["left_out"]
    assert left_out["dunder method"] == 1
    assert next(count for reason, count in left_out.items() if reason.startswith("duplicate")) == 9
    assert len(corpus) == corpus.info["functions"]["found"] - 10 == 23
    assert {entry[1] for entry in corpus.info["problems"]} == {"project0/old.py", "project0/bytes.py"}
    names = Counter(function.name for function in corpus.functions())
    assert names["sharedHelper"] == 1
    assert not (tmp_path / "corpus" / writing.UNFINISHED).exists()
    check_sums(corpus.info)


def test_rows_give_the_graphs_of_their_hashes(projects, tmp_path):
    corpus = load(write(projects, tmp_path / "corpus", workers=1).folder)
    functions = list(corpus.functions())
    for function in functions:
        graph = function.build()
        assert (graph.hash, len(graph)) == (function.dataflow, function.nodes)
        assert function.build(kind="ast").hash == function.sequential
    method = next(function for function in functions if function.method)
    assert (method.name, method.words, method.line) == ("countDown", ["count", "down"], 9)
    assert (method.project, method.path, method.licence) == ("project0", "project0/box.py", "unknown")
    assert "countDown" not in method.build().attributes
    assert method.dataflow == build(METHOD, name="Box.countDown").hash


def test_projects_are_never_split(projects, tmp_path):
    corpus = write(projects, tmp_path / "corpus", Settings(shares=(0.4, 0.3, 0.3), seed=3), workers=1)
    splits = {split: {function.project for function in corpus.functions(split)} for split in ("train", "valid", "test")}
    assert all(splits.values())
    assert sum(map(len, splits.values())) == len(set().union(*splits.values()))
    assert {function.split for function in corpus.functions("valid")} == {"valid"}
    with pytest.raises(ValueError, match="split must be one of train, valid, test, got 'dev'"):
        next(corpus.functions("dev"))


def test_limits_are_counted(projects, tmp_path):
    corpus = write(projects, tmp_path / "corpus", Settings(per_project=1, nodes=20), workers=1)
    reasons = corpus.info["functions"]["left_out"]
    assert reasons["graph of more than 20 nodes"] >= 1
    assert max(Counter(function.project for function in corpus.functions()).values(), default=0) <= 1
    check_sums(corpus.info)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_any_number_of_processes_gives_the_same(projects, tmp_path, monkeypatch):
    monkeypatch.setattr(local, "process_pool", forked)
    one, two = (write(projects, tmp_path / f"corpus{workers}", workers=workers) for workers in (1, 2))
    assert {**one.info, "shards": None} == {**two.info, "shards": None}


def test_an_interrupted_corpus_is_continued(projects, tmp_path, monkeypatch):
    whole = write(projects, tmp_path / "whole", workers=1)

    def interrupt(progress):
        if progress.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(projects, tmp_path / "corpus", workers=1, progress=interrupt)
    kept = sorted((tmp_path / "corpus" / writing.UNFINISHED / "projects").iterdir())
    assert len(kept) == 5
    kept[0].write_bytes(kept[0].read_bytes()[:-20])  # damaged: read again
    read = []
    keep = writing._keep
    monkeypatch.setattr(writing, "_keep", lambda *args: (read.append(args[1].name), keep(*args))[1])
    corpus = write(projects, tmp_path / "corpus", workers=1)
    assert len(read) == 7
    assert corpus.info == whole.info


def test_a_complete_corpus_is_kept(projects, tmp_path, monkeypatch):
    corpus = write(projects, tmp_path / "corpus", workers=1)
    monkeypatch.setattr(writing, "_read_all", None)
    assert write(projects, tmp_path / "corpus").info == corpus.info
    with pytest.raises(ValueError, match="holds another corpus"):
        write(projects, tmp_path / "corpus", Settings(seed=1))


def test_a_damaged_corpus(projects, tmp_path):
    corpus = write(projects, tmp_path / "corpus", workers=1)
    shard = corpus.folder / "functions-00000.parquet"
    content = shard.read_bytes()
    shard.write_bytes(content[:-1])
    with pytest.raises(DamagedFile, match="does not match its checksum"):
        load(corpus.folder)
    assert write(projects, corpus.folder, workers=1).info == corpus.info
    shard.unlink()
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load(corpus.folder)


@pytest.mark.parametrize("origin", ["missing", "empty", "missing.tsv"])
def test_rejected_origins(tmp_path, origin):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"is not a folder|has no Python files|cannot be read"):
        write(tmp_path / origin, tmp_path / "corpus", workers=1)
    assert not (tmp_path / "corpus").exists()


def test_a_folder_with_other_files_is_left_alone(projects, tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "thesis.tex").touch()
    with pytest.raises(ValueError, match=r"has other files, such as thesis\.tex"):
        write(projects, tmp_path / "corpus", workers=1)
    (tmp_path / "corpus" / "thesis.tex").unlink()
    with locked(tmp_path / "corpus" / ".magnetite.lock", "it"), pytest.raises(InUse):
        write(projects, tmp_path / "corpus", workers=1)


def test_many_shards(projects, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "SHARD", 4)
    corpus = write(projects, tmp_path / "corpus", workers=1)
    assert [entry["functions"] for entry in corpus.info["shards"].values()] == [4, 4, 4, 4, 4, 3]
    assert len(list(load(corpus.folder).functions())) == 23


def test_twenty_packages_and_their_damages(index, tmp_path):
    recipe, out, sentinel = tmp_path / "recipe.tsv", tmp_path / "corpus", tmp_path / "executed"
    recipe.write_text(twenty_packages(index, sentinel))
    corpus = write(recipe, out, workers=1)
    projects = corpus.info["projects"]
    assert (projects["found"], projects["read"]) == (22, 12)
    assert projects["left_out"] == {"licence not permissive (GPL)": ["copyleft"]}
    reasons = {
        "damaged": "damaged download: damaged-1.0-py3-none-any.whl does not match its sha256",
        "truncated": "damaged download: truncated-1.0-py3-none-any.whl has 50 instead of",
        "too-long": "damaged download: too_long-1.0-py3-none-any.whl has more than",
        "vanished": "no longer in the index: no index offers vanished-1.0-py3-none-any.whl",
        "yanked": "no longer in the index: no index offers yanked-1.0-py3-none-any.whl",
        "zip-bomb": "it grows without bounds when it is unpacked (decompression bomb)",
        "tar-bomb": "it grows without bounds when it is unpacked (decompression bomb)",
        "program": "its name does not end with one of .whl",
        "not-zip": "it is not a valid .whl archive",
    }
    assert projects["failed"].keys() == reasons.keys()
    for name, reason in reasons.items():
        assert reason in projects["failed"][name]
    assert corpus.info["files"]["left_out"] == {"unsafe name in the archive": 3, "link": 1}
    names = {function.name for function in load(out).functions()}
    assert {"parse_again", "stay_here", "follow", "read_item0", "write_item8"} <= names
    assert not names & {"climb", "absolute", "back", "boom", "share_alike", "load_table"}
    assert not corpus.complete
    assert not sentinel.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"recipe.tsv", "corpus"}
    check_sums(corpus.info)


def test_a_second_run_fetches_what_failed(index, tmp_path):
    recipe, out = tmp_path / "recipe.tsv", tmp_path / "corpus"
    recipe.write_text(twenty_packages(index, tmp_path / "executed"))
    write(recipe, out, workers=1)
    before = index.requests.copy()
    index.add("vanished", "vanished-1.0-py3-none-any.whl", index.files["good_1-1.0-py3-none-any.whl"][0])
    good = index.files["damaged-1.0-py3-none-any.whl"][0]
    index.files["damaged-1.0-py3-none-any.whl"] = [good]
    corpus = write(recipe, out, workers=1)
    asked = index.requests - before
    assert not any("good" in path or "climbing" in path or "copyleft" in path for path in asked)
    assert any("damaged" in path for path in asked)
    assert not corpus.complete


def test_an_interrupted_recipe_is_continued(index, tmp_path):
    recipe = tmp_path / "recipe.tsv"
    names = [f"good-{number}" for number in range(9)]
    recipe.write_text(twenty_packages(index, tmp_path / "executed"))
    whole = write(recipe, tmp_path / "whole", workers=1, packages=names)
    assert whole.complete
    index.requests.clear()
    seen = []

    def interrupt(progress):
        seen.append(progress.project)
        if len(seen) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(recipe, tmp_path / "corpus", workers=1, packages=names, progress=interrupt)
    corpus = write(recipe, tmp_path / "corpus", workers=1, packages=names)
    assert json.dumps(corpus.info) == json.dumps(whole.info)
    files = {path: count for path, count in index.requests.items() if path.startswith("/files/")}
    assert len(files) == 9
    assert all(files[path] == 1 for path in files if any(name.replace("-", "_") in path for name in seen))
    assert not (tmp_path / "corpus" / writing.UNFINISHED).exists()


def test_downloads_are_kept_where_the_user_says(index, tmp_path, monkeypatch):
    recipe, kept = tmp_path / "recipe.tsv", tmp_path / "kept"
    recipe.write_text(twenty_packages(index, tmp_path / "executed"))
    write(recipe, tmp_path / "one", workers=1, packages=["good-1"], downloads=kept)
    assert [path.name for path in kept.iterdir()] == ["good_1-1.0-py3-none-any.whl"]
    index.requests.clear()
    monkeypatch.setattr(writing, "pip_index", None)  # not even pip is asked
    assert write(recipe, tmp_path / "other", workers=1, packages=["good-1"], downloads=kept).complete
    assert not index.requests


def test_packages_of_a_folder(tmp_path):
    with pytest.raises(ValueError, match="packages can be chosen from a recipe only"):
        write("stdlib", tmp_path / "corpus", packages=["json"])


@pytest.mark.slow
def test_the_standard_library(tmp_path):
    corpus = write("stdlib", tmp_path / "corpus")
    assert len(load(corpus.folder)) > 5000
    assert all(split["functions"] for split in corpus.info["splits"].values())
    assert not corpus.info["problems"]
