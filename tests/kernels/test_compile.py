"""CPU kernels: what compiling them says, where they are kept, and that nothing stale is read from there."""

import errno
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from magnetite.kernels import _compat, private
from magnetite.kernels.cpu import compile as compiling
from magnetite.kernels.private import PrivateFiles

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


def test_without_a_private_folder_kernels_are_compiled_in_one_line(tmp_path):
    """No home, no user cache: nothing is kept, least of all in a predictable folder of the temporary directory."""
    done = run(ADD, "", HOME="nowhere", XDG_CACHE_HOME="", NUMBA_CACHE_DIR="", TMPDIR=str(tmp_path))
    assert done.stdout == "5.0 True 0\n"
    assert done.stderr == (
        "magnetite: compiling CPU kernels for this machine, about 7 s; not kept (this user has no home folder)\n"
    )
    assert not list(tmp_path.rglob("*"))


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
    cpu = codegen.magic_tuple()
    assert codegen._get_host_cpu_name() in cpu
    name = add._cache.file_name(add.signatures[0], codegen)
    codegen.magic_tuple = lambda: (*cpu, "another")  # type: ignore[method-assign]
    assert add._cache.file_name(add.signatures[0], codegen) != name
    del codegen.magic_tuple


@pytest.mark.parametrize("name", ["cache_on_disk", "no_alias", "on_compilation"])
def test_kernels_are_right_without_private_api(monkeypatch, name):
    fallback = {"cache_on_disk": lambda *_: False, "no_alias": dict, "on_compilation": lambda *_: None}[name]
    monkeypatch.setattr(_compat, name, fallback)

    @compiling.kernel(seconds=1)
    def scaled_sum(values, factor):
        total = 0.0
        for value in values:
            total += factor * value
        return total

    assert scaled_sum(np.arange(4.0), 2.0) == 12.0
    if name == "cache_on_disk":
        assert not _compat.cache_folder(scaled_sum)  # nothing is kept on disk
    else:
        assert _compat.cache_folder(scaled_sum)


def test_functions_without_a_cache_are_recognised():
    assert not _compat.cache_on_disk(object(), compiling._files("stamp"), "")


FACTOR = 2.0


def double(value):
    return FACTOR * value


def compiled_in(folder: Path, troubles: list[str], source: str = "") -> Any:
    """`double`, compiled as in a new process that keeps its kernels in a folder."""
    function = numba.njit(double)
    assert _compat.cache_on_disk(function, PrivateFiles("kernels-test", troubles.append, str(folder)), source)
    return function


def hits(function: Any) -> int:
    assert function(4.0) == 8.0
    return sum(function.stats.cache_hits.values())


def kept(folder: Path) -> Path:
    (path,) = folder.glob("magnetite/kernels-test/double-*.kernel")
    return path


def test_a_kernel_is_read_from_disk_by_its_types_and_its_source(tmp_path):
    troubles: list[str] = []
    assert [hits(compiled_in(tmp_path, troubles)) for _ in range(2)] == [0, 1]
    assert compiled_in(tmp_path, troubles)(4) == 8  # an integer
    assert hits(compiled_in(tmp_path, troubles, "another source")) == 0
    assert len(list(tmp_path.rglob("*.kernel"))) == 3
    assert not troubles


class Planted:
    """Unpickling it leaves a mark."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


DAMAGES = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[:-1],
    "a flipped bit": lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    "garbage": lambda content: b"garbage" * 1000,
    "too long": lambda content: content + b"0",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_compiled_again_and_replaced(tmp_path, damage):
    troubles: list[str] = []
    hits(compiled_in(tmp_path, troubles))
    path = kept(tmp_path)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert [hits(compiled_in(tmp_path, troubles)) for _ in range(2)] == [0, 1]
    assert troubles == [f"{path} is damaged"]


@pytest.mark.parametrize("how", ["another user's", "writable by others", "a link", "a pipe", "a folder", "unchecked"])
def test_a_planted_file_does_not_run(tmp_path, monkeypatch, how):
    troubles: list[str] = []
    hits(compiled_in(tmp_path, troubles))
    path, mark = kept(tmp_path), tmp_path / "ran"
    planted = pickle.dumps(Planted(mark))
    if how != "unchecked":
        planted = private._checksum(path.stem, planted) + planted
    path.unlink()
    if how in ("a pipe", "a folder"):
        os.mkfifo(path) if how == "a pipe" else path.mkdir()
    else:
        (tmp_path / "planted").write_bytes(planted)
        path.symlink_to(tmp_path / "planted") if how == "a link" else path.write_bytes(planted)
    if how == "writable by others":
        path.chmod(0o666)
    if how == "another user's":
        status = os.fstat
        other = lambda handle: os.stat_result([*status(handle)[:4], os.geteuid() + 1, *status(handle)[5:]])  # noqa: E731
        monkeypatch.setattr(os, "fstat", other)
    assert hits(compiled_in(tmp_path, troubles)) == 0
    assert not mark.exists()
    assert len(troubles) == 1 + (how == "a folder")  # which cannot be replaced either


def test_what_a_file_of_ours_holds_may_be_unreadable(tmp_path):
    troubles: list[str] = []
    hits(compiled_in(tmp_path, troubles))
    path = kept(tmp_path)
    for content in (pickle.dumps((1, 2)), b"no pickle"):
        path.write_bytes(private._checksum(path.stem, content) + content)
        assert hits(compiled_in(tmp_path, troubles)) == 0
    assert len(troubles) == 2


def test_a_full_disk_and_a_folder_that_disappears_cost_only_time(tmp_path, monkeypatch):
    troubles: list[str] = []
    function = compiled_in(tmp_path, troubles)
    with monkeypatch.context() as patched:
        full = OSError(errno.ENOSPC, "No space left on device")
        patched.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(full))
        assert hits(function) == 0
    assert troubles == ["[Errno 28] No space left on device"]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    shutil.rmtree(tmp_path / "magnetite")
    assert function(4) == 8
    assert kept(tmp_path).is_file()


def test_trouble_is_told_in_one_line(monkeypatch, capsys):
    for announced in ([], [object()]):
        monkeypatch.setattr(compiling, "_announced", announced)
        monkeypatch.setattr(compiling, "_troubles", [])
        compiling._report("no space\nleft")
        compiling._report("and again")
        told = "magnetite: compiled kernels are not kept or not read (no space left)\n"
        assert capsys.readouterr().err == (told if announced else "")
    monkeypatch.setattr(sys, "stderr", None)
    compiling._write("nobody listens")


def test_kernels_go_through_one_wrapper():
    for path in Path(compiling.__file__).parent.glob("*.py"):
        if path.name != "compile.py":
            assert "njit" not in path.read_text(), path
