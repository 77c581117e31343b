"""Results that do not fit into their type are refused: infinity, or zero instead of a small number, would be silent."""

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor


def check_fit(
    what: str,
    values: Shaped[Tensor, "b ..."],
    dtype: torch.dtype,
    ids: Int[Tensor, " b"] | None,
    rounding: Float[Tensor, " b"] | None = None,
) -> None:
    """Raise a `ValueError` if the largest number of a graph is beyond `dtype`, or below its smallest normal number.

    Args:
        what: What the numbers are, in the plural.
        values: Numbers of each graph, in double precision.
        dtype: Type of the result.
        ids: Ids of the graphs, for the message; None if they are numbered from 0.
        rounding: Numbers up to this are rounding errors of 0, per graph.

    >>> check_fit("eigenvalues", torch.tensor([[0.0, 2.0]], dtype=torch.float64), torch.float32, torch.tensor([7]))
    """
    if not values.numel():
        return
    limit = torch.finfo(dtype)
    if values.device.type == "cpu":
        sizes = np.abs(values.numpy().reshape(values.shape[0], -1)).max(1)
        if limit.tiny <= sizes.min() and sizes.max() <= limit.max:  # NaN is neither
            return
    largest = values.abs().flatten(1).amax(1)
    small = (largest < limit.tiny) & (largest > (0 if rounding is None else rounding))
    wrong = (~(largest <= limit.max) | small).nonzero()
    if wrong.numel():
        graph = int(wrong[0])
        advice = "divide" if limit.bits == 64 else "ask for dtype=torch.float64, or divide"
        size = f"as large as {float(largest[graph]):.3g}, beyond"
        if small[graph]:
            size, advice = f"at most {float(largest[graph]):.3g}, below", advice.replace("divide", "multiply")
        name = str(dtype.to_real()).removeprefix("torch.")
        number = graph if ids is None else int(ids[graph])
        raise ValueError(f"{what} of graph {number} are {size} {name}: {advice} its weights by a constant")
