"""Models and encodings on one large graph: cost of a step against PyG, growth with the size, accuracy after training.

python benchmarks/large_models.py              # all parts, or one of them:
python benchmarks/large_models.py steps        # results/large-models-steps.json
python benchmarks/large_models.py growth       # results/large-models-growth.json
python benchmarks/large_models.py accuracy     # results/large-models-accuracy.json
python benchmarks/large_models.py million      # results/large-models-million.json, on a machine without other work
python benchmarks/large_models.py steps --device cuda       # results/large-models-steps-cuda.json; so for the others

On a CPU, every measurement runs in a process of its own, so that its peak memory is its own. Steps and encodings are
measured in CPU seconds of one thread, the least of some rounds, which other processes of the machine hardly change;
training in seconds of the clock. On a GPU, all run in one process, time is that of the clock, and memory that of
torch's allocator. Every measurement is printed and written at once. A step is a forward and a backward pass over the
whole graph, and an update by AdamW, with two layers of width 64 and the same random positions for all models; `sampled`
is a step of training on the neighbourhoods of 256 nodes, as `mt.train` does by default, and its cost does not depend on
the graph. All sides keep freed memory, as `mt.train` does on a CPU. Growth is measured at a smaller width and with
fewer edges, so that a million nodes fit into 24 GiB. The epoch over a million nodes is not compiled, since every sample
has another shape.
"""

import argparse
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import magnetite as mt
from magnetite.encodings.results import Eigenpairs
from magnetite.io.record import Record
from magnetite.linalg.memory import kept_memory
from magnetite.tasks.supervised import TARGETS

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.choosing import MODELS, generated  # noqa: E402
from benchmarks.timing import needs_gpu  # noqa: E402

LAYERS, HEADS, K, CLASSES = 2, 4, 8, 5
STEP_SCALE, GROWTH_SCALE = {"width": 64, "degree": 10}, {"width": 32, "degree": 5}
"""Width of the networks, and number of edges per node."""

STEP_SIZES = (20_000, 100_000)
GROWTH_SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
ACCURACY_SIZES = (20_000, 100_000)
LIMIT = 20 * 2**30
"""Bytes of memory beyond which a measurement fails, so that the machine does not begin to swap."""


def random_edges(n: int, degree: int, seed: int) -> Tensor:
    """`degree · n` random edges."""
    return torch.from_numpy(np.random.default_rng(seed).integers(0, n, (2, degree * n)))


