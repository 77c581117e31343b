"""The paper's claims, each with our figures and whether they bear it out, from what `results/` holds."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from magnetite.record import Record
from magnetite.reproduce.cells import Request, figures_of, longest_trained
from magnetite.reproduce.playground import KINDS, MEASURES, TARGETS, WALKS, cell_name
from magnetite.reproduce.sorting import LENGTHS, POTENTIALS

HOLDS, FAILS, MISSING = "holds", "does not hold", "not run"
EQUAL = 0.10
"""Figures whose ratio differs from 1 by less are called equal; for shares the difference is taken."""


class NotRun(LookupError):
    """A figure that a claim needs was not measured yet."""


@dataclass(frozen=True)
class Found:
    """The figures that decide a part of a claim, in words, and whether they bear it out."""

    figures: str
    holds: bool


class Results:
    """What was measured: cells by name, figures of other commands by file."""

    def __init__(self, folder: Path):
        self.folder = folder

    def cell(self, name: str, figure: str) -> float:
        """A figure of the cell's result that saw the most graphs."""
        content = longest_trained(self.folder / "cells", name)
        figures = {} if content is None else figures_of(content)
        if figure not in figures:
            raise NotRun(name)
        return figures[figure]

    def playground(self, model: str, target: str, kind: str) -> float:
        """F1 or RMSE of a cell of the playground."""
        return self.cell(cell_name(model, target, kind), MEASURES[target])

    def accuracy(self, name: str, length: int) -> float:
        """Accuracy of a sorting cell at a length."""
        return self.cell(f"sorting-{name}", f"accuracy/{length}")

    def file(self, name: str) -> Any:
        """The result of another command."""
        path = self.folder / f"{name}.json"
        if not path.exists():
            raise NotRun(name)
        return json.loads(path.read_text(encoding="utf-8"))["result"]


def better(target: str, first: float, second: float) -> bool:
    """Whether the first figure of a target is better than the second.

    >>> better("reachability", 0.9, 0.5), better("directed-distance", 0.9, 0.5)
    (True, False)
    """
    return first > second if MEASURES[target] == "f1" else first < second


def close(target: str, first: float, second: float) -> bool:
    """Whether two figures of a target are equal within a tenth.

    >>> close("reachability", 0.95, 0.90), close("directed-distance", 0.2, 0.1)
    (True, False)
    """
    if MEASURES[target] == "f1":
        return abs(first - second) <= EQUAL
    return abs(first / second - 1) <= EQUAL


def _against(results: Results, first: str, second: str, target: str, kind: str, judge: Callable[..., bool]) -> Found:
    one, two = results.playground(first, target, kind), results.playground(second, target, kind)
    return Found(f"{target} {kind}: {first} {one:.4f}, {second} {two:.4f}", judge(target, one, two))


def _magnetic_beats_combinatorial(results: Results) -> list[Callable[[], Found]]:
    parts = [
        lambda target=target, kind=kind: _against(results, "magnetic", "laplacian", target, kind, better)
        for target in TARGETS[:3]
        for kind in KINDS
    ]
    return parts + [
        lambda kind=kind: _against(results, "magnetic", "laplacian", "undirected-distance", kind, close)
        for kind in KINDS
    ]


def _walks_match_on_pairs(results: Results) -> list[Callable[[], Found]]:
    same = [
        lambda target=target, kind=kind: _against(results, "walks", "magnetic", target, kind, close)
        for target in ("adjacency", "reachability")
        for kind in KINDS
    ]
    return same + [
        lambda target=target, kind=kind: _against(results, "magnetic", "walks", target, kind, better)
        for target in ("directed-distance", "undirected-distance")
        for kind in KINDS
    ]


