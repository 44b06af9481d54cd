"""What an engine decides beside its search: passing, resigning, which stones are dead, the score.

The rules of thumb are KataGo's (`cpp/program/playutils.cpp`, `cpp/command/gtp.cpp`), written anew.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from keima.games.go import Position
from keima.games.go.area import calculate_area
from keima.games.go.board import BLACK, EMPTY, MAX_POINTS
from keima.games.go.playing import bonuses, chains, score_without, without_history
from keima.games.go.rules import MAX_KOMI
from keima.games.go.vertices import PASS, board_locs, vertex_to_xy, xy_to_vertex
from keima.inference.evaluator import Evaluator

ALIVE_MEAN, ALIVE_LEAST = 0.2, -0.6
"""A chain lives whose points its side owns by more than this on average, and each by more than this."""
_OWNED = 0.75
_PASS_COSTS_VALUE, _PASS_COSTS_POINTS = 0.1, 0.25


def for_black(points: NDArray[np.floating], to_play: str) -> NDArray[np.floating]:
    """Ownership of the side to move as Black's."""
    return points if to_play == "B" else -points


def statuses(position: Position, ownership: NDArray[np.floating] | None) -> dict[str, list[list[str]]]:
    """The chains on the board as lists of vertices, by "alive" and "dead".

    `ownership` is [ysize, xsize], +1 = Black's; without it, dead is what stands in the other side's pass-alive area.
    """
    found: dict[str, list[list[str]]] = {"alive": [], "dead": []}
    owners = position.owners() if ownership is None else None
    for colour, chain in chains(position.stones):
        if owners is not None:
            alive = all(owners[point] in (colour, EMPTY) for point in chain)
        else:
            assert ownership is not None
            own = np.array([ownership[point] for point in chain]) * (1 if colour == BLACK else -1)
            alive = own.mean() > ALIVE_MEAN and own.min() > ALIVE_LEAST
        found["alive" if alive else "dead"].append([xy_to_vertex(x, y, position.ysize) for y, x in chain])
    return found


def white_score(position: Position, ownership: NDArray[np.floating] | None, lead: float | None) -> float:
    """White's points minus Black's at the end of the game, as far as it can be told.

    A finished game is counted, without the dead stones where there is `ownership` ([ysize, xsize], +1 = Black's); for
    one under way it is White's `lead`, rounded to what this komi allows.
    """
    if position.is_no_result:
        return 0.0
    if position.is_over and ownership is not None:
        return score_without(position, _dead(position, ownership))
    if position.is_over or lead is None:
        return position.score()
    whole = (position.komi % 1 == 0) != position.rules.has_button
    return float(round(lead)) if whole else math.floor(lead) + 0.5


def _dead(position: Position, ownership: NDArray[np.floating]) -> set[str]:
    return {vertex for chain in statuses(position, ownership)["dead"] for vertex in chain}


def result_text(score: float) -> str:
    """White's points minus Black's as `final_score` answers."""
    return "0" if score == 0 else f"{'W' if score > 0 else 'B'}+{abs(score):.1f}"


class Resigner:
    """Resigns when the probability of winning was below `threshold` (0: never) for `turns` moves in a row."""

    def __init__(self, threshold: float, turns: int) -> None:
        self.threshold = threshold
        self.turns = turns
        self._values: list[float] = []

    def forget(self) -> None:
        """Another game, or moves taken back."""
        self._values.clear()

    def resigns(self, position: Position, colour: str, value: float) -> bool:
        """Note what the search found before a move of `colour` (win − loss for it); is that a reason to resign?

        White does not resign the first fifth of the board's points of a handicap game, which begins lost.
        """
        self._values.append(value if colour == "B" else -value)
        handicap = any(stone == "B" for stone, _ in position.setup)
        if handicap and colour == "W" and len(position.moves) < 1 + position.xsize * position.ysize / 5:
            return False
        last = self._values[-self.turns :]
        sign = 1 if colour == "B" else -1
        return len(last) == self.turns and all((1 + sign * one) / 2 < self.threshold for one in last)


