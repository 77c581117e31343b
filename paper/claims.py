"""The paper's claims: what each of them compares, and whether the results in `results/` agree.

A comparison has an effect `θ`, positive if the first cell is better: the difference of two scores, or the logarithm of
the ratio of two errors. The paper claims that `θ` lies in a region, such as `θ > 0`. With the spread `s` between
repeated trainings (`paper.statistics.Spread`), the comparison

- holds if the interval of `θ` at the level 95% lies in the region,
- fails if the wider interval at the level `1 − 0.05/m` lies outside, where the claim has `m` comparisons,
- is open otherwise: at this number of seeds, chance could explain either.

A claim holds if all its comparisons hold, fails if one of them fails, and is open otherwise. At most one claim in
twenty that is true is so called false, however many comparisons it has; and since all comparisons must hold, one that
is false is called true no more often.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from magnetite.io.record import Record
from magnetite.io.storage import replacing
from paper.cells import Request
from paper.charts import LENGTHS
from paper.playground import FULL, KINDS, METRICS, TARGETS, WALKS
from paper.sorting import POTENTIALS, STEPS
from paper.statistics import LEVEL, Estimate, Spread
from paper.store import SAME_TRAINING, Metric, NotRun, Store
from paper.table_code import BEST_MAGNETIC, Scores

EQUAL_SCORES, EQUAL_ERRORS = 0.05, 0.10
"""Scores are equal if they differ by at most this much, errors if they differ by at most this fraction."""

GAIN_SCORES, GAIN_ERRORS = 0.02, 0.05
"""More of something that improves a score by at most this much, or an error by this fraction, is not needed."""

SMALLEST_ERROR = 1e-12
"""An error of 0 counts as this much, since ratios of errors are compared."""

SVD_TIMES, WALKS_BELOW_SVD = (3.0, 5.0), (0.2, 0.4)
"""What counts as "up to 4 times the error", and as "30% below"."""

THRESHOLDS = {
    "level": LEVEL,
    "equal_scores": EQUAL_SCORES,
    "equal_errors": EQUAL_ERRORS,
    "no_gain_scores": GAIN_SCORES,
    "no_gain_errors": GAIN_ERRORS,
    "graphs_seen_alike": SAME_TRAINING,
    "up_to_4_times": SVD_TIMES,
    "30_percent_below": WALKS_BELOW_SVD,
}

AUTHORS = "authors-"
"""Beginning of the names of cells in the form of the authors' code, which decide where they have been trained."""

JUDGED = tuple(f"{form}{figure}-" for form in ("", AUTHORS) for figure in ("playground", "walks", "sorting"))
"""Beginnings of the names of the cells that claims compare, of which the spread between seeds is estimated."""

MARKS = {True: "✓", False: "✗", None: "?"}

ACCURACY, AUC = (tuple(f"{metric}/{length}" for length in LENGTHS) for metric in ("accuracy", "auc"))


def is_error(metric: Metric) -> bool:
    """Whether small values are better."""
    return metric == "rmse"


@dataclass(frozen=True)
class Region:
    """Effects that agree with a claim.

    Args:
        low: Lower end.
        high: Upper end.
    """

    low: float = -math.inf
    high: float = math.inf

    def contains(self, interval: Estimate) -> bool:
        """Whether the whole interval agrees."""
        return self.low <= interval.low and interval.high <= self.high

    def excludes(self, interval: Estimate) -> bool:
        """Whether nothing of the interval agrees."""
        return interval.high < self.low or interval.low > self.high

    def slack(self, interval: Estimate) -> float:
        """How far inside the region the value is, in half widths of its interval; below 1 it is not surely inside."""
        half = (interval.high - interval.low) / 2
        inside = min(interval.value - self.low, self.high - interval.value)
        return inside / half if half else math.copysign(math.inf, inside)


Relation = Callable[[Metric], Region]
"""The region of effects that a claim asserts for a metric."""


def _margin(metric: Metric, scores: float, errors: float) -> float:
    return math.log1p(errors) if is_error(metric) else scores


def _equal_within(metric: Metric) -> float:
    return _margin(metric, EQUAL_SCORES, EQUAL_ERRORS)


def ahead(metric: Metric) -> Region:  # noqa: ARG001
    """The first is better than the second."""
    return Region(low=0)


def behind(metric: Metric) -> Region:  # noqa: ARG001
    """The first is worse than the second."""
    return Region(high=0)


