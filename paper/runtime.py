"""Time per graph over the number of nodes (the paper's appendix H), as measured by `magnetite bench`."""

from pathlib import Path

from magnetite.cli.bench import BENCHMARKS, redraw
from paper.style import tell


def figure_eigen(folder: Path, seed: int) -> None:
    """Eigenpairs of real and complex matrices, on each device."""
    _figure("eigen", folder, seed)


def figure_walks(folder: Path, seed: int) -> None:
    """Random walks, on each device."""
    _figure("walks", folder, seed)


def _figure(name: str, folder: Path, seed: int) -> None:
    """Draw the measurement in the folder; measure on this machine if there is none."""
    if not (folder / f"figure-runtime-{name}.json").exists():
        BENCHMARKS[name](folder, seed)
    path = redraw(name, folder)
    tell(folder, path.stem, path)
