"""Names for functions: the present name is hidden, files are read and never run, problems are named."""

import os
import re
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import torch

import magnetite as mt
from magnetite.code import names
from magnetite.code.names import SHIPPED, name_files, named, python_files, suggest_names
from magnetite.tasks.namer import Namer

from .tiny_namer import WORDS, tiny_namer

FILES = ("model.json", "model.safetensors", "vocabulary.json", "card.json", "card.md")

READ = """
def read_value(path, name):
    x = open(path, 'r').read()
    y = x + name
    return y
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    tiny_namer().save(path)
    return path


@pytest.fixture(scope="module")
def namer(folder):
    return Namer.load(folder)


def write(path, text, encoding="utf-8"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(textwrap.dedent(text).encode(encoding))
    return path


def only(namer, path, **options):
    (file,) = name_files([path], namer, **options)
    return file


def test_names_are_snake_case_with_probabilities_in_order(folder):
    found = suggest_names(READ, model=folder)
    assert len(found) == 5
    assert [probability for _, probability in found] == sorted((each for _, each in found), reverse=True)
    assert all(0 < probability <= 1 for _, probability in found)
    assert sum(probability for _, probability in found) <= 1 + 1e-6
    assert len({name for name, _ in found}) == 5
    known = {*WORDS, ""}  # an underscore in front of 2d, or after a keyword, adds an empty word
    assert all(name.isidentifier() and set(name.split("_")) <= known for name, _ in found)
    assert suggest_names(READ, top=2, model=folder) == found[:2]
    assert mt.code.suggest_names(READ, model=str(folder)) == found


RENAMED = [
    "def {name}(x):\n    if x > 1:\n        return {name}(x - 1)\n    return x",
    "async def {name}(path):\n    y = await open(path)\n    await {name}(y)\n    return y",
    "class A:\n    def {name}(self, x):\n        self.value = x\n        return self.{name}(x)",
    "class A:\n    def {name}(self, x):\n        return super().{name}(x) + 1",
    "class A:\n    @classmethod\n    def {name}(cls, x):\n        return [cls.{name}(y) for y in x]",
    "class A:\n    @property\n    def {name}(self): pass\n    @{name}.setter\n    def {name}(self, x): self.x = x",
    "    def {name}(self, x):\n        self.total += x\n        return self.{name}(x)",
    "def {name}(x):\n    def inner(y):\n        return {name}(y)\n    return inner(x)",
]


@pytest.mark.parametrize("text", RENAMED)
def test_proposals_do_not_depend_on_the_present_name(folder, text):
    present = ("get", "value", "read_file", "zzz", "total", "__x")
    every = [suggest_names(text.format(name=name), name=name, model=folder) for name in present]
    assert all(found == every[0] for found in every)
    assert every[0]


@pytest.mark.parametrize("text", RENAMED[:-2])
def test_proposals_for_files_do_not_depend_on_the_present_name(namer, tmp_path, text):
    first, second = (
        only(namer, write(tmp_path / f"{name}.py", text.format(name=name))).functions[-1] for name in ("get", "zzz")
    )
    assert first.proposals == second.proposals
    assert first.name.endswith("get") and second.name.endswith("zzz")


def test_files_and_texts_agree(folder, namer, tmp_path):
    path = write(tmp_path / "a.py", READ)
    (function,) = only(namer, path).functions
    assert (function.path, function.line, function.name) == (str(path), 2, "read_value")
    assert list(function.proposals) == suggest_names(READ, model=folder)


def test_the_source_of_a_function_is_looked_up_and_never_run(folder):
    assert suggest_names(textwrap.fill, model=folder)
    assert suggest_names(Path.read_text, model=folder)
    with pytest.raises(ValueError, match=r"source of <built-in function len> is not available.*give it as text"):
        suggest_names(len, model=folder)
    with pytest.raises(TypeError, match="source must be text or a function, got int"):
        suggest_names(3, model=folder)


@pytest.mark.parametrize(
    ("source", "options", "match"),
    [
        ("x = 1", {}, "defines no function"),
        ("def f(): pass\ndef g(): pass", {}, r"several functions \(f, g\): give the qualified name of one"),
        ("def f(): pass", {"name": "g"}, "no function 'g': choose one of f"),
        ("def f(:", {}, "line 1: .*cannot parse"),
        ("def f(): pass", {"top": 0}, "top must be an integer from 1 to 500, got 0"),
        ("def f(): pass", {"top": 501}, "top must be an integer from 1 to 500, got 501"),
        ("def f(): pass", {"top": True}, "top must be an integer from 1 to 500, got True"),
        ("def f():\n" + "    x = 1 + x\n" * 30, {}, r"f: too large: its graph has \d+ nodes, .* up to 60; split"),
        ("def f():\n" + "    x = 1 + x\n" * 300, {}, r"f: too large: its graph has [\d,]+ nodes"),
    ],
)
def test_refusals(folder, source, options, match):
    with pytest.raises(ValueError, match=match):
        suggest_names(source, model=folder, **options)


def test_one_of_several_functions_is_chosen_by_name(folder):
    text = "def f(x):\n    return x\n" + READ
    assert suggest_names(text, name="read_value", model=folder) == suggest_names(READ, model=folder)


def test_a_copy_without_a_model_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(names, "SHIPPED", tmp_path)
    names._loaded.cache_clear()
    with pytest.raises(FileNotFoundError, match=r"has no model.*give the folder of a run"):
        suggest_names(READ)
    names._loaded.cache_clear()


def test_a_folder_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"vocabulary.json does not exist: give the folder of a run"):
        suggest_names(READ, model=tmp_path)


def test_methods_and_nested_functions_are_listed_in_text_order(namer, tmp_path):
    text = """
    class A:
        @property
        def value(self):
            return self.x
        class B:
            async def read(self):
                def inner(x):
                    return x
                return inner
    if True:
        def f(): ...
    """
    found = only(namer, write(tmp_path / "a.py", text)).functions
    assert [(each.line, each.name) for each in found] == [
        (4, "A.value"),
        (7, "A.B.read"),
        (8, "A.B.read.inner"),
        (12, "f"),
    ]
    assert all(each.proposals and not each.problem for each in found)


def test_likelihood_is_the_expected_share_of_words(namer):
    (graph,) = [mt.code.build(READ)]
    ((_, one),) = namer.judge([graph], [["get"]])
    ((_, other),) = namer.judge([graph], [["name"]])
    ((_, both),) = namer.judge([graph], [["get", "name", "get"]])
    assert both == pytest.approx((one + other) / 2)
    ((_, unknown),) = namer.judge([graph], [["never", "seen"]])
    assert 0 <= unknown <= 1
    ((_, nothing),) = namer.judge([graph], [[]])
    assert nothing is None
    ((proposals, _),) = namer.judge([graph], [[]], top=1)
    assert namer.judge([graph], [proposals[0][0]])[0][1] > proposals[0][1]


def test_names_that_cannot_be_others_are_marked(namer, tmp_path):
    text = """
    class A:
        def __init__(self):
            self.x = 1
        def test_x(self):
            assert self.x
        def later(self):
            raise NotImplementedError
        def _(self):
            return 2
        def get(self):
            return self.x
    """
    found = {each.name: each.fixed for each in only(namer, write(tmp_path / "a.py", text)).functions}
    assert found == {
        "A.__init__": "dunder method",
        "A.test_x": "test function",
        "A.later": "stub",
        "A._": "name without words",
        "A.get": "",
    }


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"def f(:\n", "line 1"),
        (b"def f():\n\tif 1:\n        x\n", "line"),
        (b"\xff\xfe\x00", "cannot be decoded"),
        (b"# coding: nonsense\ndef f(): pass\n", "cannot be decoded"),
        (b"def f(): pass\0\n", "null bytes"),
        (b"x = " + b"(" * 5000 + b")" * 5000, "nested too deeply|too many nested parentheses"),
    ],
)
def test_files_that_do_not_parse_are_named(namer, tmp_path, content, problem):
    path = tmp_path / "bad.py"
    path.write_bytes(content)
    good = write(tmp_path / "good.py", READ)
    bad, other = name_files([path, good], namer)
    assert bad.path == str(path)
    assert not bad.functions
    assert other.functions
    assert not other.problem
    assert re.search(problem, bad.problem)
    assert str(path) in bad.problem


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8", "utf-8-sig", "shift_jis"])
def test_encodings_that_a_file_declares(namer, tmp_path, encoding):
    declared = "" if encoding == "utf-8-sig" else f"# -*- coding: {encoding} -*-\n"
    letter = "あ" if encoding == "shift_jis" else "é"
    path = write(
        tmp_path / "a.py", f"{declared}def größe(x):\n    return '{letter}'\n".replace("größe", f"f{letter}"), encoding
    )
    (function,) = only(namer, path).functions
    assert function.name == f"f{letter}"
    assert function.proposals


def test_a_function_that_is_too_large_is_named_and_the_others_answered(namer, tmp_path):
    text = "def big():\n" + "    x = 1 + x\n" * 50 + READ
    big, small = only(namer, write(tmp_path / "a.py", text)).functions
    assert big.problem.startswith("too large")
    assert not big.proposals
    assert big.likelihood is None
    assert small.proposals


def test_code_is_never_run(namer, tmp_path):
    text = (
        f"open({str(tmp_path / 'ran')!r}, 'w')\n@print\ndef f(x=open({str(tmp_path / 'ran')!r}, 'w')):\n    return x\n"
    )
    only(namer, write(tmp_path / "a.py", text))
    assert not (tmp_path / "ran").exists()
    assert "a" not in sys.modules


def test_a_file_without_functions_is_no_problem(namer, tmp_path):
    for text in ("", "x = 1\n"):
        file = only(namer, write(tmp_path / "a.py", text))
        assert file.functions == ()
        assert not file.problem


def test_batches_do_not_change_answers(namer, tmp_path, monkeypatch):
    texts = [f"def f{size}(x):\n" + "    x = x + 1\n" * size + "    return x\n" for size in (7, 1, 5, 3)]
    paths = [write(tmp_path / f"{number}.py", text + READ) for number, text in enumerate(texts)]
    together = list(name_files(paths, namer))
    monkeypatch.setattr(names, "WINDOW", 1)
    calls = []
    alone = list(name_files(paths, namer, progress=lambda: calls.append(1)))
    assert len(calls) == len(paths)
    for first, second in zip(together, alone, strict=True):
        for one, other in zip(first.functions, second.functions, strict=True):
            assert one.name == other.name
            assert [name for name, _ in one.proposals] == [name for name, _ in other.proposals]
            assert [p for _, p in one.proposals] == pytest.approx([p for _, p in other.proposals], abs=1e-4)


def test_folders_are_searched(tmp_path):
    for name in (
        "b.py",
        "a/c.py",
        "a/.hidden/d.py",
        ".e.py",
        "__pycache__/f.py",
        "venv/lib/g.py",
        "a/text.txt",
        "script",
    ):
        write(tmp_path / name, READ)
    write(tmp_path / "venv/pyvenv.cfg", "")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "a" / "link.py").symlink_to(tmp_path / "b.py")
    (tmp_path / "a" / "gone.py").symlink_to(tmp_path / "nothing.py")
    found = [path.relative_to(tmp_path).as_posix() for path in python_files([tmp_path])]
    assert found == ["b.py", "a/c.py", "a/gone.py"]
    assert [path.name for path in python_files([tmp_path / "script", tmp_path / "b.py", tmp_path])][:2] == [
        "script",
        "b.py",
    ]
    assert python_files([tmp_path / "a" / "link.py"]) == [tmp_path / "a" / "link.py"]


def test_paths_without_python_files_are_refused(tmp_path, namer):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist: give Python files or folders"):
        python_files([tmp_path / "nowhere"])
    with pytest.raises(ValueError, match="has no Python files"):
        python_files([tmp_path])
    (tmp_path / "gone.py").symlink_to(tmp_path / "nothing.py")
    (file,) = name_files(python_files([tmp_path]), namer)
    assert "not a regular file" in file.problem


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_pipes_are_not_read(tmp_path, namer):
    os.mkfifo(tmp_path / "pipe.py")
    assert "not a regular file" in only(namer, tmp_path / "pipe.py").problem


def test_words_become_identifiers():
    assert named([(["class"], 0.5), (["is", "class"], 0.3), (["1", "d"], 0.1)]) == [
        ("class_", 0.5),
        ("is_class", 0.3),
        ("_1_d", 0.1),
    ]


def test_the_shipped_model_fits_into_16_mebibytes():
    if not (SHIPPED / "model.json").is_file():
        pytest.skip("the model is not trained yet")
    assert {path.name for path in SHIPPED.iterdir()} == set(FILES)
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) <= 16 * 2**20
    assert suggest_names(READ)


def test_proposals_are_the_most_probable_of_all_lists():
    """Against the sum over all sequences of words, from which unknown words are left out."""
    small = tiny_namer(sharp=3.0)
    (graph,) = [mt.code.build(READ)]
    with torch.inference_mode():
        probabilities = small.model(small.vocabularies.digraphs([graph])).softmax(-1)[0, :2].double()
    words, unknown, end = small.vocabularies.words, small.vocabularies.unknown, small.vocabularies.end
    every: Counter = Counter()
    for first, p in enumerate(probabilities[0].tolist()):
        said = probabilities[1][first].item() if first < unknown else 0.0
        for second, q in enumerate(probabilities[1].tolist()):
            if first == second < unknown:
                continue  # a word is not said twice
            kept = [] if first == end else [first] if second == end else [first, second]
            every[tuple(words[each] for each in kept if each != unknown)] += p * q / (1 - said)
    del every[()]
    expected = sorted(every.items(), key=lambda item: -item[1])[:5]
    ranked = probabilities.topk(12, dim=-1)
    found = small._lists(ranked.values.tolist(), ranked.indices.tolist(), 24)[:5]
    assert [tuple(each) for each, _ in found] == [each for each, _ in expected]
    assert [p for _, p in found] == pytest.approx([p for _, p in expected])


def test_more_proposals_than_words(namer):
    (found,) = namer.propose([mt.code.build(READ)], top=200)
    assert len(found) == 200
    first = namer.propose([mt.code.build(READ)], top=5)[0]
    assert [words for words, _ in found[:5]] == [words for words, _ in first]
    # A wider search adds the probabilities of more ways to the same words.
    assert [p for _, p in found[:5]] == pytest.approx([p for _, p in first])


def test_the_wheel_and_the_clone_have_every_file_of_the_shipped_model():
    root = SHIPPED.parents[3]
    if not (root / "pyproject.toml").is_file():
        pytest.skip("not in a clone")
    wheel = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/magnetite"]}  # all files in it that git does not ignore
    inside = [str((SHIPPED / name).relative_to(root)) for name in FILES]
    ignored = subprocess.run(["git", "check-ignore", *inside], cwd=root, capture_output=True, text=True, check=False)
    assert ignored.returncode == 1, ignored.stdout + ignored.stderr
