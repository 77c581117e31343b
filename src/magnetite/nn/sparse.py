"""Products of a fixed sparse matrix with packed states, without a message per edge."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

if TYPE_CHECKING:  # imported when it is needed: `import magnetite` must stay fast
    from scipy.sparse import csr_array


class SparseMatrix:
    """`M[row, column] = entry`, a matrix without gradients that multiplies states, in the precision of its entries.

    Repeated entries are added. On the CPU, the product neither stores nor reads a message per entry, so its memory is
    that of the states; elsewhere, and in compiled code, messages are added up.

    Args:
        row: Row of each entry.
        column: Column of each entry.
        entries: The entries.
        size: Number of rows and of columns.

    >>> matrix = SparseMatrix(torch.tensor([0, 1]), torch.tensor([1, 1]), torch.tensor([2.0, 3.0]), size=2)
    >>> matrix.times(torch.tensor([[1.0], [10.0]])).flatten().tolist()
    [20.0, 30.0]
    """

    def __init__(
        self,
        row: Int[Tensor, " entries"],
        column: Int[Tensor, " entries"],
        entries: Float[Tensor, " entries"],
        size: int,
    ):
        self.row, self.column, self.entries, self.size = row, column, entries.detach(), size

    def transpose(self) -> "SparseMatrix":
        """The transpose, which shares what has been computed."""
        other = SparseMatrix(self.column, self.row, self.entries, self.size)
        if not (self.entries.is_cuda or torch.compiler.is_compiling()):
            other.compressed, other.transposed = self.transposed, self.compressed
        return other

    def times(self, states: Float[Tensor, "size *d"]) -> Float[Tensor, "size *d"]:
        """`M X`; a method, because compiled code cannot call operators of a class of its own."""
        states = states.to(self.entries.dtype)
        if states.is_cuda or torch.compiler.is_compiling() or states.ndim != 2:
            messages = self.entries.view(-1, *[1] * (states.ndim - 1)) * states.index_select(0, self.column)
            return torch.zeros_like(states).index_add(0, self.row, messages)
        return _Product.apply(states, self)  # type: ignore[return-value]

    @cached_property
    def compressed(self) -> "csr_array":
        """The matrix in compressed rows."""
        from scipy.sparse import coo_array, csr_array

        ends = self.row.numpy(), self.column.numpy()
        return csr_array(coo_array((self.entries.numpy(), ends), shape=(self.size, self.size)))

    @cached_property
    def transposed(self) -> "csr_array":
        """Its transpose in compressed rows."""
        return self.compressed.T.tocsr()


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(states: Tensor, matrix: SparseMatrix) -> Tensor:
        return torch.from_numpy(matrix.compressed @ states.detach().contiguous().numpy())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.matrix = inputs[1]

    @staticmethod
    def backward(ctx: Any, upper: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return torch.from_numpy(ctx.matrix.transposed @ upper.contiguous().numpy()), None
