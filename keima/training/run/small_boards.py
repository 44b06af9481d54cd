"""The gradient of 3×3 convolutions' weights on small boards, in bfloat16 on a CPU with AMX.

oneDNN sums it along the rows of a board, whose 8 or 9 points leave most of an AMX tile empty: of 512 boards of chess
with 64 channels it takes four times the forward pass. Boards side by side, a column of zeros after each, have rows of
hundreds of points and the same sums: 1.3 to 1.9 times as fast on 8×8 and 9×9, as the machine is quiet or busy, 1.35 on
13×13 and no faster on 19×19; without AMX, or in float32, slower. A whole step takes 9 to 15 % less.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import BackwardCFunction, FunctionCtx

from keima.systems.network import Network

WIDEST = 16
"""Columns of the largest board that is laid out so."""

_THREE_BY_THREE = ((3, 3), (1, 1), (1, 1), (1, 1), 1)

_PARTS = (8, 4, 2, 1)
"""Rows of boards that a batch is laid out in: as many as divide it."""


def lay_out_small_boards(network: Network) -> None:
    """Have the network's 3×3 convolutions work out their gradients so, where this machine has AMX."""
    if not getattr(torch.cpu, "_is_amx_tile_supported", bool)():
        return
    for module in network.modules():
        if type(module) is nn.Conv2d and _shape(module) == _THREE_BY_THREE:
            module.__class__ = SmallBoardConvolution


def _shape(layer: nn.Conv2d) -> tuple[object, ...]:
    return layer.kernel_size, layer.padding, layer.stride, layer.dilation, layer.groups


class SmallBoardConvolution(nn.Conv2d):
    """`Conv2d` of 3×3 with padding 1."""

    def forward(self, input: Tensor) -> Tensor:
        """[N, C, H, W] → [N, out, H, W]."""
        half = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
        if not self.training or half is not torch.bfloat16 or input.shape[3] > WIDEST:
            return super().forward(input)
        bias = None if self.bias is None else self.bias.to(half)
        found: Tensor = _Convolution.apply(input.to(half), self.weight.to(half), bias)  # type: ignore[no-untyped-call]
        return found


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.conv2d(x, weight, bias, padding=1)

    @staticmethod
    def backward(ctx: BackwardCFunction, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        (gradient,), (x, weight) = gradients, list(ctx.saved_tensors)
        of_x, of_weight, of_bias = list(ctx.needs_input_grad)
        return (
            _backward(gradient, x, weight, 0) if of_x else None,
            _backward(_side_by_side(gradient), _side_by_side(x), weight, 1) if of_weight else None,
            gradient.sum(dim=(0, 2, 3)) if of_bias else None,
        )


def _backward(gradient: Tensor, x: Tensor, weight: Tensor, which: int) -> Tensor:
    """The gradient of x (0) or of the weight (1)."""
    wanted = [which == 0, which == 1, False]
    found: Tensor = torch.ops.aten.convolution_backward(
        gradient, x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, wanted
    )[which]
    return found


def _side_by_side(x: Tensor) -> Tensor:
    """[N, C, H, W] → [P, C, H, N/P · (W + 1)], channels last, zeros after each board."""
    n, channels, height, width = x.shape
    parts = next(parts for parts in _PARTS if n % parts == 0)
    wide = x.new_zeros(parts, height, n // parts, width + 1, channels)
    wide[..., :width, :] = x.permute(0, 2, 3, 1).reshape(parts, n // parts, height, width, channels).transpose(1, 2)
    return wide.reshape(parts, height, -1, channels).permute(0, 3, 1, 2)
