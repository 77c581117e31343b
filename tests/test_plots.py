"""Figures of eigenvectors: what is drawn, and what is refused before anything is computed."""

import networkx as nx
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

import magnetite as mt
from magnetite import plots
from magnetite.cli import encode as command
from tests.cli.test_app import call


@pytest.fixture
def named():
    graph = nx.disjoint_union_all(
        [nx.cycle_graph(5, nx.DiGraph), nx.path_graph(4, nx.DiGraph), nx.empty_graph(2, nx.DiGraph)]
    )
    return mt.Digraphs.from_networkx(graph).replace(names=[f"$n{i}$" for i in range(11)])


def test_every_component_has_its_own_place(named):
    graph = nx.DiGraph(named.to_networkx()[0])
    places = plots.layout(graph)
    boxes = []
    for nodes in nx.weakly_connected_components(graph):
        points = np.array([places[node] for node in nodes])
        boxes.append((points.min(0), points.max(0)))
        assert len(np.unique(points.round(6), axis=0)) == len(nodes)
    for i, (low, high) in enumerate(boxes):
        assert all((high < other).any() or (low > upper).any() for other, upper in boxes[:i])
    assert all(np.array_equal(place, plots.layout(graph)[node]) for node, place in places.items())


def test_labels_sizes_and_colours_are_explained(named, tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(plots, "save_figure", lambda figure, _: figures.append(figure))
    pairs = mt.MagneticLaplacian(k=4, q=(0.1, 0.2))(named)
    plots.plot_eigenvectors(named, pairs, tmp_path / "a.png", vector=2, potential=1)
    axes, bar = figures[0].axes
    assert {text.get_text() for text in axes.texts} == {rf"\$n{i}\$" for i in range(11)}
    assert bar.get_ylabel() == "imaginary part of eigenvector 2"
    assert axes.get_legend().get_title().get_text() == "|real part|"
    drawn = axes.collections[0]
    np.testing.assert_allclose(drawn.get_array(), pairs.vectors[:, 1, 2].imag)
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_figures_are_deterministic_and_small_graphs_are_left_blank(tmp_path):
    graphs = mt.Digraphs.from_networkx([nx.path_graph(9, nx.DiGraph), nx.path_graph(2, nx.DiGraph)])
    pairs = mt.MagneticLaplacian(k=3)(graphs)
    for name in ("a.svg", "b.svg"):
        plots.plot_eigenvectors(graphs, pairs, tmp_path / name, vector=2)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    with pytest.raises(ValueError, match="vector must be from 0 to 2, got 3"):
        plots.plot_eigenvectors(graphs, pairs, tmp_path / "c.svg", vector=3)
    with pytest.raises(ValueError, match="potential must be from 0 to 0, got 1"):
        plots.draw_eigenvector(graphs[0], pairs[0], Figure().add_subplot(), potential=1)


@pytest.fixture(params=["given axes", "new axes"])
def axes(request):
    return Figure().add_subplot() if request.param == "given axes" else None


def test_every_function_draws_on_the_given_axes_and_returns_them(axes):
    graph = mt.Digraphs.from_networkx(nx.path_graph(6, nx.DiGraph))
    pairs = mt.MagneticLaplacian(k=3)(graph)
    for draw in (
        lambda: plots.draw_eigenvector(graph, pairs, axes),
        lambda: plots.draw_spectrum(pairs[0].vectors, axes),
        lambda: plots.draw_adjacency(graph, axes),
        lambda: plots.draw_bitmap(pairs[0].vectors.real, axes),
    ):
        returned = draw()
        assert axes is None or returned is axes
        assert returned.has_data()


def test_a_spectrum_is_scaled_and_stacked():
    vectors = np.array([[1.0, 0.0], [-2.0j, 0.0], [0.5, 0.0]])
    axes = plots.draw_spectrum(vectors, labels=False)
    real, imaginary = axes.lines[1], axes.lines[2]
    np.testing.assert_allclose(real.get_ydata(), [0.5, 0, 0.25])
    np.testing.assert_allclose(imaginary.get_ydata(), [0, -1, 0])
    np.testing.assert_allclose(axes.lines[4].get_ydata(), axes.get_yticks()[1])  # a zero vector stays zero


def test_an_adjacency_matrix_has_sources_as_rows():
    graph = mt.Digraphs.from_edges(np.array([[0, 2], [1, 0]]), 3)
    np.testing.assert_array_equal(plots.draw_adjacency(graph).images[0].get_array(), [[0, 1, 0], [0, 0, 0], [1, 0, 0]])


def test_colours_and_sizes_can_be_shared_by_several_graphs(named):
    pairs = mt.MagneticLaplacian(k=1)(named)
    one, other = (plots.draw_eigenvector(named, pairs, limit=0.7, scale=scale).collections[0] for scale in (1.0, 0.25))
    assert one.get_clim() == other.get_clim() == (-0.7, 0.7)
    np.testing.assert_allclose(other.get_sizes(), 0.25 * one.get_sizes())


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plots.draw_spectrum(np.ones(3)), r"one eigenvector per column, got shape \(3,\)"),
        (lambda: plots.draw_bitmap(np.ones((2, 2)) * 1j), "must be real and have two dimensions, got complex128"),
        (
            lambda: plots.draw_adjacency(mt.Digraphs.from_edges([np.array([[0], [1]])] * 2)),
            "one graph at a time, got 2",
        ),
    ],
)
def test_wrong_arrays_are_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_a_figure_may_keep_its_size(tmp_path):
    figure = Figure(figsize=(3.3, 1.5))
    figure.add_subplot()
    plots.save_figure(figure, tmp_path / "a.png", dpi=100, crop=False)
    assert imread(tmp_path / "a.png").shape[:2] == (150, 330)


