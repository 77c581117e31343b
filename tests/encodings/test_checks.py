"""Arguments of encodings: numbers of NumPy and torch are numbers, truth values and strings are not."""

import re

import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite.encodings import ENCODINGS, SparseRandomWalk
from magnetite.linalg import memory
from magnetite.linalg.potential import checked_potential
from tests.training.test_config import made

SIZES = {"magnetic": "k", "laplacian": "k", "walks": "steps", "svd": "rank", "sinusoidal": "width", "depth": "cap"}
SIZES |= {"walk-sums": "top", "sparse-walks": "steps", "relatives": "reach"}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_sizes_are_integers(encoding):
    kind, name = ENCODINGS[encoding], SIZES[encoding]
    expected = made(kind, **{name: 4})
    for right in (np.int64(4), np.uint8(4), np.array(4), torch.tensor(4)):
        found = made(kind, **{name: right})
        assert found == expected
        assert type(getattr(found, name)) is int
    for wrong in (0, -1, True, np.True_, 4.0, np.float64(4), "4", None, [4], float("nan"), torch.tensor(True), 1j):
        with pytest.raises(ValueError, match=f"{name} must be a positive integer, got") as caught:
            made(kind, **{name: wrong})
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=f"{name} must be at most"):
        made(kind, **{name: 10**9})


@pytest.mark.parametrize("kind", [mt.RandomWalk, SparseRandomWalk])
def test_restart_is_a_probability(kind):
    assert made(kind, restart=np.float32(0.5)).restart == 0.5
    assert made(kind, restart=None).restart is None
    for wrong in (0, -0.1, 1.5, float("nan"), float("inf"), "0.5", True, [0.5]):
        with pytest.raises(ValueError, match=r"restart must be a number in \(0, 1\], got"):
            made(kind, restart=wrong)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([0.1, 0.2], (0.1, 0.2)),
        ((0.1, mt.Relative(0.2)), (0.1, mt.Relative(0.2))),
        (np.array([0.25, 0.5]), (0.25, 0.5)),
        (torch.tensor([0.25, 0.5]), (0.25, 0.5)),
        (np.float32(0.25), 0.25),
        (np.int64(0), 0),
        (torch.tensor(0.25), 0.25),
        (np.array(0.25), 0.25),
        (mt.Relative(np.float64(0.25)), mt.Relative(0.25)),
    ],
)
def test_potentials_may_be_lists_and_arrays(given, expected):
    found = checked_potential(given)
    assert found == expected
    assert type(found) is type(expected)
    assert made(mt.MagneticLaplacian, k=2, q=given) == mt.MagneticLaplacian(k=2, q=expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "q must contain at least one potential, got ()"),
        ((), "q must contain at least one potential, got ()"),
        (np.zeros((2, 2)), "q must be a number in [0, 0.5], Relative(0.25), Adaptive() or a tuple of these, got"),
        (((0.1, 0.2),), "or a tuple of these, got (0.1, 0.2)"),
        ("0.25", "or a tuple of these, got '0.25'"),
        (None, "or a tuple of these, got None"),
        (True, "or a tuple of these, got True"),
        ({0.1}, "or a tuple of these, got {0.1}"),
        (1j, "or a tuple of these, got 1j"),
        ([0.1, 0.7], "q=0.7 is outside [0, 0.5]"),
        (float("nan"), "q=nan is outside [0, 0.5]"),
        (10**400, "is outside [0, 0.5]"),
    ],
)
def test_what_is_no_potential_is_refused_in_one_line(given, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        checked_potential(given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", ["a", None, True, float("nan"), float("inf"), -1, 1j, [0.1], 10**400])
def test_what_is_no_relative_potential_is_refused_in_one_line(given):
    with pytest.raises(ValueError, match="a relative potential must be a finite number ≥ 0"):
        made(mt.Relative, q=given)


@pytest.mark.parametrize("encoding", [mt.MagneticLaplacian(k=2**20), mt.Laplacian(k=2**20), mt.SVD(rank=2**20)])
def test_results_larger_than_the_memory_are_refused(monkeypatch, tmp_path, encoding):
    monkeypatch.setattr(memory, "MEMORY", tmp_path / "meminfo")
    (tmp_path / "meminfo").write_text("MemTotal:  1048576 kB\n")
    graphs = mt.Digraphs.from_edges([[0], [1]], num_nodes=1000)
    with pytest.raises(ValueError, match=r"for 1000 nodes needs \d+ GiB of memory, and cpu has 1.0 GiB: choose"):
        encoding(graphs)


def test_the_memory_is_that_of_the_job(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CONTROL_GROUP", tmp_path)
    device = torch.device("cpu")
    assert memory.total_memory(device) == float("inf")
    (tmp_path / "meminfo").write_text("MemFree: 1 kB\nMemTotal:  1024 kB\n")
    assert memory.total_memory(device) == 2**20
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.total_memory(device) == 2**20
    (tmp_path / "memory.max").write_text("1000\n")
    assert memory.total_memory(device) == 1000


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_other_things_than_graphs_are_refused(encoding):
    method = made(ENCODINGS[encoding], **{SIZES[encoding]: 2})
    for wrong in (None, [[0], [1]], torch.tensor([[0], [1]])):
        with pytest.raises((TypeError, Exception), match="Digraphs"):
            method(wrong)
