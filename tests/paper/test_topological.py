import json

from paper import topological


def test_table_figure_and_record(tmp_path, capsys):
    """Claim 8 of SPEC section 8: over a million topological sorts at length 8."""
    topological.figure(tmp_path, seed=0)
    assert "7,055,168" in capsys.readouterr().out
    rows = json.loads((tmp_path / "figure-topological-sorts.json").read_text())["result"]["rows"]
    assert [row["length"] for row in rows] == list(range(2, 17))
    assert next(int(row["topological_sorts"]) for row in rows if row["length"] == 8) > 1_000_000
    assert (tmp_path / "figure-topological-sorts.svg").exists()
