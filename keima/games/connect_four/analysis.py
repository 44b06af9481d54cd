"""Connect four in the JSON analysis protocol."""

from __future__ import annotations

from keima.games.analysis import Analysis, Fields
from keima.games.connect_four import GAME
from keima.games.connect_four.position import Position
from keima.games.connect_four.rules import position_key


class ConnectFourAnalysis(Analysis[Position]):
    """Columns in a query's `moves`."""

    moves_are = "columns a to g"

    def start(self, fields: Fields) -> Position:
        """The empty board."""
        return Position.start()

    def outcome(self, position: Position) -> float | None:
        """Four in a line by the other side, or a full board."""
        if not position.is_over:
            return None
        return 0.0 if position.winner is None else -1.0

    def hashes(self, position: Position) -> dict[str, str]:
        """A key that no two positions share."""
        return {"thisHash": f"{int(position_key(position.record[0])):016X}"}


ANALYSIS = ConnectFourAnalysis(GAME.letters, GAME.sides)
