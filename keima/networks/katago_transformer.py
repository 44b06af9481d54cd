"""KataGo's transformer blocks: attention with rotary embedding, and the gated feed-forward layer.

Both are residual blocks on [N, C, H, W] like the convolutional ones, so trunks may mix them. A point is a token; its
place enters only through the rotary embedding (Su et al. 2021, arXiv:2104.09864), here in two dimensions.
Follows `TransformerAttentionDesc` and `TransformerFFNDesc` of KataGo's `cpp/neuralnet/desc.cpp`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from keima.networks.katago_board import Board
from keima.networks.katago_config import AttentionConfig, FeedForwardConfig


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
    return block.config.theta**exponents


def _heads(channels: Tensor, heads: int) -> Tensor:
    """[N, L, heads · D] → [N, heads, L, D]."""
    return channels.unflatten(2, (heads, -1)).transpose(1, 2)


def _share(x: Tensor, group: int) -> Tensor:
    """Repeat each key-value head, on the axis third from the end, for the `group` query heads that share it."""
    return x if group == 1 else x.repeat_interleave(group, dim=-3)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each adjacent pair of channels of x [N, heads, L, D] by its angle: x · cos + (x turned by 90°) · sin."""
    return x * cos + (x @ _quarter_turn(x)) * sin


def _quarter_turn(x: Tensor) -> Tensor:
    """The matrix [D, D] that takes each pair (a, b) of D channels to (−b, a); a product, for slices are slow."""
    unit = torch.eye(x.shape[3], dtype=x.dtype, device=x.device)
    even, odd = unit.unflatten(1, (-1, 2)).unbind(-1)
    return torch.stack((-odd, even), dim=-1).flatten(1)


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
