"""The slots of several batches as the rows of one matrix, and back: what looks at no neighbour is done once for all."""

from collections.abc import Sequence
from itertools import accumulate

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


def first_rows(batches: Sequence[Batch]) -> list[int]:
    """The row of the first slot of each batch."""
    return list(accumulate((batch.mask.numel() for batch in batches[:-1]), initial=0))


def united(batches: Sequence[Batch]) -> Batch:
    """All batches as one graph in which no edge leads from one to another: as messages along edges see them.

    >>> import magnetite as mt
    >>> united([mt.pad(mt.Digraphs.from_edges([[0], [1]]))] * 2).edges[:, [0, 8]].tolist()
    [[0, 8], [1, 9]]
    """
    if len(batches) == 1:
        return batches[0]
    mask = as_rows([batch.mask for batch in batches])[None]
    names = batches[0].edge_features
    return Batch(
        sizes=mask.sum(1),
        mask=mask,
        edges=torch.cat([batch.edges + row for batch, row in zip(batches, first_rows(batches), strict=True)], dim=1),
        edge_mask=joined([batch.edge_mask for batch in batches]),
        edge_weight=joined([batch.edge_weight for batch in batches]),
        node_features={},
        edge_features={name: joined([batch.edge_features[name] for batch in batches]) for name in names},
        graph_features={},
        encodings={},
    )
