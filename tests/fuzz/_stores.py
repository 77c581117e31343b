"""What magnetite stores: how each kind of folder is written, and how its content is read."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

import magnetite as mt
from magnetite import nn
from magnetite.io.record import Record, read_record
from magnetite.nn.module import describe
from magnetite.tasks import Distances
from magnetite.tasks.base import SPLITS
from magnetite.tasks.shards import read, write
from magnetite.training import runs
from magnetite.training.checkpoints import Checkpoints, Progress
from magnetite.training.config import configuration

GRAPHS = mt.Digraphs.from_edges([[[0, 1, 2], [1, 2, 3]], [[0, 1], [1, 0]]], [4, 2])
TASK = Distances(target="adjacency", train=6, per_size=1, shard_size=3)


class Store(NamedTuple):
    """A kind of folder.

    Args:
        write: Writes the content of this number, 0 or 1, to a folder.
        read: The content of a folder, as text and tensors.
    """

    write: Callable[[Path, int], object]
    read: Callable[[Path], Any]


def model_of(number: int) -> nn.DigraphTransformer:
    """A small model; of another width for another number."""
    with torch.random.fork_rng():
        torch.manual_seed(number)
        model = nn.DigraphTransformer(8 * (number + 1), 1, nn.GraphHead(1), heads=1)
        return model.eval()


def trained(number: int) -> tuple[nn.DigraphTransformer, torch.optim.Optimizer]:
    """A model and its optimiser; two numbers differ in parameters only."""
    model = model_of(0)
    for parameter in model.parameters():
        parameter.data.fill_(number + 1.0)
        parameter.grad = torch.full_like(parameter, number + 1.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=0.0)
    optimizer.step()
    return model, optimizer


def write_run(folder: Path, number: int) -> None:
    """Configuration, checkpoints and result; both contents are saved at the same step."""
    if not (folder / runs.CONFIG).exists():
        runs.write_json(folder / runs.CONFIG, configuration("sorting", "none", "quick").to_dict())
    model, optimizer = trained(number)
    checkpoints = Checkpoints(folder / "checkpoints")
    checkpoints.clean()
    checkpoints.save_best(model, 10)
    checkpoints.save_last(model, optimizer, Progress(step=10, best_step=10, seconds=number + 1.0))


def read_run(folder: Path) -> Any:
    """Configuration, progress, parameters and the state of the optimiser."""
    config = runs.read_config(folder).to_dict()
    model, optimizer = trained(7)
    progress = Checkpoints(folder / "checkpoints").restore(model, optimizer)
    state = {
        f"{i}.{name}": tensor for i, entry in optimizer.state_dict()["state"].items() for name, tensor in entry.items()
    }
    checkpoints = Checkpoints(folder / "checkpoints")
    best = nn.load(checkpoints.best(checkpoints.best_step()))
    return config, progress.to_dict(), model.state_dict(), state, best.state_dict()


def write_cache(folder: Path, number: int) -> None:
    """Two encodings of the same graphs."""
    mt.cached(mt.Laplacian(k=2), GRAPHS, folder)
    mt.cached(mt.RandomWalk(steps=2 + number), GRAPHS, folder)


def read_cache(folder: Path) -> Any:
    """The encodings, computed again if they are not there."""
    return [mt.cached(encoding, GRAPHS, folder).tensors() for encoding in (mt.Laplacian(k=2), mt.RandomWalk(steps=2))]


def write_result(folder: Path, number: int) -> None:
    """A measurement."""
    record = Record("result", seed=0)
    record.content = lambda result: {"name": "result", "seed": 0, "commit": "", "result": result}
    record.write(folder, {"f1": [0.5, None, number], "name": "walks"})


STORES = {
    "model": Store(lambda folder, number: model_of(number).save(folder), lambda folder: _described(nn.load(folder))),
    "run": Store(write_run, read_run),
    "data": Store(
        lambda folder, number: write(TASK, folder, SPLITS),
        lambda folder: [examples.tensors() for split in SPLITS for examples in read(folder, split)],
    ),
    "cache": Store(write_cache, read_cache),
    "result": Store(write_result, lambda folder: read_record(folder / "result.json")),
}


def same(one: Any, other: Any) -> bool:
    """Whether two contents are equal, tensors bit by bit."""
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def _described(model: nn.GraphModel) -> Any:
    return describe(model), model.state_dict()


warnings.filterwarnings("ignore")
