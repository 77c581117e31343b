"""The k lowest eigenpairs of batches of Hermitian matrices, each verified, and solved again if that fails."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

TOLERANCE = 1e-10
"""Largest accepted residual `‖Lγ − λγ‖` (relative to `max(1, ‖L‖)`) and deviation from `ΓᴴΓ = I`."""

EQUAL = 1e-6
"""Eigenvalues closer than this, relative to their size, form one group."""

ROUNDING = 2.0**-44
"""Eigenvalues closer than this, relative to `‖L‖`, form one group: double precision does not tell them apart."""

SINGLE_TOLERANCE = 2e-5
"""The same in single precision."""

Driver = Callable[[Tensor, int], tuple[Tensor, Tensor]]


class SolverFailure(ArithmeticError):
    """No driver returned verified eigenpairs for the matrix at `position` of the batch."""

    def __init__(self, name: str, position: int, residual: float, unitarity: float):
        super().__init__(
            f"no eigensolver resolved the lowest eigenvalues of {name}: residual {residual:.1e}, "
            f"unitarity error {unitarity:.1e}; check it for very large or very small weights, or leave it out"
        )
        self.position, self.residual, self.unitarity = position, residual, unitarity


def divide_and_conquer(
    matrices: Shaped[Tensor, "b n n"], k: int
) -> tuple[Float[Tensor, "b kept"], Shaped[Tensor, "b n kept"]]:
    """LAPACK's (`?heevd`) or cuSOLVER's divide and conquer, through torch."""
    values, vectors = torch.linalg.eigh(matrices)
    return values[:, :k], vectors[:, :, :k]


def relatively_robust(
    matrices: Shaped[Tensor, "b n n"], k: int
) -> tuple[Float[Tensor, "b kept"], Shaped[Tensor, "b n kept"]]:
    """LAPACK's `?heevr`, one matrix after the other."""
    return _by_scipy(matrices, k, "evr")


def qr_iteration(
    matrices: Shaped[Tensor, "b n n"], k: int
) -> tuple[Float[Tensor, "b kept"], Shaped[Tensor, "b n kept"]]:
    """LAPACK's `?heev`, one matrix after the other: the slowest and most robust driver."""
    return _by_scipy(matrices, k, "ev")


DRIVERS: tuple[Driver, ...] = (divide_and_conquer, relatively_robust, qr_iteration)
"""Drivers in the order of trying, on CUDA after those of `eigen_cuda`; each solves what those before it could not."""


def lowest_eigenpairs(
    matrices: Shaped[Tensor, "b n n"], k: int, single: bool = False
) -> tuple[Float[Tensor, "b kept"], Shaped[Tensor, "b n kept"]]:
    """The `min(k, n)` lowest eigenvalues and their orthonormal eigenvectors: `L γ_j = λ_j γ_j`, `ΓᴴΓ = I`, verified.

    Args:
        matrices: Hermitian or real symmetric matrices.
        k: Number of eigenpairs.
        single: Whether to allow single precision on CUDA, which is faster; residuals below 2e-5 are then accepted.

    >>> values, vectors = lowest_eigenpairs(torch.diag(torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64))[None], k=2)
    >>> values.tolist()
    [[1.0, 2.0]]
    """
    kept = min(k, matrices.shape[-1])
    values = matrices.new_zeros((len(matrices), kept), dtype=matrices.dtype.to_real())
    vectors = matrices.new_zeros((*matrices.shape[:2], kept))
    waiting = torch.arange(len(matrices), device=matrices.device)
    worst = values.new_zeros(2)
    tolerance = SINGLE_TOLERANCE if single else TOLERANCE
    for driver in _drivers(matrices, k, single):
        if not waiting.numel():
            break
        everything = len(waiting) == len(matrices)
        some = matrices if everything else matrices[waiting]
        try:
            found = driver(some, k)
        except (torch.linalg.LinAlgError, np.linalg.LinAlgError, ValueError):  # pyright: ignore[reportPrivateImportUsage]
            continue
        if everything:
            values, vectors = found[0].contiguous(), found[1].contiguous()
        else:
            values[waiting], vectors[waiting] = found
        errors = torch.stack(verify(some, *found))
        failed = ~(errors.amax(0) < tolerance)
        worst = errors[:, failed][:, 0] if failed.any() else worst
        waiting = waiting[failed]
    if waiting.numel():
        position = int(waiting[0])
        raise SolverFailure(f"matrix {position} of the batch", position, *worst.tolist())
    return values, vectors


