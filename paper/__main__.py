"""The command line: `python -m paper figure-sorting|figure-playground|claims|…`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from magnetite.cli import main as run
from paper import (
    best,
    claims,
    examples,
    fair,
    hypotheses,
    judge,
    known,
    multi_q,
    namer,
    network_graphs,
    networks,
    pack_code,
    playground,
    recurrent,
    robustness,
    runtime,
    sequences,
    short,
    sorting,
    spectra,
    table_code,
    topological,
    train_code,
)
from paper.cells import Request

FIGURES: dict[str, Callable[[Path, int], None]] = {
    "figure-examples": examples.figure,
    "figure-reordered": examples.figure_reordered,
    "figure-rotation": spectra.figure_rotation,
    "figure-phase": spectra.figure_phase,
    "figure-spectra": spectra.figure_spectra,
    "figure-high-q": spectra.figure_high_q,
    "figure-unsymmetrised": spectra.figure_unsymmetrised,
    "figure-bitmaps": sequences.figure_bitmaps,
    "figure-svd": sequences.figure_svd,
    "figure-sorting-graph": network_graphs.figure_sorting_graph,
    "figure-near-sequential": network_graphs.figure_near_sequential,
    "figure-topological-sorts": topological.figure,
    "figure-training-sorts": topological.figure_training,
    "figure-runtime-eigen": runtime.figure_eigen,
    "figure-runtime-walks": runtime.figure_walks,
}
"""Figures that need no training; those of runtimes draw what `magnetite bench` has measured, or measure it."""

TRAINED: dict[str, Callable[[Request], None]] = {
    "figure-quick": playground.figure_quick,
    "figure-quick-sorting": best.figure_quick,
    "figure-playground": playground.figure_playground,
    "figure-walks": playground.figure_walks,
    "figure-sorting": sorting.figure_sorting,
    "figure-q-sweep": sorting.figure_potentials,
    "figure-gnn": sorting.figure_gnn,
    "figure-tried-sorting": best.figure_candidates,
    "figure-best-sorting": best.figure_sorting,
    "figure-best-distance": best.figure_distance,
    "figure-networks": networks.figure,
    "figure-quick-networks": networks.figure_quick,
    "figure-multi-q": multi_q.figure,
    "table-fair": fair.figure,
    "table-recurrent": recurrent.figure,
    "table-short": short.figure,
    "hypotheses": hypotheses.show,
    "claims": claims.judge,
    "table-code": table_code.figure,
}
"""Figures and tables made of training runs; missing runs are trained. `claims` and `table-code` only read results."""

OWN: dict[str, typer.Typer] = {
    "train-code": train_code.app,
    "baselines-code": table_code.app,
    "pack-code": pack_code.packer,
    "unpack-code": pack_code.unpacker,
    "robustness-code": robustness.app,
    "ship-namer": namer.app,
    "ship-sorting": judge.app,
    "known-networks": known.app,
}
"""Commands with options of their own."""

COMMANDS = ", ".join([*FIGURES, *TRAINED, *OWN])

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
)


@app.command(epilog="Example: python -m paper figure-sorting --budget 0.5 --only magnetic --out half")
def main(
    what: Annotated[str, typer.Argument(help=f"One of {COMMANDS}.")],
    out: Annotated[Path, typer.Option(help="Folder of results: tables, figures and JSON files.")] = Path("results"),
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    budget: Annotated[float, typer.Option(help="Fraction of each training run to do.")] = 1.0,
    only: Annotated[str, typer.Option(help="Train only the cell of this name, or those whose names contain it.")] = "",
    runs: Annotated[Path, typer.Option(help="Folder of training runs in progress.")] = Path("runs"),
    device: Annotated[str, typer.Option(help="Device to train on: auto, cpu or cuda.")] = "auto",
    train: Annotated[bool, typer.Option("--train/--no-train", help="Whether to train missing cells.")] = True,
) -> None:
    """Reproduce a figure of the paper: train missing cells, print the table, write the figure and a JSON file.

    A cell is one training run of a figure.
    The three quick figures take minutes on two cores. `claims` compares the results with what the paper claims,
    `hypotheses` tests why some claims may not hold here. `table-code` is the table of function names, whose
    rows `train-code` and `baselines-code` measure. `ship-namer` and `ship-sorting` make the models that come with
    magnetite. These and the commands after `table-code` have options of their own, which COMMAND --help lists.
    """
    if what in FIGURES:
        if only or budget != 1:
            raise ValueError(f"{what} trains nothing: leave out --only and --budget")
        FIGURES[what](out, seed)
    elif what in TRAINED:
        TRAINED[what](Request(out, seed, budget, only, runs, device, train))
    else:
        raise ValueError(f"unknown command {what!r}: choose one of {COMMANDS}")


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in OWN:
        run(OWN[sys.argv.pop(1)], "paper")
    run(app, "paper")
