"""What decides each of the paper's claims: each judge's docstring is the claim, and its parts compare figures."""

from collections.abc import Callable
from itertools import pairwise

from magnetite.reproduce.measured import (
    APART_SHARES,
    EQUAL,
    SVD_TIMES,
    VANISHED,
    WALKS_BELOW_SVD,
    Found,
    NotRun,
    Part,
    Results,
    ahead,
    behind,
    close,
    fails,
    no_better,
)
from magnetite.reproduce.playground import FULL, KINDS, MEASURES, TARGETS, WALKS, longer, shorter
from magnetite.reproduce.sorting import LENGTHS, POTENTIALS, STEPS

Judge = Callable[[str, float, float], bool]
CLASSES, DISTANCES = TARGETS[:2], TARGETS[2:]
NEAR, FAR = LENGTHS[:2], LENGTHS[2:]
"""Test lengths near the training's, and further away."""


def _compared(results: Results, first: str, second: str, targets: tuple[str, ...], judge: Judge) -> list[Part]:
    """One part for each of the targets and kinds of graphs."""

    def part(target: str, kind: str) -> Found:
        one, two = results.playground((first, second), target, kind)
        return Found(f"{target} {kind}: {first} {one:.4f}, {second} {two:.4f}", judge(target, one, two))

    return [lambda target=target, kind=kind: part(target, kind) for target in targets for kind in KINDS]


def magnetic_beats_combinatorial(results: Results) -> list[Part]:
    """Magnetic beats combinatorial on directed targets; equal on undirected distance."""
    directed = _compared(results, "magnetic", "laplacian", TARGETS[:3], ahead)
    return directed + _compared(results, "magnetic", "laplacian", TARGETS[3:], close)


def walks_match_on_pairs(results: Results) -> list[Part]:
    """Walks match magnetic on adjacency and reachability, fall behind on distances."""
    same = _compared(results, "walks", "magnetic", CLASSES, close)
    return same + _compared(results, "magnetic", "walks", DISTANCES, ahead)


def svd_is_worse(results: Results) -> list[Part]:
    """SVD has up to 4 times the RMSE of magnetic; walks are ~30% below SVD on directed distance of general digraphs."""

    def times(target: str, kind: str) -> float:
        magnetic, svd = results.playground(("magnetic", "svd"), target, kind)
        return svd / magnetic

    def most() -> Found:
        ratio = max(times(target, kind) for target in DISTANCES for kind in KINDS)
        return Found(f"at most {ratio:.1f} times the RMSE of magnetic", SVD_TIMES[0] <= ratio <= SVD_TIMES[1])

    def below() -> Found:
        walks, svd = results.playground(("walks", "svd"), "directed-distance", "general")
        below, (least, most) = 1 - walks / svd, WALKS_BELOW_SVD
        return Found(f"directed-distance general: walks {below:.0%} below svd", least <= below <= most)

    return [*_compared(results, "magnetic", "svd", DISTANCES, ahead), most, below]


def appendix(results: Results) -> list[Part]:
    """Relative walks beat walks; SignNet-MLP is worse; GNN and MagNet do adjacency and reachability, not distances.

    Compared by the longest trainings that are of one length: some of the appendix saw all graphs (`hypotheses`), most
    saw fewer, as did main cells for comparison.
    """
    parts: list[Part] = []
    for target in TARGETS:
        parts += _longest(results, "relative-walks", "walks", target, ahead)
        parts += _longest(results, "magnetic-signnet", "magnetic", target, behind)
        for model in ("gnn", "magnet"):
            parts += _longest(results, model, "magnetic", target, close if target in CLASSES else fails)
    return parts


def _longest(results: Results, model: str, main: str, target: str, judge: Judge) -> list[Part]:
    """A model of the appendix against a main one, after the whole training where both had it."""
    whole = _compared(results, longer(model), main, (target,), judge)
    part = _compared(results, model, shorter(main) if target in FULL else main, (target,), judge)

    def either(first: Part, second: Part) -> Found:
        try:
            return first()
        except NotRun:
            return second()

    return [lambda pair=pair: either(*pair) for pair in zip(whole, part, strict=True)]


def walks_need_both(results: Results) -> list[Part]:
    """Walks need reversal and PageRank; 2–3 steps suffice."""

    def against(target: str, first: str, second: str, judge: Judge) -> Found:
        names = (f"walks-{target}-{first}", f"walks-{target}-{second}")
        one, two = results.cells(names, MEASURES[target])
        return Found(f"{target}: {first} {one:.4f}, {second} {two:.4f}", judge(target, one, two))

    steps = [(target, f"{good}-3", f"{worse}-3", ahead) for target in TARGETS for worse, good in pairwise(WALKS)]
    steps += [(target, "pagerank-5", "pagerank-3", no_better) for target in TARGETS]
    return [lambda what=what: against(*what) for what in steps]


