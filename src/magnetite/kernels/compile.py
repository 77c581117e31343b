"""How kernels are compiled."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.compiler import Compiler

LANES = 8
"""Rows of work arrays are padded to this many doubles, one AVX-512 register, so that loops have no remainder."""

_SOURCES = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()


class _NoAlias(Compiler):
    """Promise LLVM that no two arguments overlap: with ten arrays in a loop it would not vectorise without."""

    def define_pipelines(self) -> Any:
        self.state.flags.noalias = True
        return super().define_pipelines()


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile without the interpreter lock; sums may be reordered, but NaN and infinity keep their meaning."""
    compiled = njit(
        nogil=True,
        cache=True,
        error_model="numpy",
        fastmath={"contract", "reassoc", "nsz"},
        pipeline_class=_NoAlias,
    )(function)
    # Kernels call each other across files, but numba's cache would look at the age of their own file alone.
    compiled._cache._cache_file._source_stamp = _SOURCES
    return compiled
