"""Real data: circuits (HLS, four targets) and page graphs (Chameleon, Squirrel), our models against PyG's.

    python benchmarks/real_data.py --data-folder shared/data --out runs/real-data --workers 10 --minutes 9
    python benchmarks/real_data.py --merge runs/real-data            # adds its rows to results/real-data.json

Every row (a model and an encoding) has the same embedding and head, the same optimiser, number of epochs and batches,
and the same search: each setting of `TRIALS` once, on the first seed or split; validation chooses one, which all
seeds or splits then use. The epoch is chosen by validation, too, for each target. Node numbers are permuted. PyG's
encodings are PyG's transforms: eigenvectors of the symmetrised graph with random signs in training, and walks on the
directed and on the symmetrised graph. HLS is trained on standardised targets by the squared error; errors have the
units of the targets, and MAPE leaves out targets that are 0. `hls` is one network with four outputs, `hls-lut` one for
LUT.

Jobs run side by side on one device. Each one that is finished is a line in `jobs.jsonl`, and is not run again: `--done`
names folders with lines of earlier runs. `--toy` is a small size that runs on a CPU; `--one-line` is what `mt.train`
gives without any of this.
"""

import argparse
import json
import math
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

from real_models import PYG, ROWS, side
from real_training import PAGES, TOY, TRIALS, Job, Setting, encode_with_pyg, work

from magnetite.io import record
from magnetite.io.storage import write_json

# Jobs


def searches(data: str, rows: Iterable[tuple[str, str]]) -> list[Job]:
    """The trials of all rows, one job each; page graphs have all of them in one."""
    trials = range(1 if data in PAGES else len(TRIALS["graph"]))
    return [Job(data, model, encoding, "search", trial) for trial in trials for model, encoding in rows]


def finals(data: str, row: tuple[str, str], found: dict[str, dict[str, Any]], seeds: int) -> list[Job]:
    """The runs with the options that validation chose; empty as long as a trial is missing."""
    needed = [found.get(job.key) for job in searches(data, [row])]
    if not all(needed):
        return []
    runs = [run for line in needed if line for run in line.get("runs", [line]) if "score" in run]
    if not runs:
        return []
    best = min(runs, key=lambda run: run["score"])
    options = tuple(sorted(best["options"].items()))
    return [Job(data, *row, "final", seed, options) for seed in range(1 if data in PAGES else seeds)]


