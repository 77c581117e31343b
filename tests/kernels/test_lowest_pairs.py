"""The CUDA eigensolver: which variant is chosen, and on the CPU, that it solves what falls into equal parts."""

from itertools import product
from pathlib import Path

import pytest
import torch

from magnetite.kernels.cuda import lowest_pairs
from magnetite.kernels.cuda.lowest_pairs import _Plan, one_block_each
from magnetite.linalg.eigen import SINGLE_TOLERANCE, TOLERANCE, verify
from magnetite.linalg.laplacian import laplacian, magnetic_laplacian

from .emulation import emulated

H200, SMALL = 232_448, 49_152
"""Bytes of shared memory of a block on an H200, and the least of any GPU."""


@pytest.mark.parametrize(
    ("size", "element", "expected"),
    [
        (16, 8, (32, 8, True)),
        (24, 16, (64, 8, True)),
        (128, 8, (128, 8, True)),
        (200, 16, (512, 8, True)),
        (512, 16, (512, 8, False)),
        (1024, 8, (1024, 8, False)),
        (1024, 16, (512, 4, False)),
    ],
)
def test_the_variant_is_the_fastest_that_was_measured(size, element, expected):
    plan = _Plan.of(size, min(25, size), element, H200)
    assert plan is not None
    assert (plan.threads, plan.panel, plan.resident) == expected


@pytest.mark.parametrize("limit", [H200, SMALL])
def test_a_variant_fits_into_a_block(limit):
    for size, element in product(range(2, 1025, 7), (8, 16)):
        for kept in {1, min(25, size), size}:
            plan = _Plan.of(size, kept, element, limit)
            assert plan is not None or limit == SMALL or kept > 512
            if plan is not None:
                assert plan.shared_bytes(size, kept, element) <= limit
                assert max(32, kept) <= plan.threads <= 1024


def parts(size: int) -> torch.Tensor:
    """Adjacency matrices: the same small digraph four times, small parts and a larger one, no edges, a random one."""
    generator = torch.Generator().manual_seed(size)
    random = (torch.rand(size, size, generator=generator) < 2 / size).double().fill_diagonal_(0)
    part = (torch.rand(size // 4, size // 4, generator=generator) < 0.4).double().fill_diagonal_(0)
    copies, small = torch.kron(torch.eye(4), part), torch.zeros(size, size)
    small[[0, 2, 4, 5, 6], [1, 3, 5, 6, 7]] = 1
    small[size // 2 :, size // 2 :] = random[size // 2 :, size // 2 :]
    order = torch.randperm(size, generator=generator)
    return torch.stack([each.double()[order][:, order] for each in (copies, small, 0 * small, random)])


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128, torch.float64])
@pytest.mark.parametrize("panel", [8, 4])
def test_equal_parts_have_orthogonal_vectors(tmp_path: Path, monkeypatch, dtype, panel):
    adjacency = parts(20)
    matrices = magnetic_laplacian(adjacency, 0.02) if dtype.is_complex else laplacian(adjacency)
    monkeypatch.setattr(lowest_pairs, "shared_limit", lambda _: H200)
    plan = _Plan(32 if dtype == torch.complex64 else 64, panel, resident=panel == 8)
    monkeypatch.setattr(_Plan, "of", lambda *_: plan)
    with emulated(tmp_path):
        values, vectors = one_block_each(matrices.to(dtype), 12)
    limit = SINGLE_TOLERANCE if dtype == torch.complex64 else TOLERANCE
    assert torch.stack(verify(matrices, values.double(), vectors.to(matrices.dtype))).max() < limit
    expected = torch.linalg.eigvalsh(matrices)[:, :12]
    torch.testing.assert_close(values.double(), expected, atol=1e-5 if dtype == torch.complex64 else 1e-12, rtol=0)