class PyG(nn.Module):
    """A linear layer, two layers of PyG, and a linear layer."""

    def __init__(self, layer: Callable[[int], nn.Module], edges: Tensor, width: int):
        super().__init__()
        self.start, self.head, self.edges = nn.Linear(2 * K, width), nn.Linear(width, CLASSES), nn.Buffer(edges)
        self.layers = nn.ModuleList(layer(width) for _ in range(LAYERS))

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the classes."""
        hidden = self.start(x)
        for layer in self.layers:
            hidden = layer(hidden, self.edges)
        return self.head(hidden)


class Performer(nn.Module):
    """`GPSConv` with Performer attention over one graph."""

    def __init__(self, width: int) -> None:
        super().__init__()
        from torch_geometric.nn import GINConv, GPSConv

        network = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.layer = GPSConv(width, GINConv(network), heads=HEADS, attn_type="performer")

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """The states after one layer."""
        return self.layer(x, edges, x.new_zeros(len(x), dtype=torch.long))


def directed(width: int) -> nn.Module:
    """`DirGNNConv` of a GCN."""
    from torch_geometric.nn import DirGNNConv, GCNConv

    return DirGNNConv(GCNConv(width, width, normalize=False))


def transformer(width: int, **options: Any) -> mt.nn.GraphModel:
    """Linear attention with positions."""
    attention, head = mt.nn.LinearAttention(width, HEADS), mt.nn.NodeHead(CLASSES)
    return mt.nn.DigraphTransformer(
        width, LAYERS, head, position(width), heads=HEADS, norm="pre", dropout=0.1, attention=attention, **options
    )


def position(width: int) -> mt.nn.MagLapNet:
    """The encoder of eigenvectors."""
    return mt.nn.MagLapNet(K, width, dropout=0.0)


def positions(n: int, seed: int) -> Eigenpairs:
    """Random numbers in the shape of eigenpairs."""
    random = torch.Generator().manual_seed(seed)
    parts = torch.randn(n, K, 2, generator=random) / n**0.5
    values, mask = torch.linspace(0, 1, K)[None], torch.ones(1, K, dtype=torch.bool)
    group = torch.arange(K)[None]
    vectors = torch.view_as_complex(parts)
    return Eigenpairs(
        node_ptr=torch.tensor([0, n]), values=values, vectors=vectors, mask=mask, group=group, anchored=mask
    )


GRU = "TopologicalGRU"
"""The layer for acyclic graphs: its edges point to larger node numbers."""

OURS: dict[str, Callable[[int], mt.nn.GraphModel]] = {
    "linear attention": transformer,
    "linear attention + GNN": lambda width: transformer(width, local=mt.nn.GNN(width, 2), local_added=True),
    "linear attention + DirGNN": lambda width: transformer(width, local=mt.nn.DirGNN(width, 1), local_added=True),
    "DirGNN": lambda width: mt.nn.DigraphGNN(
        width, mt.nn.NodeHead(CLASSES), mt.nn.DirGNN(width, LAYERS), position(width)
    ),
    GRU: lambda width: mt.nn.DigraphGNN(width, mt.nn.NodeHead(CLASSES), mt.nn.TopologicalGRU(width), position(width)),
    "MagNet": lambda width: mt.nn.MagNet(width, LAYERS, mt.nn.NodeHead(CLASSES), position(width)),
}
THEIRS: dict[str, Callable[[int], nn.Module]] = {"PyG GPSConv, Performer": Performer, "PyG DirGNNConv": directed}

ENCODINGS: dict[str, Callable[[], Any]] = {
    "magnetic, k=8": lambda: mt.MagneticLaplacian(k=K),
    "svd, rank 8": lambda: mt.SVD(rank=K),
    "laplacian, k=8": lambda: mt.Laplacian(k=K),
    "walk sums": lambda: mt.WalkSums(steps=2, top=16),
    "relatives": lambda: mt.Relatives(reach=3, top=8),
}


def prepared(name: str, n: int, width: int, degree: int, seed: int, device: str) -> tuple[nn.Module, Any, Tensor]:
    """A model, its input, and the classes of the nodes, all on `device`."""
    edges, y = random_edges(n, degree, seed), torch.from_numpy(np.random.default_rng(seed).integers(0, CLASSES, n))
    edges = edges.sort(0).values if name == GRU else edges
    pairs = positions(n, seed)
    torch.manual_seed(seed)
    if name in THEIRS:
        model: nn.Module = PyG(THEIRS[name], edges, width)
        given: Any = torch.view_as_real(pairs.vectors).flatten(1) * n**0.5
    else:
        graphs = mt.Digraphs.from_edges(edges, num_nodes=n)
        if name == "sampled":
            model, hoods = OURS["linear attention + GNN"](width), mt.batching.Neighbourhoods(graphs, (6, 2))
            sample = hoods.sample(torch.arange(256), key=seed)
            given, y = mt.batching.sampled_batch(graphs, sample, {"eigenpairs": pairs}), y[sample.nodes]
        else:
            model, given = OURS[name](width), mt.batch(graphs, pairs)
    return model.to(device), given.to(device), y.to(device)


def stepping(model: nn.Module, given: Any, y: Tensor) -> Callable[[], None]:
    """A function that trains one step on all nodes."""
    optimiser = torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(given), y).backward()
        optimiser.step()

    return step


def peak() -> float:
    """Largest memory of this process so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def timed(work: Callable[[], Any], rounds: int, device: str) -> dict[str, float]:
    """Seconds of the fastest round, and the memory that it needed beyond what was there before."""
    if device == "cuda":
        return timed_on_gpu(work, 3 * rounds)
    before, best = peak(), float("inf")
    with kept_memory():
        for _ in range(rounds):
            start = time.process_time()
            work()
            best = min(best, time.process_time() - start)
    return {"seconds": best, "gib": max(0.0, peak() - before), "peak_gib": peak()}


