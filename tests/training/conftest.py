"""Training runs of seconds, in this process."""

import json
import logging
import warnings
from pathlib import Path

import pytest

from magnetite.training.config import Config, configuration
from magnetite.training.encodings import named, options_named

TINY = {
    "task": {"train": 60, "valid": 12, "test": 8, "train_longest": 7, "valid_longest": 8},
    "model": {"name": "transformer", "width": 32, "layers": 1},
    "optim": {"batch": 20, "epochs": 2, "warmup": 0.5},
    "run": {"log_every": 2, "checkpoint_minutes": 0.0},
}
"""A sorting task of 120 graphs: six steps per epoch."""


def tiny(encoding: str = "magnetic", *overrides: str) -> Config:
    known = {option for part in named(encoding) for option in options_named(part)}
    sizes = {option: 4 for option in ("k", "rank") if option in known}
    return configuration("sorting", encoding, "quick", {**TINY, "encoding": sizes}, overrides)


def logged(folder: Path, kind: str) -> list[dict]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [
        {name: value for name, value in line.items() if name != "graphs_per_second"}
        for line in lines
        if line["kind"] == kind
    ]


def parameters(folder: Path) -> dict[str, bytes]:
    """The bytes of the checkpoints of a run, without the times, which may differ."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted((folder / "checkpoints").rglob("*.safetensors"))
    }


@pytest.fixture
def trainer():
    """Makes trainers on one CPU process."""
    from lightning.fabric import Fabric

    from magnetite.training.loop import Trainer

    def make(config: Config, folder: Path, resume: bool = False) -> Trainer:
        folder.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            logging.getLogger("lightning.fabric").setLevel(logging.ERROR)
            made = Trainer(config, folder, Fabric(accelerator="cpu", devices=1))
        if resume:
            made.restore()
        return made

    return make