def lines_of(folders: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Finished jobs by key; the last line of a key counts, unless it failed."""
    found: dict[str, dict[str, Any]] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else [folder]:
            for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
                line = json.loads(text)
                if "error" not in line or line["key"] not in found:
                    found[line["key"]] = line
    return found


class Schedule:
    """Which job to run next: data sets in the given order, trials before final runs, the first seed before the second.

    A final run is known when all trials of its row are done. A job that would not end in time, by the time that such
    jobs took, is not begun.
    """

    def __init__(self, setting: Setting, options: argparse.Namespace, rows: list[tuple[str, str]]):
        found = lines_of([options.out, *options.done])
        found = {key: line for key, line in found.items() if "error" not in line or not options.again}
        self.found: dict[str, dict[str, Any]] = {}
        self.setting, self.data, self.rows = setting, list(options.data), rows
        self.begun: set[str] = set()
        self.longest: dict[tuple[str, ...], float] = {}
        self.one_line = [Job("hls", "one-line", "magnetic", "one-line")] if options.one_line else []
        for line in found.values():
            self.ended(line)

    def waiting(self) -> list[Job]:
        """The jobs that can run now, in order."""
        each = [
            [*searches(data, self.rows), *(job for row in self.rows for job in self.finals(data, row))]
            for data in self.data
        ]
        jobs = [*self.one_line, *(job for jobs in each for job in sorted(jobs, key=self.order))]
        return [job for job in jobs if job.key not in self.found and job.key not in self.begun]

    def order(self, job: Job) -> tuple[bool, int]:
        """Trials first, and one of each row before the next."""
        return job.stage == "final", job.number

    def finals(self, data: str, row: tuple[str, str]) -> list[Job]:
        """The final runs of a row."""
        return finals(data, row, self.found, self.setting.seeds)

    def next(self) -> Job | None:
        """The first job that ends in time."""
        left = self.setting.deadline - time.time()
        for job in self.waiting():
            if self.expected(job) < left:
                self.begun.add(job.key)
                return job
        return None

    def expected(self, job: Job) -> float:
        """Seconds that such a job took at most; before the first final run of a row, three times those of a trial."""
        row = job.data, job.model, job.encoding
        trial, found = (self.longest.get((*row, stage), 0.0) for stage in ("search", job.stage))
        return found or 3 * trial

    def ended(self, line: dict[str, Any]) -> None:
        """Take a result."""
        kind = line["data"], line["model"], line["encoding"], line["stage"]
        self.longest[kind] = max(self.longest.get(kind, 0.0), duration(line))
        self.found[line["key"]] = line


def duration(line: dict[str, Any]) -> float:
    """Seconds of all runs of a job."""
    return line.get("seconds") or sum(run["seconds"] for run in line.get("runs", []))


def execute(setting: Setting, options: argparse.Namespace) -> None:
    """Run the jobs that are not done yet, several side by side."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # each of the processes that are started would use all cores
    rows = [row for row in ROWS if not options.rows or f"{row[0]}/{row[1]}" in options.rows or row[0] in options.rows]
    encode_with_pyg(setting, [name for name in PYG if any(row[1] == name for row in rows)], options.data)
    schedule, begun, steps = Schedule(setting, options, rows), time.time(), 0.0
    context, running = multiprocessing.get_context("spawn"), set[Future[dict[str, Any]]]()
    log = (options.out / "jobs.jsonl").open("a", encoding="utf-8")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool, log as file:
        while True:
            while len(running) < options.workers and (job := schedule.next()) is not None:
                running.add(pool.submit(work, job, setting))
            if not running:
                break
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for line in (future.result() for future in ended):
                if line.get("late"):
                    continue
                schedule.ended(line)
                file.write(json.dumps(line) + "\n")
                file.flush()
                steps += line.get("steps_per_second", 0.0) * duration(line)
                tell(line, len(schedule.waiting()), time.time() - begun)
    seconds = time.time() - begun
    print(f"{steps:.0f} steps on HLS in {seconds:.0f} s: {steps / seconds:.0f} steps/s of all workers together")


def tell(line: dict[str, Any], left: int, seconds: float) -> None:
    """One line about a finished job."""
    what = line.get("error", f"score {line['score']:.4f}" if "score" in line else "")
    speed = f", {line['steps_per_second']:.0f} steps/s" if "steps_per_second" in line else ""
    print(f"{seconds:6.0f} s  {line['key']}: {duration(line):.0f} s{speed} {what} ({left} jobs wait)", flush=True)


# The table


def spread(values: Sequence[float]) -> dict[str, float]:
    """Mean and standard deviation."""
    return {"mean": statistics.fmean(values), "std": statistics.stdev(values) if len(values) > 1 else 0.0}


ORIGIN = ("commit", "device")
"""What a row says about the jobs it is from."""


def merged(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """All rows of all data sets, with every seed or split."""
    result: dict[str, Any] = {}
    for data in dict.fromkeys(line["data"] for line in found.values() if line["stage"] == "final"):
        rows = []
        for model, encoding in ROWS:
            of = [
                line
                for line in found.values()
                if (line["data"], line["model"], line["encoding"]) == (data, model, encoding)
            ]
            last = sorted((line for line in of if line["stage"] == "final"), key=lambda line: line["number"])
            good = [line for line in last if "error" not in line]
            row: dict[str, Any] = {"model": model, "encoding": encoding, "side": side(model, encoding)}
            row["errors"] = [line["error"] for line in of if "error" in line]
            row |= {name: ", ".join(dict.fromkeys(line[name] for line in of)) for name in ORIGIN}
            if good and data in PAGES:
                runs = good[0]["runs"]
                row |= {"options": dict(good[0]["options"]), "parameters": runs[0]["parameters"]}
                row |= {
                    "accuracy": spread([run["test"] for run in runs]),
                    "valid": spread([run["valid"] for run in runs]),
                }
                row["splits"] = [run["test"] for run in runs]
            elif good:
                row |= {"options": good[0]["options"], "parameters": good[0]["parameters"]}
                row["epochs"] = [line["epochs"] for line in good]
                row["seconds"] = [round(line["seconds"], 1) for line in good]
                names = good[0]["targets"]
                row["seeds"] = [{name: line["targets"][name]["test"] for name in names} for line in good]
                row["targets"] = {
                    name: {
                        **{m: spread([line["targets"][name]["test"][m] for line in good]) for m in ("rmse", "mape")},
                        "valid": spread([line["targets"][name]["valid"]["rmse"] for line in good]),
                    }
                    for name in names
                }
            rows.append(row)
        result[data] = {"rows": [row for row in rows if "options" in row or row["errors"]]}
    alone = [line for line in found.values() if line["stage"] == "one-line" and "error" not in line]
    if alone:
        result["one_line"] = {name: alone[0][name] for name in ("targets", "seconds", "preset", "parameters")}
    return result


def with_stored(result: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    """The result with the rows of a stored record that it does not have: these are kept, none is replaced silently."""
    earlier, origin = stored.get("result", {}), {name: stored.get(name) for name in ORIGIN}
    both = {name: earlier.get(name, {}) | result.get(name, {}) for name in {**earlier, **result}}
    for data in both.keys() - {"one_line"}:
        rows = {
            (row["model"], row["encoding"]): origin | row
            for source in (earlier, result)
            for row in source.get(data, {}).get("rows", [])
        }
        both[data]["rows"] = [rows[row] for row in ROWS if row in rows]
    return both


def merge(folders: Sequence[Path], out: Path, seed: int) -> None:
    """Add rows to `real-data.json`, each with the device and commit of its jobs; `seconds` counts the added rows."""
    found = lines_of(folders)
    if not found:
        raise SystemExit(f"no finished jobs in {', '.join(map(str, folders))}: run them first")
    path = out / "real-data.json"
    stored = record.read_record(path) if path.exists() else {}
    result = with_stored(merged(found), stored)
    content = record.Record("real-data", seed).content(result)
    rows = [row for data, each in result.items() if data != "one_line" for row in each["rows"]]
    for name in ORIGIN:
        content[name] = ", ".join(dict.fromkeys(row[name] for row in rows))
    content["seconds"] = round(sum(map(duration, found.values())))
    write_json(path, content)
    show(result)


def show(result: dict[str, Any]) -> None:
    """A short table."""
    for data, found in result.items():
        if data == "one_line":
            print(
                "one line of mt.train:",
                {name: round(each["test"]["rmse"], 4) for name, each in found["targets"].items()},
            )
            continue
        print(f"\n{data}")
        for row in found["rows"]:
            name = f"{row['model']} + {row['encoding']}".ljust(28)
            if "accuracy" in row:
                print(f"{name} {100 * row['accuracy']['mean']:.2f} ± {100 * row['accuracy']['std']:.2f}")
            elif "targets" in row:
                each = (f"{t} {s['rmse']['mean']:.4f} ± {s['rmse']['std']:.4f}" for t, s in row["targets"].items())
                print(name, "  ".join(each))
            else:
                print(name, "; ".join(row["errors"])[:90])


def main() -> None:
    """Run, or merge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-folder", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("runs/real-data"), help="folder of the finished jobs")
    parser.add_argument("--done", type=Path, nargs="*", default=[], help="folders or files with jobs finished earlier")
    parser.add_argument(
        "--merge", type=Path, nargs="*", help="write results/real-data.json from these folders or files"
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the merged result")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "magnetite-real-data")
    parser.add_argument("--data", nargs="*", default=["hls", *PAGES])
    parser.add_argument("--rows", nargs="*", default=[], help="such as gps, or sat/magnetic; all by default")
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after this time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one-line", action="store_true")
    parser.add_argument("--again", action="store_true", help="repeat jobs that failed")
    parser.add_argument("--toy", action="store_true")
    for name in ("epochs", "steps", "width", "layers", "batch", "cap", "graphs", "seeds"):
        parser.add_argument(f"--{name}", type=float if name == "cap" else int)
    options = parser.parse_args()
    if options.merge is not None:
        merge(options.merge or [options.out], options.results, options.seed)
        return
    for folder in (options.out, options.cache):
        folder.mkdir(parents=True, exist_ok=True)
    setting = Setting(str(options.data_folder), str(options.cache), options.seed, **(TOY if options.toy else {}))
    given = {
        name: getattr(options, name)
        for name in ("epochs", "steps", "width", "layers", "batch", "cap", "graphs", "seeds")
    }
    setting = replace(setting, **{name: value for name, value in given.items() if value is not None})
    execute(replace(setting, deadline=time.time() + 60 * options.minutes), options)
    show(merged(lines_of([options.out, *options.done])))


if __name__ == "__main__":
    main()
