"""Worker processes: each runs one job at a time and is killed, and replaced, if the job takes too long.

Jobs are functions of the views, called by name with plain data. What a user gives is read there, never executed.
"""

import contextlib
import os
import queue
import threading
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from typing import Any

from magnetite.explorer.limits import Limits, Refused

VIEWS = ("graph_view", "code_view", "sorting_view")
"""Files with a table `JOBS`."""

START_SECONDS = 120.0
"""Time for a process to import magnetite, and to compile its kernels on a new machine."""

Job = Callable[[Mapping[str, Any], Limits], Any]


def jobs() -> dict[str, Job]:
    """All jobs by name."""
    return {name: job for view in VIEWS for name, job in import_module(f"magnetite.explorer.{view}").JOBS.items()}


def answer(job: Job, payload: Mapping[str, Any], limits: Limits) -> tuple[int, Any]:
    """The status of HTTP and the result of a job; errors of the input are one line.

    Args:
        job: The job.
        payload: The request.
        limits: The limits.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as those about a q that is too small to be seen: the page shows it
            return 200, job(payload, limits)
    except Refused as error:
        return error.status, str(error)
    except RecursionError:
        return 422, "the input is nested too deeply: make it flatter"
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and "memory" not in str(error):
            raise
        return 422, f"the input needs more than {limits.memory // 2**20} MiB of memory: give a smaller one"
    except (ValueError, TypeError, OSError, ArithmeticError) as error:
        return 422, " ".join(str(error).split()) or type(error).__name__


class Workers:
    """A fixed number of processes that answer jobs.

    Args:
        count: Number of processes; 0 runs jobs in the calling thread, without limits of time, for tests.
        limits: The limits of a job.
    """

    def __init__(self, count: int, limits: Limits):
        self.count, self.limits = count, limits
        self._idle: queue.Queue[_Worker] = queue.Queue()
        self._all: set[_Worker] = set()
        self._lock = threading.Lock()
        self._closed = False
        for _ in range(count):
            self._start()

    def call(self, name: str, payload: Mapping[str, Any]) -> Any:
        """The result of a job; raises `Refused` if it has none. Blocks, so it is called from a thread.

        Args:
            name: Name of the job.
            payload: Plain data.
        """
        if not self.count:
            status, result = answer(jobs()[name], payload, self.limits)
        else:
            status, result = self._ask(name, payload)
        if status != 200:
            raise Refused(result, status)
        return result

    def _ask(self, name: str, payload: Mapping[str, Any]) -> tuple[int, Any]:
        try:
            worker = self._idle.get(timeout=self.limits.waiting)
        except queue.Empty:
            raise Refused("the server is busy: try again in a moment", 429) from None
        found = worker.ask(name, payload, self.limits.seconds)
        if found is not None:
            self._idle.put(worker)
            return found
        reason = "needed too much memory or failed" if not worker.alive else f"took over {self.limits.seconds:g} s"
        self._stop(worker)
        self._start()
        return 422, f"the analysis {reason} and was stopped: give a smaller input"

    def _start(self) -> None:
        with self._lock:
            if not self._closed:
                worker = _Worker(self.limits)
                self._all.add(worker)
                self._idle.put(worker)

    def _stop(self, worker: "_Worker") -> None:
        worker.stop()
        with self._lock:
            self._all.discard(worker)

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
            stopped, self._all = self._all, set()
        for worker in stopped:
            worker.stop()


class _Worker:
    """One process, and the pipe to it."""

    def __init__(self, limits: Limits):
        context = _context()
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, limits), daemon=True)
        self.process.start()
        theirs.close()
        self.ready = False

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self.process.is_alive()

    def ask(self, name: str, payload: Mapping[str, Any], seconds: float) -> tuple[int, Any] | None:
        """The status and result of a job, or None if the process died or did not answer in time."""
        try:
            if not self.ready:
                if not self.pipe.poll(START_SECONDS):
                    return None
                self.ready = bool(self.pipe.recv())
            self.pipe.send((name, payload))
            return self.pipe.recv() if self.pipe.poll(seconds) else None
        except (EOFError, OSError):
            self.process.join(1)
            return None

    def stop(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _context() -> Any:
    """Processes are forked from a server of their own that has imported everything, and so start fast.

    They are not forked from this process, whose other threads may hold locks.
    """
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([f"magnetite.explorer.{view}" for view in VIEWS])
    return context


def _serve(pipe: Connection, limits: Limits) -> None:
    """The main loop of a process."""
    known = jobs()
    with contextlib.suppress(Exception):  # the first request pays for it then
        import_module("magnetite.explorer.graph_view").warm_up()
    _limit_memory(limits.memory)
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        pipe.send(True)
        while True:
            name, payload = pipe.recv()
            pipe.send(answer(known[name], payload, limits))


def _limit_memory(more: int) -> None:
    """Let the process allocate this number of bytes beyond what it has, where the system can limit it."""
    try:
        import resource
        from pathlib import Path

        pages = int(Path("/proc/self/statm").read_text().split()[5])  # data and stack, as RLIMIT_DATA counts them
        total = pages * os.sysconf("SC_PAGE_SIZE") + more
        resource.setrlimit(resource.RLIMIT_DATA, (total, total))
    except (ImportError, OSError, ValueError):
        return
