"""The model that comes with magnetite: made from a run of the task naming, measured, and described in a card.

    python -m paper ship-namer RUN

writes `src/magnetite/code/namer/` with the model in at most 16 MiB, its vocabularies and its card, and `namer.json` to
the folder of results. Every number of the card is measured here or read from the run and its corpus.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from magnetite.code import corpus
from magnetite.code.corpus.stored import DESCRIPTION, Corpus, CorpusFunction
from magnetite.code.functions import Functions
from magnetite.code.graph import CodeGraph
from magnetite.code.names import SHIPPED, named
from magnetite.io.record import Record
from magnetite.io.storage import replacing_folder, write_json
from magnetite.nn.module import describe, rebuild
from magnetite.tasks.namer import Namer
from magnetite.tasks.words import WordScores
from magnetite.training.runs import accelerator_named
from paper.shipping import CARD, TEXT, finished, of_run, with_provenance
from paper.train_code import read_rows

LIMIT = 16 * 2**20
"""Bytes of the whole folder."""

CARD_ROOM = 2**15
"""Bytes that are left for the two files of the card."""

TRIMMED = 0.02
"""Share of the texts of attributes that is left out at a time if a model does not fit."""

MEASURED = 2000
"""Number of functions of a split with which the shipped model is measured: those with the first hashes."""

EXAMPLES, TOP = 10, 5
"""Number of functions that the documentation shows, and of proposals for each."""

UNLIKELY_SHARE = 0.05
"""Share of the functions of the validation split whose present names count as unlikely."""

BINS = 10

BASELINES = {"nearest": "nearest neighbours by TF-IDF", "frequent": "most frequent words, and names"}
"""Baselines that the card shows, and what it calls them."""

SHOWN = ("f1", "f1_dropped")
"""Metrics of the run that the card shows."""

Judged = tuple[list[tuple[list[str], float]], float | None]
"""Proposals of a model, and the likelihood of the present name."""

Outcome = tuple[float, bool, float]
"""Probability of a first proposal, whether it is the name, and F1 of its words."""

LIMITS = (
    "It knows {words:,} words. A name with another word is never proposed as a whole.",
    "It proposes at most {length} words per name.",
    "Functions whose graphs have more than {max_nodes:,} nodes have no proposals.",
    "It was trained on functions with a body of at least {least} lines, without dunder methods, tests, overloads and "
    "stubs: for these, proposals mean little.",
    "It sees one function at a time: {unseen}.",
    "Apart from repetitions, words are chosen independently for each position, so a proposal may combine words of two "
    "good names.",
    "A low likelihood does not prove a name wrong: it can be good for reasons that the body does not show.",
    "Names and words are those of English-speaking open-source projects.",
)

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
)


@app.command(epilog="Example: python -m paper ship-namer runs/naming-dataflow-magnetic-best-seed0")
def ship_namer(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run of the task naming.")],
    data: Annotated[
        Path | None, typer.Option(help="The corpus of the run, if it is no longer where the run found it.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the model; it is replaced as a whole.")] = SHIPPED,
    results: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
    functions: Annotated[int, typer.Option(min=1, help="Number of functions to measure with.")] = MEASURED,
    baselines: Annotated[
        Path | None, typer.Option(help="Folder of results of `baselines-code` on the same corpus, for the card.")
    ] = None,
    about: Annotated[str, typer.Option(help="What the corpus was made from, for the card.")] = "",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Make the model that comes with magnetite from a run: compress it, measure it, and write its card."""
    card = ship(run, out, results, data, functions, accelerator_named(device), baselines=baselines, about=about)
    size = card["files"]["bytes"] / 2**20
    shipped = card["metrics"]["shipped"]
    typer.echo(
        f"{out}: {size:.1f} MiB as {card['files']['precision']}; first proposal: F1 {shipped['f1']:.4f}, "
        f"exact {shipped['exact']:.4f}; {TOP} proposals: exact {shipped['exact_of_five']:.4f}; the same first proposal "
        f"as the run: {card['metrics']['same_first_proposal']:.4f}"
    )


