"""Why some of the paper's claims do not hold here: what might explain it, and the trainings that test it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from magnetite.record import Record, read_record
from magnetite.reproduce.cells import (
    SIX_MILLION,
    TWO_MILLION,
    WHOLE,
    Cell,
    Changes,
    Request,
    figures_of,
    longest_trained,
    provenance,
    train_missing,
)
from magnetite.reproduce.playground import COMPARED, KINDS, cell_name, playground_cells, shorter, walk_cells
from magnetite.reproduce.sorting import encoding_cells, message_cells, potential_cells
from magnetite.training.presets import configuration, merge

FIGURES = {
    "figure-playground": playground_cells,
    "figure-walks": walk_cells,
    "figure-sorting": encoding_cells,
    "figure-gnn": message_cells,
    "figure-q-sweep": potential_cells,
}
"""What is explained: the cells of these figures."""


@dataclass(frozen=True)
class Hypothesis:
    """What might explain that a claim does not hold, what is trained to test it, and cells that it is read beside.

    `distances` are figures of directed distances in both kinds of graphs that tell more, by the name that they have in
    `distributions.json`, which `benchmarks/distributions.py` writes.
    """

    claim: str
    text: str
    cells: tuple[Cell, ...]
    beside: tuple[str, ...]
    measures: tuple[str, ...] = ("rmse",)
    distances: tuple[str, ...] = ()


def hypotheses() -> list[Hypothesis]:
    """All of them, in the order of the claims."""
    return [*_of_distances(), *_of_the_appendix(), *_of_walks(), *_of_sorting()]


def _of_distances() -> list[Hypothesis]:
    undirected = tuple(cell_name(model, "undirected-distance", "dag") for model in ("magnetic", "laplacian", "svd"))
    directed = tuple(cell_name(model, "directed-distance", "general") for model in COMPARED)
    fewer = tuple(cell_name(shorter(model), "directed-distance", "general") for model in COMPARED)
    return [
        Hypothesis(
            "1",
            "directed distances in DAGs: hardly a pair has another undirected distance, so direction counts for little",
            (),
            tuple(cell_name(model, "directed-distance", "dag") for model in ("magnetic", "laplacian")),
            distances=("share_that_differs", "rmse_of_its_best_function"),
        ),
        Hypothesis(
            "1, 3",
            "undirected distances: after more graphs, magnetic and combinatorial are equal, and SVD is further behind",
            tuple(map(_longer, undirected)),
            undirected,
        ),
        Hypothesis(
            "1",
            "undirected distances: an eigenvector of the magnetic Laplacian has two numbers a node, and not one",
            (_changed(undirected[1], "twice", {"encoding": {"k": 32}}),),
            undirected[:2],
        ),
        Hypothesis(
            "1, 3",
            "undirected distances, small networks: the more graphs, the more lies between the encodings",
            tuple(_small(encoding, times) for times in (1, 3, 9) for encoding in ("magnetic", "laplacian", "svd")),
            (),
        ),
        Hypothesis(
            "2",
            "directed distances: what lies between walks and magnetic depends on seed and length of the training",
            tuple(map(_second, fewer)),
            directed + fewer,
        ),
    ]


def _of_the_appendix() -> list[Hypothesis]:
    judged = (("gnn", "dag"), ("gnn", "general"), ("magnet", "general"), ("magnetic-signnet", "general"))
    ahead = tuple(cell_name(model, "directed-distance", kind) for model, kind in judged)
    magnetic = [(model, kind) for kind in KINDS for model in (shorter("magnetic"), "magnetic")]
    return [
        Hypothesis(
            "4",
            "directed distances: two million graphs are too few for magnetic, more help it more than what is ahead",
            tuple(_longer(name, WHOLE) for name in ahead),
            tuple(cell_name(model, "directed-distance", kind) for model, kind in magnetic) + ahead,
        ),
        Hypothesis(
            "4",
            "directed distances: in DAGs nearly all are within three steps of a GNN from each of both nodes",
            (),
            tuple(
                cell_name(model, "directed-distance", kind) for kind in KINDS for model in ("magnetic", "gnn-longer")
            ),
            distances=("share_up_to_3", "share_up_to_6"),
        ),
    ]


def _of_walks() -> list[Hypothesis]:
    kinds = ("reverse", "pagerank")
    pairs = [
        f"walks-{target}-{kind}-{count}"
        for target in ("reachability", "directed-distance", "undirected-distance")
        for count in (1, 2, 3)
        for kind in kinds
    ]
    more = {"reachability": shorter("walks"), "directed-distance": shorter("walks"), "undirected-distance": "walks"}
    return [
        Hypothesis(
            "5",
            "PageRank: it tells what lies beyond the steps, so one or two of them gain more from it than three",
            (),
            tuple(pairs),
            ("f1", "rmse"),
        ),
        Hypothesis(
            "5",
            "PageRank: three steps gain from it after more graphs",
            tuple(_longer(f"walks-{target}-reverse-3", TWO_MILLION) for target in more),
            tuple(cell_name(model, target, "general") for target, model in more.items()),
            ("f1", "rmse"),
        ),
    ]


def _of_sorting() -> list[Hypothesis]:
    messages = ("sorting-gnn-directed-3", "sorting-gnn-walks")
    potentials = tuple(f"sorting-magnetic-q{q:g}" for q in (0.01, 0.05, 0.25, 0.5))
    return [
        Hypothesis(
            "7",
            "GNNs: whether walks hurt at length 16 depends on seed and length of the training",
            (*map(_second, messages), *map(_longer, messages)),
            messages,
            ("accuracy/12", "accuracy/16"),
        ),
        Hypothesis(
            "7",
            "the potential: with a third of the warm-up nothing is learned before the rate falls, whatever q'",
            tuple(map(_hurried, potentials)),
            potentials,
            ("accuracy/12", "accuracy/16"),
        ),
        Hypothesis(
            "7",
            "the potential: which of 0.25 and 0.5 is ahead depends on the seed, as results at length 16 do",
            tuple(map(_second, potentials[2:])),
            (*potentials[2:], "sorting-magnetic", "sorting-magnetic-second"),
            ("accuracy/12", "accuracy/16"),
        ),
    ]


def _changed(name: str, what: str, changes: Changes) -> Cell:
    """A cell of another figure with some changes, named after it."""
    cell = next(cell for cells in FIGURES.values() for cell in cells() if cell.name == name)
    return replace(cell, name=f"{name}-{what}", changes=merge(cell.changes, changes))


def _second(name: str) -> Cell:
    return _changed(name, "second", {"run": {"seed": 1}})


def _longer(name: str, share: float = SIX_MILLION) -> Cell:
    return replace(_changed(name, "longer", {}), share=share)


def _small(encoding: str, times: int) -> Cell:
    """Of the quick preset, which trains on 10,000 graphs in minutes on two cores, with so many times them."""
    task = {"target": "undirected-distance", "train": times * 10_000}
    return Cell(f"quick-undirected-{encoding}-{times}", "playground", encoding, {"task": task}, "quick")


def _hurried(name: str) -> Cell:
    return _changed(name, "hurried", {"optim": {"warmup": configuration("sorting", "magnetic", "paper").optim.warmup}})


def reproduce(request: Request) -> None:
    """Train what is missing; the figures of each hypothesis beside those that they are compared with."""
    record, found = Record("hypotheses", request.seed), hypotheses()
    results = train_missing([cell for one in found for cell in one.cells], request)
    console = Console(soft_wrap=True, highlight=False)
    rows, known = [], {}
    for one in found:
        names = [*one.beside, *(cell.name for cell in one.cells)]
        contents = {name: results.get(name) or longest_trained(request.cells, name) for name in names}
        known |= {name: content for name, content in contents.items() if content is not None}
        lines = {name: _line(content, one.measures) for name, content in contents.items()}
        lines |= _distances(request.out, one.distances)
        console.print(f"[bold]Claim {one.claim}: {one.text}[/bold]")
        for name, line in lines.items():
            console.print(f"  {name}: {_told(line) or f'not run: magnetite reproduce {_figure_of(name)}'}")
        rows.append({"claim": one.claim, "hypothesis": one.text, "measured": lines})
    console.print(f"figures: {record.write(request.out, {'hypotheses': rows, 'cells': provenance(known)})}")


def _line(content: Mapping[str, Any] | None, measures: tuple[str, ...]) -> dict[str, Any]:
    """Graphs seen and figures of a cell; nothing of one that was not trained."""
    if content is None:
        return {}
    figures = figures_of(content)
    measured = {name: round(figures[name], 4) for name in measures if name in figures}
    return {"graphs seen": content["result"]["graphs_seen"], **measured}


def _told(line: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:,}" for name, value in line.items())


def _figure_of(name: str) -> str:
    """What trains a cell."""
    figures = (figure for figure, cells in FIGURES.items() if any(cell.name == name for cell in cells()))
    return next(figures, "hypotheses")


def _distances(folder: Path, figures: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """What is known of directed distances in graphs of both kinds."""
    path = folder / "distributions.json"
    if not (figures and path.exists()):
        return {}
    found = read_record(path)["result"]["directed_distances"]
    return {
        f"distances in {kind} graphs": {name.replace("_", " "): round(known[name], 4) for name in figures}
        for kind, known in found.items()
    }
