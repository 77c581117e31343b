"""The paper's claims: what each of them compares, and whether the results in `results/` agree."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from rich.console import Console
from rich.table import Table

from magnetite.io.record import Record
from paper.cells import Request
from paper.charts import LENGTHS
from paper.playground import FULL, KINDS, METRICS, TARGETS, WALKS
from paper.sorting import POTENTIALS, STEPS
from paper.store import SAME_TRAINING, NotRun, Store
from paper.table_code import BEST_MAGNETIC, Scores

EQUAL = 0.10
"""Scores are "equal" if they differ by at most this much, errors if they differ by at most this fraction."""

AHEAD_SCORES, AHEAD_ERRORS = 0.01, 0.05
"""A score is "ahead" of another if it is better by more than this much, an error if by more than this fraction.

So a value can be ahead of another and equal to it: "ahead" means better by more than chance, "equal" about the same.
"""

NO_GAIN = 0.02
"""A score that improves by less than this counts as unchanged."""

SVD_TIMES, WALKS_BELOW_SVD = (3.0, 5.0), (0.2, 0.4)
"""What counts as "up to 4 times the error", and as "30% below"."""

THRESHOLDS = {
    "equal": EQUAL,
    "ahead_in_shares": AHEAD_SCORES,
    "ahead_in_errors": AHEAD_ERRORS,
    "graphs_seen_alike": SAME_TRAINING,
    "gain_that_vanished": NO_GAIN,
    "up_to_4_times": SVD_TIMES,
    "30_percent_below": WALKS_BELOW_SVD,
}

MARKS = {True: "✓", False: "✗", None: "?"}

ACCURACY, AUC = (tuple(f"{metric}/{length}" for length in LENGTHS) for metric in ("accuracy", "auc"))


def ahead(metric: str, first: float, second: float) -> bool:
    """Whether the first value is better than the second, by more than chance.

    >>> ahead("f1", 0.9, 0.5), ahead("rmse", 0.98, 1.0)
    (True, False)
    """
    return first < second * (1 - AHEAD_ERRORS) if metric == "rmse" else first > second + AHEAD_SCORES


def behind(metric: str, first: float, second: float) -> bool:
    """Whether the second value is ahead of the first."""
    return ahead(metric, second, first)


def not_ahead(metric: str, first: float, second: float) -> bool:
    """Whether the first value is not ahead of the second."""
    return not ahead(metric, first, second)


def equal(metric: str, first: float, second: float) -> bool:
    """Whether two values are equal within a tenth.

    >>> equal("f1", 0.95, 0.90), equal("rmse", 0.2, 0.1)
    (True, False)
    """
    return abs(first / second - 1 if metric == "rmse" else first - second) <= EQUAL


def far_ahead(metric: str, first: float, second: float) -> bool:
    """Whether the first value is ahead of the second and not equal to it.

    >>> far_ahead("rmse", 1.0, 1.2), far_ahead("rmse", 1.0, 1.07)
    (True, False)
    """
    return ahead(metric, first, second) and not equal(metric, first, second)


def far_behind(metric: str, first: float, second: float) -> bool:
    """Whether the second value is far ahead of the first."""
    return far_ahead(metric, second, first)


def guessing(metric: str, area: float) -> bool:  # noqa: ARG001
    """Whether an AUC is that of guessing."""
    return abs(area - 0.5) <= EQUAL


@dataclass(frozen=True)
class Found:
    """One part of a claim as measured: the values in words, and whether they agree with the paper.

    None stands for an interval that leaves it open.
    """

    figures: str
    holds: bool | None


@dataclass(frozen=True)
class Comparison:
    """Values of several cells, and the relation that the paper claims between them.

    Args:
        label: What is compared.
        prefix: Beginning of the names of all cells.
        names: The rest of the name of each cell.
        metrics: Names of metrics; a tuple of names is averaged. The relation must hold for each.
        relation: Function of the metric and the values.
        digits: Number of digits shown.
        otherwise: Comparison to make instead if a cell has not been trained.
    """

    label: str
    prefix: str
    names: tuple[str, ...]
    metrics: tuple[str | tuple[str, ...], ...]
    relation: Callable[..., bool]
    digits: int = 4
    otherwise: "Comparison | None" = None

    def __call__(self, store: Store) -> Found:
        """Compare the results in a store; raise `NotRun` if one is missing."""
        cells = [f"{self.prefix}-{name}" for name in self.names]
        try:
            values = [_averages(store, cells, metric) for metric in self.metrics]
        except NotRun:
            if self.otherwise is None:
                raise
            return self.otherwise(store)
        each = zip(self.names, zip(*values, strict=True), strict=True)
        lines = (f"{name} {' / '.join(f'{value:.{self.digits}f}' for value in of_name)}" for name, of_name in each)
        holds = all(self.relation(metric, *of) for metric, of in zip(self.metrics, values, strict=True))
        return Found(f"{self.label}: {', '.join(lines)}", holds)


def _averages(store: Store, cells: Sequence[str], metric: str | tuple[str, ...]) -> list[float]:
    names = (metric,) if isinstance(metric, str) else metric
    by_name = [store.values(cells, name) for name in names]
    return [sum(values) / len(values) for values in zip(*by_name, strict=True)]


Part = Callable[[Store], Found]


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


def _pairs(first: str, second: str, targets: Sequence[str], relation: Callable[..., bool]) -> list[Comparison]:
    """Two models on several targets and both kinds of graphs."""
    return [_pair(first, second, target, kind, relation) for target in targets for kind in KINDS]


def _pair(first: str, second: str, target: str, kind: str, relation: Callable[..., bool], **options) -> Comparison:
    prefix = f"playground-{target}-{kind}"
    return Comparison(f"{target} {kind}", prefix, (first, second), (METRICS[target],), relation, **options)


def _appendix(model: str, main: str, target: str, relation: Callable[..., bool]) -> list[Comparison]:
    """A model of the appendix and a main one: full training runs if both have one, otherwise the shorter ones."""
    shorter = f"{main}-shorter" if target in FULL else main
    return [
        _pair(f"{model}-longer", main, target, kind, relation, otherwise=_pair(model, shorter, target, kind, relation))
        for kind in KINDS
    ]


def _walks(first: str, second: str, target: str, relation: Callable[..., bool]) -> Comparison:
    return Comparison(target, f"walks-{target}", (first, second), (METRICS[target],), relation)


def _sorting(names: tuple[str, ...], metric: str, lengths: Sequence[int], relation: Callable[..., bool]):
    """Cells of sorting networks, by length."""
    return [
        Comparison(f"{metric} {length}", "sorting", names, (f"{metric}/{length}",), relation, digits=3)
        for length in lengths
    ]


def _study(names: tuple[str, ...], relation: Callable[..., bool]) -> Comparison:
    """Cells of sorting networks, by the means over all lengths.

    Accuracy alone, at lengths that training does not have, depends on how far the logits drift from the threshold. So
    AUC has to agree.
    """
    return Comparison("accuracy / AUC", "sorting", names, (ACCURACY, AUC), relation, digits=3)


def _svd_times(store: Store) -> Found:
    pairs = [
        store.values([f"playground-{target}-{kind}-{name}" for name in ("magnetic", "svd")], "rmse")
        for target in TARGETS[2:]
        for kind in KINDS
    ]
    ratio = max(svd / magnetic for magnetic, svd in pairs)
    return Found(f"at most {ratio:.1f} times the RMSE of magnetic", SVD_TIMES[0] <= ratio <= SVD_TIMES[1])


def _walks_below_svd(store: Store) -> Found:
    walks, svd = store.values([f"playground-directed-distance-general-{name}" for name in ("walks", "svd")], "rmse")
    below, (least, most) = 1 - walks / svd, WALKS_BELOW_SVD
    return Found(f"directed-distance general: walks {below:.0%} below svd", least <= below <= most)


def _topological_sorts(store: Store) -> Found:
    number = int(store.row("figure-topological-sorts", "length", 8)["topological_sorts"])
    return Found(f"length 8: {number:,}", number > 1_000_000)


def _order_restored(graph: str, store: Store) -> Found:
    share = store.row("figure-examples", "graph", graph)["one_way_edges_in_order"]
    return Found(f"{graph}: {share:.1%} of edges in order", share == 1)


def _code_ratio(row: str, other: str, least: float, store: Store) -> Found:
    """Whether the F1 of a row is at least `least` times that of another, by the interval over projects."""
    scores = Scores.read(store.folder)
    ratio = scores.ratio(row, other)
    name = f"{scores.best_magnetic} (best magnetic)" if row == BEST_MAGNETIC else row
    holds = True if ratio.low >= least else False if ratio.high < least else None
    return Found(f"{name} / {other}: {ratio}, {'more than 1' if least == 1 else f'{least:.3f} in the paper'}", holds)


def _f1_score_graphs(store: Store) -> Found:
    found = store.figure("reorderings")["f1_score"]
    texts, graphs, sequential = (int(found[name]) for name in ("texts", "dataflow", "ast"))
    figures = f"f1_score: {texts:,} texts, {sequential:,} sequential and {graphs:,} data-flow graphs"
    return Found(figures, graphs == 1 and sequential == texts)


def _large_potentials_hurt(metric: str, *values: float) -> bool:
    by_potential = dict(zip(POTENTIALS, values, strict=True))
    return all(ahead(metric, by_potential[0.25], value) for q, value in by_potential.items() if q > 0.25)


def _no_gain_after_three(metric: str, *steps: float) -> bool:  # noqa: ARG001
    return max(steps[3:]) - steps[2] < NO_GAIN


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
        _pairs("walks", "magnetic", CLASSES, equal) + _pairs("magnetic", "walks", DISTANCES, ahead),
    ),
    "3": Claim(
        "SVD has up to 4 times the RMSE of magnetic; walks are ~30% below SVD on directed distance of general "
        "digraphs.",
        "figure-playground",
        [*_pairs("magnetic", "svd", DISTANCES, ahead), _svd_times, _walks_below_svd],
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
                *_appendix("gnn", "magnetic", target, equal if target in CLASSES else far_behind),
                *_appendix("magnet", "magnetic", target, equal if target in CLASSES else far_behind),
            )
        ],
    ),
    "5": Claim(
        "Walks need reversal and PageRank; 2–3 steps suffice.",
        "figure-walks",
        [
            *(_walks(f"{more}-3", f"{less}-3", target, ahead) for target in TARGETS for less, more in pairwise(WALKS)),
            *(_walks("pagerank-5", "pagerank-3", target, not_ahead) for target in TARGETS),
        ],
    ),
    "6": Claim(
        "Sorting: magnetic ≈ walks ≫ sinusoidal (good near the training lengths only) ≫ combinatorial ≈ guessing.",
        "figure-sorting",
        [
            *_sorting(("magnetic", "walks"), "accuracy", LENGTHS, equal),
            *_sorting(("sinusoidal", "magnetic"), "accuracy", NEAR, equal),
            *_sorting(("magnetic", "sinusoidal"), "accuracy", FAR, far_ahead),
            *_sorting(("walks", "sinusoidal"), "accuracy", FAR, far_ahead),
            *_sorting(("sinusoidal", "laplacian"), "auc", NEAR, far_ahead),
            *_sorting(("sinusoidal", "laplacian"), "auc", FAR, ahead),
            *_sorting(("laplacian",), "auc", LENGTHS, guessing),
        ],
    ),
    "7": Claim(
        "Sorting: q' above 0.25 hurts; GNNs gain until step 3; direction helps; magnetic helps GNNs, walks hurt.",
        "figure-q-sweep, figure-gnn",
        [
            _study(tuple(f"magnetic-q{q:g}" for q in POTENTIALS), _large_potentials_hurt),
            _study(tuple(f"gnn-directed-{steps}" for steps in STEPS), _no_gain_after_three),
            _study(("gnn-directed-3", "gnn-undirected-3"), ahead),
            _study(("gnn-magnetic", "gnn-directed-3"), ahead),
            _study(("gnn-directed-3", "gnn-walks"), ahead),
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
    """Judge every claim by the results; print the table and write the JSON file."""
    if request.only:
        raise ValueError(f"--only selects cells to train and claims train nothing, got {request.only!r}: leave it out")
    request.require_results()
    record = Record("claims", request.seed)
    table = Table("", "claim", "our figures", "", title="What the paper claims", show_lines=True)
    rows = {}
    for number, claim in CLAIMS.items():
        found, missing = [], []
        for part in claim.parts:
            try:
                found.append(part(request.store))
            except NotRun as error:
                missing.append(str(error))
        verdict = _verdict(found, missing)
        lines = [f"{MARKS[part.holds]} {part.figures}" for part in found]
        command = claim.command if claim.command.endswith(".py") else f"-m paper {claim.command}"
        lines += [f"– {len(missing)} not run: python {command}"] if missing else []
        table.add_row(number, claim.text, "\n".join(lines), verdict)
        parts = [{"figures": part.figures, "holds": part.holds} for part in found]
        rows[number] = {"claim": claim.text, "verdict": verdict, "parts": parts, "not_run": missing}
    path = request.write(record, {"thresholds": THRESHOLDS, "claims": rows})
    console = Console(soft_wrap=True)
    console.print(table)
    console.print(f"written: {path}")


def _verdict(found: Sequence[Found], missing: Sequence[str]) -> str:
    """The claim fails if one part fails; otherwise it is open if an interval leaves a part open or one has not run."""
    failing, undecided = (sum(part.holds is value for part in found) for value in (False, None))
    if failing:
        return f"does not hold ({failing} of {len(found)} comparisons fail)"
    if undecided:
        return f"open ({undecided} of {len(found)} comparisons undecided)"
    return "not run" if not found else "holds" if not missing else "holds as far as run"
