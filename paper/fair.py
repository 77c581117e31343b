"""A fair comparison: decisive cells in the form of the authors' code and in ours, each with three seeds.

    python -m paper table-fair                       # trains what is missing, the most important cells first
    python -m paper table-fair --only authors-       # the form of the authors' code alone
    python -m paper table-fair --no-train            # the table of what has been trained
    paper/series.sh runs/fair 4 table-fair           # four processes share the work on one GPU

Function names have their own command, since they need a corpus; the first row has the edges of Bieber et al. (2022),
who connect statements as in the text, in place of our dependencies:

    python -m paper train-code --data CORPUS --rows sequential-magnetic,dataflow-magnetic --seeds 0,1,2 --epochs 4
    python -m paper train-code --data CORPUS --rows authors --seeds 0,1,2 --epochs 4

The preset `authors` of a task trains as the authors' code does where it differs from the text of the paper; `claims`
judges by these cells where they exist. The other groups are comparisons of the paper that had not been trained, and
changes of the general model for sorting networks, each against the same cell without it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.table import Table

from magnetite.training.config import configuration, merge
from paper.cells import FOUR_MILLION, Cell, Changes, Request, train_missing
from paper.claims import ACCURACY, AUC, AUTHORS
from paper.playground import APPENDIX, FULL, KINDS, MAIN, TARGETS, cell_name, playground_cells
from paper.sorting import encoding_cells, message_cells, potential_cells
from paper.statistics import mean_and_error
from paper.store import Metric

SEEDS = (0, 1, 2)

ALONE = {"walks+relative-walks": "relative-walks"}
"""Encodings of ours, and what the authors' code has in their place: relative walks come without node walks."""

MAGNET_POTENTIALS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25)
"""Potentials of MagNet in the paper's sweep."""

ABSOLUTE = (0.003, 0.01, 0.1)
"""Absolute potentials beside `Relative(0.25)`, which is 0.002 to 0.008 for networks of 30 to 120 comparators."""

NETWORKS: Mapping[str, tuple[str, Changes]] = {
    "unnormalised": ("magnetic", {"encoding": {"normalised": False}}),
    **{f"absolute-q{q:g}": ("magnetic", {"encoding": {"q": q}}) for q in ABSOLUTE},
    "svd": ("svd", {}),
    "single-precision": ("magnetic", {"run": {"precision": "32-true"}}),
}
"""Comparisons on sorting networks that the paper makes, against `sorting-magnetic-q0.25`."""

GENERAL: Mapping[str, tuple[str, Changes]] = {
    "best": ("magnetic", {}),
    "without-scaling": ("magnetic", {"encoding": {"scaling": "none"}}),
    "without-shifts": ("magnetic", {"task": {"places": 0}}),
    "without-length": ("magnetic", {"model": {"length_scaled": False}}),
    "with-average": ("magnetic", {"optim": {"average": 0.999}}),
    "with-fresh": ("magnetic", {"data": {"mode": "fresh"}}),
    "with-spe": ("spe", {}),
    "with-multi-q": ("multi-q", {}),
    "with-walks": ("magnetic+walks", {}),
}
"""The general model for sorting networks, without each of its changes, and with others."""

WARM_UP = {"optim": {"warmup": configuration("sorting", "magnetic", "paper").optim.warmup / FOUR_MILLION}}
"""A shortened run on sorting networks has the warm-up of a full one (see `paper.sorting.potential_cells`)."""


@dataclass(frozen=True)
class Group:
    """Cells that are compared with each other.

    Args:
        title: What is compared.
        cells: The cells with their first seed.
        both: Whether they are trained in the form of the authors' code, too.
        metrics: Metrics to show, by their names in the table.
        seeds: The seeds with which each is trained.
    """

    title: str
    cells: Sequence[Cell]
    both: bool
    metrics: Mapping[str, Metric]
    seeds: Sequence[int] = SEEDS

    def forms(self) -> list[Cell]:
        """The cells in each form, that of the authors first."""
        return [form for cell in self.cells for form in ([authors(cell), cell] if self.both else [cell])]


PAIRS: Mapping[str, Metric] = {name: name for name in ("f1", "rmse", "rmse_by_graph")}
BY_LENGTH: Mapping[str, Metric] = {
    "accuracy": ACCURACY, "accuracy 12": "accuracy/12", "accuracy 16": "accuracy/16", "AUC": AUC,
}  # fmt: skip


def authors(cell: Cell) -> Cell:
    """A cell of the preset `paper` in the form of the authors' code.

    >>> authors(encoding_cells()[0]).name
    'authors-sorting-magnetic'
    """
    encoding = ALONE.get(cell.encoding, cell.encoding)
    return replace(cell, name=f"{AUTHORS}{cell.name}", encoding=encoding, preset="authors")


def seeded(cell: Cell, seed: int) -> Cell:
    """A cell with another seed; with the first one it is the cell itself."""
    if seed == SEEDS[0]:
        return cell
    return replace(cell, name=f"{cell.name}-seed{seed}", changes=merge(cell.changes, {"run": {"seed": seed}}))


