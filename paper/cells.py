"""Training runs of figures: each cell is a configuration that is trained once; its result is one JSON file."""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from magnetite.io.record import Record, read_record
from magnetite.io.storage import PREFIX, InUse, locked, remove_leftovers, write_json
from magnetite.training import runs
from magnetite.training.config import Config, changed, configuration
from paper.store import Result, Store, lost

WHOLE, SIX_MILLION, FOUR_MILLION, TWO_MILLION, HALF_MILLION = 1.0, 1 / 2, 1 / 3, 1 / 6, 1 / 24
"""Fractions of the paper's 12 million training graphs."""

Changes = Mapping[str, Mapping[str, Any]]
"""Options by table that differ from the preset."""


@dataclass(frozen=True)
class Request:
    """Options of the command line.

    Args:
        out: Folder of results and figures.
        seed: Seed of everything random.
        budget: Fraction of each training run to do.
        only: Name of the only cell to train, or a part of the names of several.
        runs: Folder of training runs in progress.
        device: auto, cpu or cuda.
        train: Whether to train missing cells.
    """

    out: Path = Path("results")
    seed: int = 0
    budget: float = 1.0
    only: str = ""
    runs: Path = Path("runs")
    device: str = "auto"
    train: bool = True

    def __post_init__(self) -> None:
        if self.out.exists() and not self.out.is_dir():
            raise ValueError(f"--out must be a folder, got the file {self.out}")
        if not self.train:
            self.require_results()

    def require_results(self) -> None:
        """Raise if the folder of results does not exist."""
        if not self.out.is_dir():
            raise ValueError(
                f"no results in {self.out}: the folder does not exist; pass the folder of results as --out"
            )

    def record(self, name: str) -> Record:
        """Begin the record of a figure; raise an error if it would replace one of a longer run or another seed."""
        path = self.out / f"{name}.json"
        if path.exists():
            kept = read_record(path)
            budget, seed = kept["result"].get("budget", 1.0), kept.get("seed")
            if budget > self.budget or seed != self.seed:
                raise ValueError(f"{path} has budget {budget:g} and seed {seed}: pass another folder as --out")
        return Record(name, self.seed)

    def write(self, record: Record, result: Mapping[str, Any]) -> Path:
        """Write the result of a figure; raise an error if the present one has values that this one lacks.

        A file with the same result stays as it is, with the provenance of when it was obtained.
        """
        path = self.out / f"{record.name}.json"
        kept = read_record(path)["result"] if path.exists() else None
        if kept == json.loads(json.dumps(result)):
            return path
        gone = lost(kept, result) if kept is not None else None
        if gone is not None:
            raise ValueError(
                f"{path} has {gone}, which is missing in the new figure: train the cell first, or pass another folder "
                "as --out"
            )
        return record.write(self.out, result)

    @cached_property
    def store(self) -> Store:
        """The results in the folder."""
        return Store(self.out)


@dataclass(frozen=True)
class Cell:
    """One training.

    Args:
        name: Name of the result; unique among all figures.
        task: Name of the task.
        encoding: Name of the encoding.
        changes: Options that differ from the preset.
        preset: Name of the preset.
        share: Fraction of the preset's training.
    """

    name: str
    task: str
    encoding: str
    changes: Changes
    preset: str = "paper"
    share: float = WHOLE

    def config(self, request: Request) -> Config:
        """The configuration, with the budget and the seed of the request."""
        changes = {table: dict(options) for table, options in self.changes.items()}
        changes["optim"] = {**changes.get("optim", {}), "budget": self.share * request.budget}
        changes["run"] = {"seed": request.seed, **changes.get("run", {})}
        return configuration(self.task, self.encoding, self.preset, changes)

    def path(self, request: Request) -> Path:
        """File of the result."""
        return request.out / "cells" / f"{self.name}-{self.config(request).hash}.json"

    def result(self, request: Request) -> Result | None:
        """The result, if the configuration has been trained."""
        return request.store.find(self.name, self.config(request).hash)


def train_missing(cells: Sequence[Cell], request: Request) -> dict[str, Result]:
    """Train the cells that have no result yet, and return the results of all cells by name.

    An interrupted run is resumed. Several processes can share the work: each takes the next cell that no other
    process is training.
    """
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    chosen = [cell for cell in cells if cell.name == request.only] or [c for c in cells if request.only in c.name]
    if not chosen:
        names = ", ".join(cell.name for cell in cells)
        raise ValueError(f"--only {request.only!r} matches no cell: use a part of one of {names}")
    remove_leftovers(request.out / "cells")
    for number, cell in enumerate(chosen if request.train else (), start=1):
        if cell.result(request) is not None:
            continue
        line = f"{number}/{len(chosen)} {cell.name}, budget {request.budget * cell.share:g}"
        try:
            with lock(cell, request):
                request.store.refresh()  # another process may just have finished it
                if cell.result(request) is None:
                    console.print(line)
                    _train(cell, request)
                    request.store.refresh()
        except InUse:
            console.print(f"{line}: in progress in another process")
    return {cell.name: result for cell in cells if (result := cell.result(request)) is not None}


def lock(cell: Cell, request: Request) -> AbstractContextManager[None]:
    """A lock next to the result; it is released when its process dies, and no process waits for it."""
    path = cell.path(request)
    return locked(path.with_name(f"{PREFIX}{path.stem}.lock"), cell.name)


def _train(cell: Cell, request: Request) -> None:
    accelerator = runs.accelerator_named(request.device)
    config = changed(cell.config(request), [f"run.compile={runs.compile_mode(accelerator)}"])
    folder = request.runs / f"{cell.name}-{config.hash}"
    resume = (folder / runs.CONFIG).exists()
    content = runs.train(config, folder, runs.Machine(accelerator), resume)
    write_json(cell.path(request), {**content, "name": cell.name})
    torch.compiler.reset()  # compiled graphs of this cell's shapes are of no use to the next one
    if accelerator == "cuda":
        torch.cuda.empty_cache()
