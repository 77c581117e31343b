"""What worker processes have in common, on this machine or on a Ray cluster."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Taken = TypeVar("Taken", contravariant=True)
Result = TypeVar("Result")


class Workers(Protocol[Taken, Result]):
    """Worker processes that apply one function to lists of items; a context that ends them."""

    count: int
    """Number of processes."""

    def __enter__(self) -> "Workers[Taken, Result]": ...

    def __exit__(self, *error: object) -> None: ...

    def submit(self, items: Sequence[Taken]) -> Callable[[], list[Result | None]]:
        """Start with some items, perhaps after waiting for a free process.

        Args:
            items: The items.

        Returns:
            A function that waits for the results; None is the result of an item whose process died. Errors of the
            function are raised.
        """
        ...
