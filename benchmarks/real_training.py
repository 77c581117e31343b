"""Data and training of `benchmarks/real_data.py`: one job, from the files to its scores."""

import math
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from real_models import OURS, PYG, Parts, Readout, build
from torch import Tensor

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch, BatchShape, gather
from magnetite.batching.buckets import split_sizes
from magnetite.encodings.results import NodeEncoding
from magnetite.io import record
from magnetite.tasks.datasets import data_set

TARGETS = ("dsp", "lut", "ff", "cp")
PAGES = ("chameleon", "squirrel")
SPLITS = ("train", "valid", "test")

TRIALS = {
    "graph": [{"lr": lr, "dropout": 0.0} for lr in (1e-3, 2e-3, 4e-3)],
    "node": [{"lr": lr, "dropout": dropout} for lr in (1e-3, 5e-3) for dropout in (0.2, 0.5)],
}
"""The settings that every row tries."""


@dataclass(frozen=True)
class Setting:
    """The budget, the same for all rows.

    Args:
        folder: Folder with `hls-dfg` and `heterophilous`.
        cache: Folder for PyG's encodings, which are computed once.
        seed: Seed of the permutation of the nodes.
        seeds: Number of seeds of HLS.
        epochs: Epochs of HLS; a trial has a third of them.
        steps: Most steps for page graphs.
        patience: Steps without a better validation accuracy after which page graphs stop.
        width: Size of a node's state.
        layers: Number of layers.
        batch: Graphs per batch.
        graphs: Number of HLS graphs; None for all.
        splits: Number of splits of page graphs.
        cap: Most seconds per training run.
        deadline: Time at which jobs stop, and are not counted.
    """

    folder: str
    cache: str
    seed: int = 0
    seeds: int = 3
    epochs: int = 18
    steps: int = 200
    patience: int = 75
    width: int = 128
    layers: int = 4
    batch: int = 128
    graphs: int | None = None
    splits: int = 10
    cap: float = 240.0
    deadline: float = math.inf


TOY: dict[str, Any] = {
    "epochs": 3,
    "steps": 4,
    "width": 32,
    "layers": 2,
    "batch": 32,
    "graphs": 300,
    "splits": 2,
    "seeds": 2,
}


@dataclass(frozen=True)
class Job:
    """One training run of HLS, or all trials or splits of a page graph.

    Args:
        data: `hls`, `hls-TARGET`, `chameleon` or `squirrel`.
        model: Name of the model.
        encoding: Name of the encoding.
        stage: `search`, `final` or `one-line`.
        number: The trial of a search, the seed of a final run.
        options: Learning rate and dropout of a final run.
    """

    data: str
    model: str
    encoding: str
    stage: str
    number: int = 0
    options: tuple[tuple[str, float], ...] = ()

    @property
    def key(self) -> str:
        """By which finished jobs are known."""
        return f"{self.data}/{self.model}/{self.encoding}/{self.stage}/{self.number}"


# Data


def permuted(graphs: mt.Digraphs, seed: int) -> tuple[mt.Digraphs, Tensor]:
    """The graphs with their nodes in a random order, and the old packed number of each node."""
    generator = torch.Generator().manual_seed(seed)
    graph = torch.repeat_interleave(graphs.sizes)
    order = (graph + torch.rand(len(graph), generator=generator, dtype=torch.float64)).argsort()
    number = torch.empty_like(order)
    number[order] = torch.arange(len(order))
    edges = number[graphs.edge_index] - graphs.node_ptr[:-1][graphs.edge_graph]
    features = {name: values[order] for name, values in graphs.node_features.items()}
    return graphs.replace(edges=edges.to(graphs.edges.dtype), node_features=features), order


@dataclass(frozen=True, eq=False)
class Held:
    """A data set on the device.

    Args:
        graphs: The graphs.
        targets: One row per graph, or one class per node.
        splits: Ids of the graphs, or masks of the nodes, for every split.
        encodings: Encodings by name; those of PyG are read from files.
        sizes: Number of nodes and of edges per graph, on the CPU.
    """

    graphs: mt.Digraphs
    targets: Tensor
    splits: list[dict[str, Any]]
    encodings: dict[str, Any]
    sizes: tuple[np.ndarray, np.ndarray]

    def encoded(self, name: str, setting: Setting, data: str) -> dict[str, Any]:
        """The encoding of a row, computed once per process."""
        if name == "none":
            return {}
        if name not in self.encodings:
            if name in PYG:
                values = torch.from_numpy(np.load(pyg_file(setting, data, name))).to(self.graphs.device)
                self.encodings[name] = NodeEncoding(node_ptr=self.graphs.node_ptr, values=values)
            else:
                self.encodings[name] = OURS[name](self.graphs)
        return {name: self.encodings[name]}

    def batch(self, ids: np.ndarray, encodings: dict[str, Any]) -> Batch:
        """A batch, without waiting for the device."""
        nodes, edges = (counts[ids] for counts in self.sizes)
        buckets, order = split_sizes(nodes)
        shape = BatchShape(buckets, int(nodes.sum()), int(edges.sum()))
        return gather(self.graphs, torch.from_numpy(ids).to(self.graphs.device), shape, encodings, order=order)