def ship(
    run: Path,
    out: Path = SHIPPED,
    results: Path = Path("results"),
    data: Path | None = None,
    count: int = MEASURED,
    device: str = "cpu",
    limit: int = LIMIT,
    baselines: Path | None = None,
    about: str = "",
) -> dict[str, Any]:
    """Write the folder of the model and `namer.json`, and return the card.

    Args:
        run: Folder of a finished run of the task naming.
        out: Folder of the model.
        results: Folder of results.
        data: The corpus of the run, if it has moved.
        count: Number of functions to measure with.
        device: Where to compute.
        limit: Largest number of bytes of the folder.
        baselines: Folder of results of the baselines on the same corpus.
        about: What the corpus was made from.
    """
    config, result = finished(run, "naming")
    source = _corpus(config["task"], data)
    trained = Namer.load(run, device)
    rivals = {} if baselines is None else _baselines(baselines, config["task"]["fingerprint"])
    record = Record("namer", result["seed"])
    test, valid = (by_hash(source, split, count) for split in ("test", "valid"))
    with replacing_folder(out) as part:
        kept, precision = _fitted(trained, part, limit - CARD_ROOM)
        shipped = Namer.load(part, device)
        graphs = read(trained, test)
        before, after = judged(trained, test, graphs), judged(shipped, test, graphs)
        found = {
            "run": of_run(run, config, result),
            "data": _of_data(source) | {"about": about},
            "files": {
                "precision": precision,
                "graphs": kept.vocabularies.graphs,
                "words": len(kept.vocabularies.words),
                "attributes": len(kept.vocabularies.attributes),
                "subwords": len(kept.vocabularies.subwords),
                "attributes_of_the_run": len(trained.vocabularies.attributes),
                "subwords_of_the_run": len(trained.vocabularies.subwords),
                "bytes": sum(path.stat().st_size for path in part.iterdir()),
            },
            "metrics": {
                "functions": len(test),
                "test_of_run": {
                    name: value for name, value in result["result"]["figures"]["test"].items() if "/" not in name
                },
                "uncompressed": scores(test, before),
                "shipped": scores(test, after),
                "same_first_proposal": _mean(
                    _first_words(a) == _first_words(b) for a, b in zip(before, after, strict=True)
                ),
                "baselines": rivals,
            },
            "calibration": reliability(outcomes(test, after)),
            "unlikely": _quantile(
                [each for _, each in judged(shipped, valid, read(shipped, valid)) if each is not None], UNLIKELY_SHARE
            ),
            "unlikely_share": UNLIKELY_SHARE,
            "limits": _limits(kept, source),
        }
        card = with_provenance(record, found)
        write_json(part / CARD, card)
        (part / TEXT).write_text(text_of(card), encoding="utf-8")
    examples = [
        {
            "project": function.project,
            "path": function.path,
            "line": function.line,
            "name": function.name,
            "proposals": named(proposals),
            "likelihood": likelihood,
        }
        for function, (proposals, likelihood) in list(zip(test, after, strict=True))[:EXAMPLES]
    ]
    record.write(results, {"card": found, "examples": examples})
    return card


def by_hash(source: Corpus, split: str, count: int) -> list[CorpusFunction]:
    """Functions of a split in the order of their hashes: a fixed choice that nobody made.

    Args:
        source: The corpus.
        split: train, valid or test.
        count: Number of functions.
    """
    return heapq.nsmallest(count, source.functions(split), key=lambda each: (each.dataflow, each.project, each.line))


def read(namer: Namer, functions: Sequence[CorpusFunction]) -> list[CodeGraph]:
    """The graphs of functions as a model reads them.

    Args:
        namer: The model.
        functions: The functions.
    """
    reads = namer.vocabularies
    return [each.build(reads.graphs, "strict", reads.keep_docstrings) for each in functions]  # type: ignore[arg-type]


def judged(namer: Namer, functions: Sequence[CorpusFunction], graphs: Sequence[CodeGraph]) -> list[Judged]:
    """What a model says about functions: its proposals, and the likelihood of their present names.

    Args:
        namer: The model.
        functions: The functions.
        graphs: Their graphs.
    """
    return namer.judge(graphs, [each.words for each in functions], TOP)


