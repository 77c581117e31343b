"""The model of sorting networks that comes with the explorer: made from a run, measured, and described in a card.

    magnetite train sorting --preset inputs --out RUN
    python -m paper ship-sorting RUN

writes `src/magnetite/explorer/sorting-model/` with the model and its card, and `sorting-model.json` to the folder of
results.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from magnetite.explorer.judge import ASKED, SHIPPED, probabilities
from magnetite.io.record import Record
from magnetite.io.storage import replacing_folder, write_json
from magnetite.linalg.counter import derive
from magnetite.nn import GraphModel, checkpoint
from magnetite.sorting import (
    SortingNetworks,
    batcher,
    beginnings,
    bitonic,
    damaged,
    known_networks,
    matched_pairs,
    optimal,
)
from magnetite.sorting.matched import KINDS
from magnetite.training.checkpoints import FOLDER, Checkpoints
from magnetite.training.runs import RESULT
from paper.shipping import CARD, TEXT, config_of, finished, of_run, so_far, with_provenance

LIMIT = 4 * 2**20
"""Bytes of the whole folder."""

LONGER = 2
"""Networks with up to this many wires more than those of training are measured, too."""

PAIRS = 20
"""Number of correct and of incorrect networks of each kind and length that are generated to measure with."""

VARIANTS = 1
"""Number of wirings of each smallest network known."""

SEED = 1_000_003
"""Seed of the networks to measure with; training has others."""

WORDS = {
    "random": "random, as in the paper",
    "compact": "without superfluous comparators",
    "merging": "beginning like a merge sort",
    "unfinished": "unfinished: the beginning of another one",
    "smallest": "smallest known, and with one comparator changed",
    "classic": "Batcher's and bitonic, and with one comparator changed",
}
"""What each kind of network is."""

Pair = tuple[SortingNetworks, SortingNetworks]

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
)


@app.command(epilog="Example: python -m paper ship-sorting runs/sorting-none-inputs-seed0")
def ship_sorting(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run of the task sorting.")],
    out: Annotated[Path, typer.Option(help="Folder of the model; it is replaced as a whole.")] = SHIPPED,
    results: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
    pairs: Annotated[int, typer.Option(min=1, help="Number of pairs of each kind and length to measure with.")] = PAIRS,
) -> None:
    """Make the model of the explorer's view Sorting from a run: copy it, measure it, and write its card."""
    card = ship(run, out, results, pairs)
    typer.echo(text_of(card))


def ship(run: Path, out: Path = SHIPPED, results: Path = Path("results"), pairs: int = PAIRS) -> dict[str, Any]:
    """Write the folder of the model and `sorting-model.json`, and return the card.

    Args:
        run: Folder of a finished run of the task sorting.
        out: Folder of the model.
        results: Folder of results.
        pairs: Number of pairs of each kind and length to measure with.
    """
    config = config_of(run, "sorting")
    task, record = config["task"], Record("sorting-model", config["run"]["seed"])
    model = checkpoint.load(Checkpoints(run / FOLDER).models()[0]).eval()  # the best in validation
    complete = (run / RESULT).is_file()
    result = finished(run, "sorting")[1] if complete else so_far(run, record, config, model.parameter_count)
    with replacing_folder(out) as part:
        checkpoint.save(model, part)
        size = sum(path.stat().st_size for path in part.iterdir())
        if size > LIMIT:
            raise ValueError(
                f"the model has {size / 2**20:.1f} MiB, more than {LIMIT / 2**20:.0f}: train a smaller one"
            )
        shipped = checkpoint.load(part).eval()
        lengths = range(task["shortest"], task["train_longest"] + LONGER + 1)
        found = {
            "run": {**of_run(run, config, result), "complete": complete},
            "data": {
                "lengths": [task["shortest"], task["train_longest"]],
                **{name: task[name] for name in ("compact", "merging", "unfinished")},
            },
            "bytes": size,
            "pairs": pairs,
            "metrics": [row for length in lengths for row in measured(shipped, length, pairs)],
        }
        card = with_provenance(record, found)
        write_json(part / CARD, card)
        (part / TEXT).write_text(text_of(card), encoding="utf-8")
    record.write(results, {"card": found})
    return card


def measured(model: GraphModel, length: int, pairs: int) -> list[dict[str, Any]]:
    """The shares of correct networks called correct and of incorrect ones called incorrect, by kind.

    Args:
        model: The model.
        length: Number of wires.
        pairs: Number of pairs of each kind that are generated.
    """
    rows = []
    for kind, (correct, wrong) in kinds_of(length, pairs).items():
        right = [_share(probabilities(model, correct) >= 0.5), _share(probabilities(model, wrong) < 0.5)]
        known = [share for share in right if share is not None]
        rows.append(
            {
                "length": length,
                "kind": kind,
                "networks": len(correct) + len(wrong),
                "correct": right[0],
                "incorrect": right[1],
                "accuracy": round(sum(known) / len(known), 4),
            }
        )
    return rows


