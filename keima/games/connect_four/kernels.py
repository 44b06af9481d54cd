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

import math

import numpy as np
from numpy.typing import NDArray

from keima.games.kernels import ONGOING as GOES_ON
from keima.games.kernels import Kernels, mix
from keima.games.position import Position
from keima.jit import Record, njit

NAMES = "abcdefg"
"""The columns, from the left."""
COLUMNS, ROWS = 7, 6
SQUARES = COLUMNS * ROWS

RECORD = np.dtype([("own", np.uint64), ("other", np.uint64), ("ply", np.int32), ("state", np.int32)])
"""A position: `ply` discs were dropped; `state` is one of the following. Equal positions have equal bytes."""
ONGOING, WON, DRAWN = 0, 1, 2
"""WON: by the side that has just moved."""
STEPS = (1, 7, 6, 8)
"""From a square to the next one up, right, right and down, right and up."""

_ONE, _TWO = np.uint64(1), np.uint64(2)
_STEPS = tuple(np.uint64(step) for step in STEPS)


@njit
def has_four(discs: np.uint64) -> bool:
    """Do four of these discs stand in a line?"""
    for step in _STEPS:
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
def make(p: Record, column: int) -> None:
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
def position_key(p: Record) -> np.uint64:
    """A hash that no two positions share: `own` + all discs is unique (P. Pons), and `mix` is one to one."""
    return mix(np.uint64(p.own) + np.uint64(p.own | p.other))


# --- What the search calls: see `keima.games.kernels.Kernels` ---------------------------------------------------------


@njit
def _play(p: Record, scratch: Record, move: int) -> None:
    make(p, move)


@njit
def _side(p: Record) -> int:
    return int(p.ply & 1)


@njit
def _other(side: int) -> int:
    return 1 - side


@njit
def _result(p: Record, scratch: Record) -> tuple[int, float]:
    if p.state == WON:
        return -1, math.nan
    return 0 if p.state == DRAWN else GOES_ON, math.nan


@njit
def _legal_moves(p: Record, scratch: Record, moves: NDArray[np.int16]) -> int:
    return legal_moves(p, moves)


@njit
def _key(p: Record, scratch: Record, history: int) -> np.uint64:
    return position_key(p)


@njit
def _wins_at_once(p: Record, scratch: Record) -> bool:
    for column in range(COLUMNS):  # noqa: SIM110  # compiled
        if height(p, column) < ROWS and has_four(p.own | drop(p, column)):
            return True
    return False


def _name(position: Position, move: int, side: int) -> str:
    return NAMES[move]


def _code(position: Position, name: str) -> int:
    return NAMES.index(name) if position.is_legal(name) else -1


KERNELS = Kernels(
    RECORD, COLUMNS, _play, _side, _other, _result, _legal_moves, _key, _name, _code, wins_at_once=_wins_at_once
)
