"""How eigenpairs of graphs of different sizes are made comparable, before a network sees them.

Entries of unit vectors shrink as `1/√n`, imaginary parts and small eigenvalues faster still, so a network trained on
small graphs meets large ones outside of its range.
"""

from collections.abc import Callable

from jaxtyping import Float, Int
from torch import Tensor

Values = Float[Tensor, "b *Q k"]
Vectors = Float[Tensor, "b n *Q k parts"]
Sizes = Int[Tensor, " b"]
Scaling = Callable[[Values, Vectors, Sizes], tuple[Values, Vectors]]


def none(values: Values, vectors: Vectors, sizes: Sizes) -> tuple[Values, Vectors]:  # noqa: ARG001
    """Unit vectors as they are: `Σ_v |γ_v|² = 1`."""
    return values, vectors


def nodes(values: Values, vectors: Vectors, sizes: Sizes) -> tuple[Values, Vectors]:
    """`√n γ`: the mean of `|γ_v|²` is 1."""
    return values, vectors * _per_graph(sizes, vectors).sqrt()


def parts(values: Values, vectors: Vectors, sizes: Sizes) -> tuple[Values, Vectors]:
    """Real and imaginary parts of each vector to a mean square of 1, each alone."""
    square = vectors.square().sum(1, keepdim=True) / _per_graph(sizes, vectors).clamp(min=1)
    return values, vectors * (square + 1e-12).rsqrt()


SCALINGS: dict[str, Scaling] = {"none": none, "nodes": nodes, "parts": parts}


def scaling_named(name: str) -> Scaling:
    """The scaling of this name."""
    if name not in SCALINGS:
        raise ValueError(f"scaling={name!r} is not known: choose one of {', '.join(SCALINGS)}")
    return SCALINGS[name]


def _per_graph(sizes: Sizes, vectors: Vectors) -> Tensor:
    return sizes.to(vectors).view(-1, *[1] * (vectors.ndim - 1))
