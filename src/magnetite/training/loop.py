"""The training loop: steps without waiting for the device, evaluation, early stopping, checkpoints."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Int
from lightning.fabric import Fabric
from torch import Tensor

from magnetite.batching import Batch
from magnetite.buckets import portions, shapes_for
from magnetite.nn import checkpoint
from magnetite.shapes import Layout
from magnetite.training.capture import Captured
from magnetite.training.checkpoints import FOLDER, Checkpoints, Position
from magnetite.training.config import Config
from magnetite.training.data import EvaluationData, TrainingData
from magnetite.training.interruptions import Interrupted, interruptions
from magnetite.training.log import Display, RunLog, time_left
from magnetite.training.models import build_model
from magnetite.training.objective import Objective, Sealed, compiled
from magnetite.training.optim import AdaptiveClipping, adamw, learning_rate, set_learning_rate
from magnetite.training.pools import Block, Share


class Trainer:
    """One training: made from a configuration, it runs from where its folder stands to the end.

    `evaluate` measures a split; after `run` the model is the one that validation chose.
    """

    def __init__(self, config: Config, folder: Path, fabric: Fabric, resume: bool = False):
        self.config, self.folder, self.fabric = config, folder, fabric
        self.share = Share(fabric.global_rank, fabric.world_size)
        self.model = build_model(config.task, config.encoding, config.model, config.run.seed)
        self.encodings = {} if self.model.position is None else self.model.position.encodings()
        self.checkpoints = Checkpoints(folder / FOLDER)
        self._set_up()
        self.position = self.checkpoints.restore(self.model, self.optimizer) if resume else Position()
        self.began = time.perf_counter() - self.position.elapsed
        self.losses = torch.tensor(self.position.losses, dtype=torch.float64, device=fabric.device)
        self.logged_step: int | None = None
        self.told = ""

    def _set_up(self) -> None:
        config, fabric = self.config, self.fabric
        self.objective = Objective(self.model, config.task).to(fabric.device)
        optim = config.optim
        optimizer = adamw(self.model.parameters(), (optim.betas[0], optim.betas[1]), optim.weight_decay, fabric.device)
        objective = compiled(self.objective, config.run.compile)
        self.forward, self.stepper = fabric.setup(objective, optimizer)
        self.optimizer = optimizer
        self.clip = AdaptiveClipping(self.model.parameters(), optim.clip)

    def prepare(self) -> None:
        """Draw the training data, and plan all steps and the shapes of their chunks."""
        config = self.config
        self.data = TrainingData(
            config.task,
            self.encodings,
            config.data,
            config.optim.batch,
            config.run.seed,
            self.fabric.device,
            self.share,
        )
        self.total = max(1, round(config.optim.epochs * config.optim.budget * self.data.steps))
        self.warmup = min(self.total, round(config.optim.warmup * config.optim.budget * self.data.steps))
        if not self.position.shapes:
            self.position.shapes = self.data.shapes(epochs=-(-self.total // self.data.steps))
        alone = self.fabric.device.type == "cuda" and self.share.processes == 1
        # A captured step reads the layout of its shapes: it must not be forgotten.
        self.layout = Layout.of(self.position.shapes, self.fabric.device)
        work = self._update_from_pool if self.data.resident else self.update_by
        self.update: Callable[..., None] = Captured(work) if alone and config.run.capture else work

    def run(self) -> None:
        """Train to the end, or to the end of patience."""
        self.prepare()
        self.valid = self.evaluation_data("valid")
        self.every = max(1, round(self.config.run.evaluate_every * self.data.steps))
        main = self.fabric.is_global_zero
        self.log = RunLog(self.folder, self.position.step, enabled=main)
        with Display(self.total, self.position.step, enabled=main) as self.display, interruptions() as stop:
            try:
                self._train(stop)
            finally:
                self.log.close()
        self.fabric.barrier()
        self.load_best(self.position.best_step)

    def evaluation_data(self, split: str) -> EvaluationData:
        """A split, encoded where it fits."""
        config = self.config
        return EvaluationData(config.task, split, self.encodings, config.data, self.fabric.device, self.share)

    @torch.no_grad()
    def evaluate(self, data: EvaluationData) -> dict[str, float]:
        """Loss and metrics of a split; what is undefined, such as the AUC of one class, is left out."""
        metric = self.config.task.metric(self.fabric.device)
        total = torch.zeros((), dtype=torch.float64, device=self.fabric.device)
        self.objective.eval()
        for batch in data.batches():
            # Not compiled: for these shapes that would take longer than it saves.
            with self.fabric.autocast(), torch.compiler.set_stance("force_eager"):
                loss, outputs = self.objective(Sealed([batch]))
            metric.update(outputs[0].float(), batch)
            total += loss
        self.objective.train()
        if self.fabric.device.type == "cuda":
            torch.cuda.empty_cache()  # what no step needs, others on this GPU can use
        metric.state = self._sum(metric.state)
        figures = {**metric.compute(), "loss": float(self._sum(total)) / data.weight}
        return {name: value for name, value in figures.items() if not math.isnan(value)}  # JSON knows no such number

    def _train(self, stop: threading.Event) -> None:
        blocks = self.data.blocks(self.position.step)
        while not self._finished():
            block = next(blocks)
            if self.logged_step is None:  # drawing and encoding the first block is no training
                self.saved, self.logged, self.logged_step = *[time.perf_counter()] * 2, self.position.step
            self._block(block, stop)
        self.save()

    def _finished(self) -> bool:
        patience = self.config.run.patience
        return self.position.step >= self.total or bool(patience and self.position.worse >= patience)

    def _block(self, block: Block, stop: threading.Event) -> None:
        self.position.shapes = shapes_for(self.position.shapes, block.most)
        for step in range(len(block)):
            self.step(block, step)
            self.position.step += 1
            if self.position.step % self.config.run.log_every == 0 or self.position.step == self.total:
                self._tell()
            if self.position.step % self.every == 0 or self.position.step == self.total:
                self._validate()
            if stop.is_set():
                self.save()
                step = f"{self.position.step:,}"
                self.display.line(f"stopped at step {step} and saved: the same command goes on, `train` with --resume")
                raise Interrupted
            if self._finished():
                return

    def step(self, block: Block, step: int) -> None:
        """One update by the mean loss of a whole batch."""
        position = self.position
        # Dropout is a function of seed, step and process, so that a resumed training draws the same.
        torch.manual_seed((self.config.run.seed * 2**40 + position.step * 2**10 + self.share.process) % 2**63)
        rate = learning_rate(position.step, self.total, self.warmup, self.config.optim.lr)
        set_learning_rate(self.optimizer, rate)
        self.block = block
        given = [block.rows[step]] if self.data.resident else block.chunks(step, position.shapes)
        self.update(block.totals[step], *given)

    def _update_from_pool(self, total: Tensor, row: Int[Tensor, " mine"]) -> None:
        """An update by graphs of the block, whose pool stays where it is: gathering them is captured as well."""
        self.update_by(total, *replace(self.block, rows=row[None]).chunks(0, self.position.shapes))

    def update_by(self, total: Tensor, *batches: Batch) -> None:
        """Gradients of the mean loss, portion by portion; then clip them, and move the parameters."""
        self.stepper.zero_grad(set_to_none=True)
        parts = portions(batches, self.config.data.tokens)
        for number, part in enumerate(parts, start=1):
            with self.fabric.no_backward_sync(self.forward, enabled=number < len(parts)):
                loss, _ = self.forward(Sealed(part))
                mean = loss / total
                self.fabric.backward(mean * self.share.processes)  # processes average gradients, and should add them
            self.losses[0] += mean.detach()
        self.losses[1] += 1
        self.clip()
        self.stepper.step()

    def _tell(self) -> None:
        """Log the mean loss since the last time; the only place in the loop that waits for the device."""
        total, count = self.losses.tolist()
        loss = float(self._sum(torch.tensor(total, dtype=torch.float64, device=self.fabric.device))) / count
        self.losses.zero_()
        step, optim = self.position.step, self.config.optim
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"the loss became {loss} before step {step}: lower optim.lr (now {optim.lr}) or optim.clip (now "
                f"{optim.clip}); the last good state is kept in {self.checkpoints.folder}"
            )
        now = time.perf_counter()
        seconds = now - self.logged
        speed = (step - (self.logged_step or 0)) * optim.batch / seconds
        self.position.seconds += seconds
        self.logged, self.logged_step = now, step
        rate = learning_rate(step - 1, self.total, self.warmup, optim.lr)
        self.log.write("train", step, {"loss": loss, "lr": rate, "graphs_per_second": round(speed, 1)})
        self.display.advance(step, loss, speed)
        self.told = f"loss {loss:.4f} · {speed:,.0f} graphs/s · "
        if now - self.saved >= 60 * self.config.run.checkpoint_minutes:
            self.save()

    def _validate(self) -> None:
        if self.position.step != self.logged_step:
            self._tell()  # whose time would be lost
        task, position, start = self.config.task, self.position, time.perf_counter()
        figures = self.evaluate(self.valid)
        self.log.write("valid", position.step, figures)
        value = figures[task.selects]
        better = position.best is None or (value > position.best if task.larger_is_better else value < position.best)
        position.worse = 0 if better else position.worse + 1
        if better:
            position.best, position.best_step = value, position.step
            if self.fabric.is_global_zero:
                self.checkpoints.save_best(self.model, position.step)
            self.save()
        left = position.seconds / max(1, position.step) * (self.total - position.step)
        self.display.line(
            f"step {position.step:,}/{self.total:,} (epoch {position.step / self.data.steps:.2f}) · "
            f"{self.told}valid {task.selects} {value:.4f}{' (best)' if better else ''} in "
            f"{time.perf_counter() - start:.1f} s · {time_left(left)} left"
        )
        self.logged = time.perf_counter()  # evaluation is no training

    def save(self) -> None:
        """Save where the training stands, unless it stands on something that is no number."""
        self.saved = time.perf_counter()
        self.position.elapsed = self.saved - self.began
        self.position.losses = tuple(self.losses.tolist())
        if not self.fabric.is_global_zero:
            return
        if not bool(torch.nn.utils.get_total_norm(self.model.parameters()).isfinite()):
            raise FloatingPointError(
                f"parameters are no longer finite at step {self.position.step}: lower optim.lr (now "
                f"{self.config.optim.lr}); the last good state is kept in {self.checkpoints.folder}"
            )
        self.checkpoints.save_last(self.model, self.optimizer, self.position)

    def load_best(self, step: int) -> None:
        """Take the parameters that were the best, found at this step."""
        loaded = checkpoint.load(self.checkpoints.best(step))
        self.model.load_state_dict(loaded.state_dict())

    def _sum(self, tensor: Tensor) -> Tensor:
        return self.fabric.all_reduce(tensor, reduce_op="sum") if self.share.processes > 1 else tensor  # type: ignore[return-value]