def groups() -> list[Group]:
    """All comparisons, the most important ones first: those on which the most claims rest."""
    playground = {cell.name: cell for cell in playground_cells()}

    def pairs(models: Sequence[str], targets: Sequence[str]) -> list[Cell]:
        return [playground[cell_name(model, target, kind)] for target in targets for model in models for kind in KINDS]

    others = [target for target in TARGETS if target not in FULL]
    shorter = [f"{name}-shorter" for name in ("magnetic", "walks")]
    return [
        Group("main encodings, reachability and directed distance", pairs(list(MAIN), FULL), True, PAIRS),
        Group("encodings of sorting networks", encoding_cells()[:4], True, BY_LENGTH),
        Group("main encodings, adjacency and undirected distance", pairs(list(MAIN), others), True, PAIRS),
        Group("appendix, reachability and directed distance", pairs([*shorter, *APPENDIX], FULL), True, PAIRS),
        Group("appendix, adjacency and undirected distance", pairs(list(APPENDIX), others), True, PAIRS),
        Group("GNNs on sorting networks", message_cells(), False, BY_LENGTH),
        Group("potentials on sorting networks", potential_cells(), False, BY_LENGTH),
        Group("compared in the paper, sorting networks", network_cells(), False, BY_LENGTH),
        Group("compared in the paper, MagNet's potential and precision", pair_cells(), False, PAIRS),
        Group("the general model for sorting networks", general_cells(), False, BY_LENGTH),
    ]


def network_cells() -> list[Cell]:
    """`L_U` against `L_N`, absolute against relative potentials, SVD, and single precision, on sorting networks."""
    return [
        Cell(f"compared-sorting-{name}", "sorting", encoding, merge(changes, WARM_UP), share=FOUR_MILLION)
        for name, (encoding, changes) in NETWORKS.items()
    ]


def pair_cells() -> list[Cell]:
    """MagNet's potential, and single precision, on node pairs."""
    found = {cell.name: cell for cell in playground_cells()}
    magnet = [
        replace(
            found[cell_name("magnet", target, "general")],
            name=f"compared-{target}-magnet-q{q:g}",
            changes=merge(found[cell_name("magnet", target, "general")].changes, {"model": {"q": q}}),
        )
        for target in FULL
        for q in MAGNET_POTENTIALS
        if q != configuration("distances", "none", "paper", {"model": {"name": "magnet"}}).model.q  # type: ignore[attr-defined]
    ]
    single: Changes = {"run": {"precision": "32-true"}}
    whole = found[cell_name("magnetic-shorter", "directed-distance", "general")]
    return [*magnet, replace(whole, name="compared-single-precision", changes=merge(whole.changes, single))]


def general_cells() -> list[Cell]:
    """The general model, without each of its changes, and with others."""
    return [
        Cell(f"general-{name}", "sorting", encoding, merge(changes, WARM_UP), preset="flat", share=FOUR_MILLION)
        for name, (encoding, changes) in GENERAL.items()
    ]


def cells_of(groups: Iterable[Group]) -> list[Cell]:
    """All cells, group by group, in each group seed by seed.

    >>> [cell.name for cell in cells_of(groups())[:2]]
    ['authors-playground-reachability-dag-magnetic', 'playground-reachability-dag-magnetic']
    """
    found = [seeded(cell, seed) for group in groups for seed in group.seeds for cell in group.forms()]
    return list({cell.name: cell for cell in found}.values())


def figure(request: Request) -> None:
    """Mean and standard error over the seeds of every cell."""
    compare("table-fair", groups(), request)


def compare(name: str, groups: Sequence[Group], request: Request) -> None:
    """Train what is missing; print and write mean and standard error over the seeds of every cell.

    Args:
        name: Name of the record.
        groups: What is compared.
        request: Options of the command line.
    """
    record, cells = request.record(name), cells_of(groups)
    results = train_missing(cells, request)
    tables: dict[str, Any] = {}
    console = Console(soft_wrap=True)
    for group in groups:
        table = Table("", "runs", *group.metrics, title=group.title)
        rows: dict[str, Any] = {}
        for cell in group.forms():
            trained = [results[name] for seed in group.seeds if (name := seeded(cell, seed).name) in results]
            values = {
                label: [one.value(metric) for one in trained if one.has(metric)]
                for label, metric in group.metrics.items()
            }
            table.add_row(cell.name, str(len(trained)), *(shown(each) for each in values.values()))
            rows[cell.name] = values
        console.print(table)
        tables[group.title] = rows
    left = [cell.name for cell in cells if cell.name not in results]
    console.print(f"{len(results)} cells trained, {len(left)} not run")
    request.write(record, {"budget": request.budget, "tables": tables, "not_run": left})


def shown(values: Sequence[float]) -> str:
    """Mean and standard error of some seeds.

    >>> shown([0.25, 0.75]), shown([0.5]), shown([])
    ('0.5000 ± 0.2500', '0.5000', '–')
    """
    if not values:
        return "–"
    mean, error = mean_and_error(values)
    return f"{mean:.4f}" if error is None else f"{mean:.4f} ± {error:.4f}"
