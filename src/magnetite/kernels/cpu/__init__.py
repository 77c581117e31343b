"""CPU kernels compiled by numba, one file per subject: loops over NumPy arrays, imported where they are called.

Kernels release the GIL and are called from a pool of Python threads (`magnetite.linalg.threads`) instead of using
`prange`: numba's OpenMP pool does not survive the fork of a data loader, and its built-in pool allows one caller at a
time. The number of threads is therefore torch's, which is one in a worker of a data loader.
"""