def no_gain(metric: Metric) -> Region:
    """The first is hardly better than the second, or worse.

    >>> no_gain("accuracy")
    Region(low=-inf, high=0.02)
    """
    return Region(high=_margin(metric, GAIN_SCORES, GAIN_ERRORS))


def equal(metric: Metric) -> Region:
    """Both are equal, within a margin.

    >>> equal("f1")
    Region(low=-0.05, high=0.05)
    """
    return Region(-_equal_within(metric), _equal_within(metric))


def matches(metric: Metric) -> Region:
    """The first is equal to the second, or better."""
    return Region(low=-_equal_within(metric))


def far_ahead(metric: Metric) -> Region:
    """The first is better than the second, and not equal to it."""
    return Region(low=_equal_within(metric))


def far_behind(metric: Metric) -> Region:
    """The first is worse than the second, and not equal to it."""
    return Region(high=-_equal_within(metric))


def below_by(least: float, most: float) -> Relation:
    """The error of the first is smaller than that of the second by a fraction between these."""
    return lambda _: Region(-math.log1p(-least), -math.log1p(-most))


@dataclass(frozen=True)
class Found:
    """One part of a claim as measured.

    Args:
        figures: The values in words.
        holds: Whether they agree with the paper; None if the interval leaves it open.
        interval: The effect with its interval, as it is shown; None for what is exact.
        slack: How far inside the region the effect is, in half widths of its interval.
        runs: Numbers of trainings behind each mean; none for what is exact.
        freedom: Degrees of freedom of the spread.
    """

    figures: str
    holds: bool | None
    interval: tuple[float, float] | None = None
    slack: float = math.inf
    runs: tuple[int, ...] = ()
    freedom: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The part in JSON types; an end of an interval that is not finite is None."""
        ends = None if self.interval is None else [end if math.isfinite(end) else None for end in self.interval]
        return {
            "figures": self.figures,
            "holds": self.holds,
            "interval": ends,
            "runs": list(self.runs),
            "degrees_of_freedom": self.freedom,
        }


@dataclass(frozen=True)
class Comparison:
    """A metric of one or two cells, and the region that the paper claims for the effect.

    Args:
        label: What is compared.
        task: Name of the task.
        prefix: Beginning of the names of all cells.
        names: The rest of the names of one or two cells; one is compared with `against`.
        metric: Name of the metric, or names of several, of which the mean is taken.
        relation: The region that is claimed.
        digits: Number of digits shown.
        otherwise: Comparison to make instead if a cell has not been trained.
        against: Score that a single cell is compared with.
    """

    label: str
    task: str
    prefix: str
    names: tuple[str, ...]
    metric: Metric
    relation: Relation
    digits: int = 4
    otherwise: "Comparison | None" = None
    against: float = 0.5

    def __call__(self, store: Store, number: int = 1) -> Found:
        """Compare the results in a store; raise `NotRun` if one is missing.

        Where the cells have been trained in the form of the authors' code, these decide, and ours are shown beside.

        Args:
            store: The results.
            number: Number of comparisons of the claim, all of which could fail by chance.
        """
        try:
            ours = self._found(store, "", number)
        except NotRun:
            if self.otherwise is None:
                raise
            return self.otherwise(store, number)
        try:
            authors = self._found(store, AUTHORS, number)
        except NotRun:
            return ours
        figures = f"{authors.figures} (authors' form; ours {MARKS[ours.holds]} {ours.figures})"
        return Found(figures, authors.holds, authors.interval, authors.slack, authors.runs, authors.freedom)

    def _found(self, store: Store, form: str, number: int) -> Found:
        effect = self.effect(store, form)
        interval, wider = (effect.interval(level) for level in _levels(number))
        region, shown = self.relation(self.metric), self._shown(interval)
        return Found(
            f"{self.label}: {self._listed(effect.values)}{_with_interval(shown, is_error(self.metric))}",
            _decided(region, interval, wider), (shown.low, shown.high), region.slack(interval), effect.runs,
            effect.spread.freedom,
        )  # fmt: skip

    def effect(self, store: Store, form: str = "") -> "Effect":
        """The effect in one of the forms, ours or `AUTHORS`; raise `NotRun` if a cell is missing."""
        values = store.values([f"{form}{self.prefix}-{name}" for name in self.names], self.metric)
        means = [sum(map(self._scaled, each)) / len(each) for each in values]
        groups = store.groups(self.task, self.metric, JUDGED)
        return Effect(
            values,
            means[0] - (means[1] if len(means) > 1 else self.against),
            Spread.pooled([list(map(self._scaled, each)) for each in groups]),
        )

    def _scaled(self, value: float) -> float:
        """What is averaged: scores, and logarithms of errors, so that larger is better."""
        return -math.log(max(value, SMALLEST_ERROR)) if is_error(self.metric) else value

    def _shown(self, interval: Estimate) -> Estimate:
        """The difference of scores, or the ratio of the first error to the second."""
        if not is_error(self.metric):
            return interval
        return Estimate(
            *(math.exp(-end) if end > -700 else math.inf for end in (interval.value, interval.high, interval.low))
        )

    def _listed(self, values: Sequence[Sequence[float]]) -> str:
        each = []
        for name, of_name in zip(self.names, values, strict=True):
            runs = f" (mean of {len(of_name)})" if len(of_name) > 1 else ""
            each.append(f"{name} {sum(of_name) / len(of_name):.{self.digits}f}{runs}")
        return ", ".join(each)


@dataclass(frozen=True)
class Effect:
    """The effect of a comparison.

    Args:
        values: The metric of the trainings of each cell.
        value: The difference of the means, of scores or of negative logarithms of errors.
        spread: Spread of the metric between repeated trainings.
    """

    values: Sequence[Sequence[float]]
    value: float
    spread: Spread

    @property
    def runs(self) -> tuple[int, ...]:
        """Number of trainings of each cell."""
        return tuple(map(len, self.values))

    def interval(self, level: float) -> Estimate:
        """The effect with its interval."""
        return self.spread.interval(self.value, self.runs, level)


def _levels(number: int) -> tuple[float, float]:
    """Levels of the interval by which a comparison holds, and of that by which one of several fails."""
    return LEVEL, 1 - (1 - LEVEL) / number


def _decided(region: Region, interval: Estimate, wider: Estimate) -> bool | None:
    return True if region.contains(interval) else False if region.excludes(wider) else None


def _with_interval(shown: Estimate, ratio: bool) -> str:
    if not math.isfinite(shown.low) or not math.isfinite(shown.high):
        return "; no training with this metric was repeated"
    if ratio:
        return f"; ratio {shown.value:.3f} [{shown.low:.3f}, {shown.high:.3f}]"
    return f"; difference {shown.value:+.3f} [{shown.low:+.3f}, {shown.high:+.3f}]"


Part = Callable[[Store, int], Found]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Args:
        text: The claim.
        command: Commands that measure it.
        parts: What has to hold.
    """

    text: str
    command: str
    parts: Sequence[Part]


