"""The training loop: steps without synchronisation, evaluation, early stopping, checkpoints."""

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from lightning.fabric import Fabric
from torch import Tensor

from magnetite.batching import Batch
from magnetite.batching.buckets import Layout
from magnetite.linalg.memory import kept_memory
from magnetite.training.capture import Captured, Objective, compiled
from magnetite.training.checkpoints import FOLDER, Checkpoints, Progress
from magnetite.training.config import Config
from magnetite.training.data import Block, EvaluationData, Share, TrainingData
from magnetite.training.log import Display, RunLog, duration
from magnetite.training.models import build_model
from magnetite.training.optim import (
    AdaptiveClipping,
    Average,
    UpdateClipping,
    adamw,
    learning_rate,
    set_learning_rate,
)
from magnetite.training.sampled import SampledBlock, SampledEvaluationData, SampledTrainingData, Sampler

Evaluation = EvaluationData | SampledEvaluationData

PLANNED_EPOCHS = 1000
"""Number of epochs whose orders determine the shapes of batches."""


class Interrupted(KeyboardInterrupt):
    """Raised when the user stopped the run; its progress has been saved."""


class Trainer:
    """One training run, from its last checkpoint to the end.

    After `run`, the model is the one that was best in validation; `evaluate` evaluates it on a split.

    Args:
        config: The configuration of the run.
        folder: Folder of the run.
        fabric: The launched processes.
    """

    def __init__(self, config: Config, folder: Path, fabric: Fabric):
        self.config, self.folder, self.fabric = config, folder, fabric
        self.share = Share(fabric.global_rank, fabric.world_size)
        self.model = build_model(config.task, config.encoding, config.model, config.run.seed)
        self.encodings = {} if self.model.position is None else self.model.position.encodings()
        self.checkpoints = Checkpoints(folder / FOLDER)
        self.objective = Objective(self.model, config.task).to(fabric.device)
        optim = config.optim
        self.optimizer = adamw(
            self.model.parameters(), (optim.betas[0], optim.betas[1]), optim.weight_decay, fabric.device
        )
        self.forward, self.stepper = fabric.setup(compiled(self.objective, config.run.compile), self.optimizer)
        before, after = optim.clipped == "gradient", optim.clipped == "update"
        self.clip = AdaptiveClipping(self.model.parameters() if before else (), optim.clip)
        self.clip_update = UpdateClipping(self.model.parameters() if after else (), optim.clip)
        self.average = Average(dict(self.model.named_parameters()), optim.average)
        self.sampler: Sampler | None = None
        self._start(Progress())

    def restore(self) -> None:
        """Continue from the last checkpoint of the folder, if there is one."""
        self._start(self.checkpoints.restore(self.model, self.optimizer, self.average.values))

    def _start(self, progress: Progress) -> None:
        self.progress = progress
        self.began = time.perf_counter() - progress.elapsed
        self.losses = torch.tensor(progress.losses, dtype=torch.float64, device=self.fabric.device)
        self.logged_step: int | None = None
        self.logged_line = ""

    def prepare(self) -> None:
        """Load the training data, and plan the steps and the shapes of their batches."""
        config, device = self.config, self.fabric.device
        self.data = (SampledTrainingData if config.data.neighbours else TrainingData)(
            config.task, self.encodings, config.data, config.optim.batch, config.run.seed, device, self.share
        )
        if isinstance(self.data, SampledTrainingData):
            self.sampler = self.data.sampler  # encoded once for all splits
        self.total = max(1, round(config.optim.epochs * config.optim.budget * self.data.steps))
        self.warmup = min(self.total, round(config.optim.warmup * config.optim.budget * self.data.steps))
        if not self.progress.shapes:
            # Every epoch has its own order; those after the planned ones may enlarge the shapes.
            self.progress.shapes = self.data.shapes(epochs=min(-(-self.total // self.data.steps), PLANNED_EPOCHS))
        # A captured step reads the layouts of its shapes: keep them alive.
        self.layouts = [Layout.of(shape.buckets, device) for shape in self.progress.shapes]
        captures = config.run.capture and device.type == "cuda" and self.share.processes == 1
        captures = captures and self.sampler is None  # samples have many shapes
        captures = captures and all(getattr(part, "capturable", True) for part in self.model.modules())
        self.update_step: Callable[..., None] = Captured(self.update) if captures else self.update

    def run(self) -> None:
        """Train to the end, or until patience is exhausted."""
        self.prepare()
        self.valid = self.evaluation_data("valid")
        self.every = max(1, round(self.config.run.evaluate_every * self.data.steps))
        main = self.fabric.is_global_zero
        self.log = RunLog(self.folder, self.progress.step, enabled=main)
        memory = kept_memory() if self.fabric.device.type == "cpu" else nullcontext()
        with Display(self.total, self.progress.step, enabled=main) as self.display, interruptions() as stop, memory:
            try:
                self._train(stop)
            finally:
                self.log.close()
        self.fabric.barrier()
        self.load_best(self.progress.best_step)

    def evaluation_data(self, split: str) -> Evaluation:
        """A split, with its encodings if they fit into memory."""
        examples = self.config.task.examples(split, self.fabric.device)
        if self.config.data.neighbours:
            options = self.encodings, self.config.data, self.share, self.config.task, self.sampler
            return SampledEvaluationData(examples, *options)
        return EvaluationData(examples, self.encodings, self.config.data, self.share)

    @torch.no_grad()
    def evaluate(self, data: Evaluation, tune: bool = False) -> dict[str, float]:
        """Loss and metrics of a split; undefined ones, such as the AUC of a single class, are left out.

        Args:
            data: The split.
            tune: Whether this is the validation split, to which the task may fit what turns outputs into answers.
        """
        metric = self.config.task.metric(self.fabric.device)
        total = torch.zeros((), dtype=torch.float64, device=self.fabric.device)
        for loss, outputs, batch in self._outputs(data):
            metric.update(outputs, batch)
            total += loss
        metric.state = self._sum(metric.state)
        self.config.task.tune(self.model, metric, fit=tune)
        weight = float(self.config.task.weights(data.examples).sum(dtype=torch.float64))
        metrics = {**metric.compute(), "loss": float(self._sum(total)) / weight}
        return {name: value for name, value in metrics.items() if math.isfinite(value)}  # JSON has no others

    @torch.no_grad()
    def answers(self, data: Evaluation) -> Tensor | None:
        """The task's answers for all examples of a split, in their order; None if it keeps none."""
        found = [self.config.task.answers(outputs, self.model) for _, outputs, _ in self._outputs(data)]
        kept = [answers for answers in found if answers is not None]
        if not kept or isinstance(data, SampledEvaluationData):
            return None
        ids = torch.cat([torch.from_numpy(ids) for ids in data.plan])
        joined = torch.cat(kept).cpu()
        return torch.empty_like(joined).index_copy_(0, ids, joined)

    def _outputs(self, data: Evaluation) -> Iterator[tuple[Tensor, Tensor, Batch]]:
        """Loss and outputs of each batch of a split."""
        self.objective.eval()
        for batch in data.batches():
            # Not compiled: every batch has another shape.
            with self.fabric.autocast(), torch.compiler.set_stance("force_eager"):
                loss, outputs = self.objective(batch)
            yield loss, outputs.float(), batch
        self.objective.train()
        if self.fabric.device.type == "cuda":
            torch.cuda.empty_cache()  # other processes on this GPU can use what training does not need

    def _train(self, stop: threading.Event) -> None:
        blocks = self.data.blocks(self.progress.step)
        while not self._finished():
            block = next(blocks)
            if self.logged_step is None:  # the first block was generated and encoded: training starts now
                self.saved, self.logged, self.logged_step = *[time.perf_counter()] * 2, self.progress.step
            self._train_block(block, stop)
        if self.progress.step < self.total:
            self.display.line(f"stopped early at step {self.progress.step:,}: validation no longer improves")
        self.save()

    def _finished(self) -> bool:
        patience = self.config.run.patience
        return self.progress.step >= self.total or bool(patience and self.progress.worse >= patience)

    def _train_block(self, block: Block | SampledBlock, stop: threading.Event) -> None:
        progress = self.progress
        progress.shapes = block.grown(progress.shapes)
        for number in range(len(block)):
            self.step(block, number)
            progress.step += 1
            self.display.advance(progress.step)
            if progress.step % self.config.run.log_every == 0 or progress.step == self.total:
                self._log()
            if progress.step % self.every == 0 or progress.step == self.total:
                self._validate()
            if progress.step == self.logged_step and self._save_is_due():  # never between a step and its validation
                self.save()
            if stop.is_set():
                self.save()
                again = f"magnetite train --out {self.folder} --resume"
                self.display.line(f"stopped at step {progress.step:,} and saved: continue with `{again}`")
                raise Interrupted
            if self._finished():
                return

    def step(self, block: Block | SampledBlock, number: int) -> None:
        """Step `number` of the block: one update of the parameters by the mean loss of a whole batch."""
        step = self.progress.step
        # Dropout is a function of seed, step and process, so that a resumed run has the same.
        torch.manual_seed((self.config.run.seed * 2**40 + step * 2**10 + self.share.process) % 2**63)
        set_learning_rate(self.optimizer, learning_rate(step, self.total, self.warmup, self.config.optim.lr))
        self.average.prepare(step)
        self.block, ids = block, block.ids[number]
        # Resident data stay in place, so gathering the batch is captured, too.
        inputs = [ids] if self.data.resident else block.batches(ids, self.progress.shapes)
        self.update_step(block.weights[number], *inputs)

    def update(self, weight: Tensor, *inputs: Tensor | Batch) -> None:
        """Add up the gradients of the micro-batches, clip them, and update the parameters.

        Args:
            weight: Sum of the weights of the graphs of all processes.
            inputs: The micro-batches, or the numbers of their graphs in the pool of the block.
        """
        self.stepper.zero_grad(set_to_none=True)
        ids = inputs[0]
        batches = self.block.batches(ids, self.progress.shapes) if isinstance(ids, Tensor) else inputs
        for number, batch in enumerate(batches, start=1):
            with self.fabric.no_backward_sync(self.forward, enabled=number < len(batches)):
                loss, _ = self.forward(batch)
                mean = loss / weight
                self.fabric.backward(mean * self.share.processes)  # processes average their gradients
            self.losses[0] += mean.detach()
        self.losses[1] += 1
        self.clip()
        with self.clip_update():
            self.stepper.step()
        self.average.update()

    def _log(self) -> None:
        """Log the mean loss since the last call; the only function of the loop that synchronises with the device."""
        total, count = self.losses.tolist()
        loss = float(self._sum(torch.tensor(total, dtype=torch.float64, device=self.fabric.device))) / count
        self.losses.zero_()
        step, optim = self.progress.step, self.config.optim
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"the loss became {loss} before step {step}: lower optim.lr (now {optim.lr}) or optim.clip (now "
                f"{optim.clip}); {self.checkpoints.advice()}"
            )
        now = time.perf_counter()
        seconds = now - self.logged
        speed = (step - (self.logged_step or 0)) * optim.batch / seconds
        self.progress.seconds += seconds
        self.logged, self.logged_step = now, step
        rate = learning_rate(step - 1, self.total, self.warmup, optim.lr)
        self.log.write("train", step, {"loss": loss, "lr": rate, "graphs_per_second": round(speed, 1)})
        rows = "graphs" if self.sampler is None else "targets"
        self.display.describe(loss, speed, rows)
        self.logged_line = f"loss {loss:.4f} · {speed:,.0f} {rows}/s · "

    def _validate(self) -> None:
        if self.progress.step != self.logged_step:
            self._log()  # otherwise the time since the last line would be lost
        task, progress, start = self.config.task, self.progress, time.perf_counter()
        with self.average.used():
            metrics = self.evaluate(self.valid, tune=True)
        self.log.write("valid", progress.step, metrics)
        if task.selects not in metrics:
            raise FloatingPointError(
                f"{task.selects} of the validation split is not finite at step {progress.step}: lower optim.lr (now "
                f"{self.config.optim.lr}); {self.checkpoints.advice()}"
            )
        value = metrics[task.selects]
        better = progress.best is None or (value > progress.best if task.larger_is_better else value < progress.best)
        progress.worse = 0 if better else progress.worse + 1
        if better:
            progress.best, progress.best_step = value, progress.step
            if self.fabric.is_global_zero:
                with self.average.used():
                    self.checkpoints.save_best(self.model, progress.step)
            self.save()
        remaining = progress.seconds / max(1, progress.step) * (self.total - progress.step)
        self.display.line(
            f"step {progress.step:,}/{self.total:,} (epoch {progress.step / self.data.steps:.2f}) · "
            f"{self.logged_line}valid {task.selects} {value:.4f}{' (best)' if better else ''} in "
            f"{time.perf_counter() - start:.1f} s · {duration(remaining)} left"
        )
        self.logged = time.perf_counter()  # evaluation is not training time

    def _save_is_due(self) -> bool:
        return time.perf_counter() - self.saved >= 60 * self.config.run.checkpoint_minutes

    def save(self) -> None:
        """Save the progress, unless the parameters are no longer finite."""
        self.saved = time.perf_counter()
        self.progress.elapsed = self.saved - self.began
        self.progress.losses = tuple(self.losses.tolist())
        if not self.fabric.is_global_zero:
            return
        if not bool(torch.nn.utils.get_total_norm(self.model.parameters()).isfinite()):
            raise FloatingPointError(
                f"parameters are no longer finite at step {self.progress.step}: lower optim.lr (now "
                f"{self.config.optim.lr}); {self.checkpoints.advice()}"
            )
        self.checkpoints.save_last(self.model, self.optimizer, self.progress, self.average.values)

    def load_best(self, step: int) -> None:
        """Load the parameters of the best model, which was found at this step."""
        self.checkpoints.load_best(self.model, step)

    def _sum(self, tensor: Tensor) -> Tensor:
        return self.fabric.all_reduce(tensor, reduce_op="sum") if self.share.processes > 1 else tensor  # type: ignore[return-value]


@contextmanager
def interruptions() -> Iterator[threading.Event]:
    """An event that is set by SIGINT or SIGTERM; a second signal quits. Only the main thread receives signals.

    >>> with interruptions() as stop:
    ...     signal.raise_signal(signal.SIGINT)
    >>> stop.is_set()
    True
    """
    stop = threading.Event()

    def handle(number: int, frame: Any) -> None:  # noqa: ARG001
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        sys.stderr.write("\nstopping after this step and saving; press Ctrl-C again to quit without saving\n")

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
