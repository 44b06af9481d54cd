"""Scoring a finished game of Go between players that need not agree on which stones are dead.

Two networks that play by area rules take dead stones off before they pass; programs such as GNU Go pass earlier and
leave them. Taking every stone for alive would then cheat the one, and taking one side's word the other. So:

1. A scorer, where the match names one, decides alone: its dead stones, or its `final_score`.
2. Else both players say which stones are dead: programs by `final_status_list dead`, networks by their ownership,
   averaged over the symmetries; who has no opinion says none. If the score is the same either way, it stands.
3. Else, by area rules, the game goes on from there (`clean-up`, as on KGS): dead stones are captured, passing no longer
   settles anything, and after two passes all stones on the board count as alive.
4. By territory rules, where that would cost points, stones are dead that both players call dead.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from keima.games import go
from keima.games.go.vertices import xy_to_vertex

if TYPE_CHECKING:
    from keima.inference.evaluator import Evaluator

_DEAD_BELOW = -0.5
"""A chain is dead for a network that gives it less than this of its own points, on average."""


def without_history(position: go.Position, dead: Collection[str] = ()) -> go.Position:
    """The same board, komi and side to move as a game of its own, without the stones at `dead`.

    The rules are the same but for bonuses and the button, which belong to the game before.
    """
    stones: dict[str, list[str]] = {"B": [], "W": []}
    for (y, x), stone in np.ndenumerate(position.stones):
        vertex = xy_to_vertex(x, y, position.ysize)
        if stone and vertex not in dead:
            stones["B" if stone == 1 else "W"].append(vertex)
    return go.Position.start(
        (position.xsize, position.ysize),
        replace(position.rules, has_button=False, white_handicap_bonus="0"),
        position.komi,
        black=stones["B"],
        white=stones["W"],
        to_play=position.to_play,
    )


def dead_by_ownership(evaluator: Evaluator, position: Any) -> frozenset[str] | None:
    """The stones a network takes for dead: chains it gives, on average, to the other side with −0.5 or less.

    The ownership is the mean over all symmetries; None where the network has none.
    """
    if not isinstance(position, go.Position):
        return None
    bare = without_history(position)
    answer = evaluator([bare], symmetry="average")[0]
    if answer.ownership is None:
        return None
    for_black = answer.ownership if bare.to_play == "B" else -answer.ownership
    dead: list[str] = []
    for colour, chain in chains(bare.stones):
        owned = float(np.mean([for_black[y, x] for y, x in chain])) * (1 if colour == 1 else -1)
        if owned < _DEAD_BELOW:
            dead += [xy_to_vertex(x, y, bare.ysize) for y, x in chain]
    return frozenset(dead)


def chains(stones: Any) -> list[tuple[int, list[tuple[int, int]]]]:
    """The chains of a board [ysize, xsize]: (colour, points as (y, x))."""
    found: list[tuple[int, list[tuple[int, int]]]] = []
    seen: set[tuple[int, int]] = set()
    for start, stone in np.ndenumerate(stones):
        if not stone or start in seen:
            continue
        colour, chain = int(stone), [(int(start[0]), int(start[1]))]
        seen.add(chain[0])
        for y, x in chain:  # grows while it is walked
            for point in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                inside = 0 <= point[0] < stones.shape[0] and 0 <= point[1] < stones.shape[1]
                if inside and stones[point] == colour and point not in seen:
                    seen.add(point)
                    chain.append(point)
        found.append((colour, chain))
    return found


def score_without(position: go.Position, dead: Collection[str] = ()) -> float:
    """White's points minus Black's, komi and bonuses included, with these dead stones taken off as prisoners."""
    score = without_history(position, dead).score() + bonuses(position)
    if position.rules.scoring == "TERRITORY":
        prisoners = position.captures
        for (y, x), stone in np.ndenumerate(position.stones):
            if stone and xy_to_vertex(x, y, position.ysize) in dead:
                prisoners["B" if stone == 1 else "W"] += 1
        score += prisoners["B"] - prisoners["W"]
    return score


def bonuses(position: go.Position) -> float:
    """White's points for handicap stones, and by area rules for the button."""
    history = position.history[0]
    button = history["white_bonus"] if position.rules.scoring == "AREA" else 0.0
    return float(history["white_handicap_bonus"] + button)


def result_of(score: float) -> str:
    """A score as SGF writes it: "B+3.5", "0" for a draw."""
    return "0" if score == 0 else f"{'W' if score > 0 else 'B'}+{abs(score):g}"
