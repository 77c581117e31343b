import json
import os
import subprocess
import sys

import pytest

from magnetite.code import names
from tests.cli.test_app import call
from tests.code.tiny_namer import tiny_namer

SOURCE = """
def read_value(path, name):
    x = open(path, 'r').read()
    return x + name

class A:
    def __init__(self, x):
        self.value = x

    def total(self):
        def zzz(y):
            return y + 1
        return zzz(self.value) + self.total()
"""
QUALIFIED = ["read_value", "A.__init__", "A.total", "A.total.zzz"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    tiny_namer().save(path)
    return path


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "source.py"
    path.write_text(SOURCE)
    return path


def rows(stdout):
    return [json.loads(line) for line in stdout.splitlines()]


def test_every_function_with_line_name_and_proposals(file, model, monkeypatch, capsys):
    code, stdout, stderr = call(monkeypatch, capsys, "name", file, "--model", model, "--top", 3)
    assert code == 0, stderr
    lines = stdout.splitlines()
    starts = [f"{file}:{line}  {name}" for line, name in zip((2, 7, 10, 11), QUALIFIED, strict=True)]
    assert all(line.startswith(start) for line, start in zip(lines[::2], starts, strict=True))
    assert all(line.startswith("    ") and len(line.split()) == 6 for line in lines[1::2])
    assert "4 functions in 1 files" in stderr


def test_json_has_one_object_per_line(file, model, monkeypatch, capsys):
    code, stdout, _ = call(monkeypatch, capsys, "name", file, "--json", "--model", model)
    assert code == 0
    found = rows(stdout)
    assert [row["name"] for row in found] == QUALIFIED
    assert all(row.keys() == {"file", "line", "name", "likelihood", "fixed", "proposals"} for row in found)
    assert found[1]["fixed"] == "dunder method"
    assert all(len(row["proposals"]) == 5 for row in found)
    assert all(each.keys() == {"name", "probability"} for row in found for each in row["proposals"])


def test_only_bad_names_the_most_unlikely_first(file, model, monkeypatch, capsys):
    given = ("name", file, "--json", "--model", model)
    everything = rows(call(monkeypatch, capsys, *given)[1])
    judged = {row["name"]: row["likelihood"] for row in everything if not row["fixed"]}
    assert set(judged) == {"read_value", "A.total", "A.total.zzz"}
    code, stdout, stderr = call(monkeypatch, capsys, *given, "--only-bad", "--threshold", 1)
    found = [(row["name"], row["likelihood"]) for row in rows(stdout)]
    assert code == 0
    assert found == sorted(((name, each) for name, each in judged.items() if each < 1), key=lambda pair: pair[1])
    assert f"{len(found)} with a likelihood below 1" in stderr
    middle = sorted(judged.values())[1]
    stdout = call(monkeypatch, capsys, *given, "--only-bad", "--threshold", middle)[1]
    assert [row["likelihood"] for row in rows(stdout)] == [each for each in sorted(judged.values()) if each < middle]
    assert not call(monkeypatch, capsys, *given, "--only-bad", "--threshold", 0)[1]


def test_a_folder_with_files_that_do_not_parse(tmp_path, file, model, monkeypatch, capsys):
    (tmp_path / "bad.py").write_text("def f(:\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "other.py").write_text("def g():\n" + "    x = 1 + x\n" * 40)
    code, stdout, stderr = call(monkeypatch, capsys, "name", tmp_path, "--model", model)
    assert code == 3
    assert f"left out: {tmp_path / 'bad.py'}, line 1: invalid syntax" in stderr
    assert "5 functions in 2 files; 1 without proposals; 1 files left out" in stderr
    assert "too large: its graph has" in stdout
    code, stdout, _ = call(monkeypatch, capsys, "name", tmp_path, "--json", "--model", model)
    assert code == 3
    problems = [row for row in rows(stdout) if "problem" in row]
    assert [row["file"] for row in problems] == [str(tmp_path / "sub" / "other.py"), str(tmp_path / "bad.py")]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["nowhere.py"], "nowhere.py does not exist: give Python files or folders"),
        (["."], "has no Python files"),
        ([], "Missing argument"),
        (["bad.txt"], "bad.txt, line 1: invalid syntax"),
        (["bad.txt", "--top", "0"], "--top"),
        (["bad.txt", "--threshold", "2"], "--threshold"),
        (["bad.txt", "--model", "nowhere"], "vocabulary.json does not exist: give the folder of a run"),
    ],
)
def test_refusals_are_one_line(tmp_path, model, monkeypatch, capsys, arguments, match):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.txt").write_text("def f(:\n")
    given = arguments if "--model" in arguments else [*arguments, "--model", model]
    code, stdout, stderr = call(monkeypatch, capsys, "name", *given)
    assert code == 2
    assert not stdout
    assert match in stderr
    assert len(stderr.splitlines()) == 1


def test_without_shipped_weights_one_line_says_so(file, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(names, "SHIPPED", tmp_path / "namer")
    names._loaded.cache_clear()
    code, stdout, stderr = call(monkeypatch, capsys, "name", file)
    names._loaded.cache_clear()
    assert code == 2
    assert not stdout
    assert len(stderr.splitlines()) == 1
    assert "has no model" in stderr


def test_the_threshold_of_the_card_is_the_default(file, tmp_path, monkeypatch, capsys):
    from magnetite.io.storage import write_json

    tiny_namer().save(tmp_path / "carded")
    write_json(tmp_path / "carded" / names.CARD, {"unlikely": 0.25})
    stderr = call(monkeypatch, capsys, "name", file, "--only-bad", "--model", tmp_path / "carded")[2]
    assert "with a likelihood below 0.25" in stderr


def test_the_same_file_by_two_names_is_read_once(file, model, tmp_path, monkeypatch, capsys):
    (tmp_path / "link.py").symlink_to(file)
    stdout = call(monkeypatch, capsys, "name", file, tmp_path, file, "--json", "--model", model)[1]
    assert len(rows(stdout)) == 4


def test_a_reader_that_stops_early_is_no_error(file, model):
    program = f"{sys.executable} -m magnetite name {file} --model {model} --json | head -1"
    done = subprocess.run(program, shell=True, capture_output=True, text=True, env={**os.environ})
    assert len(rows(done.stdout)) == 1
    assert "Traceback" not in done.stderr
