"""Go: rules as KataGo names them, on any board from 2×2 to 19×19.

`Position` and `Rules` are the front door; the kernels underneath are in `board` (stones) and `history` (what the rules
remember).
"""

from keima.games.game import Game
from keima.games.go.position import Position as Position
from keima.games.go.rules import Rules as Rules

GAME = Game(
    "go",
    "Go",
    ("black", "white"),
    __name__,
    ("B", "W"),
    (".sgf",),
    fields=("xsize", "ysize", "rules", "komi", "handicap", "initialStones"),
)

__all__ = ["GAME", "Position", "Rules"]
