import os
import subprocess
import sys

import pytest

PROGRAM = """
import pathlib, numba
pathlib.Path.home = lambda: pathlib.Path("/proc")
import os
access, os.access = os.access, lambda folder, mode: "magnetite-kernels" in str(folder)
import magnetite.kernels
print(numba.config.CACHE_DIR)
"""


@pytest.mark.parametrize("chosen", [None, "/tmp/chosen"])
def test_kernels_are_kept_somewhere_where_nothing_usual_can_be_written(chosen):
    environment = {**os.environ, **({"NUMBA_CACHE_DIR": chosen} if chosen else {})}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == chosen or (chosen is None and "magnetite-kernels-" in run.stdout)
