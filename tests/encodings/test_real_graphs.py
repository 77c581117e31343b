"""Encodings of large graphs agree with dense ones on real graphs, and models train on them: words, pages, citations."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.linalg import eigh

import magnetite as mt
from magnetite.linalg.laplacian import Operator
from magnetite.linalg.large import lowest_of_large
from magnetite.linalg.svd_sparse import largest_singular
from magnetite.transforms import AddMagneticLaplacianPE

DATA = Path(__file__).parent.parent / "data" / "graphs"
NAMES = ["words", "pages", "citations"]


def citations(size=1200, references=4):
    """A paper cites earlier ones, and often what these cite."""
    random, cited = np.random.default_rng(0), [[]]
    for paper in range(1, size):
        chosen = set()
        while len(chosen) < min(references, paper):
            other = int(random.integers(paper))
            follow = cited[other] and random.random() < 0.6
            chosen.add(cited[other][int(random.integers(len(cited[other])))] if follow else other)
        cited.append(sorted(chosen))
    return mt.Digraphs.from_edges([[u for u in range(size) for _ in cited[u]], [v for each in cited for v in each]])


@pytest.fixture(params=NAMES, scope="module")
def graph(request):
    if request.param == "words":
        return mt.read(DATA / "wordnet-structures.tsv")
    if request.param == "pages":
        with np.load(DATA / "chameleon.npz") as stored:
            return mt.Digraphs.from_edges(stored["edges"].astype(np.int64), num_nodes=890)
    return citations()


def dense(graph):
    return torch.from_numpy(graph.to_scipy()[0].toarray()).double()


def test_eigenvalues(graph):
    operator = Operator(0.1)
    values, vectors = lowest_of_large(graph.edges, graph.num_nodes, None, operator, 12)
    matrix = operator.dense(dense(graph)).numpy()
    expected = eigh(matrix, eigvals_only=True, subset_by_index=(0, 11))
    np.testing.assert_allclose(values.numpy(), expected, atol=1e-9)
    np.testing.assert_allclose(matrix @ vectors.numpy(), vectors.numpy() * values.numpy(), atol=1e-6)


def test_singular_values(graph):
    found, _, _ = largest_singular(graph.edges, graph.num_nodes, None, 8, "cpu")
    torch.testing.assert_close(found, torch.linalg.svdvals(dense(graph))[:8], rtol=1e-8, atol=1e-8)


def test_walks(graph):
    options = {"steps": 2, "restart": None}
    exact = mt.RandomWalk(**options)(graph)[0]
    found = mt.SparseRandomWalk(**options, top=32, tolerance=0.0)(graph)
    start, place = (found.landing >= 0).nonzero(as_tuple=True)
    landing = found.landing[start, place]
    torch.testing.assert_close(found.values[start, place], exact[start, landing], atol=1e-6, rtol=1e-5)
    assert (found.values[:, 0].sum(-1) > 0).any()


def test_names_and_transform(graph):
    data = AddMagneticLaplacianPE(k=4)(graph.to_pyg()[0])
    assert data.magnetic_pe.shape == (graph.num_nodes, 8)
    assert (graph.names is None) == ("names" not in data)


@pytest.mark.parametrize("encoding", ["magnetic", "svd", "walk-sums"])
def test_nodes_are_classified_from_samples(graph, encoding, tmp_path):
    degree = torch.bincount(graph.edges[1].long(), minlength=graph.num_nodes)
    task = mt.tasks.Supervised(
        graph.replace(node_features={"y": (degree > degree.double().median()).long()}, names=None),
        target="y", level="node", kind="classification",
    )  # fmt: skip
    settings = {"data.neighbours": [4, 2], "optim.batch": 64, "model.attention": "linear", "model.width": 16}
    run = mt.train(task, encoding=encoding, preset="quick", epochs=4, out=tmp_path / "run", settings=settings)
    # The classes are numbers of incoming edges, which the samples contain in part.
    assert run.metrics["test"]["accuracy"] > 0.6
