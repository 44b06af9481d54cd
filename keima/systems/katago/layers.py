"""What KataGo's blocks and heads are made of: the board's mask, norms, global pooling, attention, the human encoder.

Sources: Wu 2019 (arXiv:1902.10565), §4; `TransformerAttentionDesc`, `TransformerFFNDesc` and `SGFMetadataEncoderDesc`
of KataGo's `cpp/neuralnet/desc.cpp`. Letters as in `network.py`, and L points of a board, each a token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from keima.systems.katago.config import (
    METADATA,
    AttentionConfig,
    FeedForwardConfig,
    MetadataConfig,
    NormConfig,
    RmsConfig,
)
from keima.systems.layers import BatchStatistics, Moments, Pointwise, activate_rows, activation_layer

# --- The board --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Board:
    """The boards of one batch."""

    mask: Tensor | None  # float [N, 1, H, W], 1 on the board and 0 off it; None where every board fills its planes
    width: Tensor  # √(points on the board), what KataGo scales pooled values by: [N, 1] with a mask, a scalar without

    @staticmethod
    def of(planes: Tensor, mask: Tensor | None) -> Board:
        """The boards in planes [N, C, H, W] under a mask [N, 1, H, W], [N, H, W] or None."""
        if mask is None:
            return Board(None, torch.sqrt(planes.new_ones(()) * planes.shape[2] * planes.shape[3]))
        mask = mask.reshape(-1, 1, planes.shape[2], planes.shape[3]).to(planes.dtype)
        return Board(mask, torch.sqrt(mask.sum(dim=(2, 3))))

    def on_board(self, x: Tensor) -> Tensor:
        """x [N, C, H, W] with zeros off the board."""
        return x if self.mask is None else x * self.mask.to(x.dtype)

    def mean(self, x: Tensor) -> Tensor:
        """Mean over the points on the board, [N, C, H, W] → [N, C]; x must be zero off the board."""
        return x.mean(dim=(2, 3)) if self.mask is None else x.sum(dim=(2, 3)) / self.width.square()

    def max(self, x: Tensor) -> Tensor:
        """Maximum over the points on the board, [N, C, H, W] → [N, C]."""
        if self.mask is not None:
            x = x.masked_fill(self.mask == 0, float("-inf"))
        return x.amax(dim=(2, 3))


# --- Norms ------------------------------------------------------------------------------------------------------------


def _norm_act(
    x: Tensor, scale: Tensor | None, bias: Tensor | None, mask: Tensor | None, act: Callable[[Tensor], Tensor]
) -> Tensor:
    """act(x · scale + bias) · mask, rounded once to x's type."""
    found = act(_affine(x, scale, bias))
    return (found if mask is None else found * mask).to(x.dtype)


class NormAct(nn.Module, BatchStatistics, Pointwise):
    """A per-channel norm, its activation, and zeros off the board: act(x · scale + bias) · mask.

    Without `NormConfig.statistics` the layer is a learned scale and bias, in training too. With them it is batch norm:
    in training mode it uses the batch's own mean and variance over the points on the board, and keeps running ones for
    evaluation.
    """

    compute = staticmethod(_norm_act)
    momentum = 0.01  # KataGo: 0.001, for far longer runs than ours

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int, config: NormConfig) -> None:
        super().__init__()
        self.config = config
        self.channels = channels
        self.weight = nn.Parameter(torch.ones(channels)) if config.scale else None
        self.bias = nn.Parameter(torch.zeros(channels)) if config.bias else None
        if config.statistics:
            self.register_buffer("running_mean", torch.zeros(channels))
            self.register_buffer("running_var", torch.ones(channels))
        self.act = activation_layer(config.activation)

    def forward(self, x: Tensor, board: Board) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]."""
        if self.config.statistics and self.training:
            return board.on_board(self.act(self._batch_norm(x, board)))
        return self.compute(x, *self.merged(), board.mask, self.act)

    def merged(self) -> tuple[Tensor | None, Tensor | None]:
        """The scale and bias [C] of evaluation, statistics folded in; None for a scale of 1 or a bias of 0."""
        if not self.config.statistics:
            return self.weight, self.bias
        scale = torch.rsqrt(self.running_var + self.config.epsilon)
        if self.weight is not None:
            scale = self.weight * scale
        bias = torch.zeros_like(scale) if self.bias is None else self.bias
        return scale, bias - self.running_mean * scale

    def _batch_norm(self, x: Tensor, board: Board) -> Tensor:
        """Normalise by the batch's own statistics, points off the board left out, and remember them."""
        mean, var, epsilon = self.running_mean, self.running_var, self.config.epsilon
        if self.moments is not None:
            return self._batch_norm_by(self.moments, x, board)
        if board.mask is None:
            return F.batch_norm(x, mean, var, self.weight, self.bias, True, self.momentum, epsilon)
        points = board.mask.sum()
        batch_mean = board.on_board(x).sum(dim=(0, 2, 3)) / points
        centred = board.on_board(x - batch_mean[:, None, None])
        batch_var = centred.square().sum(dim=(0, 2, 3)) / points
        with torch.no_grad():
            mean.lerp_(batch_mean, self.momentum)
            var.lerp_(batch_var, self.momentum)
        return _affine(centred * torch.rsqrt(batch_var + epsilon)[:, None, None], self.weight, self.bias)

    def _batch_norm_by(self, moments: Moments, x: Tensor, board: Board) -> Tensor:
        """The same with the moments of a batch that is spread over several processes."""
        mean, var, points = moments(x, board.mask)
        unbiased = var if board.mask is not None else var * points / (points - 1)
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(unbiased, self.momentum)
        x = (x - mean[:, None, None]) * torch.rsqrt(var + self.config.epsilon)[:, None, None]
        return board.on_board(_affine(x, self.weight, self.bias))


