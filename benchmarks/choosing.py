"""Node classification on directed block models: the defaults of magnetite against a grid of potentials.

python benchmarks/choosing.py                                        # writes results/choosing.json
python benchmarks/choosing.py --sizes 300 2000 --networks mlp        # the part that a CPU does in minutes
python benchmarks/choosing.py --sizes 20000 --models cycle-5 --networks mlp gps --name choosing-20000

The tables read all results whose names begin with `choosing`.

Nodes have no features: the classes can only be told from the encoding, and for GPSConv and the transformer from the
edges. `best` is the largest test accuracy on the grid, so the ratio of the default to it is pessimistic. The rule of
the default was designed on graph seeds 1–3, which are not used here. The record also compares the time of the rule with
that of the eigenvectors, and times of encodings with the formula of `mt.advise`.
"""

import argparse
import inspect
import math
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv, GPSConv

import magnetite as mt
from magnetite.encodings.advice import seconds_and_bytes
from magnetite.encodings.potentials import node_pairs
from magnetite.io.record import Record
from magnetite.transforms import AddMagneticLaplacianPE

K = 8
SEEDS = (11, 12)
GRID = (0.02, 0.05, 0.1, 1 / 7, 0.2, 0.25, 1 / 3, 0.5)
SHORT_GRID = (0.1, 0.2, 1 / 3)
"""Potentials for networks that take minutes."""


class Blocks(NamedTuple):
    """A directed block model: a share `flow` of the edges follows `kind`, `inside` stay in a class."""

    classes: int
    flow: float
    kind: str
    degree: float = 10
    inside: float = 0.0


MODELS = {
    "cycle-5": Blocks(5, 0.5, "cycle"),
    "cycle-5-easy": Blocks(5, 0.8, "cycle"),
    "cycle-5-hard": Blocks(5, 0.35, "cycle"),
    "cycle-5-sparse": Blocks(5, 0.8, "cycle", degree=4),
    "cycle-3": Blocks(3, 0.5, "cycle"),
    "cycle-7": Blocks(7, 0.5, "cycle"),
    "chain-5": Blocks(5, 0.5, "chain"),
    "chain-5-inside": Blocks(5, 0.3, "chain", inside=0.4),
    "source-sink": Blocks(3, 0.5, "source-sink"),
    "undirected-5": Blocks(5, 0.35, "none"),
}


