"""Random endings as FENs, one a line: where the games for keima's default chess network begin (default-chess.toml).

python recipes/default_chess_endings.py > endings.fen
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from keima.errors import BadPosition
from keima.games.chess.position import Position

SEED = 2026
COUNTS = {"KRk": 700, "KQk": 250, "KRRk": 150, "KPk": 150, "KBBk": 50, "KQkr": 100, "KRkp": 50, "KQkp": 50}
COUNTS |= {"KRPkr": 150, "KPPkp": 150, "KQPkq": 100, "KRBk": 50, "KRNk": 50}
"""Pieces of either side, the stronger one first → how many positions."""


def endings() -> Iterator[str]:
    """The positions: pieces on random squares, colours and side to move by lot; none is over or impossible."""
    rng = random.Random(SEED)
    for pieces, count in COUNTS.items():
        found = 0
        while found < count:
            fen = placed(pieces, rng)
            if possible(fen):
                found += 1
                yield fen


def placed(pieces: str, rng: random.Random) -> str:
    """These pieces on random squares."""
    letters = pieces.swapcase() if rng.random() < 0.5 else pieces
    board = [""] * 64
    for square, letter in zip(rng.sample(range(64), len(letters)), letters, strict=True):
        board[square] = letter
    return f"{'/'.join(rank(board[first : first + 8]) for first in range(0, 64, 8))} {rng.choice('wb')} - - 0 1"


def rank(squares: list[str]) -> str:
    """Eight squares as a FEN writes them."""
    text, empty = "", 0
    for letter in [*squares, "|"]:
        if not letter:
            empty += 1
        else:
            text += (str(empty) if empty else "") + letter
            empty = 0
    return text[:-1]


def possible(fen: str) -> bool:
    """Can it occur in a game that goes on?"""
    try:
        return not Position.from_fen(fen).is_over
    except BadPosition:
        return False


if __name__ == "__main__":
    for line in endings():
        print(line)
