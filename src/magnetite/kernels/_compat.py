"""Private APIs of torch and numba, and calls that some platforms lack: one function per use, with a fallback.

Importing this module loads neither numba nor `torch._dynamo`.
"""

import atexit
import functools
import hashlib
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from magnetite.kernels.private import PrivateFiles, make_private

INDUCTOR_CACHE = "TORCHINDUCTOR_CACHE_DIR"
"""The environment variable with the folder in which `torch.compile` keeps its files."""


def available_cores() -> int:
    """Number of cores that this process may use; macOS and Windows count all of the machine's cores.

    >>> available_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def foreach_copy(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    """Copy each source into its target, with one kernel for many tensors where torch has `_foreach_copy_`.

    >>> target = torch.zeros(2)
    >>> foreach_copy([target], [torch.ones(2)])
    >>> target
    tensor([1., 1.])
    """
    if hasattr(torch, "_foreach_copy_"):
        torch._foreach_copy_(list(targets), list(sources))  # pyright: ignore[reportPrivateImportUsage]
        return
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)


def assert_async(condition: Tensor, message: Callable[[], str]) -> None:
    """Raise `ValueError(message())` unless the condition holds; on CUDA the check is asynchronous and has no message.

    Without `torch._assert_async`, the check on CUDA synchronises with the device and has a message.

    >>> assert_async(torch.tensor(False), lambda: "k must be a positive integer, got 0")
    Traceback (most recent call last):
    ValueError: k must be a positive integer, got 0
    """
    if condition.device.type == "cuda" and hasattr(torch, "_assert_async"):
        torch._assert_async(condition)  # pyright: ignore[reportPrivateImportUsage]
    elif not condition:
        raise ValueError(message())


def not_compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which torch.compile calls as it is, with everything that it calls.

    As `torch.compiler.disable` does, which imports the compiler, so it is used only where that is loaded already.
    """

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        return (_disabled(function) if "torch._dynamo" in sys.modules else function)(*args, **options)

    run._torchdynamo_disable = True  # type: ignore[attr-defined]
    return run


