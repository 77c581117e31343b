"""Write the README's table of results from `results/`: no figure in it is typed by hand.

python benchmarks/readme.py
"""

import readme_engines
import readme_training
from measured import ROOT

BEGIN, END = "<!-- results: written by benchmarks/readme.py -->", "<!-- end of results -->"


def table() -> str:
    """The table, in Markdown."""
    rows = readme_engines.rows() + readme_training.rows()
    lines = ["| what | against | figure | command |", "|---|---|---|---|"]
    lines += [f"| {what} | {against} | {figure} | `{command}` |" for what, against, figure, command in rows]
    return "\n".join(lines)


def written(text: str) -> str:
    """The README's text with the table between its marks."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


def main() -> None:
    """Rewrite the README."""
    path = ROOT / "README.md"
    path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
