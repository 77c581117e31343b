"""The configuration of a training run, one frozen object that is checked when it is made; and its presets."""

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from magnetite.encodings.checks import (
    COUNT,
    COUNT_OR_NONE,
    DROPOUT,
    FRACTION,
    NON_NEGATIVE,
    POSITIVE,
    SEED,
    Domain,
    check_fields,
    domain_of,
    field_hints,
)
from magnetite.linalg.potential import Adaptive
from magnetite.tasks import TASKS, Task
from magnetite.training.encodings import PositionalEncodings, named, names_known, options_named
from magnetite.training.models import MODELS, ModelOptions, Transformer
from magnetite.training.options import (
    check_choice,
    known_option,
    later,
    make,
    options_of,
    parse,
    plain,
    unchanged_later,
)

DATA_MODES = Domain(choices=("auto", "resident", "pooled", "fresh"))
COMPILE_MODES = Domain(choices=("none", "whole", "layers"))
CLIPPED = Domain(choices=("gradient", "update"))
PRECISIONS = Domain(choices=("32-true", "bf16-mixed"))

DEFAULT_ENCODING = "magnetic"

Tables = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Optim:
    """AdamW with adaptive gradient clipping, linear warm-up and cosine decay.

    Args:
        lr: Peak learning rate.
        weight_decay: Weight decay.
        betas: The two decay rates of AdamW.
        clip: Largest norm of a row of a gradient, or of an update, relative to the norm of that row of the parameter.
        batch: Number of graphs per step, over all processes; of targets, if neighbourhoods are sampled.
        epochs: Number of passes over the training graphs, or targets.
        warmup: Number of epochs in which the learning rate rises.
        budget: Fraction of the training to run; shortens `epochs` and `warmup`.
        clipped: What is clipped: `gradient`, before AdamW, or `update`, the change of the parameters that AdamW makes.
        average: Decay `β` of the average of the parameters over the steps, `θ̄ ← β θ̄ + (1 − β) θ`, which is evaluated
            and saved in place of the parameters; 0 for none.
    """

    lr: Annotated[float, POSITIVE] = 4e-4
    weight_decay: Annotated[float, NON_NEGATIVE] = 6e-5
    betas: tuple[Annotated[float, DROPOUT], ...] = (0.7, 0.9)
    clip: Annotated[float, POSITIVE] = 0.075
    batch: Annotated[int, COUNT] = 384
    epochs: Annotated[float, POSITIVE] = 30.0
    warmup: Annotated[float, NON_NEGATIVE] = 2.0
    budget: Annotated[float, FRACTION] = 1.0
    clipped: Annotated[str, CLIPPED] = later("gradient")
    average: Annotated[float, DROPOUT] = later(0.0)

    def __post_init__(self) -> None:
        check_fields(self)
        if len(self.betas) != 2:
            raise ValueError(f"betas must be two numbers in [0, 1) such as [0.9, 0.999], got {list(self.betas)}")


