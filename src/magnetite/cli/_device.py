"""Devices by the names that PyTorch gives them."""

import torch


def device_named(name: str) -> torch.device:
    """The device to compute on; an error lists those of this machine.

    >>> device_named("cpu")
    device(type='cpu')
    >>> device_named("meta")
    Traceback (most recent call last):
    ValueError: device 'meta' is not available: choose one of cpu...
    """
    known = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    known += [f"cuda:{number}" for number in range(torch.cuda.device_count())] if len(known) > 1 else []
    if name not in known:
        raise ValueError(f"device {name!r} is not available: choose one of {', '.join(known)}")
    return torch.device(name)
