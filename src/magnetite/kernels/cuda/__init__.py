"""CUDA kernels as source text, compiled at run time, and the operators of torch that launch them."""
