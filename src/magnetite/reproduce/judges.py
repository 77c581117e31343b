"""What decides each of the paper's claims: figures that `results/` holds, and how they have to compare."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from magnetite.reproduce.cells import figures_of, longest_trained
from magnetite.reproduce.playground import FULL, KINDS, MEASURES, TARGETS, WALKS, cell_name
from magnetite.reproduce.sorting import LENGTHS, POTENTIALS

EQUAL = 0.10
"""Figures whose ratio differs from 1 by less are called equal; for shares the difference is taken."""


class NotRun(LookupError):
    """A figure that a claim needs was not measured yet."""


@dataclass(frozen=True)
class Found:
    """The figures that decide a part of a claim, in words, and whether they bear it out."""

    figures: str
    holds: bool


Part = Callable[[], Found]
"""A part of a claim, which may not have been measured yet."""


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


def magnetic_beats_combinatorial(results: Results) -> list[Part]:
    """Magnetic beats combinatorial on directed targets; equal on undirected distance."""
    parts = [
        lambda target=target, kind=kind: _against(results, "magnetic", "laplacian", target, kind, better)
        for target in TARGETS[:3]
        for kind in KINDS
    ]
    return parts + [
        lambda kind=kind: _against(results, "magnetic", "laplacian", "undirected-distance", kind, close)
        for kind in KINDS
    ]


def walks_match_on_pairs(results: Results) -> list[Part]:
    """Walks match magnetic on adjacency and reachability, fall behind on distances."""
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


def svd_is_worse(results: Results) -> list[Part]:
    """SVD is worse than magnetic on distances; walks ~30% below SVD on general digraphs."""

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


def appendix(results: Results) -> list[Part]:
    """Relative walks beat walks; SignNet-MLP is worse; GNN and MagNet fail on distances.

    Compared with main cells that were trained as long as the appendix, which is shorter for some targets.
    """

    def main(model: str, target: str) -> str:
        return f"{model}-shorter" if target in FULL else model

    compared = [
        (("relative-walks", main("walks", target)), target, kind, better) for target in TARGETS for kind in KINDS
    ]
    compared += [
        ((main("magnetic", target), "magnetic-signnet"), target, kind, better) for target in TARGETS for kind in KINDS
    ]
    compared += [
        ((main("magnetic", target), model), target, kind, better)
        for model in ("gnn", "magnet")
        for target in ("directed-distance", "undirected-distance")
        for kind in KINDS
    ]
    return [
        lambda pair=pair, target=target, kind=kind, judge=judge: _against(results, *pair, target, kind, judge)
        for pair, target, kind, judge in compared
    ]


def walks_need_both(results: Results) -> list[Part]:
    """Walks need reversal and PageRank; 2–3 steps suffice."""
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


def sorting_by_encoding(results: Results) -> list[Part]:
    """Sorting: magnetic ≈ walks ≫ sinusoidal (good near the training lengths only) ≫ combinatorial ≈ guessing."""
    near, far = LENGTHS[:2], LENGTHS[2:]

    def ahead(first: str, second: str, length: int) -> Found:
        one, two = results.accuracy(first, length), results.accuracy(second, length)
        return Found(f"length {length}: {first} {one:.3f}, {second} {two:.3f}", one > two + EQUAL)

    def alike(length: int) -> Found:
        one, two = results.accuracy("magnetic", length), results.accuracy("walks", length)
        return Found(f"length {length}: magnetic {one:.3f}, walks {two:.3f}", abs(one - two) <= EQUAL)

    def guesses(length: int) -> Found:
        area = results.cell("sorting-laplacian", f"auc/{length}")
        return Found(f"length {length}: laplacian AUC {area:.3f}", abs(area - 0.5) <= EQUAL)

    compared = [(first, "sinusoidal", length) for first in ("magnetic", "walks") for length in far]
    compared += [("sinusoidal", "laplacian", length) for length in near]
    parts: list[Part] = [lambda length=length: alike(length) for length in LENGTHS]
    parts += [lambda what=what: ahead(*what) for what in compared]
    return parts + [lambda length=length: guesses(length) for length in LENGTHS]


def sorting_studies(results: Results) -> list[Part]:
    """Sorting: large q' hurts; 2–3 GNN steps; direction helps; magnetic helps GNNs, walks hurt."""
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


def batcher(results: Results) -> list[Part]:
    """Batcher's network of length 8 has over 1,000,000 topological sorts."""

    def count() -> Found:
        rows = {row["length"]: row for row in results.file("figure-topological-sorts")["rows"]}
        number = int(rows[8]["topological_sorts"])
        return Found(f"length 8: {number:,}", number > 1_000_000)

    return [count]


def orders_restored(results: Results) -> list[Part]:
    """Im γ₀ restores the order of sequence, binary tree and trumpet."""

    def share(name: str) -> Found:
        rows = {row["graph"]: row["one_way_edges_in_order"] for row in results.file("figure-examples")["rows"]}
        return Found(f"{name}: {rows[name]:.1%} of edges in order", rows[name] == 1)

    return [lambda name=name: share(name) for name in ("sequence", "balanced binary tree", "trumpet (DAG)")]