def clean_up(position: Position, move: str) -> str:
    """The move to make where the search chose `move`: no pass before dead stones are off, where the rules want that.

    Under area rules without friendly passes, stones left standing count as alive. So in place of a pass, a liberty of a
    stone in the own pass-alive territory is filled, if there is one.
    """
    rules = position.rules
    if move != PASS or rules.scoring != "AREA" or rules.friendly_pass_ok or position.history[0]["has_button"]:
        return move
    safe = np.empty(MAX_POINTS, np.int8)
    calculate_area(position.board[0], safe, False, False, False, rules.suicide)
    own = BLACK if position.to_play == "B" else 3 - BLACK
    area = safe[board_locs(position.xsize, position.ysize)]
    stones = position.stones
    for (y, x), owner in np.ndenumerate(area):
        if owner == own and stones[y, x] == EMPTY and 3 - own in _around(stones, y, x):
            vertex = xy_to_vertex(x, y, position.ysize)
            if position.is_legal(vertex):
                return vertex
    return move


def may_pass_friendly(position: Position) -> bool:
    """Has the other side just passed, under area rules that leave dead stones on the board?"""
    rules = position.rules
    if rules.scoring != "AREA" or not rules.friendly_pass_ok or position.history[0]["has_button"] or position.is_over:
        return False
    return bool(position.moves) and position.moves[-1][1] == PASS and position.moves[-1][0] != position.to_play


def pass_friendly(position: Position, move: str, ownership: NDArray[np.floating], evaluator: Evaluator) -> str:
    """The move to make where the search chose `move` and the other side has passed: a pass if nothing is left to play.

    That is so when, without the dead stones, all that a side owns is walled off, the move touches no living stone of
    the other side, and the network, over all symmetries, thinks a pass no worse. `ownership` is Black's.
    """
    if move == PASS:
        return move
    cleaned = without_history(position, _dead(position, ownership))
    owners = cleaned.owners()
    if ((ownership > _OWNED) & (owners != BLACK)).any() or ((ownership < -_OWNED) & (owners != 3 - BLACK)).any():
        return move
    point = vertex_to_xy(move, position.xsize, position.ysize)
    assert point is not None
    other = BLACK if position.to_play == "W" else 3 - BLACK
    if other in _around(cleaned.stones, point[1], point[0]) or _would_capture(cleaned, move):
        return move
    after = [without_history(position.play(vertex)) for vertex in (PASS, move)]
    passed, played = evaluator(after, symmetry="average")
    value = (passed.value or 0.0) - (played.value or 0.0)  # what the other side, to move in both, gains by the pass
    points = 0.0 if passed.lead is None or played.lead is None else passed.lead - played.lead
    return PASS if value < _PASS_COSTS_VALUE and points < _PASS_COSTS_POINTS else move


def resumed(position: Position) -> Position:
    """A finished game as one that goes on: the same board, whose prisoners and bonuses have become komi."""
    bare = without_history(position)
    points = bonuses(position)
    if position.rules.scoring == "TERRITORY":
        points += position.captures["B"] - position.captures["W"]
    komi = min(max(position.komi + points, -MAX_KOMI), MAX_KOMI)
    stones = {colour: [vertex for c, vertex in bare.setup if c == colour] for colour in "BW"}
    size = (position.xsize, position.ysize)
    return Position.start(
        size, bare.rules, komi, black=stones["B"], white=stones["W"], to_play=position.to_play, handicap_stones=0
    )


def _around(stones: NDArray[np.int8], y: int, x: int) -> list[int]:
    points = ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1))
    inside = [(r, c) for r, c in points if 0 <= r < stones.shape[0] and 0 <= c < stones.shape[1]]
    return [int(stones[point]) for point in inside]


def _would_capture(position: Position, vertex: str) -> bool:
    """Would the other side's stone there take stones of the side to move off the board?"""
    other = "W" if position.to_play == "B" else "B"
    turned = position.with_to_play(other)
    if not turned.is_legal(vertex):
        return False
    before, after = turned.captures, turned.play(vertex).captures
    return after[position.to_play] > before[position.to_play]
