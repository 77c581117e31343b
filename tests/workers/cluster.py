"""A Ray cluster of several processes on this machine, and processes that are killed."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
MARK = "MAGNETITE_STARTED_BY"
"""The environment variable by which the processes of a cluster and of its drivers are found."""

OBJECTS = 100 * 2**20
"""Bytes for Ray's object store."""


class Started:
    """Processes that were started from here, found by a mark in their environment."""

    def __init__(self) -> None:
        self.mark = secrets.token_hex(8)
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        self.environment = {
            **os.environ, "PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1", MARK: self.mark,
        }  # fmt: skip
        self.seconds: dict[int, float] = {}

    def run(self, *arguments: str) -> subprocess.Popen:
        """Start `magnetite` with these arguments."""
        command = [sys.executable, "-m", "magnetite", *arguments]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def processes(self) -> dict[int, str]:
        """Number and title of all processes that run."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"{MARK}={self.mark}".encode() in (path / "environ").read_bytes():
                    found[int(path.name)] = (path / "cmdline").read_bytes().decode(errors="replace")
                    user, system = (path / "stat").read_text().rpartition(")")[2].split()[11:13]
                    self.seconds[int(path.name)] = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
        return found

    def workers(self) -> list[int]:
        """The processes that do the work on Ray."""
        return sorted(pid for pid, title in self.processes().items() if title.startswith("ray::_Process"))

    def end(self) -> None:
        """Kill all processes, by their numbers."""
        for _ in range(100):
            running = [pid for pid in self.processes() if pid != os.getpid()]
            if not running:
                return
            for pid in running:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        raise AssertionError(f"processes stay behind: {self.processes()}")


@contextmanager
def cluster(cores: int = 2) -> Iterator[tuple[Started, str]]:
    """The processes of a Ray cluster, and its address; all are gone afterwards."""
    started = Started()
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # sockets need a short path
    started.environment["RAY_TMPDIR"] = folder
    script = [
        "import sys, time",
        "from ray.cluster_utils import Cluster",
        f"options = dict(num_cpus={cores}, object_store_memory={OBJECTS}, include_dashboard=False)",
        "cluster = Cluster(initialize_head=True, head_node_args=options)",
        "print('address', cluster.address, flush=True)",
        "time.sleep(10_000)",
    ]
    head = subprocess.Popen(
        [sys.executable, "-c", "\n".join(script)], env=started.environment, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert head.stdout is not None
        line = next((line for line in head.stdout if line.startswith("address ")), None)
        assert line is not None, "the Ray cluster did not start"
        yield started, line.split()[1]
    finally:
        started.end()
        head.communicate()
        shutil.rmtree(folder, ignore_errors=True)


def wait_until(happened: Callable[[], object], driver: subprocess.Popen, seconds: float = 300) -> None:
    """Wait until something has happened while a driver runs."""
    limit = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < limit, "it did not happen in time"
        assert driver.poll() is None, driver.communicate()[0].decode()
        time.sleep(0.02)


def finish(driver: subprocess.Popen, code: int = 0) -> str:
    """Wait for a driver, and return what it printed."""
    output = driver.communicate(timeout=1800)[0].decode()
    assert driver.returncode == code, output
    return output


def kill(pid: int) -> None:
    """Kill a process at once."""
    os.kill(pid, signal.SIGKILL)


def shards(folder: Path) -> dict[str, tuple[int, int]]:
    """The complete shards in a folder, each with the number and the time of its file, which a new file changes."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.glob("graphs-*")}


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of all files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}
