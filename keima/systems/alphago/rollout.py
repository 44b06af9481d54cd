"""AlphaGo's rollout policy: a linear softmax over fast local features, for playing games out in microseconds a move.

Source: Silver et al. 2016, Methods ("Rollout policy") and Extended Data Table 4. The features stand in
`local_features`; here positions are played out by them, moves drawn until both sides pass. Records: b BOARD, h HISTORY,
r ROLLOUT, tables WEIGHTS; `random` uint64 [1] is the generator's state.

    >>> from keima.games.go import Position
    >>> policy = RolloutPolicy()                       # no pattern known yet: uniform over sensible moves
    >>> policy.play_out(Position.start(9), games=100, seed=1).moves_per_game > 50
    True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest
from keima.games.go.board import BLACK, BOARD, EMPTY, MAX_POINTS, PASS_LOC, WHITE, loc_of, neighbour, opponent
from keima.games.go.vertices import loc_to_vertex
from keima.jit import Record, njit
from keima.systems.alphago.local_features import (
    NAKADE_PATTERNS,
    ROLLOUT,
    TABLE_SIZE,
    WEIGHTS,
    apply_local_features,
    insert_all,
    move_probabilities,
    rollout_play,
    start_rollout,
    undo_local_features,
)
from keima.systems.encoding import check_game
from keima.systems.playouts import Playouts

MAX_PATTERNS = TABLE_SIZE // 2
"""How many patterns of a kind a policy can know (131,072; the paper's has 69,338 and 32,207)."""

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
    total = 0.0
    for y in range(int(b.ysize)):
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


@dataclass(frozen=True)
class PlayOuts:
    """The outcome of playing one position out many times."""

    scores: NDArray[np.float64]  # [games], area points, Black's minus White's, komi taken off
    moves: int  # made in all games together, passes included

    @property
    def moves_per_game(self) -> float:
        """Mean length of the games."""
        return self.moves / len(self.scores)


class RolloutPolicy:
    """The linear softmax policy. Weights are log-odds: a feature with weight w multiplies a move's odds by e^w.

    Args:
        patterns: 3×3 code (24 bits, as `local_features` makes them) → weight; what is not given weighs 0.
        responses: response key (diamond and the move's place in it) → weight.
        nakade: float32 [8192].
        neighbour: float32 [8], row by row from the top left of the previous move.
        response: for matching any known response pattern.
        save_atari: for saving own stones from capture.

    Raises:
        BadRequest: more patterns than the tables hold, or arrays of another shape.
    """

    def __init__(
        self,
        patterns: Mapping[int, float] | None = None,
        responses: Mapping[int, float] | None = None,
        nakade: NDArray[np.float32] | None = None,
        neighbour: NDArray[np.float32] | None = None,
        response: float = 0.0,
        save_atari: float = 0.0,
    ) -> None:
        self.weights: NDArray[Any] = np.zeros(1, WEIGHTS)
        table = self.weights[0]
        table["response"] = np.exp(response)
        table["save_atari"] = np.exp(save_atari)
        table["neighbour"] = _exponential(neighbour, 8, "neighbour")
        table["nakade"] = _exponential(nakade, NAKADE_PATTERNS, "nakade")
        _fill(table["response_keys"], table["response_values"], responses or {}, "response")
        _fill(table["pattern_keys"], table["pattern_values"], patterns or {}, "3×3")

    def probabilities(self, position: Any) -> dict[str, float]:
        """The probability of every move the policy considers; {"pass": 1.0} when there is none."""
        check_game(position, "go", "a rollout policy")
        probabilities = np.empty(MAX_POINTS, np.float64)
        move_probabilities(position.board[0], position.history[0], self.weights[0], probabilities)
        size = position.xsize, position.ysize
        points = np.flatnonzero(probabilities).tolist()
        return {loc_to_vertex(loc, *size): float(probabilities[loc]) for loc in points} or {"pass": 1.0}

    def play_out(self, position: Any, games: int = 1, seed: int = 0) -> PlayOuts:
        """Play the position out to the end many times, both sides by this policy; the same seed, the same games.

        The end is scored by area on the final board, komi included, whatever the position's own scoring.

        Raises:
            UnsupportedPosition: not a Go position.
            BadRequest: fewer than one game.
        """
        check_game(position, "go", "a rollout policy")
        if games < 1:
            raise BadRequest(f"cannot play {games} games")
        scores = np.empty(games, np.int32)
        random = np.random.default_rng(seed).integers(1, 2**63, 1, np.uint64)
        moves = play_out_many(position.board[0], position.history[0], self.weights[0], scores, random)
        return PlayOuts(scores - position.komi, int(moves))


def _exponential(weights: NDArray[np.float32] | None, size: int, name: str) -> NDArray[np.float32]:
    if weights is None:
        return np.ones(size, np.float32)
    if np.shape(weights) != (size,):
        raise BadRequest(f"{name} weights must have shape ({size},), not {np.shape(weights)}")
    return np.exp(np.asarray(weights, np.float32))


def _fill(keys: NDArray[np.uint64], values: NDArray[np.float32], weights: Mapping[int, float], name: str) -> None:
    if len(weights) > MAX_PATTERNS:
        raise BadRequest(f"{len(weights):,} {name} patterns; a policy holds at most {MAX_PATTERNS:,}")
    factors = np.exp(np.fromiter(weights.values(), np.float64, len(weights)))
    insert_all(keys, values, np.fromiter(weights, np.uint64, len(weights)), factors.astype(np.float32))


PLAYOUTS = Playouts("go", play_out_once, RolloutPolicy)