@dataclass
class Judgement:
    """What the results say about a claim.

    Args:
        claim: The claim.
        found: Its parts as measured.
        missing: Parts that have not been run.
    """

    claim: Claim
    found: list[Found] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, claim: Claim, store: Store) -> "Judgement":
        """Compare the results in a store with the claim."""
        made = cls(claim)
        for part in claim.parts:
            try:
                made.found.append(part(store, len(claim.parts)))
            except NotRun as error:
                made.missing.append(str(error))
        return made

    @property
    def verdict(self) -> str:
        """`holds`, `fails` or `open`."""
        if any(part.holds is False for part in self.found):
            return "fails"
        return "holds" if self.found and not self.missing and all(part.holds for part in self.found) else "open"

    @property
    def reason(self) -> str:
        """The verdict in words, with the number of comparisons that decide it."""
        total, counts = len(self.claim.parts), {mark: sum(p.holds is mark for p in self.found) for mark in MARKS}
        if self.verdict == "fails":
            return f"{counts[False]} of {total} comparisons fail"
        if self.verdict == "holds":
            return "exact" if all(part.interval is None for part in self.found) else f"all {total} comparisons hold"
        undecided = [f"{counts[None]} of {total} undecided at this number of seeds"] if counts[None] else []
        return ", ".join([*undecided, *([f"{len(self.missing)} of {total} not run"] if self.missing else [])])

    @property
    def decisive(self) -> Found | None:
        """The part on which the verdict rests: the one that fails most clearly, or the least certain one."""
        kind = {"fails": False, "open": None, "holds": True}[self.verdict]
        chosen = [part for part in self.found if part.holds is kind]
        measured = [part for part in chosen if part.interval is not None and math.isfinite(part.slack)]
        return min(measured or chosen, key=lambda part: part.slack, default=None)

    def to_dict(self) -> dict[str, Any]:
        """The judgement in JSON types."""
        return {
            "claim": self.claim.text,
            "verdict": self.verdict,
            "reason": self.reason,
            "decisive": None if self.decisive is None else self.decisive.figures,
            "parts": [part.to_dict() for part in self.found],
            "not_run": self.missing,
        }


