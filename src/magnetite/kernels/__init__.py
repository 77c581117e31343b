"""Numba kernels, one file a subject: plain loops over plain arrays, imported only by what needs them.

They release the GIL and are called from a pool of Python threads (`magnetite.linalg.threads`), not run by `prange`: of
numba's own pools, the OpenMP one does not survive a fork, and data loaders fork; the built-in one allows no two callers
at a time. So the number of threads is torch's, too: one in a loader's worker. Every kernel is cached on disk.
The cache of a file does not notice changes in the files that it imports: after work on `random.py` or `bits.py`, remove
`__pycache__`. Kernels made by `compile.kernel` do notice.
"""
