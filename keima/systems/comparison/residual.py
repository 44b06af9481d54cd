"""One residual tower whose blocks differ in one thing at a time, for studies, under AlphaGo Zero's input and heads.

    post        convolution, norm, rectifier, convolution, norm, + x, rectifier: AlphaGo Zero's own block
                (K. He et al., arXiv:1512.03385, Fig. 2)
    pre         norm, rectifier, convolution, norm, rectifier, convolution, + x
                (K. He et al., arXiv:1603.05027, Fig. 1b)
    post-se,    the same, and before the sum squeeze-and-excitation weighs each channel by what the whole board holds
    pre-se      (J. Hu et al., arXiv:1709.01507, Fig. 3)
    post-pool,  the same, and every third block pools some channels over the whole board into a bias on the others
    pre-pool    (D. Wu, arXiv:1902.10565, "Global Pooling" and appendix A)
    post-zero   post, whose last norm of each block begins as zero, the block as the identity (P. Goyal et al.,
                arXiv:1706.02677, § 5.1)
    post-bare   post without a norm, weights as K. He et al., arXiv:1502.01852, begin them

The stem is a convolution, with norm and rectifier before post-activation blocks. Before pre-activation blocks it stands
alone, as in KataGo (He et al. 2016 take the first norm before the split), and their tower ends with the norm and
rectifier that its last sum has not had. These are not anybody's published network. Shapes: N positions, C channels,
H × W points with H = W = `board_size`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from keima.errors import BadRequest
from keima.systems.comparison.trunks import ENCODING, ComparisonNetwork
from keima.systems.layers import ConvolutionBlock, ResidualBlock
from keima.systems.network import NetworkEntry, NetworkKind, NetworkTable

SQUEEZE = 8
"""Squeeze-and-excitation squeezes so many channels to one: 16 in the paper, for up to 2048 of them; 4 to 8 in Lc0."""
POOL_EVERY = 3
"""Every third block pools: 2 of 6 as in KataGo's b6c96; its b10c128 has 2, its b20c256 3."""
POOLED = 4
"""One channel of so many is pooled, as in KataGo's b10c128."""


def convolution(inputs: int, outputs: int, kernel: int = 3) -> nn.Conv2d:
    """A square convolution that keeps the board's size; a norm follows it, so it has no bias."""
    return nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)


# --- Parts ------------------------------------------------------------------------------------------------------------


class NormRectifier(nn.Module):
    """Batch norm → rectifier."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → [N, C, H, W], ≥ 0."""
        return F.relu(self.norm(x))


class SqueezeExcitation(nn.Module):
    """x · sigmoid(W₂ relu(W₁ mean(x))), a factor a channel (Hu et al. 2018, equations 2 to 4)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        squeezed = max(1, channels // SQUEEZE)
        self.squeeze = nn.Linear(channels, squeezed)
        self.excite = nn.Linear(squeezed, channels)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]."""
        weights = torch.sigmoid(self.excite(F.relu(self.squeeze(x.mean(dim=(2, 3))))))
        return x * weights[:, :, None, None]


