"""Charts are the same files every time, so that a repository shows what changed."""

import pytest

from paper.charts import bar_chart, line_chart


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_same_figure_is_the_same_file(tmp_path, ending):
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        line_chart(tmp_path / folder / "lines", {"f1": {"svd": [0.5, None], "walks": [0.25, 1.0]}}, ["1", "2"], "k", {})
        bar_chart(tmp_path / folder / "bars", {"f1": {"magnetic": 0.5, "walks": None}}, {})
    for name in ("lines", "bars"):
        first, second = ((tmp_path / folder / f"{name}.{ending}").read_bytes() for folder in ("first", "second"))
        assert first == second
        assert len(first) > 1000


def test_missing_values_leave_no_gap(tmp_path):
    bar_chart(tmp_path / "bars", {"f1": {"magnetic": 0.5, "walks": None}}, {})
    line_chart(tmp_path / "lines", {"f1": {"svd": [None, None], "walks": [0.25, 1.0]}}, ["1", "2"], "k", {})
    bars, lines = ((tmp_path / f"{name}.svg").read_text() for name in ("bars", "lines"))
    assert "<!-- magnetic -->" in bars
    assert "<!-- walks -->" not in bars
    assert "<!-- walks -->" in lines
    assert "<!-- svd -->" not in lines
