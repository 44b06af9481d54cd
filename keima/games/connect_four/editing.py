"""EDITING of connect four: every game begins with the empty board, and only moves change it."""

from __future__ import annotations

import re

from keima.games.connect_four import GAME
from keima.games.connect_four.kernels import NAMES, height
from keima.games.connect_four.position import Position
from keima.games.trees.editing import Editing


class _Editing(Editing[Position]):
    def point(self, position: Position, move: str) -> str:
        """The square where the disc falls to: "d3"."""
        return f"{move}{height(position.record[0], NAMES.index(move)) + 1}"

    def is_point(self, position: Position, point: str) -> bool:
        return re.fullmatch("[a-g][1-6]", point) is not None

    def recognises(self, text: str) -> int:
        if re.search(r'^\[(First|Second)\s+"', text, re.M):
            return 3
        moves = re.sub(r"^\[.*\]\s*$|\{(?:[^\\}]|\\[\s\S])*\}|\d+\.|1-0|0-1|1/2-1/2|\*", "", text, flags=re.M).split()
        return 2 if moves and all(re.fullmatch("[a-g]+", move) for move in moves) else 0


EDITING = _Editing(GAME)
