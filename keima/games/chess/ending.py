"""How a game of chess ends, by the rules that lc0's search knows."""

from __future__ import annotations

import numpy as np

from keima.games.chess.attacks import LIGHT, ZERO, popcount
from keima.games.chess.board import BISHOP, KNIGHT, PAWN, QUEEN, ROOK, in_check
from keima.jit import Record, njit

ONGOING, CHECKMATE, STALEMATE, INSUFFICIENT, FIFTY_MOVES, THREEFOLD = range(6)


@njit
def insufficient_material(b: Record) -> bool:
    """Whether no sequence of moves can mate: K v K, K+N v K, K+B v K, or only bishops on squares of one colour."""
    if b.pieces[PAWN] | b.pieces[ROOK] | b.pieces[QUEEN]:
        return False
    if popcount(b.ours | b.theirs) < np.uint64(4):
        return True
    if b.pieces[KNIGHT]:
        return False
    return bool(b.pieces[BISHOP] & LIGHT == ZERO or b.pieces[BISHOP] & ~LIGHT == ZERO)


@njit
def ending(s: Record, move_count: int) -> int:
    """Why a search stops at this STATE, given its number of legal moves: lc0's rules (`position.cc`).

    CHECKMATE (the side to move has lost), STALEMATE, INSUFFICIENT, FIFTY_MOVES (100 plies), THREEFOLD, or ONGOING.
    """
    if move_count == 0:
        return CHECKMATE if in_check(s) else STALEMATE
    if insufficient_material(s):
        return INSUFFICIENT
    if s.rule50 >= 100:
        return FIFTY_MOVES
    if s.repetitions >= 2:
        return THREEFOLD
    return ONGOING
