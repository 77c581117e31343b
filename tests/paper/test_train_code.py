"""Rows of the table of function names: each is trained once, and an interrupted one continues."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from magnetite.io.files import write_table
from magnetite.io.record import Record
from magnetite.training.runs import CONFIG, PREDICTIONS, RESULT
from paper import train_code
from paper.train_code import main, read_rows


class Finished:
    """A process that has ended."""

    def __init__(self, returncode: int):
        self.returncode = returncode

    def poll(self) -> int:
        return self.returncode

    def send_signal(self, number: int) -> None:
        pass

    def wait(self, timeout: float | None = None) -> int:
        return self.returncode


@pytest.fixture
def commands(monkeypatch) -> list[list[str]]:
    """The commands that are started; the row `sat` fails."""
    started: list[list[str]] = []

    def start(command, **_options):
        started.append(command)
        folder = Path(command[command.index("--out") + 1])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CONFIG).touch()
        if folder.name.startswith("sat-"):
            return Finished(2)
        scores = {"f1": np.array([0.5]), "f1_dropped": np.array([0.5])}
        write_table(folder / PREDICTIONS, {"id": np.arange(1), "project": ["p"], "words": [["get"]], **scores})
        record = Record("row", seed=0)
        found = 0.25 if "optim.lr=0.002" in command else 0.5
        figures = {split: {"f1": found, "f1_dropped": found} for split in ("valid", "test")}
        record.write(folder, {"figures": figures})
        (folder / "row.json").rename(folder / RESULT)
        return Finished(0)

    monkeypatch.setenv("MAGNETITE_COMMIT", "none")  # which git would be asked for
    monkeypatch.setattr(subprocess, "Popen", start)
    return started


def test_every_row_is_trained_once(commands, tmp_path):
    options = {"data": tmp_path, "runs": tmp_path / "runs", "out": tmp_path / "out", "side": 2, "device": "cpu"}
    main(rows="dataflow", seeds="0,1", epochs=3.0, minutes=1.0, settings=["optim.lr=1e-3"], **options)
    found = read_rows(tmp_path / "out")
    assert set(found) == {("dataflow", 0), ("dataflow", 1)}
    assert found["dataflow", 1]["row"] == "dataflow"
    assert found["dataflow", 1]["result"]["figures"]["test"]["f1"] == 0.5
    assert found["dataflow", 1]["result"]["projects"] == {"p": [1, 0.5, 0.5]}
    assert (tmp_path / "out/code/dataflow-seed1.parquet").exists()
    assert [command[-2:] for command in commands] == [["--set", "optim.lr=1e-3"]] * 2
    main(rows="dataflow", seeds="0", epochs=3.0, minutes=1.0, settings=None, **options)
    assert len(commands) == 2


def test_a_variant_is_a_preset_with_changes(commands, tmp_path):
    options = {"data": tmp_path, "runs": tmp_path / "runs", "out": tmp_path / "out", "side": 1, "device": "cpu"}
    main(rows="small-whole", seeds="0", epochs=None, minutes=1.0, settings=None, **options)
    assert commands[0][commands[0].index("--preset") :][:2] == ["--preset", "small"]
    assert "task.subwords=0" in commands[0]
    assert set(read_rows(tmp_path / "out")) == {("small-whole", 0)}
    with pytest.raises(ValueError, match="unknown row 'large': choose one of"):
        main(rows="large", seeds="0", epochs=None, minutes=1.0, settings=None, **options)


def test_the_best_rate_of_a_short_training_is_taken(commands, tmp_path):
    options = {"data": tmp_path, "runs": tmp_path / "runs", "out": tmp_path / "out", "side": 2, "device": "cpu"}
    main(
        rows="dataflow-magnetic,best", seeds="0,1", epochs=None, minutes=1.0, settings=None, rates="1e-3,2e-3",
        tried=0.2, **options,
    )  # fmt: skip
    given = [command[command.index("--preset") + 1 :] for command in commands]
    assert [row[0] for row in given] == ["dataflow-magnetic"] * 2 + ["dataflow-magnetic", "best"] * 2
    assert [row[-4:] for row in given[:2]] == [
        ["--set", f"optim.lr={rate}", "--budget", "0.2"] for rate in ("0.001", "0.002")
    ]
    assert all(row[-2:] == ["--set", "optim.lr=0.001"] for row in given[2:])
    assert set(read_rows(tmp_path / "out")) == {(row, seed) for row in ("dataflow-magnetic", "best") for seed in (0, 1)}
    assert len(list((tmp_path / "out/code/rates").glob("*.json"))) == 2


def test_rows_that_fail_are_named_and_continue_later(commands, tmp_path):
    options = {"data": tmp_path, "runs": tmp_path / "runs", "out": tmp_path / "out", "side": 1, "device": "cpu"}
    for _ in range(2):
        with pytest.raises(ValueError, match="not finished: sat-seed0"):
            main(rows="sat", seeds="0", epochs=None, minutes=1.0, settings=None, **options)
    assert "--resume" not in commands[0]
    assert commands[1][-3:] == ["--resume", "--device", "cpu"]
    with pytest.raises(ValueError, match="not finished: dataflow-seed0"):
        main(rows="dataflow", seeds="0", epochs=None, minutes=0.0, settings=None, **options)
    assert len(commands) == 2


def test_the_rows_of_the_table_are_presets():
    assert set(train_code.ROWS) <= set(train_code.PRESETS)
