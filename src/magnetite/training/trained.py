"""Training from Python: `train` returns a `Run`, which has the model, its metrics, and predictions for other graphs."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import QueryPairs
from magnetite.graphs import Digraphs, node_numbers
from magnetite.nn import GraphModel
from magnetite.packed import ragged_rows, starts
from magnetite.tasks import Examples, Task
from magnetite.tasks.datasets import data_set
from magnetite.tasks.schema import Schema
from magnetite.training import runs
from magnetite.training.checkpoints import load
from magnetite.training.config import Config, Data, configuration
from magnetite.training.data import EvaluationData


def train(
    task: Task | str,
    encoding: str = "magnetic",
    model: str = "transformer",
    preset: str = "quick",
    out: str | Path | None = None,
    *,
    seed: int = 0,
    device: str = "auto",
    devices: int = 1,
    resume: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> "Run":
    """Train a model, and return the run.

    Args:
        task: A task such as `Supervised(graphs, target="y")`, or the name of one.
        encoding: Names of positional encodings, joined by + (magnetic+walks); none for none.
        model: Name of the model: transformer, gnn or magnet.
        preset: Name of one of the task's presets.
        out: Folder of the run; by default a new folder in `runs/`.
        seed: Seed of parameters, order of the graphs, and dropout.
        device: auto, cpu or cuda.
        devices: Number of processes, one per GPU.
        resume: Whether to continue the run in `out`.
        settings: Further settings by name, such as `{"optim.lr": 3e-4, "encoding.k": 16}`.
    """
    accelerator = runs.accelerator_named(device)
    changes: dict[str, dict[str, Any]] = {"model": {"name": model}, "run": {"seed": seed}}
    changes["run"]["compile"] = runs.compile_mode(accelerator)
    config = configuration(
        task, encoding, preset, changes, [f"{name}={value}" for name, value in (settings or {}).items()]
    )
    folder = Path(out) if out is not None else Path("runs") / runs.default_name(config, preset)
    runs.train(config, folder, runs.Machine(accelerator, devices), resume)
    return Run(folder, config, accelerator)


class Run:
    """A training run.

    Args:
        folder: Folder of the run.
        config: Its configuration, read from the folder by default.
        device: Device of the model.
    """

    def __init__(self, folder: str | Path, config: Config | None = None, device: torch.device | str = "cpu"):
        self.folder, self.device = Path(folder), device
        self._config = config

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    @cached_property
    def config(self) -> Config:
        """The configuration."""
        return self._config or runs.read_config(self.folder)

    @cached_property
    def model(self) -> GraphModel:
        """The model that was best in validation, in evaluation mode."""
        return load(self.folder, self.device)

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """The metrics of each split by name."""
        return runs.read_result(self.folder)["figures"]

    @cached_property
    def schema(self) -> Schema:
        """What the model reads and predicts."""
        return runs.read_schema(self.folder)

    def predict(self, graphs: Any, query: QueryPairs | None = None) -> Tensor | list[str]:
        """Predictions for other graphs, in their order.

        Numbers have the units of the target; classes are those of the data, a list if they are text; each of several
        labels is true or false.

        Args:
            graphs: `Digraphs`, PyG graphs, or a path as in `Supervised`, with the features of the training graphs.
            query: Node pairs to predict for, in tasks about pairs; all node pairs by default.
        """
        return self.schema.answers(self.outputs(graphs, query))

    def table(self, sources: Sequence[str | Path]) -> dict[str, Any]:
        """Answers for the graphs in files or folders, as columns: graph, node or node pair, answer, probabilities.

        Args:
            sources: Paths as in `Supervised`.
        """
        sets = [data_set(source) for source in sources]
        graphs = Digraphs.concat(self.schema.read(each.graphs) for each in sets)
        names = [name for each in sets for name in each.graphs.names or node_numbers(each.graphs)]
        pairs = all_pairs(graphs) if self.schema.level == "pair" else None
        columns: dict[str, Any] = {"graph": np.arange(len(graphs))}
        if self.schema.level == "node":
            columns = {"graph": graphs.node_graph.numpy(), "node": names}
        elif pairs is not None:
            graph = torch.repeat_interleave(pairs.counts)
            ends = (pairs.nodes + graphs.node_ptr[graph]).tolist()
            columns = {"graph": graph.numpy()}
            columns |= {
                side: [names[node] for node in nodes] for side, nodes in zip(("source", "target"), ends, strict=True)
            }
        answers = self.schema.table(self.outputs(graphs, pairs))
        return columns | {
            name: column.numpy() if isinstance(column, Tensor) else column for name, column in answers.items()
        }

    @torch.no_grad()
    def outputs(self, graphs: Any, query: QueryPairs | None = None) -> Float[Tensor, "rows outputs"]:
        """The outputs of the network for each graph, node or node pair: numbers, or logits.

        Args:
            graphs: `Digraphs`, PyG graphs, or a path as in `Supervised`, with the features of the training graphs.
            query: Node pairs to predict for, in tasks about pairs; all node pairs by default.
        """
        schema, model = self.schema, self.model
        graphs = schema.read(data_set(graphs).graphs)
        pairs = all_pairs(graphs) if schema.level == "pair" and query is None else query
        encodings = {} if model.position is None else model.position.encodings()
        device = next(model.parameters()).device
        data = EvaluationData(Examples(graphs, pairs=pairs).to(device), encodings, Data())
        rows = {"graph": torch.arange(len(graphs) + 1), "node": graphs.node_ptr}
        pointer = rows[schema.level] if pairs is None else pairs.query_ptr
        outputs = [model(batch).float().cpu() for batch in data.batches()]
        found = torch.cat(outputs)
        rows = torch.cat([ragged_rows(pointer, torch.from_numpy(ids)) for ids in data.plan])
        return torch.empty_like(found).index_copy_(0, rows, found)


def all_pairs(graphs: Digraphs) -> QueryPairs:
    """All ordered node pairs of each graph, source by source."""
    counts = graphs.sizes**2
    size = torch.repeat_interleave(graphs.sizes, counts)
    number = torch.arange(len(size)) - torch.repeat_interleave(starts(counts)[:-1], counts)
    nodes = torch.stack([number // size, number % size])
    labels = torch.zeros(len(size), dtype=torch.int16)
    return QueryPairs(node_ptr=graphs.node_ptr, query_ptr=starts(counts), nodes=nodes, labels=labels)
