"""Chess: the kernel (`board`), positions (`Position`), game records (`pgn`)."""

from keima.games.chess.position import START_FEN, Outcome, Position
from keima.games.game import Game

GAME = Game("chess", "chess", ("white", "black"), __name__, ("w", "b"), (".pgn",), fields=("fen", "chess960"))

__all__ = ["GAME", "START_FEN", "Outcome", "Position"]
