"""The command line of `python -m paper`: errors are one line and exit code 2."""

import subprocess
import sys
from pathlib import Path

import pytest

WRONG = {
    "an unknown figure": (["figure-0"], "choose one of figure-examples"),
    "an unknown cell": (["figure-sorting", "--only", "x"], "matches no cell"),
    "a budget without training": (["figure-examples", "--budget", "0.5"], "leave out --only and --budget"),
    "cells of claims": (["claims", "--only", "x"], "leave it out"),
    "an unknown option": (["claims", "--colour"], "No such option: --colour"),
}


def run(*arguments: str) -> subprocess.CompletedProcess:
    command, root = [sys.executable, "-m", "paper", *arguments], Path(__file__).parents[2]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("case", WRONG)
def test_errors_are_one_line(case, tmp_path):
    arguments, message = WRONG[case]
    done = run(*arguments, "--out", str(tmp_path))
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.startswith("paper: ")
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_help():
    done = run("--help")
    assert done.returncode == 0
    assert "figure-sorting" in done.stdout