def generated(blocks: Blocks, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Edges `[2, m]` and classes `[n]`; repeated edges and self-loops are left out."""
    random = np.random.default_rng(seed)
    classes, count = random.integers(0, blocks.classes, n), int(n * blocks.degree)
    kind = random.random(count)
    source = random.integers(0, blocks.classes, count)
    target = random.integers(0, blocks.classes, count)
    flow = kind < blocks.flow
    inside = ~flow & (kind < blocks.flow + blocks.inside)
    if blocks.kind == "cycle":
        target[flow] = (source[flow] + 1) % blocks.classes
    elif blocks.kind == "chain":
        source[flow] = random.integers(0, blocks.classes - 1, flow.sum())
        target[flow] = source[flow] + 1
    elif blocks.kind == "source-sink":
        out = random.random(count) < 0.5
        source[flow & out], target[flow & ~out] = 0, blocks.classes - 1
    else:
        target[flow] = source[flow]
    target[inside] = source[inside]
    order, sizes = np.argsort(classes, kind="stable"), np.bincount(classes, minlength=blocks.classes)
    first = sizes.cumsum() - sizes
    ends = np.stack([order[first[each] + random.integers(0, sizes[each])] for each in (source, target)])
    ends = ends[:, ends[0] != ends[1]]
    number = np.unique(ends[0] * n + ends[1])
    return torch.from_numpy(np.stack([number // n, number % n])), torch.from_numpy(classes)


def encoded(edges: Tensor, n: int, q: Any, device: str) -> Tensor:
    """`[n, 2k]` by the transform, scaled by `√n`; with its own default potential if `q` is None."""
    transform = AddMagneticLaplacianPE(K) if q is None else AddMagneticLaplacianPE(K, q=q)
    data = transform(Data(edge_index=edges.to(device), num_nodes=n))
    scaled = "scaling" in inspect.signature(AddMagneticLaplacianPE).parameters
    return data.magnetic_pe if scaled else data.magnetic_pe * n**0.5


def halves(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Training and test nodes."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    return order[: n // 2], order[n // 2 :]


def fitted(model: Callable[[Tensor], Tensor], parameters: Any, x: Tensor, y: Tensor, seed: int, steps: int) -> float:
    """Test accuracy after some full-batch steps of AdamW."""
    train, test = (ids.to(x.device) for ids in halves(len(y), seed))
    optimiser = torch.optim.AdamW(parameters, lr=5e-3, weight_decay=1e-2)
    for _ in range(steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x)[train], y[train]).backward()
        optimiser.step()
    for module in (model, getattr(model, "__self__", None)):
        if isinstance(module, nn.Module):
            module.eval()
    with torch.no_grad():
        return float((model(x)[test].argmax(1) == y[test]).double().mean())


def mlp(edges: Tensor, y: Tensor, classes: int, q: Any, seed: int, device: str) -> float:
    """`AddMagneticLaplacianPE` and a perceptron with two hidden layers."""
    x = encoded(edges, len(y), q, device)
    torch.manual_seed(seed)
    layers = [nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2)]
    model = nn.Sequential(*layers, nn.Linear(64, classes)).to(device)
    return fitted(model, model.parameters(), x, y.to(device), seed, 200)


FULL = 5_000
"""Most nodes of a graph for full attention in GPSConv; PyG's Performer, whose cost is linear, takes larger graphs."""


class GPS(nn.Module):
    """Two of PyG's GPS layers."""

    def __init__(self, features: int, classes: int, edges: Tensor, nodes: int, width: int = 64):
        super().__init__()
        attention = "multihead" if nodes <= FULL else "performer"
        self.edges, self.start, self.head = edges, nn.Linear(features, width), nn.Linear(width, classes)
        self.layers = nn.ModuleList(
            GPSConv(
                width,
                GINConv(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))),
                heads=4,
                dropout=0.2,
                attn_type=attention,
            )
            for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the classes."""
        hidden, one = self.start(x), x.new_zeros(len(x), dtype=torch.long)
        for layer in self.layers:
            hidden = layer(hidden, self.edges, one)
        return self.head(hidden)


def gps(edges: Tensor, y: Tensor, classes: int, q: Any, seed: int, device: str) -> float:
    """`AddMagneticLaplacianPE` and PyG's `GPSConv`."""
    x = encoded(edges, len(y), q, device)
    torch.manual_seed(seed)
    model = GPS(x.shape[1], classes, edges.to(device), len(y)).to(device)
    return fitted(model, model.parameters(), x, y.to(device), seed, 150)


