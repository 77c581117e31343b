"""Graphs of both kinds of every function of the standard library and of the installed packages.

    python benchmarks/code_graphs.py        # writes results/benchmark-code-graphs.json

Times are processor time, summed over processes, since the machine may be busy. Reading and parsing a file is measured
once and added to the time of each kind. Also reported: files that do not parse, failures (there should be none), how
often the graph is not in text order, and how many reads of local names in the bodies of `with`, `async` and `match`
are reached by a write.
"""

import argparse
import gc
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from sysconfig import get_paths
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from magnetite.code import CodeGraph, build_files
from magnetite.code.source import Function, functions, graph_of, parse, read_source
from magnetite.io.record import Record

LISTS = ("body", "orelse", "finalbody")
BODIES = frozenset({"With", "AsyncWith", "AsyncFor", "Match"})
AUTHORS = 162
"""Functions per second of the authors' pipeline on one core (CODE_GRAPHS.md)."""


def standard_library() -> list[Path]:
    """All files of the standard library of the running Python, including tests."""
    root = Path(get_paths()["stdlib"])
    return sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts)


def packages() -> dict[str, list[Path]]:
    """All files of every installed package except this one."""
    root = Path(get_paths()["purelib"])
    found = {}
    for entry in sorted(root.iterdir()):
        if entry.name.startswith(("_", "magnetite")) or entry.name.endswith((".dist-info", ".libs")):
            continue
        files = sorted(entry.rglob("*.py")) if entry.is_dir() else [entry] if entry.suffix == ".py" else []
        if files:
            found[entry.name.removesuffix(".py")] = files
    return found


def found_functions(path: Path, seconds: Counter[str], counts: Counter[str]) -> list[Function]:
    """The functions of a file; files that do not parse are counted."""
    begin = time.process_time()
    try:
        found = list(functions(parse(read_source(path), str(path))))
    except ValueError:
        counts["files that do not parse"] += 1
        found = []
    seconds["parse"] += time.process_time() - begin
    return found


def differs_from_text(graph: CodeGraph) -> bool:
    """Whether some statement does not follow its predecessor in a statement list."""
    lists: dict[tuple[int, str], list[int]] = defaultdict(list)
    into: dict[int, list[int]] = defaultdict(list)
    for source, target, kind, name in graph.edges:
        if kind == "FIELD" and name in LISTS and graph.types[source] not in ("IfExp", "Lambda"):
            lists[(source, name)].append(target)
        elif kind == "CFG_NEXT":
            into[target].append(source)
    return any(
        not any(one <= source < other for source in into[other])
        for statements in lists.values()
        for one, other in pairwise(statements)
    )


def reads_inside(graph: CodeGraph) -> Iterator[bool]:
    """For every read of a local name in the body of a `with`, `async` or `match`, whether a write reaches it."""
    parents, contexts, reached = {}, {}, set()
    for source, target, kind, name in graph.edges:
        if kind == "FIELD":
            parents[target] = source
            if name == "ctx":
                contexts[source] = graph.types[target]
        elif kind == "LAST_WRITE":
            reached.add(target)
    inside = set()
    for node in range(1, len(graph)):
        if graph.types[parents[node]] in BODIES or parents[node] in inside:
            inside.add(node)
    bound = {
        name
        for node, name in enumerate(graph.attributes)
        if contexts.get(node) == "Store" or graph.types[node] == "arg"
    }
    for node in inside:
        if contexts.get(node) == "Load" and graph.types[node] == "Name" and graph.attributes[node] in bound:
            yield node in reached


def measure_file(path: Path) -> tuple[Counter[str], Counter[str]]:
    """Build all graphs of a file; return counts and processor seconds."""
    seconds, counts = Counter[str](), Counter[str]()
    for function in found_functions(path, seconds, counts):
        counts["functions"] += 1
        for kind in ("dataflow", "ast"):
            begin = time.process_time()
            try:
                graph = graph_of(function, kind, "strict", False)
            except Exception as error:  # the benchmark shows that there is none
                counts[f"{kind} failed"] += 1
                Console().print(path, function.name, repr(error))
                continue
            finally:
                seconds[kind] += time.process_time() - begin
            counts[f"{kind} nodes"] += len(graph)
            counts[f"{kind} edges"] += len(graph.edges)
            if kind == "dataflow":
                counts["not in text order"] += differs_from_text(graph)
                reads = list(reads_inside(graph))
                counts["reads in with, async, match"] += len(reads)
                counts["of them reached"] += sum(reads)
    return counts, seconds


def measure(files: list[Path], title: str, workers: int) -> dict[str, Any]:
    """Build all graphs of some files, each file in one process."""
    seconds, counts = Counter[str](), Counter[str]()
    # gc need not scan the objects of imported libraries
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=gc.freeze) as pool:
        for found in track(pool.map(measure_file, files, chunksize=8), title, total=len(files), transient=True):
            counts.update(found[0])
            seconds.update(found[1])
    return {"files": len(files), "counts": dict(counts), "seconds": dict(seconds), **rates(counts, seconds)}


def rates(counts: Counter[str], seconds: Counter[str]) -> dict[str, float]:
    """Functions per second on one core, including reading and parsing their files."""
    found = {
        f"{kind}_per_second": counts["functions"] / (seconds["parse"] + seconds[kind]) for kind in ("dataflow", "ast")
    }
    found["times_authors"] = found["dataflow_per_second"] / AUTHORS
    found["share_not_in_text_order"] = counts["not in text order"] / counts["functions"]
    return found


def hashes(files: list[Path], count: int) -> dict[str, float]:
    """Functions hashed per second."""
    graphs = [graph for _, found in build_files(files, workers=1) if isinstance(found, list) for graph in found][:count]
    begin = time.process_time()
    distinct = {graph.hash for graph in graphs}
    return {"graphs": len(graphs), "distinct": len(distinct), "per_second": len(graphs) / (time.process_time() - begin)}


def in_parallel(files: list[Path], workers: int) -> dict[str, float]:
    """Functions built per second by several processes, in wall-clock time including their start."""
    begin = time.perf_counter()
    count = sum(len(found) for _, found in build_files(files, workers=workers) if isinstance(found, list))
    return {"workers": workers, "functions": count, "per_second": count / (time.perf_counter() - begin)}


def main() -> None:
    """Print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the JSON")
    parser.add_argument("--workers", type=int, default=1, help="number of processes")
    options = parser.parse_args()
    record = Record("benchmark-code-graphs", seed=0)
    library, installed = standard_library(), packages()
    every = [path for files in installed.values() for path in files]
    result: dict[str, Any] = {
        "standard library": measure(library, "standard library", options.workers),
        "installed packages": {"packages": sorted(installed), **measure(every, "packages", options.workers)},
        "hashing": hashes(library[:200], 3000),
        "parallel": in_parallel(library[:200], 2),
    }
    table = Table("corpus", "functions", "failed", "dataflow/s", "ast/s", "not in text order")
    for name in ("standard library", "installed packages"):
        row = result[name]
        failed = row["counts"].get("dataflow failed", 0) + row["counts"].get("ast failed", 0)
        speeds = [f"{row[f'{kind}_per_second']:,.0f}" for kind in ("dataflow", "ast")]
        table.add_row(
            name, f"{row['counts']['functions']:,}", str(failed), *speeds, f"{row['share_not_in_text_order']:.1%}"
        )
    Console().print(table)
    record.write(options.out, result)


if __name__ == "__main__":
    main()
