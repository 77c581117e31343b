"""How kernels are compiled."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.compiler import Compiler
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

LANES = 8
"""Rows of work arrays are padded to this many doubles, one AVX-512 register, so that loops have no remainder."""

_SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()


class _NoAlias(Compiler):
    """Promise LLVM that no two arguments overlap: with ten arrays in a loop it would not vectorise without."""

    def define_pipelines(self) -> Any:
        self.state.flags.noalias = True
        return super().define_pipelines()


_OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    # Sums may be reordered, but NaN and infinity keep their meaning.
    "fastmath": {"contract", "reassoc", "nsz"},
    "pipeline_class": _NoAlias,
}


def part(function: Callable[..., Any]) -> Any:
    """Compile what only kernels call; it becomes a piece of each of them.

    Were it called, a process that had just compiled it would call that copy, and one that read the kernel from disk the
    copy in there, optimised once more: the last bits would change from run to run.
    """
    return njit(forceinline=True, **_OPTIONS)(function)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile what Python calls, parts and all, without the interpreter lock, and keep it on disk."""
    compiled: Any = njit(cache=True, **_OPTIONS)(function)
    # Kernels call each other across files, but numba's cache would look at the age of their own file alone.
    compiled._cache._cache_file._source_stamp = _SOURCES
    return compiled


@intrinsic
def _prefetch_row(_context, array, row):
    """Ask the memory for the first line of `array[row]` without waiting for it."""

    def generate(context, builder, signature, arguments):
        view = make_array(signature.args[0])(context, builder, arguments[0])
        place = [
            context.cast(builder, arguments[1], signature.args[1], types.intp),
            context.get_constant(types.intp, 0),
        ]
        pointer = cgutils.get_item_pointer(context, builder, signature.args[0], view, place, wraparound=False)
        pointer = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        integer = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [pointer.type, integer, integer, integer])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", (pointer.type,), shape)
        builder.call(fetch, [pointer, *(ir.Constant(integer, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, row), generate


prefetch_row: Any = _prefetch_row
"""`prefetch_row(array, row)` in a kernel: numba passes the context."""
