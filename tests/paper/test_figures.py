"""Figures that need no training: each command writes PNG, SVG and JSON; and the figures show what the paper says."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from magnetite.linalg.potential import Relative
from paper import examples, network_graphs, runtime, sequences, spectra, style, topological
from paper.__main__ import FIGURES, TRAINED

ROOT = Path(__file__).parents[2]
LARGE = ("figure-examples", "figure-reordered")
"""Pictures of many arrows, which take seconds to draw; the first has a test of its own."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in LARGE else []) for n in FIGURES])
def test_a_figure_is_a_picture_with_its_numbers(name, tmp_path, monkeypatch):
    monkeypatch.setattr(topological, "NETWORKS", 3)
    monkeypatch.setattr(spectra, "NODES", 30)
    monkeypatch.setattr(style, "DPI", 50)
    monkeypatch.setattr(runtime, "BENCHMARKS", {})  # nothing is measured
    if name.startswith("figure-runtime"):
        shutil.copy(ROOT / "results" / f"{name}.json", tmp_path)
    FIGURES[name](tmp_path, 0)
    assert {file.name for file in tmp_path.iterdir()} == {f"{name}.{ending}" for ending in ("json", "png", "svg")}
    record = json.loads((tmp_path / f"{name}.json").read_text())
    assert record["name"] == name
    assert {"seed", "commit", "device", "date", "seconds"} <= record.keys()
    svg = (tmp_path / f"{name}.svg").read_text()
    width = re.search(r'<svg [^>]*width="([\d.]+)pt"', svg)
    assert width
    assert float(width[1]) / 72 in (pytest.approx(style.COLUMN), pytest.approx(style.PAGE))


@pytest.mark.parametrize("path", sorted((ROOT / "results").glob("figure-*.json")), ids=lambda path: path.stem)
def test_every_stored_figure_is_complete_and_has_the_width_of_a_column_or_a_page(path):
    assert path.stem in {**FIGURES, **TRAINED}
    assert path.with_suffix(".svg").exists()
    pixels = imread(path.with_suffix(".png")).shape[1]
    assert pixels in (round(style.COLUMN * style.DPI), round(style.PAGE * style.DPI))


def test_the_documentation_shows_every_figure_and_its_command():
    text = (ROOT / "docs" / "results" / "figures.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"\]\(\.\./\.\./results/(figure-[a-z-]+)\.png\)", text))
    assert shown == {path.stem for path in (ROOT / "results").glob("figure-*.png")}
    assert shown == set(re.findall(r"`python -m paper (figure-[a-z-]+)", text))


def test_a_directed_edge_turns_the_phase_and_an_undirected_edge_does_not():
    graph = spectra.rotation_graph()
    for q in (0.05, 0.125):
        _, vectors = spectra.eigenvectors(graph, q, 1)
        turned = np.angle(vectors[:, 0] * vectors[2, 0].conj()) / (2 * np.pi * q)
        np.testing.assert_allclose(turned, [-1, -2, 0, -1], atol=1e-6)


def test_eigenvectors_of_a_sequence_are_cosines_with_a_phase():
    """The paper, section 3: `γ_j(v) = c exp(−2πiqv) cos((v + 1/2) j π / n)`."""
    n, q = 30, 0.01
    _, vectors = spectra.eigenvectors(examples.example_graphs(n)[0], q)
    place = np.arange(n)
    for j, vector in enumerate(vectors.T):
        expected = np.exp(-2j * np.pi * q * place) * np.cos((place + 0.5) * j * np.pi / n)
        expected /= np.linalg.norm(expected)
        assert abs(np.vdot(expected, vector)) == pytest.approx(1, abs=1e-6)


def test_an_undirected_graph_has_no_phase_and_a_tree_one_per_level():
    graphs = dict(zip(examples.EXAMPLES, examples.example_graphs(10), strict=True))
    grid = np.linspace(0, 1, 11)
    np.testing.assert_allclose(spectra.phases(graphs["undirected sequence"], grid), 0, atol=1e-5)
    levels = spectra.phases(graphs["balanced binary tree"], grid)[-1]
    np.testing.assert_allclose(levels, -360 / 9 * np.array([0, 1, 1, 2, 2, 2, 2, 3, 3, 3]), atol=1e-4)


def test_without_symmetrisation_nodes_cannot_be_told_apart():
    graph = examples.example_graphs(30)[0]
    _, vectors = spectra.unsymmetrised(graph)
    assert np.linalg.matrix_rank(vectors) == 2
    assert len(np.unique(vectors[:, :5].round(6), axis=0)) == 2
    _, magnetic = spectra.eigenvectors(graph, Relative(0.25))
    assert len(np.unique(magnetic.round(6), axis=0)) == 30


def test_fourier_modes_are_orthogonal_and_sinusoidal_encodings_are_not():
    modes = sequences.fourier(20, 20)[1:]  # the first sine is zero
    products = modes @ modes.T
    assert np.abs(products - np.diag(products.diagonal())).max() < 1e-9
    waves = sequences.sinusoidal(20, 20)
    assert np.abs((waves @ waves.T) - np.diag((waves**2).sum(1))).max() > 1


def test_networks_are_nearer_to_the_diagonal_than_random_dags():
    graph = network_graphs.generate(1, [11], seed=1).one(0).to_digraphs()
    other = network_graphs.random_dag(graph.num_nodes, graph.num_edges, seed=1)
    assert np.median(network_graphs.spans(graph)) < 0.3 * np.median(network_graphs.spans(other))
    assert network_graphs.EXAMPLE.is_correct()


def test_permuted_graphs_are_restored(tmp_path):
    record = json.loads((ROOT / "results" / "figure-reordered.json").read_text())
    assert {row["edges_in_order"] for row in record["result"]["rows"]} == {1.0}
