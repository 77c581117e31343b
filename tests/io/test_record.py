import shutil
import subprocess
from pathlib import Path

import pytest

from magnetite.io import record

ROOT = Path(record.__file__).parents[3]


@pytest.fixture
def git(tmp_path, monkeypatch):
    """A user's repository with one commit; returns a function that runs git there."""
    monkeypatch.delenv("MAGNETITE_COMMIT", raising=False)

    def run(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    run("init", "-q")
    run("commit", "-q", "--allow-empty", "-m", "first")
    return run


def installed_in(folder: Path, monkeypatch) -> None:
    """Have the package lie in this folder."""
    file = folder / "magnetite" / "io" / "record.py"
    file.parent.mkdir(parents=True)
    shutil.copy(record.__file__, file)
    monkeypatch.setattr(record, "__file__", str(file))


@pytest.mark.parametrize("place", [".venv/lib/python3/site-packages", "src", "third_party/magnetite/src"])
def test_the_commit_of_a_users_repository_is_not_ours(git, tmp_path, monkeypatch, place):
    installed_in(tmp_path / place, monkeypatch)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "thesis"\n')
    monkeypatch.setattr(record.subprocess, "run", lambda *_, **__: pytest.fail("git was run"))
    assert record.commit() == "installed"


def test_the_commit_of_the_clone_is_recorded_and_its_index_not_written(git, tmp_path, monkeypatch):
    installed_in(tmp_path / "src", monkeypatch)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    git("add", ".")
    git("commit", "-q", "-m", "second")
    head, index = git("rev-parse", "HEAD"), tmp_path / ".git" / "index"
    file = Path(record.__file__)
    file.touch()  # `git status` would refresh the index
    before = index.read_bytes(), index.stat().st_mtime_ns
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))  # as in a hook of another repository
    assert record.commit() == head
    file.write_text("changed")
    assert record.commit() == f"{head}+changes"
    assert (index.read_bytes(), index.stat().st_mtime_ns) == before
    monkeypatch.setenv("MAGNETITE_COMMIT", "given")
    assert record.commit() == "given"
