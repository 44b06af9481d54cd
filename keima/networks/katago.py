"""KataGo's networks, model versions 8 to 17: stem, blocks, heads, net, from top to bottom.

To see one: b18c384nbt is a 3×3 convolution plus a linear map of the globals (`KataGoNetwork`), 18 `BottleneckBlock`s of
two `ResidualBlock`s each (the first a `PoolingBlock` in every third), a norm, a `PolicyHead` and a `ValueHead`. The
sizes are in `katago_config.preset`; what becomes of the raw outputs in `katago_outputs`; attention, which the newest
networks mix in, in `katago_transformer`; the encoder of human players in `katago_metadata`.

Sources: Wu 2019, "Accelerating Self-Play Learning in Go" (arXiv:1902.10565), §4 and appendix A; KataGo's
docs/KataGoMethods.md for what came after; `cpp/neuralnet/desc.cpp` and `eigenbackend.cpp`, which decide.

Letters: N positions, C trunk channels, H × W points, A = H·W + 1 moves with pass last. All from the side to move.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from keima.encodings.katago import KataGoEncoding
from keima.errors import BadRequest
from keima.networks.katago_board import Board
from keima.networks.katago_config import (
    GLOBALS,
    PLANES,
    AttentionConfig,
    BlockConfig,
    BottleneckConfig,
    FeedForwardConfig,
    KataGoConfig,
    NormConfig,
    PolicyConfig,
    PoolingConfig,
    ResidualConfig,
    RmsConfig,
    ValueConfig,
)
from keima.networks.katago_metadata import MetadataEncoder
from keima.networks.katago_outputs import OFF_BOARD, KataGoOutputs, decode
from keima.networks.katago_start import start
from keima.networks.katago_transformer import AttentionBlock, FeedForwardBlock
from keima.networks.layers import activate_rows, activation_layer
from keima.networks.network import Array, Heads, Network, Pedigree

# --- Norms ------------------------------------------------------------------------------------------------------------


class NormAct(nn.Module):
    """A per-channel norm, its activation, and zeros off the board: act(x · scale + bias) · mask.

    Published files hold two kinds, told apart by `NormConfig.statistics`. Without statistics the layer is a learned
    scale and bias ("fixup", "fixed scaling", or a batch norm folded when it was exported), in training too. With them
    it is batch norm: in training mode it uses the batch's own mean and variance over the points on the board, and
    keeps running ones for evaluation.
    """

    momentum = 0.01
    """Share of the newest batch in the running statistics (KataGo: 0.001, for far longer runs than ours)."""

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
        scale, bias = self.merged()
        if scale is not None:
            x = x * scale[:, None, None]
        if bias is not None:
            x = x + bias[:, None, None]
        return board.on_board(self.act(x))

    def merged(self) -> tuple[Tensor | None, Tensor | None]:
        """The scale and bias [C] of evaluation, statistics folded in; None for a scale of 1 or a bias of 0."""
        if not self.config.statistics:
            return self.weight, self.bias
        scale = torch.rsqrt(self.running_var + self.config.epsilon)
        if self.weight is not None:
            scale = self.weight * scale
        shift = -self.running_mean * scale
        return scale, shift if self.bias is None else self.bias + shift

    def _batch_norm(self, x: Tensor, board: Board) -> Tensor:
        """Normalise by the batch's own statistics, points off the board left out, and remember them."""
        mean, var, epsilon = self.running_mean, self.running_var, self.config.epsilon
        if board.mask is None:
            return F.batch_norm(x, mean, var, self.weight, self.bias, True, self.momentum, epsilon)
        points = board.mask.sum()
        batch_mean = board.on_board(x).sum(dim=(0, 2, 3)) / points
        centred = board.on_board(x - batch_mean[:, None, None])
        batch_var = centred.square().sum(dim=(0, 2, 3)) / points
        with torch.no_grad():
            mean.lerp_(batch_mean, self.momentum)
            var.lerp_(batch_var, self.momentum)
        x = centred * torch.rsqrt(batch_var + epsilon)[:, None, None]
        x = x if self.weight is None else x * self.weight[:, None, None]
        return x if self.bias is None else x + self.bias[:, None, None]


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
        return board.on_board(self.act(x * self.weight[:, None, None] + self.bias[:, None, None]))


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


# --- Blocks -----------------------------------------------------------------------------------------------------------


