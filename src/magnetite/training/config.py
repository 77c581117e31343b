"""Everything that decides a training, in one frozen object that is checked when it is made."""

import hashlib
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from magnetite.tasks import TASKS, Playground, Task
from magnetite.training.encodings import ENCODINGS, EncodingChoice
from magnetite.training.models import MODELS, ModelChoice, Transformer

DATA_MODES = ("auto", "resident", "pooled", "fresh")
COMPILE_MODES = ("none", "whole", "layers")
PRECISIONS = ("32-true", "bf16-mixed")


@dataclass(frozen=True)
class Optim:
    """AdamW with adaptive clipping; `warmup` and `epochs` count epochs, `batch` graphs over all chunks and processes.

    `budget` shortens both for a cheaper training.
    """

    lr: float = 4e-4
    weight_decay: float = 6e-5
    betas: tuple[float, ...] = (0.7, 0.9)
    clip: float = 0.075
    batch: int = 384
    epochs: float = 30.0
    warmup: float = 2.0
    budget: float = 1.0

    def __post_init__(self) -> None:
        for name in ("lr", "clip", "batch", "epochs", "budget"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)} trains nothing: give a number above 0")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas={list(self.betas)} are no two numbers in [0, 1): try [0.9, 0.999]")
        if self.weight_decay < 0 or self.warmup < 0:
            raise ValueError(f"weight_decay={self.weight_decay} and warmup={self.warmup} must not be negative")


@dataclass(frozen=True)
class Data:
    """How examples reach the model.

    `resident` keeps all encodings, `pooled` encodes `pool` graphs at a time (both give the same batches), `fresh` draws
    every pool anew; `auto` is resident where the encodings fit into `memory` GiB and into three quarters of what a GPU
    or a quarter of what the machine has free, else pooled. A batch of more than `tokens` slots for nodes goes through
    the model in several portions, whose gradients are added up.
    """

    mode: str = "auto"
    pool: int = 65_536
    memory: float = 90.0
    tokens: int = 262_144

    def __post_init__(self) -> None:
        _check_choice("mode", self.mode, DATA_MODES)
        for name in ("pool", "tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} holds no graph: give a larger number")


@dataclass(frozen=True)
class Run:
    """How a training is run and watched; `evaluate_every` is a share of an epoch, `patience` counts evaluations.

    `compile` is none, whole (model and loss as one graph) or layers (each layer, once for all of its kind, and what is
    before and after them). `capture` replays a step as a CUDA graph, where one process trains on a GPU.
    """

    seed: int = 0
    precision: str = "32-true"
    compile: str = "none"
    capture: bool = True
    evaluate_every: float = 1.0
    patience: int = 0
    log_every: int = 50
    checkpoint_minutes: float = 3.0

    def __post_init__(self) -> None:
        _check_choice("precision", self.precision, PRECISIONS)
        _check_choice("compile", self.compile, COMPILE_MODES)
        if self.seed < 0:
            raise ValueError(f"seed={self.seed} is negative: give a number from 0")
        if not self.evaluate_every > 0 or self.log_every < 1:
            raise ValueError(
                f"evaluate_every={self.evaluate_every} and log_every={self.log_every} must be above 0: try 1.0 and 50"
            )