def scores(functions: Sequence[CorpusFunction], answers: Sequence[Judged]) -> dict[str, float]:
    """How often the first proposal, and one of the five, is the name; F1 of the words of the first.

    Args:
        functions: The functions.
        answers: What a model says about them.
    """
    counted = WordScores()
    counted.update([_first_words(answer) for answer in answers], [each.words for each in functions])
    pairs = list(zip(functions, answers, strict=True))
    return {
        "f1": counted.compute()["f1"],
        "exact": _mean(each.words == _first_words(answer) for each, answer in pairs),
        "exact_of_five": _mean(each.words in [words for words, _ in answer[0]] for each, answer in pairs),
        "answered": _mean(bool(answer[0]) for answer in answers),
    }


def outcomes(functions: Sequence[CorpusFunction], answers: Sequence[Judged]) -> list[Outcome]:
    """For each function with an answer: probability of the first proposal, whether it is the name, and its F1.

    Args:
        functions: The functions.
        answers: What a model says about them.
    """
    found = []
    for each, (proposals, _) in zip(functions, answers, strict=True):
        if proposals:
            words, probability = proposals[0]
            counted = WordScores()
            counted.update([words], [each.words])
            found.append((probability, words == each.words, counted.compute()["f1"]))
    return found


def reliability(found: Sequence[Outcome], bins: int = BINS) -> dict[str, Any]:
    """How often the first proposal is right, by its probability; of a calibrated model, as often as it says.

    The error is `Σ_b n_b |p_b − a_b| / n` over bins of equal width, with the mean probability `p_b` and the share `a_b`
    of exact names among the `n_b` functions of a bin.

    Args:
        found: Probability, whether it is right, and F1 of each first proposal.
        bins: Number of bins.

    >>> reliability([(0.9, True, 1.0), (0.95, True, 1.0), (0.1, False, 0.5)], bins=2)["error"]
    0.083
    """
    rows = []
    for number in range(bins):
        inside = [each for each in found if min(int(each[0] * bins), bins - 1) == number]
        if inside:
            probability, exact, f1 = (_mean(column) for column in zip(*inside, strict=True))
            rows.append(
                {
                    "from": number / bins,
                    "to": (number + 1) / bins,
                    "functions": len(inside),
                    "probability": probability,
                    "exact": exact,
                    "f1": f1,
                }
            )
    error = sum(row["functions"] * abs(row["probability"] - row["exact"]) for row in rows) / max(len(found), 1)
    return {"bins": rows, "error": round(error, 3)}


