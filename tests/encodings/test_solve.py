import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import magnetite as mt
import magnetite.encodings.solve as solve
from tests.conftest import odd_digraphs


@pytest.fixture
def mixed():
    """Small graphs with large ones between them."""
    random = torch.Generator().manual_seed(0)
    large = [mt.Digraphs.from_edges(torch.randint(0, 1100, (2, 4000), generator=random), 1100) for _ in range(2)]
    return mt.Digraphs.concat([odd_digraphs(3, 5), large[0], odd_digraphs(4, 5), large[1]])


@pytest.mark.parametrize(
    "encoding", [mt.MagneticLaplacian(k=6, dtype=torch.float64), mt.Laplacian(k=6, dtype=torch.float64)]
)
def test_all_engines_agree(mixed, encoding, monkeypatch):
    pairs = encoding(mixed)
    monkeypatch.setattr(solve, "ENGINE_UP_TO", 0)
    monkeypatch.setattr(solve, "LARGE_BY", 10**9)
    reference = encoding(mixed)
    torch.testing.assert_close(pairs.values, reference.values, atol=1e-8, rtol=0)
    assert torch.equal(pairs.group, reference.group)
    fixed = reference.determined()[reference.node_graph]
    assert fixed.any()
    torch.testing.assert_close(pairs.vectors[fixed], reference.vectors[fixed], atol=1e-5, rtol=0)


def test_order_of_graphs_changes_nothing(mixed):
    encoding = mt.MagneticLaplacian(k=4, dtype=torch.float64)
    order = torch.arange(len(mixed)).flip(0)
    assert torch.equal(encoding(mixed).select(order).vectors, encoding(mixed.select(order)).vectors)


def test_random_walk_names_the_one_for_large_graphs():
    graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]], num_nodes=9000)
    with pytest.raises(ValueError, match="WalkSums"):
        mt.RandomWalk()(graphs)


def test_sparse_walks_of_many_graphs(odd):
    walks = mt.SparseRandomWalk(steps=2, top=8)(odd)
    assert walks.landing.shape == (odd.num_nodes, 8) and walks.values.shape == (odd.num_nodes, 8, 6)
    assert (walks.landing < odd.sizes[odd.node_graph][:, None]).all()
    alone = mt.SparseRandomWalk(steps=2, top=8)(odd[[7]])
    assert torch.equal(alone.values, walks[[7]].values)


@pytest.mark.parametrize("wrong", [{"top": 0}, {"tolerance": 0.0}, {"tolerance": 2.0}, {"steps": 0}, {"restart": 0.0}])
def test_wrong_parameters_are_rejected(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        mt.SparseRandomWalk(**wrong)


def test_a_bar_shows_the_pairs_found_on_a_terminal_only(monkeypatch, capsys):
    with solve._progress_bar(10**6, 4) as progress:
        assert progress is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with solve._progress_bar(10, 4) as progress:
        assert progress is None
    with solve._progress_bar(10**6, 4) as progress:
        progress(2, 0.1)
    assert "1,000,000 nodes" in capsys.readouterr().err


HASH = """
import hashlib, sys
sys.path.insert(0, {root!r})
from tests.conftest import odd_digraphs
import magnetite as mt
graphs = odd_digraphs(seed=4, count=60)
pairs = [encoding(graphs) for encoding in (mt.Laplacian(k=3), mt.MagneticLaplacian(k=4))]
print(hashlib.sha256(b"".join(one.vectors.numpy().tobytes() for one in pairs)).hexdigest())
"""


@pytest.mark.slow
def test_the_bits_do_not_depend_on_whether_kernels_were_just_compiled(tmp_path):
    root = str(Path(__file__).parent.parent.parent)
    command = [sys.executable, "-c", HASH.format(root=root)]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    assert any(tmp_path.rglob("*.kernel"))
    assert runs[0].stdout == runs[1].stdout
