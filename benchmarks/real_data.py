"""Real data: circuits (HLS, four targets) and page graphs (Chameleon, Squirrel), our models against PyG's.

    python benchmarks/real_data.py --data-folder shared/data --out runs/real-data --workers 10 --minutes 9
    python benchmarks/real_data.py --merge runs/real-data            # writes results/real-data.json

Every row (a model and an encoding) has the same embedding and head, the same optimiser, number of epochs and batches,
and the same search: each setting of `TRIALS` once, on the first seed or split; validation chooses one, which all
seeds or splits then use. The epoch is chosen by validation, too, for each target. Node numbers are permuted. PyG's
encodings are PyG's transforms: eigenvectors of the symmetrised graph with random signs in training, and walks on the
directed and on the symmetrised graph. HLS is trained on standardised targets by the squared error; errors have the
units of the targets, and MAPE leaves out targets that are 0. `hls` is one network with four outputs, `hls-lut` one for
LUT.

Jobs run side by side on one device. Each one that is finished is a line in `jobs.jsonl`, and is not run again: `--done`
names folders with lines of earlier runs. `--toy` is a small size that runs on a CPU; `--one-line` is what `mt.train`
gives without any of this.
"""

import argparse
import json
import math
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from real_models import OURS, PYG, ROWS, Parts, Readout, build, side
from torch import Tensor

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch, BatchShape, gather
from magnetite.batching.buckets import split_sizes
from magnetite.encodings.results import NodeEncoding
from magnetite.io import record
from magnetite.io.storage import write_json
from magnetite.tasks.datasets import data_set

TARGETS = ("dsp", "lut", "ff", "cp")
PAGES = ("chameleon", "squirrel")
SPLITS = ("train", "valid", "test")

