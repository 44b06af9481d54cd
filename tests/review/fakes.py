"""A judge whose opinions one can foresee, and a small game to judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keima.games.go.records import GameRecord
from keima.games.go.rules import Rules
from keima.inference.evaluation import Evaluation

NETWORK = {"name": "the fake", "system": "fake", "format": "none", "sha256": "00"}
OPTIONS = {"symmetry": 0, "precision": "f32"}


class Judge:
    """Likes the first legal move best; thinks Black is ahead by 10 points for each black stone on the top row.

    In chess it thinks White wins with 0.6, whatever happens.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.symmetries: set[Any] = set()

    def __call__(self, positions: Sequence[Any], symmetry: Any = 0) -> list[Evaluation]:
        self.asked += len(positions)
        self.symmetries.add(symmetry)
        return [self.judge(position) for position in positions]

    def judge(self, position: Any) -> Evaluation:
        legal = position.legal()
        weights = np.array([0.5**place for place in range(len(legal))])
        policy = dict(zip(legal, (weights / weights.sum()).tolist(), strict=True))
        logits = {move: float(np.log(p)) for move, p in policy.items()}
        if not hasattr(position, "xsize"):
            win, loss = (0.6, 0.3) if position.to_play == "w" else (0.3, 0.6)
            return Evaluation(policy, logits, win=win, draw=0.1, loss=loss, value=win - loss, moves_left=30.0)
        side = 1 if position.to_play == "B" else -1
        lead = side * 10.0 * int((position.stones[0] == 1).sum())
        win = 1 / (1 + np.exp(-lead / 10))
        ownership = np.full(position.stones.shape, 0.25 * side, np.float32)
        return Evaluation(
            policy, logits, win=win, draw=0.0, loss=1 - win, value=2 * win - 1, lead=lead, ownership=ownership
        )


def go_record(*moves: str, **facts: Any) -> GameRecord:
    """A game on 5×5, colours in turn."""
    colours = ["BW"[number % 2] for number in range(len(moves))]
    people = {"players": {"B": "Ada", "W": "Bo"}, "ranks": {"B": "", "W": "2k"}}
    return GameRecord(
        5, 5, Rules.parse("chinese"), 7.5, moves=tuple(zip(colours, moves, strict=True)), **{**people, **facts}
    )
