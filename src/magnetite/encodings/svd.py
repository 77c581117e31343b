"""Singular vectors of the adjacency matrix as a node encoding."""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from magnetite.encodings.checks import SIZE, check_dtype, check_fields, check_graphs
from magnetite.encodings.dense import DenseBatch, for_each_batch
from magnetite.encodings.fit import check_fit
from magnetite.encodings.results import NodeEncoding
from magnetite.graphs import Digraphs
from magnetite.linalg.eigen import lowest_eigenpairs
from magnetite.linalg.memory import check_memory
from magnetite.linalg.scale import divided, root_power, times_power
from magnetite.linalg.svd_sparse import largest_singular
from magnetite.packed import ragged_rows

DENSE_UP_TO = 1024
"""Size up to which all singular values are computed from a dense matrix."""

PART = 8
"""A large graph is solved by iteration if the rank is at most this part of its size."""

DENSE_MATRICES = 11
"""Number of matrices that a dense solver holds at the same time: measured as 9.3 to 10.3 with LAPACK's work space."""


@dataclass(frozen=True)
class SVD:
    """`[U√S ‖ V√S]` of the truncated singular value decomposition `A ≈ U S Vᵀ`: `encoding[i]` is `[n, 2 rank]`.

    Columns beyond the size of the graph are zero. The common sign of `u` and `v` makes the largest entry of `u`
    positive. For equal singular values, the vectors are an arbitrary basis; on a path, all nonzero ones are equal.
    Graphs of more than 1,024 nodes are not made dense: an iteration on their edges finds the largest singular values.

    Args:
        rank: Number of singular values.
        dtype: Type of the result, float32 or float64.

    >>> star = Digraphs.from_edges([[0, 0], [1, 2]])
    >>> SVD(rank=1)(star)[0].square().mul(100).round().tolist()
    [[141.0, 0.0], [0.0, 71.0], [0.0, 71.0]]
    """

    rank: Annotated[int, SIZE]
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        check_fields(self)
        check_dtype(self.dtype)

    def __call__(self, graphs: Digraphs) -> NodeEncoding:
        """Encode every graph."""
        check_graphs(graphs)
        needed = 2 * graphs.num_nodes * self.rank * self.dtype.itemsize
        check_memory(needed, graphs.device, f"rank={self.rank} for {graphs.num_nodes} nodes", "choose a smaller rank")
        values = torch.zeros((graphs.num_nodes, 2, self.rank), dtype=self.dtype, device=graphs.device)

        def work(batch: DenseBatch) -> None:
            factor, half = root_power(batch.exponent)
            pairs = singular_pairs(batch.adjacency * factor[:, None, None], self.rank)
            pairs = times_power(pairs, half[:, None, None, None])
            check_fit("singular vectors", pairs, self.dtype, batch.ids)
            values[ragged_rows(graphs.node_ptr, batch.ids), :, : pairs.shape[-1]] = pairs.flatten(0, 1).to(self.dtype)

        iterated = (graphs.sizes > DENSE_UP_TO) & (graphs.sizes >= PART * self.rank)
        _check_dense(graphs, iterated)
        for_each_batch(graphs, work, (~iterated).nonzero().squeeze(1))
        for number in iterated.nonzero().squeeze(1).tolist():
            pairs = sparse_pairs(graphs[number], self.rank)
            check_fit("singular vectors", pairs, self.dtype, torch.tensor([number]))
            rows = slice(int(graphs.node_ptr[number]), int(graphs.node_ptr[number + 1]))
            values[rows] = pairs[0].to(values)
        return NodeEncoding(node_ptr=graphs.node_ptr, values=values.flatten(1))


def _check_dense(graphs: Digraphs, iterated: Bool[Tensor, " b"]) -> None:
    """Refuse graphs whose dense matrices would not fit, before any work is done."""
    largest = max(graphs.sizes[~iterated].tolist(), default=0)
    check_memory(
        DENSE_MATRICES * 8 * largest**2, graphs.device, f"the dense SVD of {largest} nodes",
        f"choose a rank of at most {largest // PART}, for which no dense matrix is needed",
    )  # fmt: skip


def sparse_pairs(graph: Digraphs, rank: int) -> Float[Tensor, "1 n 2 rank"]:
    """`U√S` and `V√S` of one large graph, with signs as in `SVD`."""
    weights, exponent = divided(graph.weights, graph.edge_ptr)
    factor, half = root_power(exponent)
    weights = None if weights is None else weights * factor
    scale, left, right = largest_singular(graph.edges, graph.num_nodes, weights, rank, graph.device)
    pairs = _signed(left[None] * scale.sqrt(), right[None] * scale.sqrt())
    return times_power(pairs, half.cpu()[:, None, None, None])


Vectors = Float[Tensor, "b n kept"]

NOTHING = 1e-12
"""Squared singular values below this, relative to the largest, are rounding errors of 0."""


def singular_pairs(adjacency: Float[Tensor, "b n n"], rank: int) -> Float[Tensor, "b n 2 kept"]:
    """`U√S` and `V√S` of the `min(rank, n)` largest singular values, with signs as in `SVD`."""
    return _signed(*(by_symmetric_problems if adjacency.is_cuda else by_lapack)(adjacency, rank))


def _signed(left: Vectors, right: Vectors) -> Float[Tensor, "b n 2 kept"]:
    lead = left.gather(1, left.abs().argmax(1, keepdim=True))
    return torch.stack([left, right], dim=2) * torch.where(lead < 0, -1, 1)[:, :, None]


def by_lapack(adjacency: Float[Tensor, "b n n"], rank: int) -> tuple[Vectors, Vectors]:
    """`U√S` and `V√S` with arbitrary signs, one matrix after the other."""
    # One by one, each at its own address: the bits of LAPACK depend on alignment, and must not depend on other graphs.
    each = [torch.linalg.svd(matrix.clone()) for matrix in adjacency]
    left, scale, right = (torch.stack(parts) for parts in zip(*each, strict=True))
    scale = scale[:, None, :rank].sqrt()
    return left[..., :rank] * scale, right.mT[..., :rank] * scale


def by_symmetric_problems(adjacency: Float[Tensor, "b n n"], rank: int) -> tuple[Vectors, Vectors]:
    """`U√S` and `V√S` with arbitrary signs, from `A Aᵀ u = σ² u` and `v = Aᵀu / σ`, for all matrices at once.

    Squaring costs precision only in the smallest singular values, where `√S` is nearly zero.
    """
    largest = adjacency.abs().amax((1, 2), keepdim=True)
    adjacency = adjacency / torch.where(largest > 0, largest, 1)  # verification assumes matrices of norm 1
    squares, left = lowest_eigenpairs(-(adjacency @ adjacency.mT), rank)
    squares = -squares[:, None]
    scale = torch.where(squares > NOTHING * squares.amax(-1, keepdim=True), squares, 0).pow(1 / 4)
    size = largest.sqrt()
    return left * scale * size, adjacency.mT @ left / torch.where(scale > 0, scale, torch.inf) * size