TRIALS = {
    "graph": [{"lr": lr, "dropout": dropout} for lr in (5e-4, 2e-3) for dropout in (0.0, 0.1)],
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
    epochs: int = 30
    steps: int = 250
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


def encode_part(work: tuple[str, list[tuple[Tensor, int]]]) -> np.ndarray:
    """PyG's encoding of some graphs, one after the other."""
    torch.set_num_threads(1)
    name, graphs = work
    torch.manual_seed(0)
    return torch.cat([PYG[name](edges, nodes) for edges, nodes in graphs]).numpy()


def encode_with_pyg(setting: Setting, names: Iterable[str], data: Iterable[str], workers: int) -> None:
    """Compute PyG's encodings that are not there yet, in several processes."""
    for each in dict.fromkeys(name if name in PAGES else "hls" for name in data):
        missing = [name for name in names if not pyg_file(setting, each, name).exists()]
        if not missing:
            continue
        graphs = read(setting, each)[0]
        lists = [(graph.edges.long(), graph.num_nodes) for graph in graphs]
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
        order = random.permutation(train)
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


# Jobs


def searches(data: str, rows: Iterable[tuple[str, str]]) -> list[Job]:
    """The trials of all rows, one job each; page graphs have all of them in one."""
    trials = range(1 if data in PAGES else len(TRIALS["graph"]))
    return [Job(data, model, encoding, "search", trial) for trial in trials for model, encoding in rows]


def finals(data: str, row: tuple[str, str], found: dict[str, dict[str, Any]], seeds: int) -> list[Job]:
    """The runs with the options that validation chose; empty as long as a trial is missing."""
    needed = [found.get(job.key) for job in searches(data, [row])]
    if not all(needed):
        return []
    runs = [run for line in needed if line for run in line.get("runs", [line]) if "score" in run]
    if not runs:
        return []
    best = min(runs, key=lambda run: run["score"])
    options = tuple(sorted(best["options"].items()))
    return [Job(data, *row, "final", seed, options) for seed in range(1 if data in PAGES else seeds)]


def lines_of(folders: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Finished jobs by key; the last line of a key counts, unless it failed."""
    found: dict[str, dict[str, Any]] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else [folder]:
            for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
                line = json.loads(text)
                if "error" not in line or line["key"] not in found:
                    found[line["key"]] = line
    return found


def execute(setting: Setting, options: argparse.Namespace) -> None:
    """Run the jobs that are not done yet, several side by side."""
    rows = [row for row in ROWS if not options.rows or f"{row[0]}/{row[1]}" in options.rows or row[0] in options.rows]
    encode_with_pyg(
        setting, [name for name in PYG if any(row[1] == name for row in rows)], options.data, os.cpu_count() or 1
    )
    found = lines_of([options.out, *options.done])
    found = {key: line for key, line in found.items() if "error" not in line or not options.again}
    log, begun = options.out / "jobs.jsonl", time.time()
    queue = [Job("hls", "one-line", "magnetic", "one-line")] if options.one_line else []
    for data in options.data:
        queue += searches(data, rows)
    queued = {job.key for job in queue}
    queue = [job for job in queue if job.key not in found]

    def more() -> list[Job]:
        every = [job for data in options.data for row in rows for job in finals(data, row, found, setting.seeds)]
        new = [job for job in every if job.key not in found and job.key not in queued]
        queued.update(job.key for job in new)
        return new

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool, log.open("a", encoding="utf-8") as file:
        waiting: set[Future[dict[str, Any]]] = {pool.submit(work, job, setting) for job in [*queue, *more()]}
        done, total = 0, len(waiting)
        while waiting:
            ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for line in (future.result() for future in ended):
                done += 1
                if line.get("late"):
                    continue
                found[line["key"]] = line
                file.write(json.dumps(line) + "\n")
                file.flush()
                tell(line, done, total, time.time() - begun)
            new = more()
            total += len(new)
            waiting |= {pool.submit(work, job, setting) for job in new}


def tell(line: dict[str, Any], done: int, total: int, seconds: float) -> None:
    """One line about a finished job."""
    took = line.get("seconds") or sum(run["seconds"] for run in line.get("runs", []))
    what = line.get("error", f"score {line['score']:.4f}" if "score" in line else "")
    speed = f", {line['steps_per_second']:.0f} steps/s" if "steps_per_second" in line else ""
    print(f"{seconds:6.0f} s  {done}/{total}  {line['key']}: {took:.0f} s{speed} {what}", flush=True)


# The table


def spread(values: Sequence[float]) -> dict[str, float]:
    """Mean and standard deviation."""
    return {"mean": statistics.fmean(values), "std": statistics.stdev(values) if len(values) > 1 else 0.0}


def merged(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """All rows of all data sets, with every seed or split."""
    result: dict[str, Any] = {}
    for data in dict.fromkeys(line["data"] for line in found.values() if line["stage"] == "final"):
        rows = []
        for model, encoding in ROWS:
            of = [
                line
                for line in found.values()
                if (line["data"], line["model"], line["encoding"]) == (data, model, encoding)
            ]
            last = sorted((line for line in of if line["stage"] == "final"), key=lambda line: line["number"])
            good = [line for line in last if "error" not in line]
            row = {"model": model, "encoding": encoding, "side": side(model, encoding)}
            row["errors"] = [line["error"] for line in of if "error" in line]
            if good and data in PAGES:
                runs = good[0]["runs"]
                row |= {"options": dict(good[0]["options"]), "parameters": runs[0]["parameters"]}
                row |= {
                    "accuracy": spread([run["test"] for run in runs]),
                    "valid": spread([run["valid"] for run in runs]),
                }
                row["splits"] = [run["test"] for run in runs]
            elif good:
                row |= {"options": good[0]["options"], "parameters": good[0]["parameters"]}
                row["epochs"] = [line["epochs"] for line in good]
                row["seconds"] = [round(line["seconds"], 1) for line in good]
                names = good[0]["targets"]
                row["seeds"] = [{name: line["targets"][name]["test"] for name in names} for line in good]
                row["targets"] = {
                    name: {
                        **{m: spread([line["targets"][name]["test"][m] for line in good]) for m in ("rmse", "mape")},
                        "valid": spread([line["targets"][name]["valid"]["rmse"] for line in good]),
                    }
                    for name in names
                }
            rows.append(row)
        result[data] = {"rows": [row for row in rows if len(row) > 4 or row["errors"]]}
    alone = [line for line in found.values() if line["stage"] == "one-line" and "error" not in line]
    if alone:
        result["one_line"] = {name: alone[0][name] for name in ("targets", "seconds", "preset", "parameters")}
    return result


def merge(folders: Sequence[Path], out: Path, seed: int) -> None:
    """Write `real-data.json`; device and commit are those of the jobs."""
    found = lines_of(folders)
    if not found:
        raise SystemExit(f"no finished jobs in {', '.join(map(str, folders))}: run them first")
    result = merged(found)
    content = record.Record("real-data", seed).content(result)
    for name in ("device", "commit"):
        content[name] = ", ".join(dict.fromkeys(line[name] for line in found.values()))
    content["seconds"] = round(
        sum(line.get("seconds") or sum(r["seconds"] for r in line.get("runs", [])) for line in found.values())
    )
    write_json(out / "real-data.json", content)
    show(result)


def show(result: dict[str, Any]) -> None:
    """A short table."""
    for data, found in result.items():
        if data == "one_line":
            print(
                "one line of mt.train:",
                {name: round(each["test"]["rmse"], 4) for name, each in found["targets"].items()},
            )
            continue
        print(f"\n{data}")
        for row in found["rows"]:
            name = f"{row['model']} + {row['encoding']}".ljust(28)
            if "accuracy" in row:
                print(f"{name} {100 * row['accuracy']['mean']:.2f} ± {100 * row['accuracy']['std']:.2f}")
            elif "targets" in row:
                each = (f"{t} {s['rmse']['mean']:.4f} ± {s['rmse']['std']:.4f}" for t, s in row["targets"].items())
                print(name, "  ".join(each))
            else:
                print(name, "; ".join(row["errors"])[:90])


def main() -> None:
    """Run, or merge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-folder", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("runs/real-data"), help="folder of the finished jobs")
    parser.add_argument("--done", type=Path, nargs="*", default=[], help="folders or files with jobs finished earlier")
    parser.add_argument(
        "--merge", type=Path, nargs="*", help="write results/real-data.json from these folders or files"
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the merged result")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "magnetite-real-data")
    parser.add_argument("--data", nargs="*", default=["hls", *PAGES])
    parser.add_argument("--rows", nargs="*", default=[], help="such as gps, or sat/magnetic; all by default")
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after this time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one-line", action="store_true")
    parser.add_argument("--again", action="store_true", help="repeat jobs that failed")
    parser.add_argument("--toy", action="store_true")
    for name in ("epochs", "steps", "width", "layers", "batch", "cap", "graphs", "seeds"):
        parser.add_argument(f"--{name}", type=float if name == "cap" else int)
    options = parser.parse_args()
    if options.merge is not None:
        merge(options.merge or [options.out], options.results, options.seed)
        return
    for folder in (options.out, options.cache):
        folder.mkdir(parents=True, exist_ok=True)
    setting = Setting(str(options.data_folder), str(options.cache), options.seed, **(TOY if options.toy else {}))
    given = {
        name: getattr(options, name)
        for name in ("epochs", "steps", "width", "layers", "batch", "cap", "graphs", "seeds")
    }
    setting = replace(setting, **{name: value for name, value in given.items() if value is not None})
    execute(replace(setting, deadline=time.time() + 60 * options.minutes), options)
    show(merged(lines_of([options.out, *options.done])))


if __name__ == "__main__":
    main()
