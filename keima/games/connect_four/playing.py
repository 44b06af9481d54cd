"""Connect four in matches."""

from __future__ import annotations

from itertools import product

from keima.games.connect_four import GAME
from keima.games.connect_four.kernels import NAMES, SQUARES
from keima.games.connect_four.position import Position
from keima.games.connect_four.records import GameRecord
from keima.games.playing import Opening, Playing, Verdict
from keima.plain import Note


class _Playing(Playing[Position, GameRecord]):
    """Phases of eight plies; openings: every two discs, mirror images left out, which leaves 25."""

    phases = (8, 4)

    def openings(self, start: Position, seed: int) -> list[Opening]:
        pairs = [pair for pair in product(NAMES, repeat=2) if pair <= tuple(NAMES[6 - NAMES.index(c)] for c in pair)]
        return [Opening("".join(pair), start.play(*pair)) for pair in pairs]

    def move_limit(self, start: Position) -> int:
        return SQUARES

    def moves_to_come(self, position: Position) -> float:
        return max(2.0, (SQUARES - len(position.moves)) / 3)  # of the empty ones half are its own, and games end sooner

    def outcome(self, position: Position) -> Verdict | None:
        if not position.is_over:
            return None
        winner = None if position.winner is None else GAME.letters.index(position.winner)
        full, won = Note("board full", "reason.full"), Note("four in a line", "reason.four")
        return Verdict(winner, self.result(winner), full if winner is None else won)


PLAYING = _Playing(Position)
