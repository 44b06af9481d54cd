"""PLAYING of Go: openings, and the score between players that need not agree on which stones are dead.

Two networks that play by area rules take dead stones off before they pass; programs such as GNU Go pass earlier and
leave them. Taking every stone for alive would then cheat the one, and taking one side's word the other. So:

1. A scorer, where the match names one, decides alone: its dead stones, or its `final_score`.
2. Else both players say which stones are dead: programs by `final_status_list dead`, networks by their ownership,
   averaged over the symmetries; who has no opinion says none. If the score is the same either way, it stands.
3. Else, by area rules, the game goes on from there (`clean-up`, as on KGS): dead stones are captured, passing no longer
   settles anything, and after two passes all stones on the board count as alive.
4. By territory rules, where that would cost points, stones are dead that both players call dead.

The built-in openings, up to the symmetries of the board each once: from 13×13 on, each side takes two corners at 4-4,
3-4, 4-3 or 3-3 (768 lines); on smaller boards one stone each, not on the outer lines and not touching.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRecord, BadRequest
from keima.games.go.area import calculate_area
from keima.games.go.board import EMPTY, MAX_POINTS, WALL, points_of
from keima.games.go.position import Position, result_of
from keima.games.go.records import GameRecord
from keima.games.go.vertices import xy_to_vertex
from keima.games.playing import Judge, Opening, Playing, Table, Verdict
from keima.jit import Record, njit
from keima.plain import Note

AREA_RULES = "koSIMPLEscoreAREAtaxNONEsui0"
"""Area scoring, simple ko, no suicide, and dead stones are taken off: what every Go program can play."""
_DEAD_BELOW = -0.5
"""A chain is dead for a network that gives it less than this of its own points, on average."""
_LARGE = 13
_CORNER_POINTS = ((3, 3), (2, 3), (3, 2), (2, 2))
"""4-4, 3-4, 4-3 and 3-3, counted from the corner."""

Line = tuple[tuple[int, int], ...]
"""Moves as (x, y)."""


class GoPlaying(Playing[Position, GameRecord]):
    """What a match asks of Go."""

    protocol = "gtp"
    phases = (30, 10)
    scored = True
    points_lost = (12.0, 6.0, 3.0)  # KaTrain's, `config.json`, trainer/eval_thresholds; its 1.5 and 0.5 are good here

    def start(
        self, size: tuple[int, int] | None = None, rules: str | None = None, komi: float | None = None
    ) -> Position:
        """The empty board; 19×19 and `AREA_RULES` where nothing else is said."""
        return Position.start(size or (19, 19), rules or AREA_RULES, komi)

    def table(self, start: Position) -> dict[str, object]:
        """Size, rules and komi."""
        return {"size": [start.xsize, start.ysize], "rules": str(start.rules), "komi": start.komi}

    def openings(self, start: Position, seed: int) -> list[Opening]:
        """The built-in lines on this board, one of each kind that symmetry makes alike, turned at random."""
        xsize, ysize = start.xsize, start.ysize
        if start.moves or start.setup:
            raise BadRequest("the built-in openings begin from an empty board; choose --openings random:4 or none")
        lines = _corner_lines(xsize, ysize) if min(xsize, ysize) >= _LARGE else _inner_lines(xsize, ysize)
        kinds: dict[Line, list[Line]] = {}
        for line in lines:
            kinds.setdefault(min(_turned(line, xsize, ysize)), []).append(line)
        rng = random.Random(f"go openings {seed}")
        openings = []
        for number, kind in enumerate(sorted(kinds), 1):
            turned = rng.choice(sorted(_turned(kind, xsize, ysize)))
            vertices = [xy_to_vertex(x, y, ysize) for x, y in turned]
            openings.append(Opening(f"opening {number}", start.play(*vertices)))
        return openings or [Opening("start", start)]

    def opening(self, record: GameRecord, start: Position, plies: int | None) -> Position:
        """The record's first moves under the rules and komi of `start`."""
        if (record.xsize, record.ysize) != (start.xsize, start.ysize):
            raise BadRecord(f"a board of {record.xsize}×{record.ysize}; this match's is {start.xsize}×{start.ysize}")
        moves = record.moves[:plies]
        edits = tuple(edit for edit in record.edits if edit.after <= len(moves))
        position = replace(record, rules=start.rules, komi=start.komi, moves=moves, edits=edits).final()
        return position if moves else position.with_to_play(record.to_play)

    def move_limit(self, start: Position) -> int:
        """Three for each point."""
        return 3 * start.xsize * start.ysize

    def moves_to_come(self, position: Position) -> float:
        """A third of the points in all; near the end a twelfth of them."""
        area = position.xsize * position.ysize
        return max(area / 12, 0.35 * area - len(position.moves) / 2)

    def follow(self, position: Position, side: str, move: str) -> Position:
        """A record may move out of turn, against ko, and after two passes."""
        return position.play_as(side, move)

    def outcome(self, position: Position) -> Verdict | None:
        """None: what two passes are worth, agreement about dead stones decides."""
        return None

    def result(self, winner: int | None, how: str = "") -> str:
        """As SGF writes it: "B+R", "W+T"; "0" for a draw."""
        return "0" if winner is None else f"{'BW'[winner]}+{how}"

    def settle(self, table: Table) -> Verdict | None:
        """Count the game, as this file's head says."""
        position = table.position
        assert isinstance(position, Position)
        if position.is_no_result:
            return _no_result()
        if not position.is_over:
            return _scored(score_without(position), f"score at {table.limit} moves")
        if table.scorer is not None:
            said = table.ask_scorer()
            if isinstance(said, frozenset):
                table.note(_in_words("dead", said))
                said = score_without(position, said)
            if said is not None:
                return _scored(said, f"score (by {table.scorer})")
        opinions = table.dead_stones()
        scores = [score_without(position, dead) for dead in opinions]
        if scores[0] == scores[1]:
            table.note(_in_words("dead", opinions[0]))
            return _scored(scores[0], "score (agreed)")
        for name, dead, score in zip(table.names, opinions, scores, strict=True):
            table.note(_in_words(f"{name} counts {result_of(score)}, dead", dead))
        if position.rules.scoring == "TERRITORY":
            return _scored(score_without(position, opinions[0] & opinions[1]), "score (dead for both)")
        bonus = bonuses(position)
        last = table.play_on(without_history(position), 2 * position.xsize * position.ysize)
        if last is None:
            return None
        assert isinstance(last, Position)
        return _scored(last.score() + bonus, "score (after clean-up)")

    def count(self, position: Position) -> Verdict:
        """By its rules with the stones as they stand."""
        if position.is_no_result:
            return _no_result()
        limit = Note("score at {moves} moves", "reason.limit", moves=len(position.moves))
        return _scored(score_without(position), Note("score", "reason.score") if position.is_over else limit)

    def certain(self, position: Position) -> Verdict | None:
        """Every point is pass-alive (KataGo `BoardHistory::endGameIfAllPassAlive`); by area rules only."""
        if position.rules.scoring != "AREA" or position.is_over or not all_pass_alive(position.record[0]):
            return None
        return _scored(score_without(position), "score (every point is pass-alive)")

    def dead_stones(self, judge: Judge, position: Position) -> frozenset[str] | None:
        """Chains the network gives, on average, to the other side with −0.5 or less.

        The ownership is the mean over all symmetries; None where the network has none.
        """
        bare = without_history(position)
        answer = judge([bare], symmetry="average")[0]
        if answer.ownership is None:
            return None
        for_black = answer.ownership if bare.to_play == "B" else -answer.ownership
        dead: list[str] = []
        for colour, chain in chains(bare.stones):
            owned = float(np.mean([for_black[y, x] for y, x in chain])) * (1 if colour == 1 else -1)
            if owned < _DEAD_BELOW:
                dead += [xy_to_vertex(x, y, bare.ysize) for y, x in chain]
        return frozenset(dead)


