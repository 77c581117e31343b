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
from magnetite.tasks.sorting import INPUTS, draw_inputs, with_inputs

SHIPPED = Path(__file__).parent / "sorting-model"
"""Folder of the model that comes with magnetite."""

CARD = "card.json"
"""What the model was trained on, and how often it is right; `card.md` is the same for readers."""

AT_ONCE = 512
"""Number of graphs that are judged at a time."""

ASKED = 256
"""Number of inputs by which a network is judged; all inputs of up to 8 wires."""


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

    A model of the option `inputs` is asked about `ASKED` inputs of each network; the least probable one counts.

    Args:
        model: A model of the task `sorting`.
        networks: Networks with at least one comparator.
    """
    asked = ASKED if any(getattr(part, "feature", None) == INPUTS for part in model.modules()) else 0
    found, step = [torch.empty(0)], max(1, AT_ONCE // max(asked, 1))
    for first in range(0, len(networks), step):
        some = networks[first : first + step]
        graphs = some.to_digraphs(ports=True)
        if asked:
            keys = torch.zeros(len(some), dtype=torch.long)  # the same for all, so that no other network matters
            graphs = with_inputs(graphs, draw_inputs(some, asked, keys))
        sorts = model(graphs).float().softmax(-1)[:, 1]
        found.append(sorts.view(len(some), -1).amin(1))
    return torch.cat(found)


def accuracy(length: int) -> dict[str, Any]:
    """How often the shipped model is right for networks of this length, by kind, and the lengths of its training.

    Args:
        length: Number of wires.
    """
    card = read_json(SHIPPED / CARD, "card of a model", "make it again with `python -m paper ship-sorting`")
    rows = [row for row in card["metrics"] if row["length"] == length]
    return {"trained": card["data"]["lengths"], "rows": rows}