class PooledBias(nn.Module):
    """A bias a channel from the whole board: norm, rectifier, mean and maximum of each plane, a linear layer.

    Wu 2019 has a third number, the mean times a factor of the board's width. On boards of one size it would say the
    same as the mean, and is left out.
    """

    def __init__(self, pooled: int, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(pooled)
        self.linear = nn.Linear(2 * pooled, channels)

    def forward(self, x: Tensor) -> Tensor:
        """[N, P, H, W] → [N, C, 1, 1]."""
        y = F.relu(self.norm(x))
        bias: Tensor = self.linear(torch.cat([y.mean(dim=(2, 3)), y.amax(dim=(2, 3))], dim=1))
        return bias[:, :, None, None]


# --- Blocks -----------------------------------------------------------------------------------------------------------


class PreActivationBlock(nn.Module):
    """Twice norm, rectifier, 3×3 convolution; then the input is added (He et al. 2016)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels)
        self.convolution1 = convolution(channels, channels)
        self.norm2 = nn.BatchNorm2d(channels)
        self.convolution2 = convolution(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]."""
        return x + self.change(x)

    def change(self, x: Tensor) -> Tensor:
        """What is added to the input, [N, C, H, W]."""
        y = self.convolution1(F.relu(self.norm1(x)))
        change: Tensor = self.convolution2(F.relu(self.norm2(y)))
        return change


class ZeroBlock(ResidualBlock):
    """AlphaGo Zero's block, the identity (of inputs ≥ 0) at first (Goyal et al. 2017)."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        nn.init.zeros_(self.norm2.weight)


class BareConvolution(nn.Conv2d):
    """A 3×3 convolution with a bias and He et al.'s initial weights, which no norm follows."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 3, padding=1)
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu")


class BareStem(ConvolutionBlock):
    """The tower's first block without its norm."""

    def __init__(self, inputs: int, channels: int) -> None:
        super().__init__(inputs, channels)
        self.convolution = BareConvolution(inputs, channels)
        self.set_submodule("norm", nn.Identity())


class BareBlock(ResidualBlock):
    """AlphaGo Zero's block without its norms."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        for number in (1, 2):
            self.set_submodule(f"convolution{number}", BareConvolution(channels, channels))
            self.set_submodule(f"norm{number}", nn.Identity())


class SqueezeBlock(ResidualBlock):
    """AlphaGo Zero's block with squeeze-and-excitation before the sum (Hu et al. 2018)."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.squeeze = SqueezeExcitation(channels)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → [N, C, H, W], ≥ 0."""
        y = F.relu(self.norm1(self.convolution1(x)))
        y = self.norm2(self.convolution2(y))
        return F.relu(x + self.squeeze(y))


class PreActivationSqueezeBlock(PreActivationBlock):
    """The pre-activation block with squeeze-and-excitation before the sum (Hu et al. 2018)."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.squeeze = SqueezeExcitation(channels)

    def change(self, x: Tensor) -> Tensor:
        """What is added to the input, [N, C, H, W]."""
        change: Tensor = self.squeeze(super().change(x))
        return change


class PoolingBlock(nn.Module):
    """AlphaGo Zero's block; a quarter of the first convolution's channels become a bias on the others (Wu 2019)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        pooled = channels // POOLED
        self.convolution1 = convolution(channels, channels - pooled)
        self.pool_convolution = convolution(channels, pooled)
        self.pool = PooledBias(pooled, channels - pooled)
        self.norm1 = nn.BatchNorm2d(channels - pooled)
        self.convolution2 = convolution(channels - pooled, channels)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → [N, C, H, W], ≥ 0."""
        y = self.convolution1(x) + self.pool(self.pool_convolution(x))
        y = self.norm2(self.convolution2(F.relu(self.norm1(y))))
        return F.relu(x + y)


class PreActivationPoolingBlock(nn.Module):
    """The pre-activation block with the pooled bias after its first convolution, as in KataGo (Wu 2019)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        pooled = channels // POOLED
        self.norm1 = nn.BatchNorm2d(channels)
        self.convolution1 = convolution(channels, channels - pooled)
        self.pool_convolution = convolution(channels, pooled)
        self.pool = PooledBias(pooled, channels - pooled)
        self.norm2 = nn.BatchNorm2d(channels - pooled)
        self.convolution2 = convolution(channels - pooled, channels)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]."""
        y = F.relu(self.norm1(x))
        y = self.convolution1(y) + self.pool(self.pool_convolution(y))
        change: Tensor = self.convolution2(F.relu(self.norm2(y)))
        return x + change


# --- Net --------------------------------------------------------------------------------------------------------------

BLOCKS: dict[str, tuple[type[nn.Module], type[nn.Module]]] = {
    "post": (ResidualBlock, ResidualBlock),
    "pre": (PreActivationBlock, PreActivationBlock),
    "post-se": (SqueezeBlock, SqueezeBlock),
    "pre-se": (PreActivationSqueezeBlock, PreActivationSqueezeBlock),
    "post-pool": (ResidualBlock, PoolingBlock),
    "pre-pool": (PreActivationBlock, PreActivationPoolingBlock),
    "post-zero": (ZeroBlock, ZeroBlock),
    "post-bare": (BareBlock, BareBlock),
}
"""What `block` takes → the class of most blocks, and of every `POOL_EVERY`th."""


def _trunk(block: str, blocks: int, channels: int) -> nn.Sequential:
    """Stem, blocks, and after pre-activation blocks the last norm: planes [N, 17, H, W] → [N, C, H, W], ≥ 0."""
    most, third = BLOCKS[block]
    tower = [(most if number % POOL_EVERY else third)(channels) for number in range(1, blocks + 1)]
    if block.startswith("post"):
        stem = BareStem if most is BareBlock else ConvolutionBlock
        return nn.Sequential(stem(ENCODING.planes, channels), *tower)
    return nn.Sequential(convolution(ENCODING.planes, channels), *tower, NormRectifier(channels))


class ComparisonResidualNetwork(ComparisonNetwork):
    """A residual tower of one kind of block, of `BLOCKS`, all else alike.

    Raises:
        BadRequest: an unknown block, or a size that cannot be.
    """

    def __init__(
        self, block: str = "post", blocks: int = 6, channels: int = 96, board_size: int = 19, value_hidden: int = 256
    ) -> None:
        if block not in BLOCKS:
            raise BadRequest(f"unknown block {block!r}; choose one of {', '.join(BLOCKS)}")
        pools = block.endswith("-pool")
        fewest, narrowest = (POOL_EVERY, POOLED) if pools else (0, 1)
        if blocks < fewest or channels < narrowest:
            wanted = f"blocks ≥ {fewest} and channels ≥ {narrowest}"
            raise BadRequest(f"a tower of {block} blocks needs {wanted}, not {blocks} and {channels}")
        trunk = _trunk(block, blocks, channels)
        super().__init__("residual", trunk, channels, board_size, value_hidden, block=block, blocks=blocks)


_NAME = "comparison-residual"

NETWORKS = NetworkTable(
    kinds=(
        NetworkKind(_NAME, ComparisonResidualNetwork, ("trunk",), "the heads' linear layers", (".pool_convolution.",)),
    ),
    entries=(
        NetworkEntry(
            _NAME,
            _NAME,
            "blocks after He et al., arXiv:1512.03385 and 1603.05027, Hu et al., arXiv:1709.01507, and Wu, "
            "arXiv:1902.10565",
            {"block": "post", "blocks": 6, "channels": 96},
            {"blocks": 2, "channels": 8, "board_size": 9, "value_hidden": 16},
            f"block={', '.join(BLOCKS)} under AlphaGo Zero's input and heads",
        ),
    ),
)