PLAYING = GoPlaying(Position)


@njit
def all_pass_alive(p: Record) -> bool:
    """Is every point of the board a pass-alive chain's, or inside its territory?"""
    area = np.empty(MAX_POINTS, np.int8)
    calculate_area(p.board, area, False, False, False, p.history.suicide == 1)
    empty = 0
    for loc in points_of(p.board):
        empty += area[loc] == EMPTY and p.board.stones[loc] != WALL
    return empty == 0


def _no_result() -> Verdict:
    return Verdict(None, "Void", Note("no result: a position occurred three times", "reason.noresult"))


def _scored(score: float, reason: str) -> Verdict:
    """White's points minus Black's as a verdict."""
    return Verdict(None if score == 0 else 1 if score > 0 else 0, result_of(score), reason)


def _in_words(what: str, dead: frozenset[str]) -> str:
    return f"{what}: {' '.join(sorted(dead)) or 'none'}"


def without_history(position: Position, dead: Collection[str] = ()) -> Position:
    """The same board, komi and side to move as a game of its own, without the stones at `dead`.

    The rules are the same but for bonuses and the button, which belong to the game before.
    """
    rules = replace(position.rules, has_button=False, white_handicap_bonus="0")
    standing = [stone for stone in position.on_board() if stone[1] not in dead]
    return position.set_up_anew(standing, position.to_play, rules)


def chains(stones: NDArray[np.int8]) -> list[tuple[int, list[tuple[int, int]]]]:
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


def score_without(position: Position, dead: Collection[str] = ()) -> float:
    """White's points minus Black's, komi and bonuses included, with these dead stones taken off as prisoners."""
    score = without_history(position, dead).score() + bonuses(position)
    if position.rules.scoring == "TERRITORY":
        prisoners = position.captures
        for colour, vertex in position.on_board():
            prisoners[colour] += vertex in dead
        score += prisoners["B"] - prisoners["W"]
    return score


def bonuses(position: Position) -> float:
    """White's points for handicap stones, and by area rules for the button."""
    history = position.history[0]
    button = history["white_bonus"] if position.rules.scoring == "AREA" else 0.0
    return float(history["white_handicap_bonus"] + button)


def _turned(line: Line, xsize: int, ysize: int) -> Iterator[Line]:
    """The line under every symmetry of the board."""
    for flip_x, flip_y, swap in product((0, 1), (0, 1), (0, 1) if xsize == ysize else (0,)):
        points = [(xsize - 1 - x if flip_x else x, ysize - 1 - y if flip_y else y) for x, y in line]
        yield tuple((y, x) if swap else (x, y) for x, y in points)


def _corner_lines(xsize: int, ysize: int) -> Iterator[Line]:
    """Four moves, one in each corner, the first always in the same one."""
    corners = [(1, 0), (0, 0), (0, 1), (1, 1)]
    for others in permutations(corners[1:]):
        for points in product(_CORNER_POINTS, repeat=4):
            yield tuple(
                (xsize - 1 - x if right else x, ysize - 1 - y if low else y)
                for (right, low), (x, y) in zip((corners[0], *others), points, strict=True)
            )


def _inner_lines(xsize: int, ysize: int) -> Iterator[Line]:
    """Two moves away from the edge that do not touch."""
    margin = 2 if min(xsize, ysize) >= 7 else 1 if min(xsize, ysize) >= 4 else 0
    points = list(product(range(margin, xsize - margin), range(margin, ysize - margin)))
    for first, second in product(points, repeat=2):
        if max(abs(first[0] - second[0]), abs(first[1] - second[1])) > 1:
            yield first, second
