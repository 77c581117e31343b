"""Ctrl-C and a polite kill as a flag that is looked at between steps."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupted(KeyboardInterrupt):
    """The user asked to stop; the state was saved."""


@contextmanager
def interruptions() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; a second one acts at once. Only the main thread hears signals.

    >>> with interruptions() as asked:
    ...     signal.raise_signal(signal.SIGINT)
    >>> asked.is_set()
    True
    """
    asked = threading.Event()

    def ask(number: int, frame: Any) -> None:  # noqa: ARG001
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        sys.stderr.write("\nstopping after this step, and saving; once more stops at once, without\n")

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
