"""Worker processes that do not import the main module, so that scripts need no `if __name__ == "__main__":`."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any

_starting = threading.Lock()


class _Process(SpawnProcess):
    """A spawned process; it imports the modules of the functions that it is given, but not the script."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        with _starting:
            main = sys.modules["__main__"]
            # What a spawned process imports first is read off this module: a script without a guard would start again
            # in each of its processes, which multiprocessing refuses, so that they die and are replaced forever.
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                return SpawnProcess._Popen(process_obj)  # pyright: ignore[reportAttributeAccessIssue]
            finally:
                sys.modules["__main__"] = main


class _Context(SpawnContext):
    Process = _Process  # pyright: ignore[reportAssignmentType]


def process_pool(count: int, initializer: Callable[[], Any] | None = None) -> ProcessPoolExecutor:
    """Processes for functions that are defined in modules, not in the main script.

    They are spawned, not forked, since other threads (of PyTorch, say) may hold locks.

    Args:
        count: Number of processes.
        initializer: Called once in each of them.
    """
    return ProcessPoolExecutor(count, mp_context=_Context(), initializer=initializer)
