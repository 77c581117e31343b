"""Run fuzzers in processes of their own, so that a crash is a failed case and not the end; see `tests.fuzz`."""

import argparse
import os
import queue
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.fuzz import MEMORY, SECONDS, Target, random_of, target, targets

ROOT = Path(__file__).parent.parent.parent
TURN = 60.0
"""Seconds that each target runs before the next one, when all run until stopped."""

SHOWN = 5
"""Number of failures of a target that are stored with their messages."""


@dataclass
class Tally:
    """What came of the cases of one target."""

    about: str
    cases: int = 0
    failed: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, number: int, failure: str | None) -> None:
        """Count a case."""
        self.cases += 1
        if failure is not None:
            self.failed += 1
            self.examples += [f"case {number}: {failure}"] * (len(self.examples) < SHOWN)


def outcomes(
    name: str, seed: int, numbers: range, seconds: float, tree: Path = ROOT
) -> Iterator[tuple[int, str | None]]:
    """Run cases until `seconds` have passed: the number of each case, and its failure or None.

    Args:
        name: The target.
        seed: Seed of all cases.
        numbers: Numbers of the cases.
        seconds: Time after which no further case is started.
        tree: Source tree whose `src` is tested.
    """
    end, number = time.monotonic() + seconds, numbers.start
    while number < numbers.stop and time.monotonic() < end:
        with _Worker(name, seed, range(number, numbers.stop), tree) as worker:
            while number < numbers.stop and time.monotonic() < end:
                line = worker.next_line()
                if line is None:
                    yield number, worker.cause_of_death()
                    number += 1
                    break
                yield number, line or None
                number += 1


class _Worker:
    """A process that runs cases one after the other and prints a line after each: empty, or the failure."""

    def __init__(self, name: str, seed: int, numbers: range, tree: Path):
        command = [sys.executable, "-m", "tests.fuzz", "--seed", str(seed)]
        command += ["--worker", name, str(numbers.start), str(numbers.stop)]
        paths = os.pathsep.join([str(tree / "src"), str(ROOT)])
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed in __exit__)
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"},
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            start_new_session=True,
        )
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.started = self.late = False
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                if line.startswith("#"):
                    self.lines.put(line[1:].strip())
        self.lines.put(None)

    def next_line(self) -> str | None:
        """The outcome of the next case; None if the process died or the case took too long."""
        try:
            # The first case includes imports and the compilation of kernels.
            line = self.lines.get(timeout=SECONDS if self.started else 2 * SECONDS)
        except queue.Empty:
            self.late = True
            return None
        self.started = True
        return line

    def cause_of_death(self) -> str:
        """Why there is no further line."""
        if self.late:
            return f"took longer than {SECONDS} s"
        code = self.process.wait()
        self.errors.seek(0)
        last = self.errors.read().strip().splitlines()[-1:] or [""]
        return signal.Signals(-code).name if code < 0 else f"exit code {code}: {last[0]}"

    def __enter__(self) -> "_Worker":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.reader.join()
        self.errors.close()


def work(name: str, seed: int, numbers: range) -> None:
    """What a worker does."""
    own = target(name)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in numbers:
        print(f"#{failure_of(own, seed, number) or ''}", flush=True)


def failure_of(own: Target, seed: int, number: int) -> str | None:
    """Run one case in this process: one line about its failure, or None."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            own.case(random_of(own.name, seed, number), Path(folder))
        except Exception as error:  # any exception is a failed case
            return " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; the exit code is 1 if a case failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Random cases against an oracle.")
    parser.add_argument("names", nargs="*", help="targets; all if omitted")
    parser.add_argument("--seed", type=int, help="seed of all cases; a new one if omitted")
    parser.add_argument("--cases", help="number of cases per target, or 'all' of `make slow`; without end if omitted")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="time limit per target")
    parser.add_argument("--case", type=int, help="run this case in this process, with its traceback")
    parser.add_argument("--jobs", type=int, default=1, help="number of targets that run at the same time")
    parser.add_argument("--tree", type=Path, default=ROOT, help="source tree to test")
    parser.add_argument("--out", type=Path, help="JSON file for the counts")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    seed = int.from_bytes(os.urandom(4)) if options.seed is None else options.seed
    if options.worker:
        name, first, stop = options.worker
        work(name, seed, range(int(first), int(stop)))
        return 0
    if options.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            target(options.names[0]).case(random_of(options.names[0], seed, options.case), Path(folder))
        return 0
    chosen = {name: target(name) for name in options.names} or targets()
    tallies = {name: Tally(own.about) for name, own in chosen.items()}
    try:
        _run(chosen, tallies, seed, options)
    except KeyboardInterrupt:
        print("stopped")
    for name, tally in tallies.items():
        print(f"{name:12} {tally.cases:7,} cases {tally.failed:6,} failed  {tally.about}")
    if options.out:
        _write(options.out, seed, options.tree, tallies)
    return int(any(tally.failed for tally in tallies.values()))


def _run(chosen: dict[str, Target], tallies: dict[str, Tally], seed: int, options: argparse.Namespace) -> None:
    endless = options.cases is None
    unlimited = endless and options.minutes == float("inf")
    print(f"seed {seed}" + (", until Ctrl-C" if unlimited else ""))

    def run(own: Target) -> None:
        first = tallies[own.name].cases
        last = 2**31 if endless else own.cases if options.cases == "all" else int(options.cases)
        limit = TURN if unlimited else 60 * options.minutes
        for number, failure in outcomes(own.name, seed, range(first, last), limit, options.tree):
            tallies[own.name].add(number, failure)
            if failure is not None:
                print(f"python -m tests.fuzz {own.name} --seed {seed} --case {number}   # {failure}", flush=True)

    while True:
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(run, chosen.values()))
        if not unlimited:
            return


def _write(path: Path, seed: int, tree: Path, tallies: dict[str, Tally]) -> None:
    """Write the counts, beside those of other targets of the same tree and seed that the file has already."""
    from magnetite.io.record import Record, read_record

    record, tested = Record(path.stem, seed), _commit(tree)
    kept = read_record(path) if path.exists() else None
    table = kept["result"]["targets"] if kept and (kept["seed"], kept["result"]["tested"]) == (seed, tested) else {}
    table = {**table, **{name: asdict(tally) for name, tally in tallies.items()}}
    record.write(path.parent, {"tested": tested, "targets": dict(sorted(table.items()))})


def _commit(tree: Path) -> str:
    """The commit of the tree that is tested."""
    program = "from magnetite.io.record import commit; print(commit())"
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    found = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    return found.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
