"""Playing positions out by the rollout policy: moves drawn from its linear softmax until both sides pass.

Records: b BOARD, h HISTORY, r ROLLOUT, tables WEIGHTS; `random` uint64 [1] is the generator's state.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keima.games.go.board import BLACK, BOARD, EMPTY, MAX_POINTS, PASS_LOC, WHITE, loc_of, neighbour, opponent
from keima.jit import Record, njit
from keima.systems.alphago.local_features import (
    ROLLOUT,
    apply_local_features,
    rollout_play,
    start_rollout,
    undo_local_features,
)

_MULTIPLIER = np.uint64(0x2545F4914F6CDD1D)
_U11, _U12, _U25, _U27 = (np.uint64(n) for n in (11, 12, 25, 27))
_UNIT = 1.0 / (1 << 53)


@njit
def random_unit(state: NDArray[np.uint64]) -> float:
    """A uniform number in [0, 1) (xorshift64*); `state`, never 0, is moved on."""
    x = state[0]
    x ^= x >> _U12
    x ^= x << _U25
    x ^= x >> _U27
    state[0] = x
    return float((x * _MULTIPLIER) >> _U11) * _UNIT


@njit
def choose_move(b: Record, r: Record, tables: Record, colour: int, random: NDArray[np.uint64]) -> int:
    """Draw a move for `colour` from the linear softmax; PASS_LOC when no move is left."""
    apply_local_features(b, r, tables, colour)
    ysize = int(b.ysize)
    total = 0.0
    for y in range(ysize):
        total += r.row[colour, y]
    chosen = PASS_LOC
    if total > 0.0:
        chosen = _draw(b, r, colour, random_unit(random) * total)
    undo_local_features(b, r, tables, colour)
    return chosen


@njit
def _draw(b: Record, r: Record, colour: int, at: float) -> int:
    """The point where the running sum of weights passes `at`; rounding at the very end falls to the last move."""
    last = PASS_LOC
    for y in range(int(b.ysize)):
        row = r.row[colour, y]
        if at >= row and y < b.ysize - 1:
            at -= row
            continue
        start = loc_of(0, y, int(b.xsize))
        for loc in range(start, start + int(b.xsize)):
            weight = r.weight[colour, loc]
            if weight > 0.0:
                last = loc
                at -= weight
                if at < 0.0:
                    return loc
    return last if last != PASS_LOC else _any_move(b, r, colour)


@njit
def _any_move(b: Record, r: Record, colour: int) -> int:
    """The last point with any weight, else PASS_LOC."""
    last = PASS_LOC
    for loc in range(MAX_POINTS):
        if r.weight[colour, loc] > 0.0:
            last = loc
    return last


@njit
def play_out(b: Record, r: Record, tables: Record, colour: int, limit: int, random: NDArray[np.uint64]) -> int:
    """Play moves drawn from the policy until both sides pass or `limit` moves; how many were made, passes included.

    `b` and `r` (started on `b`) are played to the end.
    """
    passes = 0
    for move in range(limit):
        loc = choose_move(b, r, tables, colour, random)
        rollout_play(b, r, tables, loc, colour)
        passes = passes + 1 if loc == PASS_LOC else 0
        if passes == 2:
            return move + 1
        colour = opponent(colour)
    return limit


@njit
def area_of_final_board(b: Record) -> int:
    """Black's points minus White's on a board played out: stones, and empty points that only one colour touches."""
    stride = int(b.stride)
    score = 0
    for y in range(int(b.ysize)):
        for x in range(int(b.xsize)):
            loc = loc_of(x, y, int(b.xsize))
            black = b.stones[loc] == BLACK
            white = b.stones[loc] == WHITE
            if b.stones[loc] == EMPTY:
                for k in range(4):
                    black |= b.stones[neighbour(loc, k, stride)] == BLACK
                    white |= b.stones[neighbour(loc, k, stride)] == WHITE
            score += int(black) - int(white) if black != white else 0
    return score


@njit
def play_out_many(b: Record, h: Record, tables: Record, scores: NDArray[np.int32], random: NDArray[np.uint64]) -> int:
    """Play a position out N times and write Black's area minus White's, without komi; how many moves were made in all.

    `b` is left as it is; `scores` is int32 [N].
    """
    begin = np.empty(1, ROLLOUT)
    start_rollout(b, h, begin[0], tables)
    boards = np.empty(1, BOARD)
    rollouts = np.empty(1, ROLLOUT)
    moves = 0
    limit = 3 * int(b.xsize) * int(b.ysize)
    for i in range(scores.shape[0]):
        boards[0] = b
        rollouts[0] = begin[0]
        moves += play_out(boards[0], rollouts[0], tables, int(h.to_play), limit, random)
        scores[i] = area_of_final_board(boards[0])
    return moves


@njit
def play_out_once(p: Record, weights: Record, random: NDArray[np.uint64]) -> float:
    """Play a position out: 1 a win of the side to move, −1 a loss, 0 a draw."""
    h = p.history
    scores = np.empty(1, np.int32)
    play_out_many(p.board, h, weights, scores, random)
    points = scores[0] - h.komi - h.white_handicap_bonus
    if points == 0:
        return 0.0
    return 1.0 if (points > 0) == (h.to_play == BLACK) else -1.0