@pytest.mark.parametrize(
    ("nodes", "arguments", "message"),
    [
        (500, ("--plot", "pe.png"), "at most 400 nodes can be drawn, got 501 nodes"),
        (3, ("--plot", "pe.png", "--k", 3, "--vector", 3), "--vector must be from 0 to 2, got 3"),
        (3, ("--plot", "pe.png", "--vector", -1), "--vector must be from 0 to 15, got -1"),
        (3, ("--plot", "pe.png", "--encoding", "svd"), "--plot draws eigenvectors, which svd does not have"),
        (3, ("--plot", "g.csv/pe.png"), "g.csv"),
        (3, ("--plot", "pe.gif"), "unknown file extension"),
        (3, ("--vector", 1), "give --plot, too"),
        (3, ("--weight", "cost", "--unweighted"), "both given"),
        (3, ("--nodes", "none.csv"), "none.csv does not exist"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_it_is_computed(
    tmp_path, monkeypatch, capsys, nodes, arguments, message
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_with_progress", lambda *_: pytest.fail("it was computed"))
    (tmp_path / "g.csv").write_text("".join(f"{i},{i + 1}\n" for i in range(nodes)))
    code, _, stderr = call(monkeypatch, capsys, "encode", "g.csv", "--out", "pe.npz", *arguments)
    assert code == 2
    assert message in stderr
    assert stderr.count("\n") == 1
    assert not (tmp_path / "pe.npz").exists()


def test_the_command_line_draws_a_vector_of_a_graph_with_isolated_nodes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.csv").write_text("source;target;cost\na;b;2\nb;c;3\n")
    (tmp_path / "n.csv").write_text("node\nc\nd\nb\na\n")
    arguments = ("--weight", "cost", "--nodes", "n.csv", "--out", "pe.npz", "--plot", "pe.png", "--vector", 2)
    code, _, stderr = call(monkeypatch, capsys, "encode", "g.csv", *arguments)
    assert code == 0, stderr
    assert (tmp_path / "pe.png").read_bytes().startswith(b"\x89PNG")
    assert mt.read("pe.npz").names == ["c", "d", "b", "a"]