def sorting_by_encoding(results: Results) -> list[Part]:
    """Sorting: magnetic ≈ walks ≫ sinusoidal (good near the training lengths only) ≫ combinatorial ≈ guessing."""

    def differ(first: str, second: str, length: int, measure: str, by: Callable[[float], bool]) -> Found:
        one, two = results.sorting((first, second), length, measure)
        return Found(f"{measure} {length}: {first} {one:.3f}, {second} {two:.3f}", by(one - two))

    def guesses(length: int) -> Found:
        (area,) = results.sorting(("laplacian",), length, "auc")
        return Found(f"auc {length}: laplacian {area:.3f}", abs(area - 0.5) <= EQUAL)

    def alike(difference: float) -> bool:
        return abs(difference) <= EQUAL

    def clear(difference: float) -> bool:
        return difference > EQUAL

    def above(difference: float) -> bool:
        return difference > APART_SHARES

    wanted = [("magnetic", "walks", length, "accuracy", alike) for length in LENGTHS]
    wanted += [("sinusoidal", "magnetic", length, "accuracy", alike) for length in NEAR]
    wanted += [(one, "sinusoidal", length, "accuracy", clear) for one in ("magnetic", "walks") for length in FAR]
    wanted += [("sinusoidal", "laplacian", length, "auc", clear) for length in NEAR]
    wanted += [("sinusoidal", "laplacian", length, "auc", above) for length in FAR]
    parts: list[Part] = [lambda what=what: differ(*what) for what in wanted]
    return parts + [lambda length=length: guesses(length) for length in LENGTHS]


def sorting_studies(results: Results) -> list[Part]:
    """Sorting: q' above 0.25 hurts; GNNs gain until step 3; direction helps; magnetic helps GNNs, walks hurt.

    By the mean over all lengths, of accuracy and of AUC: accuracy alone, at lengths never seen, depends on how far
    answers have drifted from the threshold between yes and no. A part holds if both say so.
    """

    def both(names: tuple[str, ...], says: Callable[[list[float]], bool]) -> Found:
        shares, areas = (results.sorting_mean(names, measure) for measure in ("accuracy", "auc"))
        lines = (f"{name} {one:.3f} / {two:.3f}" for name, one, two in zip(names, shares, areas, strict=True))
        return Found(f"accuracy / AUC: {', '.join(lines)}", says(shares) and says(areas))

    def potentials_hurt(values: list[float]) -> bool:
        by_potential = dict(zip(POTENTIALS, values, strict=True))
        return all(value < by_potential[0.25] - APART_SHARES for q, value in by_potential.items() if q > 0.25)

    def gains_vanish(values: list[float]) -> bool:
        return max(values[3:]) - values[2] < VANISHED

    def first_ahead(values: list[float]) -> bool:
        return values[0] > values[1] + APART_SHARES

    steps = tuple(f"gnn-directed-{count}" for count in STEPS)
    pairs = (
        ("gnn-directed-3", "gnn-undirected-3"),
        ("gnn-magnetic", "gnn-directed-3"),
        ("gnn-directed-3", "gnn-walks"),
    )
    return [
        lambda: both(tuple(f"magnetic-q{q:g}" for q in POTENTIALS), potentials_hurt),
        lambda: both(steps, gains_vanish),
        *(lambda names=names: both(names, first_ahead) for names in pairs),
    ]


def batcher(results: Results) -> list[Part]:
    """Batcher's network of length 8 has over 1,000,000 topological sorts."""

    def count() -> Found:
        number = int(results.row("figure-topological-sorts", "length", 8)["topological_sorts"])
        return Found(f"length 8: {number:,}", number > 1_000_000)

    return [count]


def orders_restored(results: Results) -> list[Part]:
    """Im γ₀ restores the order of sequence, binary tree and trumpet."""

    def share(name: str) -> Found:
        restored = results.row("figure-examples", "graph", name)["one_way_edges_in_order"]
        return Found(f"{name}: {restored:.1%} of edges in order", restored == 1)

    graphs = ("sequence", "balanced binary tree", "trumpet (fully connected)", "trumpet (DAG)")
    return [lambda name=name: share(name) for name in graphs]
