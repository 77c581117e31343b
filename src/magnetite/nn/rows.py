"""The slots of several batches as the rows of one matrix, and back: what looks at no neighbour is done once for all."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from magnetite.batching import Batch


def joined(parts: Sequence[Shaped[Tensor, "_ ..."]]) -> Shaped[Tensor, "rows ..."]:
    """The parts as rows one after the other; one part is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def as_rows(states: Sequence[Shaped[Tensor, "_ _ ..."]]) -> Shaped[Tensor, "rows ..."]:
    """The slots of several batches as rows.

    >>> as_rows([torch.ones(2, 3, 4), torch.ones(1, 5, 4)]).shape
    torch.Size([11, 4])
    """
    return joined([part.flatten(0, 1) for part in states])


def slots(rows: Float[Tensor, "rows d"], batches: Sequence[Batch]) -> list[Float[Tensor, "_ _ d"]]:
    """Rows of several batches as the slots of each."""
    parts = rows.split([batch.mask.numel() for batch in batches])
    return [part.view(*batch.mask.shape, -1) for part, batch in zip(parts, batches, strict=True)]


def per_slot(values: Sequence[Shaped[Tensor, "_ ..."]], batches: Sequence[Batch]) -> Shaped[Tensor, "rows ..."]:
    """What each batch has for its graphs, repeated in a row for every slot."""
    each = zip(values, batches, strict=True)
    return as_rows([part[:, None].expand(-1, batch.mask.shape[1], *part.shape[1:]) for part, batch in each])
