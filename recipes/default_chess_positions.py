"""Where the endings for keima's default chess network begin (default-chess.toml): FENs, one a line.

python recipes/default_chess_positions.py endings > endings.fen
python recipes/default_chess_positions.py hanging > hanging.fen

A search meets bad moves far more often than a game does, so a network must know what they cost: `hanging` are positions
that good players do not reach.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import chess

from keima.errors import BadPosition
from keima.games.chess.position import Position

SEED = 2026
COUNTS = {"KRk": 800, "KQk": 200, "KRRk": 150, "KPk": 150, "KQkr": 50, "KRPkr": 80, "KPPkp": 80, "KQPkq": 40}
"""Pieces of either side, the stronger one first → how many positions."""
HANGING = {"KRk": 2000, "KQk": 500, "KRRk": 200, "KPk": 300}
"""As COUNTS, with the bare king to move and something to take."""


def endings(counts: dict[str, int] = COUNTS, taken: bool = False) -> Iterator[str]:
    """The positions: pieces on random squares, colours and side to move by lot; none is over or impossible.

    With `taken`, the weaker side is to move and can take something.
    """
    rng = random.Random(SEED)
    for pieces, count in counts.items():
        found = 0
        while found < count:
            fen = placed(pieces, rng)
            if possible(fen) and not (taken and not weaker_takes(fen)):
                found += 1
                yield fen


def hanging() -> Iterator[str]:
    """Endings whose bare king is to move and can take a piece."""
    return endings(HANGING, taken=True)


def weaker_takes(fen: str) -> bool:
    """Has the side with fewer pieces the move, and a piece it may take?"""
    board = chess.Board(fen)
    ours, theirs = (board.occupied_co[side].bit_count() for side in (board.turn, not board.turn))
    return ours < theirs and any(map(board.is_capture, board.legal_moves))


def placed(pieces: str, rng: random.Random) -> str:
    """These pieces on random squares, counted from a8."""
    letters = pieces.swapcase() if rng.random() < 0.5 else pieces
    board = chess.BaseBoard.empty()
    for square, letter in zip(rng.sample(range(64), len(letters)), letters, strict=True):
        board.set_piece_at(chess.square_mirror(square), chess.Piece.from_symbol(letter))
    return f"{board.board_fen()} {rng.choice('wb')} - - 0 1"


def possible(fen: str) -> bool:
    """Can it occur in a game that goes on?"""
    try:
        return not Position.from_fen(fen).is_over
    except BadPosition:
        return False


if __name__ == "__main__":
    for line in {"endings": endings, "hanging": hanging}[sys.argv[1]]():
        print(line)