def _pairs(first: str, second: str, targets: Sequence[str], relation: Relation) -> list[Comparison]:
    """Two models on several targets and both kinds of graphs."""
    return [_pair(first, second, target, kind, relation) for target in targets for kind in KINDS]


def _pair(first: str, second: str, target: str, kind: str, relation: Relation, **options: Any) -> Comparison:
    place = f"{target} {kind}", "distances", f"playground-{target}-{kind}"
    return Comparison(*place, (first, second), METRICS[target], relation, **options)


def _appendix(model: str, main: str, target: str, relation: Relation) -> list[Comparison]:
    """A model of the appendix and a main one: full training runs if both have one, otherwise the shorter ones."""
    shorter = f"{main}-shorter" if target in FULL else main
    return [
        _pair(f"{model}-longer", main, target, kind, relation, otherwise=_pair(model, shorter, target, kind, relation))
        for kind in KINDS
    ]


def _walks(first: str, second: str, target: str, relation: Relation) -> Comparison:
    return Comparison(target, "distances", f"walks-{target}", (first, second), METRICS[target], relation)


def _sorting(names: tuple[str, ...], metric: str, lengths: Sequence[int], relation: Relation) -> list[Comparison]:
    """Cells of sorting networks, by length."""
    return [
        Comparison(f"{metric} {length}", "sorting", "sorting", names, f"{metric}/{length}", relation, digits=3)
        for length in lengths
    ]


def _study(first: str, second: str, relation: Relation) -> list[Comparison]:
    """Two cells of sorting networks, by the means over all lengths.

    Accuracy alone, at lengths that training does not have, depends on how far the logits drift from the threshold. So
    AUC has to agree.
    """
    means = {"accuracy": ACCURACY, "AUC": AUC}
    return [
        Comparison(label, "sorting", "sorting", (first, second), metric, relation, digits=3)
        for label, metric in means.items()
    ]


def _svd_times(store: Store, number: int) -> Found:
    """The largest ratio of errors over all distances: between the largest of the lower and of the upper ends."""
    compared = _pairs("magnetic", "svd", DISTANCES, ahead)
    try:
        effects = [each.effect(store, AUTHORS) for each in compared]
    except NotRun:
        effects = [each.effect(store) for each in compared]
    interval, wider = (_largest([effect.interval(level) for effect in effects]) for level in _levels(number))
    region = Region(*map(math.log, SVD_TIMES))
    low, high = (math.exp(min(700, end)) for end in (interval.low, interval.high))
    figures = f"at most {math.exp(interval.value):.2f} [{low:.2f}, {high:.2f}] times the RMSE of magnetic"
    freedom, slack = effects[0].spread.freedom, region.slack(interval)
    return Found(figures, _decided(region, interval, wider), (low, high), slack, effects[0].runs, freedom)


def _largest(intervals: Sequence[Estimate]) -> Estimate:
    value, low, high = (max(getattr(each, end) for each in intervals) for end in ("value", "low", "high"))
    return Estimate(value, low, high)


def _topological_sorts(store: Store, number: int) -> Found:  # noqa: ARG001
    count = int(store.row("figure-topological-sorts", "length", 8)["topological_sorts"])
    return Found(f"length 8: {count:,}", count > 1_000_000)


def _order_restored(graph: str, store: Store, number: int) -> Found:  # noqa: ARG001
    share = store.row("figure-examples", "graph", graph)["one_way_edges_in_order"]
    return Found(f"{graph}: {share:.1%} of edges in order", share == 1)


def _code_ratio(row: str, other: str, least: float, store: Store, number: int) -> Found:  # noqa: ARG001
    """Whether the F1 of a row is at least `least` times that of another, by the interval over projects."""
    scores = Scores.read(store.folder)
    ratio, region = scores.ratio(row, other), Region(low=least)
    name = f"{scores.best_magnetic} (best magnetic)" if row == BEST_MAGNETIC else row
    holds = True if ratio.low >= least else False if ratio.high < least else None
    figures = f"{name} / {other}: {ratio}, {'more than 1' if least == 1 else f'{least:.3f} in the paper'}"
    return Found(figures, holds, (ratio.low, ratio.high), region.slack(ratio))


