"""Every use of private API has a fallback that gives the same results."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from magnetite.kernels import _compat


def test_importing_loads_neither_numba_nor_the_compiler():
    program = (
        "import sys, torch, importlib.util as util; before = set(sys.modules); "
        f"spec = util.spec_from_file_location('compat', {_compat.__file__!r}); "
        "spec.loader.exec_module(util.module_from_spec(spec)); "
        "print([name for name in set(sys.modules) - before if name.startswith(('numba', 'torch'))])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("missing", [False, True])
def test_cores_are_counted_on_every_platform(monkeypatch, missing):
    if missing:
        monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert 1 <= _compat.available_cores() <= (os.cpu_count() or 1)


@pytest.mark.parametrize("missing", [False, True])
def test_tensors_are_copied_in_any_version(monkeypatch, missing):
    if missing:
        monkeypatch.delattr(torch, "_foreach_copy_")
    sources = [torch.arange(3.0), torch.ones(2, 2, dtype=torch.int64)]
    targets = [torch.zeros(3), torch.zeros(2, 2)]
    _compat.foreach_copy(targets, sources)
    assert [target.tolist() for target in targets] == [source.tolist() for source in sources]


class OnCuda:
    """Stands for a condition on a GPU."""

    device = torch.device("cuda")

    def __init__(self, value: bool):
        self.value = value

    def __bool__(self) -> bool:
        return self.value


def test_a_check_on_cuda_does_not_wait(monkeypatch):
    seen = []
    monkeypatch.setattr(torch, "_assert_async", seen.append)
    condition = OnCuda(False)
    _compat.assert_async(condition, lambda: "never")  # pyright: ignore
    assert seen == [condition]


def test_without_asynchronous_checks_there_is_a_synchronous_one(monkeypatch):
    monkeypatch.delattr(torch, "_assert_async")
    _compat.assert_async(OnCuda(True), lambda: "never")  # pyright: ignore
    with pytest.raises(ValueError, match="too large"):
        _compat.assert_async(OnCuda(False), lambda: "too large")  # pyright: ignore


class Settings:
    limit = 1


def test_only_known_settings_are_changed():
    settings = Settings()
    _compat.set_if_known(settings, "limit", 2)
    _compat.set_if_known(settings, "other", 2)
    assert vars(settings) == {"limit": 2}


@pytest.mark.slow
@pytest.mark.parametrize("missing", [False, True])
def test_the_compiler_is_set_up_in_any_version(monkeypatch, missing):
    import torch._dynamo.config
    import torch._inductor.async_compile

    if missing:
        monkeypatch.delattr(torch._inductor.async_compile, "maybe_warm_pool")
    else:
        monkeypatch.setattr(torch._inductor.async_compile, "maybe_warm_pool", lambda: None)
    with torch._dynamo.config.patch(recompile_limit=8):
        _compat.set_up_compiler(recompilations=32)
        assert torch._dynamo.config.recompile_limit == 32


@pytest.mark.parametrize("found", ["nothing", "ours", "another's", "chosen"])
def test_the_compiler_keeps_its_files_where_nobody_else_can_write(tmp_path, monkeypatch, found):
    from torch._inductor.runtime import cache_dir_utils

    default = tmp_path / "torchinductor_me"
    monkeypatch.setattr(cache_dir_utils, "default_cache_dir", lambda: str(default))
    monkeypatch.setattr(_compat.atexit, "register", lambda *_, **__: None)
    monkeypatch.setattr(_compat.tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv(_compat.INDUCTOR_CACHE, raising=False)
    if found != "nothing":
        default.mkdir(mode=0o755)
    if found == "another's":
        default.chmod(0o777)
    if found == "chosen":
        monkeypatch.setenv(_compat.INDUCTOR_CACHE, "elsewhere")
    _compat.protect_compiler_cache()
    chosen = os.environ[_compat.INDUCTOR_CACHE]
    if found == "chosen":
        assert chosen == "elsewhere"
    else:
        assert (chosen == str(default)) == (found != "another's")
        assert Path(chosen).stat().st_mode & 0o022 == 0
        _compat.protect_compiler_cache()
        assert os.environ[_compat.INDUCTOR_CACHE] == chosen


def test_a_torch_that_compiles_no_kernels_says_so(monkeypatch):
    monkeypatch.delattr(torch.cuda, "_compile_kernel", raising=False)
    assert not _compat.can_compile_cuda()
    with pytest.raises(RuntimeError, match=r"torch .* cannot compile CUDA kernels"):
        _compat.compile_cuda("", "name", [])


@pytest.mark.parametrize("missing", [False, True])
def test_prefetching_changes_no_result(monkeypatch, missing):
    from numba import njit

    if missing:
        monkeypatch.setitem(sys.modules, "numba.core.cgutils", None)
    fetch = _compat.prefetch_row()

    @njit
    def row_sum(array, row):
        fetch(array, row)
        return array[row].sum()

    assert row_sum(np.arange(16.0).reshape(2, 8), 1) == sum(range(8, 16))


@pytest.mark.parametrize("missing", [False, True])
def test_loops_are_right_with_and_without_the_promise_of_no_alias(monkeypatch, missing):
    from numba import njit
    from numba.core import compiler

    with monkeypatch.context() as patched:
        if missing:
            patched.delattr(compiler.Flags, "noalias")
        options = _compat.no_alias()
    assert bool(options) != missing

    @njit(**options)
    def add(one, two, result):
        for i in range(one.size):
            result[i] = one[i] + two[i]

    result = np.empty(5)
    add(np.arange(5.0), np.ones(5), result)
    assert result.tolist() == [1, 2, 3, 4, 5]


OTHER_PLATFORM = """
import os, sys
for name in ("sched_getaffinity", "sched_setaffinity", "getuid", "geteuid", "getpgid"):
    delattr(os, name)
sys.modules.update(fcntl=None, resource=None, pwd=None)
import torch, magnetite as mt, magnetite.training
graphs = mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 0]])
assert mt.MagneticLaplacian(k=2)(graphs).values.shape == (1, 2)
model = mt.nn.DigraphTransformer(width=8, layers=1, position=mt.nn.MagLapNet(k=2, width=8), head=mt.nn.GraphHead(1))
optimizer = torch.optim.AdamW(model.parameters())
model(graphs).sum().backward()
optimizer.step()
print("done")
"""


def test_the_package_encodes_and_trains_without_posix():
    environment = {**os.environ, "LOGNAME": "someone", "TORCHINDUCTOR_CACHE_DIR": "unused"}
    command = [sys.executable, "-c", OTHER_PLATFORM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"