def _svd_is_worse(results: Results) -> list[Callable[[], Found]]:
    def walks_lower() -> Found:
        walks, svd = (results.playground(name, "directed-distance", "general") for name in ("walks", "svd"))
        return Found(
            f"directed-distance general: walks {walks:.4f} = {1 - walks / svd:.0%} below svd", walks < 0.85 * svd
        )

    distances = [(target, kind) for target in ("directed-distance", "undirected-distance") for kind in KINDS]
    return [
        *(
            lambda target=target, kind=kind: _against(results, "magnetic", "svd", target, kind, better)
            for target, kind in distances
        ),
        walks_lower,
    ]


def _appendix(results: Results) -> list[Callable[[], Found]]:
    parts = [
        lambda first=first, second=second, target=target, kind=kind: _against(
            results, first, second, target, kind, better
        )
        for first, second in (("relative-walks", "walks"), ("magnetic", "magnetic-signnet"))
        for target in TARGETS
        for kind in KINDS
    ]
    return parts + [
        lambda model=model, target=target, kind=kind: _against(results, "magnetic", model, target, kind, better)
        for model in ("gnn", "magnet")
        for target in ("directed-distance", "undirected-distance")
        for kind in KINDS
    ]


def _walks_need_both(results: Results) -> list[Callable[[], Found]]:
    variants = list(WALKS)

    def improves(target: str, worse: str, good: str) -> Found:
        one, two = (results.cell(f"walks-{target}-{name}-3", MEASURES[target]) for name in (worse, good))
        return Found(f"{target}: {worse} {one:.4f} → {good} {two:.4f}", better(target, two, one))

    def suffices(target: str) -> Found:
        three, five = (results.cell(f"walks-{target}-pagerank-{steps}", MEASURES[target]) for steps in (3, 5))
        return Found(f"{target}: 3 steps {three:.4f}, 5 steps {five:.4f}", close(target, three, five))

    pairs = [(target, *pair) for target in TARGETS for pair in pairwise(variants)]
    gains = [lambda what=what: improves(*what) for what in pairs]
    return gains + [lambda target=target: suffices(target) for target in TARGETS]


def _sorting_by_encoding(results: Results) -> list[Callable[[], Found]]:
    def ranks(length: int) -> Found:
        order = ("magnetic", "walks", "sinusoidal", "laplacian")
        values = {name: results.accuracy(name, length) for name in order}
        text = f"length {length}: " + ", ".join(f"{name} {value:.3f}" for name, value in values.items())
        alike = abs(values["magnetic"] - values["walks"]) <= EQUAL
        best = min(values["magnetic"], values["walks"])
        return Found(text, alike and best > values["sinusoidal"] + EQUAL and best > values["laplacian"] + EQUAL)

    return [lambda length=length: ranks(length) for length in LENGTHS]


def _sorting_studies(results: Results) -> list[Callable[[], Found]]:
    longest = LENGTHS[-1]

    def potential() -> Found:
        values = {q: results.accuracy(f"magnetic-q{q:g}", longest) for q in POTENTIALS}
        text = f"length {longest}, q': " + ", ".join(f"{q:g} {value:.3f}" for q, value in values.items())
        return Found(text, values[0.25] > values[POTENTIALS[-1]])

    def steps() -> Found:
        values = [results.accuracy(f"gnn-directed-{count}", 13) for count in (1, 2, 3, 5)]
        text = "GNN at length 13, 1, 2, 3 and 5 steps: " + ", ".join(f"{value:.3f}" for value in values)
        return Found(text, values[3] - values[2] < max(values[2] - values[0], 0.02))

    def versus(first: str, second: str, length: int) -> Found:
        one, two = results.accuracy(first, length), results.accuracy(second, length)
        return Found(f"length {length}: {first} {one:.3f}, {second} {two:.3f}", one > two)

    return [
        potential,
        steps,
        lambda: versus("gnn-directed-3", "gnn-undirected-3", 13),
        lambda: versus("gnn-magnetic", "gnn-directed-3", longest),
        lambda: versus("gnn-directed-3", "gnn-walks", longest),
    ]


