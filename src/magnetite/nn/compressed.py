"""Parameters in fewer bytes: as they are stored, not as they are computed with.

`float16` halves every tensor. `int8` stores each row of a matrix as integers from -127 to 127 times a scale of its own,
`w ≈ s_r i`, with an error of at most half a step, `max_c |w_rc| / 254`; vectors, such as biases, stay float32.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

SCALE = "/scale"
"""How the name of the scales of a tensor ends."""

STEPS = 127
PRECISIONS = ("float32", "float16", "int8")
LARGEST = torch.finfo(torch.float16).max


def compress(tensors: Mapping[str, Tensor], precision: str) -> dict[str, Tensor]:
    """The tensors as they are stored; `expand` gives back nearly the same ones.

    Args:
        tensors: Tensors by name; those of other types than float32 are not changed.
        precision: float32, float16 or int8.

    >>> stored = compress({"w": torch.tensor([[1.0, -0.5], [0.0, 0.0]])}, "int8")
    >>> stored["w"].tolist(), sorted(stored)
    ([[127, -64], [0, 0]], ['w', 'w/scale'])
    >>> expand(stored)["w"].tolist()[0][0]
    1.0
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
    stored: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.dtype != torch.float32 or precision == "float32":
            stored[name] = tensor
        elif not tensor.isfinite().all():
            raise ValueError(f"parameter {name!r} has entries that are not finite: train again, with a lower rate")
        elif precision == "float16":
            stored[name] = tensor.half() if tensor.abs().amax() < LARGEST else tensor
        elif tensor.ndim < 2:
            stored[name] = tensor
        else:
            rows = tensor.flatten(1)
            scale = rows.abs().amax(1, keepdim=True) / STEPS
            stored[name] = (rows / scale.clamp(min=1e-30)).round().to(torch.int8).view_as(tensor)
            stored[name + SCALE] = scale[:, 0]
    return stored


def expand(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors to compute with, in float32, from what `compress` gave.

    Args:
        stored: Tensors by name.
    """
    tensors: dict[str, Tensor] = {}
    for name, tensor in stored.items():
        if name.endswith(SCALE):
            continue
        scale = stored.get(name + SCALE)
        if scale is not None:
            rows = tensor.flatten(1).float() * scale[:, None]
            tensors[name] = rows.view(tensor.shape)
        else:
            tensors[name] = tensor.float() if tensor.dtype == torch.float16 else tensor
    return tensors