def verify(
    matrices: Shaped[Tensor, "b n n"], values: Float[Tensor, "b k"], vectors: Shaped[Tensor, "b n k"]
) -> tuple[Float[Tensor, " b"], Float[Tensor, " b"]]:
    """Largest residual `‖Lγ_j − λ_jγ_j‖ / max(1, ‖L‖_∞)` and largest entry of `|ΓᴴΓ − I|` of each matrix.

    The largest weights are about 1 (see `linalg.scale`); a smaller matrix has only rounding errors of self-loops.
    """
    residual = torch.linalg.vector_norm(matrices @ vectors - vectors * values[:, None, :], dim=1).amax(1)
    scale = matrices.abs().sum(-1).amax(-1).clamp(min=1)
    identity = torch.eye(vectors.shape[-1], dtype=vectors.dtype, device=vectors.device)
    return residual / scale, (vectors.mH @ vectors - identity).abs().flatten(1).amax(1)


def equal_groups(
    values: Float[Tensor, "b k"], mask: Bool[Tensor, "b k"], floor: Float[Tensor, " b"] | None = None
) -> Int[Tensor, "b k"]:
    """Number the groups of equal eigenvalues of each graph from 0; padding is −1.

    Args:
        values: Eigenvalues in ascending order.
        mask: Which of them exist.
        floor: Eigenvalues closer than this form one group whatever their size; None if they are those of `L_N`.

    >>> equal_groups(torch.tensor([[0.0, 0.0, 2.0, 0.0]]), torch.tensor([[True, True, True, False]])).tolist()
    [[0, 0, 1, -1]]
    """
    if values.device.type == "cpu":
        bound = None if floor is None else floor.numpy()
        return torch.from_numpy(_equal_groups(values.numpy(), mask.numpy(), bound))
    if floor is None:
        tolerance = EQUAL * values.amax(1, keepdim=True).clamp(min=1)
    else:
        tolerance = torch.maximum(EQUAL * values[:, 1:], floor[:, None])
    group = torch.zeros_like(values, dtype=torch.long)
    group[:, 1:] = (values.diff(dim=1) > tolerance).cumsum(1)
    return group.masked_fill(~mask, -1)


def _equal_groups(values: np.ndarray, mask: np.ndarray, floor: np.ndarray | None) -> np.ndarray:
    """The same of arrays, which takes less time on the CPU."""
    if floor is None:
        tolerance = EQUAL * np.maximum(values.max(1, keepdims=True), 1)
    else:
        tolerance = np.maximum(EQUAL * values[:, 1:], floor[:, None])
    group = np.zeros(values.shape, np.int64)
    (values[:, 1:] - values[:, :-1] > tolerance).cumsum(1, out=group[:, 1:])
    group[~mask] = -1
    return group


def _drivers(matrices: Tensor, k: int, single: bool) -> Sequence[Driver]:
    if not matrices.is_cuda:
        return DRIVERS
    from magnetite.linalg import eigen_cuda

    return [*eigen_cuda.drivers(matrices, k, single), *DRIVERS]


def _by_scipy(matrices: Tensor, k: int, driver: str) -> tuple[Tensor, Tensor]:
    import scipy.linalg

    solved = [scipy.linalg.eigh(matrix.cpu().numpy(), driver=driver) for matrix in matrices]
    values = torch.stack([torch.from_numpy(pair[0]) for pair in solved])
    vectors = torch.stack([torch.from_numpy(pair[1]) for pair in solved])
    return values[:, :k].to(matrices.device), vectors[:, :, :k].to(matrices.device)
