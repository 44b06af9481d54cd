"""The rules of connect four, compiled: one record of 24 bytes a position, two bitboards.

A bitboard has seven bits a column, the lowest row first, and the seventh always 0, so that no line runs from one column
into the next (J. Tromp's layout):

     5 12 19 26 33 40 47      top row
     …
     0  7 14 21 28 35 42      bottom row
     a  b  c  d  e  f  g

The board is kept from the side to move: `own` are its discs, `other` those of the side that has just moved.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keima.games.kernels import mix
from keima.jit import Record, njit

COLUMNS, ROWS = 7, 6
SQUARES = COLUMNS * ROWS

RECORD = np.dtype([("own", np.uint64), ("other", np.uint64), ("ply", np.int32), ("state", np.int32)])
"""A position: `ply` discs were dropped; `state` is one of the following. Equal positions have equal bytes."""
ONGOING, WON, DRAWN = 0, 1, 2
"""WON: by the side that has just moved."""

_ONE = np.uint64(1)
_UP, _RIGHT, _DOWN_RIGHT, _UP_RIGHT = np.uint64(1), np.uint64(7), np.uint64(6), np.uint64(8)
_TWO = np.uint64(2)


@njit
def has_four(discs: np.uint64) -> bool:
    """Do four of these discs stand in a line?"""
    for step in (_UP, _RIGHT, _DOWN_RIGHT, _UP_RIGHT):
        pairs = discs & (discs >> step)
        if pairs & (pairs >> (_TWO * step)):
            return True
    return False


@njit
def height(p: Record, column: int) -> int:
    """How many discs lie in a column."""
    discs = (p.own | p.other) >> np.uint64(7 * column)
    count = 0
    while (discs >> np.uint64(count)) & _ONE:
        count += 1
    return count


@njit
def drop(p: Record, column: int) -> np.uint64:
    """The square that a disc dropped into a column falls to, as a bitboard."""
    return _ONE << np.uint64(7 * column + height(p, column))


@njit
def play(p: Record, column: int) -> None:
    """Drop a disc into a column that is not full, in a game that is not over; the turn passes."""
    mine = p.own | drop(p, column)
    p.own = p.other
    p.other = mine
    p.ply += 1
    if has_four(mine):
        p.state = WON
    elif p.ply == SQUARES:
        p.state = DRAWN


@njit
def legal_moves(p: Record, moves: NDArray[np.int16]) -> int:
    """Write the columns that take a disc, from the left; returns how many. None once the game is over."""
    count = 0
    if p.state == ONGOING:
        for column in range(COLUMNS):
            if height(p, column) < ROWS:
                moves[count] = column
                count += 1
    return count


@njit
def is_legal(p: Record, column: int) -> bool:
    """May a disc be dropped there?"""
    return bool(p.state == ONGOING and 0 <= column < COLUMNS and height(p, column) < ROWS)


@njit
def side_to_move(p: Record) -> int:
    """0 for the first player, 1 for the second."""
    return int(p.ply & 1)


@njit
def position_key(p: Record) -> np.uint64:
    """A hash that no two positions share: `own` + all discs is unique (P. Pons), and `mix` is one to one."""
    return mix(np.uint64(p.own) + np.uint64(p.own | p.other))
