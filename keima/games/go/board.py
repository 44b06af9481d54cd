"""The Go board as one flat record: stones, chains and their liberties, kept up to date move by move.

A board is one element of a NumPy array of dtype `BOARD`, so copying it is one `memcpy` and a batch of boards is an
array. Points are numbered as in KataGo (`cpp/game/board.h`): a frame of wall surrounds the board and
`loc = (x + 1) + (y + 1) * stride` with `stride = xsize + 1`, row y = 0 at the top.
"""

from __future__ import annotations

import numpy as np

EMPTY = 0
BLACK = 1
WHITE = 2
WALL = 3

MAX_SIZE = 19
MAX_POINTS = (MAX_SIZE + 1) * (MAX_SIZE + 2) + 1
"""Length of every per-point array of a board of any size: 421."""

NULL_LOC = 0
"""No point at all (KataGo `Board::NULL_LOC`)."""
PASS_LOC = 1
"""The pass, as a move (KataGo `Board::PASS_LOC`)."""

BOARD = np.dtype(
    [
        ("xsize", np.int32),
        ("ysize", np.int32),
        ("stride", np.int32),  # xsize + 1: the step from a point to the one below it
        ("ko", np.int32),  # the point the simple ko rule forbids to the side to move, or NULL_LOC
        ("captures", np.int32, (3,)),  # stones of BLACK / WHITE taken off the board so far, by colour
        ("hash", np.uint64),  # Zobrist hash of size and stones
        ("stones", np.int8, (MAX_POINTS,)),  # EMPTY, BLACK, WHITE or WALL
        ("head", np.int16, (MAX_POINTS,)),  # of a stone: its chain's representative point
        ("next", np.int16, (MAX_POINTS,)),  # of a stone: the next stone of its chain, in a ring
        ("size", np.int16, (MAX_POINTS,)),  # at a chain's head: its number of stones
        ("liberties", np.int16, (MAX_POINTS,)),  # at a chain's head: its number of liberties (distinct points)
    ],
    align=True,
)