def device() -> str:
    """Where to train."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def read(setting: Setting, data: str) -> tuple[mt.Digraphs, Tensor, list[dict[str, Any]]]:
    """Graphs with permuted nodes, targets and splits, on the CPU."""
    folder = Path(setting.folder)
    if data not in PAGES:
        found = data_set(str(folder / "hls-dfg"))
        graphs, splits = found.graphs, {name: np.array(ids) for name, ids in found.splits["scaffold"].items()}
        values = torch.stack([graphs.graph_features[name].float() for name in targets_of(data)], dim=1)
        if setting.graphs is not None:
            splits = {name: ids[: setting.graphs // 3] for name, ids in splits.items()}
            chosen = torch.from_numpy(np.concatenate([splits[name] for name in SPLITS]))
            ends = np.cumsum([0, *(len(splits[name]) for name in SPLITS)])
            graphs, values = graphs.select(chosen), values[chosen]
            splits = {name: np.arange(ends[i], ends[i + 1]) for i, name in enumerate(SPLITS)}
        return permuted(graphs.replace(graph_features={}), setting.seed)[0], values, [splits]
    with np.load(folder / "heterophilous" / f"{data}_filtered_directed.npz") as stored:
        arrays = {name: torch.from_numpy(stored[name]) for name in stored}
    graphs = mt.Digraphs.from_edges(arrays["edges"].T, num_nodes=len(arrays["node_labels"]))
    graphs, order = permuted(graphs.replace(node_features={"x": arrays["node_features"]}), setting.seed)
    names = dict(zip(SPLITS, ("train", "val", "test"), strict=True))
    splits = [
        {name: arrays[f"{stored}_masks"][number][order] for name, stored in names.items()}
        for number in range(min(setting.splits, len(arrays["train_masks"])))
    ]
    return graphs, arrays["node_labels"][order], splits


def targets_of(data: str) -> tuple[str, ...]:
    """The targets of `hls` or `hls-TARGET`."""
    return TARGETS if data == "hls" else (data.removeprefix("hls-"),)


@cache
def held(setting: Setting, data: str) -> Held:
    """The data set on the device; one per process."""
    graphs, targets, splits = read(setting, data)
    sizes = graphs.sizes.numpy(), graphs.edge_ptr.diff().numpy()
    if data in PAGES:
        splits = [{name: mask.to(device()) for name, mask in split.items()} for split in splits]
    return Held(graphs.to(device()), targets.to(device()), splits, {}, sizes)


def pyg_file(setting: Setting, data: str, encoding: str) -> Path:
    """Where an encoding of PyG is kept."""
    which = data if data in PAGES else f"hls-{setting.graphs or 'all'}"
    return Path(setting.cache) / f"{which}-{setting.seed}-{encoding}.npy"


def encode_part(work: tuple[str, list[tuple[np.ndarray, int]]]) -> np.ndarray:
    """PyG's encoding of some graphs, one after the other."""
    torch.set_num_threads(1)
    name, graphs = work
    torch.manual_seed(0)
    return torch.cat([PYG[name](torch.from_numpy(edges), nodes) for edges, nodes in graphs]).numpy()


