"""Worker processes of a Ray cluster: the only module that knows Ray.

Ray's core is used, not Ray Data: Ray Data names the files that it writes after a random number, cuts and joins blocks
by their size, and starts from the beginning after its driver has died. Here, the caller decides what an item is and
where its result goes. Each process is an actor, not a task, because Ray ends the process of a task that used a GPU, and
with it the CUDA context and compiled kernels.
"""

import logging
import os
import platform
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic

from magnetite.version import __version__
from magnetite.workers.base import Item, Result

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # before the import: a cluster started here reports nothing

import ray
from ray.exceptions import RayActorError, RaySystemError, RayTaskError

RETRIES = 2
"""How often items are tried again whose process or machine died."""

NEW, RUNNING = "local", "auto"
"""Addresses with a meaning of their own: a new cluster, and the one that runs on this machine."""


class RayWorkers(Generic[Item, Result]):
    """Worker processes of a Ray cluster that apply one function to lists of items.

    Every machine of the cluster needs the same versions of magnetite and Python. Processes that cannot be started yet,
    because other programs use the cluster, join as soon as they can.

    Args:
        function: A function of one item, defined in a module.
        count: Number of processes; by default one per core of the cluster, or per GPU.
        address: Address of the cluster, "auto" or "local".
        gpu: Whether each process needs a GPU of its own.
    """

    def __init__(self, function: Callable[[Item], Result], count: int | None, address: str, gpu: bool = False):
        if count is not None and count < 1:
            raise ValueError(f"workers must be a positive integer, got {count}")
        self._function, self._gpu = function, gpu
        self._connected = not ray.is_initialized()
        if self._connected:
            _connect(address)
        kind = "GPU" if gpu else "CPU"
        held = int(ray.cluster_resources().get(kind, 0))
        if not held:
            self._disconnect()
            raise ValueError(f"the Ray cluster {address} has no {kind}: add a machine to it that has one")
        self.count = held if count is None else min(count, held)
        self._idle: list[Any] = []
        self._actors = [self._new_actor() for _ in range(self.count)]
        # Until an actor answers for the first time, it is busy: items go to those that run.
        self._busy: dict[Any, Any] = {actor.versions.remote(): actor for actor in self._actors}
        self._unchecked = set(self._busy)

    def __enter__(self) -> "RayWorkers[Item, Result]":
        return self

    def __exit__(self, *error: object) -> None:
        for actor in self._actors:
            ray.kill(actor)
        self._disconnect()

    def submit(self, items: Sequence[Item]) -> Callable[[], list[Result | None]]:
        """Start with some items as soon as a process is free.

        Args:
            items: The items.

        Returns:
            A function that waits for the results; None is the result of an item whose process died each time.
        """
        reference = self._start(items)

        def wait() -> list[Result | None]:
            found = self._result(reference)
            if found is not None or len(items) == 1:
                return list(found or [None])
            alone = [self._result(self._start([item])) for item in items]
            return [None if each is None else each[0] for each in alone]

        return wait

    def _new_actor(self) -> Any:
        options = {"num_cpus": 1, "max_restarts": -1, "max_task_retries": RETRIES}
        return ray.remote(_Process).options(**options, num_gpus=int(self._gpu)).remote(self._function)

    def _start(self, items: Sequence[Item]) -> Any:
        """Give items to a free process, and return Ray's reference to the result."""
        while not self._idle:
            done, _ = ray.wait(list(self._busy), num_returns=1)
            self._idle += [self._busy.pop(reference) for reference in done]
            for reference in self._unchecked.intersection(done):
                self._unchecked.remove(reference)
                _check(reference)
        actor = self._idle.pop()
        reference = actor.apply.remote(list(items))
        self._busy[reference] = actor
        return reference

    def _result(self, reference: Any) -> list[Result] | None:
        """The result of items; None if every process that tried them died. Errors of the function are raised."""
        try:
            return ray.get(reference)
        except RayActorError:
            return None
        except RayTaskError as error:
            raise error.cause from None

    def _disconnect(self) -> None:
        if self._connected:
            ray.shutdown()


class _Process:
    """What runs in a process of the cluster."""

    def __init__(self, function: Callable[[Any], Any]):
        self.function = function

    def versions(self) -> tuple[str, str]:
        """Versions of magnetite and Python."""
        return _versions()

    def apply(self, items: list[Any]) -> list[Any]:
        """The results for some items."""
        return [self.function(item) for item in items]


def _versions() -> tuple[str, str]:
    return __version__, platform.python_version()


def _connect(address: str) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == NEW:
        options["include_dashboard"] = False
    try:
        _check_reachable(address)
        ray.init(address=address, **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"no connection to the Ray cluster {address} ({reason}): start one with `ray start --head`, give its "
            f"address, or use {NEW!r} for one on this machine only"
        ) from None


def _check_reachable(address: str) -> None:
    """Raise an error if nothing listens at an address: Ray itself would try for many minutes."""
    if address == RUNNING:
        address = os.environ.get("RAY_ADDRESS", "")
        last = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
        if not address and last.is_file():
            address = last.read_text().strip()
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def _check(reference: Any) -> None:
    """Raise an error if a process of the cluster cannot run magnetite, or has another version of it."""
    advice = "install the same versions on every machine of the cluster"
    try:
        found = ray.get(reference)
    except (RayActorError, RayTaskError, RaySystemError) as error:
        reason = " ".join(str(error).split())[-200:]
        raise ValueError(f"the Ray cluster cannot run magnetite {__version__} (…{reason}): {advice}") from None
    if tuple(found) != _versions():
        here, there = (f"magnetite {each[0]} on Python {each[1]}" for each in (_versions(), found))
        raise ValueError(f"the Ray cluster has {there}, but this machine {here}: {advice}")
