"""The model that judges sorting networks: the one that comes with magnetite, or that of a run."""

from functools import cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.io.storage import read_json
from magnetite.nn import GraphModel, checkpoint
from magnetite.sorting import SortingNetworks

SHIPPED = Path(__file__).parent / "sorting-model"
"""Folder of the model that comes with magnetite."""

CARD = "card.json"
"""What the model was trained on, and how often it is right; `card.md` is the same for readers."""

AT_ONCE = 512
"""Number of networks that are judged at a time."""


@cache
def load_judge(folder: str | None = None) -> GraphModel:
    """The model, in evaluation mode.

    Args:
        folder: Folder of a run of the task `sorting`; by default the model that comes with magnetite.
    """
    if folder is not None:
        from magnetite.training.trained import Run

        return Run(folder).model
    if not (SHIPPED / checkpoint.DESCRIPTION).is_file():
        raise FileNotFoundError(f"{SHIPPED} has no model: this copy of magnetite was built without it")
    return checkpoint.load(SHIPPED).eval()


@torch.no_grad()
def probabilities(model: GraphModel, networks: SortingNetworks) -> Float[Tensor, " networks"]:
    """The model's probability that each network sorts.

    Args:
        model: A model of the task `sorting`.
        networks: Networks with at least one comparator.
    """
    parts = [networks[first : first + AT_ONCE].to_digraphs(ports=True) for first in range(0, len(networks), AT_ONCE)]
    return torch.cat([torch.empty(0), *(model(part).float().softmax(-1)[:, 1] for part in parts)])


def accuracy(length: int) -> dict[str, Any]:
    """How often the shipped model is right for networks of this length, by kind, and the lengths of its training.

    Args:
        length: Number of wires.
    """
    card = read_json(SHIPPED / CARD, "card of a model", "make it again with `python -m paper ship-sorting`")
    rows = [row for row in card["metrics"] if row["length"] == length]
    return {"trained": card["data"]["lengths"], "rows": rows}
