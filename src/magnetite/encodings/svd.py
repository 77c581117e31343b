"""Singular vectors of the adjacency matrix as an encoding of nodes."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.encodings.chunks import Chunk, for_each_chunk
from magnetite.encodings.results import NodeEncoding
from magnetite.encodings.spectral import check_dtype
from magnetite.graphs import Digraphs
from magnetite.linalg.eigen import lowest_eigenpairs
from magnetite.packed import ragged_rows


@dataclass(frozen=True)
class SVD:
    """`[U√S ‖ V√S]` of `A ≈ U S Vᵀ`, rank by rank: `encoding[i]` is `[n, 2 rank]`, zeros beyond the graph's size.

    The sign of each singular pair makes the largest entry of `u` positive; equal singular values leave the basis open,
    as on a path, where all are 1.

    >>> star = Digraphs.from_edges([[0, 0], [1, 2]])
    >>> SVD(rank=1)(star)[0].square().mul(100).round().tolist()
    [[141.0, 0.0], [0.0, 71.0], [0.0, 71.0]]
    """

    rank: int
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        if isinstance(self.rank, bool) or not isinstance(self.rank, int) or self.rank < 1:
            raise ValueError(f"rank={self.rank!r} is no rank: give an integer ≥ 1, such as rank=8")
        check_dtype(self.dtype)

    def __call__(self, graphs: Digraphs) -> NodeEncoding:
        """Encode every graph."""
        values = torch.zeros((graphs.num_nodes, 2, self.rank), dtype=self.dtype, device=graphs.device)

        def work(chunk: Chunk) -> None:
            pairs = singular_pairs(chunk.adjacency, self.rank)
            values[ragged_rows(graphs.node_ptr, chunk.ids), :, : pairs.shape[-1]] = pairs.flatten(0, 1).to(self.dtype)

        for_each_chunk(graphs, work)
        return NodeEncoding(node_ptr=graphs.node_ptr, values=values.flatten(1))


Vectors = Float[Tensor, "b n kept"]

NOTHING = 1e-12
"""Squares of singular values below this, relative to the largest, are rounding errors of 0."""


def singular_pairs(adjacency: Float[Tensor, "b n n"], rank: int) -> Float[Tensor, "b n 2 kept"]:
    """`U√S` and `V√S` of the `min(rank, n)` largest singular values, signs fixed."""
    left, right = (by_symmetric_problems if adjacency.is_cuda else by_lapack)(adjacency, rank)
    lead = left.gather(1, left.abs().argmax(1, keepdim=True))
    return torch.stack([left, right], dim=2) * torch.where(lead < 0, -1, 1)[:, :, None]


def by_lapack(adjacency: Float[Tensor, "b n n"], rank: int) -> tuple[Vectors, Vectors]:
    """`U√S` and `V√S`, signs open, matrix by matrix."""
    left, scale, right = torch.linalg.svd(adjacency)
    scale = scale[:, None, :rank].sqrt()
    return left[..., :rank] * scale, right.mT[..., :rank] * scale


def by_symmetric_problems(adjacency: Float[Tensor, "b n n"], rank: int) -> tuple[Vectors, Vectors]:
    """`U√S` and `V√S`, signs open, from `A Aᵀ u = σ² u` and `v = Aᵀu / σ`: on a GPU, all matrices at once.

    What squaring costs in precision is lost on the smallest singular values, which `√S` makes vanish.
    """
    largest = adjacency.abs().amax((1, 2), keepdim=True)
    adjacency = adjacency / torch.where(largest > 0, largest, 1)  # errors are judged against matrices of size 1
    squares, left = lowest_eigenpairs(-(adjacency @ adjacency.mT), rank)
    squares = -squares[:, None]
    scale = torch.where(squares > NOTHING * squares.amax(-1, keepdim=True), squares, 0).pow(1 / 4)
    size = largest.sqrt()
    return left * scale * size, adjacency.mT @ left / torch.where(scale > 0, scale, torch.inf) * size
