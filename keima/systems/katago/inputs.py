"""KataGo's input, version 7 (network versions 8 to 17): 22 planes and 19 globals, listed in `PLANES` and `GLOBALS`.

The rules of what is written follow KataGo's `cpp/neuralnet/nninputs.cpp` (`NNInputs::fillRowV7`), with the parameters
its GTP command `kata-raw-nn` uses: draws count half, no playout-doubling advantage unless asked for, all history, and
a pass that would end the game is shown as one unless friendly passing applies.

Perspective: "own" and "opponent" are the side to move and the other side; komi is the side to move's.

History is looked at only within a phase of the game and only while the two sides alternate. It is hidden altogether,
the ladders of earlier turns included, when a pass would end the game and the search is to behave as if it did not;
once the game is over only the last move is shown.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest, UnsupportedPosition
from keima.games.go.area import calculate_area, independent_life_area, wide
from keima.games.go.board import BLACK, BOARD, EMPTY, MAX_POINTS, NULL_LOC, PASS_LOC
from keima.games.go.history import (
    KO_SIMPLE,
    KO_SITUATIONAL,
    SCORING_AREA,
    SCORING_TERRITORY,
    TAX_ALL,
    TAX_NONE,
    is_final_phase,
    is_friendly_pass,
    is_over,
    pass_would_end_phase,
    self_komi,
)
from keima.games.go.ladders import Scratch, change_stones, find_ladders, new_scratch
from keima.games.go.vertices import SYMMETRIES
from keima.jit import Record, Records, njit
from keima.systems.encoding import Batch
from keima.systems.go_points import GoEncoding, fill_locs
from keima.systems.katago.config import METADATA
from keima.systems.katago.metadata import PROFILES, Profile, metadata_row, parse_profile

PLANES: list[tuple[int, str, str]] = [
    (0, "on board", "1 on every point of the board"),
    (1, "own stones", "1 where the side to move has a stone"),
    (2, "opponent stones", "1 where the opponent has a stone"),
    (3, "one liberty", "1 on stones of chains with one liberty, of either colour"),
    (4, "two liberties", "1 on stones of chains with two liberties"),
    (5, "three liberties", "1 on stones of chains with three liberties"),
    (6, "ko-banned", "1 where ko or superko forbids a move; in an encore, where this ko may not be taken again"),
    (7, "ko blocked", "1 in an encore on stones that took a ko: retaking needs a pass for ko first"),
    (8, "unused", "0 everywhere (a ko feature of earlier versions)"),
    (9, "last move", "1 on the last move, the opponent's, if it was no pass"),
    (10, "move before", "1 on the move two turns ago, one's own, if it was no pass"),
    (11, "third last move", "1 on the move three turns ago, if it was no pass"),
    (12, "fourth last move", "1 on the move four turns ago, if it was no pass"),
    (13, "fifth last move", "1 on the move five turns ago, if it was no pass"),
    (14, "ladders", "1 on stones of chains in atari that cannot escape, or with two liberties that can be caught"),
    (15, "ladders one turn ago", "the same for the board before the last move"),
    (16, "ladders two turns ago", "the same for the board before the last two moves"),
    (17, "ladder moves", "1 where an own move catches an opponent's chain of two liberties in a ladder"),
    (18, "own area", "1 on points the side to move would score now (area rules; territory rules from encore 2 on)"),
    (19, "opponent area", "1 on points the opponent would score now"),
    (20, "own stones at encore", "1 in encore 2 where the side to move had a stone when it began"),
    (21, "opponent stones at encore", "1 in encore 2 where the opponent had a stone when it began"),
]
"""(plane, name, meaning), in order. Values are 0 or 1."""

GLOBALS: list[tuple[int, str, str]] = [
    (0, "last move passed", "1 if the last move was a pass"),
    (1, "move before passed", "1 if the move two turns ago was a pass"),
    (2, "third last passed", "1 if the move three turns ago was a pass"),
    (3, "fourth last passed", "1 if the move four turns ago was a pass"),
    (4, "fifth last passed", "1 if the move five turns ago was a pass"),
    (5, "komi", "komi and bonuses for the side to move, over 20; at most board area + 20 points in size"),
    (6, "superko", "1 under positional, situational and Spight ko; 0 under simple ko"),
    (7, "which superko", "0.5 positional or Spight, −0.5 situational, 0 simple"),
    (8, "suicide", "1 if suicide of several stones is legal"),
    (9, "territory", "1 under territory scoring"),
    (10, "tax", "1 if eyes in seki do not count (tax SEKI or ALL)"),
    (11, "group tax", "1 if every living group is taxed two points as well (tax ALL)"),
    (12, "encore", "1 in encore 1 and 2"),
    (13, "second encore", "1 in encore 2"),
    (14, "pass ends phase", "1 if a pass would end the game or this phase of it"),
    (15, "asymmetric playouts", "1 if the playout-doubling advantage is not 0"),
    (16, "advantage", "half the playout-doubling advantage of the side to move"),
    (17, "button", "1 while the button can still be taken"),
    (18, "komi parity", "wave in [−0.5, 0.5] of period 2: 0 at komis that can draw, rising there (area; encore 2)"),
]
"""(global, name, meaning), in order."""

PLANE_COUNT = len(PLANES)
KOMI_MARGIN = 20.0  # komi is clipped to the board's area and this many points
HISTORY_TURNS = 5
_RANGES = {"policy_optimism": (0.0, 1.0), "playout_doubling_advantage": (-3.0, 3.0)}
"""Options that are numbers; KataGo's networks are trained with playout-doubling advantages up to 3."""