def text_of(card: Mapping[str, Any]) -> str:
    """The card for readers, in Markdown.

    Args:
        card: Content of `card.json`.
    """
    data, files, metrics, run = (card[name] for name in ("data", "files", "metrics", "run"))
    shipped, whole = metrics["shipped"], metrics["uncompressed"]
    splits = ", ".join(
        f"{count['functions']:,} functions of {count['projects']:,} projects to {use}"
        for count, use in zip(data["splits"].values(), ("train", "validate", "test"), strict=True)
    )
    left_out = [
        f"{files[f'{what}_of_the_run'] - files[what]:,} of {files[f'{what}_of_the_run']:,} {what}"
        for what in ("attributes", "subwords")
        if files[what] < files[f"{what}_of_the_run"]
    ]
    bins = [
        f"| {row['from']:.1f}–{row['to']:.1f} | {row['functions']:,} | {row['probability']:.3f} | {row['exact']:.3f} "
        f"| {row['f1']:.3f} |"
        for row in card["calibration"]["bins"]
    ]
    lines = [
        "# Names for Python functions",
        "",
        f"A model that reads the graph of a function (kind {files['graphs']}), in which its name is hidden, and "
        "proposes names. Use it with `magnetite name` or `magnetite.code.suggest_names`.",
        "",
        f"Written by `python -m paper ship-namer` from the run `{run['name']}` (seed {run['seed']}, commit "
        f"{run['commit'][:12]}, {run['parameters']:,} parameters, {run['graphs_seen']:,} functions seen in "
        f"{run['seconds_of_training'] / 60:,.0f} minutes on {run['device']}). `card.json` has the whole configuration.",
        "",
        "## Data",
        "",
        f"A corpus of `magnetite data functions --from {data['origin']}` (fingerprint {data['fingerprint'][:16]}"
        + (f"; {data['about']}" if data["about"] else "")
        + f"), split by project, without duplicates: {splits}.",
        "",
        "| licence | functions to train |",
        "|---|---|",
        *(f"| {licence} | {count:,} |" for licence, count in data["licences"].items()),
        "",
        "Besides numbers, the model has the most frequent words, names and constants of these functions, but no code.",
        "",
        "## Files",
        "",
        f"Parameters are stored as {files['precision']} and computed with in float32. It knows {files['words']:,} "
        f"words of names, {files['attributes']:,} texts of attributes and {files['subwords']:,} words of these"
        + (f"; to fit, the rarest {' and '.join(left_out)} of the run were left out." if left_out else "."),
        "",
        "## Metrics",
        "",
        f"The {metrics['functions']:,} functions of the test split with the first hashes, of projects that the model "
        "has never seen:",
        "",
        "| | as trained | as shipped |",
        "|---|---|---|",
        f"| F1 of the words of the first proposal | {whole['f1']:.4f} | {shipped['f1']:.4f} |",
        f"| first proposal is the name | {whole['exact']:.4f} | {shipped['exact']:.4f} |",
        f"| one of {TOP} proposals is the name | {whole['exact_of_five']:.4f} | {shipped['exact_of_five']:.4f} |",
        f"| functions with a proposal | {whole['answered']:.4f} | {shipped['answered']:.4f} |",
        "",
        f"Both have the same first proposal for {100 * metrics['same_first_proposal']:.1f} % of the functions. In the "
        "run, the answers for the whole test split, one word per position with tuned offsets, had "
        + ", ".join(f"{name} {value:.4f}" for name, value in metrics["test_of_run"].items() if name in SHOWN)
        + ".",
        "",
        *_compared(metrics),
        "## Calibration",
        "",
        "| probability of the first proposal | functions | mean probability | is the name | F1 |",
        "|---|---|---|---|---|",
        *bins,
        "",
        f"Expected calibration error of exact names: {card['calibration']['error']:.3f}.",
        "",
        f"`--only-bad` lists names with a likelihood below {card['unlikely']:.3g}: as low as those of "
        f"{100 * card['unlikely_share']:.0f} % of the functions of the validation split.",
        "",
        "## Limits",
        "",
        *(f"- {limit}" for limit in card["limits"]),
        "",
    ]
    return "\n".join(lines)


def _compared(metrics: Mapping[str, Any]) -> list[str]:
    """Lines of the card about baselines that need no graph, on the whole test split."""
    if not metrics["baselines"]:
        return []
    run = metrics["test_of_run"]
    numbers = sorted({each["functions"] for each in metrics["baselines"].values()})
    rows = {"this model": (run["f1_dropped"], metrics["shipped"]["exact"], metrics["shipped"]["exact_of_five"])}
    for name, found in metrics["baselines"].items():
        rows[BASELINES[name]] = found["f1"], found["exact"], found["exact_of_five"]
    return [
        f"Beside what needs no graph, on the whole test split ({', '.join(f'{each:,}' for each in numbers)} functions; "
        f"whole names of this model on {metrics['functions']:,}):",
        "",
        f"| | F1 of the words of an answer | first proposal is the name | one of {TOP} is |",
        "|---|---|---|---|",
        *(f"| {name} | {f1:.4f} | {one:.4f} | {five:.4f} |" for name, (f1, one, five) in rows.items()),
        "",
    ]


def trimmed(namer: Namer, share: float) -> Namer:
    """The same model without the rarest texts of attributes, which become "unknown", and their vectors.

    Args:
        namer: The model.
        share: Share of the texts, and of the words of which they consist, that is kept.
    """
    known = namer.vocabularies
    fewer = replace(
        known,
        attributes=known.attributes[: round(share * len(known.attributes))],
        subwords=known.subwords[: round(share * len(known.subwords))],
    )
    model = rebuild(_resized(describe(namer.model), fewer.node_sizes["attribute"], len(fewer.subwords) + 2))
    before = namer.model.state_dict()
    # Texts are numbered by frequency after the special ones, so the first rows of a table are those that stay.
    model.load_state_dict(
        {
            name: before[name][: len(tensor)] if tensor.ndim else before[name]
            for name, tensor in model.state_dict().items()
        }
    )
    return Namer(model.to(next(namer.model.parameters()).device), fewer)


