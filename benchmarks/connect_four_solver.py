"""A perfect player of connect four: the truth that networks and searches are held to.

Alpha-beta on bitboards with a transposition table, moves that leave the opponent a win left out, the rest tried by the
threats they make (P. Pons, "Solving Connect 4: how to build a perfect AI"). A score tells how the game ends under best
play and how soon: +1 is a win with the winner's last disc (the 21st, 22nd with the board all but full), +2 with the one
before; 0 a draw; negative a loss. With 12 discs on the board a position takes some 50 ms, with 6 a minute, the empty
board an hour.

    python benchmarks/connect_four_solver.py             the value of every first move: −2 −1 0 1 0 −1 −2
    python benchmarks/connect_four_solver.py ddcc        of every move after these
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from keima.games.connect_four.kernels import NAMES
from keima.games.connect_four.position import Position

COLUMNS, ROWS, SQUARES = 7, 6, 42
TABLE = (1 << 23) + 9
"""Entries, a prime: of two positions of one entry the low 32 bits differ (Chinese remainder, keys have 49 bits)."""

U = np.uint64
BOTTOM = U(sum(1 << 7 * column for column in range(COLUMNS)))
BOARD = U(int(BOTTOM) * ((1 << ROWS) - 1))
COLUMN_MASKS = np.array([((1 << ROWS) - 1) << 7 * column for column in range(COLUMNS)], U)
CENTRE_FIRST = np.array([3, 2, 4, 1, 5, 0, 6])
_ZERO, _ONE, _TWO, _THREE, _SIZE = U(0), U(1), U(2), U(3), U(TABLE)
_DIRECTIONS = np.array([7, 6, 8], U)

F = TypeVar("F", bound=Callable[..., object])


def njit(function: F) -> F:
    """Compiled without a cache: a cached script is not found again when it is imported, nor the other way round."""
    return cast(F, numba.njit(nogil=True)(function))


Table = tuple[NDArray[np.uint32], NDArray[np.int8]]


def new_table() -> Table:
    """An empty transposition table, 40 MB."""
    return np.zeros(TABLE, np.uint32), np.zeros(TABLE, np.int8)


@njit
def popcount(x: np.uint64) -> int:
    """Bits that are 1."""
    count = 0
    while x:
        x &= x - _ONE
        count += 1
    return count


@njit
def completing(discs: np.uint64, mask: np.uint64) -> np.uint64:
    """The empty squares, reachable or not, where one more of these discs makes four. `mask`: all discs."""
    found = (discs << _ONE) & (discs << _TWO) & (discs << _THREE)
    for step in _DIRECTIONS:
        pair = (discs << step) & (discs << (_TWO * step))
        found |= pair & (discs << (_THREE * step))
        found |= pair & (discs >> step)
        pair = (discs >> step) & (discs >> (_TWO * step))
        found |= pair & (discs << step)
        found |= pair & (discs >> (_THREE * step))
    return found & (BOARD ^ mask)


@njit
def reachable(mask: np.uint64) -> np.uint64:
    """The squares the next disc may fall to."""
    return (mask + BOTTOM) & BOARD


@njit
def wins_at_once(own: np.uint64, mask: np.uint64) -> bool:
    """Can the side to move make four?"""
    return bool((completing(own, mask) & reachable(mask)) != _ZERO)


@njit
def safe_moves(own: np.uint64, mask: np.uint64) -> np.uint64:
    """The moves after which the opponent cannot make four at once; the side to move cannot either."""
    possible = reachable(mask)
    threats = completing(own ^ mask, mask)
    forced = possible & threats
    if forced:
        if forced & (forced - _ONE):
            return _ZERO
        possible = forced
    return possible & ~(threats >> _ONE)


@njit
def negamax(
    own: np.uint64,
    mask: np.uint64,
    discs: np.int64,
    alpha: np.int64,
    beta: np.int64,
    keys: NDArray[np.uint32],
    values: NDArray[np.int8],
    nodes: NDArray[np.int64],
) -> np.int64:
    """The score if it lies between alpha and beta, else a bound; the side to move cannot make four at once."""
    nodes[0] += 1
    moves = safe_moves(own, mask)
    if not moves:
        return np.int64(-((SQUARES - discs) // 2))
    if discs >= SQUARES - 2:
        return np.int64(0)
    lowest = np.int64(-((SQUARES - 2 - discs) // 2))
    if alpha < lowest:
        alpha = lowest
        if alpha >= beta:
            return alpha
    highest = np.int64((SQUARES - 1 - discs) // 2)
    key = own + mask
    entry = np.int64(key % _SIZE)
    known = np.int64(values[entry]) if keys[entry] == np.uint32(key & U(0xFFFFFFFF)) else np.int64(0)
    if known > 50:  # a lower bound, as score + 100
        if known - 100 > alpha:
            alpha = known - 100
            if alpha >= beta:
                return alpha
    elif known != 0:  # an upper bound, as score − 50
        highest = min(highest, known + 50)
    if beta > highest:
        beta = highest
        if alpha >= beta:
            return beta
    order = np.zeros(COLUMNS, np.uint64)
    ranks = np.zeros(COLUMNS, np.int64)
    count = 0
    for column in CENTRE_FIRST:
        move = moves & COLUMN_MASKS[column]
        if not move:
            continue
        rank = popcount(completing(own | move, mask | move))
        k = count
        while k > 0 and ranks[k - 1] < rank:
            order[k], ranks[k] = order[k - 1], ranks[k - 1]
            k -= 1
        order[k], ranks[k] = move, rank
        count += 1
    for k in range(count):
        score = -negamax(own ^ mask, mask | order[k], discs + 1, -beta, -alpha, keys, values, nodes)
        if score >= beta:
            keys[entry], values[entry] = np.uint32(key & U(0xFFFFFFFF)), score + 100
            return score
        alpha = max(alpha, score)
    keys[entry], values[entry] = np.uint32(key & U(0xFFFFFFFF)), alpha - 50
    return alpha


@njit
def solve_bits(
    own: np.uint64, mask: np.uint64, keys: NDArray[np.uint32], values: NDArray[np.int8], nodes: NDArray[np.int64]
) -> int:
    """The score of a position that is not over, for the side to move; by halving the interval it lies in."""
    discs = np.int64(popcount(mask))
    if wins_at_once(own, mask):
        return int((SQUARES + 1 - discs) // 2)
    low, high = np.int64(-((SQUARES - discs) // 2)), np.int64((SQUARES + 1 - discs) // 2)
    while low < high:
        middle = low + (high - low) // 2
        if middle <= 0 and low // 2 < middle:
            middle = low // 2
        elif middle >= 0 and high // 2 > middle:
            middle = high // 2
        score = negamax(own, mask, discs, np.int64(middle), np.int64(middle + 1), keys, values, nodes)
        if score <= middle:
            high = score
        else:
            low = score
    return int(low)


class Solver:
    """Solves positions; what it has found stays in its table."""

    def __init__(self) -> None:
        self._keys, self._values = new_table()
        self._nodes = np.zeros(1, np.int64)

    @property
    def nodes(self) -> int:
        """Positions looked at so far."""
        return int(self._nodes[0])

    def score(self, position: Position) -> int:
        """The score for the side to move, of a finished game too."""
        record = position.record[0]
        if position.is_over:
            return 0 if position.winner is None else -((SQUARES + 2 - int(record["ply"])) // 2)
        own, mask = U(record["own"]), U(record["own"] | record["other"])
        return int(solve_bits(own, mask, self._keys, self._values, self._nodes))

    def scores(self, position: Position) -> dict[str, int]:
        """The score of every legal move, for the side that makes it."""
        return {move: -self.score(position.play(move)) for move in position.legal()}

    def best(self, position: Position) -> list[str]:
        """The moves that keep the value of the game: win, draw or loss (not necessarily the quickest way)."""
        scores = {move: int(np.sign(score)) for move, score in self.scores(position).items()}
        return [move for move, value in scores.items() if value == max(scores.values())]

    def value(self, position: Position) -> int:
        """1, 0 or −1 for the side to move under best play."""
        return int(np.sign(self.score(position)))


def random_positions(count: int, discs: int, seed: int = 0) -> list[Position]:
    """Positions after so many random discs in which the game goes on, none twice."""
    rng = np.random.default_rng(seed)
    found: dict[bytes, Position] = {}
    while len(found) < count:
        position = Position.start()
        for _ in range(discs):
            if position.is_over:
                break
            position = position.play(str(rng.choice(position.legal())))
        if not position.is_over:
            found[position.record.tobytes()] = position
    return list(found.values())


def main() -> None:
    """Print the score of every move of a position."""
    position = Position.start().play(*(sys.argv[1] if len(sys.argv) > 1 else ""))
    solver = Solver()
    print(position)
    for move in sorted(position.legal(), key=lambda name: abs(NAMES.index(name) - 3), reverse=True):
        begun = time.perf_counter()
        score = -solver.score(position.play(move))
        print(f"{move} {score:+d}   {solver.nodes:,} positions, {time.perf_counter() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    main()
