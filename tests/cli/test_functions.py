import pytest

from magnetite.code.corpus import index as index_module
from magnetite.code.corpus import load
from tests.cli.test_app import call
from tests.code.corpus.fake_index import FakeIndex, module, served, twenty_packages


@pytest.fixture
def projects(tmp_path):
    for number in range(3):
        (tmp_path / "projects" / f"project{number}").mkdir(parents=True)
        (tmp_path / "projects" / f"project{number}" / "code.py").write_text(module(f"find_item{number}"))
    return tmp_path / "projects"


def test_a_folder(projects, tmp_path, monkeypatch, capsys):
    arguments = ("data", "functions", "--from", projects, "--out", tmp_path / "corpus", "--workers", "1")
    code, stdout, stderr = call(monkeypatch, capsys, *arguments, "--shares", "0.5,0.5,0")
    assert code == 0, stderr
    assert "functions found" in stdout
    assert "Corpus(3 functions of 3 projects)" in stdout
    assert "test without functions" in " ".join(stdout.split()) or "and test without functions" in stdout
    assert len(load(tmp_path / "corpus")) == 3
    code, _, stderr = call(monkeypatch, capsys, *arguments, "--seed", "2")
    assert code == 2
    assert "holds another corpus" in stderr


def test_packages_that_fail(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(index_module, "PAUSE", 0.0)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.setenv(name, "")
    recipe = tmp_path / "recipe.tsv"
    with served(FakeIndex()) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        recipe.write_text(twenty_packages(index, tmp_path / "executed"))
        arguments = ("data", "functions", "--from", recipe, "--out", tmp_path / "corpus", "--workers", "1")
        code, stdout, stderr = call(monkeypatch, capsys, *arguments)
        assert code == 3, stderr
        assert "failed: vanished (no longer in the index: no index offers vanished-1.0-py3-none-any.whl)" in stdout
        assert "left out: climbing: ../climbed.py (unsafe name in the archive)" in stdout
        assert "9 packages failed: run the same command again" in stdout
        code, stdout, _ = call(
            monkeypatch, capsys, *arguments[:-3], tmp_path / "good", "--workers", 1, "--package", "good-1"
        )
        assert code == 0
        assert "failed" not in stdout
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from", "nowhere"], "nowhere is not a folder: give stdlib, site-packages, recipe, a .tsv file or a folder"),
        (["--from", "recipe", "--package", "no-such"], "has no package 'no-such'"),
        (["--from", "stdlib", "--package", "json"], "packages can be chosen from a recipe only"),
        (["--from", "stdlib", "--shares", "1,2"], "shares must be three numbers"),
        (["--from", "stdlib", "--shares", "a,b,c"], "--shares must be three numbers"),
        (["--from", "stdlib", "--lines", "0"], "lines must be a positive integer, got 0"),
        (["--from", "stdlib", "--workers", "0"], "--workers"),
        ([], "--from"),
    ],
)
def test_bad_options(tmp_path, monkeypatch, capsys, options, message):
    code, _, stderr = call(monkeypatch, capsys, "data", "functions", *options, "--out", tmp_path / "corpus")
    assert code == 2
    assert message in " ".join(stderr.split())
    assert not (tmp_path / "corpus").exists()


def test_help(monkeypatch, capsys):
    code, stdout, _ = call(monkeypatch, capsys, "data", "functions", "--help")
    assert code == 0
    assert "--from" in stdout
    assert "Exit code 0" in stdout
    assert "functions" in call(monkeypatch, capsys, "data", "--help")[1]
