"""What a training tells: a JSONL file, TensorBoard, and a line with throughput and the time that is left."""

import importlib.util
import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from magnetite.io.storage import replacing

LOG = "log.jsonl"


class RunLog:
    """Writes figures of steps to `log.jsonl` and to TensorBoard, where that is installed.

    A training that goes on from step `s` takes back what was written after it.
    """

    def __init__(self, folder: Path, step: int = 0, enabled: bool = True):
        self.path, self.enabled, self.board = folder / LOG, enabled, None
        if not enabled:
            return
        self._take_back(step)
        if importlib.util.find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    def write(self, kind: str, step: int, figures: Mapping[str, Any]) -> None:
        """Add a line: `train` or `valid`, and what was measured."""
        if not self.enabled:
            return
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, "step": step, **figures}) + "\n")
        if self.board is not None:
            for name, value in figures.items():
                self.board.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Write out what is held back."""
        if self.board is not None:
            self.board.close()

    def _take_back(self, step: int) -> None:
        if not self.path.exists():
            return
        kept = [line for line in self.path.read_text(encoding="utf-8").splitlines() if _step_of(line) <= step]
        with replacing(self.path) as part:
            part.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")


class Display:
    """A progress bar on a terminal; elsewhere a line an evaluation."""

    def __init__(self, total: int, step: int, enabled: bool = True):
        self.console = Console(stderr=True, soft_wrap=True, markup=False, highlight=False, quiet=not enabled)
        columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
        self.bar = Progress(*columns, console=self.console, disable=not (enabled and self.console.is_terminal))
        self.task = self.bar.add_task("…", total=total, completed=step)
        self.total = total

    def advance(self, step: int, loss: float, speed: float) -> None:
        """Show where the training stands."""
        self.bar.update(self.task, completed=step, description=f"loss {loss:.4f} · {speed:,.0f} graphs/s")

    def line(self, text: str) -> None:
        """Print a line above the bar."""
        self.bar.console.print(text)

    def __enter__(self) -> "Display":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


def time_left(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> time_left(3725.4)
    '1:02:05'
    """
    return str(timedelta(seconds=round(seconds)))


def _step_of(line: str) -> int:
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return 2**62  # half a line that a killed run left
