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
from magnetite.io.tables import read_table
from magnetite.nn import GraphModel
from magnetite.packed import ragged_rows
from magnetite.tasks import Examples, Task
from magnetite.tasks.datasets import data_set
from magnetite.tasks.links import node_pairs, pairs_in_table
from magnetite.tasks.schema import Schema
from magnetite.tasks.targets import as_ids
from magnetite.training import runs
from magnetite.training.checkpoints import load
from magnetite.training.config import Config, Data, configuration
from magnetite.training.data import EvaluationData
from magnetite.training.sampled import SampledEvaluationData

MOST_PAIRS = 10_000_000
"""Number of node pairs up to which all are predicted if none are given."""


def train(
    task: Task | str,
    encoding: str | None = None,
    model: str | None = None,
    preset: str = "quick",
    out: str | Path | None = None,
    *,
    epochs: int | float | None = None,
    budget: int | float = 1.0,
    seed: int = 0,
    device: str = "auto",
    devices: int = 1,
    resume: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> "Run":
    """Train a model, and return the run.

    Args:
        task: A task such as `Supervised(graphs, target="y")`, or the name of one.
        encoding: Names of positional encodings, joined by + (magnetic+walks); none for none; by default magnetic, or
            that of the preset.
        model: Name of the model: transformer, sat, gnn or magnet; by default transformer, or that of the preset.
        preset: Name of one of the task's presets.
        out: Folder of the run; by default a new folder in `runs/`.
        epochs: Number of passes over the training graphs; by default that of the preset.
        budget: Fraction of the training to run; warm-up is shortened as well.
        seed: Seed of parameters, order of the graphs, and dropout.
        device: auto, cpu or cuda.
        devices: Number of processes, one per GPU.
        resume: Whether to continue the run in `out`.
        settings: Further settings by name, such as `{"optim.lr": 3e-4, "encoding.k": 16}`.
    """
    accelerator = runs.accelerator_named(device)
    changes: dict[str, dict[str, Any]] = {"model": {} if model is None else {"name": model}, "run": {"seed": seed}}
    changes["optim"] = {"budget": budget} | ({} if epochs is None else {"epochs": epochs})
    changes["run"]["compile"] = runs.compile_mode(accelerator)
    config = configuration(
        task, encoding, preset, changes, [f"{name}={value}" for name, value in (settings or {}).items()]
    )
    folder = Path(out) if out is not None else runs.default_folder(config, preset, resume)
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

    def predict(self, graphs: Any, pairs: Any = None) -> Tensor | list[str]:
        """Predictions for other graphs, in their order.

        Numbers have the units of the target; classes are those of the data, a list if they are text; each of several
        labels is true or false; links have probabilities. The model sees all edges of the graphs that are given.

        Args:
            graphs: `Digraphs`, PyG graphs, or a path as in `Supervised`, with the features of the training graphs.
            pairs: Node pairs to predict for, in tasks about pairs or links: `[2, m]` for a single graph, or
                `QueryPairs`; all node pairs by default.
        """
        return self.schema.answers(self.outputs(graphs, pairs))

    def table(self, sources: Sequence[str | Path], pairs: str | Path | None = None) -> dict[str, Any]:
        """Answers for the graphs in files or folders, as columns: graph, node or node pair, answer, probabilities.

        Args:
            sources: Paths as in `Supervised`.
            pairs: A table of the node pairs to predict for, with columns `source` and `target`, and `graph` with the
                file or the number of the graph, if there are several; all node pairs by default.
        """
        sets = [data_set(source) for source in sources]
        graphs = Digraphs.concat(self.schema.read(each) for each in sets)
        files = [name for each in sets for name in each.names or [""] * len(each.graphs)]
        labels = np.array(files if all(files) else range(len(graphs)))
        names = [name for each in sets for name in each.graphs.names or node_numbers(each.graphs)]
        query = None
        if pairs is not None:
            self._check_pairs()
            query = pairs_in_table(read_table(Path(pairs)), graphs, names, files if all(files) else None)
        query = self._query(graphs, query)
        columns: dict[str, Any] = {"graph": labels}
        if self.schema.rows == "node":
            columns = {"graph": labels[graphs.node_graph.numpy()], "node": names}
        elif query is not None:
            graph = torch.repeat_interleave(query.counts)
            ends = (query.nodes + graphs.node_ptr[graph]).tolist()
            columns = {"graph": labels[graph.numpy()]}
            columns |= {
                side: [names[node] for node in nodes] for side, nodes in zip(("source", "target"), ends, strict=True)
            }
        answers = self.schema.table(self.outputs(graphs, query))
        return columns | {
            f"predicted_{name}" if name in columns else name: column.numpy() if isinstance(column, Tensor) else column
            for name, column in answers.items()
        }

    @torch.no_grad()
    def outputs(self, graphs: Any, pairs: Any = None) -> Float[Tensor, "rows outputs"]:
        """The outputs of the network for each graph, node or node pair: numbers, or logits.

        Args:
            graphs: `Digraphs`, PyG graphs, or a path as in `Supervised`, with the features of the training graphs.
            pairs: Node pairs to predict for, as in `predict`.
        """
        schema, model = self.schema, self.model
        graphs = schema.read(data_set(graphs))
        if not len(graphs):
            raise ValueError("there are no graphs to predict for: give at least one")
        query = self._query(graphs, pairs)
        encodings = {} if model.position is None else model.position.encodings()
        device = next(model.parameters()).device
        examples, neighbours = Examples(graphs, pairs=query).to(device), self._neighbours
        if neighbours and schema.rows == "node":
            sampled = SampledEvaluationData(examples, encodings, Data(neighbours=neighbours))
            found = [(nodes, model(batch)[places].float().cpu()) for batch, nodes, places in sampled.samples()]
            nodes, outputs = (torch.cat(parts) for parts in zip(*found, strict=True))
            return torch.empty_like(outputs).index_copy_(0, nodes, outputs)
        data = EvaluationData(examples, encodings, Data())
        rows = {"graph": torch.arange(len(graphs) + 1), "node": graphs.node_ptr}
        pointer = rows[schema.rows] if query is None else query.query_ptr
        outputs = [model(batch).float().cpu() for batch in data.batches()]
        found = torch.cat(outputs)
        rows = torch.cat([ragged_rows(pointer, torch.from_numpy(ids)) for ids in data.plan])
        return torch.empty_like(found).index_copy_(0, rows, found)

    @property
    def _neighbours(self) -> tuple[int, ...]:
        """The sizes of the neighbourhoods that the model was trained on; empty if it was trained on whole graphs."""
        if self._config is not None:
            return self._config.data.neighbours
        return tuple(runs.read_tables(self.folder)["data"].get("neighbours", ()))

    def _query(self, graphs: Digraphs, pairs: Any) -> QueryPairs | None:
        """The node pairs to predict for, in tasks about pairs or links."""
        if pairs is not None:
            self._check_pairs()
        elif self.schema.rows != "pair":
            return None
        else:
            count = int((graphs.sizes.double() ** 2).sum())
            if count > MOST_PAIRS:
                raise ValueError(
                    f"the graphs have {count:,} node pairs, more than {MOST_PAIRS:,}: give some of them in pairs"
                )
            return QueryPairs.all_of(graphs)
        if isinstance(pairs, QueryPairs):
            return pairs
        given = as_ids(pairs, "pairs")
        if given.ndim == 2 and given.shape[0] != 2:
            raise ValueError(f"pairs must have the shape [2, m], sources and targets, got {tuple(given.shape)}")
        nodes = torch.from_numpy(node_pairs(given, graphs, "pairs"))
        counts = torch.tensor([0, nodes.shape[1]])
        labels = torch.zeros(nodes.shape[1], dtype=torch.int16)
        return QueryPairs(node_ptr=graphs.node_ptr, query_ptr=counts, nodes=nodes, labels=labels)

    def _check_pairs(self) -> None:
        if self.schema.rows != "pair":
            raise ValueError(f"the model predicts for each {self.schema.level}, not for node pairs: leave pairs out")
