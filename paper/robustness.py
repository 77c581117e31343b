"""Robustness of names: how often does a predicted name change if the function is rewritten, but means the same?

    python -m paper robustness-code --data CORPUS --runs runs/code --rows tokens,sat++,dataflow-magnetic

Two kinds of rewrites: orders of independent statements, operands, keywords and so on, which the law of the data-flow
graph covers, so that a model that reads it cannot see them; and other names for local variables, which every model
sees. The functions are those of the test split with at least two orders, by their hash, so nobody chose them.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from magnetite.code import CodeGraph, random_names, rename, reorderings
from magnetite.code.corpus import CorpusFunction, load
from magnetite.code.corpus.extraction import cut_function
from magnetite.code.functions import in_order
from magnetite.code.reorderings import F1_SCORE
from magnetite.code.source import Kind, Mask, graph_of
from magnetite.io.record import Record
from magnetite.io.storage import replacing
from magnetite.kernels._compat import available_cores
from magnetite.tasks.namer import Namer
from magnetite.workers.local import LocalWorkers
from paper import style

NAME = "robustness-code"

REORDERED, RENAMED = "reordered", "renamed"
ROWS = ("tokens", "sat++", "dataflow", "dataflow-magnetic")
TRIES = 4
"""Number of random texts per text that is wanted, since some are drawn twice."""


class Reading(NamedTuple):
    """How a model reads functions: the kind of graph, its mask, whether with docstrings, and its largest graph."""

    kind: Kind
    mask: Mask
    keep_docstrings: bool
    largest: int

    @classmethod
    def of(cls, namer: Namer) -> "Reading":
        """How a model reads functions."""
        known: Any = namer.vocabularies
        return cls(known.graphs, known.mask, known.keep_docstrings, known.max_nodes)

    def graph(self, text: str, name: str, method: bool) -> CodeGraph:
        """The graph of a text."""
        return in_order(graph_of(cut_function(text, name, method), self.kind, self.mask, self.keep_docstrings))


class Texts(NamedTuple):
    """A function with its rewrites; the first text is the function itself, formatted as the others are.

    Args:
        number: Number of orders of the function.
        reordered: Texts in other orders.
        renamed: Texts with other names of variables.
        outside: Number of orders that have another data-flow graph; by the law, none.
        graphs: For each reading, the different graphs, and the number of the graph of each text.
    """

    number: int
    reordered: list[str]
    renamed: list[str]
    outside: int
    graphs: list[tuple[list[CodeGraph], list[int]]]


def orders(source: str, most: int | None, seed: int) -> tuple[int, list[str]]:
    """The number of orders of a function, and texts of them: its own, then up to `most` different others.

    Args:
        source: The function.
        most: Number of texts beyond its own; None for all.
        seed: Seed of the choice, if there are more.
    """
    texts = reorderings(source)
    first = next(iter(texts))
    count = texts.count
    if most is None or count <= most + 1:
        return count, list(dict.fromkeys([first, *texts]))
    drawn = dict.fromkeys([first])
    for text in texts.sample(TRIES * most, seed):
        drawn[text] = None
        if len(drawn) > most:
            break
    return count, list(drawn)


def renames(source: str, most: int, seed: int) -> list[str]:
    """The function with random names of its variables, several times; none if it sees its names or has none.

    Args:
        source: The function.
        most: Number of texts.
        seed: Seed of the first.
    """
    try:
        found = [rename(source, random_names(source, seed + turn)) for turn in range(most)]
    except ValueError:  # such as a function that calls locals()
        return []
    return [text for text in dict.fromkeys(found) if text != source]


@dataclass(frozen=True)
class Rewriter:
    """Rewrites functions and builds the graphs of all texts.

    Args:
        readings: How the models read functions.
        most: Number of orders per function beyond its own; None for all.
        renamed: Number of texts with other names.
        seed: Seed of the choice.
    """

    readings: tuple[Reading, ...]
    most: int | None
    renamed: int
    seed: int

    def __call__(self, function: tuple[str, str, bool]) -> Texts | None:
        """The texts of a function; None if it has one order only, cannot be rewritten, or is too large for a model.

        Args:
            function: Source, name, and whether it is a method.
        """
        source, name, method = function
        try:
            count, texts = orders(source, self.most, self.seed)
            if len(texts) < 2:
                return None
            others = renames(texts[0], self.renamed, self.seed)
            law = Reading("dataflow", "strict", False, 0)
            hashes = [law.graph(text, name, method).hash for text in texts]
            graphs = [
                _different(reading.graph(text, name, method) for text in texts + others) for reading in self.readings
            ]
        except (ValueError, RecursionError):
            return None
        sizes = (
            max(map(len, found)) <= reading.largest for reading, (found, _) in zip(self.readings, graphs, strict=True)
        )
        if not all(sizes):
            return None
        return Texts(count, texts, others, sum(each != hashes[0] for each in hashes), graphs)


def _different(graphs: Iterable[CodeGraph]) -> tuple[list[CodeGraph], list[int]]:
    """The graphs that differ in what a model reads, and for each graph its number among them."""
    places: dict[tuple[Any, ...], int] = {}
    kept: list[CodeGraph] = []
    numbers: list[int] = []
    for graph in graphs:
        place = places.setdefault((graph.types, graph.attributes, graph.depths, graph.edges), len(kept))
        if place == len(kept):
            kept.append(graph)
        numbers.append(place)
    return kept, numbers


def split_functions(folder: Path) -> list[CorpusFunction]:
    """The functions of the test split, by their hash."""
    return sorted(load(folder).functions("test"), key=lambda function: function.dataflow)


def chosen(functions: Sequence[CorpusFunction], count: int, rewriter: Rewriter, workers: int) -> Iterator[Texts]:
    """The texts of the first functions that have several orders.

    Args:
        functions: The functions, in their order.
        count: Number of functions that are wanted.
        rewriter: Makes the texts.
        workers: Number of processes.
    """
    found = 0
    with LocalWorkers(rewriter, workers) as pool:
        waiting: list[Callable[[], list[Texts | None]]] = []
        for function in functions:
            waiting.append(pool.submit([(function.source, function.name, function.method)]))
            if len(waiting) < 4 * workers:
                continue
            texts = waiting.pop(0)()[0]
            found += texts is not None
            if texts is not None:
                yield texts
            if found == count:
                return
        for wait in waiting:
            texts = wait()[0]
            if texts is not None and found < count:
                found += 1
                yield texts


@dataclass
class Tally:
    """What happened to the names of one model under one kind of rewrite.

    Args:
        functions: Number of functions with such rewrites.
        rewrites: Number of rewrites.
        seen: Number of rewrites that the model reads differently.
        changed: Number of rewrites with another name.
        functions_changed: Number of functions with another name for at least one rewrite.
        most_names: Most different names of one function.
    """

    functions: int = 0
    rewrites: int = 0
    seen: int = 0
    changed: int = 0
    functions_changed: int = 0
    most_names: int = 0

    def add(self, own: int, others: Sequence[int], names: Sequence[Sequence[str]]) -> None:
        """Count a function.

        Args:
            own: Number of the function's own graph.
            others: Numbers of the graphs of its rewrites.
            names: The predicted words of each graph.
        """
        if not others:
            return
        changed = sum(list(names[other]) != list(names[own]) for other in others)
        self.functions += 1
        self.rewrites += len(others)
        self.seen += sum(other != own for other in others)
        self.changed += changed
        self.functions_changed += changed > 0
        self.most_names = max(self.most_names, len({tuple(names[each]) for each in (own, *others)}))

    def to_dict(self) -> dict[str, float]:
        """The counts and their shares."""
        shares = {
            "share": self.changed / max(1, self.rewrites),
            "share_of_functions": self.functions_changed / max(1, self.functions),
        }
        return vars(self) | shares


def measure(
    namers: Mapping[str, Namer], functions: Sequence[CorpusFunction], count: int, rewriter: Rewriter, workers: int
) -> dict[str, Any]:
    """How often names change, by model and kind of rewrite.

    Args:
        namers: The models by name; the rewriter has their readings in this order.
        functions: The functions, in their order.
        count: Number of functions with several orders that are wanted.
        rewriter: Makes the texts.
        workers: Number of processes.
    """
    tallies = {name: {REORDERED: Tally(), RENAMED: Tally()} for name in namers}
    found = outside = several = 0
    for texts in chosen(functions, count, rewriter, workers):
        found += 1
        outside += texts.outside
        several += texts.number > len(texts.reordered)
        for (name, namer), (graphs, numbers) in zip(namers.items(), texts.graphs, strict=True):
            names = namer.answers(graphs)
            own, reordered = numbers[0], numbers[1 : len(texts.reordered)]
            tallies[name][REORDERED].add(own, reordered, names)
            tallies[name][RENAMED].add(own, numbers[len(texts.reordered) :], names)
    if not found:
        raise ValueError("no function of the test split has several orders: give a larger corpus")
    return {
        "functions": found,
        "functions_with_more_orders": several,
        "outside_the_law": outside,
        "models": {name: {kind: tally.to_dict() for kind, tally in kinds.items()} for name, kinds in tallies.items()},
    }


def f1_score_names(namers: Mapping[str, Namer], most: int | None = None) -> dict[str, Any]:
    """The names of all texts of the paper's example, by model.

    Args:
        namers: The models by name.
        most: Number of texts; None for all 8,192.
    """
    _, texts = orders(F1_SCORE, most, 0)
    found: dict[str, Any] = {"texts": len(texts)}
    for name, namer in namers.items():
        reading = Reading.of(namer)
        graphs, numbers = _different(reading.graph(text, "f1_score", False) for text in texts)
        answers = namer.answers(graphs)
        names = Counter("_".join(answers[number]) for number in numbers)
        own = "_".join(answers[numbers[0]])
        found[name] = {
            "graphs": len(graphs),
            "names": len(names),
            "own_name": own,
            "changed": sum(count for text, count in names.items() if text != own),
            "most_frequent": heapq.nlargest(5, names.items(), key=lambda item: (item[1], item[0])),
        }
    return found


KINDS = (
    (REORDERED, "statements reordered", style.BLUE),
    (RENAMED, "variables renamed", style.ORANGE),
)
"""Kinds of rewrites, as the figure calls and draws them."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(NAME)
def main(
    data: Annotated[Path, typer.Option(help="Folder of the corpus.")],
    rows: Annotated[str, typer.Option(help="Rows of the table, separated by commas.")] = ",".join(ROWS),
    seed: Annotated[int, typer.Option(help="Seed of the runs, and of the rewrites.")] = 0,
    runs: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path("runs/code"),
    out: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
    functions: Annotated[int, typer.Option(help="Number of test functions.")] = 500,
    orders: Annotated[int, typer.Option(help="Number of orders per function, besides its own.")] = 64,
    renamed: Annotated[int, typer.Option(help="Number of texts with other names of variables per function.")] = 8,
    f1_score: Annotated[int, typer.Option(help="Number of texts of the paper's f1_score, of 8,192.")] = 8192,
    device: Annotated[str, typer.Option(help="Where the models run: cpu or cuda.")] = "cpu",
) -> None:
    """Measure how often predicted names change if functions are rewritten."""
    if min(functions, orders, renamed, f1_score) < 1:
        raise ValueError("functions, orders, renamed and f1-score must be positive integers")
    record = Record(NAME, seed)
    names = [name.strip() for name in rows.split(",")]
    namers = {name: Namer.load(runs / f"{name}-seed{seed}", device) for name in names}
    rewriter = Rewriter(tuple(map(Reading.of, namers.values())), orders, renamed, seed)
    result = measure(namers, split_functions(data), functions, rewriter, available_cores())
    result = {"orders": orders, "renamed": renamed, **result, "f1_score": f1_score_names(namers, f1_score - 1)}
    path = record.write(out, result)
    with replacing(out / f"{NAME}.md") as part:
        part.write_text(markdown(result), encoding="utf-8")
    _picture(result, out)
    console = Console(soft_wrap=True)
    console.print(_printed(result))
    console.print(f"figure: {out / NAME}.png and .svg, numbers: {path}, table: {path.with_suffix('.md')}")


