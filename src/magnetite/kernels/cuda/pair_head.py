"""The first and last layer of `PairHead` on CUDA, one warp per query pair: operators of torch."""

import torch
from torch import Tensor

from magnetite.kernels.cuda.launch import CAN_COMPILE, Kernel, knows_bfloat16

WIDTHS = (64, 128, 256, 512)
"""Numbers of channels that the lanes of a warp can read at once."""

FIRST = Kernel("pair_head.cu", "pair_first_forward", warps=8, blocks=5)
FIRST_BACKWARD = Kernel("pair_head.cu", "pair_first_backward", warps=8, blocks=2)
LAST = Kernel("pair_head.cu", "pair_last_forward", warps=8, blocks=4)
LAST_BACKWARD = Kernel("pair_head.cu", "pair_last_backward", warps=8, blocks=2)
"""As many blocks as fit into the registers at once, with 256 channels."""


def suits(norm: torch.nn.LayerNorm, activation: torch.nn.Module, device: torch.device) -> bool:
    """Whether the kernels support these layers in half precision, and this GPU and torch support the kernels.

    The order in which they sum gradients depends on timing, so deterministic algorithms exclude them.
    """
    if torch.are_deterministic_algorithms_enabled():
        return False
    kind = device.type
    halved = torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) == torch.bfloat16
    known = norm.normalized_shape[0] in WIDTHS and norm.eps == 1e-5 and isinstance(activation, torch.nn.GELU)
    return kind == "cuda" and halved and known and CAN_COMPILE and knows_bfloat16(device)


@torch.library.custom_op("magnetite::pair_first", mutates_args=())
def first(source: Tensor, target: Tensor, u: Tensor, v: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """`gelu(norm(source[u] + target[v]))` in bfloat16, one row per query pair."""
    rows = torch.empty(u.shape[0], source.shape[-1], dtype=torch.bfloat16, device=source.device)
    _launch(FIRST, FIRST.grid(source.device, u.shape[0]), (source, target, u, v, scale, shift, rows), u.shape[0])
    return rows


@torch.library.custom_op("magnetite::pair_first_backward", mutates_args=())
def first_backward(
    source: Tensor, target: Tensor, u: Tensor, v: Tensor, scale: Tensor, shift: Tensor, upper: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of source, target, scale and shift."""
    grid = FIRST_BACKWARD.grid(source.device, u.shape[0])
    # Contiguous zeros, since the kernel adds to them.
    of_source, of_target = source.new_zeros(source.shape), target.new_zeros(target.shape)
    sums = source.new_empty(grid * FIRST_BACKWARD.warps, 2, source.shape[-1])
    _launch(FIRST_BACKWARD, grid, (source, target, u, v, scale, shift, upper, of_source, of_target, sums), u.shape[0])
    of_scale, of_shift = _total(sums)
    return of_source, of_target, of_scale, of_shift


@torch.library.custom_op("magnetite::pair_last", mutates_args=())
def last(rows: Tensor, scale: Tensor, shift: Tensor, weight: Tensor) -> Tensor:
    """`w · gelu(norm(row))` of every row."""
    answers = torch.empty(rows.shape[:-1], dtype=torch.float32, device=rows.device)
    _launch(LAST, LAST.grid(rows.device, answers.numel()), (rows, scale, shift, weight, answers), answers.numel())
    return answers


@torch.library.custom_op("magnetite::pair_last_backward", mutates_args=())
def last_backward(
    rows: Tensor, scale: Tensor, shift: Tensor, weight: Tensor, upper: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of rows, scale, shift and weight."""
    grid = LAST_BACKWARD.grid(rows.device, upper.numel())
    sums = scale.new_empty(grid * LAST_BACKWARD.warps, 3, len(scale))
    of_rows = torch.empty(rows.shape, dtype=rows.dtype, device=rows.device)
    _launch(LAST_BACKWARD, grid, (rows, scale, shift, weight, upper, of_rows, sums), upper.numel())
    of_scale, of_shift, of_weight = _total(sums)
    return of_rows, of_scale, of_shift, of_weight


def _launch(kernel: Kernel, grid: int, tensors: tuple[Tensor, ...], pairs: int) -> None:
    if pairs:
        kernel.launch(grid, tensors, (pairs,), HIDDEN=tensors[0].shape[-1])
    else:
        tensors[-1].zero_()


def _total(sums: Tensor) -> list[Tensor]:
    """The totals over all warps, as separate tensors: outputs of an operator must not share memory."""
    return [total.clone() for total in sums.sum(0)]


@first.register_fake
def _(source: Tensor, target: Tensor, u: Tensor, v: Tensor, scale: Tensor, shift: Tensor) -> Tensor:  # noqa: ARG001
    return torch.empty(u.shape[0], source.shape[-1], dtype=torch.bfloat16, device=source.device)


@first_backward.register_fake
def _(
    source: Tensor,
    target: Tensor,
    u: Tensor,  # noqa: ARG001
    v: Tensor,  # noqa: ARG001
    scale: Tensor,
    shift: Tensor,
    upper: Tensor,  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return (
        source.new_empty(source.shape),
        target.new_empty(target.shape),
        torch.empty_like(scale),
        torch.empty_like(shift),
    )


@last.register_fake
def _(rows: Tensor, scale: Tensor, shift: Tensor, weight: Tensor) -> Tensor:  # noqa: ARG001
    return torch.empty(rows.shape[:-1], dtype=torch.float32, device=rows.device)


@last_backward.register_fake
def _(
    rows: Tensor,
    scale: Tensor,
    shift: Tensor,
    weight: Tensor,
    upper: Tensor,  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    of_rows = torch.empty(rows.shape, dtype=rows.dtype, device=rows.device)
    return of_rows, torch.empty_like(scale), torch.empty_like(shift), torch.empty_like(weight)


def _keep(ctx, inputs, output) -> None:  # noqa: ARG001
    ctx.save_for_backward(*inputs)


def _first_gradients(ctx, upper: Tensor) -> tuple[Tensor | None, ...]:
    source, target, scale, shift = first_backward(*ctx.saved_tensors, upper)
    return source, target, None, None, scale, shift


def _last_gradients(ctx, upper: Tensor) -> tuple[Tensor, ...]:
    return last_backward(*ctx.saved_tensors, upper)


first.register_autograd(_first_gradients, setup_context=_keep)
last.register_autograd(_last_gradients, setup_context=_keep)
