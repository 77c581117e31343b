"""A series of trainings on one machine: what each process is asked to do, written down by a stand-in for Python."""

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parent.parent.parent / "experiments" / "series.sh"
STAND_IN = """#!/bin/sh
echo "$@"
mkdir -p "$FOLDER/results/cells"
exit 1
"""


def test_every_process_does_all_and_what_failed_once_more(tmp_path):
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(STAND_IN)
    python.chmod(0o755)
    folder = tmp_path / "series"
    command = ["bash", str(SCRIPT), str(folder), "2", "figure-sorting:sorting-walks", "figure-playground"]
    environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "FOLDER": str(folder)}
    subprocess.run(command, check=True, env=environment, capture_output=True, timeout=60)
    places = f"--out {folder}/results --runs {folder}/runs"
    asked = [
        f"-m magnetite reproduce figure-sorting --only sorting-walks {places}",
        f"-m magnetite reproduce figure-playground --only  {places}",
    ]
    logs = sorted(folder.glob("process-*.log"))
    assert [log.name for log in logs] == ["process-1.log", "process-2.log"]
    assert [log.read_text().splitlines() for log in logs] == [asked + asked] * 2