_Ints: TypeAlias = NDArray[np.int64]
_Floats: TypeAlias = NDArray[np.float32]
_Marks: TypeAlias = NDArray[np.int8]
_Memory: TypeAlias = tuple[_Marks, _Marks, Records]
"""Working space: marks int8 [2, MAX_POINTS], area int8 [MAX_POINTS], BOARD [1]."""

_STONES = 1
_LIBERTIES = 3
_KO_BANNED = 6
_KO_BLOCKED = 7
_MOVES = 9
_LADDERS = 14
_LADDER_MOVES = 17
_AREA = 18
_ENCORE_STONES = 20


@njit
def _write_stones(b: Record, pla: int, locs: _Ints, planes: _Floats) -> None:
    """Planes 0–5: the board, its stones and their liberties."""
    for p in range(planes.shape[1]):
        loc = locs[p]
        planes[0, p] = 1
        stone = b.stones[loc]
        if stone != EMPTY:
            planes[_STONES if stone == pla else _STONES + 1, p] = 1
            liberties = wide(b.liberties[b.head[loc]])
            if liberties <= 3:
                planes[_LIBERTIES + liberties - 1, p] = 1


@njit
def _write_ko(b: Record, h: Record, locs: _Ints, planes: _Floats) -> None:
    """Planes 6 and 7: where ko rules forbid a move, or demand a pass for ko."""
    encore = h.encore_phase > 0
    for p in range(planes.shape[1]):
        loc = locs[p]
        if h.superko_banned[loc] == 1 or (not encore and b.ko == loc):
            planes[_KO_BANNED, p] = 1
        if encore and h.ko_blocked[loc] == 1:
            planes[_KO_BLOCKED, p] = 1


@njit
def _find_area(b: Record, h: Record, suicide_legal: bool, area: _Marks) -> bool:
    """Write who owns each point under the rules' scoring; False where that is not shown."""
    if h.scoring == SCORING_AREA and h.tax == TAX_NONE:
        calculate_area(b, area, True, True, True, suicide_legal)
        return True
    if h.scoring == SCORING_TERRITORY and h.encore_phase < 2:
        return False
    keep_territories = h.scoring == SCORING_TERRITORY and h.tax == TAX_NONE
    independent_life_area(b, area, keep_territories, h.scoring == SCORING_AREA, suicide_legal)
    return True


@njit
def _write_area(
    b: Record, h: Record, pla: int, suicide_legal: bool, locs: _Ints, area: _Marks, planes: _Floats
) -> None:
    """Planes 18 and 19: who would score which points."""
    if not _find_area(b, h, suicide_legal, area):
        return
    territory = h.scoring == SCORING_TERRITORY
    for p in range(planes.shape[1]):
        loc = locs[p]
        owner = area[loc]
        if owner == EMPTY and territory and b.stones[loc] == h.encore_start[loc]:
            owner = b.stones[loc]
        if owner == pla:
            planes[_AREA, p] = 1
        elif owner != EMPTY:
            planes[_AREA + 1, p] = 1


@njit
def _write_moves(h: Record, pla: int, turns: int, index_of: _Ints, planes: _Floats, row: _Floats) -> int:
    """Planes 9–13, globals 0–4: the last moves, `turns` at most; returns how many are shown."""
    turns = min(turns, wide(h.valid_turns))
    for k in range(turns):
        if h.recent_colour[k] != (pla if k % 2 else 3 - pla):
            return k
        loc = h.recent_loc[k]
        if loc == PASS_LOC:
            row[k] = 1
        elif loc != NULL_LOC:
            planes[_MOVES + k, index_of[loc]] = 1
    return turns


@njit
def _copy_marks(marks: _Marks, locs: _Ints, plane: _Floats) -> None:
    """Write the marks of the board's points to a plane, and clear them."""
    for p in range(plane.shape[0]):
        plane[p] = marks[locs[p]]
    marks[:] = 0