class ResidualBlock(nn.Module):
    """Pre-activation residual block: x + conv(norm(conv(norm(x)))) (He et al. 2016, arXiv:1603.05027)."""

    def __init__(self, channels: int, config: ResidualConfig) -> None:
        super().__init__()
        self.norm1 = NormAct(channels, config.first)
        self.conv1 = convolution(channels, config.channels, config.kernels[0])
        self.norm2 = NormAct(config.channels, config.second)
        self.conv2 = convolution(config.channels, channels, config.kernels[1])

    def forward(self, x: Tensor, board: Board) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]."""
        out = self.conv1(self.norm1(x, board))
        return x + self.conv2(self.norm2(out, board))


class PoolingBlock(nn.Module):
    """Residual block in which some channels are pooled over the whole board and become a bias on the others."""

    def __init__(self, channels: int, config: PoolingConfig) -> None:
        super().__init__()
        self.norm1 = NormAct(channels, config.first)
        self.conv1 = convolution(channels, config.channels, config.kernels[0])
        self.pool_conv = convolution(channels, config.pooled, config.kernels[1])
        self.pool_norm = NormAct(config.pooled, config.pool)
        self.pool_linear = nn.Linear(3 * config.pooled, config.channels, bias=False)
        self.norm2 = NormAct(config.channels, config.second)
        self.conv2 = convolution(config.channels, channels, config.kernels[2])

    def forward(self, x: Tensor, board: Board) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]."""
        out = self.norm1(x, board)
        pooled = global_pool(self.pool_norm(self.pool_conv(out), board), board)
        out = self.conv1(out) + self.pool_linear(pooled)[:, :, None, None]
        return x + self.conv2(self.norm2(out, board))


