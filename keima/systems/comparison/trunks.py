"""Comparison trunks for studies: other ways to look at a board, under AlphaGo Zero's input and heads.

All three read AlphaGo Zero's 17 planes and end in its two heads, so that only the trunk differs:

    vgg          plain 3×3 convolutions with batch norm, in groups, as in K. Simonyan & A. Zisserman, arXiv:1409.1556;
                 the board keeps its size, so there is no pooling and no widening between groups
    inception    blocks of parallel 1×1, 3×3, 5×5 (two 3×3) and pooling branches, concatenated, as in C. Szegedy et al.,
                 arXiv:1512.00567 (Inception v3, Fig. 5)
    transformer  one token a point with a learned position, pre-norm attention and GELU, as in A. Vaswani et al.,
                 arXiv:1706.03762, and A. Dosovitskiy et al., arXiv:2010.11929

Residual towers, block against block, stand in `residual.py`. These are not anybody's published network.
Shapes: N positions, C channels, H × W points with H = W = `board_size`.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from keima.errors import BadRequest
from keima.systems.go_points import GoEncoding
from keima.systems.layers import ConvolutionBlock, PolicyHead, PolicyValue, TwoHeadNetwork, ValueHead
from keima.systems.network import NetworkEntry, NetworkKind, NetworkTable, Pedigree
from keima.systems.system import get_encoding

ENCODING = cast(GoEncoding, get_encoding("alphago-zero"))


class ComparisonNetwork(TwoHeadNetwork):
    """AlphaGo Zero's planes → a trunk → AlphaGo Zero's heads; each subclass brings its `trunk`.

    Args:
        name: of the pedigree.
        trunk: a module from planes [N, 17, H, W] to features [N, C, H, W].
        channels: C.
        board_size: H = W; the heads' linear layers fix it.
        value_hidden: width of the value head's hidden layer.
        sizes: the other arguments of the subclass, for its `config`.
    """

    system = "alphago-zero"

    def __init__(
        self, name: str, trunk: nn.Module, channels: int, board_size: int, value_hidden: int, **sizes: int | str
    ) -> None:
        super().__init__()
        self.config = {**sizes, "channels": channels, "board_size": board_size, "value_hidden": value_hidden}
        self.encoding = ENCODING.of_size(board_size)
        self.pedigree = Pedigree(name=name)
        self.trunk = trunk
        self.policy_head = PolicyHead(channels, board_size)
        self.value_head = ValueHead(channels, board_size, value_hidden)

    def forward(self, planes: Tensor) -> PolicyValue:
        """Evaluate planes [N, 17, H, W] (`keima.systems.alphago_zero.inputs.PLANES`)."""
        x = self.trunk(planes)
        return PolicyValue(policy=self.policy_head(x), value=self.value_head(x))


class VggNetwork(ComparisonNetwork):
    """A plain stack of 3×3 convolutions, VGG's recipe on a board (VGG-19 has 16), or of `kernel` × `kernel`.

    Raises:
        BadRequest: a size that cannot be.
    """

    def __init__(
        self, layers: int = 16, channels: int = 256, board_size: int = 19, value_hidden: int = 256, kernel: int = 3
    ) -> None:
        if layers < 1 or channels < 1:
            raise BadRequest(f"a VGG trunk needs layers ≥ 1 and channels ≥ 1, not {layers} and {channels}")
        if kernel < 1 or kernel % 2 == 0:
            raise BadRequest(f"a VGG trunk needs an odd kernel, not {kernel}")
        widths = [ENCODING.planes] + [channels] * (layers - 1)
        trunk = nn.Sequential(*(ConvolutionBlock(width, channels, kernel) for width in widths))
        super().__init__("vgg", trunk, channels, board_size, value_hidden, layers=layers, kernel=kernel)


class InceptionBlock(nn.Module):
    """Four views of the same input, C/4 channels each: the point, 3×3, 5×5 (as two 3×3) and the 3×3 mean."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        branch = channels // 4
        self.point = ConvolutionBlock(channels, branch, 1)
        self.near = nn.Sequential(ConvolutionBlock(channels, branch, 1), ConvolutionBlock(branch, branch))
        self.far = nn.Sequential(
            ConvolutionBlock(channels, branch, 1), ConvolutionBlock(branch, branch), ConvolutionBlock(branch, branch)
        )
        self.pooled = ConvolutionBlock(channels, branch, 1)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → [N, C, H, W], ≥ 0."""
        mean = F.avg_pool2d(x, 3, stride=1, padding=1)
        return torch.cat([self.point(x), self.near(x), self.far(x), self.pooled(mean)], dim=1)


class InceptionNetwork(ComparisonNetwork):
    """A 3×3 convolution, then Inception blocks, their channels a multiple of 4.

    Raises:
        BadRequest: a size that cannot be.
    """

    def __init__(self, blocks: int = 12, channels: int = 256, board_size: int = 19, value_hidden: int = 256) -> None:
        if blocks < 0 or channels < 4 or channels % 4:
            raise BadRequest(f"an Inception trunk needs channels in fours and blocks ≥ 0, not {channels} and {blocks}")
        first = ConvolutionBlock(ENCODING.planes, channels)
        trunk = nn.Sequential(first, *(InceptionBlock(channels) for _ in range(blocks)))
        super().__init__("inception", trunk, channels, board_size, value_hidden, blocks=blocks)


class Attention(nn.Module):
    """Multi-head self-attention among the tokens."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(channels, 3 * channels)
        self.output = nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens [N, L, C] → [N, L, C]."""
        n, length, channels = x.shape
        parts = self.query_key_value(x).reshape(n, length, 3, self.heads, channels // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(query, key, value)
        merged: Tensor = self.output(mixed.transpose(1, 2).reshape(n, length, channels))
        return merged


class TransformerBlock(nn.Module):
    """Pre-norm attention, then a pre-norm GELU layer of four times the width, each added to its input."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(channels)
        self.attention = Attention(channels, heads)
        self.norm2 = nn.LayerNorm(channels)
        self.linear1 = nn.Linear(channels, 4 * channels)
        self.linear2 = nn.Linear(4 * channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens [N, L, C] → [N, L, C]."""
        x = x + self.attention(self.norm1(x))
        y: Tensor = self.linear2(F.gelu(self.linear1(self.norm2(x))))
        return x + y


class TransformerTrunk(nn.Module):
    """One token a point: a linear embedding of its planes plus a learned vector for its row and one for its column."""

    def __init__(self, planes: int, blocks: int, channels: int, heads: int, board_size: int) -> None:
        super().__init__()
        self.embedding = nn.Conv2d(planes, channels, 1)
        self.row_position = nn.Parameter(0.02 * torch.randn(board_size, channels))
        self.column_position = nn.Parameter(0.02 * torch.randn(board_size, channels))
        self.blocks = nn.Sequential(*(TransformerBlock(channels, heads) for _ in range(blocks)))
        self.norm = nn.LayerNorm(channels)

    def forward(self, planes: Tensor) -> Tensor:
        """[N, planes, H, W] → [N, C, H, W]."""
        position = self.row_position[:, None, :] + self.column_position[None, :, :]
        tokens: Tensor = self.embedding(planes).flatten(2).transpose(1, 2) + position.flatten(0, 1)
        tokens = self.norm(self.blocks(tokens))
        out: Tensor = tokens.transpose(1, 2).unflatten(2, position.shape[:2])  # type: ignore[no-untyped-call]
        return out


class TransformerNetwork(ComparisonNetwork):
    """A small transformer over the points, with explicit position; a token's channels are a multiple of `heads`.

    Raises:
        BadRequest: a size that cannot be.
    """

    def __init__(
        self, blocks: int = 8, channels: int = 192, heads: int = 6, board_size: int = 19, value_hidden: int = 256
    ) -> None:
        if blocks < 0 or heads < 1 or channels < heads or channels % heads:
            raise BadRequest(f"a transformer needs channels that divide by heads, not {channels} and {heads}")
        trunk = TransformerTrunk(ENCODING.planes, blocks, channels, heads, board_size)
        super().__init__("transformer", trunk, channels, board_size, value_hidden, blocks=blocks, heads=heads)


_LINEAR = "the heads' linear layers"
_SMALL = {"channels": 8, "board_size": 9, "value_hidden": 16}

NETWORKS = NetworkTable(
    kinds=(
        NetworkKind("comparison-vgg", VggNetwork, ("trunk",), _LINEAR),
        NetworkKind("comparison-inception", InceptionNetwork, ("trunk",), _LINEAR, (".near.",)),
        NetworkKind("comparison-transformer", TransformerNetwork, ("trunk",), "attention"),
    ),
    entries=(
        NetworkEntry(
            "comparison-vgg",
            "comparison-vgg",
            "trunk after Simonyan & Zisserman, arXiv:1409.1556",
            {"layers": 16, "channels": 256},
            {"layers": 3, **_SMALL},
            "plain 3×3 convolutions under AlphaGo Zero's input and heads",
        ),
        NetworkEntry(
            "comparison-inception",
            "comparison-inception",
            "trunk after Szegedy et al., arXiv:1512.00567",
            {"blocks": 12, "channels": 256},
            {"blocks": 2, **_SMALL},
            "parallel convolutions under AlphaGo Zero's input and heads",
        ),
        NetworkEntry(
            "comparison-transformer",
            "comparison-transformer",
            "trunk after Vaswani et al., arXiv:1706.03762",
            {"blocks": 8, "channels": 192, "heads": 6},
            {"blocks": 2, "heads": 2, **_SMALL},
            "attention over points under AlphaGo Zero's input and heads",
        ),
    ),
)
