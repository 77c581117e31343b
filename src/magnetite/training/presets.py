"""Presets: the tables of `experiments/*.toml`, with what the command line changes."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

from magnetite.tasks import TASKS
from magnetite.training.config import NAMED, Config
from magnetite.training.encodings import ENCODINGS

Tables = dict[str, dict[str, Any]]

VARIANTS = ("without", "tried")
"""Tables of a preset that are not part of it, but change it, each under a name."""


def configuration(
    task: str,
    encoding: str,
    preset: str = "paper",
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    overrides: Sequence[str] = (),
) -> Config:
    """A preset of a task for an encoding, changed by tables and then by `table.option=value`.

    >>> configuration("sorting", "magnetic", "paper").optim.lr, configuration("sorting", "walks", "paper").optim.lr
    (0.0005, 0.0004)
    >>> configuration("sorting", "magnetic", overrides=["optim.lr=1e-3"]).optim.lr
    0.001
    """
    _check("task", task, TASKS)
    _check("encoding", encoding, ENCODINGS)
    tables = merge(
        {"task": {"name": task}, "encoding": {"name": encoding}, "model": {"name": "transformer"}},
        preset_tables(task, encoding, preset),
    )
    return _overridden(merge(tables, changes or {}), overrides)


def changed(config: Config, overrides: Sequence[str]) -> Config:
    """A configuration with some `table.option=value`.

    >>> changed(configuration("sorting", "magnetic"), ["data.mode=pooled"]).data.mode
    'pooled'
    """
    return _overridden(config.to_dict(), overrides)


def preset_tables(task: str, encoding: str, preset: str) -> Tables:
    """The tables of a preset: those it is based on, its own, then those of the encoding.

    A general `encoding` table holds for every encoding that has the option.
    """
    presets = _read(task)
    _check("preset", preset, presets)
    own = {name: table for name, table in presets[preset].items() if name not in VARIANTS}
    base, special = own.pop("base", None), own.pop("encodings", {})
    for name in special:
        _check(f"{preset}.encodings", name, ENCODINGS)
    tables = preset_tables(task, encoding, base) if base else {}
    known = {option.name for option in fields(ENCODINGS[encoding])}  # type: ignore[arg-type]
    own["encoding"] = {name: value for name, value in own.get("encoding", {}).items() if name in known}
    return merge(merge(tables, own), special.get(encoding, {}))


def variants(task: str, preset: str, kind: str) -> dict[str, Tables]:
    """By name, tables that change a preset: `without` takes one of its changes back, `tried` might be better.

    >>> variants("sorting", "best", "without")["state"]
    {'model': {'state': 16}}
    """
    presets = _read(task)
    _check("preset", preset, presets)
    _check("kind of variants", kind, dict.fromkeys(VARIANTS))
    return presets[preset].get(kind, {})


def merge(first: Mapping[str, Mapping[str, Any]], second: Mapping[str, Mapping[str, Any]]) -> Tables:
    """Tables with those of `second` laid over them.

    >>> merge({"optim": {"lr": 1.0, "clip": 0.1}}, {"optim": {"lr": 2.0}})
    {'optim': {'lr': 2.0, 'clip': 0.1}}
    """
    merged = {name: dict(table) for name, table in first.items()}
    for name, table in second.items():
        kept = merged.get(name, {})
        if name in NAMED and "name" in table:  # another kind has other options: what it does not know is left behind
            kind = NAMED[name].get(table["name"])
            known = {option.name for option in fields(kind)} if kind is not None else set()
            kept = {option: value for option, value in kept.items() if option in known}
        merged[name] = {**kept, **table}
    return merged


def parse_override(text: str) -> Tables:
    """A table from `table.option=value`; the value is written as in TOML, strings may go without quotes.

    >>> parse_override("optim.betas=[0.9, 0.99]"), parse_override("model.norm=pre")
    ({'optim': {'betas': [0.9, 0.99]}}, {'model': {'norm': 'pre'}})
    """
    name, equals, value = text.partition("=")
    table, dot, option = name.strip().partition(".")
    if not (equals and dot and table and option):
        raise ValueError(f"{text!r} sets nothing: write table.option=value, such as optim.lr=3e-4")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()
    return {table: {option: parsed}}


def _overridden(tables: Tables, overrides: Sequence[str]) -> Config:
    for override in overrides:
        tables = merge(tables, parse_override(override))
    return Config.from_dict(tables)


def _read(task: str) -> dict[str, Any]:
    text = _folder().joinpath(f"{task}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _folder() -> Any:
    """`experiments/` of the checkout, or the copy that the wheel carries inside of the package."""
    checkout = Path(__file__).parents[3] / "experiments"
    return checkout if checkout.is_dir() else resources.files("magnetite") / "experiments"


def _check(what: str, name: str, known: Mapping[str, Any]) -> None:
    if name not in known:
        raise ValueError(f"unknown {what} {name!r}: choose one of {', '.join(known)}")
