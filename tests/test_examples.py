import importlib.util
import re
import sys
from pathlib import Path

import pytest

import magnetite as mt

FOLDER = Path(__file__).parent.parent / "examples"
ARGUMENTS = {
    "circuits": ["--epochs", "4"],
    "link_direction": ["--nodes", "40", "--epochs", "4"],
    "node_classification": ["--nodes", "60", "--epochs", "20"],
    "own_head_and_loop": ["--graphs", "150", "--epochs", "3"],
}
"""Sizes at which an example takes a few seconds; `gps_with_pyg` is tested in `test_transforms`."""


@pytest.fixture
def run_example(monkeypatch, tmp_path, capsys):
    def run(name: str) -> str:
        spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setattr(sys, "argv", [name, *ARGUMENTS[name], "--out", str(tmp_path / "run")])
        monkeypatch.chdir(tmp_path)
        spec.loader.exec_module(module)
        module.main()
        return capsys.readouterr().out

    return run


def test_every_example_is_run_and_listed():
    names = {path.stem for path in FOLDER.glob("*.py")}
    assert names == {*ARGUMENTS, "gps_with_pyg"}
    page = (FOLDER.parent / "docs" / "howto" / "examples.md").read_text(encoding="utf-8")
    assert {Path(name).stem for name in re.findall(r"examples/(\w+\.py)\)", page)} == names


def test_node_classification(run_example):
    found = re.search(r"accuracy: ([\d.]+)", run_example("node_classification"))
    assert found is not None and 0 <= float(found[1]) <= 1


def test_circuits(run_example, tmp_path):
    text = run_example("circuits")
    assert "train: 20 graphs" in text and "circuit of" in text
    assert set(mt.Run(tmp_path / "run").metrics["test"]) >= {"rmse", "rmse/dsp"}


def test_own_head_and_loop(run_example, tmp_path):
    assert "RMSE" in run_example("own_head_and_loop")
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_link_direction(run_example):
    assert "auc" in run_example("link_direction")
