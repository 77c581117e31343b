"""Charts are the same files every time, say what they show in words, and have error bars where there are two seeds."""

from dataclasses import replace

import pytest

from paper import best, charts, multi_q, networks, playground, sorting, style
from paper.charts import Panel, Training, bar_chart, line_chart

LINES = {"walks": [0.25, 1.0], "svd": [0.5, None], "walks-second": [0.75, 1.0]}


def drawn(monkeypatch, draw) -> list:
    """The axes of the figure that a function draws."""
    figures = []
    monkeypatch.setattr(style, "save_figure", lambda figure, *_, **__: figures.append(figure))
    draw()
    return figures[0].axes


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_same_figure_is_the_same_file(tmp_path, ending):
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        line_chart(tmp_path / folder / "lines", [Panel(LINES, ["1", "2"], "k", "F1 score")], Training())
        bar_chart(tmp_path / folder / "bars", {"f1": {"magnetic": 0.5, "walks": None}}, Training())
    for name in ("lines", "bars"):
        first, second = ((tmp_path / folder / f"{name}.{ending}").read_bytes() for folder in ("first", "second"))
        assert first == second
        assert len(first) > 1000


def test_missing_values_leave_no_gap(tmp_path):
    bar_chart(tmp_path / "bars", {"f1": {"magnetic": 0.5, "walks": None}}, Training())
    line_chart(
        tmp_path / "lines", [Panel({"svd": [None, None], "walks": [0.2, 1.0]}, ["1", "2"], "k", "f1")], Training()
    )
    bars, lines = ((tmp_path / f"{name}.svg").read_text() for name in ("bars", "lines"))
    assert "<!-- magnetic Laplacian -->" in bars
    assert "<!-- random walks -->" not in bars
    assert "<!-- random walks -->" in lines
    assert "<!-- SVD -->" not in lines


def test_two_seeds_are_one_line_with_error_bars(tmp_path, monkeypatch):
    panel = Panel(LINES, ["1", "2"], "k", "F1 score")
    (axes,) = drawn(monkeypatch, lambda: line_chart(tmp_path / "lines", [panel], Training()))
    walks = next(line for line in axes.lines if line.get_color() == style.look("walks").colour)
    assert walks.get_ydata().tolist() == [0.5, 1.0]
    whiskers = [segment for bars in axes.collections for segment in bars.get_segments()]
    assert [segment[:, 1].tolist() for segment in whiskers] == [[0.25, 0.75]]
    assert "two seeds" in axes.get_figure().get_suptitle()


def test_bars_of_two_seeds_have_error_bars(tmp_path, monkeypatch):
    columns = {"dag rmse": {"walks": 1.0, "svd": 4.0, "walks-second": 2.0}}
    (axes,) = drawn(monkeypatch, lambda: bar_chart(tmp_path / "bars", columns, Training()))
    assert [bar.get_width() for bar in axes.patches] == [1.5, 4.0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["random walks", "SVD"]
    assert (axes.get_title(), axes.get_xlabel()) == ("DAGs", "RMSE, edges")
    assert len(axes.containers) == 3  # two bars and one pair of whiskers


def test_values_close_to_each_other_are_points(tmp_path, monkeypatch):
    (axes,) = drawn(monkeypatch, lambda: bar_chart(tmp_path / "a", {"auc": {"svd": 0.98, "walks": 0.99}}, Training()))
    assert not axes.patches
    assert axes.get_xlim()[0] > 0.9


def test_labels_say_how_many_graphs_if_they_differ():
    training = Training({("walks", ""): 12_000_000, ("walks-shorter", ""): 2_000_000, ("gnn", ""): 2_000_000})
    assert training.look("walks").label == "random walks, 12 M graphs"
    assert training.look("walks-shorter").colour == style.LIGHTER[style.look("walks").colour]
    assert training.look("gnn").colour == style.look("gnn").colour  # there is no longer training of it
    assert replace(training, seen={("walks", ""): 32_000}).title == "trained on 32,000 graphs"
    assert replace(training, seen={("walks", ""): 32_000}).look("walks").label == "random walks"


def rows() -> list[str]:
    """The rows that the figures of training runs draw."""
    by_length = [*sorting.encoding_cells(), *best.sorting_cells(), *best.quick_cells()]
    by_column = [
        *best.candidate_cells(), *best.distance_cells(), *networks.cells(), *networks.quick_cells(), *multi_q.cells(),
    ]  # fmt: skip
    shorter = [f"{name}-shorter" for name in playground.COMPARED]
    lengths = [f"length {length}" for length in charts.LENGTHS]
    arranged = [name for panel in sorting.by_steps({"accuracy": steps()}) for name in panel.lines]
    names = [cell.name.removeprefix("sorting-") for cell in by_length] + [cell.name for cell in by_column]
    return [*names, *playground.MAIN, *playground.APPENDIX, *playground.WALKS, *shorter, *lengths, *arranged]


def steps() -> dict[str, list[float]]:
    return {cell.name.removeprefix("sorting-"): [0.5] * len(charts.LENGTHS) for cell in sorting.message_cells()}


def test_every_row_has_a_readable_name():
    unnamed = {row for row in rows() if row.removesuffix(style.SECOND) not in style.LOOKS}
    assert not unnamed
    assert not [look.label for look in style.LOOKS.values() if "-" in look.label.replace("message-passing", "")]


def test_lines_of_one_panel_differ_in_more_than_colour():
    for names in (("magnetic", "walks", "laplacian", "sinusoidal"), tuple(playground.WALKS), tuple(lengths())):
        looks = [style.look(name) for name in names]
        assert len({look.colour for look in looks}) == len(looks)
        assert len({look.marker for look in looks}) == len(looks)


def lengths() -> list[str]:
    return [f"length {length}" for length in charts.LENGTHS]
