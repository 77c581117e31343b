"""The table of function names: every row with its standard error over seeds and its interval over projects.

python -m paper baselines-code --data CORPUS      # rows without a graph or a network
python -m paper train-code --data CORPUS --seeds 0,1,2
python -m paper table-code                        # reads `results/code` only
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from magnetite.io.record import Record
from magnetite.io.storage import DamagedFile, replacing
from paper import baselines, style
from paper.cells import Request
from paper.statistics import LEVEL, RESAMPLES, Bootstrap, Estimate, mean_and_error
from paper.store import NotRun
from paper.train_code import FOLDER, read_answers, read_rows

NAME = "table-code"
METRICS = ("f1_dropped", "f1")
"""F1 without predicted "unknown", as the paper's authors count, which decides here; and with it, as OGB counts."""


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Args:
        name: Name of the preset of the task, or of the baseline.
        label: What the table calls it.
        published: F1 on OGB's Code2 in the paper, in percent.
        graph: What the model reads.
    """

    name: str
    label: str
    published: float | None
    graph: str


ROWS = (
    Row("frequent", "most frequent words", None, "–"),
    Row("nearest", "nearest neighbours by TF-IDF", None, "tokens"),
    Row("tokens", "token transformer", None, "tokens"),
    Row("sat-no-gnn", "SAT without GNN", 16.70, "sequential"),
    Row("sat", "SAT", 19.37, "sequential"),
    Row("sat++-no-gnn", "SAT++ without GNN", 19.09, "sequential"),
    Row("sat++", "SAT++", 21.03, "sequential"),
    Row("dataflow", "SAT++", 21.61, "data-flow"),
    Row("dataflow-walks", "SAT++, random walks", 21.82, "data-flow"),
    Row("dataflow-magnetic-mlp", "SAT++, magnetic without GNN", None, "data-flow"),
    Row("dataflow-magnetic", "SAT++, magnetic", 22.22, "data-flow"),
    Row("dataflow-magnetic-unscaled", "SAT++, magnetic, large positions", None, "data-flow"),
    Row("dataflow-multi-q", "SAT++, magnetic with several q", None, "data-flow"),
    Row("best", "best, for users", None, "data-flow"),
)
MAGNETIC = ("dataflow-magnetic", "dataflow-magnetic-mlp", "dataflow-multi-q")
"""Rows among which validation chooses the best magnetic one."""

BEST_MAGNETIC = "best magnetic"
RATIOS = (
    (BEST_MAGNETIC, "sat", 22.22 / 19.37),
    (BEST_MAGNETIC, "sat++", 22.22 / 21.03),
    ("dataflow", "sat++", 21.61 / 21.03),
    (BEST_MAGNETIC, "dataflow", 22.22 / 21.61),
    (BEST_MAGNETIC, "tokens", None),
    (BEST_MAGNETIC, "nearest", None),
)
"""Ratios of two rows, with that of the paper."""


@dataclass(frozen=True)
class Scores:
    """The scores of all rows that have been run, by project.

    Args:
        projects: Names of the projects.
        counts: Number of test functions of each project.
        sums: By metric, row and seed: the sum of the F1 of each project.
        valid: By row and seed: F1 in validation.
        resamples: Number of resamples of the intervals.
    """

    projects: tuple[str, ...]
    counts: np.ndarray
    sums: Mapping[str, Mapping[str, Mapping[int, np.ndarray]]]
    valid: Mapping[str, Mapping[int, float]]
    resamples: int = RESAMPLES

    @classmethod
    def read(cls, out: Path, resamples: int = RESAMPLES) -> "Scores":
        """The scores in a folder of results.

        Args:
            out: Folder of results.
            resamples: Number of resamples of the intervals.
        """
        records = {key: record for key, record in read_rows(out).items() if key[0] in {row.name for row in ROWS}}
        if not records:
            raise NotRun(f"no row of {NAME}")
        _check_alike(records)
        sums: dict[str, dict[str, dict[int, np.ndarray]]] = {metric: {} for metric in METRICS}
        valid: dict[str, dict[int, float]] = {}
        known: dict[str, float] | None = None
        for (row, seed), record in sorted(records.items()):
            found = _projects(record, out / FOLDER / f"{row}-seed{seed}.parquet")
            counts = {project: entry[0] for project, entry in found.items()}
            if known is not None and counts != known:
                raise DamagedFile(f"{out / FOLDER}: {row} with seed {seed} has other test functions: run it again")
            known = counts
            for column, metric in enumerate(("f1", "f1_dropped"), 1):
                sums[metric].setdefault(row, {})[seed] = np.array([found[project][column] for project in counts])
            score = record["result"].get("figures", {}).get("valid", {}).get("f1_dropped")
            if score is not None:
                valid.setdefault(row, {})[seed] = score
        known = known or {}
        return cls(tuple(known), np.array(list(known.values())), sums, valid, resamples)

    @cached_property
    def bootstrap(self) -> Bootstrap | None:
        """Resampled projects; None if the data do not name at least two."""
        return Bootstrap(self.counts, self.resamples) if len(self.projects) > 1 else None

    @cached_property
    def best_magnetic(self) -> str:
        """The magnetic row with the best mean F1 in validation."""
        means = {row: float(np.mean(list(self.valid[row].values()))) for row in MAGNETIC if row in self.valid}
        if not means:
            raise NotRun(BEST_MAGNETIC)
        return max(means, key=lambda row: means[row])

    def mean_sums(self, row: str, metric: str = METRICS[0]) -> np.ndarray:
        """The sums of each project, averaged over seeds.

        Args:
            row: Name of the row, or `BEST_MAGNETIC`.
            metric: One of `METRICS`.
        """
        name = self.best_magnetic if row == BEST_MAGNETIC else row
        if name not in self.sums[metric]:
            raise NotRun(name)
        return np.mean(list(self.sums[metric][name].values()), axis=0)

    def seeds(self, row: str, metric: str = METRICS[0]) -> list[float]:
        """F1 of each seed."""
        return [float(sums.sum() / self.counts.sum()) for sums in self.sums[metric][row].values()]

    def score(self, row: str, metric: str = METRICS[0]) -> Estimate | None:
        """Mean F1 over seeds with its interval over projects; None without projects."""
        return self.bootstrap.score(self.mean_sums(row, metric)) if self.bootstrap else None

    def ratio(self, row: str, other: str, metric: str = METRICS[0]) -> Estimate:
        """The ratio of the F1 of two rows; the interval is everything if the data name no projects.

        Args:
            row: Name of a row, or `BEST_MAGNETIC`.
            other: Name of the row that it is divided by.
            metric: One of `METRICS`.
        """
        sums, others = self.mean_sums(row, metric), self.mean_sums(other, metric)
        if self.bootstrap is None:
            return Estimate(float(sums.sum() / others.sum()), 0.0, float("inf"))
        return self.bootstrap.ratio(sums, others)


def _projects(record: Mapping[str, Any], answers: Path) -> dict[str, list[float]]:
    """The sums by project: in the record, or of the answers beside it."""
    found = record["result"].get("projects")
    return found if found is not None else baselines.by_project(read_answers(answers))


def _check_alike(records: Mapping[tuple[str, int], Mapping[str, Any]]) -> None:
    """Raise an error unless all rows have the same functions, and all networks the same training."""
    data, training = {}, {}
    for key, record in records.items():
        result = record["result"]
        config = result.get("config")
        data[key] = result["fingerprint"] if config is None else config["task"]["fingerprint"]
        if config is not None and key[0] != "best":
            options = config["optim"] | {"most": config["task"].get("most", 0)}
            training[key] = tuple(options[name] for name in ("epochs", "budget", "batch", "most"))
    for what, found in (("functions", data), ("epochs, budget or batch", training)):
        first = next(iter(found), None)
        different = next((key for key, value in found.items() if first is not None and value != found[first]), None)
        if first is not None and different is not None:
            names = " and ".join(f"{row} (seed {seed})" for row, seed in (first, different))
            raise ValueError(f"{names} have different {what}: rows of one table need the same; pass another --out")


def figure(request: Request) -> None:
    """Print the table, draw the figure, write the JSON file and the table in Markdown."""
    request.require_results()
    record = Record(NAME, request.seed)
    scores = Scores.read(request.out)
    result = summary(scores)
    path = request.write(record, result)
    with replacing(request.out / f"{NAME}.md") as part:
        part.write_text(markdown(result), encoding="utf-8")
    _picture(result, request.out)
    console = Console(soft_wrap=True)
    console.print(_printed(result))
    for ratio in result["ratios"]:
        console.print(_ratio(ratio))
    console.print(f"figure: {request.out / NAME}.png and .svg, numbers: {path}, table: {path.with_suffix('.md')}")


def summary(scores: Scores) -> dict[str, Any]:
    """All numbers of the table.

    Args:
        scores: The scores of all rows that have been run.
    """
    rows = []
    for row in ROWS:
        if row.name not in scores.sums[METRICS[0]]:
            continue
        entry: dict[str, Any] = {"row": row.name, "label": row.label, "graph": row.graph, "published": row.published}
        for metric in METRICS:
            seeds = scores.seeds(row.name, metric)
            mean, error = mean_and_error(seeds)
            entry[metric] = {"mean": mean, "standard_error": error, "seeds": seeds} | _interval(
                scores.score(row.name, metric)
            )
        rows.append(entry)
    missing = [row.name for row in ROWS if row.name not in scores.sums[METRICS[0]]]
    return {
        "functions": int(scores.counts.sum()),
        "projects": len(scores.projects),
        "resamples": scores.resamples,
        "level": LEVEL,
        "rows": rows,
        "ratios": list(_ratios(scores)),
        "not_run": missing,
    }


def _ratios(scores: Scores) -> Iterator[dict[str, Any]]:
    for row, other, published in RATIOS:
        try:
            found = {metric: scores.ratio(row, other, metric) for metric in METRICS}
        except NotRun:
            continue
        if not all(np.isfinite(ratio.value) for ratio in found.values()):
            continue
        name = scores.best_magnetic if row == BEST_MAGNETIC else row
        yield {"row": name, "to": other, "published": published} | {
            metric: {"value": ratio.value} | _interval(ratio) for metric, ratio in found.items()
        }


def _interval(found: Estimate | None) -> dict[str, Any]:
    if found is None or not np.isfinite(found.high):
        return {"interval": None}
    return {"interval": [found.low, found.high]}


def markdown(result: Mapping[str, Any]) -> str:
    """The table in Markdown.

    Args:
        result: The numbers that `summary` gave.
    """
    lines = [
        "| reads | model | F1 | interval over projects | F1, unknown words count as wrong | F1 on Code2 in the paper |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        first, second = (row[metric] for metric in METRICS)
        published = "" if row["published"] is None else f"{row['published']:.2f}"
        cells = (row["graph"], row["label"], _percent(first), _span(first, 100), _percent(second), published)
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| ratio of F1 | here | interval over projects | in the paper |", "|---|---|---|---|"]
    labels = {row.name: f"{row.label} ({row.graph})" if row.graph != "–" else row.label for row in ROWS}
    for ratio in result["ratios"]:
        published = "" if ratio["published"] is None else f"{ratio['published']:.3f}"
        found = ratio[METRICS[0]]
        name = f"{labels[ratio['row']]} / {labels[ratio['to']]}"
        lines.append(f"| {name} | {found['value']:.3f} | {_span(found)} | {published} |")
    return "\n".join(lines) + "\n"


def _percent(found: Mapping[str, Any]) -> str:
    error = "" if found["standard_error"] is None else f" ± {100 * found['standard_error']:.2f}"
    return f"{100 * found['mean']:.2f}{error}"


def _span(found: Mapping[str, Any], scale: float = 1.0) -> str:
    if found["interval"] is None:
        return "–"
    digits = 2 if scale > 1 else 3
    low, high = (f"{scale * end:.{digits}f}" for end in found["interval"])
    return f"{low} … {high}"


def _ratio(ratio: Mapping[str, Any]) -> str:
    published = "" if ratio["published"] is None else f", paper {ratio['published']:.3f}"
    found = ratio[METRICS[0]]
    return f"{ratio['row']} / {ratio['to']}: {found['value']:.3f} ({_span(found)}{published})"


def _printed(result: Mapping[str, Any]) -> Table:
    title = f"F1 in percent on {result['functions']:,} functions of {result['projects']:,} projects"
    table = Table(title=title)
    for heading in ("row", "F1", "interval", "F1 (OGB)", "Code2, paper"):
        table.add_column(heading, justify="left" if heading == "row" else "right", no_wrap=True)
    for row in result["rows"]:
        first, second = (row[metric] for metric in METRICS)
        published = "" if row["published"] is None else f"{row['published']:.2f}"
        table.add_row(row["row"], _percent(first), _span(first, 100), _percent(second), published)
    return table


def _picture(result: Mapping[str, Any], folder: Path) -> None:
    """One bar per row with its interval, and the paper's figures as marks."""
    rows: Sequence[Mapping[str, Any]] = result["rows"][::-1]
    colours = {"–": style.GREY, "tokens": style.ORANGE, "sequential": style.BLUE, "data-flow": style.GREEN}
    with style.picture(folder, NAME, 0.8 + 0.24 * len(rows)) as picture:
        axes = picture.add_subplot()
        for place, row in enumerate(rows):
            found = row[METRICS[0]]
            axes.barh(place, 100 * found["mean"], color=colours[row["graph"]])
            if found["interval"] is not None:
                low, high = (100 * end for end in found["interval"])
                axes.plot([low, high], [place, place], "k-", linewidth=1.2)
            axes.plot([100 * seed for seed in found["seeds"]], [place] * len(found["seeds"]), "k|", markersize=7)
            if row["published"] is not None:
                axes.plot(row["published"], place, "D", color=style.VERMILLION, markersize=4)
        axes.set_yticks(range(len(rows)), [f"{row['label']} ({row['graph']})" for row in rows])
        axes.set_xlabel("F1, %; line: 95 % interval over projects, bar: seed, diamond: the paper's on Code2")


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("baselines-code")
def measure_baselines(
    data: Annotated[Path, typer.Option(help="Folder of the corpus.")],
    out: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
) -> None:
    """Measure the rows that need neither a graph nor a network: most frequent words, and nearest neighbours."""
    record = Record("baselines-code", 0)
    for row, result in baselines.measure(data).items():
        record.name = f"{row}-seed0"
        path = record.write(out / FOLDER, result)
        shown = ", ".join(f"{name} {result[name]:.4f}" for name in ("f1", "exact", "exact_of_five"))
        Console(soft_wrap=True, highlight=False).print(f"{row}: {shown}, {result['chosen']}, {path}")
