"""Pointers to where each graph begins among entries that are stored one after the other."""

import torch
from jaxtyping import Shaped
from torch import Tensor


def starts(counts: Shaped[Tensor, " graphs"]) -> Shaped[Tensor, " starts"]:
    """Pointers to where each graph begins, from the number of entries per graph (or sums, from terms).

    >>> starts(torch.tensor([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0))
