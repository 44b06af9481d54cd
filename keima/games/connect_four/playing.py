"""Connect four in matches."""

from __future__ import annotations

from itertools import product

from keima.games.connect_four import GAME
from keima.games.connect_four.position import NAMES, Position
from keima.games.connect_four.records import GameRecord
from keima.games.playing import Opening, Playing, Verdict


class ConnectFourPlaying(Playing[Position, GameRecord]):
    """Phases of eight plies; openings: every two discs, mirror images left out, which leaves 25."""

    phases = (8, 4)

    def openings(self, start: Position, seed: int) -> list[Opening]:
        """All pairs of first discs with the first one in the left half or the middle; in the middle, the second too."""
        pairs = [pair for pair in product(NAMES, repeat=2) if pair <= tuple(NAMES[6 - NAMES.index(c)] for c in pair)]
        return [Opening("".join(pair), start.play(*pair)) for pair in pairs]

    def move_limit(self, start: Position) -> int:
        """The board has 42 squares."""
        return 42

    def moves_to_come(self, position: Position) -> float:
        """Half of the empty squares at most, and games end sooner."""
        return max(2.0, (42 - len(position.moves)) / 3)

    def outcome(self, position: Position) -> Verdict | None:
        """Four in a line, or a full board."""
        if not position.is_over:
            return None
        winner = None if position.winner is None else GAME.letters.index(position.winner)
        return Verdict(winner, self.result(winner), "board full" if winner is None else "four in a line")

    def result(self, winner: int | None, how: str = "") -> str:
        """ "1-0", "0-1" or "1/2-1/2"."""
        return "1/2-1/2" if winner is None else ("1-0", "0-1")[winner]


PLAYING = ConnectFourPlaying(Position)
