"""Chess in the JSON analysis protocol: keima's own fields (`docs/analysis.md`)."""

from __future__ import annotations

from keima.errors import KeimaError
from keima.games.analysis import Analysis, Fields, QueryError, flag
from keima.games.chess import GAME
from keima.games.chess.position import Position


class _Analysis(Analysis[Position]):
    fields = ("fen", "chess960")
    moves_are = "UCI moves"

    def start(self, fields: Fields) -> Position:
        fen = fields.get("fen")
        if not (fen is None or isinstance(fen, str)):
            raise QueryError("fen", "Must be a FEN, or null for the initial position")
        try:
            return Position.from_fen(fen, chess960=flag(fields, "chess960"))
        except KeimaError as error:
            raise QueryError("fen", error.message) from error

    def outcome(self, position: Position) -> float | None:
        if position.outcome is None:
            return None
        return 0.0 if position.outcome.winner is None else -1.0

    def hashes(self, position: Position) -> dict[str, str]:
        return {"thisHash": f"{position.key:016X}"}


ANALYSIS = _Analysis(GAME.letters, GAME.sides)