def timed_on_gpu(work: Callable[[], Any], rounds: int) -> dict[str, float]:
    """The same on a GPU, after a warm-up."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before, best = torch.cuda.memory_allocated(), float("inf")
    for _ in range(rounds + 1):
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    most = torch.cuda.max_memory_allocated()
    return {"seconds": best, "gib": (most - before) / 2**30, "peak_gib": most / 2**30}


def one_step(name: str, n: int, width: int, degree: int, seed: int, device: str) -> dict[str, float]:
    """The cost of a step."""
    return timed(stepping(*prepared(name, n, width, degree, seed, device)), 2 if n > 300_000 else 3, device)


def one_encoding(name: str, n: int, degree: int, seed: int, device: str) -> dict[str, float]:
    """The cost of an encoding."""
    encoding = ENCODINGS[name]()
    encoding(mt.Digraphs.from_edges(random_edges(3_000, degree, seed), num_nodes=3_000).to(device))  # compiles
    graphs = mt.Digraphs.from_edges(random_edges(n, degree, seed), num_nodes=n).to(device)
    return timed(lambda: encoding(graphs), 1 if n > 10_000 else 2, device)


def trained(name: str, n: int, seed: int, steps: int, device: str) -> dict[str, float]:
    """Test accuracy of `mt.train` with its defaults on a directed block model, whose nodes have no features.

    The number of steps is the same for all sizes, so that large graphs are seen in part only.
    """
    edges, y = generated(MODELS["cycle-5"], n, seed)
    graphs = mt.Digraphs.from_edges(edges, num_nodes=n).replace(node_features={"y": y})
    task = mt.tasks.Supervised(graphs, target="y", level="node", kind="classification")
    epochs = steps * TARGETS["quick"] / int(task.targets.masks["train"].sum())
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run = mt.train(task, encoding=name, out=Path(folder) / "run", epochs=epochs, seed=seed, device=device)
        found = run.metrics["test"]["accuracy"]
    return {"accuracy": found, "seconds": time.perf_counter() - start, "peak_gib": peak(), "epochs": epochs}


def one_epoch(name: str, n: int, seed: int, device: str) -> dict[str, float]:
    """One epoch over a tenth of the nodes of a directed block model, as in ogbn-products, with the defaults."""
    edges, y = generated(MODELS["cycle-5"], n, seed)
    graphs = mt.Digraphs.from_edges(edges, num_nodes=n).replace(node_features={"y": y})
    found: dict[str, float] = {"edges": graphs.num_edges}
    settings: dict[str, Any] = {"run.compile": "none"}
    if name == "magnetic":
        small = mt.Digraphs.from_edges(random_edges(20_000, 10, seed), num_nodes=20_000)
        mt.MagneticLaplacian(k=2)(small.to(device))  # compiles
        start = time.perf_counter()
        mt.MagneticLaplacian(k=16)(graphs.to(device)).vectors.cpu()
        found["encode_seconds"], found["encode_peak_gib"] = time.perf_counter() - start, peak()
        print(f"encoded in {found['encode_seconds']:.1f} s", flush=True)
        settings["encoding.k"] = 16
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    ends = [round(share * n) for share in (0.1, 0.01, 0.05)]
    splits = dict(zip(("train", "valid", "test"), order[: sum(ends)].split(ends), strict=True))
    task = mt.tasks.Supervised(graphs, target="y", level="node", kind="classification", splits=splits)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run = mt.train(
            task, encoding=name, out=Path(folder) / "run", epochs=1, seed=seed, device=device, settings=settings
        )
        found["accuracy"] = run.metrics["test"]["accuracy"]
    found |= {"train_seconds": time.perf_counter() - start, "peak_gib": peak()}
    return found | ({"gpu_peak_gib": torch.cuda.max_memory_allocated() / 2**30} if device == "cuda" else {})


WORK: dict[str, Callable[..., dict[str, float]]] = {
    "step": one_step,
    "encoding": one_encoding,
    "trained": trained,
    "epoch": one_epoch,
}


def measured(kind: str, timeout: float, **options: Any) -> dict[str, Any]:
    """A measurement, on a CPU in a process of its own; `failed` says why there is none."""
    row = {**options, **(here if options["device"] == "cuda" else apart)(kind, timeout, options)}
    print(row, flush=True)
    return row


def here(kind: str, _timeout: float, options: dict[str, Any]) -> dict[str, Any]:
    """A measurement in this process."""
    torch.cuda.reset_peak_memory_stats()
    try:
        return WORK[kind](**options)
    except Exception as error:  # the others are measured
        return {"failed": f"{type(error).__name__}: {error}"[:200]}
    finally:
        gc.collect()
        torch.cuda.empty_cache()


def apart(kind: str, timeout: float, options: dict[str, Any]) -> dict[str, Any]:
    """A measurement in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "child", "--options", json.dumps([kind, options])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=ROOT, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {timeout:.0f} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    last = (done.stderr.strip().splitlines() or ["?"])[-1][:200]
    return json.loads(lines[-1]) if done.returncode == 0 and lines else {"failed": last}


