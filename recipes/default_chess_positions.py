"""Where the games for keima's default chess network begin (default-chess.toml): FENs, one a line.

python recipes/default_chess_positions.py openings > openings.fen
python recipes/default_chess_positions.py endings > endings.fen
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

from keima.errors import BadPosition
from keima.games.chess.position import Position

SEED = 2026
OPENINGS = 8000
PLIES = (4, 12)
"""Random moves from the initial position: at least, at most."""
COUNTS = {"KRk": 800, "KQk": 200, "KRRk": 150, "KPk": 150, "KQkr": 50, "KRPkr": 80, "KPPkp": 80, "KQPkq": 40}
"""Pieces of either side, the stronger one first → how many positions."""


def openings() -> Iterator[str]:
    """Positions after some random moves."""
    rng = random.Random(SEED)
    found: set[str] = set()
    while len(found) < OPENINGS:
        position = Position.start()
        for _ in range(rng.randint(*PLIES)):
            position = position if position.is_over else position.play(rng.choice(position.legal()))
        fen = position.fen()
        if not position.is_over and fen not in found:
            found.add(fen)
            yield fen


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
    for line in {"openings": openings, "endings": endings}[sys.argv[1]]():
        print(line)