def _affine(x: Tensor, scale: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if scale is None else x * scale[:, None, None]
    return x if bias is None else x + bias[:, None, None]


class RmsNormAct(nn.Module):
    """RMS norm with scale and bias, then the activation: at the tip of trunks with transformer blocks."""

    def __init__(self, channels: int, config: RmsConfig) -> None:
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.act = activation_layer(config.activation)

    def forward(self, x: Tensor, board: Board) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]; one RMS per point, or one per position over all its points."""
        square = x.square().mean(dim=1, keepdim=True)
        if self.config.spatial:
            square = board.mean(board.on_board(square))[:, :, None, None]
        x = x * torch.rsqrt(square + self.config.epsilon)
        return board.on_board(self.act(_affine(x, self.weight, self.bias)))


# --- Global pooling ---------------------------------------------------------------------------------------------------


def global_pool(x: Tensor, board: Board) -> Tensor:
    """[N, C, H, W] → [N, 3C]: mean; mean · (√points − 14) / 10; maximum (Wu 2019, §4.1)."""
    mean = board.mean(x)
    return torch.cat((mean, mean * ((board.width - 14.0) * 0.1), board.max(x)), dim=1)


def global_pool_value(x: Tensor, board: Board) -> Tensor:
    """[N, C, H, W] → [N, 3C]: mean; mean · (√points − 14) / 10; mean · ((√points − 14)² / 100 − 0.1)."""
    mean = board.mean(x)
    width = board.width - 14.0
    return torch.cat((mean, mean * (width * 0.1), mean * (width.square() * 0.01 - 0.1)), dim=1)


def convolution(inputs: int, outputs: int, kernel: int) -> nn.Conv2d:
    """A square convolution that keeps the board's size; KataGo's never have a bias of their own."""
    return nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)


# --- Attention --------------------------------------------------------------------------------------------------------
#
# Residual blocks on [N, C, H, W] like the convolutional ones, so trunks may mix them. A point's place enters only
# through the rotary embedding (Su et al. 2021, arXiv:2104.09864), here in two dimensions.


class TokenNorm(nn.Module):
    """RMS norm of each token over its channels: x / √(mean x² + ε) · weight (Zhang & Sennrich 2019)."""

    def __init__(self, channels: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.epsilon = epsilon

    def forward(self, tokens: Tensor) -> Tensor:
        """[N, L, C] → [N, L, C]."""
        mean_square = tokens.square().mean(dim=-1, keepdim=True)
        return tokens * torch.rsqrt(mean_square + self.epsilon) * self.weight


class AttentionBlock(nn.Module):
    """x + W_out · attention(q, k, v of norm(x)), every point attending to every point of the board."""

    def __init__(self, channels: int, config: AttentionConfig) -> None:
        super().__init__()
        self.config = config
        keys, values = config.key_channels, config.value_channels
        self.norm = TokenNorm(channels, config.epsilon)
        self.query = nn.Linear(channels, config.heads * keys, bias=False)
        self.key = nn.Linear(channels, config.key_value_heads * keys, bias=False)
        self.value = nn.Linear(channels, config.key_value_heads * values, bias=False)
        self.out = nn.Linear(config.heads * values, channels, bias=False)
        if config.rotary == "learned":
            self.frequencies = nn.Parameter(torch.empty(config.key_value_heads, keys // 2, 2))

    def forward(self, x: Tensor, board: Board) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]. Off-board points are neither attended to nor changed."""
        config = self.config
        tokens = self.norm(x.flatten(2).transpose(1, 2))
        query = _heads(self.query(tokens), config.heads)
        key = _heads(self.key(tokens), config.key_value_heads)
        value = _heads(self.value(tokens), config.key_value_heads)
        group = config.heads // config.key_value_heads
        key, value = _share(key, group), _share(value, group)
        if config.rotary != "none":
            cos, sin = self._rotation(x, group)
            query, key = _rotate(query, cos, sin), _rotate(key, cos, sin)
        allowed = None if board.mask is None else board.mask.flatten(2).unsqueeze(1) > 0
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
        out = self.out(mixed.transpose(1, 2).flatten(2))
        return x + board.on_board(out.transpose(1, 2).unflatten(2, (x.shape[2], x.shape[3])))

    def _rotation(self, x: Tensor, group: int) -> tuple[Tensor, Tensor]:
        """Cosine and sine of every pair's angle at every point: two of [heads or 1, L, 2 · pairs]."""
        height, width = x.shape[2], x.shape[3]
        rows = torch.arange(height, device=x.device, dtype=torch.float32)[:, None].expand(height, width).reshape(-1, 1)
        columns = torch.arange(width, device=x.device, dtype=torch.float32)[None, :].expand(height, width)
        columns = columns.reshape(-1, 1)
        if self.config.rotary == "learned":
            along_x, along_y = _share(self.frequencies.float(), group).unsqueeze(1).unbind(-1)
            angles = columns * along_x + rows * along_y
        else:
            pairs = self.config.key_channels // 2
            by_row, by_column = _frequencies(pairs // 2, pairs, self), _frequencies(pairs - pairs // 2, pairs, self)
            angles = torch.cat((rows * by_row, columns * by_column), dim=1).unsqueeze(0)
        angles = angles.repeat_interleave(2, dim=-1)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


def _frequencies(count: int, pairs: int, block: AttentionBlock) -> Tensor:
    """θ^(−2p / pairs) for p < count, [count]."""
    exponents = torch.arange(count, device=block.query.weight.device, dtype=torch.float32) * (-2.0 / pairs)
    frequencies: Tensor = block.config.theta**exponents
    return frequencies


def _heads(channels: Tensor, heads: int) -> Tensor:
    """[N, L, heads · D] → [N, heads, L, D]."""
    split: Tensor = channels.unflatten(2, (heads, -1))  # type: ignore[no-untyped-call]
    return split.transpose(1, 2)


def _share(x: Tensor, group: int) -> Tensor:
    """Repeat each key-value head, on the axis third from the end, for the `group` query heads that share it."""
    return x if group == 1 else x.repeat_interleave(group, dim=-3)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each adjacent pair of channels of x [N, heads, L, D] by its angle: x · cos + (x turned by 90°) · sin.

    The turn takes each pair (a, b) to (−b, a); it is a product with a matrix [D, D], for slices are slow.
    """
    unit = torch.eye(x.shape[3], dtype=x.dtype, device=x.device)
    even, odd = unit.unflatten(1, (-1, 2)).unbind(-1)  # type: ignore[no-untyped-call]
    return x * cos + (x @ torch.stack((-odd, even), dim=-1).flatten(1)) * sin


class FeedForwardBlock(nn.Module):
    """x + W2 · (silu(W1 · norm(x)) · (Wg · norm(x))), each point by itself (SwiGLU, Shazeer 2020)."""

    def __init__(self, channels: int, config: FeedForwardConfig) -> None:
        super().__init__()
        self.config = config
        self.norm = TokenNorm(channels, config.epsilon)
        self.linear = nn.Linear(channels, config.channels, bias=False)
        self.gate = nn.Linear(channels, config.channels, bias=False)
        self.out = nn.Linear(config.channels, channels, bias=False)

    def forward(self, x: Tensor, board: Board) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]. Off-board points are not changed."""
        tokens = self.norm(x.flatten(2).transpose(1, 2))
        out = self.out(F.silu(self.linear(tokens)) * self.gate(tokens))
        return x + board.on_board(out.transpose(1, 2).unflatten(2, (x.shape[2], x.shape[3])))


# --- Who plays --------------------------------------------------------------------------------------------------------


class MetadataEncoder(nn.Module):
    """192 facts about the players (`metadata.py`) → one bias per trunk channel, through two hidden layers."""

    def __init__(self, channels: int, config: MetadataConfig) -> None:
        super().__init__()
        self.config = config
        first, second = config.hidden
        self.linear1 = nn.Linear(METADATA, first)
        self.act1 = activation_layer(config.activations[0])
        self.linear2 = nn.Linear(first, second)
        self.act2 = activation_layer(config.activations[1])
        self.linear3 = nn.Linear(second, channels, bias=False)

    def forward(self, metadata: Tensor) -> Tensor:
        """[N, 192] → [N, C]."""
        hidden = activate_rows(self.act1, self.linear1(metadata))
        bias: Tensor = self.linear3(activate_rows(self.act2, self.linear2(hidden)))
        return bias
