"""Compiled loops: `cpu/` by numba, `cuda/` by the CUDA compiler at run time."""
