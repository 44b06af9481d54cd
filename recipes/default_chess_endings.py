"""King and rook, or king and queen, against king: games played perfectly, and searches that know every move's worth.

python recipes/default_chess_endings.py GAMES -o endings.parquet

Games of few pieces are rare, and how to win them takes a plan that a search of some hundred visits does not find. All
positions are solved backwards from the mates; π is shared by the best moves, and Q is a win, less 0.002 a ply to it.
The stronger side always plays a best move, the other one two times in three. Half of the games are Black's to win.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import chess
import numpy as np
from numba import njit
from numpy.typing import NDArray

from keima.games.chess.position import Position
from keima.games.position import Position as AnyPosition
from keima.training.data.importing import import_games
from keima.training.data.store import GameStore
from keima.training.distill.searches import Searched, search_games

PLY = 0.002
"""What a ply of the way to the mate takes from Q."""
UNKNOWN = -1


@njit
def _near(a: int, b: int) -> bool:
    return abs(a % 8 - b % 8) <= 1 and abs(a // 8 - b // 8) <= 1


@njit
def _sees(piece: int, target: int, blocker: int, queen: bool) -> bool:
    """Does a rook or queen on `piece` reach `target` past a man on `blocker`?"""
    dx, dy = target % 8 - piece % 8, target // 8 - piece // 8
    if (dx == 0) == (dy == 0) and not (queen and abs(dx) == abs(dy) and dx != 0):
        return False
    step = np.sign(dx) + 8 * np.sign(dy)
    at = piece + step
    while at != target:
        if at == blocker:
            return False
        at += step
    return True


@njit
def _solve(queen: bool) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """Plies to the mate of every (king, piece, other king), with the stronger side to move and with the weaker one.

    UNKNOWN where there is no mate, or no such position.
    """
    strong = np.full((64, 64, 64), UNKNOWN, np.int16)
    weak = np.full((64, 64, 64), UNKNOWN, np.int16)
    for ply in range(80):
        changed = False
        for king in range(64):
            for piece in range(64):
                for other in range(64):
                    if king in (piece, other) or piece == other or _near(king, other):
                        continue
                    if ply % 2 == 0:
                        if weak[king, piece, other] != UNKNOWN:
                            continue
                        lost, can_move = True, False
                        for to in range(64):
                            if to == other or not _near(other, to) or _near(to, king):
                                continue
                            if to == piece:
                                lost = False
                            elif not _sees(piece, to, king, queen):
                                can_move = True
                                if strong[king, piece, to] == UNKNOWN:
                                    lost = False
                        if lost and (can_move or _sees(piece, other, king, queen)):
                            weak[king, piece, other] = ply
                            changed = True
                    elif strong[king, piece, other] == UNKNOWN and not _sees(piece, other, king, queen):
                        found = False
                        for to in range(64):
                            if to != king and _near(king, to) and to != piece and not _near(to, other):
                                found = found or weak[to, piece, other] == ply - 1
                            if to not in (piece, king, other) and _sees(piece, to, king, queen):
                                through = _sees(piece, to, other, queen)
                                found = found or (through and weak[king, to, other] == ply - 1)
                        if found:
                            strong[king, piece, other] = ply
                            changed = True
        if ply > 1 and not changed:
            break
    return strong, weak


class Solved:
    """Both endings."""

    def __init__(self) -> None:
        self._plies = {chess.ROOK: _solve(False), chess.QUEEN: _solve(True)}

    def plies(self, board: chess.Board) -> int:
        """To the mate; UNKNOWN where there is none."""
        pieces = [kind for kind in self._plies if board.pieces(kind, True) or board.pieces(kind, False)]
        if len(pieces) != 1 or chess.popcount(board.occupied) != 3:
            return UNKNOWN
        side = bool(board.pieces(pieces[0], True))
        (at,) = board.pieces(pieces[0], side)
        king, other = board.king(side), board.king(not side)
        return int(self._plies[pieces[0]][board.turn != side][king, at, other])

    def best(self, board: chess.Board) -> tuple[int, list[chess.Move]]:
        """Plies to the mate, and the moves that keep to them."""
        plies, found = self.plies(board), []
        for move in board.legal_moves:
            board.push(move)
            if self.plies(board) == plies - 1:
                found.append(move)
            board.pop()
        return plies, found

    def searched(self, positions: Sequence[AnyPosition]) -> list[Searched | None]:
        """As `Searcher`."""
        answers: list[Searched | None] = []
        for position in positions:
            assert isinstance(position, Position)
            board = chess.Board(position.fen())
            plies, best = self.best(board)
            q = (1.0 - PLY * plies) * (1 if plies % 2 else -1)
            answers.append((q, [move.uci() for move in best], np.ones(len(best))) if best else None)
        return answers


def games(solved: Solved, count: int, seed: int) -> Iterator[str]:
    """PGN of so many games, three in four with the rook."""
    rng = random.Random(seed)
    while count:
        board = chess.Board(None)
        squares = rng.sample(range(64), 3)
        side = rng.random() < 0.5
        kinds = (chess.KING, chess.ROOK if rng.random() < 0.75 else chess.QUEEN)
        for square, kind in zip(squares, kinds, strict=False):
            board.set_piece_at(square, chess.Piece(kind, side))
        board.set_piece_at(squares[2], chess.Piece(chess.KING, not side))
        board.turn = side if rng.random() < 0.7 else not side
        if not board.is_valid() or solved.plies(board) < 1:
            continue
        start, moves = board.fen(), []
        while not board.is_game_over():
            free = board.turn != side and rng.random() < 1 / 3
            choice = [*board.legal_moves] if free else solved.best(board)[1]
            move = rng.choice(choice)
            moves.append(board.san(move))
            board.push(move)
        numbered = f"{'' if start.split()[1] == 'w' else '1... '}{' '.join(moves)}"
        yield f'[FEN "{start}"]\n[SetUp "1"]\n[Result "{board.result()}"]\n\n{numbered} {board.result()}\n\n'
        count -= 1


def main() -> None:
    """Solve, play, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", type=int)
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    solved = Solved()
    with tempfile.TemporaryDirectory() as folder:
        pgn, store = Path(folder, "endings.pgn"), Path(folder, "endings.parquet")
        pgn.write_text("".join(games(solved, given.games, given.seed)))
        print(import_games([pgn], store, min_moves=1, workers=1))
        print(search_games(GameStore.open(store), given.output, [solved.searched]), "positions")


if __name__ == "__main__":
    main()
