"""Data at training speed: examples and encodings stay on the device, batches are gathered there, nothing waits.

The batches of an epoch are a function of seed and epoch alone, whether encodings are kept or computed pool by pool.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import Batch, Shape
from magnetite.buckets import Profile, Rows, Sizes, batch_rows, chunk_shapes, epoch_order, evaluation_batches, profile
from magnetite.tasks import Examples, Task, draw
from magnetite.training.capture import ALONE
from magnetite.training.config import Data
from magnetite.training.memory import room
from magnetite.training.pools import Block, Encodings, Pool, Share

FIRST_POOLS = 4
"""Pools of fresh data whose sizes decide the shapes of the chunks; a later one may make them grow."""

SAMPLE = 256
"""Graphs that are encoded to learn how much memory all of them would take."""

EVALUATION_TOKENS, EVALUATION_PAIRS = 65_536, 2**20
"""The most slots and pairs of a batch that is measured: it is not compiled, and larger graphs ask about more."""


class TrainingData:
    """The training examples of a task as blocks of steps, without end, from any step on.

    >>> from magnetite.tasks import Sorting
    >>> data = TrainingData(Sorting(train=100), {}, Data(), batch=40, seed=0, device="cpu")
    >>> block = next(data.blocks(step=2))
    >>> data.steps, len(block), [len(batch) for batch in block.chunks(0, data.shapes(epochs=1))]
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
        self._drawn = None if config.mode == "fresh" else _Drawn.of(task, draw(task, "train", device))
        count = _fresh_count(task) if self._drawn is None else len(self._drawn.examples)
        self.steps = count // batch
        if not self.steps:
            raise ValueError(f"{count} training graphs fill no batch of {batch}: lower optim.batch or raise task.train")
        self.resident = self._drawn is not None and self._fits(self._drawn.examples)
        self.pool_steps = self.steps if self.resident else max(1, min(self.steps, config.pool // batch))
        self._kept: Pool | None = None
        self._epoch: tuple[int, Rows] | None = None

    @property
    def mode(self) -> str:
        """Where the encodings come from: resident, pooled or fresh."""
        return "fresh" if self._drawn is None else "resident" if self.resident else "pooled"

    def shapes(self, epochs: int) -> tuple[Shape, ...]:
        """Chunks that hold all batches of so many epochs; of fresh data, those of the first pools, with some room."""
        if self._drawn is None:
            stream = self.task.stream(self.seed, self.pool_steps * self.batch, "cpu")
            drawn = [_sizes(next(stream)) for _ in range(FIRST_POOLS)]
            each = [self._profile(self._rows(sizes, number), sizes) for number, sizes in enumerate(drawn)]
            return chunk_shapes(Profile.join(each).with_room(), self.config.tokens)
        sizes = self._drawn.sizes
        each = [self._profile(self._rows(sizes, epoch), sizes) for epoch in range(epochs)]
        return chunk_shapes(Profile.join(each), self.config.tokens)

    def blocks(self, step: int = 0) -> Iterator[Block]:
        """The blocks from a step on, the next one prepared on a GPU while the last one trains."""
        places = self._places(step)
        if self.resident or self.device.type != "cuda":
            yield from (self._block(*place) for place in places)
        else:
            yield from _ahead(lambda: self._block(*next(places)), self.device)

    def _places(self, step: int) -> Iterator[tuple[int, int, int]]:
        """Epoch, first and last step in it of every block, from a step on."""
        epoch, inside = divmod(step, self.steps)
        while True:
            while inside < self.steps:
                end = min((inside // self.pool_steps + 1) * self.pool_steps, self.steps)
                yield epoch, inside, end
                inside = end
            epoch, inside = epoch + 1, 0

    def _block(self, epoch: int, first: int, last: int) -> Block:
        if self._drawn is None:
            return self._fresh_block(epoch, first, last)
        if self._epoch is None or self._epoch[0] != epoch:  # several blocks ask for the same epoch
            self._epoch = epoch, self._rows(self._drawn.sizes, epoch)
        return self._cut(self._drawn, self._epoch[1], slice(first, last))

    def _fresh_block(self, epoch: int, first: int, last: int) -> Block:
        per_epoch = -(-self.steps // self.pool_steps)
        number = epoch * per_epoch + first // self.pool_steps
        count = self.pool_steps * self.batch
        drawn = _Drawn.of(self.task, next(self.task.stream(self.seed, count, self.device, number)))
        start = first % self.pool_steps
        return self._cut(drawn, self._rows(drawn.sizes, number), slice(start, start + last - first))

    def _cut(self, drawn: "_Drawn", rows: Rows, steps: slice) -> Block:
        rows = rows[steps]
        most = self._profile(rows, drawn.sizes)
        mine = rows[:, self.share.process :: self.share.processes]
        totals = drawn.weights[torch.from_numpy(rows).to(self.device)].sum(1)
        if self.resident:
            if self._kept is None:
                self._kept = Pool.encode(drawn.examples, self.encodings)
                if self.device.type == "cuda":
                    torch.cuda.empty_cache()  # what the eigensolver took, others on this GPU can use
            return Block(self._kept, torch.from_numpy(mine).to(self.device), totals, most)
        chosen = drawn.examples.select(torch.from_numpy(mine.ravel()).to(self.device))
        local = torch.arange(mine.size, device=self.device).view(mine.shape)
        return Block(Pool.encode(chosen, self.encodings), local, totals, most)

    def _rows(self, sizes: Sizes, number: int) -> Rows:
        return batch_rows(epoch_order(sizes.nodes.size, self.seed, number), sizes.nodes, self.batch)

    def _profile(self, rows: Rows, sizes: Sizes) -> Profile:
        return profile(rows, sizes, self.share.processes)

    def _fits(self, examples: Examples) -> bool:
        if self.config.mode != "auto":
            return self.config.mode == "resident"
        return _fits(examples, self.encodings, self.config.memory, self.share.processes)


class EvaluationData:
    """A whole split in a few fixed shapes, every graph once; encodings are kept where they fit."""

    def __init__(
        self,
        task: Task,
        split: str,
        encodings: Encodings,
        config: Data,
        device: torch.device | str,
        share: Share | None = None,
    ):
        self.encodings, self.share = encodings, share or Share()
        self.examples = draw(task, split, device)
        self.weight = float(task.weights(self.examples).sum(dtype=torch.float64))
        self.plan = evaluation_batches(_sizes(self.examples), min(config.tokens, EVALUATION_TOKENS), EVALUATION_PAIRS)
        fits = _fits(self.examples, encodings, config.memory, self.share.processes)
        self._kept = Pool.encode(self.examples, encodings) if fits else None

    def __len__(self) -> int:
        return len(self.examples)

    def batches(self) -> Iterator[Batch]:
        """This process's batches."""
        device = self.examples.graphs.device
        for planned in self.plan[self.share.process :: self.share.processes]:
            ids = torch.from_numpy(planned.ids).to(device)
            if self._kept is not None:
                yield self._kept.batches(ids, [planned.shape])[0]
            else:
                chosen = Pool.encode(self.examples.select(ids), self.encodings)
                yield chosen.batches(torch.arange(ids.numel(), device=device), [planned.shape])[0]


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Examples, their sizes, and what each counts in the loss: measured once, as targets of all pairs are many."""

    examples: Examples
    sizes: Sizes
    weights: Float[Tensor, " graphs"]

    @classmethod
    def of(cls, task: Task, examples: Examples) -> "_Drawn":
        return cls(examples, _sizes(examples), task.weights(examples))


def _sizes(examples: Examples) -> Sizes:
    graphs, targets = examples.graphs, examples.targets
    pairs = torch.zeros_like(graphs.sizes) if targets is None else targets.counts
    return Sizes(*(counts.cpu().numpy() for counts in (graphs.sizes, graphs.edge_ptr.diff(), pairs)))


def _fits(examples: Examples, encodings: Encodings, memory: float, processes: int) -> bool:
    """Whether the encodings of all examples take less than `memory` GiB, and find room; judged by some of them."""
    device = examples.graphs.device
    limit = min(memory * 2**30, room(device, processes))
    ids = torch.linspace(0, len(examples) - 1, min(SAMPLE, len(examples)), device=device).long()
    sample = Pool.encode(examples.select(ids), encodings)
    return sample.bytes / len(ids) * len(examples) <= limit


def _fresh_count(task: Task) -> int:
    """Graphs of a training epoch, without drawing them all: as many times the drawn ones as in the first shard."""
    first = task.shard("train", 0)
    part = task.split("train")
    return len(first) * part.count // min(task.shard_size, part.count)


def _ahead(make: Callable[[], Block], device: torch.device) -> Iterator[Block]:
    """Make blocks one ahead, in a thread with a stream of its own, while the GPU works on the last one.

    Not while a step is captured: of that there is little, and none once all shapes were met.
    """
    side = torch.cuda.Stream(device)

    def work() -> Block:
        with ALONE, torch.cuda.device(device), torch.cuda.stream(side):
            block = make()
            side.synchronize()
        return block

    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(work)
        while True:
            block = waiting.result()
            # Memory of blocks that were given away may still be read: the next one is written after what was asked for.
            side.wait_stream(torch.cuda.current_stream(device))
            waiting = thread.submit(work)
            yield block
