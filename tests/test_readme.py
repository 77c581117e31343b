import importlib.util
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_table_of_results_is_what_was_measured():
    """The README's figures are those in results/; `python benchmarks/readme.py` writes them."""
    spec = importlib.util.spec_from_file_location("readme", ROOT / "benchmarks" / "readme.py")
    readme = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(readme)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.written(text) == text
