"""Figures that need trainings: a list of cells, each a configuration, trained once and kept as one JSON file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from rich.console import Console

from magnetite.io.record import ADVICE, Record, read_record
from magnetite.io.storage import DamagedFile, write_json
from magnetite.training import session
from magnetite.training.config import Config
from magnetite.training.presets import changed, configuration

WHOLE, SIX_MILLION, FOUR_MILLION, TWO_MILLION, HALF_MILLION = 1.0, 1 / 2, 1 / 3, 1 / 6, 1 / 24
"""The shares of the paper's 12 million training graphs that its side studies get here."""

Changes = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Request:
    """What was asked for: where results go, how much is trained, which cells, on what."""

    out: Path = Path("results")
    seed: int = 0
    budget: float = 1.0
    only: str = ""
    runs: Path = Path("runs")
    device: str = "auto"
    train: bool = True

    def __post_init__(self) -> None:
        if self.out.exists() and not self.out.is_dir():
            raise ValueError(f"--out {self.out} is a file: give a folder")

    def record(self, name: str) -> Record:
        """The record of a figure; one of a longer training, or of another seed, is not written over."""
        path = self.out / f"{name}.json"
        if path.exists():
            kept = read_record(path)
            budget, seed = kept["result"].get("budget", 1.0), kept.get("seed")
            if budget > self.budget or seed != self.seed:
                raise ValueError(f"{path} has budget {budget:g} and seed {seed}: give another folder by --out")
        return Record(name, self.seed)

    def require_results(self) -> None:
        """What trains nothing shows what is there: a folder that is not is an error, and is not made."""
        if not self.out.is_dir():
            raise ValueError(f"there are no results: {self.out} is no folder; give the one that holds them by --out")

    @property
    def cells(self) -> Path:
        """The folder of finished cells."""
        return self.out / "cells"


@dataclass(frozen=True)
class Cell:
    """One training of a figure, by a name that tells it from the others, and the share of the training it needs."""

    name: str
    task: str
    encoding: str
    changes: Changes
    preset: str = "paper"
    share: float = WHOLE

    def config(self, request: Request) -> Config:
        """The configuration, with the budget and seed that were asked for."""
        changes = {table: dict(options) for table, options in self.changes.items()}
        changes["optim"] = {**changes.get("optim", {}), "budget": self.share * request.budget}
        changes["run"] = {"seed": request.seed, **changes.get("run", {})}
        return configuration(self.task, self.encoding, self.preset, changes)

    def path(self, request: Request) -> Path:
        """Where its result is kept."""
        return request.cells / f"{self.name}-{self.config(request).hash}.json"

    def kept(self, request: Request) -> dict[str, Any] | None:
        """The result of the same configuration, if there is one.

        Its file says what was trained, not its name: another figure may have trained it, under another name, and an
        option that was added since has its default.
        """
        wanted = self.config(request).hash
        found = _read(request.cells.glob(f"*-{wanted}.json")) + _results(request.cells, self.name)
        return next((content for content in found if _hash(content) == wanted), None)


def train_missing(cells: Sequence[Cell], request: Request) -> dict[str, dict[str, Any]]:
    """Train the cells whose name is, or else holds, `only` and has no result yet; all results by name of the cell.

    A training that was stopped goes on where it stood. Several processes that are asked for the same share the work:
    each takes the next cell that no other is training.
    """
    if not request.train:
        request.require_results()
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    exactly = [cell for cell in cells if cell.name == request.only]
    chosen = exactly or [cell for cell in cells if request.only in cell.name]
    if not chosen:
        raise ValueError(f"--only {request.only!r} fits no cell: choose a part of {', '.join(c.name for c in cells)}")
    for number, cell in enumerate(chosen, start=1):
        if cell.kept(request) is not None or not request.train:
            continue
        share = f"{number}/{len(chosen)} {cell.name}, {request.budget * cell.share:g} of the training"
        lock = _lock(cell, request)
        try:
            lock.acquire()
        except Timeout:
            console.print(f"{share}: another process is at it")
            continue
        try:
            if cell.kept(request) is None:  # another process may just have finished it
                console.print(share)
                _train(cell, request)
        finally:
            lock.release()
    return {cell.name: content for cell in cells if (content := cell.kept(request)) is not None}