@dataclass(frozen=True)
class Config:
    """A training: what it learns, from what, with what.

    >>> config = Config.from_dict({"task": {"name": "sorting"}, "encoding": {"name": "magnetic", "k": 25}})
    >>> config.encoding
    Magnetic(..., k=25, ...)
    >>> Config.from_dict(config.to_dict()) == config
    True
    """

    task: Task
    encoding: EncodingChoice
    model: ModelChoice = field(default_factory=Transformer)
    optim: Optim = field(default_factory=Optim)
    data: Data = field(default_factory=Data)
    run: Run = field(default_factory=Run)

    def __post_init__(self) -> None:
        self.model.check(self.task)
        if self.encoding.pair_steps and not isinstance(self.task, Playground):
            raise ValueError(f"encoding.pair_steps={self.encoding.pair_steps} is for tasks of pairs: leave it out")

    @classmethod
    def from_dict(cls, tables: Mapping[str, Mapping[str, Any]]) -> "Config":
        """From plain tables; what is not known, or of another type, is named."""
        unknown = [name for name in tables if name not in {field.name for field in fields(cls)}]
        if unknown:
            raise ValueError(f"unknown table {unknown[0]!r}: choose one of {', '.join(f.name for f in fields(cls))}")
        parts: dict[str, Any] = {}
        for name, table in tables.items():
            if not isinstance(table, Mapping):
                raise ValueError(f"{name}={table!r} is no table: write {name}.option = value")
            if name in NAMED:
                parts[name] = _named(name, table)
            else:
                parts[name] = make(PLAIN[name], table, name)
        return cls(**parts)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The tables that `from_dict` makes the same object from, in JSON's types."""
        tables: dict[str, dict[str, Any]] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            named = {"name": _name_of(part.name, type(value))} if part.name in NAMED else {}
            tables[part.name] = json.loads(json.dumps({**named, **asdict(value)}))
        return tables

    @property
    def hash(self) -> str:
        """Twelve letters that stand for everything that decides the result; how it is watched does not."""
        tables = self.to_dict()
        deciding = ("seed", "precision", "evaluate_every", "patience")
        kept = {**tables, "run": {name: tables["run"][name] for name in deciding}}
        kept["data"] = {"fresh": self.data.mode == "fresh"}
        return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:12]


NAMED: dict[str, Mapping[str, type]] = {"task": TASKS, "encoding": ENCODINGS, "model": MODELS}
"""Tables whose `name` chooses among several kinds."""

PLAIN: dict[str, type] = {"optim": Optim, "data": Data, "run": Run}


def make(kind: type, table: Mapping[str, Any], where: str) -> Any:
    """A dataclass from a table.

    >>> make(Optim, {"lr": "fast"}, "optim")
    Traceback (most recent call last):
    ValueError: optim.lr='fast' is no float: give a value such as 0.0004
    """
    known = {option.name: option for option in fields(kind)}
    hints = typing.get_type_hints(kind)
    values = {}
    for name, value in table.items():
        if name not in known:
            of = f" of {_name_of(where, kind)!r}" if where in NAMED else ""
            choices = ", ".join(known) or "none (it has none)"
            raise ValueError(f"unknown option {where}.{name}{of}: choose one of {choices}")
        values[name] = _typed(value, hints[name], f"{where}.{name}", known[name].default)
    try:
        return kind(**values)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _typed(value: Any, hint: Any, name: str, default: Any) -> Any:
    """The value as the field's type: whole numbers count as floats, lists as tuples, nothing else as anything else."""
    if typing.get_origin(hint) is tuple and isinstance(value, list | tuple):
        return tuple(_typed(item, typing.get_args(hint)[0], name, default) for item in value)
    if isinstance(hint, types.UnionType):
        hint = typing.get_args(hint)[0]
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(hint, type) or type(value) is not hint:
        kind = getattr(hint, "__name__", str(hint))
        raise ValueError(f"{name}={value!r} is no {kind}: give a value such as {default}")
    return value


def _named(where: str, table: Mapping[str, Any]) -> Any:
    name = table.get("name")
    _check_choice(where, name, NAMED[where])
    return make(NAMED[where][str(name)], {key: value for key, value in table.items() if key != "name"}, where)


def _name_of(where: str, wanted: type) -> str:
    return next(name for name, kind in NAMED[where].items() if wanted is kind)


def _check_choice(name: str, value: object, known: Any) -> None:
    if value not in known:
        raise ValueError(f"{name}={value!r} is not known: choose one of {', '.join(known)}")