@njit
def _write_ladders(
    b: Record,
    h: Record,
    pla: int,
    turns: int,
    locs: _Ints,
    marks: _Marks,
    past: Records,
    scratch: Scratch,
    planes: _Floats,
) -> None:
    """Planes 14–17: ladders now, one and two turns ago as far as history is shown, and the moves that work now."""
    find_ladders(b, pla, marks[0], marks[1], scratch)
    _copy_marks(marks[0], locs, planes[_LADDERS])
    _copy_marks(marks[1], locs, planes[_LADDER_MOVES])
    for ago in range(1, 3):
        if turns < ago:
            planes[_LADDERS + ago] = planes[_LADDERS + ago - 1]
        else:
            if ago == 1:
                past[0] = b
            change_stones(past[0], h.recent_stones[ago])
            past[0].ko = h.recent_ko[ago]
            find_ladders(past[0], EMPTY, marks[0], marks[1], scratch)
            _copy_marks(marks[0], locs, planes[_LADDERS + ago])


@njit
def _write_encore_stones(h: Record, pla: int, locs: _Ints, planes: _Floats) -> None:
    """Planes 20 and 21: the stones at the start of the second encore."""
    for p in range(planes.shape[1]):
        stone = h.encore_start[locs[p]]
        if stone != EMPTY:
            planes[_ENCORE_STONES if stone == pla else _ENCORE_STONES + 1, p] = 1


@njit
def komi_wave(komi: float, area: int) -> float:
    """Global 18: how far the komi is from one that can draw, as a triangle wave of period 2.

    0 and rising where a draw is possible (komi of the parity of the board's area), 0.5 half a point above it.
    """
    parity = area % 2
    above: float = komi - (np.floor((komi - parity) / 2) * 2 + parity)
    if above < 0.5:
        return above
    if above < 1.5:
        return 1 - above
    return above - 2


@njit
def _write_rules(b: Record, h: Record, pla: int, row: _Floats) -> None:
    """Globals 5–13, 17 and 18: komi, the rules, the phase."""
    area = wide(b.xsize) * b.ysize
    limit = area + KOMI_MARGIN
    komi = min(max(self_komi(h, pla, 0.5), -limit), limit)
    row[5] = komi / 20
    if h.ko_rule != KO_SIMPLE:
        row[6] = 1
        row[7] = -0.5 if h.ko_rule == KO_SITUATIONAL else 0.5
    row[8] = h.suicide
    row[9] = h.scoring == SCORING_TERRITORY
    row[10] = h.tax != TAX_NONE
    row[11] = h.tax == TAX_ALL
    row[12] = h.encore_phase > 0
    row[13] = h.encore_phase > 1
    row[17] = h.has_button
    if h.scoring == SCORING_AREA or h.encore_phase >= 2:
        row[18] = komi_wave(komi, area)


@njit
def _encode_one(
    b: Record,
    h: Record,
    locs: _Ints,
    index_of: _Ints,
    memory: _Memory,
    scratch: Scratch,
    pass_alive_suicide: bool,
    planes: _Floats,
    row: _Floats,
) -> None:
    """Write one position's planes [22, H·W] and globals [19], both cleared before."""
    marks, area, past = memory
    pla = wide(h.to_play)
    _write_stones(b, pla, locs, planes)
    _write_ko(b, h, locs, planes)
    _write_area(b, h, pla, h.suicide == 1 or pass_alive_suicide, locs, area, planes)
    _write_rules(b, h, pla, row)

    pass_ends_phase = pass_would_end_phase(b, h, pla)
    turns = HISTORY_TURNS
    if pass_ends_phase and is_final_phase(h) and is_friendly_pass(b, h, pla):
        pass_ends_phase = False
        turns = 0
    elif is_over(h):
        turns = 1
    row[14] = pass_ends_phase
    turns = _write_moves(h, pla, turns, index_of, planes, row)
    _write_ladders(b, h, pla, turns, locs, marks, past, scratch, planes)
    if h.encore_phase >= 2:
        _write_encore_stones(h, pla, locs, planes)


@njit
def encode_katago(
    records: Records, symmetries: _Ints, planes: _Floats, globals_: _Floats, pass_alive_suicide: bool
) -> None:
    """Write planes [N, 22, H, W], C-contiguous, and globals [N, 19] of RECORDs [N] whose planes have one shape.

    With `pass_alive_suicide`, pass-alive areas are worked out as if suicide of several stones were legal.
    """
    n = len(records)
    points = planes.shape[2] * planes.shape[3]
    rows = planes.reshape((n, PLANE_COUNT, points))
    scratch = new_scratch()
    memory = (np.zeros((2, MAX_POINTS), np.int8), np.empty(MAX_POINTS, np.int8), np.empty(1, BOARD))
    locs = np.empty(MAX_POINTS, np.int64)
    index_of = np.empty(MAX_POINTS, np.int64)
    filled = -1
    for i in range(n):
        b = records[i].board
        key = (wide(b.xsize) * 32 + b.ysize) * SYMMETRIES + symmetries[i]
        if key != filled:
            filled = key
            fill_locs(b.xsize, b.ysize, symmetries[i], locs)
            for p in range(points):
                index_of[locs[p]] = p
        rows[i] = 0
        globals_[i] = 0
        h = records[i].history
        _encode_one(b, h, locs, index_of, memory, scratch, pass_alive_suicide, rows[i], globals_[i])


