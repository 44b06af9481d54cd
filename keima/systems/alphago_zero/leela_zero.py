"""Leela Zero: AlphaGo Zero's network with 18 input planes, whose files the Go world still has.

Source: Leela Zero 0.17, `src/Network.cpp` and `src/CPUPipe.cpp`. It departs from the paper in three ways: the colour to
move takes two planes (all ones if Black moves; all ones if White moves); batch norm has no scale (the file holds
convolution biases, means and variances); a version 2 file (used by ELF OpenGo) gives the value for Black.
Leela Zero counts rows from the bottom of the board; `file.py` turns the weights over, as row 0 is the top in keima.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from keima.systems.alphago_zero.inputs import LeelaZeroEncoding
from keima.systems.alphago_zero.network import build_tower, check_sizes
from keima.systems.layers import ConvolutionBlock, PolicyHead, PolicyValue, TwoHeadNetwork, ValueHead, decode_two_heads
from keima.systems.network import Array, Heads, NetworkEntry, NetworkKind, NetworkTable, Pedigree


class LeelaZeroNetwork(TwoHeadNetwork):
    """Convolution block, residual tower, policy and value heads.

    Args:
        blocks, channels: residual blocks, their filters (published files: 1 to 40, 8 to 256).
        board_size: H = W; the heads' linear layers fix it.
        value_for_black: the value output is Black's and not the side to move's (version 2 files).
        value_hidden: width of the value head's hidden layer; Leela Zero loads 256 only.

    Raises:
        BadRequest: a size that cannot be.
    """

    system = "leela-zero"
    pedigree = Pedigree(name="leela-zero")

    def __init__(
        self,
        blocks: int = 40,
        channels: int = 256,
        board_size: int = 19,
        value_for_black: bool = False,
        value_hidden: int = 256,
    ) -> None:
        super().__init__()
        check_sizes(blocks, channels)
        sizes = {"blocks": blocks, "channels": channels, "board_size": board_size}
        self.config = {**sizes, "value_for_black": value_for_black, "value_hidden": value_hidden}
        self.encoding = LeelaZeroEncoding(board_size=board_size, leelaz_symmetries=True)
        self.value_for_black = value_for_black

        self.stem = ConvolutionBlock(self.encoding.planes, channels)
        self.tower = build_tower("residual", blocks, channels)
        self.policy_head = PolicyHead(channels, board_size)
        self.value_head = ValueHead(channels, board_size, value_hidden)

    def forward(self, planes: Tensor) -> PolicyValue:
        """Evaluate planes [N, 18, H, W] (`keima.systems.alphago_zero.inputs.LEELA_ZERO_PLANES`).

        `value` is for the side to move, or for Black where `value_for_black`.
        """
        x = self.tower(self.stem(planes))
        return PolicyValue(policy=self.policy_head(x), value=self.value_head(x))

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        """Logits as they are; value and win/draw/loss for the side to move, by the context's `black_to_play`, bool [N].

        leelaz reports the win rate (1 + value) / 2, and the softmax over all moves, legal or not, in its heatmap.
        """
        value = outputs["value"]
        if self.value_for_black:
            value = np.where(context["black_to_play"], value, -value)
        return decode_two_heads({"policy": outputs["policy"], "value": value})


NETWORKS = NetworkTable(
    kinds=(NetworkKind("leela-zero", LeelaZeroNetwork, ("stem", "tower"), "the heads' linear layers"),),
    entries=(
        NetworkEntry(
            "leela-zero",
            "leela-zero",
            "Leela Zero 0.17, after Silver et al. (2017)",
            sizes={"blocks": 40, "channels": 256},
            small={"blocks": 2, "channels": 8, "board_size": 9, "value_hidden": 16},
            note="Leela Zero's last and largest size",
        ),
    ),
)
