import importlib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_table_of_results_is_what_was_measured(monkeypatch):
    """The README's figures are those in results/; `python benchmarks/readme.py` writes them."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert importlib.import_module("readme").written(text) == text
