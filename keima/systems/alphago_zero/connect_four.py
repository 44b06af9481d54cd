"""A network for connect four in AlphaZero's manner: input, tower, heads, on this one page.

Source: D. Silver et al., "A general reinforcement learning algorithm that masters chess, shogi, and Go through
self-play", Science 362 (2018), supplement, "Architecture": AlphaGo Zero's network, its policy head made to fit the
game's moves. The value is the expected outcome, so that a draw is 0; a network of two heads tells no draws apart.

    plane 0   discs of the side to move
    plane 1   the opponent's discs
    plane 2   all ones if the first player is to move

After d d c (second player to move), row 0 being the top: plane 0 has a 1 at row 4, column 3; plane 1 at row 5, columns
2 and 3; plane 2 is zero. The policy has a logit a column, a to g. The one symmetry beside 0 is 2, left to right. N
positions, C channels, H × W = 6 × 7 squares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from keima.errors import BadRequest
from keima.games.connect_four.kernels import COLUMNS, NAMES, ROWS
from keima.games.position import Position
from keima.jit import Records, njit
from keima.systems.encoding import Array, Batch, Encoding, LegalMoves
from keima.systems.layers import ConvolutionBlock, PolicyHead, PolicyValue, ResidualBlock, TwoHeadNetwork, ValueHead
from keima.systems.network import NetworkEntry, NetworkKind, NetworkTable, Pedigree

PLANES = ("own discs", "opponent's discs", "all ones if the first player is to move")

_ONE = np.uint64(1)


@njit
def encode(records: Records, symmetries: NDArray[np.int64], planes: NDArray[np.float32]) -> None:
    """Write planes [N, 3, 6, 7] of N records under symmetries 0 or 2."""
    for i in range(len(records)):
        p = records[i]
        for row in range(ROWS):
            for column in range(COLUMNS):
                from_left = COLUMNS - 1 - column if symmetries[i] & 2 else column
                square = np.uint64(7 * from_left + ROWS - 1 - row)
                planes[i, 0, row, column] = (p.own >> square) & _ONE
                planes[i, 1, row, column] = (p.other >> square) & _ONE
        planes[i, 2] = 1 - (p.ply & 1)


class ConnectFourEncoding(Encoding):
    """`PLANES`, no globals; the policy's index is the column as the planes show it."""

    name = "connect-four"
    game = "connect_four"
    planes = len(PLANES)
    board: tuple[int, int] = (ROWS, COLUMNS)
    symmetries: tuple[int, ...] = (0, 2)

    def shape(self, position: Position, symmetry: int = 0) -> tuple[int, int]:
        """(6, 7)."""
        return self.board

    def policy_size(self, shape: tuple[int, int]) -> int:
        """The columns."""
        return COLUMNS

    def write(self, records: Records, symmetries: NDArray[np.int64], batch: Batch) -> None:
        """Write the planes."""
        encode(records, symmetries, batch.inputs["planes"])

    def write_indices(self, moves: Array, counts: Array, symmetries: Array, batch: Batch, indices: Array) -> None:
        """Write the column of every move as the planes show it."""
        n = len(counts)
        indices[:n] = np.where(symmetries[:n, None] & 2, COLUMNS - 1 - moves[:n], moves[:n])

    def legal_moves(self, position: Position, symmetry: int = 0) -> LegalMoves:
        """The columns that take a disc."""
        names = position.legal()
        columns = np.array([NAMES.index(name) for name in names], np.int64)
        return LegalMoves(COLUMNS - 1 - columns if symmetry & 2 else columns, names)

    def restore(self, points: Array, position: Position, symmetry: int) -> Array:
        """Turn [6, 7] of planes under a symmetry back to the board."""
        return points[:, ::-1] if symmetry & 2 else points


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

ENCODINGS = {"connect-four": ConnectFourEncoding()}
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
