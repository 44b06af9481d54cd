"""The four-head KataGo of the architecture guide: a pre-activation tower with global pooling, four outputs.

Source: the guide "神经网络架构详解" ("KataGo's network architecture in detail"). It simplifies KataGo, and the
network it describes is not the one in KataGo's files (`keima.systems.katago.network`): the 22 planes mean other
things, there are no global inputs, pooling is a plain mean after every sixth block, and the heads have linear layers of
one board size. As a network to train, it is complete; this file builds it as described, with these readings:

- The guide's classes are followed to the letter: a pre-activation tower without a norm at its end (each head begins
  with a 1×1 convolution and batch norm), a pooling block without norm, rectifier or skip connection, convolution
  biases as PyTorch's default has them.
- The policy comes out as logits, not probabilities; ownership as [N, H, W], not flattened.
- The guide's linear layers are fixed to 19 × 19; here they take `board_size`.
- The policy's linear layer begins pointwise; the guide names no initialisation.
- Its parameter counts (5, 75, 95 and 200 million) do not follow from its own layers, which `docs/networks.md` counts.

Shapes: N positions, C channels, H × W points with H = W = `board_size`, A = H·W + 1 moves, pass last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor, nn
from torch.nn import functional as F

from keima.errors import BadRequest
from keima.systems.katago_guide.inputs import KataGoGuideEncoding
from keima.systems.layers import begin_pointwise, decode_two_heads
from keima.systems.network import Array, Heads, Network, NetworkEntry, NetworkKind, NetworkTable, Pedigree

POOLING_EVERY = 6
"""A global pooling block follows every sixth residual block."""

SIZES = {"b10c128": (10, 128), "b18c384": (18, 384), "b40c256": (40, 256), "b60c320": (60, 320)}
"""The guide's sizes: name → (residual blocks, channels)."""


@dataclass(frozen=True)
class KataGoGuideOutput:
    """What the four heads compute, for the side to move, float32."""

    policy: Tensor  # [N, A], logits; points in row order of the planes, then pass
    value: Tensor  # [N] in [−1, 1], the expected outcome
    score: Tensor  # [N], points ahead at the end of the game
    ownership: Tensor  # [N, H, W] in [−1, 1], +1 = the side to move will own the point


class ResidualBlock(nn.Module):
    """Pre-activation block: twice (batch norm → rectifier → 3×3 convolution), added to the input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels)
        self.convolution1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(channels)
        self.convolution2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]."""
        y = self.convolution1(F.relu(self.norm1(x)))
        summed: Tensor = x + self.convolution2(F.relu(self.norm2(y)))
        return summed


class GlobalPoolingBlock(nn.Module):
    """A 3×3 convolution, plus a linear layer over each channel's mean, the same at every point."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1)
        self.linear = nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]."""
        whole_board = self.linear(x.mean(dim=(2, 3)))
        summed: Tensor = self.convolution(x) + whole_board[:, :, None, None]
        return summed


class PolicyHead(nn.Module):
    """1×1 convolution to 2 planes, batch norm, rectifier, linear layer to one logit per move."""

    def __init__(self, channels: int, board_size: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, 2, 1)
        self.norm = nn.BatchNorm2d(2)
        self.linear = nn.Linear(2 * board_size * board_size, board_size * board_size + 1)
        begin_pointwise(self.linear, board_size * board_size)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → logits [N, H·W + 1], pass last."""
        logits: Tensor = self.linear(F.relu(self.norm(self.convolution(x))).flatten(1))
        return logits


class ScalarHead(nn.Module):
    """1×1 convolution to 1 plane, batch norm, rectifier, linear layer to 256, rectifier, linear layer to 1."""

    def __init__(self, channels: int, board_size: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, 1, 1)
        self.norm = nn.BatchNorm2d(1)
        self.linear1 = nn.Linear(board_size * board_size, 256)
        self.linear2 = nn.Linear(256, 1)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → [N], unbounded."""
        y = F.relu(self.norm(self.convolution(x)))
        y = F.relu(self.linear1(y.flatten(1)))
        scalar: Tensor = self.linear2(y).flatten()
        return scalar


class OwnershipHead(nn.Module):
    """1×1 convolution to 32 planes, batch norm, rectifier, 1×1 convolution to 1, tanh."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution1 = nn.Conv2d(channels, 32, 1)
        self.norm = nn.BatchNorm2d(32)
        self.convolution2 = nn.Conv2d(32, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → [N, H, W] in [−1, 1]."""
        owner: Tensor = self.convolution2(F.relu(self.norm(self.convolution1(x))))
        return owner.squeeze(1).tanh()


class KataGoGuideNetwork(Network):
    """The guide's network: stem, tower with global pooling (its blocks not counted in `blocks`), four heads.

    Raises:
        BadRequest: a size that cannot be.
    """

    system = "katago-guide"
    output_names = ("policy", "value", "score", "ownership")

    def __init__(self, blocks: int = 18, channels: int = 384, board_size: int = 19) -> None:
        super().__init__()
        if blocks < 0 or channels < 1:
            raise BadRequest(f"a tower needs blocks ≥ 0 and channels ≥ 1, not {blocks} and {channels}")
        self.config = {"blocks": blocks, "channels": channels, "board_size": board_size}
        self.encoding = KataGoGuideEncoding(board_size=board_size)
        self.pedigree = Pedigree(name=f"katago-guide-b{blocks}c{channels}")
        self.stem = nn.Conv2d(self.encoding.planes, channels, 3, padding=1)
        self.stem_norm = nn.BatchNorm2d(channels)
        self.tower = nn.Sequential()
        for i in range(1, blocks + 1):
            self.tower.append(ResidualBlock(channels))
            if i % POOLING_EVERY == 0:
                self.tower.append(GlobalPoolingBlock(channels))
        self.policy_head = PolicyHead(channels, board_size)
        self.value_head = ScalarHead(channels, board_size)
        self.score_head = ScalarHead(channels, board_size)
        self.ownership_head = OwnershipHead(channels)

    def forward(self, planes: Tensor) -> KataGoGuideOutput:
        """Evaluate planes [N, 22, H, W] (`keima.systems.katago_guide.inputs.PLANES`)."""
        x = self.tower(F.relu(self.stem_norm(self.stem(planes))))
        return KataGoGuideOutput(
            policy=self.policy_head(x),
            value=self.value_head(x).tanh(),
            score=self.score_head(x),
            ownership=self.ownership_head(x),
        )

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        """Logits, value and win/draw/loss (no draws), points ahead and ownership, for the side to move."""
        return replace(decode_two_heads(outputs), lead=outputs["score"], ownership=outputs["ownership"])


NETWORKS = NetworkTable(
    kinds=(NetworkKind("katago-guide", KataGoGuideNetwork, ("stem", "tower"), "global pooling"),),
    entries=tuple(
        NetworkEntry(
            f"katago-guide-{name}",
            "katago-guide",
            "the KataGo architecture guide",
            {"blocks": blocks, "channels": channels},
            {"blocks": 7, "channels": 8, "board_size": 9},
            "four heads, global pooling after every sixth block",
        )
        for name, (blocks, channels) in SIZES.items()
    ),
    aliases={"katago-guide": "katago-guide-b18c384"},
)
