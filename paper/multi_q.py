"""Directed distances on the data of "What Are Good Positional Encodings for Directed Graphs?" (ICLR 2025).

Its code generates the same random graphs as the playground: 400,000 graphs of 16 to 63 nodes, of which 5 % validate,
and 5,000 test graphs of 64 to 71 nodes; errors are pooled over all node pairs. Its general digraphs may have
self-loops, ours have none. Its best model reads 32 eigenvectors of each of ten potentials 0.05, 0.1, …, 0.5 through SPE
and has a head for node pairs alone, without a transformer; 100 epochs of Adam at 1e-3, batches of 512. It reports a
test RMSE of 0.016 in DAGs, and of 0.124 with a single potential. No cell reads walks between the two nodes, whose first
non-zero entry is the distance.
"""

from typing import Any

from paper.cells import FOUR_MILLION, Cell, Request
from paper.charts import by_column

PUBLISHED = 0.016
"""The test RMSE that the paper reports for its best model, in DAGs."""

POTENTIALS = [round(0.05 * number, 2) for number in range(1, 11)]

SPE: Any = {"encoder": "spe", "k": 32, "convention": "multi-q"}

ENCODINGS: dict[str, Any] = {
    "multi-q-spe": {**SPE, "q": POTENTIALS, "pairs": True},
    "single-q-spe": {**SPE, "q": 0.1, "pairs": True},
    "multi-q-spe-nodes": {**SPE, "q": POTENTIALS},
    "multi-q": {"k": 32, "convention": "multi-q", "q": POTENTIALS},
    "single-q": {"k": 32, "convention": "multi-q", "q": 0.1},
}
"""Ten potentials or one, read by SPE for node pairs and nodes, by SPE for nodes alone, or by MagLapNet."""


def cells() -> list[Cell]:
    """Each encoding on DAGs and on general digraphs, at equal numbers of graphs.

    >>> cells()[0].name
    'multi-q-dag-multi-q-spe'
    """
    return [
        Cell(
            f"multi-q-{kind}-{name}",
            "distances",
            "magnetic",
            {
                "task": {"target": "directed-distance", "acyclic": kind == "dag", "protocol": "multi-q"},
                "encoding": {"magnetic": encoding},
            },
            share=FOUR_MILLION,
        )
        for kind in ("dag", "general")
        for name, encoding in ENCODINGS.items()
    ]


def figure(request: Request) -> None:
    """Test errors of each encoding."""
    found = cells()
    rows = {cell.name: {metric: (cell.name, metric) for metric in ("rmse", "mae")} for cell in found}
    by_column("figure-multi-q", found, rows, request)