class BottleneckBlock(nn.Module):
    """Nested bottleneck: down to fewer channels, a few blocks there, and back up (b18c384nbt and its kin)."""

    def __init__(self, channels: int, config: BottleneckConfig) -> None:
        super().__init__()
        self.norm1 = NormAct(channels, config.first)
        self.conv1 = convolution(channels, config.channels, config.kernels[0])
        self.blocks = nn.ModuleList(build_block(config.channels, inner) for inner in config.blocks)
        self.norm2 = NormAct(config.channels, config.last)
        self.conv2 = convolution(config.channels, channels, config.kernels[1])

    def forward(self, x: Tensor, board: Board) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]."""
        out = self.conv1(self.norm1(x, board))
        for block in self.blocks:
            out = block(out, board)
        return x + self.conv2(self.norm2(out, board))


def build_block(channels: int, config: BlockConfig) -> nn.Module:
    """The block that a config describes, on a trunk (or an inner trunk) of `channels`."""
    match config:
        case ResidualConfig():
            return ResidualBlock(channels, config)
        case PoolingConfig():
            return PoolingBlock(channels, config)
        case BottleneckConfig():
            return BottleneckBlock(channels, config)
        case AttentionConfig():
            return AttentionBlock(channels, config)
        case FeedForwardConfig():
            return FeedForwardBlock(channels, config)


# --- Heads ------------------------------------------------------------------------------------------------------------


class PolicyHead(nn.Module):
    """Logits of every point and of pass; a pooled branch biases the board and alone decides the pass."""

    def __init__(self, channels: int, config: PolicyConfig) -> None:
        super().__init__()
        self.config = config
        self.conv = convolution(channels, config.channels, config.kernels[0])
        self.pool_conv = convolution(channels, config.pooled, config.kernels[1])
        self.pool_norm = NormAct(config.pooled, config.pool)
        self.pool_linear = nn.Linear(3 * config.pooled, config.channels, bias=False)
        self.norm = NormAct(config.channels, config.board)
        self.out = convolution(config.channels, config.outputs, config.kernels[2])
        self.pass_hidden: nn.Linear | None = None
        if config.pass_activation is not None:
            self.pass_hidden = nn.Linear(3 * config.pooled, config.channels)
            self.pass_act = activation_layer(config.pass_activation)
        inputs = 3 * config.pooled if self.pass_hidden is None else config.channels
        self.pass_out = nn.Linear(inputs, config.outputs, bias=False)

    def forward(self, trunk: Tensor, board: Board) -> Tensor:
        """[N, C, H, W] → logits [N, outputs, A]; points off the board get `OFF_BOARD`."""
        pooled = global_pool(self.pool_norm(self.pool_conv(trunk), board), board)
        out = self.conv(trunk) + self.pool_linear(pooled)[:, :, None, None]
        points = self.out(self.norm(out, board))
        if board.mask is not None:
            points = points.masked_fill(board.mask == 0, OFF_BOARD)
        hidden = pooled if self.pass_hidden is None else activate_rows(self.pass_act, self.pass_hidden(pooled))
        return torch.cat((points.flatten(2), self.pass_out(hidden).unsqueeze(2)), dim=2)


class ValueHead(nn.Module):
    """Who wins, by how much, and who owns each point."""

    def __init__(self, channels: int, config: ValueConfig, scores: int) -> None:
        super().__init__()
        self.config = config
        self.conv = convolution(channels, config.channels, config.kernels[0])
        self.norm = NormAct(config.channels, config.norm)
        self.linear = nn.Linear(3 * config.channels, config.hidden)
        self.act = activation_layer(config.activation)
        self.value = nn.Linear(config.hidden, 3)
        self.score = nn.Linear(config.hidden, scores)
        self.ownership = convolution(config.channels, 1, config.kernels[1])

    def forward(self, trunk: Tensor, board: Board) -> tuple[Tensor, Tensor, Tensor]:
        """[N, C, H, W] → value logits [N, 3], raw scores [N, 4 or 6], ownership before tanh [N, H, W]."""
        out = self.norm(self.conv(trunk), board)
        hidden = activate_rows(self.act, self.linear(global_pool_value(out, board)))
        return self.value(hidden), self.score(hidden), self.ownership(out).squeeze(1)


# --- Net --------------------------------------------------------------------------------------------------------------


class KataGoNetwork(Network):
    """A whole KataGo network: stem, trunk, policy head, value head.

    Fresh from a config it has random weights ready for training (`katago_start`); `keima.weights.katago` fills it from
    a file. `encoding` makes its inputs.

    Raises:
        UnsupportedNetwork: (from `KataGoConfig`) a version or combination that KataGo does not have.
    """

    system: ClassVar[str] = "katago"
    output_names = ("policy", "value", "score", "ownership")

    def __init__(self, config: KataGoConfig, pedigree: Pedigree | None = None) -> None:
        super().__init__()
        self.config = config
        self.pedigree = pedigree or Pedigree("katago", format=f"KataGo model version {config.version}")
        has_metadata = config.metadata is not None
        self.input_names = ("planes", "globals", "metadata") if has_metadata else ("planes", "globals")
        self.encoding = KataGoEncoding(metadata=has_metadata, pass_alive_suicide=config.pass_alive_suicide)

        self.conv = convolution(PLANES, config.channels, config.stem_kernel)
        self.linear = nn.Linear(GLOBALS, config.channels, bias=False)
        self.metadata = None if config.metadata is None else MetadataEncoder(config.channels, config.metadata)
        self.blocks = nn.ModuleList(build_block(config.channels, block) for block in config.blocks)
        tip = config.tip
        self.tip: nn.Module
        self.tip = RmsNormAct(config.channels, tip) if isinstance(tip, RmsConfig) else NormAct(config.channels, tip)
        self.policy = PolicyHead(config.channels, config.policy)
        self.value = ValueHead(config.channels, config.value, config.scores)
        start(self)

    def forward(
        self, planes: Tensor, globals: Tensor, metadata: Tensor | None = None, mask: Tensor | None = None
    ) -> KataGoOutputs:
        """Evaluate N positions.

        Args:
            planes: [N, 22, H, W]; globals: [N, 19]; metadata: [N, 192], for networks with a metadata encoder only.
            mask: [N, 1, H, W] or [N, H, W], 1 on the board; lets boards of any sizes share a batch, each in a corner of
                the planes, with the same answers as alone. Leave it out when every board fills its planes.

        Returns:
            Raw outputs (`KataGoOutputs`); `decode` turns them into answers.

        Raises:
            BadRequest: metadata is missing, or given to a network that takes none.
        """
        if (metadata is None) != (self.metadata is None):
            raise BadRequest(f"this network takes {', '.join(self.input_names)}, and each of them is needed")
        board = Board.of(planes, mask)
        bias = self.linear(globals)
        if self.metadata is not None:
            bias = bias + self.metadata(metadata)
        x = self.conv(planes) + bias[:, :, None, None]
        for block in self.blocks:
            x = block(x, board)
        trunk = self.tip(x, board)
        return KataGoOutputs(self.policy(trunk, board), *self.value(trunk, board))

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        """Probabilities and points for the side to move: see `katago_outputs.decode`."""
        return decode(self.config, outputs, context)
