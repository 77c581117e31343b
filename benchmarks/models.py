"""Forward + backward of magnetic encodings + transformer, against the bare transformer, on random tensors.

    python benchmarks/models.py               # writes results/benchmark-models.json

One process, the paper's sizes (4 layers, width 256, bf16), the same batch and the same head on all sides; the bare one
has no position encoder, and `written out` computes the attention over eigenvectors with plain tensor operations. Eager
and compiled. `--toy` is a small size for a machine without a GPU.
"""

import argparse
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import torch
from rich.console import Console
from rich.table import Table
from timing import needs_gpu
from torch import Tensor

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch, BatchedEigenpairs
from magnetite.io.record import Record
from magnetite.kernels.cuda import eigen_attention


@dataclass(frozen=True)
class Setting:
    """Shapes of one of the paper's tasks.

    Args:
        graphs: Number of graphs.
        nodes: Largest number of nodes; graphs have at least three quarters of it.
        k: Number of eigenvectors.
        head: graph, pair or sequence.
        width: Size of a node's state.
        layers: Number of layers.
    """

    graphs: int
    nodes: int
    k: int
    head: str
    width: int = 256
    layers: int = 4


SETTINGS = {
    "sorting": Setting(graphs=1536, nodes=72, k=25, head="graph"),
    "playground": Setting(graphs=768, nodes=40, k=16, head="pair"),
    "code": Setting(graphs=512, nodes=128, k=25, head="sequence"),
}
SIDES = ("bare", "magnetic", "written out")
WORDS, POSITIONS = 5_002, 5


def random_batch(setting: Setting, device: str, seed: int) -> Batch:
    """A batch of random tensors; for a pair head, with all node pairs as query pairs."""
    generator = torch.Generator().manual_seed(seed)
    n, k = setting.nodes, setting.k
    sizes = torch.randint(3 * n // 4, n, (setting.graphs,), generator=generator)
    total = int(sizes.sum())
    edges = [torch.zeros(2, 0, dtype=torch.int64)] * setting.graphs
    features = {"x": torch.randn(total, 64, generator=generator)}
    batch = mt.batch(mt.Digraphs.from_edges(edges, sizes.tolist()).replace(node_features=features))
    eigenpairs = BatchedEigenpairs(
        torch.rand(setting.graphs, k, generator=generator),
        torch.randn(total, k, 2, generator=generator) / n**0.5,
        torch.ones(setting.graphs, k, dtype=torch.bool),
    )
    batch = Batch(**{**vars(batch), "encodings": {"eigenpairs": eigenpairs}})
    return (batch.with_all_pairs() if setting.head == "pair" else batch).to(device)


def make(setting: Setting, magnetic: bool) -> nn.GraphModel:
    """The model of a setting, with or without magnetic encodings."""
    heads = {
        "graph": nn.GraphHead(2),
        "pair": nn.PairHead(positive=True),
        "sequence": nn.SequenceHead(WORDS, POSITIONS),
    }
    position = nn.MagLapNet(setting.k, setting.width) if magnetic else None
    embedding = nn.LinearNodes("x", 64)
    return nn.DigraphTransformer(setting.width, setting.layers, heads[setting.head], position, embedding)


def loss_of(output: Tensor, batch: Batch) -> Tensor:
    """A loss that uses every output: the mean square over the query pairs, or cross-entropy with class 0."""
    if batch.query is not None:
        return output.square().mean()
    return torch.nn.functional.cross_entropy(
        output.flatten(0, -2), torch.zeros_like(output[..., 0], dtype=torch.int64).flatten()
    )


def rate(model: nn.GraphModel, batch: Batch, compiled: bool, rounds: int) -> dict[str, float]:
    """Graphs per second in the fastest of several rounds, and seconds of the first step."""

    def loss() -> Tensor:
        with torch.autocast(batch.device.type, torch.bfloat16):
            output = model(batch)
        return loss_of(output, batch)

    forward = torch.compile(loss, fullgraph=True, dynamic=False) if compiled else loss

    def run() -> None:
        forward().backward()

    start = time.perf_counter()
    run()
    _wait(batch.device)
    first = time.perf_counter() - start
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(4):
            run()
            model.zero_grad(set_to_none=False)
        _wait(batch.device)
        best = min(best, (time.perf_counter() - start) / 4)
    return {"graphs_per_second": len(batch) / best, "first_step_seconds": first}


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def _kernel_of(side: str) -> AbstractContextManager[object]:
    """Hide the fused kernel from the side without it."""
    return (
        mock.patch.object(eigen_attention, "suits", lambda *_, **__: False) if side == "written out" else nullcontext()
    )


def measure(setting: Setting, device: str, rounds: int, seed: int) -> list[dict[str, object]]:
    """Every side of one setting, eager and compiled."""
    batch = random_batch(setting, device, seed)
    rows: list[dict[str, object]] = []
    for compiled in (False, True):
        for name in SIDES:
            torch.manual_seed(seed)
            model = make(setting, magnetic=name != "bare").to(device)
            torch.compiler.reset()
            with _kernel_of(name):
                rows.append({"side": name, "compiled": compiled, **rate(model, batch, compiled, rounds)})
        bare = rows[-len(SIDES)]["graphs_per_second"]
        for row in rows[-len(SIDES) :]:
            row["of_bare"] = row["graphs_per_second"] / bare  # type: ignore[operator]
    return rows


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--toy", action="store_true", help="a small model, also without a GPU")
    parser.add_argument("--only", nargs="*", default=list(SETTINGS))
    options = parser.parse_args()
    if not options.toy:
        needs_gpu()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    record = Record("benchmark-models-toy" if options.toy else "benchmark-models", options.seed)
    table = Table("setting", "side", "compiled", "graphs/s", "of bare", "first step, s")
    result = {}
    for name in options.only:
        setting = SETTINGS[name]
        if options.toy:
            setting = replace(setting, graphs=4, width=64, layers=1)
        result[name] = rows = measure(setting, device, 1 if options.toy else 5, options.seed)
        for row in rows:
            figures = f"{row['graphs_per_second']:,.0f}", f"{row['of_bare']:.2f}", f"{row['first_step_seconds']:.1f}"
            table.add_row(name, str(row["side"]), str(row["compiled"]), *figures)
        record.write(options.out, result)
    Console().print(table)


if __name__ == "__main__":
    main()