@dataclass(frozen=True)
class Data:
    """How examples reach the model.

    Args:
        mode: `resident` keeps the encodings of all graphs, `pooled` encodes `pool` graphs at a time (both give the same
            batches), `fresh` generates new graphs for every pool; `auto` is resident if the encodings fit, otherwise
            pooled.
        pool: Number of graphs that are encoded at a time.
        memory: Largest size of resident encodings in GiB; they never take more than three quarters of the free memory
            of a GPU or a quarter of that of the machine.
        tokens: Largest number of padded nodes per forward pass; a larger batch is split into micro-batches, whose
            gradients are added up.
        pairs: Largest number of padded node pairs per forward pass.
        stratified: Whether each batch has as many large and small graphs as all others, which needs less padding where
            sizes differ much; otherwise batches are random.
        neighbours: Numbers of successors and of predecessors that are sampled around each target, one number per hop,
            to train on parts of large graphs whose nodes have targets; then `optim.batch` counts targets. Empty to
            train on whole graphs.
        cache: Folder in which encodings are kept, so that other runs on the same graphs read them; features of node
            pairs are never kept. Empty to compute all in every run.
    """

    mode: Annotated[str, DATA_MODES] = "auto"
    pool: Annotated[int, COUNT] = 65_536
    memory: Annotated[float, NON_NEGATIVE] = 90.0
    tokens: Annotated[int, COUNT] = 262_144
    pairs: Annotated[int, COUNT] = 2**30
    stratified: bool = False
    neighbours: tuple[Annotated[int, COUNT], ...] = later(())
    cache: str = later("")

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Run:
    """How a training run is executed, evaluated and logged.

    Args:
        seed: Seed of parameters, order of the graphs, and dropout.
        precision: `32-true` or `bf16-mixed`.
        compile: `none`, `whole` (model and loss as one graph), or `layers` (embedding, layers, and head with loss
            separately; layers of the same kind are compiled once).
        capture: Whether to replay steps as CUDA graphs, for a single process on a GPU.
        evaluate_every: Epochs between two evaluations.
        patience: Evaluations without improvement after which training stops; 0 never stops early.
        log_every: Steps between two lines of the log.
        checkpoint_minutes: Minutes between two checkpoints.
    """

    seed: Annotated[int, SEED] = 0
    precision: Annotated[str, PRECISIONS] = "32-true"
    compile: Annotated[str, COMPILE_MODES] = "none"
    capture: bool = True
    evaluate_every: Annotated[float, POSITIVE] = 1.0
    patience: Annotated[int, COUNT_OR_NONE] = 0
    log_every: Annotated[int, COUNT] = 50
    checkpoint_minutes: Annotated[float, NON_NEGATIVE] = 3.0

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Config:
    """The configuration of a training run.

    Args:
        task: The task.
        encoding: The positional encodings with their encoders.
        model: The model.
        optim: Optimiser and schedule.
        data: How examples reach the model.
        run: How the run is executed, evaluated and logged.

    >>> config = Config.from_dict({"task": {"name": "sorting"}, "encoding": {"magnetic": {"k": 25}}})
    >>> config.to_dict()["encoding"]["magnetic"]["q"]
    'Relative(0.25)'
    >>> Config.from_dict(config.to_dict()) == config
    True
    """

    task: Task
    encoding: PositionalEncodings = field(default_factory=PositionalEncodings)
    model: ModelOptions = field(default_factory=Transformer)
    optim: Optim = field(default_factory=Optim)
    data: Data = field(default_factory=Data)
    run: Run = field(default_factory=Run)

    @classmethod
    def from_dict(cls, tables: Mapping[str, Mapping[str, Any]], task: Task | None = None) -> "Config":
        """A configuration from plain tables; an error names an unknown option or a value of the wrong type.

        Args:
            tables: Values by option, by table.
            task: A task that is made already, such as one whose data are in memory; then `tables` has none.
        """
        made: dict[str, Any] = {} if task is None else {"task": task}
        for name, table in tables.items():
            check_choice("table", name, tuple(option.name for option in fields(cls)))
            if not isinstance(table, Mapping):
                raise ValueError(f"{name} must be a table of options, got {table!r}")
            if name == "encoding":
                continue  # its defaults depend on the task
            if name in KINDS:
                check_choice(name, table.get("name"), KINDS[name])
                options = {key: value for key, value in table.items() if key != "name"}
                made[name] = make(KINDS[name][table["name"]], options, name)
            else:
                made[name] = make({"optim": Optim, "data": Data, "run": Run}[name], table, name)
        if "encoding" in tables:
            potential = made["task"].potential if "task" in made else Adaptive
            made["encoding"] = PositionalEncodings.from_dict(tables["encoding"], potential)
        return cls(**made)

    def to_dict(self) -> Tables:
        """Plain tables in JSON types, the inverse of `from_dict`."""
        tables: Tables = {}
        for part in fields(self):
            value = getattr(self, part.name)
            if part.name == "encoding":
                tables[part.name] = value.to_dict()
                continue
            kind = {"name": self.name_of(part.name)} if part.name in KINDS else {}
            options = (
                value.options()
                if part.name == "task"
                else {name: getattr(value, name) for name in options_of(type(value))}
            )
            tables[part.name] = {**kind, **plain(options)}
        return tables

    def name_of(self, table: str) -> str:
        """Name of the task or the model."""
        chosen = type(getattr(self, table))
        return next(name for name, kind in KINDS[table].items() if kind is chosen)

    @property
    def hash(self) -> str:
        """Twelve characters that identify all settings that affect the result; those of logging do not.

        It stays the same when a version adds options, as long as these have their defaults.
        """
        tables = {**self.to_dict(), "encoding": {part.name: part.deciding() for part in self.encoding.parts}}
        for part in (option.name for option in fields(self) if option.name != "encoding"):
            for name in unchanged_later(getattr(self, part)):
                del tables[part][name]
        deciding = ("seed", "precision", "evaluate_every", "patience")
        kept: dict[str, dict[str, Any]] = {**tables, "run": {name: tables["run"][name] for name in deciding}}
        kept["data"] = {"fresh": self.data.mode == "fresh"}
        if self.data.stratified:
            kept["data"]["stratified"] = True
        if self.data.neighbours:
            kept["data"]["neighbours"] = list(self.data.neighbours)
        order = [part.name for part in self.encoding.parts]
        if order != sorted(order, key=names_known().index):  # another order has other parameters
            kept["order"] = {str(place): name for place, name in enumerate(order)}
        return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:12]


