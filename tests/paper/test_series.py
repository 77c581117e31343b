"""A series of training runs on one machine: commands of each process, printed by a stand-in for Python."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent.parent / "paper" / "series.sh"
ENDING = """#!/bin/sh
echo "$@"
mkdir -p "$FOLDER/results/cells"
exit {code}
"""
ENDLESS = """#!/bin/sh
trap 'echo saved; exit 130' TERM
echo "$@"
while true; do sleep 0.1; done
"""


def _listen_to_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def series(tmp_path: Path, stand_in: str, *arguments: str) -> subprocess.Popen:
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(stand_in)
    python.chmod(0o755)
    environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "FOLDER": str(tmp_path / "series")}
    command = ["bash", str(SCRIPT), *arguments]
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A shell cannot trap a signal that was ignored when it started, as where the tests run in the background.
        preexec_fn=_listen_to_ctrl_c,
    )


def lines(tmp_path: Path) -> list[list[str]]:
    """The commands of each process."""
    return [log.read_text().splitlines() for log in sorted((tmp_path / "series").glob("process-*.log"))]


@pytest.mark.parametrize(("code", "times"), [(0, 1), (1, 2)])
def test_every_process_runs_all_figures_and_retries_failed_ones(tmp_path, code, times):
    folder = tmp_path / "series"
    ending = ENDING.format(code=code)
    started = series(tmp_path, ending, str(folder), "2", "figure-sorting:sorting-walks", "figure-playground")
    started.communicate(timeout=60)
    assert started.returncode == code
    places = f"--out {folder}/results --runs {folder}/runs"
    commands = [
        f"-m paper figure-sorting --only sorting-walks {places}",
        f"-m paper figure-playground --only  {places}",
    ]
    assert lines(tmp_path) == [commands * times] * 2


def test_ctrl_c_stops_all_of_it(tmp_path):
    started = series(tmp_path, ENDLESS, str(tmp_path / "series"), "2", "figure-sorting", "figure-playground")
    until = time.monotonic() + 30
    while [len(commands) for commands in lines(tmp_path)] != [1, 1] and time.monotonic() < until:
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    started.communicate(timeout=30)
    assert started.returncode == 130
    for commands in lines(tmp_path):
        assert [line for line in commands if line != "Terminated"] == [
            commands[0],
            "saved",
        ]


def test_without_figures_the_usage_is_printed(tmp_path):
    started = series(tmp_path, ENDLESS, str(tmp_path / "series"))
    assert "usage:" in started.communicate(timeout=30)[1]
    assert started.returncode == 2
