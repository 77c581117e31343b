"""Predict what circuits cost, from a folder in OGB's layout.

Each graph is the data flow of a C program; the targets are resources of its implementation on an FPGA. Without an
argument, this trains on the 30 graphs of the tests, which shows the way and nothing else.

    python examples/circuits.py [FOLDER]
"""

import argparse
from pathlib import Path

import magnetite as mt

SMALL = Path(__file__).parent.parent / "tests" / "data" / "hls-dfg"


def main() -> None:
    """Train on the training split of the folder, and predict the targets of its first graphs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=SMALL, help="folder in OGB's layout; by default that of the tests")
    parser.add_argument("--preset", default="quick", help="quick, default or large")
    parser.add_argument("--epochs", type=int, help="passes over the training graphs; by default those of the preset")
    parser.add_argument("--out", help="folder of the run; by default a new folder in runs/")
    options = parser.parse_args()

    # The folder has graphs, features, targets and a split. Several targets are predicted by one model.
    task = mt.tasks.Supervised(str(options.folder), target=("dsp", "lut", "ff", "cp"), level="graph", kind="regression")
    for split in ("train", "valid", "test"):
        print(f"{split}: {len(task.examples(split))} graphs")

    # On the command line: magnetite train --data FOLDER --target dsp,lut,ff,cp --level graph --kind regression
    run = mt.train(task, encoding="magnetic", preset=options.preset, epochs=options.epochs, out=options.out)
    print("test:", {name: round(value, 3) for name, value in run.metrics["test"].items()})

    # Predictions have the units and the order of the targets.
    graphs = task.data_set.graphs[:3]
    for row, size in zip(run.predict(graphs), graphs.sizes, strict=True):
        print(f"circuit of {size} nodes:", row)


if __name__ == "__main__":
    main()
