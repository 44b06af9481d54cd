"""EDITING of connect four: every game begins with the empty board, and only moves change it."""

from __future__ import annotations

import re

from keima.errors import BadRecord
from keima.games.connect_four import GAME
from keima.games.connect_four.kernels import NAMES, height
from keima.games.connect_four.position import Position
from keima.games.connect_four.records import GameRecord
from keima.games.position import Position as AnyPosition
from keima.games.records import GameRecord as AnyRecord
from keima.games.trees.editing import Editing, retold
from keima.games.trees.tree import GameTree


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

    def of_record(self, record: AnyRecord) -> GameTree | BadRecord:
        tree = super().of_record(record)
        if isinstance(tree, GameTree) and isinstance(record, GameRecord):
            tree.tags = dict(record.tags)
        return tree

    def record(self, tree: GameTree, position: AnyPosition) -> GameRecord:
        tags = retold(tree.tags, _facts(GameRecord(tags=tree.tags)), _facts(tree))
        return GameRecord(tuple(str(move) for move in position.moves), tags, tree.result or "*")


def _facts(told: GameTree | GameRecord) -> dict[str, str]:
    """What a tree and a record both tell, by the tag."""
    first, second = GAME.letters
    names = {"First": told.players.get(first, ""), "Second": told.players.get(second, "")}
    ranks = {"FirstRank": told.ranks.get(first, ""), "SecondRank": told.ranks.get(second, "")}
    return {"Event": told.event, "Date": told.date, **names, **ranks}


EDITING = _Editing(GAME)
