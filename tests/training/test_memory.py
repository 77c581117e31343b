"""Encodings are kept where there is room for them."""

import pytest
import torch

import magnetite as mt
from magnetite.tasks import Distances
from magnetite.training import memory
from magnetite.training.config import Data
from magnetite.training.data import TrainingData
from magnetite.training.pools import Share

TASK = Distances(target="reachability", train=50, per_size=4)
ENCODINGS = {"eigenpairs": mt.MagneticLaplacian(k=3)}
CPU = torch.device("cpu")


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Says how much memory is free, and what a control group may have, all in bytes."""
    monkeypatch.setattr(memory, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CONTROL_GROUP", tmp_path)

    def says(free: int | None = None, most: str | None = None, used: int = 0, files: int = 0) -> None:
        if free is not None:
            (tmp_path / "meminfo").write_text(f"MemTotal:  {2**40} kB\nMemAvailable:  {free // 1024} kB\nHuge:  0\n")
        if most is not None:
            (tmp_path / "memory.max").write_text(f"{most}\n")
            (tmp_path / "memory.current").write_text(f"{used}\n")
            (tmp_path / "memory.stat").write_text(f"anon 1\ninactive_file {files}\n")

    return says


@pytest.mark.gpu
def test_encodings_are_kept_where_the_gpu_has_room(monkeypatch):
    for free, mode in ((2**40, "resident"), (0, "pooled")):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _, free=free: (free, 2**40))
        assert TrainingData(TASK, ENCODINGS, Data(), 8, 0, "cuda").mode == mode


@pytest.mark.parametrize(("free", "mode"), [(2**36, "resident"), (1024, "pooled"), (None, "resident")])
def test_encodings_are_kept_where_the_machine_has_room(machine, free, mode):
    machine(free)
    assert TrainingData(TASK, ENCODINGS, Data(), 8, 0, "cpu").mode == mode


def test_processes_share_a_machine(machine):
    need = TrainingData(TASK, ENCODINGS, Data(mode="resident"), 8, 0, "cpu")
    machine(int(6 * next(need.blocks(0)).pool.bytes))
    modes = [TrainingData(TASK, ENCODINGS, Data(), 8, 0, "cpu", Share(0, count)).mode for count in (1, 2)]
    assert modes == ["resident", "pooled"]


def test_a_job_may_have_less_than_the_machine(machine):
    assert memory.room(CPU) == float("inf")
    machine(2**30)
    assert memory.room(CPU) == 2**28
    machine(most="max")
    assert memory.room(CPU) == 2**28
    machine(most=str(2**29), used=2**28, files=2**27)
    assert memory.room(CPU) == (2**28 + 2**27) / 4