def exponents(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Slopes of log seconds and log GiB over log n, from 10,000 nodes on, where fixed costs are small."""
    found = {}
    for name in dict.fromkeys(row["name"] for row in rows):
        kept = [row for row in rows if row["name"] == name and row["n"] >= 10_000 and "failed" not in row]
        if len(kept) > 1:
            sizes = np.log([row["n"] for row in kept])
            found[name] = {
                what: float(np.polyfit(sizes, np.log([max(row[what], 1e-4) for row in kept]), 1)[0])
                for what in ("seconds", "gib")
            }
    return found


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=[*PARTS, "child"])
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--names", nargs="+")
    parser.add_argument("--steps", type=int, default=120, help="training steps of the accuracy")
    parser.add_argument("--timeout", type=float, default=900)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--options", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part == "child":
        kind, given = json.loads(options.options)
        resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
        if kind not in ("trained", "epoch"):
            torch.set_num_threads(1)
        print(json.dumps(WORK[kind](**given)))
        return
    if options.device == "cuda":
        needs_gpu()
    for part in [options.part] if options.part else PARTS:
        record = Record(f"large-models-{part}{'-cuda' if options.device == 'cuda' else ''}", options.seed)
        about, work = PARTS[part]
        rows: list[dict[str, Any]] = []
        for kind, given in work(options):
            row = measured(kind, options.timeout, **given, seed=options.seed, device=options.device)
            rows.append(row)
            more = {"exponents": exponents(rows)} if part == "growth" else {}
            path = record.write(options.out, {"rows": rows, **about, **more})
        print("written:", path, flush=True)


Jobs = Iterator[tuple[str, dict[str, Any]]]
"""Kinds of measurements with their options."""


def accuracy(options: argparse.Namespace) -> Jobs:
    """Accuracy of the defaults, with and without encodings."""
    for n, name in product(options.sizes or ACCURACY_SIZES, options.names or ("magnetic", "none")):
        yield "trained", {"name": name, "n": n, "steps": options.steps}


def million(options: argparse.Namespace) -> Jobs:
    """Encoding and one epoch of a node classifier on a graph of a million nodes, with and without the encoding."""
    for n, name in product(options.sizes or (1_000_000,), options.names or ("magnetic", "none")):
        yield "epoch", {"name": name, "n": n}


def steps(options: argparse.Namespace) -> Jobs:
    """Cost of a step against PyG."""
    for n, name in product(options.sizes or STEP_SIZES, options.names or [*OURS, "sampled", *THEIRS]):
        yield "step", {"name": name, "n": n, **STEP_SCALE}


def growth(options: argparse.Namespace) -> Jobs:
    """Cost of models and encodings over the number of nodes."""
    models = [*OURS, "sampled"]
    for name, n in product(options.names or [*models, *ENCODINGS], options.sizes or GROWTH_SIZES):
        if name in models:
            yield "step", {"name": name, "n": n, **GROWTH_SCALE}
        else:
            yield "encoding", {"name": name, "n": n, "degree": GROWTH_SCALE["degree"]}


PARTS: dict[str, tuple[dict[str, Any], Callable[[argparse.Namespace], Jobs]]] = {
    "steps": ({"layers": LAYERS, **STEP_SCALE}, steps),
    "growth": ({"layers": LAYERS, **GROWTH_SCALE}, growth),
    "accuracy": ({"chance": 1 / CLASSES}, accuracy),
    "million": ({"chance": 1 / CLASSES, "k": 16}, million),
}
"""Each part: what its result says besides the measurements, and these."""


if __name__ == "__main__":
    main()