def longest_trained(folder: Path, name: str) -> dict[str, Any] | None:
    """Of all results that are kept for a cell, whatever their budget, the one that saw the most graphs.

    Of several that saw as many, the one with the lowest seed.
    """
    found = _results(folder, name)
    return max(found, key=lambda content: (content["result"]["graphs_seen"], -content.get("seed", 0)), default=None)


def figures_of(content: Mapping[str, Any]) -> dict[str, float]:
    """All figures of validation and test in one table; those by group belong to the split that has the group."""
    figures = content["result"]["figures"]
    return {**{name: value for name, value in figures["valid"].items() if "/" in name}, **figures["test"]}


def figure(results: Mapping[str, Mapping[str, Any]], cell: str, name: str) -> float | None:
    """A figure of a cell, None where it was not trained."""
    return figures_of(results[cell]).get(name) if cell in results else None


def caption(results: Mapping[str, Mapping[str, Any]]) -> str:
    """How much was trained, for title and output."""
    seen = sorted({content["result"]["graphs_seen"] for content in results.values()})
    budgets = sorted({content["result"]["config"]["optim"]["budget"] for content in results.values()})
    if not seen:
        return "nothing trained yet"
    span = f"{seen[0]:,}" if len(seen) == 1 else f"{seen[0]:,} to {seen[-1]:,}"
    shares = ", ".join(f"{budget:g}" for budget in budgets)
    return f"{span} graphs seen (budget {shares} of the preset's training)"


def provenance(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What of each result says how it came about."""
    kept = ("commit", "device", "date", "seconds", "seed")
    details = ("hash", "graphs_seen", "best_step", "seconds_of_training", "graphs_per_second", "parameters")
    return {
        name: {key: content[key] for key in kept} | {key: content["result"][key] for key in details}
        for name, content in results.items()
    }


def write(record: Record, request: Request, result: Mapping[str, Any]) -> None:
    """Write the JSON of a figure, and say where it and the picture are."""
    path = record.write(request.out, {"budget": request.budget, **result})
    Console(soft_wrap=True).print(f"figure: {request.out / record.name}.png and .svg, figures: {path}")


def _lock(cell: Cell, request: Request) -> FileLock:
    """A lock beside the result, that one process can have, and loses when it dies; others do not wait for it."""
    request.cells.mkdir(parents=True, exist_ok=True)
    return FileLock(request.cells / f".{cell.path(request).stem}.lock", timeout=0)


def _train(cell: Cell, request: Request) -> None:
    accelerator = session.accelerator_named(request.device)
    config = changed(cell.config(request), [f"run.compile={session.compile_mode(accelerator)}"])
    folder = request.runs / f"{cell.name}-{config.hash}"
    resume = (folder / session.CONFIG).exists()
    content = session.train(config, folder, session.Machine(accelerator), resume)
    write_json(cell.path(request), {**content, "name": cell.name})
    torch.compiler.reset()  # graphs of this cell's shapes are of no use to the next
    if accelerator == "cuda":
        torch.cuda.empty_cache()


def _results(folder: Path, name: str) -> list[dict[str, Any]]:
    return _read(folder.glob(f"{name}-????????????.json"))


def _read(paths: Iterable[Path]) -> list[dict[str, Any]]:
    return [_read_cell(path) for path in sorted(paths)]


def _read_cell(path: Path) -> dict[str, Any]:
    content = read_record(path)
    lacking = {"config", "figures", "graphs_seen"} - content["result"].keys()
    if lacking:
        raise DamagedFile(f"{path} is no result of a training (it has no {', '.join(sorted(lacking))}): {ADVICE}")
    return content


def _hash(content: Mapping[str, Any]) -> str | None:
    try:
        return Config.from_dict(content["result"]["config"]).hash
    except ValueError:  # an option that was there then is gone
        return None
