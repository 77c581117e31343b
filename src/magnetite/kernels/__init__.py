"""Numba kernels: loops over plain arrays, compiled on first use and cached; only `linalg` calls them.

They stand outside `linalg` because the shape checks of the tests wrap every function there, and compiled code cannot
call wrapped functions. Nothing here is imported with the package: numba loads when a kernel is first needed.
"""
