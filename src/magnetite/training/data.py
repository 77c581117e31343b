"""Training data: examples and encodings stay on the device, where batches are gathered without synchronisation.

The batches of an epoch are a function of seed and epoch alone, whether encodings are kept or computed pool by pool.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch, BatchShape, QueryPairs, gather
from magnetite.batching.buckets import (
    Extent,
    Rows,
    Sizes,
    batch_rows,
    epoch_order,
    evaluation_batches,
    grow,
    plan,
)
from magnetite.encodings import RandomWalk, cached
from magnetite.encodings.cache import Encoding
from magnetite.graphs import Digraphs
from magnetite.packed import Packed
from magnetite.tasks import Examples, Task
from magnetite.training.capture import CAPTURE_LOCK
from magnetite.training.config import Data

FIRST_POOLS = 4
"""Number of pools of fresh data that determine the batch shapes; later pools may enlarge them."""

SAMPLE = 256
"""Number of graphs that are encoded to estimate the memory that all encodings would take."""

EVALUATION_TOKENS, EVALUATION_QUERIES = 65_536, 2**20
"""Largest numbers of padded nodes and query pairs of an evaluation batch."""

FREE_FRACTION = {"cuda": 0.75, "cpu": 0.25}
"""Fraction of the free memory that encodings may take; on the CPU, concatenating them needs twice their memory."""

MEMORY, CONTROL_GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
"""Files in which Linux reports the free memory, and the limits of a container or a job."""

Encodings = Mapping[str, Encoding[Any]]


@dataclass(frozen=True)
class Share:
    """Which of several processes this is; each takes every `processes`-th graph of a batch.

    Args:
        process: Rank of this process.
        processes: Number of processes.
    """

    process: int = 0
    processes: int = 1


@dataclass(frozen=True)
class Pool:
    """Graphs on the device with their encodings and query pairs, from which batches are gathered.

    Args:
        graphs: The graphs.
        encodings: Results of encodings, by name.
        query: Query pairs of the graphs, for tasks that have them.
    """

    graphs: Digraphs
    encodings: Mapping[str, Packed]
    query: QueryPairs | None = None

    @classmethod
    def encode(cls, examples: Examples, encodings: Encodings, cache: str = "") -> "Pool":
        """Compute every encoding of the examples on their device, or read it from a cache."""
        graphs = examples.graphs
        bare = graphs.replace(node_features={}, edge_features={}, graph_features={}).to("cpu") if cache else None
        results = {}
        for name, encoding in encodings.items():
            # Features of node pairs take more time to read than to compute.
            if bare is None or isinstance(encoding, RandomWalk):
                results[name] = _stored(encoding, graphs.device)(graphs)
            else:
                results[name] = cached(encoding, bare, cache, device=graphs.device).to(graphs.device)
        return cls(graphs, results, examples.query())

    @property
    def bytes(self) -> int:
        """Memory of all tensors."""
        held = [self.graphs, *self.encodings.values(), *([] if self.query is None else [self.query])]
        return sum(tensor.nbytes for item in held for tensor in item.tensors().values())


@dataclass(frozen=True)
class Block:
    """Consecutive steps that share a pool.

    Args:
        pool: The examples.
        ids: The graphs of this process in each step, smallest first.
        weights: Sum of the weights of all graphs of each step, over all processes.
        extent: The shapes that the batches need.
    """

    pool: Pool
    ids: Int[Tensor, "steps graphs"]
    weights: Float[Tensor, " steps"]
    extent: Extent

    def __len__(self) -> int:
        return self.ids.shape[0]

    def grown(self, shapes: Sequence[BatchShape]) -> tuple[BatchShape, ...]:
        """The shapes of the micro-batches, enlarged where its batches need it."""
        return grow(shapes, self.extent)

    def batches(self, ids: Int[Tensor, " graphs"], shapes: Sequence[BatchShape]) -> list[Batch]:
        """The micro-batches of a step, which consists of these graphs."""
        pieces = ids.split([shape.graphs for shape in shapes])
        each, pool = zip(pieces, shapes, strict=True), self.pool
        return [gather(pool.graphs, piece, shape, pool.encodings, pool.query) for piece, shape in each]


class TrainingData:
    """The training examples of a task as endless blocks of steps, from any step on.

    Args:
        task: The task.
        encodings: The encodings that the model reads, by name.
        config: Where encodings come from.
        batch: Number of graphs per step, over all processes.
        seed: Seed of the order of the graphs, and of fresh data.
        device: Device of examples and encodings.
        share: Which of several processes this is.

    >>> from magnetite.tasks import Sorting
    >>> data = TrainingData(Sorting(train=100), {}, Data(), batch=40, seed=0, device="cpu")
    >>> block = next(data.blocks(step=2))
    >>> data.steps, len(block), [len(batch) for batch in block.batches(block.ids[0], data.shapes(epochs=1))]
    (5, 3, [40])
    """

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
        self.task, self.encodings, self.config, self.batch, self.seed = task, encodings, config, batch, seed
        self.device, self.share = torch.device(device), share or Share()
        self._whole = None if config.mode == "fresh" else _Measured.of(task, task.examples("train", device))
        count = _fresh_count(task) if self._whole is None else len(self._whole.examples)
        self.steps = count // batch
        if not self.steps:
            raise ValueError(f"optim.batch must be at most {count}, the number of training graphs, got {batch}")
        self._kept: Pool | None = None
        self.resident = self._whole is not None and self._fits(self._whole.examples)
        self.pool_steps = self.steps if self.resident else max(1, min(self.steps, config.pool // batch))
        self._epoch: tuple[int, Rows] | None = None

    @property
    def mode(self) -> str:
        """Where the encodings come from: resident, pooled or fresh."""
        return "fresh" if self._whole is None else "resident" if self.resident else "pooled"

    def shapes(self, epochs: int) -> tuple[BatchShape, ...]:
        """Shapes of micro-batches that fit all steps of the given epochs; for fresh data, the first pools, enlarged."""
        if self._whole is None:
            stream = self.task.stream(self.seed, self.pool_steps * self.batch, "cpu")
            sizes = [_sizes(next(stream)) for _ in range(FIRST_POOLS)]
            extents = [self._extent(self._rows(each, number), each) for number, each in enumerate(sizes)]
            return plan(Extent.join(extents).with_margin(), self.config.tokens, self.config.pairs)
        sizes = self._whole.sizes
        extents = [self._extent(self._rows(sizes, epoch), sizes) for epoch in range(epochs)]
        return plan(Extent.join(extents), self.config.tokens, self.config.pairs)

    def blocks(self, step: int = 0) -> Iterator[Block]:
        """The blocks from a step on; on a GPU, the next block is prepared during training on the current one."""
        spans = self._spans(step)
        if self.resident or self.device.type != "cuda":
            yield from (self._block(*span) for span in spans)
        else:
            yield from _ahead(lambda: self._block(*next(spans)), self.device)

    def _spans(self, step: int) -> Iterator[tuple[int, int, int]]:
        """Epoch, and first and last step in it, of every block from a step on."""
        epoch, inside = divmod(step, self.steps)
        while True:
            while inside < self.steps:
                end = min((inside // self.pool_steps + 1) * self.pool_steps, self.steps)
                yield epoch, inside, end
                inside = end
            epoch, inside = epoch + 1, 0

    def _block(self, epoch: int, first: int, last: int) -> Block:
        if self._whole is None:
            return self._fresh_block(epoch, first, last)
        if self._epoch is None or self._epoch[0] != epoch:  # several blocks share an epoch
            self._epoch = epoch, self._rows(self._whole.sizes, epoch)
        return self._cut(self._whole, self._epoch[1][first:last])

    def _fresh_block(self, epoch: int, first: int, last: int) -> Block:
        per_epoch = -(-self.steps // self.pool_steps)
        number = epoch * per_epoch + first // self.pool_steps
        count = self.pool_steps * self.batch
        fresh = _Measured.of(self.task, next(self.task.stream(self.seed, count, self.device, number)))
        start = first % self.pool_steps
        return self._cut(fresh, self._rows(fresh.sizes, number)[start : start + last - first])

    def _cut(self, measured: "_Measured", rows: Rows) -> Block:
        """The block of these steps, given as one row of graphs per step."""
        extent = self._extent(rows, measured.sizes)
        mine = rows[:, self.share.process :: self.share.processes]
        weights = measured.weights[torch.from_numpy(rows).to(self.device)].sum(1)
        if self.resident:
            if self._kept is None:
                self._kept = Pool.encode(measured.examples, self.encodings, self.config.cache)
                if self.device.type == "cuda":
                    torch.cuda.empty_cache()  # other processes on this GPU can use what the eigensolver needed
            return Block(self._kept, torch.from_numpy(mine).to(self.device), weights, extent)
        chosen = measured.examples.select(torch.from_numpy(mine.ravel()).to(self.device))
        local = torch.arange(mine.size, device=self.device).view(mine.shape)
        return Block(Pool.encode(chosen, self.encodings, self.config.cache), local, weights, extent)

    def _rows(self, sizes: Sizes, number: int) -> Rows:
        order = epoch_order(sizes.nodes.size, self.seed, number)
        return batch_rows(order, sizes.nodes, self.batch, self.config.stratified)

    def _extent(self, rows: Rows, sizes: Sizes) -> Extent:
        return Extent.of(rows, sizes, self.share.processes)

    def _fits(self, examples: Examples) -> bool:
        if self.config.mode != "auto":
            return self.config.mode == "resident"
        fits, self._kept = _fits(examples, self.encodings, self.config.memory, self.share.processes)
        return fits


class EvaluationData:
    """Examples in exact batches, every graph once; encodings are kept if they fit into memory.

    Args:
        examples: The examples, on the device of the model.
        encodings: The encodings that the model reads, by name.
        config: Limits of memory and of the size of a batch.
        share: Which of several processes this is.
    """

    def __init__(self, examples: Examples, encodings: Encodings, config: Data, share: Share | None = None):
        self.examples, self.encodings, self.share = examples, encodings, share or Share()
        self.sizes = _sizes(self.examples)
        tokens = min(config.tokens, EVALUATION_TOKENS)
        self.plan = evaluation_batches(self.sizes, tokens, EVALUATION_QUERIES, config.pairs)
        fits, pool = _fits(self.examples, encodings, config.memory, self.share.processes)
        self._kept = (pool or Pool.encode(self.examples, encodings, config.cache)) if fits else None

    def __len__(self) -> int:
        return len(self.examples)

    def batches(self) -> Iterator[Batch]:
        """The batches of this process."""
        device = self.examples.graphs.device
        for chosen in self.plan[self.share.process :: self.share.processes]:
            ids, pool = torch.from_numpy(chosen).to(device), self._kept
            if pool is None:
                pool = Pool.encode(self.examples.select(ids), self.encodings)
                ids = torch.arange(ids.numel(), device=device)
            yield gather(pool.graphs, ids, self.sizes.shape(chosen), pool.encodings, pool.query)


@dataclass(frozen=True, eq=False)
class _Measured:
    """Examples, their sizes and loss weights, computed once because there are many node pairs."""

    examples: Examples
    sizes: Sizes
    weights: Float[Tensor, " graphs"]

    @classmethod
    def of(cls, task: Task, examples: Examples) -> "_Measured":
        return cls(examples, _sizes(examples), task.weights(examples))


def room(device: torch.device, processes: int = 1) -> float:
    """Number of bytes that the encodings of one process may take; processes have one GPU each, or share a machine.

    The rest of the free memory is left for the model and for the computation of the encodings.
    """
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else _free_memory() / processes
    return FREE_FRACTION[device.type] * free


def _free_memory() -> float:
    """Number of bytes that are free on the machine and for this job; infinite if unknown."""
    free = math.inf
    if MEMORY.exists():
        free = 1024 * _number(MEMORY, "MemAvailable:")
    limit = CONTROL_GROUP / "memory.max"
    if limit.exists() and (most := limit.read_text(encoding="utf-8").strip()) != "max":
        used = int((CONTROL_GROUP / "memory.current").read_text(encoding="utf-8"))
        free = min(free, int(most) - used + _number(CONTROL_GROUP / "memory.stat", "inactive_file"))
    return free


def _number(path: Path, name: str) -> int:
    """The number beside a name in a file."""
    return next(int(line.split()[1]) for line in path.read_text(encoding="utf-8").splitlines() if line.startswith(name))


def _stored(encoding: Encoding[Any], device: torch.device) -> Encoding[Any]:
    """The encoding as it is stored in a pool: on a GPU, features of node pairs are in half precision.

    They are probabilities, and autocast would round them to bfloat16 anyway; half the memory lets larger data sets stay
    on the GPU. A few graphs are encoded and converted at a time, so the features of all graphs never exist in single
    precision.
    """
    if device.type == "cuda" and isinstance(encoding, RandomWalk):
        return replace(encoding, dtype=torch.float16)
    return encoding


def _sizes(examples: Examples) -> Sizes:
    graphs = examples.graphs
    return Sizes(*(counts.cpu().numpy() for counts in (graphs.sizes, graphs.edge_ptr.diff(), examples.query_counts)))


def _fits(examples: Examples, encodings: Encodings, memory: float, processes: int) -> tuple[bool, Pool | None]:
    """Whether the encodings of all examples fit into `memory` GiB and into free memory, estimated from a sample.

    If they fit and the sample has all examples, such as a single large graph, it is returned, to be encoded once.
    """
    device = examples.graphs.device
    limit = min(memory * 2**30, room(device, processes))
    ids = torch.linspace(0, len(examples) - 1, min(SAMPLE, len(examples)), device=device).long()
    sample = Pool.encode(examples if len(ids) == len(examples) else examples.select(ids), encodings)
    if device.type == "cuda":
        torch.cuda.empty_cache()  # other processes on this GPU can use what the eigensolver needed
    fits = sample.bytes / len(ids) * len(examples) <= limit
    return fits, sample if fits and len(ids) == len(examples) else None


def _fresh_count(task: Task) -> int:
    """Number of graphs of a training epoch, extrapolated from the first shard."""
    first = task.shard("train", 0)
    part = task.split("train")
    return len(first) * part.count // min(task.shard_size, part.count)


def _ahead(make: Callable[[], Block], device: torch.device) -> Iterator[Block]:
    """Prepare the next block, in a thread with its own CUDA stream, while the GPU trains on the current one.

    The thread pauses while a step is captured, which happens once per shape.
    """
    side = torch.cuda.Stream(device)

    def work() -> Block:
        with CAPTURE_LOCK, torch.cuda.device(device), torch.cuda.stream(side):
            block = make()
            side.synchronize()
        return block

    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(work)
        while True:
            block = waiting.result()
            # Memory of earlier blocks may still be read: the next block is written after the steps in flight.
            side.wait_stream(torch.cuda.current_stream(device))
            waiting = thread.submit(work)
            yield block
