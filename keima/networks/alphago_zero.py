"""AlphaGo Zero: one tower of residual blocks, a policy head and a value head.

Source: D. Silver et al., "Mastering the game of Go without human knowledge", Nature 550 (2017), Methods, "Neural
network architecture". A convolution block, then 19 or 39 residual blocks of 256 filters ("20" and "40" count the first
block too); the policy head is 1×1 convolution to 2 planes and a linear layer to H·W + 1, the value head 1×1
convolution to 1 plane, a linear layer to 256 and one to a single tanh.

The paper's study (Fig. 4) crosses two choices, and so does this file:

    dual-res   `AlphaGoZeroNetwork(tower="residual")`               the network of AlphaGo Zero
    dual-conv  `AlphaGoZeroNetwork(tower="convolution")`            one tower without skip connections
    sep-res    `AlphaGoZeroSeparateNetworks(tower="residual")`      a policy network and a value network
    sep-conv   `AlphaGoZeroSeparateNetworks(tower="convolution")`   the same, without skip connections

Shapes: N positions, C channels, H × W points with H = W = `board_size`, A = H·W + 1 moves, pass last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from keima.encodings.alphago_zero import AlphaGoZeroEncoding
from keima.errors import BadRequest
from keima.networks.network import Array, Heads, Network, Pedigree

TOWERS = ("residual", "convolution")


@dataclass(frozen=True)
class AlphaGoZeroOutput:
    """What an AlphaGo Zero network computes, for the side to move.

    Attributes:
        policy: float32 [N, A], logits; points in row order of the planes, then pass.
        value: float32 [N] in [−1, 1], the expected outcome.
    """

    policy: Tensor
    value: Tensor


class ConvolutionBlock(nn.Module):
    """Convolution → batch norm → rectifier: the tower's first block, and the whole of a plain tower."""

    def __init__(self, in_channels: int, channels: int, kernel_size: int = 3) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(in_channels, channels, kernel_size, padding=kernel_size // 2, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C_in, H, W] → [N, C, H, W], ≥ 0."""
        return F.relu(self.norm(self.convolution(x)))


class ResidualBlock(nn.Module):
    """Two 3×3 convolutions with batch norm; the input is added before the last rectifier."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.convolution2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → [N, C, H, W], ≥ 0."""
        y = F.relu(self.norm1(self.convolution1(x)))
        y = self.norm2(self.convolution2(y))
        return F.relu(x + y)


def check_sizes(blocks: int, channels: int, tower: str = "residual") -> None:
    """Refuse a tower that cannot be.

    Raises:
        BadRequest: `tower` is not one of `TOWERS`, or a size is too small.
    """
    if tower not in TOWERS:
        raise BadRequest(f"unknown tower {tower!r}; choose one of {', '.join(TOWERS)}")
    if blocks < 0 or channels < 1:
        raise BadRequest(f"a tower needs blocks ≥ 0 and channels ≥ 1, not {blocks} and {channels}")


def build_tower(kind: str, blocks: int, channels: int) -> nn.Sequential:
    """The blocks after the stem: residual blocks (two convolutions each) or plain ones (one convolution each)."""
    if kind == "residual":
        return nn.Sequential(*(ResidualBlock(channels) for _ in range(blocks)))
    return nn.Sequential(*(ConvolutionBlock(channels, channels) for _ in range(blocks)))


class PolicyHead(nn.Module):
    """1×1 convolution to 2 planes, batch norm, rectifier, linear layer to one logit per move."""

    def __init__(self, channels: int, board_size: int, filters: int = 2) -> None:
        super().__init__()
        points = board_size * board_size
        self.convolution = nn.Conv2d(channels, filters, 1, bias=False)
        self.norm = nn.BatchNorm2d(filters)
        self.linear = nn.Linear(filters * points, points + 1)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → logits [N, H·W + 1], pass last."""
        y = F.relu(self.norm(self.convolution(x)))
        logits: Tensor = self.linear(y.flatten(1))
        return logits


class ValueHead(nn.Module):
    """1×1 convolution to 1 plane, batch norm, rectifier, linear layer to 256, rectifier, linear layer, tanh."""

    def __init__(self, channels: int, board_size: int, hidden: int = 256, filters: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, filters, 1, bias=False)
        self.norm = nn.BatchNorm2d(filters)
        self.linear1 = nn.Linear(filters * board_size * board_size, hidden)
        self.linear2 = nn.Linear(hidden, 1)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → the outcome for the side to move, [N] in [−1, 1]."""
        y = F.relu(self.norm(self.convolution(x)))
        y = F.relu(self.linear1(y.flatten(1)))
        return self.linear2(y).flatten().tanh()


def decode_two_heads(outputs: Mapping[str, Array]) -> Heads:
    """Answers of any network whose outputs are `policy` logits [N, A] and a tanh `value` [N] for the side to move.

    Such a network knows no drawn game: draw is 0, win and loss are (1 ± value) / 2.
    """
    value = outputs["value"].astype(np.float32, copy=False)
    wdl = np.stack([(1 + value) / 2, np.zeros_like(value), (1 - value) / 2], axis=1)
    return Heads(policy=outputs["policy"], wdl=wdl, value=value)


class AlphaGoZeroNetwork(Network):
    """One tower, two heads (the paper's dual-res and dual-conv).

    Args:
        blocks: residual blocks after the first convolution (paper: 19 or 39), or plain convolution blocks.
        channels: filters of every convolution of the tower (paper: 256).
        tower: "residual" or "convolution".
        board_size: H = W; the heads' linear layers fix it.
        value_hidden: width of the value head's hidden layer (paper: 256).

    Raises:
        BadRequest: an unknown tower, or a size that cannot be.
    """

    system = "alphago-zero"

    def __init__(
        self,
        blocks: int = 19,
        channels: int = 256,
        tower: str = "residual",
        board_size: int = 19,
        value_hidden: int = 256,
    ) -> None:
        super().__init__()
        check_sizes(blocks, channels, tower)
        self.config = {
            "blocks": blocks,
            "channels": channels,
            "tower": tower,
            "board_size": board_size,
            "value_hidden": value_hidden,
        }
        self.encoding = AlphaGoZeroEncoding(board_size=board_size)
        self.pedigree = Pedigree(name="alphago-zero")
        self.input_names = ("planes",)
        self.output_names = ("policy", "value")

        self.stem = ConvolutionBlock(self.encoding.planes, channels)
        self.tower = build_tower(tower, blocks, channels)
        self.policy_head = PolicyHead(channels, board_size)
        self.value_head = ValueHead(channels, board_size, value_hidden)

    def forward(self, planes: Tensor) -> AlphaGoZeroOutput:
        """Evaluate planes [N, 17, H, W] (`keima.encodings.alphago_zero.PLANES`)."""
        x = self.tower(self.stem(planes))
        return AlphaGoZeroOutput(policy=self.policy_head(x), value=self.value_head(x))

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        """Logits as they are; value and win/draw/loss for the side to move."""
        return decode_two_heads(outputs)


class AlphaGoZeroSeparateNetworks(Network):
    """Two networks, one for the policy and one for the value (the paper's sep-res and sep-conv), as one module.

    They share nothing; one module keeps them loading, evaluating and searching as the dual network does.

    Args: as for `AlphaGoZeroNetwork`; each of the two towers has `blocks` blocks.

    Raises:
        BadRequest: an unknown tower, or a size that cannot be.
    """

    system = "alphago-zero"

    def __init__(
        self,
        blocks: int = 19,
        channels: int = 256,
        tower: str = "residual",
        board_size: int = 19,
        value_hidden: int = 256,
    ) -> None:
        super().__init__()
        check_sizes(blocks, channels, tower)
        self.config = {
            "blocks": blocks,
            "channels": channels,
            "tower": tower,
            "board_size": board_size,
            "value_hidden": value_hidden,
        }
        self.encoding = AlphaGoZeroEncoding(board_size=board_size)
        self.pedigree = Pedigree(name="alphago-zero-separate")
        self.input_names = ("planes",)
        self.output_names = ("policy", "value")

        self.policy_stem = ConvolutionBlock(self.encoding.planes, channels)
        self.policy_tower = build_tower(tower, blocks, channels)
        self.policy_head = PolicyHead(channels, board_size)
        self.value_stem = ConvolutionBlock(self.encoding.planes, channels)
        self.value_tower = build_tower(tower, blocks, channels)
        self.value_head = ValueHead(channels, board_size, value_hidden)

    def forward(self, planes: Tensor) -> AlphaGoZeroOutput:
        """Evaluate planes [N, 17, H, W] (`keima.encodings.alphago_zero.PLANES`) with both networks."""
        policy = self.policy_head(self.policy_tower(self.policy_stem(planes)))
        value = self.value_head(self.value_tower(self.value_stem(planes)))
        return AlphaGoZeroOutput(policy=policy, value=value)

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        """Logits as they are; value and win/draw/loss for the side to move."""
        return decode_two_heads(outputs)
