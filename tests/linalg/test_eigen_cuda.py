"""On a CUDA device: `python -m pytest -m gpu`."""

import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite.encodings.potentials import node_pairs
from magnetite.kernels.cuda.lowest_pairs import LARGEST, one_block_each, suits
from magnetite.linalg import eigen, eigen_cuda
from magnetite.linalg.adaptive import adaptive_potentials
from magnetite.linalg.eigen import lowest_eigenpairs, verify
from magnetite.linalg.laplacian import laplacian, magnetic_laplacian

from ..conftest import odd_digraphs

pytestmark = pytest.mark.gpu


def matrices(size: int, count: int = 64, real: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(size)
    adjacency = (torch.rand(count, size, size, generator=generator) < 3 / size).double().cuda()
    return laplacian(adjacency) if real else magnetic_laplacian(adjacency, 0.25 / size)


@pytest.mark.parametrize("size", [2, 3, 16, 24, 33, 64, 65, 100, 128, 129, 200, 256, 300, 512, 513, 1024, 1025])
@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_every_size_is_verified(size, real, single):
    batch = matrices(size, count=64 if size <= 300 else 4, real=real)
    values, vectors = lowest_eigenpairs(batch, 25, single=single)
    limit = eigen.SINGLE_TOLERANCE if single else eigen.TOLERANCE
    assert torch.stack(verify(batch, values, vectors)).max() < limit
    torch.testing.assert_close(values, torch.linalg.eigvalsh(batch)[:, :25], atol=1e-5 if single else 1e-11, rtol=0)


def test_the_drivers_agree():
    batch = matrices(80)
    expected = torch.linalg.eigvalsh(batch)[:, :16]
    for driver in (one_block_each, eigen_cuda.refined_batched, eigen_cuda.cusolver_batched):
        torch.testing.assert_close(driver(batch, 16)[0], expected, atol=1e-9, rtol=0)


def test_components_and_degenerate_values_survive():
    graphs = odd_digraphs(seed=9, count=500, high=90, weighted=True).to("cuda")
    pairs = mt.MagneticLaplacian(k=16, dtype=torch.float64)(graphs)
    for graph, one in zip(graphs, pairs, strict=True):
        adjacency = torch.from_numpy(graph.to("cpu").to_scipy()[0].toarray()).cuda()
        matrix = magnetic_laplacian(adjacency, mt.Relative(0.25).absolute(adjacency))
        kept = int(one.mask.sum())
        checked = verify(matrix[None], one.values[None, :kept], one.vectors[None, :, :kept])
        assert torch.cat(checked).max() < 1e-10


def test_cpu_and_gpu_agree():
    graphs = odd_digraphs(seed=10, count=500, high=90)
    encoding = mt.MagneticLaplacian(k=16)
    on_cpu, on_gpu = encoding(graphs), encoding(graphs.to("cuda")).to("cpu")
    fixed = on_cpu.determined() & on_gpu.determined()
    assert fixed.double().mean() > 0.3
    torch.testing.assert_close(on_gpu.values, on_cpu.values, atol=1e-5, rtol=0)
    mask = fixed[graphs.node_graph]
    torch.testing.assert_close(on_gpu.vectors * mask, on_cpu.vectors * mask, atol=1e-5, rtol=0)
    walks = mt.RandomWalk()
    torch.testing.assert_close(walks(graphs.to("cuda")).to("cpu").values, walks(graphs).values, atol=1e-5, rtol=0)


def test_single_precision_results_that_fail_are_redone_in_double(monkeypatch):
    batch = matrices(40)

    def wrong(single, k):
        assert single.dtype == torch.complex64
        values, vectors = eigen_cuda.cusolver_batched(single, k)
        vectors[3] = torch.nan
        return values, vectors

    chosen = eigen_cuda.drivers(batch, 8, single=True)
    monkeypatch.setattr(
        eigen_cuda, "drivers", lambda *_: [lambda m, k: eigen_cuda._in_single(wrong, m, k), *chosen[1:]]
    )
    values, vectors = lowest_eigenpairs(batch, 8, single=True)
    assert torch.stack(verify(batch, values, vectors)).max() < eigen.SINGLE_TOLERANCE
    assert verify(batch[3:4], values[3:4], vectors[3:4])[0] < 1e-12


def test_single_precision_by_name():
    graphs = odd_digraphs(seed=11, count=200, high=90).to("cuda")
    double, single = mt.MagneticLaplacian(k=8)(graphs), mt.MagneticLaplacian(k=8, precision="single")(graphs)
    torch.testing.assert_close(single.values, double.values, atol=1e-5, rtol=0)
    assert not torch.equal(single.vectors, double.vectors)


def test_without_the_library_torch_solves_and_it_is_said_once(monkeypatch):
    monkeypatch.setattr(eigen_cuda, "_library", lambda: None)
    batch = matrices(LARGEST + 1, count=2)
    assert eigen_cuda.drivers(batch, 8, single=False) == []
    values, vectors = lowest_eigenpairs(batch, 8)
    assert torch.stack(verify(batch, values, vectors)).max() < 1e-10


def test_the_kernel_is_deterministic():
    batch = matrices(80)
    assert suits(batch, 25)
    first, second = one_block_each(batch, 25), one_block_each(batch, 25)
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[1], second[1])


def test_the_potential_of_a_large_graph_is_that_of_the_cpu():
    """Above `adaptive.LARGE` nodes, the eigenvectors that decide it are computed on the GPU."""
    random = np.random.default_rng(0)
    label = torch.from_numpy(random.integers(0, 5, 20_000))
    source, target = torch.from_numpy(random.integers(0, 20_000, (2, 200_000)))
    along = (label[target] - label[source]) % 5 == 1
    graphs = mt.Digraphs.from_edges(torch.stack([source, target])[:, along], num_nodes=20_000)
    pairs = node_pairs(graphs)
    assert torch.equal(adaptive_potentials(pairs, "cuda"), adaptive_potentials(pairs))


def test_large_graphs_agree_on_cpu_and_gpu():
    """One component of thousands of nodes beside small ones, solved by iteration on both devices."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.cat([torch.randint(0, 6000, (2, 18000), generator=generator), torch.tensor([[6000], [6001]])], dim=1)
    graphs = mt.Digraphs.from_edges(edges)
    encoding = mt.MagneticLaplacian(k=8, q=0.1)
    on_cpu, on_gpu = encoding(graphs), encoding(graphs.to("cuda"))
    assert on_gpu.vectors.is_cuda
    torch.testing.assert_close(on_gpu.to("cpu").values, on_cpu.values, atol=1e-6, rtol=0)
    mask = (on_cpu.determined() & on_gpu.to("cpu").determined())[graphs.node_graph]
    assert mask.any()
    torch.testing.assert_close(on_gpu.to("cpu").vectors * mask, on_cpu.vectors * mask, atol=1e-5, rtol=0)