def transformer(
    edges: Tensor, y: Tensor, classes: int, q: Any, seed: int, device: str, epochs: float | None = None  # noqa: ARG001
) -> float:  # fmt: skip
    """Our transformer, by `mt.train` with the preset `quick`; with other epochs than its own if they are given."""
    train, test = halves(len(y), seed)
    masks = {
        name: torch.zeros(len(y), dtype=torch.bool).index_fill_(0, ids, True)
        for name, ids in (("train", train[len(train) // 5 :]), ("valid", train[: len(train) // 5]), ("test", test))
    }
    graphs = mt.Digraphs.from_edges(edges, num_nodes=len(y)).replace(node_features={"y": y})
    task = mt.tasks.Supervised(graphs, target="y", level="node", kind="classification", splits=masks)
    settings = {} if q is None else {"encoding.q": f"Relative({q.q})" if isinstance(q, mt.Relative) else q}
    with tempfile.TemporaryDirectory() as folder:
        run = mt.train(task, preset="quick", epochs=epochs, out=folder, seed=seed, device=device, settings=settings)
        return float(run.metrics["test"]["accuracy"])


NETWORKS: dict[str, tuple[Callable[..., float], tuple[float, ...]]] = {
    "mlp": (mlp, GRID),
    "gps": (gps, SHORT_GRID),
    "transformer": (transformer, SHORT_GRID),
}


def measured(
    name: str, network: str, n: int, device: str, grid: Sequence[float] | None = None, relative: bool = True
) -> dict[str, Any]:
    """Mean test accuracy of the default, of `Relative(0.25)` if asked for, and of each potential of the grid."""
    work, usual = NETWORKS[network]
    grid = usual if grid is None else grid
    potentials: dict[str, Any] = {"default": None} | ({"relative": mt.Relative(0.25)} if relative else {})
    potentials |= {f"{q:.3f}": q for q in grid}
    found: dict[str, list[float]] = {key: [] for key in potentials}
    chosen = []
    for seed in SEEDS:
        edges, y = generated(MODELS[name], n, seed)
        chosen.append(float(mt.Adaptive().of_pairs(node_pairs(mt.Digraphs.from_edges(edges, num_nodes=n)))))
        for key, q in potentials.items():
            found[key].append(work(edges, y, MODELS[name].classes, q, seed, device))
    mean = {key: float(np.mean(values)) for key, values in found.items()}
    best = max((key for key in mean if key != "default"), key=lambda key: mean[key])
    return {
        "model": name, "network": network, "nodes": n, "chance": 1 / MODELS[name].classes, "q": chosen,
        "accuracy": mean, "by_seed": found, "best": best, "ratio": mean["default"] / mean[best],
    }  # fmt: skip


def best_of(work: Callable[[], Any], rounds: int = 3) -> float:
    """Seconds of the fastest of several calls, after a warm-up."""
    taken = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken[1:])


def timed(n: int, device: str) -> dict[str, Any]:
    """Seconds of the rule, of eigenvectors at a given potential, and of encodings with the formula's prediction."""
    edges, _ = generated(MODELS["cycle-5"], n, SEEDS[0])
    graphs = mt.Digraphs.from_edges(edges, num_nodes=n)
    pairs = node_pairs(graphs)
    rule = best_of(lambda: mt.Adaptive().of_pairs(pairs))
    solve = best_of(lambda: mt.MagneticLaplacian(K, q=0.2)(graphs.to(device)))
    encodings = {"magnetic": mt.MagneticLaplacian(K), "laplacian": mt.Laplacian(K)}
    if n <= 2000:
        encodings |= {"walks": mt.RandomWalk(), "svd": mt.SVD(K)}
    ratios = {}
    for name, encoding in encodings.items():
        ratios[name] = best_of(lambda: encoding(graphs), 1) / seconds_and_bytes(name, graphs, K)[0]  # noqa: B023
    return {"nodes": n, "rule": rule, "solve": solve, "measured_over_formula": ratios}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--name", help="name of the result; by default choosing, on a GPU choosing-cuda")
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 2000])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=["mlp"])
    parser.add_argument("--grid", type=float, nargs="+", help="potentials to compare with")
    parser.add_argument("--no-times", action="store_true", help="leave out the times, as in runs side by side")
    parser.add_argument("--epochs", type=float, help="of the transformer; by default those of the preset")
    parser.add_argument("--no-relative", action="store_true", help="leave out Relative(0.25), the default of old")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    NETWORKS["transformer"] = partial(transformer, epochs=options.epochs), SHORT_GRID
    warnings.simplefilter("ignore", mt.PotentialWarning)  # the grid contains what the warning is about
    default = "choosing" if options.device == "cpu" else f"choosing-{options.device}"
    record, console, rows = Record(options.name or default, SEEDS[0]), Console(), []
    result: dict[str, Any] = {"k": K, "seeds": SEEDS, "device": options.device, "epochs": options.epochs, "rows": rows}
    result["times"] = [] if options.no_times else [timed(n, options.device) for n in options.sizes]
    for n in options.sizes:
        for network in options.networks:
            for name in options.models:
                rows.append(measured(name, network, n, options.device, options.grid, not options.no_relative))
                row = rows[-1]
                shown = {key: round(value, 3) for key, value in row["accuracy"].items()}
                console.print(n, network, name, f"ratio {row['ratio']:.2f}", "best", row["best"], shown)
                record.write(options.out, result)
    table = Table("nodes", "network", "model", "chance", "Relative", "default", "best", "ratio")
    for row in rows:
        accuracy = row["accuracy"]
        numbers = (
            row["chance"],
            accuracy.get("relative", math.nan),
            accuracy["default"],
            accuracy[row["best"]],
            row["ratio"],
        )
        table.add_row(f"{row['nodes']:,}", row["network"], row["model"], *(f"{number:.2f}" for number in numbers))
    console.print(table)
    console.print(f"→ {record.write(options.out, result)}")


if __name__ == "__main__":
    main()