def markdown(result: Mapping[str, Any]) -> str:
    """The table in Markdown.

    Args:
        result: The numbers that were measured.
    """
    lines = [
        f"| model | names changed, {result['functions']} functions in up to {result['orders']} other orders "
        "| functions concerned | names changed by other names of variables | functions concerned "
        f"| names of the {result['f1_score']['texts']:,} texts of `f1_score` |",
        "|---" * 6 + "|",
    ]
    lines += [f"| {' | '.join(cells)} |" for cells in _cells(result)]
    return "\n".join(lines) + "\n"


def _cells(result: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, kinds in result["models"].items():
        shares = [
            f"{100 * kinds[kind][share]:.1f} %" if kinds[kind]["changed"] else "0"
            for kind in (REORDERED, RENAMED)
            for share in ("share", "share_of_functions")
        ]
        yield f"`{name}`", *shares, str(result["f1_score"][name]["names"])


def _printed(result: Mapping[str, Any]) -> Table:
    table = Table(title=f"Names of {result['functions']} functions that change when the text is rewritten")
    for heading in ("row", "orders", "functions", "variables renamed", "functions", "names of f1_score"):
        table.add_column(heading, justify="left" if heading == "row" else "right")
    for cells in _cells(result):
        table.add_row(cells[0].strip("`"), *cells[1:])
    return table


def _picture(result: Mapping[str, Any], folder: Path) -> None:
    """One bar per model and kind of rewrite."""
    models: Mapping[str, Any] = result["models"]
    with style.picture(folder, NAME, 1.0 + 0.5 * len(models), style.COLUMN) as picture:
        axes = picture.add_subplot()
        for turn, (kind, label, colour) in enumerate(KINDS):
            shares = [100 * found[kind]["share"] for found in models.values()]
            bars = axes.barh(
                [place + 0.4 * turn for place in range(len(models))], shares, 0.38, label=label, color=colour
            )
            axes.bar_label(bars, [f"{share:.1f}" if share else "0" for share in shares], padding=2)
        axes.set_yticks([place + 0.2 for place in range(len(models))], list(models))
        axes.invert_yaxis()
        axes.set_xlim(0, 112)
        axes.set_xlabel("rewrites after which the name is another one, %")
        picture.legend(loc="outside lower center", ncols=len(KINDS))