def _resized(description: Any, attributes: int, subwords: int) -> Any:
    """The description of a model whose tables of attributes have other sizes."""
    if isinstance(description, list):
        return [_resized(each, attributes, subwords) for each in description]
    if not isinstance(description, dict):
        return description
    found = {name: _resized(value, attributes, subwords) for name, value in description.items()}
    if found.get("class") == "CategoryNodes":
        sizes = dict(found["sizes"]["dict"])
        found["sizes"] = {"dict": [[name, attributes if name == "attribute" else size] for name, size in sizes.items()]}
    if found.get("class") == "SubwordNodes":
        found["size"] = subwords
    return found


def _fitted(namer: Namer, folder: Path, limit: int) -> tuple[Namer, str]:
    """Write a model in the best precision that fits; in int8, the rarest texts of attributes may have to go."""
    steps = [("float16", 1.0)] + [("int8", 1 - TRIMMED * step) for step in range(round(1 / TRIMMED))]
    size = 0
    for precision, share in steps:
        kept = trimmed(namer, share) if share < 1 else namer
        kept.save(folder, precision)
        size = sum(path.stat().st_size for path in folder.iterdir())
        if size <= limit:
            return kept, precision
    raise ValueError(
        f"the model has {size / 2**20:.1f} MiB as int8, almost without texts of attributes, and {limit / 2**20:.1f} "
        "MiB are allowed: train one of a smaller width, or with fewer words"
    )


def _baselines(folder: Path, fingerprint: str) -> dict[str, dict[str, float]]:
    """The scores of the baselines, refused if they are those of another corpus."""
    rows, found = read_rows(folder), {}
    for name in BASELINES:
        result = rows[name, 0]["result"] if (name, 0) in rows else None
        if result is None or result["fingerprint"] != fingerprint:
            raise ValueError(f"{folder} has no results of {name} on this corpus: run `python -m paper baselines-code`")
        functions = sum(int(count) for count, *_ in result["projects"].values())
        found[name] = {"functions": functions} | {key: result[key] for key in ("f1", "exact", "exact_of_five")}
    return found


def _corpus(task: Mapping[str, Any], data: Path | None) -> Corpus:
    folder = Path(task["data"]) if data is None else data
    if not (folder / DESCRIPTION).is_file():
        raise ValueError(f"{folder} is not a corpus of `magnetite data functions`: give that of the run as --data")
    found = Functions(folder).fingerprint
    if found != task["fingerprint"]:
        raise ValueError(f"{folder} is not the corpus of the run (fingerprint {found}, not {task['fingerprint']})")
    return corpus.load(folder)


def _of_data(source: Corpus) -> dict[str, Any]:
    licences: Counter[str] = Counter()
    for batch in source.batches("train", ["licence"]):
        licences.update(batch["licence"].to_pylist())
    return {
        "origin": source.info["origin"]["from"],
        "fingerprint": source.info["fingerprint"],
        "settings": source.info["settings"],
        "splits": source.info["splits"],
        "licences": dict(sorted(licences.items(), key=lambda item: (-item[1], item[0]))),
    }


def _limits(namer: Namer, source: Corpus) -> list[str]:
    known = namer.vocabularies
    numbers = {"words": len(known.words), "length": known.length, "max_nodes": known.max_nodes}
    unseen = "neither its class, nor its callers, nor " + ("" if known.keep_docstrings else "its docstring, nor ")
    least = source.info["settings"]["lines"]
    return [limit.format(**numbers, least=least, unseen=f"{unseen}comments") for limit in LIMITS]


def _first_words(answer: Judged) -> list[str]:
    return answer[0][0][0] if answer[0] else []


def _quantile(values: Iterable[float], share: float) -> float:
    ranked = sorted(values)
    return ranked[int(share * len(ranked))] if ranked else 0.0


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return round(sum(found) / len(found), 6) if found else 0.0
