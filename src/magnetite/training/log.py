"""Reports of a training run: a JSONL file, TensorBoard, and a progress bar with throughput and remaining time."""

import importlib.util
import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from magnetite.io.storage import replacing, writing

LOG = "log.jsonl"


class RunLog:
    """Writes metrics to `log.jsonl`, and to TensorBoard if it is installed.

    Args:
        folder: Folder of the run.
        step: Step from which the run continues; lines of later steps are removed.
        enabled: Whether to write anything; only one of several processes does.
    """

    def __init__(self, folder: Path, step: int = 0, enabled: bool = True):
        self.path, self.enabled, self.board = folder / LOG, enabled, None
        if not enabled:
            return
        self._remove_after(step)
        if importlib.util.find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            with writing(folder / "tensorboard"):
                self.board = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    def write(self, kind: str, step: int, metrics: Mapping[str, Any]) -> None:
        """Add a line.

        Args:
            kind: `train` or `valid`.
            step: The step.
            metrics: Values by name.
        """
        if not self.enabled:
            return
        with writing(self.path):
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"kind": kind, "step": step, **metrics}) + "\n")
            if self.board is not None:
                for name, value in metrics.items():
                    self.board.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Flush the buffers."""
        if self.board is not None:
            with writing(self.path.parent / "tensorboard"):
                self.board.close()

    def _remove_after(self, step: int) -> None:
        if not self.path.exists():
            return
        # Lines are reports that nothing depends on: damaged ones are left out, as are those of later steps.
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        kept = [line for line in lines if _step_of(line) <= step]
        with replacing(self.path) as part:
            part.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")


class Display:
    """A progress bar on a terminal; elsewhere one line per evaluation.

    Args:
        total: Number of steps.
        step: Step from which the run continues.
        enabled: Whether to print anything.
    """

    def __init__(self, total: int, step: int, enabled: bool = True):
        self.console = Console(stderr=True, soft_wrap=True, markup=False, highlight=False, quiet=not enabled)
        columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
        self.bar = Progress(*columns, console=self.console, disable=not (enabled and self.console.is_terminal))
        self.task = self.bar.add_task("…", total=total, completed=step)
        self.total = total

    def advance(self, step: int) -> None:
        """Show the current step."""
        self.bar.update(self.task, completed=step)

    def describe(self, loss: float, speed: float, rows: str = "graphs") -> None:
        """Show the current loss, and how many graphs or targets are seen per second."""
        self.bar.update(self.task, description=f"loss {loss:.4f} · {speed:,.0f} {rows}/s")

    def line(self, text: str) -> None:
        """Print a line above the bar."""
        self.bar.console.print(text)

    def __enter__(self) -> "Display":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


def duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> duration(3725.4)
    '1:02:05'
    """
    return str(timedelta(seconds=round(seconds)))


def _step_of(line: str) -> int:
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return 2**62  # an incomplete line of a killed run
