"""Chess in the JSON analysis protocol: keima's own fields (`docs/analysis.md`)."""

from __future__ import annotations

from keima.errors import KeimaError
from keima.games.analysis import Analysis, Fields, QueryError, flag
from keima.games.chess import GAME
from keima.games.chess.position import Position


class ChessAnalysis(Analysis[Position]):
    """FEN and UCI moves in a query."""

    fields = ("fen", "chess960")
    moves_are = "UCI moves"

    def start(self, fields: Fields) -> Position:
        """`fen`, or the usual position."""
        fen = fields.get("fen")
        if not (fen is None or isinstance(fen, str)):
            raise QueryError("fen", "Must be a FEN, or null for the initial position")
        try:
            return Position.from_fen(fen, chess960=flag(fields, "chess960"))
        except KeimaError as error:
            raise QueryError("fen", error.message) from error

    def outcome(self, position: Position) -> float | None:
        """Mate, or a draw that nobody has to claim."""
        if position.outcome is None:
            return None
        winner = position.outcome.winner
        return 0.0 if winner is None else 1.0 if winner == position.to_play else -1.0

    def hashes(self, position: Position) -> dict[str, str]:
        """The Zobrist key."""
        return {"thisHash": f"{position.key:016X}"}


ANALYSIS = ChessAnalysis(GAME.letters, GAME.sides)
