"""The log of a run: lines of reports, of which damaged ones are left out."""

import json

import pytest

from magnetite.io.storage import NotWritten
from magnetite.training.log import LOG, RunLog


def steps(folder) -> list[int]:
    return [json.loads(line)["step"] for line in (folder / LOG).read_text().splitlines()]


def test_lines_of_later_steps_and_damaged_ones_are_left_out(tmp_path):
    log = RunLog(tmp_path)
    for step in (1, 2, 3):
        log.write("train", step, {"loss": 0.5})
    log.close()
    with (tmp_path / LOG).open("ab") as file:
        file.write(b'\xff\n{"kind": "train", "step": 1, "lo')
    log = RunLog(tmp_path, step=2)
    assert steps(tmp_path) == [1, 2]
    log.write("train", 3, {"loss": 0.5})
    log.close()
    assert steps(tmp_path) == [1, 2, 3]


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    log = RunLog(tmp_path)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(tmp_path), "open", full)
    with pytest.raises(NotWritten, match=r"log.jsonl could not be written \(No space left on device\): free"):
        log.write("train", 1, {"loss": 0.5})
    monkeypatch.undo()
    log.close()
