"""Random options of encodings, configurations and settings of `train --dry-run`: a valid object, or one line."""

import io
from contextlib import redirect_stdout, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import TypeCheckError

import magnetite as mt
from magnetite.cli import _one_line
from magnetite.encodings import ENCODINGS
from magnetite.training.config import Config, Data, Optim, Run, configuration
from magnetite.training.encodings import names_known, options_named
from magnetite.training.models import MODELS
from magnetite.training.options import options_of
from magnetite.training.runs import describe
from tests.fuzz import refusing

CASES = 2_000

GRAPHS = mt.Digraphs.from_edges([np.array([[0, 1, 2], [1, 2, 0]]), np.array([[0], [1]])], num_nodes=[4, 2])

VALUES: list[Any] = [
    0, 1, 2, 3, 8, 16, -1, 7.5, 0.1, 0.5, 1.0, -0.25, 2**20, 10**9, 2**31, 2**63, 10**400, 1e300, float("nan"),
    float("inf"), True, False, None, "", "none", "gelu", "pre", "nodes", "cls", "float64", "Relative(0.25)", "x" * 300,
    [], [0.1, 0.2], [[0.1]], [0.1, "Relative(0.2)"], {}, {"a": 1}, (0.1, 0.2),
]  # fmt: skip
"""Values of settings; in Python, there are also those of `OTHERS`."""

OTHERS: list[Any] = [
    np.int64(3), np.float32(0.5), np.bool_(True), np.array([0.1, 0.2]), np.zeros((2, 2)), torch.tensor(2),
    torch.tensor([0.25]), 1j, b"3", mt.Relative(0.25), (mt.Relative(0.1), 0.2), object, torch.float16, torch.int8,
]  # fmt: skip

TEXTS = ["nan", "-inf", "1e300", "1e-300", "9" * 400, "[" * 2000, "1\nx=2", "Relative()", "Relative(1, 2)", "'"]


def case(random: np.random.Generator, folder: Path) -> None:
    [encoding, python, settings][int(random.integers(3))](random)


def chosen(random: np.random.Generator, items: Any) -> Any:
    items = list(items)
    return items[int(random.integers(len(items)))]


def encoding(random: np.random.Generator) -> None:
    """An encoding in Python: it is made and encodes, or it is refused."""
    kind = chosen(random, ENCODINGS.values())
    required = {name: 4 for name, option in options_of(kind).items() if name in ("k", "rank", "width")}
    changed = {field.name: chosen(random, VALUES + OTHERS) for field in fields(kind) if random.random() < 0.3}
    with refusing(), suppress(TypeCheckError):  # pytest checks types before the code does; fuzzers do not
        made = kind(**required | changed)
        assert made == made
        result = made(GRAPHS)
        assert len(result) == len(GRAPHS)


def python(random: np.random.Generator) -> None:
    """A table of a configuration, made in Python."""
    kind = chosen(random, [Optim, Data, Run, *MODELS.values(), *mt.tasks.TASKS.values()])
    changed = {name: chosen(random, VALUES + OTHERS) for name in options_of(kind) if random.random() < 0.2}
    with refusing(), suppress(TypeCheckError):  # pytest checks types before the code does; fuzzers do not
        made = kind(**changed)
        for name in changed:
            value = getattr(made, name)
            assert value is None or isinstance(value, bool | int | float | str | tuple), value
            assert not isinstance(value, float) or np.isfinite(value)


def settings(random: np.random.Generator) -> None:
    """`magnetite train TASK --dry-run --set …`, without the process."""
    task = chosen(random, mt.tasks.TASKS)
    names = "+".join({chosen(random, names_known()) for _ in range(int(random.integers(1, 3)))})
    given = [setting(random, task, names) for _ in range(int(random.integers(1, 4)))]
    try:
        config = configuration(task, names, chosen(random, ["quick", "paper", "best"]), overrides=given)
        with redirect_stdout(io.StringIO()):
            describe(config)
        assert Config.from_dict(config.to_dict()) == config
    except Exception as error:
        line = _one_line(error)
        if line is None or "\n" in line:
            raise AssertionError(f"{given}: {error!r}") from error


def setting(random: np.random.Generator, task: str, names: str) -> str:
    tables: dict[str, Any] = {"optim": Optim, "data": Data, "run": Run, "task": mt.tasks.TASKS[task]}
    tables["model"] = chosen(random, MODELS.values())
    table = chosen(random, [*tables, "encoding"])
    if table == "encoding":
        part = chosen(random, names.split("+"))
        known = [] if part == "none" else options_named(part)
    else:
        known = options_of(tables[table])
    name = chosen(random, [*known, "name", "unknown"])
    value = chosen(random, TEXTS) if random.random() < 0.3 else str(chosen(random, VALUES))
    return f"{table}.{name}={value}"
