"""Connect four as the search knows it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from keima.games.connect_four.position import NAMES, Position
from keima.games.connect_four.rules import (
    COLUMNS,
    DRAWN,
    RECORD,
    ROWS,
    WON,
    drop,
    has_four,
    height,
    legal_moves,
    position_key,
    side_to_move,
)
from keima.games.connect_four.rules import play as play_column
from keima.games.kernels import ONGOING, Kernels
from keima.jit import Record, njit


@njit
def play(p: Record, scratch: Record, move: int) -> None:
    """Drop a disc."""
    play_column(p, move)


@njit
def other(side: int) -> int:
    """The opponent."""
    return 1 - side


@njit
def result(p: Record, scratch: Record) -> tuple[int, float]:
    """A loss where the opponent has four in a line, a draw on a full board; no points."""
    if p.state == WON:
        return -1, math.nan
    return 0 if p.state == DRAWN else ONGOING, math.nan


@njit
def moves_of(p: Record, scratch: Record, moves: NDArray[np.int16]) -> int:
    """The columns that take a disc, from the left."""
    return legal_moves(p, moves)


@njit
def key(p: Record, scratch: Record, history: int) -> np.uint64:
    """A hash that no two positions share; how they came about does not matter."""
    return position_key(p)


@njit
def wins_at_once(p: Record, scratch: Record) -> bool:
    """Can the side to move make four?"""
    for column in range(COLUMNS):  # noqa: SIM110  # compiled
        if height(p, column) < ROWS and has_four(p.own | drop(p, column)):
            return True
    return False


def name(position: Position, move: int, side: int) -> str:
    """The column's letter."""
    return NAMES[move]


def code(position: Position, name: str) -> int:
    """The column of a letter, −1 where no disc may be dropped."""
    return NAMES.index(name) if position.is_legal(name) else -1


KERNELS = Kernels(
    dtype=RECORD,
    max_moves=COLUMNS,
    play=play,
    side=side_to_move,
    other=other,
    result=result,
    legal_moves=moves_of,
    key=key,
    name=name,
    code=code,
    wins_at_once=wins_at_once,
)
