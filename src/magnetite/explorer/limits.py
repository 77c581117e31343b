"""Limits on what a request may ask for, and the error that says which one it exceeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Limits:
    """Limits of one request.

    Args:
        bytes: Size of the body.
        nodes: Number of nodes of a graph.
        edges: Number of edges of a graph.
        source: Number of characters of Python source.
        wires: Number of wires of a sorting network.
        comparators: Number of comparators of a sorting network.
        depth: Depth of nested JSON.
        seconds: Time of an analysis, after which its process is killed.
        waiting: Seconds that a request waits for a free process.
        memory: Bytes that an analysis may allocate.
    """

    bytes: int = 4 * 2**20
    nodes: int = 2_000
    edges: int = 20_000
    source: int = 50_000
    wires: int = 16
    comparators: int = 400
    depth: int = 16
    seconds: float = 10.0
    waiting: float = 30.0
    memory: int = 2 * 2**30


class Refused(ValueError):
    """A request that is not answered.

    Args:
        message: One line: what is wrong, what was given, what to do.
        status: The status of HTTP.
    """

    def __init__(self, message: str, status: int = 422):
        super().__init__(" ".join(message.split()))
        self.status = status


def field(payload: Mapping[str, Any], name: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
    """A field of a request, checked.

    Args:
        payload: The request.
        name: Name of the field.
        kind: Type that it must have; true and false are not numbers.
        default: Its value if it is missing; without one, it must be there.
    """
    if name not in payload and default is not ...:
        return default
    value = payload.get(name)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kind) or (isinstance(value, bool) and bool not in kinds):
        expected = " or ".join(each.__name__ for each in kinds)
        raise Refused(f"{name} must be {expected}, got {value!r:.60}")
    return value


def number(payload: Mapping[str, Any], name: str, low: float, high: float, default: Any = ...) -> Any:
    """A number of a request within bounds; whole if both bounds are.

    Args:
        payload: The request.
        name: Name of the field.
        low: Its smallest value.
        high: Its largest value.
        default: Its value if it is missing.
    """
    whole = isinstance(low, int) and isinstance(high, int)
    value = field(payload, name, int if whole else (int, float), default)
    if not low <= value <= high:
        raise Refused(f"{name} must be from {low} to {high}, got {value}")
    return value
