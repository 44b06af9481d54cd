"""Chess: the kernel (`board`), positions (`Position`), game records (`pgn`)."""

from keima.games.chess.position import START_FEN, Outcome, Position

__all__ = ["START_FEN", "Outcome", "Position"]
