"""Training on sampled subgraphs of large graphs: positions are encoded once, on the whole graphs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch, BatchShape, Neighbourhoods, sampled_batch
from magnetite.batching.buckets import epoch_order
from magnetite.batching.neighbours import evenly
from magnetite.graphs import Digraphs
from magnetite.tasks import Examples, Task
from magnetite.training.config import Data
from magnetite.training.data import Encodings, Pool, Share

EVALUATION_TARGETS = 256
"""Largest number of targets of an evaluation batch, whose neighbourhoods take memory."""


class Sampler:
    """Batches of the neighbourhoods of some nodes, with the positions that they have in the whole graphs.

    Args:
        examples: The whole graphs.
        encodings: The encodings that the model reads, by name.
        neighbours: Number of successors and of predecessors per node, for each hop.
        task: The task, which says what a target is; None if no targets are needed.
        like: A sampler of another split, whose encodings are used if it has the same graphs.
    """

    def __init__(
        self,
        examples: Examples,
        encodings: Encodings,
        neighbours: Sequence[int],
        task: Task | None = None,
        like: "Sampler | None" = None,
    ):
        self.task, self.graphs = task, examples.graphs
        if like is not None and _same(like.graphs, self.graphs):
            self.neighbourhoods, self.encodings = like.neighbourhoods, like.encodings
        else:
            self.neighbourhoods = Neighbourhoods(self.graphs, tuple(neighbours))
            self.encodings = Pool.encode(examples, encodings).encodings

    def batch(self, nodes: Int[Tensor, " nodes"], key: int) -> tuple[Batch, Int[Tensor, " nodes"]]:
        """A batch in which only these nodes have targets, and where they are among its nodes."""
        sample = self.neighbourhoods.sample(nodes, key)
        seeds = sample.seeds.to(self.graphs.device)
        changed = None
        if self.task is not None:
            chosen = torch.zeros(len(sample.nodes), dtype=torch.bool, device=self.graphs.device)
            changed = self.task.only(chosen.index_fill(0, seeds, True))
        return sampled_batch(self.graphs, sample, self.encodings, changed), seeds


@dataclass(frozen=True)
class SampledBlock:
    """The steps of an epoch, or what is left of it.

    Args:
        sampler: Makes the batches.
        ids: The targets of this process in each step.
        weights: Sum of the weights of all targets of each step, over all processes.
    """

    sampler: Sampler
    ids: Int[Tensor, "steps targets"]
    weights: Float[Tensor, " steps"]

    def __len__(self) -> int:
        return self.ids.shape[0]

    def grown(self, shapes: Sequence[BatchShape]) -> tuple[BatchShape, ...]:
        """The shapes, which are not planned: every batch has its own."""
        return tuple(shapes)

    def batches(self, ids: Int[Tensor, " targets"], shapes: Sequence[BatchShape]) -> list[Batch]:  # noqa: ARG002
        """The batch of a step with these targets, which also determine the random neighbours."""
        return [self.sampler.batch(ids, key=crc32(ids.cpu().numpy().tobytes()))[0]]


class SampledTrainingData:
    """The targets of nodes of large graphs as endless blocks of steps, each with the neighbourhoods of some targets.

    Args:
        task: The task, whose targets are those of nodes.
        encodings: The encodings that the model reads, by name.
        config: Numbers of neighbours.
        batch: Number of targets per step, over all processes.
        seed: Seed of the order of the targets, and of their neighbourhoods.
        device: Device of graphs and encodings.
        share: Which of several processes this is.
    """

    resident = False
    mode = "sampled"

    def __init__(
        self,
        task: Task,
        encodings: Encodings,
        config: Data,
        batch: int,
        seed: int,
        device: torch.device | str,
        share: Share | None = None,
    ):
        self.task, self.batch, self.seed, self.share = task, batch, seed, share or Share()
        if batch % self.share.processes:
            raise ValueError(
                f"optim.batch must be a multiple of the number of processes, {self.share.processes}, got {batch}"
            )
        examples = task.examples("train", device)
        weights = target_weights(task, examples)
        self.targets = weights.nonzero().squeeze(1)
        self.weights = weights[self.targets]
        self.steps = len(self.targets) // batch
        if not self.steps:
            raise ValueError(f"optim.batch must be at most {len(self.targets)}, the number of targets, got {batch}")
        self._made = examples, encodings, config.neighbours

    @cached_property
    def sampler(self) -> Sampler:
        """Makes the batches; the graphs are encoded when the first is needed."""
        return Sampler(*self._made, self.task)

    def shapes(self, epochs: int) -> tuple[BatchShape, ...]:  # noqa: ARG002
        """None: every batch has its own shape."""
        return ()

    def blocks(self, step: int = 0) -> Iterator[SampledBlock]:
        """One block per epoch, from a step on."""
        epoch, inside = divmod(step, self.steps)
        while True:
            rows = epoch_order(len(self.targets), self.seed, epoch)[: self.steps * self.batch]
            rows = torch.from_numpy(rows.reshape(self.steps, self.batch)[inside:]).to(self.targets.device)
            mine = rows[:, self.share.process :: self.share.processes]
            yield SampledBlock(self.sampler, self.targets[mine], self.weights[rows].sum(1))
            epoch, inside = epoch + 1, 0


class SampledEvaluationData:
    """Examples in batches of the neighbourhoods of their targets, every target once.

    Args:
        examples: The whole graphs, on the device of the model.
        encodings: The encodings that the model reads, by name.
        config: Numbers of neighbours.
        share: Which of several processes this is.
        task: The task, which says which nodes have targets; None for all nodes.
        like: A sampler of another split, whose encodings are used if it has the same graphs.
    """

    def __init__(
        self,
        examples: Examples,
        encodings: Encodings,
        config: Data,
        share: Share | None = None,
        task: Task | None = None,
        like: Sampler | None = None,
    ):
        self.examples, self.share = examples, share or Share()
        count = examples.graphs.num_nodes
        nodes = torch.arange(count) if task is None else target_weights(task, examples).cpu().nonzero().squeeze(1)
        self.groups = evenly(nodes, EVALUATION_TARGETS)
        self.sampler = Sampler(examples, encodings, config.neighbours, task, like)

    def __len__(self) -> int:
        return len(self.examples)

    def batches(self) -> Iterator[Batch]:
        """The batches of this process."""
        return (batch for batch, _, _ in self.samples())

    def samples(self) -> Iterator[tuple[Batch, Int[Tensor, " nodes"], Int[Tensor, " nodes"]]]:
        """The batches of this process, their targets as packed nodes, and where these are in the batch."""
        for number in range(self.share.process, len(self.groups), self.share.processes):
            nodes = self.groups[number]
            batch, places = self.sampler.batch(nodes, key=number)
            yield batch, nodes, places


def _same(one: Digraphs, other: Digraphs) -> bool:
    """Whether two graphs have the same nodes, edges and weights; features may differ."""
    tensors = [(graphs.node_ptr, graphs.edge_ptr, graphs.edges, graphs.edge_weight) for graphs in (one, other)]
    return all(first is second or torch.equal(first, second) for first, second in zip(*tensors, strict=True))


def target_weights(task: Task, examples: Examples) -> Float[Tensor, " nodes"]:
    """The weight of each node's target, 0 where it has none; an error if the targets are not those of nodes."""
    weights = task.node_weights(examples)
    if weights is None:
        raise ValueError(
            "data.neighbours trains on sampled neighbourhoods of nodes, but the targets are not those of nodes: use "
            "level node, or data.neighbours=[]"
        )
    return weights