def kinds_of(length: int, pairs: int, seed: int = SEED) -> dict[str, Pair]:
    """Correct and incorrect networks of each kind, as the card counts them.

    Args:
        length: Number of wires.
        pairs: Number of pairs of each kind that are generated.
        seed: Seed of the networks.
    """
    seed = derive(seed, length)
    found = {kind: matched_pairs(pairs, [length], {kind: 1.0}, seed, chunk=pairs)[:2] for kind in KINDS}
    wrong = SortingNetworks.concat([pair[1] for pair in found.values()])
    cut = beginnings(wrong, seed)[:: len(found)]
    smallest = known_networks([length], VARIANTS, SEED)
    classic = [make(length) for make in (batcher, bitonic) if len(make(length)) > len(optimal(length))]
    found |= {"unfinished": (cut[:0], cut), "smallest": _with_damage(smallest)}
    return found | ({"classic": _with_damage(SortingNetworks.from_networks(classic))} if classic else {})


def _with_damage(networks: SortingNetworks) -> Pair:
    return networks, damaged(networks, SEED)


def _share(answers: torch.Tensor) -> float | None:
    return round(float(answers.double().mean()), 4) if len(answers) else None


def text_of(card: Mapping[str, Any]) -> str:
    """The card for readers, in Markdown.

    Args:
        card: Content of `card.json`.
    """
    run, data = card["run"], card["data"]
    low, high = data["lengths"]
    lines = [
        "# Does this network sort?",
        "",
        "A recurrent network along the edges of directed graphs. It reads the graph of a sorting network's comparators "
        "with one input of zeros and ones, and says whether that comes out sorted. A network is said to sort if "
        f"{ASKED} inputs do, which are all inputs of up to {ASKED.bit_length() - 1} wires, and random ones of longer "
        "networks. It is the model of the view Sorting of `magnetite explore`. It is a general model of directed "
        "graphs: it was not told what a comparator does, only which inputs come out sorted.",
        "",
        f"Written by `python -m paper ship-sorting` from the run `{run['name']}` (`magnetite train sorting --preset "
        f"inputs`, seed {run['seed']}, commit {run['commit'][:12]}, {run['parameters']:,} parameters, "
        f"{run['graphs_seen']:,} networks seen in {run['seconds_of_training'] / 60:,.0f} minutes on {run['device']}, "
        "a machine shared with other work"
        + ("" if run["complete"] else f"; it was stopped there, before the {_planned(run):,} that were planned")
        + ").",
        "",
        "## Data",
        "",
        f"Generated networks of {low} to {high} wires, in pairs of a correct and an incorrect one of the same length, "
        f"size and depth: {_kinds(data)}. There are few different networks of 3 and 4 wires, so most of those were "
        "seen in training.",
        "",
        "## Accuracy",
        "",
        f"New networks, {card['pairs']:,} correct and as many incorrect ones of each generated kind and length. In "
        "each cell: the share of correct networks called correct / the share of incorrect networks called incorrect. "
        "Guessing has a mean of 50.",
        "",
        accuracy_table(card["metrics"]),
        "",
        f"Networks of more than {high} wires are longer than all networks of the training.",
        "",
    ]
    return "\n".join(lines)


def accuracy_table(metrics: Sequence[Mapping[str, Any]]) -> str:
    """The shares of correct and of incorrect networks that the model is right about, by kind and length, in Markdown.

    Args:
        metrics: The rows of a card.
    """
    lengths = sorted({row["length"] for row in metrics})
    head = ["networks, %", *(f"{length} wires" for length in lengths)]
    rows = [[words, *(_cell(metrics, kind, length) for length in lengths)] for kind, words in WORDS.items()]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def _cell(metrics: Iterable[Mapping[str, Any]], kind: str, length: int) -> str:
    row = next((row for row in metrics if (row["kind"], row["length"]) == (kind, length)), None)
    if row is None:
        return "–"
    return " / ".join("–" if row[side] is None else f"{100 * row[side]:.0f}" for side in ("correct", "incorrect"))


def _planned(run: Mapping[str, Any]) -> int:
    """Number of networks that a whole run sees."""
    config = run["config"]
    return round(2 * config["task"]["train"] * config["optim"]["epochs"] * config["optim"]["budget"])


def _kinds(data: Mapping[str, Any]) -> str:
    """What the training networks were."""
    parts = [
        f"{_percent(data[name])} {words}"
        for name, words in (
            ("compact", "without superfluous comparators"),
            ("merging", "that begin like a merge sort"),
        )
        if data[name]
    ]
    cut = f"; {_percent(data['unfinished'])} of the incorrect ones are cut at random" if data["unfinished"] else ""
    return f"{', '.join(parts)}, the others random as in the paper{cut}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
