"""Numba kernels, one file a subject: plain loops over plain arrays, imported only by what needs them.

They release the GIL and are called from a pool of Python threads (`magnetite.linalg.threads`), not run by `prange`: of
numba's own pools, the OpenMP one does not survive a fork, and data loaders fork; the built-in one allows no two callers
at a time. So the number of threads is torch's, too: one in a loader's worker. Every kernel is cached on disk.
The cache of a file does not notice changes in the files that it imports: after work on `random.py` or `bits.py`, remove
`__pycache__`. Kernels made by `compile.kernel` do notice.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from numba.core import config as numba_config


def _keep_somewhere() -> None:
    """Where neither this folder nor the user's cache can be written, let numba keep kernels in the temporary folder."""
    config: Any = numba_config
    usual = (Path(__file__).parent / "__pycache__", Path.home() / ".cache")
    existing = [folder if folder.exists() else folder.parent for folder in usual]
    if not config.CACHE_DIR and not any(os.access(folder, os.W_OK) for folder in existing):
        config.CACHE_DIR = str(Path(tempfile.gettempdir()) / f"magnetite-kernels-{os.getuid()}")


_keep_somewhere()