def _f1_score_graphs(store: Store, number: int) -> Found:  # noqa: ARG001
    found = store.figure("reorderings")["f1_score"]
    texts, graphs, sequential = (int(found[name]) for name in ("texts", "dataflow", "ast"))
    figures = f"f1_score: {texts:,} texts, {sequential:,} sequential and {graphs:,} data-flow graphs"
    return Found(figures, graphs == 1 and sequential == texts)


CODE_ORDER = ("sat-no-gnn", "sat++-no-gnn", "sat", "sat++", "dataflow", "dataflow-walks", "dataflow-magnetic")
"""Rows of function names from the lowest to the highest F1 in the paper."""

CLASSES, DISTANCES = TARGETS[:2], TARGETS[2:]
NEAR, FAR = LENGTHS[:2], LENGTHS[2:]

CLAIMS = {
    "1": Claim(
        "Magnetic beats combinatorial on directed targets; equal on undirected distance.",
        "figure-playground",
        _pairs("magnetic", "laplacian", TARGETS[:3], ahead) + _pairs("magnetic", "laplacian", TARGETS[3:], equal),
    ),
    "2": Claim(
        "Walks match magnetic on adjacency and reachability, fall behind on distances.",
        "figure-playground",
        _pairs("walks", "magnetic", CLASSES, matches) + _pairs("magnetic", "walks", DISTANCES, ahead),
    ),
    "3": Claim(
        "SVD has up to 4 times the RMSE of magnetic; walks are ~30% below SVD on directed distance of general "
        "digraphs.",
        "figure-playground",
        [
            *_pairs("magnetic", "svd", DISTANCES, ahead),
            _svd_times,
            _pair("walks", "svd", "directed-distance", "general", below_by(*WALKS_BELOW_SVD)),
        ],
    ),
    "4": Claim(
        "Relative walks beat walks; SignNet-MLP is worse; GNN and MagNet do adjacency and reachability, not distances.",
        "figure-playground",
        [
            comparison
            for target in TARGETS
            for comparison in (
                *_appendix("relative-walks", "walks", target, ahead),
                *_appendix("magnetic-signnet", "magnetic", target, behind),
                *_appendix("gnn", "magnetic", target, matches if target in CLASSES else far_behind),
                *_appendix("magnet", "magnetic", target, matches if target in CLASSES else far_behind),
            )
        ],
    ),
    "5": Claim(
        "Walks need reversal and PageRank; 2–3 steps suffice.",
        "figure-walks",
        [
            *(_walks(f"{more}-3", f"{less}-3", target, ahead) for target in TARGETS for less, more in pairwise(WALKS)),
            *(_walks("pagerank-5", "pagerank-3", target, no_gain) for target in TARGETS),
        ],
    ),
    "6": Claim(
        "Sorting: magnetic ≈ walks ≫ sinusoidal (good near the training lengths only) ≫ combinatorial ≈ guessing.",
        "figure-sorting",
        [
            *_sorting(("magnetic", "walks"), "accuracy", LENGTHS, equal),
            *_sorting(("sinusoidal", "magnetic"), "accuracy", NEAR, matches),
            *_sorting(("magnetic", "sinusoidal"), "accuracy", FAR, far_ahead),
            *_sorting(("walks", "sinusoidal"), "accuracy", FAR, far_ahead),
            *_sorting(("sinusoidal", "laplacian"), "auc", NEAR, far_ahead),
            *_sorting(("sinusoidal", "laplacian"), "auc", FAR, ahead),
            *_sorting(("laplacian",), "auc", LENGTHS, equal),
        ],
    ),
    "7": Claim(
        "Sorting: q' above 0.25 hurts; GNNs gain until step 3; direction helps; magnetic helps GNNs, walks hurt.",
        "figure-q-sweep, figure-gnn",
        [
            *(part for q in POTENTIALS if q > 0.25 for part in _study("magnetic-q0.25", f"magnetic-q{q:g}", ahead)),
            *(part for more in STEPS[3:] for part in _study(f"gnn-directed-{more}", "gnn-directed-3", no_gain)),
            *_study("gnn-directed-3", "gnn-undirected-3", ahead),
            *_study("gnn-magnetic", "gnn-directed-3", ahead),
            *_study("gnn-directed-3", "gnn-walks", ahead),
        ],
    ),
    "8": Claim(
        "Batcher's network of length 8 has over 1,000,000 topological sorts.",
        "figure-topological-sorts",
        [_topological_sorts],
    ),
    "9": Claim(
        "Function names: SAT without GNN < SAT++ without GNN < SAT < SAT++ < data-flow graph < walks < magnetic, which "
        "is 14.7% ahead of SAT.",
        "train-code, baselines-code",
        [
            *(partial(_code_ratio, better, worse, 1) for worse, better in pairwise(CODE_ORDER)),
            partial(_code_ratio, BEST_MAGNETIC, "sat", 22.22 / 19.37),
        ],
    ),
    "10": Claim(
        "Every reordering and commutation of f1_score has one data-flow graph, and a sequential graph of its own.",
        "benchmarks/reorderings.py",
        [_f1_score_graphs],
    ),
    "11": Claim(
        "Im γ₀ restores the order of sequence, binary tree and trumpet.",
        "figure-examples",
        [
            partial(_order_restored, graph)
            for graph in ("sequence", "balanced binary tree", "trumpet (fully connected)", "trumpet (DAG)")
        ],
    ),
}
"""The claims by their number in the paper's order."""


