"""Connect four's input for networks in AlphaZero's manner: three planes of the board, a policy of seven columns.

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

from keima.games.connect_four.kernels import COLUMNS, NAMES, ROWS
from keima.games.position import Position
from keima.jit import Records, njit
from keima.systems.encoding import Array, Batch, Encoding, LegalMoves

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


ENCODINGS = {"connect-four": ConnectFourEncoding()}
