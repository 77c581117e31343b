"""CPU kernels: what compiling them says, where they are kept, and that nothing stale is read from there."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from magnetite.kernels import _compat
from magnetite.kernels.cpu import compile as compiling

CHOOSE = """
import pathlib, numba
pathlib.Path.home = lambda: pathlib.Path("/proc")
import os
access, os.access = os.access, lambda folder, mode: "magnetite-kernels" in str(folder)
import magnetite.kernels.cpu.compile
print(numba.config.CACHE_DIR)
"""

ADD = """
import gc, sys
from magnetite.kernels import _compat
from magnetite.kernels.cpu import compile as compiling
compiling.STAMP += sys.argv[1]
import tests.kernels.added as added
print(added.add(2.0, 3.0), gc.isenabled(), sum(added.add.stats.cache_hits.values()))
"""


def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)


@pytest.mark.parametrize("chosen", [None, "/tmp/chosen"])
def test_kernels_are_kept_in_the_temporary_folder_if_no_other_is_writable(chosen):
    done = run(CHOOSE, **({"NUMBA_CACHE_DIR": chosen} if chosen else {}))
    assert done.stdout.strip() == chosen or (chosen is None and "magnetite-kernels-" in done.stdout)


def test_compiling_is_announced_once_and_reading_from_disk_is_not(tmp_path):
    first, second, changed = (run(ADD, stamp, NUMBA_CACHE_DIR=str(tmp_path)) for stamp in ("", "", "changed"))
    assert first.stdout == "5.0 True 0\n"
    assert first.stderr.startswith("magnetite: compiling CPU kernels for this machine, about 7 s; kept in ")
    assert str(tmp_path) in first.stderr
    assert first.stderr.count("\n") == 1
    assert (second.stdout, second.stderr) == ("5.0 True 1\n", "")
    assert changed.stdout == "5.0 True 0\n"  # another stamp reads nothing that was kept


def test_the_stamp_covers_all_sources_and_versions(monkeypatch):
    stamps = {compiling._stamp()}
    folder = Path(compiling.__file__).parent
    read = Path.read_bytes
    for changed in (folder / "phases.py", folder / "sorting.py", folder.parent / "shared.py"):
        with monkeypatch.context() as patched:
            patched.setattr(Path, "read_bytes", lambda path, one=changed: read(path) + b"#" * (path == one))
            stamps.add(compiling._stamp())
    for library in ("numba", "llvmlite"):
        with monkeypatch.context() as patched:
            patched.setattr(getattr(compiling, library), "__version__", "0")
            stamps.add(compiling._stamp())
    assert len(stamps) == 6


def test_the_cache_key_contains_the_cpu():
    @compiling.kernel(seconds=1)
    def add(one, two):
        return one + two

    add(1.0, 2.0)
    codegen = add.targetctx.codegen()
    assert codegen.magic_tuple() in add._cache._index_key(add.signatures[0], codegen)
    assert codegen._get_host_cpu_name() in codegen.magic_tuple()


@pytest.mark.parametrize("name", ["stamp_cache", "no_alias", "on_compilation"])
def test_kernels_are_right_without_private_api(monkeypatch, name):
    fallback = {"stamp_cache": lambda *_: False, "no_alias": dict, "on_compilation": lambda *_: None}[name]
    monkeypatch.setattr(_compat, name, fallback)

    @compiling.kernel(seconds=1)
    def scaled_sum(values, factor):
        total = 0.0
        for value in values:
            total += factor * value
        return total

    assert scaled_sum(np.arange(4.0), 2.0) == 12.0
    if name == "stamp_cache":
        assert not _compat.cache_folder(scaled_sum)  # without a stamp nothing is kept on disk
    else:
        assert _compat.cache_folder(scaled_sum)


def test_caches_without_a_stamp_are_recognised():
    assert not _compat.stamp_cache(object(), "stamp")


def test_kernels_go_through_one_wrapper():
    for path in Path(compiling.__file__).parent.glob("*.py"):
        if path.name != "compile.py":
            assert "njit" not in path.read_text(), path
