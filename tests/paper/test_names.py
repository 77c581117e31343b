"""All rows of function names on one GPU: the commands of the script, printed by a stand-in for Python."""

import os
import shlex
import subprocess
from pathlib import Path

from paper.train_code import PRESETS, ROWS

SCRIPT = Path(__file__).parent.parent.parent / "paper" / "names.sh"
STAND_IN = """#!/bin/sh
[ "$1" = -c ] || echo "$@" >> "$LOG"
"""


def test_every_row_is_trained_and_those_of_the_claim_three_times(tmp_path):
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(STAND_IN)
    python.chmod(0o755)
    paths = f"{python.parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": paths, "LOG": str(tmp_path / "log"), "CUDA_MPS_PIPE_DIRECTORY": "joined"}
    command = ["bash", str(SCRIPT), "corpus.xz", str(tmp_path / "names"), "--minutes", "9"]
    subprocess.run(command, env=environment, check=True, timeout=60)
    commands = [shlex.split(line)[2:] for line in (tmp_path / "log").read_text().splitlines()]
    assert commands[0] == ["unpack-code", "corpus.xz", str(tmp_path / "names" / "corpus")]
    runs = []
    for name, *options in commands[1:]:
        given = dict(zip(options[::2], options[1::2], strict=True))
        assert given["--data"] == str(tmp_path / "names" / "corpus")
        if name == "train-code":
            assert given["--minutes"] == "9"
            runs += [(row, int(seed)) for seed in given["--seeds"].split(",") for row in given["--rows"].split(",")]
    assert len(runs) == len(set(runs))
    assert {row for row, _ in runs} == {*ROWS, "best", "sequential-magnetic"} <= set(PRESETS)
    claim = ("sat", "sat++", "dataflow", "dataflow-magnetic", "sequential-magnetic")
    assert {row for row, seed in runs if seed == 2} == set(claim)
    assert "robustness-code" in [name for name, *_ in commands]


def test_without_a_corpus_the_usage_is_printed():
    done = subprocess.run(["bash", str(SCRIPT)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "usage:" in done.stderr
