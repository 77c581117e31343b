"""The recurrence in topological order on CUDA, one block per graph: all levels of all graphs in one launch."""

from dataclasses import dataclass

import torch
from torch import Tensor

from magnetite.kernels.cuda.launch import CAN_COMPILE, Kernel, shared_limit

FORWARD = Kernel("recurrence.cu", "recurrence_forward", warps=8, blocks=3)
BACKWARD = Kernel("recurrence.cu", "recurrence_backward", warps=8, blocks=3)
"""Blocks per multiprocessor: as many as its shared memory holds with a width of 64."""


@dataclass(frozen=True, eq=False)
class Order:
    """What the kernels read of the order of nodes and edges, as 64-bit integers.

    Args:
        sources: The source of each edge; edges are in the order of their targets.
        entering: Where the edges to each node begin.
        leaving: Where the edges from each node begin in `left`.
        left: The edges in the order of their sources.
        starts: Where the nodes of each level of each part begin, with as many levels for all parts.
        depth: Number of levels.
    """

    sources: Tensor
    entering: Tensor
    leaving: Tensor
    left: Tensor
    starts: Tensor
    depth: int

    @property
    def parts(self) -> int:
        """Number of parts."""
        return (len(self.starts) - 1) // max(self.depth, 1)


def suits(states: Tensor) -> bool:
    """Whether the kernels support states `[n, d]`, and this torch can compile them."""
    width = states.shape[-1]
    return (
        states.is_cuda
        and states.dtype == torch.float32
        and width % 32 == 0
        and CAN_COMPILE
        and _shared_bytes(BACKWARD, width, True) <= shared_limit(states.device)
    )


def forward(
    given: Tensor,
    features: Tensor | None,
    matrix: Tensor | None,
    score: Tensor,
    recurrent: Tensor,
    bias: Tensor,
    order: Order,
) -> Tensor:
    """The hidden states, from the gates `given` to each node, and the features of each edge if there are any."""
    hidden = torch.empty(len(given), len(score), dtype=given.dtype, device=given.device)
    sent = hidden if matrix is None else torch.empty_like(hidden)
    tensors = (
        given, *_pair(features, None if matrix is None else matrix.T, score), score, recurrent.T, bias,
        order.sources, order.entering, order.starts, sent, hidden,
    )  # fmt: skip
    _launch(FORWARD, tensors, order, len(score), matrix is not None)
    return hidden


@dataclass(frozen=True, eq=False)
class Factors:
    """What the backward pass reads of the forward pass.

    Args:
        to_new: Factors from the gradient of a state to that of the new state, before its activation.
        to_kept: Factors to the gate that keeps the message.
        to_reset: Factors from the gradient of the new state to the gate that resets.
        kept: The gate that keeps the message.
        reset: The gate that resets.
        message: The message to each node.
        states: What comes along each edge.
        shares: The share of each edge in the message.
    """

    to_new: Tensor
    to_kept: Tensor
    to_reset: Tensor
    kept: Tensor
    reset: Tensor
    message: Tensor
    states: Tensor
    shares: Tensor


@dataclass(frozen=True, eq=False)
class Gradients:
    """Gradients that depend on the order.

    Args:
        given: Of the gates given to each node.
        gates: Of the products with the messages.
        sent: Of what each node sends, if edges have features.
        states: Of what comes along each edge, before the activation.
        scores: Of the score of each edge.
    """

    given: Tensor
    gates: Tensor
    sent: Tensor
    states: Tensor
    scores: Tensor


def backward(
    upper: Tensor, factors: Factors, matrix: Tensor | None, score: Tensor, recurrent: Tensor, order: Order
) -> Gradients:
    """The gradients, from those of the hidden states."""
    wide = torch.empty(len(upper), len(recurrent), dtype=upper.dtype, device=upper.device)
    found = Gradients(
        given=wide,
        gates=torch.empty_like(wide),
        sent=torch.empty_like(upper, memory_format=torch.contiguous_format),
        states=torch.empty_like(factors.states),
        scores=torch.empty_like(factors.shares),
    )
    tensors = (
        upper, *vars(factors).values(), score if matrix is None else matrix, score, recurrent,
        order.entering, order.leaving, order.left, order.starts, *vars(found).values(),
    )  # fmt: skip
    _launch(BACKWARD, tensors, order, len(score), matrix is not None)
    return found


def _pair(features: Tensor | None, matrix: Tensor | None, other: Tensor) -> tuple[Tensor, Tensor]:
    """Features and matrix, or tensors that are not read in their place."""
    return (other, other) if features is None or matrix is None else (features, matrix)


def _launch(kernel: Kernel, tensors: tuple[Tensor, ...], order: Order, width: int, sent: bool) -> None:
    grid = kernel.grid(tensors[0].device, order.parts * kernel.warps)
    shared, constants = _shared_bytes(kernel, width, sent), {"WIDTH": width, "SENT": int(sent)}
    kernel.launch(grid, tensors, (order.parts, order.depth), shared, **constants)


def _shared_bytes(kernel: Kernel, width: int, sent: bool) -> int:
    """Both matrices, and for each warp two rows in the forward pass and five in the backward pass."""
    rows = kernel.warps * (2 if kernel is FORWARD else 5)
    return 4 * width * ((4 if sent else 3) * width + rows)