def judge(request: Request) -> None:
    """Judge every claim by the results; print the table and write it in JSON and in Markdown."""
    if request.only:
        raise ValueError(f"--only selects cells to train and claims train nothing, got {request.only!r}: leave it out")
    request.require_results()
    record = Record("claims", request.seed)
    judged = {number: Judgement.of(claim, request.store) for number, claim in CLAIMS.items()}
    table = Table("", "claim", "our figures", "", title="What the paper claims", show_lines=True)
    for number, one in judged.items():
        lines = [f"{MARKS[part.holds]} {part.figures}" for part in one.found]
        command = one.claim.command if one.claim.command.endswith(".py") else f"-m paper {one.claim.command}"
        lines += [f"– {len(one.missing)} not run: python {command}"] if one.missing else []
        table.add_row(number, one.claim.text, "\n".join(lines), f"{one.verdict} ({one.reason})")
    spreads = {name: _spread(request.store, *of) for name, of in SPREADS.items()}
    counts = {verdict: sum(one.verdict == verdict for one in judged.values()) for verdict in VERDICTS}
    rows = {number: one.to_dict() for number, one in judged.items()}
    path = request.write(record, {"thresholds": THRESHOLDS, "spreads": spreads, "counts": counts, "claims": rows})
    _write_markdown(path.with_suffix(".md"), judged)
    console = Console(soft_wrap=True)
    console.print(table)
    console.print(f"{', '.join(f'{count} {verdict}' for verdict, count in counts.items())}; written: {path}")


VERDICTS = ("holds", "fails", "open")

SPREADS: dict[str, tuple[str, Metric]] = {
    "log RMSE of distances": ("distances", "rmse"),
    "F1 of node pairs": ("distances", "f1"),
    **{
        f"{name}/{length} of networks": ("sorting", f"{name}/{length}")
        for name in ("accuracy", "auc")
        for length in LENGTHS
    },
    "mean accuracy of networks": ("sorting", ACCURACY),
    "mean AUC of networks": ("sorting", AUC),
}
"""Spreads that comparisons use: task and metric by name."""


def _spread(store: Store, task: str, metric: Metric) -> Mapping[str, float | int | None]:
    groups = store.groups(task, metric, JUDGED)
    scaled = [[math.log(value) for value in each] if is_error(metric) else each for each in groups]
    spread = Spread.pooled(scaled)
    return {"deviation": spread.deviation, "degrees_of_freedom": spread.freedom, "groups": len(groups)}


def _write_markdown(path: Path, judged: Mapping[str, Judgement]) -> None:
    lines = ["| | claim | verdict | why | comparison that decides |", "|---|---|---|---|---|"]
    for number, one in judged.items():
        decisive = "not run" if one.decisive is None else one.decisive.figures
        lines.append(f"| {number} | {one.claim.text} | **{one.verdict}** | {one.reason} | {decisive} |")
    with replacing(path) as part:
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")