def _batcher(results: Results) -> list[Callable[[], Found]]:
    def count() -> Found:
        rows = {row["length"]: row for row in results.file("figure-topological-sorts")["rows"]}
        number = int(rows[8]["topological_sorts"])
        return Found(f"length 8: {number:,}", number > 1_000_000)

    return [count]


def _orders_restored(results: Results) -> list[Callable[[], Found]]:
    def share(name: str) -> Found:
        rows = {row["graph"]: row["one_way_edges_in_order"] for row in results.file("figure-examples")["rows"]}
        return Found(f"{name}: {rows[name]:.1%} of edges in order", rows[name] == 1)

    return [lambda name=name: share(name) for name in ("sequence", "balanced binary tree", "trumpet (DAG)")]


CLAIMS: dict[str, tuple[str, Callable[[Results], list[Callable[[], Found]]]]] = {
    "1": (
        "magnetic beats combinatorial on directed targets; equal on undirected distance",
        _magnetic_beats_combinatorial,
    ),
    "2": ("walks match magnetic on adjacency and reachability, fall behind on distances", _walks_match_on_pairs),
    "3": ("SVD is worse than magnetic on distances; walks ~30% below SVD on general digraphs", _svd_is_worse),
    "4": ("relative walks beat walks; SignNet-MLP is worse; GNN and MagNet fail on distances", _appendix),
    "5": ("walks need reversal and PageRank; 2–3 steps suffice", _walks_need_both),
    "6": ("sorting: magnetic ≈ walks ≫ sinusoidal ≫ combinatorial", _sorting_by_encoding),
    "7": ("sorting: large q' hurts; 2–3 GNN steps; direction helps; magnetic helps GNNs, walks hurt", _sorting_studies),
    "8": ("Batcher's network of length 8 has over 1,000,000 topological sorts", _batcher),
    "11": ("Im γ₀ restores the order of sequence, binary tree and trumpet", _orders_restored),
}
"""The claims by their number in the paper's order; 9 and 10 are about code."""

COMMANDS = dict.fromkeys("1234", "figure-playground") | {
    "5": "figure-walks",
    "6": "figure-sorting",
    "7": "figure-q-sweep, figure-gnn",
    "8": "figure-topological-sorts",
    "11": "figure-examples",
}
"""What measures the figures of a claim."""


def reproduce(request: Request) -> None:
    """Judge every claim by what was measured; print the table, write the JSON."""
    record, results = Record("claims", request.seed), Results(request.out)
    table = Table("", "claim", "our figures", "", title="What the paper claims", show_lines=True)
    rows = {}
    for number, (text, parts) in CLAIMS.items():
        found, missing = _collect(parts(results))
        verdict = _verdict(found, missing)
        lines = [f"{'✓' if part.holds else '✗'} {part.figures}" for part in found]
        lines += [f"– {len(missing)} not run: magnetite reproduce {COMMANDS[number]}"] if missing else []
        table.add_row(number, text, "\n".join(lines), verdict)
        parts_written = [{"figures": part.figures, "holds": part.holds} for part in found]
        rows[number] = {"claim": text, "verdict": verdict, "parts": parts_written, "not_run": missing}
    path = record.write(request.out, {"equal_within": EQUAL, "claims": rows})
    console = Console(soft_wrap=True)
    console.print(table)
    console.print(f"figures: {path}")


def _collect(parts: list[Callable[[], Found]]) -> tuple[list[Found], list[str]]:
    found, missing = [], []
    for part in parts:
        try:
            found.append(part())
        except NotRun as error:
            missing.append(str(error))
    return found, missing


def _verdict(found: list[Found], missing: list[str]) -> str:
    """A part that fails decides; else one that was not run leaves the claim open."""
    failing = sum(not part.holds for part in found)
    if failing:
        return f"{FAILS} ({failing} of {len(found)})"
    return MISSING if not found else HOLDS if not missing else f"{HOLDS} as far as run"
