"""Go: rules as KataGo names them, on any board from 2×2 to 19×19.

`Position` and `Rules` are the front door; the kernels underneath are in `board` (stones) and `history` (what the rules
remember).
"""

from keima.games.go.position import Position as Position
from keima.games.go.rules import Rules as Rules

__all__ = ["Position", "Rules"]
