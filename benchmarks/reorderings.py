"""Equivalent texts of real functions: do they have the same graph, and do they pass their tests?

    python benchmarks/reorderings.py              # writes results/reorderings.json; needs the test suite of Python

1. The paper's f1_score: the number of its texts and of their graphs of either kind.
2. Every function of the standard library: the graphs of one random text against those of the source.
3. Modules of the standard library with every function reordered (pure_calls=False, without + and *, which concatenate
   and repeat strings) or with every local variable renamed, run with their own tests.
"""

import argparse
import ast
import importlib
import io
import json
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from math import log10
from pathlib import Path

from rich.console import Console

from magnetite.code import COMMUTATIVE, build, random_names, rename, reorderings
from magnetite.code.reorderings import F1_SCORE
from magnetite.code.source import functions, parse, read_source
from magnetite.io.record import Record

MODULES = "argparse calendar configparser copy csv dataclasses fractions ipaddress pprint statistics string textwrap"
NOT_STRINGS = COMMUTATIVE - {"+", "*"}


def f1_score() -> dict[str, int]:
    """The number of texts of the paper's example and of their graphs."""
    texts = list(reorderings(F1_SCORE))
    kinds = {kind: len({build(text, kind=kind).hash for text in texts}) for kind in ("dataflow", "ast")}
    return {"texts": len(set(texts)), **kinds}


def library_functions(most: int | None) -> Iterator[str]:
    """The source of every function of the standard library that is not nested, without tests."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    found = 0
    for path in sorted(folder.rglob("*.py")):
        if {"test", "tests", "site-packages", "lib2to3"} & set(path.relative_to(folder).parts):
            continue
        for function in functions(parse(read_source(path))):
            if not function.is_nested:
                yield ast.unparse(function.node)
                found += 1
                if found == most:
                    return


def library(seed: int, most: int | None) -> dict[str, float]:
    """One random text of each function against its source."""
    tally: Counter[str] = Counter()
    sizes = []
    for number, source in enumerate(library_functions(most)):
        texts = reorderings(source)
        tally["functions"] += 1
        if not texts.orders:
            continue
        tally["with several texts"] += 1
        text = next(texts.sample(1, seed=seed + number))
        for kind in ("dataflow", "ast"):
            tally[f"other {kind} graph"] += build(text, kind=kind).hash != build(source, kind=kind).hash
        try:
            sizes.append(texts.count)
        except ValueError:
            tally["too many to count"] += 1
    return {**tally, "median texts": sorted(sizes)[len(sizes) // 2], "log10 of most texts": round(log10(max(sizes)), 1)}


def reordered(source: str, name: str, seed: int) -> str:
    """The module with one function reordered."""
    return next(reorderings(source, name=name, operators=NOT_STRINGS, pure_calls=False).sample(1, seed=seed))


def renamed(source: str, name: str, seed: int) -> str:
    """The module with the variables of one function renamed, except parameters, which may be used as keywords."""
    function = next(found.node for found in functions(parse(source)) if found.name == name)
    parameters = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    names = random_names(source, seed, name)
    return rename(source, {old: new for old, new in names.items() if old not in parameters}, name)


REWRITES: dict[str, Callable[[str, str, int], str]] = {"reordered": reordered, "renamed": renamed}


def suite(module_name: str, seed: int, how: str) -> dict[str, int]:
    """The number of tests of a module that fail only when all its functions are rewritten."""
    module = importlib.import_module(module_name)
    source = read_source(str(module.__file__))
    passed = run_tests(module_name)[1]
    changed = 0
    for name in dict.fromkeys(found.name for found in functions(parse(source)) if not found.is_nested):
        try:
            text = REWRITES[how](source, name, seed)
        except ValueError:  # it sees the names of its variables
            continue
        changed += text != ast.unparse(ast.parse(source))
        source = text
    exec(compile(source, str(module.__file__), "exec"), module.__dict__)
    tests, now = run_tests(module_name)
    return {"functions": changed, "tests": tests, "new failures": len(now - passed)}


def run_tests(module_name: str) -> tuple[int, set[str]]:
    """The number of tests that ran, and those that failed."""
    sys.modules.pop(f"test.test_{module_name}", None)
    tests = unittest.defaultTestLoader.loadTestsFromName(f"test.test_{module_name}")
    result = unittest.TextTestRunner(stream=io.StringIO()).run(tests)
    return result.testsRun, {str(test) for test, _ in result.failures + result.errors}


def suites(seed: int) -> dict[str, dict[str, dict[str, int]]]:
    """Run the tests of every module, each in its own process and folder."""
    found: dict[str, dict[str, dict[str, int]]] = {how: {} for how in REWRITES}
    for how in REWRITES:
        for module in MODULES.split():
            with tempfile.TemporaryDirectory() as folder:
                command = [
                    sys.executable,
                    Path(__file__).resolve(),
                    "--suite",
                    module,
                    "--how",
                    how,
                    "--seed",
                    str(seed),
                ]
                done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, check=True)
            found[how][module] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, help="number of functions of the standard library; all by default")
    parser.add_argument("--suite", help="run the tests of this module only, and print the result")
    parser.add_argument("--how", choices=REWRITES, default="reordered")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.suite:
        print(json.dumps(suite(options.suite, options.seed, options.how)))
        return
    record = Record("reorderings", options.seed)
    result = {"f1_score": f1_score(), "library": library(options.seed, options.most), "suites": suites(options.seed)}
    Console().print_json(data=result)
    print(record.write(options.out, result))


if __name__ == "__main__":
    main()
