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

The blocks and heads stand in `keima.systems.layers`. Shapes: N positions, C channels, H × W points with H = W =
`board_size`, A = H·W + 1 moves, pass last.
"""

from __future__ import annotations

from torch import Tensor, nn

from keima.errors import BadRequest
from keima.systems.alphago_zero.inputs import AlphaGoZeroEncoding
from keima.systems.layers import ConvolutionBlock, PolicyHead, PolicyValue, ResidualBlock, TwoHeadNetwork, ValueHead
from keima.systems.network import NetworkEntry, NetworkKind, NetworkTable, Pedigree

TOWERS = ("residual", "convolution")


def check_sizes(blocks: int, channels: int, tower: str = "residual") -> None:
    """Raise BadRequest for an unknown tower, or a size that is too small."""
    if tower not in TOWERS:
        raise BadRequest(f"unknown tower {tower!r}; choose one of {', '.join(TOWERS)}")
    if blocks < 0 or channels < 1:
        raise BadRequest(f"a tower needs blocks ≥ 0 and channels ≥ 1, not {blocks} and {channels}")


def build_tower(kind: str, blocks: int, channels: int) -> nn.Sequential:
    """The blocks after the stem: residual blocks (two convolutions each) or plain ones (one convolution each)."""
    if kind == "residual":
        return nn.Sequential(*(ResidualBlock(channels) for _ in range(blocks)))
    return nn.Sequential(*(ConvolutionBlock(channels, channels) for _ in range(blocks)))


class _AlphaGoZero(TwoHeadNetwork):
    """What both classes share; `_build` makes their layers."""

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
        sizes = {"blocks": blocks, "channels": channels, "tower": tower}
        self.config = {**sizes, "board_size": board_size, "value_hidden": value_hidden}
        self.encoding = AlphaGoZeroEncoding(board_size=board_size)
        self._build(**self.config)

    def _build(self, blocks: int, channels: int, tower: str, board_size: int, value_hidden: int) -> None:
        raise NotImplementedError


class AlphaGoZeroNetwork(_AlphaGoZero):
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

    pedigree = Pedigree(name="alphago-zero")

    def _build(self, blocks: int, channels: int, tower: str, board_size: int, value_hidden: int) -> None:
        self.stem = ConvolutionBlock(self.encoding.planes, channels)
        self.tower = build_tower(tower, blocks, channels)
        self.policy_head = PolicyHead(channels, board_size)
        self.value_head = ValueHead(channels, board_size, value_hidden)

    def forward(self, planes: Tensor) -> PolicyValue:
        """Evaluate planes [N, 17, H, W] (`keima.systems.alphago_zero.inputs.PLANES`)."""
        x = self.tower(self.stem(planes))
        return PolicyValue(policy=self.policy_head(x), value=self.value_head(x))


class AlphaGoZeroSeparateNetworks(_AlphaGoZero):
    """Two networks, one for the policy and one for the value (the paper's sep-res and sep-conv), as one module.

    They share nothing; one module keeps them loading, evaluating and searching as the dual network does. Arguments and
    errors as for `AlphaGoZeroNetwork`; each of the two towers has `blocks` blocks.
    """

    pedigree = Pedigree(name="alphago-zero-separate")

    def _build(self, blocks: int, channels: int, tower: str, board_size: int, value_hidden: int) -> None:
        self.policy_stem = ConvolutionBlock(self.encoding.planes, channels)
        self.policy_tower = build_tower(tower, blocks, channels)
        self.policy_head = PolicyHead(channels, board_size)
        self.value_stem = ConvolutionBlock(self.encoding.planes, channels)
        self.value_tower = build_tower(tower, blocks, channels)
        self.value_head = ValueHead(channels, board_size, value_hidden)

    def forward(self, planes: Tensor) -> PolicyValue:
        """Evaluate planes [N, 17, H, W] (`keima.systems.alphago_zero.inputs.PLANES`) with both networks."""
        policy = self.policy_head(self.policy_tower(self.policy_stem(planes)))
        value = self.value_head(self.value_tower(self.value_stem(planes)))
        return PolicyValue(policy=policy, value=value)


_PAPER = "Silver et al., Nature 550 (2017)"
_LINEAR = "the heads' linear layers"
_SMALL = {"blocks": 2, "channels": 8, "board_size": 9, "value_hidden": 16}
_DUAL, _SEPARATE = "alphago-zero", "alphago-zero-separate"
_PLAIN = "one tower of 12 convolutions without skip connections, two heads"


def _entry(name: str, kind: str, blocks: int, tower: str, note: str) -> NetworkEntry:
    return NetworkEntry(name, kind, _PAPER, {"blocks": blocks, "channels": 256, "tower": tower}, _SMALL, note)


NETWORKS = NetworkTable(
    kinds=(
        NetworkKind(_DUAL, AlphaGoZeroNetwork, ("stem", "tower"), _LINEAR),
        NetworkKind(_SEPARATE, AlphaGoZeroSeparateNetworks, ("policy_stem", "policy_tower"), _LINEAR),
    ),
    entries=(
        _entry("alphago-zero", _DUAL, 19, "residual", "dual-res, “20 blocks”"),
        _entry("alphago-zero-40", _DUAL, 39, "residual", "dual-res, “40 blocks”"),
        _entry("alphago-zero-dual-conv", _DUAL, 11, "convolution", _PLAIN),
        _entry("alphago-zero-sep-res", _SEPARATE, 19, "residual", "two residual networks"),
        _entry("alphago-zero-sep-conv", _SEPARATE, 11, "convolution", "two networks of 12 convolutions"),
    ),
)