class KataGoEncoding(GoEncoding):
    """Positions as KataGo's networks see them; see `PLANES` and `GLOBALS`.

    Human networks (`metadata`) take a row float32 [N, 192] as well. With `pass_alive_suicide`, a flag of version 17
    files, areas are as if suicide of several stones were legal. The context: no_result_allowed, bool [N] (simple ko or
    territory scoring), and policy_optimism, float32 [N].

    Options to `bind`: `profile` (human networks, which need one; a name as in `keima.systems.katago.metadata`),
    `policy_optimism` (0 to 1; always 0 with metadata, as KataGo has it) and `playout_doubling_advantage` (−3 to 3 for
    the side to move).
    """

    name = "katago"
    planes = PLANE_COUNT
    globals = len(GLOBALS)
    masked = True

    def __init__(self, metadata: bool = False, pass_alive_suicide: bool = False) -> None:
        super().__init__()
        self.metadata = metadata
        self.pass_alive_suicide = pass_alive_suicide
        self.options = ("profile",) * metadata + ("policy_optimism", "playout_doubling_advantage")
        self.choices = {"profile": PROFILES} if metadata else {}
        self.profile: Profile | None = None
        self.policy_optimism = 0.0
        self.playout_doubling_advantage = 0.0

    def bind(self, **options: object) -> KataGoEncoding:
        """See `Encoding.bind`; raises BadRequest for an unknown profile too."""
        if options.get("profile") is not None and not self.metadata:
            raise BadRequest("this network has no human profiles (KataGo's human networks have); leave `profile` out")
        bound = super().bind(**options)
        if "profile" in options:
            bound.profile = None if options["profile"] is None else parse_profile(str(options["profile"]))
        for name, (least, most) in _RANGES.items():
            if name in options:
                setattr(bound, name, _number(name, options[name], least, most))
        return bound

    def check(self, position: Any) -> None:
        """Raise `UnsupportedPosition` unless it is a Go position under rules that KataGo's networks know, of any size.

        They are those of KataGo's `ModelDesc::getSupportedRules` (`cpp/neuralnet/desc.cpp`).
        """
        super().check(position)
        rules = position.rules
        if rules.ko == "SPIGHT":
            raise UnsupportedPosition("KataGo's networks know ko SIMPLE, POSITIONAL and SITUATIONAL, not SPIGHT")
        if rules.has_button and rules.scoring != "AREA":
            raise UnsupportedPosition("KataGo's networks know a button under AREA scoring only, not TERRITORY")

    def room(self, n: int, shape: tuple[int, int]) -> Batch:
        """A batch to be written."""
        inputs = super().room(n, shape).inputs
        if self.metadata:
            inputs["metadata"] = np.empty((n, METADATA), np.float32)
        context = {"no_result_allowed": np.empty(n, np.bool_), "policy_optimism": np.empty(n, np.float32)}
        return Batch(inputs, context)

    def write(self, records: Records, symmetries: NDArray[np.int64], batch: Batch) -> None:
        """See `Encoding`; raises BadRequest for a human network without a profile bound."""
        planes, globals_ = batch.inputs["planes"], batch.inputs["globals"]
        encode_katago(records, symmetries, planes, globals_, self.pass_alive_suicide)
        globals_[:, 15] = self.playout_doubling_advantage != 0
        globals_[:, 16] = self.playout_doubling_advantage / 2
        histories = records["history"]
        if self.metadata:
            profile = self.profile or parse_profile(None)
            area = planes.shape[2] * planes.shape[3]
            rows = np.stack([metadata_row(profile, black, area) for black in (False, True)])
            batch.inputs["metadata"][:] = rows[(histories["to_play"] == BLACK).astype(np.int64)]
        simple, territory = histories["ko_rule"] == KO_SIMPLE, histories["scoring"] == SCORING_TERRITORY
        batch.context["no_result_allowed"][:] = simple | territory
        batch.context["policy_optimism"][:] = 0.0 if self.metadata else self.policy_optimism


def _number(name: str, value: object, least: float, most: float) -> float:
    """An option that is a number; 0 for None."""
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not least <= value <= most:
        raise BadRequest(f"{name} is a number from {least:g} to {most:g}, not {value!r}")
    return float(value)


ENCODINGS = {"katago": KataGoEncoding()}
