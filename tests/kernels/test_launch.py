"""CUDA sources are found where they are, and nothing is compiled where torch cannot."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from magnetite.kernels.cuda import eigen_attention, launch, lowest_pairs, pair_head, pair_sum, recurrence
from magnetite.kernels.cuda.launch import HERE, Kernel, source
from magnetite.linalg import eigen_cuda


def test_files_are_included_from_beside_the_source_and_from_the_kernels(tmp_path: Path) -> None:
    (tmp_path / "normal.cuh").write_text("// mine\n")
    (tmp_path / "own.cu").write_text('#include "normal.cuh"\n#include "bfloat16.cuh"\n#include "normal.cuh"\n')
    text = source(tmp_path / "own.cu")
    assert text.count("// mine") == 1
    assert "#include" not in text
    assert (HERE / "bfloat16.cuh").read_text() in text


@pytest.mark.parametrize("path", sorted(HERE.glob("*.cu")), ids=lambda path: path.name)
def test_every_source_is_complete(path: Path) -> None:
    assert '#include "' not in source(path)


def compiled_with(monkeypatch: pytest.MonkeyPatch, kernel: Kernel, shared_bytes: int) -> tuple[list, list]:
    """The arguments of the compiler and of the kernel."""
    compiled, launched = [], []

    def compile_cuda(*arguments):
        compiled.append(arguments)
        return lambda **given: launched.append(given)

    monkeypatch.setattr(launch._compat, "compile_cuda", compile_cuda)
    monkeypatch.setattr(launch, "shared_limit", lambda _: 1000)
    monkeypatch.setattr(launch, "_attach", lambda _: None)
    monkeypatch.setattr(torch.cuda, "device", lambda _: torch.no_grad())
    for _ in range(2):
        kernel.launch(3, (torch.zeros(2),), (5,), shared_bytes, REAL="float", TILES=2)
    return compiled, launched


@pytest.mark.parametrize("shared_bytes", [0, 64])
def test_a_kernel_is_compiled_once_for_its_constants(monkeypatch, tmp_path: Path, shared_bytes: int) -> None:
    (tmp_path / "some.cu").write_text("text")
    compiled, launched = compiled_with(monkeypatch, Kernel(tmp_path / "some.cu", "some", warps=4), shared_bytes)
    assert compiled == [("text", "some", ["-DREAL=float", "-DTILES=2"], 1000 if shared_bytes else 0)]
    assert len(launched) == 2
    assert launched[0]["grid"] == (3, 1, 1)
    assert launched[0]["block"] == (128, 1, 1)
    assert launched[0]["shared_mem"] == shared_bytes
    assert launched[0]["args"][1:] == [5]


@pytest.mark.parametrize("can_compile", [True, False])
def test_without_a_compiler_plain_operations_are_used(monkeypatch, can_compile: bool) -> None:
    for module in (eigen_attention, lowest_pairs, pair_head, pair_sum, recurrence):
        monkeypatch.setattr(module, "CAN_COMPILE", can_compile)
    for module in (lowest_pairs, recurrence):
        monkeypatch.setattr(module, "shared_limit", lambda _: 200_000)
    monkeypatch.setattr(pair_head, "knows_bfloat16", lambda _: True)
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: True)
    monkeypatch.setattr(torch, "get_autocast_dtype", lambda _: torch.bfloat16)
    monkeypatch.setattr(eigen_cuda, "_library", lambda: None)
    tokens = SimpleNamespace(shape=(9, 5, 6), is_cuda=True, dtype=torch.float32)
    states = SimpleNamespace(shape=(9, 64), is_cuda=True, dtype=torch.float32, device=torch.device("cuda"))
    pairs = SimpleNamespace(dtype=torch.float32, is_cuda=True, requires_grad=False)
    matrices = torch.zeros(2, 4, 4, dtype=torch.complex128)
    assert eigen_attention.suits(tokens, 8) == can_compile  # pyright: ignore[reportArgumentType]
    assert recurrence.suits(states) == can_compile  # pyright: ignore[reportArgumentType]
    assert pair_sum.suits(pairs, torch.zeros(32, 4)) == can_compile  # pyright: ignore[reportArgumentType]
    assert pair_head.suits(torch.nn.LayerNorm(64), torch.nn.GELU(), torch.device("cuda")) == can_compile
    assert eigen_cuda.drivers(matrices, 2, single=False) == [lowest_pairs.one_block_each] * can_compile