def encode_with_pyg(setting: Setting, names: Iterable[str], data: Iterable[str]) -> None:
    """Compute PyG's encodings that are not there yet, in several processes."""
    workers = os.cpu_count() or 1
    for each in dict.fromkeys(name if name in PAGES else "hls" for name in data):
        missing = [name for name in names if not pyg_file(setting, each, name).exists()]
        if not missing:
            continue
        graphs = read(setting, each)[0]
        # NumPy arrays, since each tensor that is sent to another process takes a file descriptor.
        lists = [(graph.edges.long().numpy(), graph.num_nodes) for graph in graphs]
        size = max(1, -(-len(lists) // (8 * workers)))
        parts = [lists[start : start + size] for start in range(0, len(lists), size)]
        with multiprocessing.get_context("spawn").Pool(min(workers, len(parts))) as pool:
            for name in missing:
                found = np.concatenate(pool.map(encode_part, [(name, part) for part in parts]))
                np.save(pyg_file(setting, each, name), found)


# Training


class Late(Exception):
    """The time of the whole benchmark is over."""


def parts_of(data: Held, setting: Setting, job: Job, dropout: float) -> Parts:
    """Embedding and head."""
    features, edges = data.graphs.node_features["x"], data.graphs.edge_features
    if job.data in PAGES:
        embedding, head = nn.LinearNodes("x", features.shape[1]), nn.NodeHead(int(data.targets.max()) + 1)
        return Parts(setting.width, setting.layers, dropout, embedding, None, head)
    sizes = {"x": tuple((features.amax(0) + 1).tolist())}
    of_edges = {"edge_attr": tuple((edges["edge_attr"].amax(0) + 1).tolist())}
    head = Readout(data.targets.shape[1], float(data.sizes[0].mean()), dropout)
    return Parts(setting.width, setting.layers, dropout, nn.CategoryNodes(sizes), nn.CategoryEdges(of_edges), head)


def optimiser_of(model: torch.nn.Module, lr: float, decay: float, steps: int) -> tuple[Any, Any]:
    """AdamW, a short warm-up and a cosine."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=decay, fused=device() == "cuda")
    warm = max(1, steps // 20)

    def rate(step: int) -> float:
        return min((step + 1) / warm, 0.5 * (1 + math.cos(math.pi * min(1, step / steps))))

    return optimiser, torch.optim.lr_scheduler.LambdaLR(optimiser, rate)


def grouped(order: np.ndarray, sizes: np.ndarray, batch: int, random: np.random.Generator) -> np.ndarray:
    """Shuffled graphs, reordered so that the graphs of a batch have similar sizes and need little padding.

    Graphs are sorted by size within windows of sixteen batches; the batches are then shuffled.
    """
    windows = np.array_split(order, max(1, len(order) // (16 * batch)))
    ordered = np.concatenate([window[np.argsort(sizes[window], kind="stable")] for window in windows])
    whole = len(ordered) // batch * batch
    return np.concatenate([random.permutation(ordered[:whole].reshape(-1, batch)).ravel(), ordered[whole:]])


def train_graphs(job: Job, setting: Setting, options: dict[str, float], seed: int, epochs: int) -> dict[str, Any]:
    """One run of HLS: errors in the units of the targets at the epoch that validation chooses for each target."""
    data = held(setting, job.data)
    (splits,), encodings = data.splits, data.encoded(job.encoding, setting, job.data)
    torch.manual_seed(seed)
    model = build(job.model, job.encoding, parts_of(data, setting, job, options["dropout"])).to(device())
    train = splits["train"]
    mean, std = data.targets[train].mean(0), data.targets[train].std(0)
    wanted = (data.targets - mean) / std
    count = max(1, len(train) // setting.batch)
    optimiser, schedule = optimiser_of(model, options["lr"], 1e-5, epochs * count)
    rest = np.concatenate([splits["valid"], splits["test"]])
    rest = rest[np.argsort(data.sizes[0][rest], kind="stable")]
    fixed = [(ids, data.batch(ids, encodings)) for ids in np.array_split(rest, -(-len(rest) // (2 * setting.batch)))]
    random = np.random.default_rng(seed)
    started, curve, best = time.perf_counter(), [], {}
    for epoch in range(epochs):
        model.train()
        order = grouped(random.permutation(train), data.sizes[0], setting.batch, random)
        for step in range(count):
            ids = order[step * setting.batch : (step + 1) * setting.batch]
            loss = (model(data.batch(ids, encodings)) - wanted[ids]).square().mean()
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            if time.time() > setting.deadline:
                raise Late
        found = errors(model, fixed, data.targets, mean, std, splits)
        curve.append([float(rmse) for rmse in found["valid"]["rmse"]])
        for column, name in enumerate(targets_of(job.data)):
            now = {s: {m: float(values[column]) for m, values in found[s].items()} for s in ("valid", "test")}
            if epoch == 0 or now["valid"]["rmse"] < best[name]["valid"]["rmse"]:
                best[name] = {**now, "epoch": epoch + 1}
        if time.perf_counter() - started > setting.cap:
            break
    seconds = time.perf_counter() - started
    score = statistics.fmean(best[name]["valid"]["rmse"] / float(std[i]) for i, name in enumerate(targets_of(job.data)))
    return {
        "score": score if math.isfinite(score) else math.inf,
        "targets": best,
        "epochs": len(curve),
        "wanted_epochs": epochs,
        "curve": curve,
        "seconds": seconds,
        "steps_per_second": len(curve) * count / seconds,
        "parameters": model.parameter_count,
    }


@torch.no_grad()
def errors(
    model: torch.nn.Module,
    fixed: list[tuple[np.ndarray, Batch]],
    targets: Tensor,
    mean: Tensor,
    std: Tensor,
    splits: dict[str, Any],
) -> dict[str, dict[str, Tensor]]:
    """RMSE and MAPE per target of validation and test."""
    model.eval()
    answers = torch.zeros_like(targets)
    for ids, batch in fixed:
        answers[torch.from_numpy(ids).to(answers.device)] = model(batch) * std + mean
    return {name: scores(answers[splits[name]], targets[splits[name]]) for name in ("valid", "test")}


def scores(answers: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """RMSE and MAPE of each column."""
    off, real = answers - targets, targets != 0
    relative = torch.where(real, off.abs() / targets.abs().clamp(min=1e-12), 0.0).sum(0) / real.sum(0)
    return {"rmse": off.square().mean(0).sqrt().cpu(), "mape": relative.cpu()}


def train_nodes(job: Job, setting: Setting, options: dict[str, float], split: int) -> dict[str, Any]:
    """One run on a page graph: accuracies at the step that validation chooses."""
    data = held(setting, job.data)
    masks, encodings = data.splits[split], data.encoded(job.encoding, setting, job.data)
    torch.manual_seed(split)
    model = build(job.model, job.encoding, parts_of(data, setting, job, options["dropout"])).to(device())
    optimiser, schedule = optimiser_of(model, options["lr"], 5e-4, setting.steps)
    batch = data.batch(np.array([0]), encodings)
    train = masks["train"].nonzero().squeeze(1)
    wanted, started = data.targets[train], time.perf_counter()
    found: list[Tensor] = []
    for step in range(setting.steps):
        model.train()
        loss = torch.nn.functional.cross_entropy(model(batch)[train], wanted)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            right = (model(batch).argmax(1) == data.targets).float()
            found.append(torch.stack([right[masks[name]].mean() for name in ("valid", "test")]))
        if time.time() > setting.deadline:
            raise Late
        if step % 25 == 24 and step - int(torch.stack(found)[:, 0].argmax()) > setting.patience:
            break
    every = torch.stack(found).cpu()
    best = int(every[:, 0].argmax())
    return {
        "score": -float(every[best, 0]),
        "valid": float(every[best, 0]),
        "test": float(every[best, 1]),
        "step": best + 1,
        "steps": len(every),
        "seconds": time.perf_counter() - started,
        "parameters": model.parameter_count,
    }


def train_one_line(setting: Setting, preset: str) -> dict[str, Any]:
    """What a user gets from `mt.train`: the magnetic encoding, our transformer and a preset."""
    graphs, values, (splits,) = read(setting, "hls")
    graphs = graphs.replace(graph_features={name: values[:, i] for i, name in enumerate(TARGETS)})
    ids = {name: torch.from_numpy(split) for name, split in splits.items()}
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        task = mt.tasks.Supervised(graphs, target=TARGETS, level="graph", kind="regression", splits=ids)
        run = mt.train(task, encoding="magnetic", model="transformer", preset=preset, out=Path(folder) / "run")
        seconds = time.perf_counter() - started
        answers = torch.as_tensor(run.predict(graphs.select(ids["test"])))
    found = scores(answers.reshape(-1, len(TARGETS)).float().cpu(), values[splits["test"]])
    best = {name: {"test": {m: float(each[i]) for m, each in found.items()}} for i, name in enumerate(TARGETS)}
    return {"targets": best, "seconds": seconds, "preset": preset, "parameters": run.model.parameter_count}


def work(job: Job, setting: Setting) -> dict[str, Any]:
    """Run a job; what goes wrong is a result, too."""
    if job.stage != "one-line":
        torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")  # TF32 for all
    made = {**asdict(job), "key": job.key, "device": record.device(), "commit": record.commit()}
    made["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        if job.stage == "one-line":
            made |= train_one_line(setting, "quick" if setting.graphs is not None else "default")
        elif job.data in PAGES:
            made["runs"] = list(node_runs(job, setting))
        else:
            options = TRIALS["graph"][job.number] if job.stage == "search" else dict(job.options)
            epochs = max(1, setting.epochs // 3) if job.stage == "search" else setting.epochs
            seed = 0 if job.stage == "search" else job.number
            made |= {"options": options, **train_graphs(job, setting, options, seed, epochs)}
    except Late:
        made["late"] = True
    except Exception as error:  # one row must not end the others
        made["error"] = f"{type(error).__name__}: {error}"
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return made


def node_runs(job: Job, setting: Setting) -> Iterator[dict[str, Any]]:
    """The trials on the first split, or the same options on every split."""
    if job.stage == "search":
        for options in TRIALS["node"]:
            yield {"options": options, **train_nodes(job, setting, options, 0)}
        return
    for split in range(len(held(setting, job.data).splits)):
        yield {"split": split, **train_nodes(job, setting, dict(job.options), split)}
