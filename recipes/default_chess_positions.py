"""Where the games for keima's default chess network begin (default-chess.toml): FENs, one a line, or PGN to go on from.

python recipes/default_chess_positions.py openings > openings.fen
python recipes/default_chess_positions.py endings > endings.fen
python recipes/default_chess_positions.py hanging > hanging.fen
python recipes/default_chess_positions.py blunders COUNT FOLDER [LATEST] > blunders.pgn

A search meets bad moves far more often than a game does, so a network must know what they cost: `hanging` and
`blunders` are positions that good players do not reach.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import chess

from keima.errors import BadPosition
from keima.games.chess.position import Position
from keima.games.chess.records import GameRecord, format_pgn
from keima.games.files import read_records

SEED = 2026
OPENINGS = 8000
PLIES = (4, 12)
"""Random moves from the initial position: at least, at most."""
COUNTS = {"KRk": 800, "KQk": 200, "KRRk": 150, "KPk": 150, "KQkr": 50, "KRPkr": 80, "KPPkp": 80, "KQPkq": 40}
"""Pieces of either side, the stronger one first → how many positions."""
MOVES_BEFORE = 3
"""Moves of the game kept before a random one."""
HANGING = {"KRk": 2000, "KQk": 500, "KRRk": 200, "KPk": 300}
"""As COUNTS, with the bare king to move and something to take."""


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


def blunders(count: int, folder: Path, latest: int = 1000) -> Iterator[str]:
    """The last moves up to a random one: games to go on with, PGN.

    Each begins a few moves before, so that a network sees history as in a game, out of a folder of games any of whose
    positions is as likely as another, those with `latest` moves made and more left out.
    """
    rng = random.Random(SEED)
    files = sorted(folder.glob("*.pgn"))
    games = [game for game in read_records(files) if isinstance(game, GameRecord) and game.moves]
    lengths = [min(len(game.moves), latest) for game in games]
    pairs = list(zip(games, lengths, strict=True))
    found: set[str] = set()
    while len(found) < count:
        [(game, length)] = rng.choices(pairs, lengths)
        turn = rng.randrange(length)
        first = max(0, turn - MOVES_BEFORE)
        begin = Position.from_fen(game.start.play(*game.moves[:first]).fen())
        position = begin.play(*game.moves[first:turn])
        position = position.play(rng.choice(position.legal()))
        fen = position.fen()
        if not position.is_over and fen not in found:
            found.add(fen)
            yield format_pgn(GameRecord.of(position))


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
    what, *rest = sys.argv[1:]
    if what == "blunders":
        lines = blunders(int(rest[0]), Path(rest[1]), *map(int, rest[2:]))
    else:
        lines = {"openings": openings, "endings": endings, "hanging": hanging}[what]()
    for line in lines:
        print(line)
