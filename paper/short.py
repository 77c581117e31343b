"""What the paper compares and nobody had trained, on half a million graphs with three seeds.

    python -m paper table-short                      # trains what is missing, each cell less than a minute on an H200
    paper/series.sh runs/short 8 table-short         # many processes share one GPU

`table-fair` has the same comparisons with more training; these say what is ahead early, not how it ends.
"""

from dataclasses import replace

from paper.cells import HALF_MILLION, Cell, Changes, Request
from paper.fair import BY_LENGTH, MAGNET_POTENTIALS, NETWORKS, PAIRS, Group, compare
from paper.playground import cell_name, playground_cells

ALL_NETWORKS: dict[str, tuple[str, Changes]] = {"magnetic": ("magnetic", {}), **NETWORKS}
"""Encodings of sorting networks, first the one that the others change."""


def groups() -> list[Group]:
    """Sorting networks, and MagNet's potential on reachability."""
    networks = [
        Cell(f"short-sorting-{name}", "sorting", encoding, changes, share=HALF_MILLION)
        for name, (encoding, changes) in ALL_NETWORKS.items()
    ]
    (magnet,) = (cell for cell in playground_cells() if cell.name == cell_name("magnet", "reachability", "general"))
    model = magnet.changes["model"]
    potentials = [
        replace(
            magnet,
            name=f"short-magnet-q{q:g}",
            changes={**magnet.changes, "model": {**model, "q": q}},
            share=HALF_MILLION,
        )
        for q in MAGNET_POTENTIALS
    ]
    return [
        Group("sorting networks", networks, False, BY_LENGTH),
        Group("MagNet's potential, reachability in general digraphs", potentials, False, PAIRS),
    ]


def figure(request: Request) -> None:
    """Mean and standard error over the seeds of every cell."""
    compare("table-short", groups(), request)
