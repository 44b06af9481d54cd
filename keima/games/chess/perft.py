"""Counting all games of some plies: the test every move generator is held to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keima.games.chess.board import BOARD, MAX_MOVES, copy_board, legal_moves, make_board
from keima.jit import Record, Records, njit


@njit
def _perft(boards: Records, moves: NDArray[np.uint16], depth: int) -> int:
    """Leaves below `boards[depth]`, whose last ply is counted in bulk; lower entries are working space."""
    count = legal_moves(boards[depth], moves[depth])
    if depth == 1:
        return count
    total = 0
    for index in range(count):
        boards[depth - 1] = boards[depth]
        make_board(boards[depth - 1], moves[depth, index])
        total += _perft(boards, moves, depth - 1)
    return total


@njit
def _perft_from(s: Record, boards: Records, moves: NDArray[np.uint16], depth: int) -> int:
    copy_board(boards[depth], s)
    return _perft(boards, moves, depth)


def perft(states: Records, depth: int) -> int:
    """Number of move sequences of `depth` plies from `states[0]` (the last ply counted in bulk); 1 at depth 0."""
    if depth == 0:
        return 1
    return int(_perft_from(states[0], np.zeros(depth + 1, BOARD), np.zeros((depth + 1, MAX_MOVES), np.uint16), depth))