KINDS: dict[str, Mapping[str, type]] = {"task": TASKS, "model": MODELS}
"""Tables whose option `name` selects one of several classes."""


def configuration(
    task: str | Task,
    encoding: str | None = None,
    preset: str = "paper",
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    overrides: Sequence[str] = (),
) -> Config:
    """The configuration of a task and an encoding: a preset with changes.

    Args:
        task: Name of the task, or the task itself.
        encoding: Names of encodings or encoders, such as `magnetic` or `magnetic+walks`; `none` for none; by default
            that of the preset, or `magnetic`.
        preset: Name of one of the task's presets.
        changes: Tables that are merged over those of the preset.
        overrides: Settings `table.option=value` that are applied last.

    >>> configuration("sorting", "magnetic").optim.lr, configuration("sorting", "walks").optim.lr
    (0.0005, 0.0004)
    >>> configuration("sorting", "magnetic", overrides=["optim.lr=1e-3"]).optim.lr
    0.001
    """
    if isinstance(task, str):
        check_choice("task", task, TASKS)
    kind = TASKS[task] if isinstance(task, str) else type(task)
    encoding = _positions(kind.presets, preset) if encoding is None else encoding
    tables: Tables = {"encoding": {name: {} for name in named(encoding)}, "model": {"name": "transformer"}}
    model = (changes or {}).get("model", {}).get("name")
    tables = _with_preset(tables, encoding, kind.presets, preset, model)
    settings = [parse_override(override) for override in overrides]
    options: dict[str, Any] = {}
    for given in (tables, changes or {}, *settings):
        _check_task(given)
        options |= given.get("task", {})
    made = make(kind, options, "task") if isinstance(task, str) else _replaced(task, options)
    tables = merge(_without_task(tables), made.derived(preset, _epochs(changes or {}, *settings)))
    tables = merge(tables, _without_task(changes or {}))
    _check_used(tables, _without_task(changes or {}))
    return changed(Config.from_dict(tables, made), overrides)


def _epochs(*tables: Mapping[str, Mapping[str, Any]]) -> float | None:
    """The number of epochs in the last of the tables that has it; one that is not valid is refused later."""
    found = [table["optim"]["epochs"] for table in tables if "epochs" in table.get("optim", {})]
    valid = found and isinstance(found[-1], int | float) and 0 < found[-1] < math.inf
    return float(found[-1]) if valid else None


def _replaced(task: Task, options: Mapping[str, Any]) -> Task:
    """The task with some options changed; data in memory stay where they are."""
    known = options_of(type(task))
    values = {name: known_option(known, name, "task").typed(value, f"task.{name}") for name, value in options.items()}
    return dataclasses.replace(task, **values) if values else task  # pyright: ignore[reportArgumentType]


def _without_task(tables: Mapping[str, Mapping[str, Any]]) -> Tables:
    """The tables of everything but the task."""
    return {name: dict(table) for name, table in tables.items() if name != "task"}


def changed(config: Config, overrides: Sequence[str]) -> Config:
    """A configuration with some settings changed.

    Args:
        config: The configuration.
        overrides: Settings `table.option=value`.

    >>> changed(configuration("sorting", "magnetic"), ["data.mode=pooled", "encoding.k=8"]).data.mode
    'pooled'
    """
    tables, task = _without_task(config.to_dict()), config.task
    for override in overrides:
        given = parse_override(override)
        _check_task(given)
        _check_override(tables, given)
        task = _replaced(task, given.get("task", {}))
        tables = merge(tables, _without_task(given))
    return Config.from_dict(tables, task)


def merge(first: Mapping[str, Mapping[str, Any]], second: Mapping[str, Mapping[str, Any]]) -> Tables:
    """Merge two sets of tables; values of `second` replace those of `first`.

    In the table `encoding`, a value that is a table is merged into the encoding of this name, which is added if it is
    missing; the value `none` removes the encoding; any other value sets an option of all encodings that have it.

    Args:
        first: Tables by name.
        second: Tables by name.

    >>> merge({"optim": {"lr": 1.0, "clip": 0.1}}, {"optim": {"lr": 2.0}})
    {'optim': {'lr': 2.0, 'clip': 0.1}}
    >>> merge({"encoding": {"magnetic": {}, "walks": {}}}, {"encoding": {"k": 8, "walks": "none", "svd": {"rank": 4}}})
    {'encoding': {'magnetic': {'k': 8}, 'svd': {'rank': 4}}}
    """
    merged = {name: dict(table) for name, table in first.items()}
    for name, table in second.items():
        kept = merged.get(name, {})
        if name == "encoding":
            merged[name] = _merge_encodings(kept, table)
            continue
        if name in KINDS and "name" in table:  # another class keeps the options that both have
            check_choice(name, table["name"], KINDS[name])
            hints = field_hints(KINDS[name][table["name"]])
            kept = {option: value for option, value in kept.items() if option in hints and _has(hints[option], value)}
        merged[name] = {**kept, **table}
    return merged


