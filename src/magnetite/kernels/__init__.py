"""Numba kernels, one file a subject: plain loops over plain arrays, imported only by what needs them.

They release the GIL and are called from a pool of Python threads (`magnetite.linalg.threads`), not run by `prange`:
numba's own thread pool does not survive a fork, and data loaders fork. Every kernel is cached on disk.
The cache of a file does not notice changes in the files that it imports: after work on `random.py` or `bits.py`, remove
`__pycache__`.
"""
