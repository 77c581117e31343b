"""Benchmarks: `make bench` leaves results of other machines alone."""

import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parent.parent
GPU = ("eigen_gpu", "models", "sorting_encoded", "training")


@pytest.mark.parametrize("name", GPU)
def test_without_a_gpu_its_results_are_not_replaced(name, tmp_path, monkeypatch, capsys):
    path = ROOT / "benchmarks" / f"{name}.py"
    monkeypatch.syspath_prepend(path.parent)
    spec: Any = spec_from_file_location(f"benchmark_{name}", path)
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    more = ["--data", str(tmp_path)] if name == "training" else []
    monkeypatch.setattr(sys, "argv", [str(path), "--out", str(tmp_path), *more])
    with pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code == 2
    assert (
        capsys.readouterr().err == f"{name}.py: needs a GPU with CUDA, and torch finds none: run it on such a machine\n"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_bench_runs_what_needs_no_gpu_and_the_tables_last():
    done = subprocess.run(["make", "-n", "bench"], cwd=ROOT, capture_output=True, text=True, check=True)
    loop = next(line for line in done.stdout.splitlines() if line.startswith("for script in "))
    scripts = [Path(word).stem for word in loop.partition(";")[0].split()[3:]]
    assert scripts[-1] == "tables" and {"encodings", "sizes", "verification"} <= set(scripts)
    assert not set(scripts) & {*GPU, "timing", "real_models", "real_training"}
    assert all("__main__" in (ROOT / "benchmarks" / f"{name}.py").read_text() for name in scripts)
