"""The largest singular values of a large sparse matrix, from the lowest eigenpairs of a symmetric one."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.linalg.eigen import SolverFailure
from magnetite.linalg.eigen_sparse import lowest_sparse
from magnetite.linalg.sparse import SparseHermitian

TOLERANCE = 1e-10
"""Largest residual of the iteration, relative to the bound on the matrix."""

ACCEPTED = 1e-6
"""Largest accepted residual `‖Av − σu‖` or `‖Aᵀu − σv‖`, relative to the largest singular value."""

NOTHING = 1e-7
"""Singular values below this, relative to the largest, are rounding errors of 0."""


def largest_singular(
    edges: Int[Tensor, "2 m"], size: int, weights: Float[Tensor, " m"] | None, rank: int, device: torch.device | str
) -> tuple[Float[Tensor, " rank"], Float[Tensor, "n rank"], Float[Tensor, "n rank"]]:
    """`S`, `U` and `V` of the `rank` largest singular values of the adjacency matrix, verified.

    `(σ, u, v)` is a singular triple of `A` if `(u, v)` is an eigenvector of `[[c, −A], [−Aᵀ, c]]` for the eigenvalue
    `c − σ`. With `c ≥ σ₁` that matrix is positive semidefinite, and its lowest eigenpairs are those of the largest `σ`.
    Unlike in `AᵀA`, nothing is squared, so that small singular values keep their precision.

    Args:
        edges: Source and target of each edge.
        size: Number of nodes n.
        weights: Edge weights; all 1 if None.
        rank: Number of singular values, at most n.
        device: Where the iteration runs; the result is on the CPU.

    >>> star = torch.tensor([[0, 0, 0, 0], [1, 2, 3, 4]])
    >>> largest_singular(star, 5, None, 1, "cpu")[0].round(decimals=9).tolist()
    [2.0]
    """
    from scipy.sparse import block_array, coo_array, eye_array

    source, target = edges.cpu().long().numpy()
    heavy = np.ones(source.size) if weights is None else weights.cpu().double().numpy()
    adjacency = coo_array((heavy, (source, target)), shape=(size, size)).tocsr()
    bound = float(np.sqrt(adjacency.sum(0).max() * adjacency.sum(1).max())) if source.size else 0.0
    if bound == 0:
        nothing = torch.zeros(size, rank, dtype=torch.float64)
        return nothing[0], nothing, nothing
    shift = bound * eye_array(size)
    whole = block_array([[shift, -adjacency], [-adjacency.T, shift]]).tocsr()
    whole.sort_indices()
    columns = torch.from_numpy(whole.indices.astype(np.int32))
    matrix = SparseHermitian(
        torch.from_numpy(whole.indptr.astype(np.int64)), columns, torch.from_numpy(whole.data), 2 * bound
    )
    values, vectors, *_ = lowest_sparse(matrix.to(device), rank, TOLERANCE)
    scale, vectors = (bound - values).cpu(), vectors.cpu().T * 2**0.5
    scale = torch.where(scale > NOTHING * float(scale.max()), scale, 0)
    kept = (scale > 0).double()
    left, right = vectors[:size] * kept, vectors[size:] * kept
    _verify(adjacency, scale, left, right)
    return scale, left, right


def _verify(adjacency, scale: Tensor, left: Tensor, right: Tensor) -> None:
    along = torch.from_numpy(adjacency @ right.numpy()) - left * scale
    against = torch.from_numpy(adjacency.T @ left.numpy()) - right * scale
    residual = float(torch.cat([along, against]).norm(dim=0).max() / scale.max())
    kept = int((scale > 0).sum())
    each = (part[:, :kept].T @ part[:, :kept] - torch.eye(kept, dtype=torch.float64) for part in (left, right))
    orthogonality = max(float(gram.abs().max()) for gram in each)
    if not (residual < ACCEPTED and orthogonality < ACCEPTED):
        raise SolverFailure(f"a graph of {len(left)} nodes", 0, residual, orthogonality)
