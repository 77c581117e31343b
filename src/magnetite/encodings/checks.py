"""Checks of the arguments of encodings."""

import torch

from magnetite.graphs import Digraphs


def check_graphs(graphs: object) -> None:
    """Raise a `TypeError` that names the constructors unless `graphs` are `Digraphs`."""
    if not isinstance(graphs, Digraphs):
        raise TypeError(
            f"graphs must be Digraphs, got {type(graphs).__name__}: "
            "use Digraphs.from_networkx, from_pyg, from_scipy or from_edges"
        )


def check_positive(name: str, number: object) -> None:
    """Raise a `ValueError` unless `number` is a positive integer.

    >>> check_positive("k", 0)
    Traceback (most recent call last):
    ValueError: k must be a positive integer, got 0
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError(f"{name} must be a positive integer, got {number!r}")


def check_dtype(dtype: torch.dtype, known: tuple[torch.dtype, ...] = (torch.float32, torch.float64)) -> None:
    """Raise a `ValueError` unless results may have this type.

    >>> check_dtype(torch.int32)
    Traceback (most recent call last):
    ValueError: dtype must be torch.float32 or torch.float64, got torch.int32
    """
    if dtype not in known:
        raise ValueError(f"dtype must be {' or '.join(map(str, known))}, got {dtype}")
