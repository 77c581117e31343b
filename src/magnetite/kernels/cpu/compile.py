"""How numba compiles kernels: `kernel` for functions that Python calls, `part` for functions that kernels call."""

import functools
import gc
import hashlib
import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import llvmlite
import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from magnetite.kernels import _compat
from magnetite.kernels.private import PrivateFiles

LANES = 8
"""Rows of work arrays are padded to this many doubles, one AVX-512 register, so that loops have no remainder."""


def _stamp() -> str:
    """A hash of everything a compiled kernel depends on; numba itself adds the CPU and its features to the cache key.

    A kernel may inline functions of other files, so every kernel depends on every file.
    """
    folder = Path(__file__).parent
    digest = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__}".encode())
    for path in sorted([*folder.glob("*.py"), *folder.parent.glob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


STAMP = _stamp()

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    # Sums may be reordered, but NaN and infinity keep their meaning.
    "fastmath": {"contract", "reassoc", "nsz"},
    **_compat.no_alias(),
}


def part(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call (a call from Python would crash); it is inlined into each of them.

    If it were not inlined, a process that has just compiled it would run that copy, while a process that loads the
    kernel from disk would run the copy stored with the kernel, which was optimised again: the last bits of results
    would differ between runs. No wrapper for calls from Python is generated, since that would change the code that is
    inlined, and with it the last bits.
    """
    options = {**_OPTIONS, "forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(**options)(function)


def kernel(seconds: int, reorder: bool = True) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that Python calls, with its parts, and keep it on disk where only this user can write.

    No two of its array arguments may overlap. `seconds` is about how long a first call takes on a new machine, together
    with the other kernels of that call. Without `reorder` the terms of sums keep their order: a loop over entries that
    lie apart in memory would otherwise gather them into vectors, which is slower than to add one after the other.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        options = {**_OPTIONS, "no_cfunc_wrapper": True}
        if not reorder:
            options["fastmath"] = _OPTIONS["fastmath"] - {"reassoc"}
        compiled: Any = numba.njit(**options)(function)
        _compat.cache_on_disk(compiled, _files(STAMP), STAMP + _source_hash(inspect.getfile(function)))
        _seconds[compiled] = seconds
        return compiled

    return decorate


@functools.cache
def _files(stamp: str) -> PrivateFiles:
    """The files of all kernels with this stamp; `NUMBA_CACHE_DIR` chooses another folder than the user's cache."""
    return PrivateFiles(f"kernels-{stamp[:16]}", _report, _compat.chosen_cache_folder())


@functools.cache
def _source_hash(file: str) -> str:
    """A hash of the file of a kernel, for kernels that are not part of this package and hence not of the stamp."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:  # a function without a file, whose byte code is all there is
        return ""


_seconds: dict[Any, int] = {}
_announced: list[Any] = []
_collecting: list[bool] = []
_troubles: list[str] = []


def _report(trouble: str) -> None:
    """Print once per process why kernels are compiled again, or why they are not kept."""
    _troubles.append(" ".join(trouble.split()))
    if len(_troubles) == 1 and _announced:
        _write(f"compiled kernels are not kept or not read ({_troubles[0]})")


def _write(line: str) -> None:
    with suppress(OSError, AttributeError):  # a process without standard error
        sys.stderr.write(f"magnetite: {line}\n")
        sys.stderr.flush()


def _start(compiled: Any) -> None:
    """Print once per process that kernels are being compiled; pause the garbage collector, which saves a fifth."""
    if compiled not in _seconds:
        return
    _collecting.append(gc.isenabled())
    gc.disable()
    if not _announced:
        _announced.append(compiled)
        _write(f"compiling CPU kernels for this machine, about {_seconds[compiled]} s; {_kept(compiled)}")


def _kept(compiled: Any) -> str:
    """Where a kernel is kept, and what is wrong there."""
    folder = _compat.cache_folder(compiled)
    kept = f"kept in {folder}" if folder else "not kept"
    return f"{kept} ({_troubles[0]})" if _troubles else kept


def _end(compiled: Any) -> None:
    if compiled in _seconds and _collecting.pop():
        gc.enable()


_compat.on_compilation(_start, _end)


def _float_of_bits(_context: Any, bits: Any) -> Any:  # noqa: ARG001
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


float_of_bits: Any = intrinsic(_float_of_bits)
"""`float_of_bits(bits)` in a kernel: the single-precision number whose bits are those of a 32-bit integer."""

prefetch_row: Any = _compat.prefetch_row()
"""`prefetch_row(array, row)` in a kernel: request the first cache line of a row before it is used."""
