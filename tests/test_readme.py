import importlib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_tables_hold_the_measured_results(monkeypatch):
    """Tables in README.md and docs/results/index.md follow from results/; `python benchmarks/tables.py` writes them."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    tables = importlib.import_module("tables")
    for path, text in tables.pages().items():
        assert path.read_text(encoding="utf-8") == text
    assert sum(row.main for row in tables.rows()) <= 10