def _has(hint: Any, value: Any) -> bool:
    """Whether the value is among the choices of an option, if it has any."""
    found = domain_of(hint)
    return found is None or not found[0].choices or value in found[0].choices


def parse_override(text: str) -> Tables:
    """Tables from `table.option=value`; the value is written as in TOML, and strings need no quotes.

    Args:
        text: The setting.

    >>> parse_override("optim.betas=[0.9, 0.99]"), parse_override("encoding.walks.steps=5")
    ({'optim': {'betas': [0.9, 0.99]}}, {'encoding': {'walks': {'steps': 5}}})
    """
    name, equals, value = text.partition("=")
    table, *path = name.strip().split(".")
    if not equals or not path or len(path) > (2 if table == "encoding" else 1) or not all([table, *path]):
        raise ValueError(f"settings are written table.option=value, such as optim.lr=3e-4, got {text!r}")
    parsed = parse(value)
    return {table: {path[0]: parsed if len(path) == 1 else {path[1]: parsed}}}


def _with_preset(
    tables: Tables, encoding: str, presets: Mapping[str, Mapping[str, Any]], name: str, model: str | None = None
) -> Tables:
    """Merge a preset into tables: first its base, its own tables, then those for this encoding and for this model."""
    check_choice("preset", name, presets)
    own = {table: options for table, options in presets[name].items() if table != "positions"}
    base, special, models = own.pop("base", None), own.pop("encodings", {}), own.pop("models", {})
    if base is not None:
        tables = _with_preset(tables, encoding, presets, base, model)
    tables = merge(merge(tables, own), special.get(encoding, {}))
    return merge(tables, {"model": {"name": model, **models[model]}}) if model in models else tables


def _positions(presets: Mapping[str, Mapping[str, Any]], name: str) -> str:
    """The encodings of a preset: its own, or those of its base."""
    check_choice("preset", name, presets)
    own = presets[name]
    if "positions" in own or "base" not in own:
        return own.get("positions", DEFAULT_ENCODING)
    return _positions(presets, own["base"])


def _merge_encodings(kept: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    merged = {name: dict(options) for name, options in kept.items()}
    for name, value in given.items():
        if isinstance(value, Mapping):
            merged[name] = _changed_part(name, merged.get(name, {}), value)
        elif name not in names_known():
            for part, options in merged.items():
                if name in options_named(part, options.get("encoder")):
                    merged[part] = _changed_part(part, options, {name: value})
        elif value not in (None, "none"):
            raise ValueError(f"encoding.{name}={value!r} must be a table of options, or none to leave it out")
        else:
            merged.pop(name, None)
    return merged


def _changed_part(name: str, options: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a part with those that are given; another encoder takes over the options that it has, too."""
    if "encoder" in given:
        known = options_named(name, given["encoder"])
        options = {option: value for option, value in options.items() if option in known}
    return {**options, **given}


def _check_task(given: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise an error if a setting would turn the task into another."""
    if "name" in given.get("task", {}):
        raise ValueError("task.name cannot be set: name the task in the command, `magnetite train TASK`")


def _check_override(tables: Tables, given: Tables) -> None:
    """Raise an error if a setting would have no effect, or add an encoding by mistake."""
    parts = tables.get("encoding", {})
    for name in given.get("encoding", {}):
        if name in names_known() and name not in parts:
            raise ValueError(
                f"encoding.{name} is not part of this configuration ({'+'.join(parts) or 'none'}): "
                f"choose it with --encoding {'+'.join([*parts, name])}"
            )
    _check_used(merge(tables, given), given)


def _check_used(tables: Tables, given: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise an error if an option of encodings is one that no encoding of the merged tables has."""
    parts = tables.get("encoding", {})
    known = {key: None for part, options in parts.items() for key in options_named(part, options.get("encoder"))}
    for name, value in given.get("encoding", {}).items():
        if not isinstance(value, Mapping) and name not in names_known() and name not in known:
            raise ValueError(
                f"unknown option encoding.{name}: choose one of {', '.join(known) or 'none (no encoding)'}"
            )