@functools.cache
def _disabled(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compiler.disable(function)  # type: ignore[return-value]


def set_up_compiler(recompilations: int) -> None:
    """Prepare `torch.compile` for training; settings that this version of torch does not have are left out.

    Allow `recompilations` of the same code, since layers of one kind share it and shapes vary. Switch off reductions
    over rows and columns in one kernel, which have wrong shapes in torch 2.11 (issue 178080) and sometimes unwritten
    values in torch 2.13 (issue 193061). Start the compiler's worker processes now: they take seconds to load torch,
    and until they have started, kernels are compiled one by one.
    """
    protect_compiler_cache()
    import torch._dynamo.config
    import torch._inductor.async_compile
    import torch._inductor.config

    set_if_known(torch._dynamo.config, "recompile_limit", recompilations)
    set_if_known(torch._inductor.config.triton, "mix_order_reduction", False)
    if hasattr(torch._inductor.async_compile, "maybe_warm_pool"):
        torch._inductor.async_compile.maybe_warm_pool()


def protect_compiler_cache() -> None:
    """Let `torch.compile` keep its files, which it unpickles and runs, where only this user can write.

    Its default is a predictable folder in the shared temporary directory. If another user can write there, this process
    gets a new folder, which is removed at its end. A folder that the user chose is left as it is.
    """
    try:
        from torch._inductor.runtime.cache_dir_utils import default_cache_dir

        default = default_cache_dir()
    except (ImportError, KeyError, OSError):  # KeyError: a user without a name
        default = ""
    chosen = os.environ.get(INDUCTOR_CACHE, default)
    if chosen != default:
        return
    try:
        if not default:
            raise OSError("there is no default folder")
        make_private(Path(default))
        os.environ[INDUCTOR_CACHE] = default
    except OSError:
        os.environ[INDUCTOR_CACHE] = folder = tempfile.mkdtemp(prefix="magnetite-torch-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


def set_if_known(settings: Any, name: str, value: object) -> None:
    """Change a setting if it exists."""
    if hasattr(settings, name):
        setattr(settings, name, value)


def can_compile_cuda() -> bool:
    """Whether this torch compiles CUDA sources at run time; otherwise callers use plain torch operations."""
    return hasattr(torch.cuda, "_compile_kernel")


def compile_cuda(source: str, name: str, options: Sequence[str], shared_memory: int = 0) -> Any:
    """Compile function `name` of a CUDA source for the current device.

    The result is called with `grid`, `block`, `args` and `shared_mem`. `shared_memory` is the number of bytes of
    dynamic shared memory to allow per block where that exceeds the default of 48 KiB.
    """
    if not can_compile_cuda():
        raise RuntimeError(f"torch {torch.__version__} cannot compile CUDA kernels at run time: torch 2.9 or newer can")
    kernel: Any = torch.cuda._compile_kernel(source, name, nvcc_options=list(options))  # pyright: ignore
    if shared_memory:
        kernel.set_shared_memory_config(shared_memory)
    return kernel


def no_alias() -> dict[str, Any]:
    """Options for `numba.njit` that promise LLVM that no two arguments overlap.

    Without the promise, loops over ten arrays are not vectorised. If numba has no such flag, the options are empty, and
    kernels are slower but correct.
    """
    from numba.core import compiler

    if not hasattr(compiler, "Compiler") or not hasattr(getattr(compiler, "Flags", None), "noalias"):
        return {}

    class NoAlias(compiler.Compiler):
        def define_pipelines(self) -> Any:
            self.state.flags.noalias = True
            return super().define_pipelines()

    return {"pipeline_class": NoAlias}


def on_compilation(start: Callable[[Any], None], end: Callable[[Any], None]) -> None:
    """Call `start(function)` and `end(function)` around each compilation by numba; reading from disk is not one."""
    try:
        from numba.core import event
    except ImportError:
        return

    class Compilations(event.Listener):
        def on_start(self, event: Any) -> None:
            start(event.data["dispatcher"])

        def on_end(self, event: Any) -> None:
            end(event.data["dispatcher"])

    event.register("numba:compile", Compilations())


def cache_on_disk(compiled: Any, files: PrivateFiles, source: str) -> bool:
    """Let a numba function keep what it compiles in `files`, instead of in numba's own folders; False if it cannot.

    A file belongs to one function, the types of its arguments, and one kind of CPU.

    Args:
        compiled: The function.
        files: Where to keep it.
        source: A hash of its source.
    """
    try:
        from numba.core.compiler import CompileResult
        from numba.core.serialize import dumps
    except ImportError:
        return False
    rebuild: Any = getattr(CompileResult, "_rebuild", None)
    if rebuild is None or not hasattr(CompileResult, "_reduce") or not hasattr(compiled, "_cache"):
        return False
    function = compiled.py_func
    code = function.__code__
    closure = [cell.cell_contents for cell in function.__closure__ or ()]

    class DiskCache:
        @property
        def cache_path(self) -> str:
            try:
                return str(files.folder())
            except OSError:
                return ""

        def file_name(self, signature: Any, codegen: Any) -> str:
            key = (str(signature), codegen.magic_tuple(), source, code.co_firstlineno, sys.version)
            digest = hashlib.sha256(repr(key).encode() + code.co_code + dumps(closure))
            return f"{function.__name__}-{digest.hexdigest()[:32]}"

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            target_context.refresh()
            name = self.file_name(sig, target_context.codegen())
            data = files.read(name)
            if data is None:
                return None
            try:
                return rebuild(target_context, *pickle.loads(data))
            except Exception as error:  # whatever is wrong with the file, the kernel can be compiled
                files.report(f"{name} cannot be read: {error!r}")
                return None

        def save_overload(self, sig: Any, cres: Any) -> None:
            if not cres.lifted and not cres.library.has_dynamic_globals:
                files.write(self.file_name(sig, cres.codegen), dumps(cres._reduce()))

        def enable(self) -> None: ...

        def disable(self) -> None: ...

        def flush(self) -> None: ...

    compiled._cache = DiskCache()
    return True


def chosen_cache_folder() -> str | None:
    """The folder that the user chose for numba's cache with `NUMBA_CACHE_DIR`; None if there is none."""
    from numba.core import config

    return getattr(config, "CACHE_DIR", None) or None


def cache_folder(compiled: Any) -> str:
    """Where the compiled code of a numba function is kept; empty if it is not."""
    return str(getattr(getattr(compiled, "_cache", None), "cache_path", None) or "")


def prefetch_row() -> Any:
    """A function `prefetch_row(array, row)` for numba kernels: request the first cache line of a row in advance.

    Where numba's code generation helpers are missing, it does nothing.
    """
    from numba import njit, types
    from numba.extending import intrinsic

    try:
        from llvmlite import ir
        from numba.core.cgutils import get_item_pointer
        from numba.np.arrayobj import make_array
    except ImportError:
        return njit(_no_prefetch)

    @intrinsic
    def prefetch(_context, array, row):
        def generate(context, builder, signature, arguments):
            view = make_array(signature.args[0])(context, builder, arguments[0])
            place = [
                context.cast(builder, arguments[1], signature.args[1], types.intp),
                context.get_constant(types.intp, 0),
            ]
            pointer = get_item_pointer(context, builder, signature.args[0], view, place, wraparound=False)
            pointer = builder.bitcast(pointer, ir.IntType(8).as_pointer())
            integer = ir.IntType(32)
            shape = ir.FunctionType(ir.VoidType(), [pointer.type, integer, integer, integer])
            fetch = builder.module.declare_intrinsic("llvm.prefetch", (pointer.type,), shape)
            builder.call(fetch, [pointer, *(ir.Constant(integer, value) for value in (0, 3, 1))])
            return context.get_dummy_value()

        return types.void(array, row), generate

    return prefetch


def _no_prefetch(array, row):  # noqa: ARG001
    return None
