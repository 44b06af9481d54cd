"""Connect four in the JSON analysis protocol."""

from __future__ import annotations

from keima.games.analysis import Analysis, Fields
from keima.games.connect_four import GAME
from keima.games.connect_four.kernels import position_key
from keima.games.connect_four.position import Position


class _Analysis(Analysis[Position]):
    moves_are = "columns a to g"

    def start(self, fields: Fields) -> Position:
        return Position.start()

    def outcome(self, position: Position) -> float | None:
        if not position.is_over:
            return None
        return 0.0 if position.winner is None else -1.0  # four in a line by the other side

    def hashes(self, position: Position) -> dict[str, str]:
        return {"thisHash": f"{int(position_key(position.record[0])):016X}"}


ANALYSIS = _Analysis(GAME.letters, GAME.sides)
