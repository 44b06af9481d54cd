"""What the search asks of a game: compiled functions on flat records, and the names of moves.

    kernels.py of a game:  KERNELS = Kernels(...)

A compiled function takes `p`, one position (a record of `Kernels.dtype`), and mostly `scratch`, the working space of
one tree (a record of `Kernels.scratch`), which `prepare` fills from the tree's root and `begin` brings back to it.
Between two calls of `begin` the search plays the moves of one descent, so that `scratch` may keep count of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.jit import Record, Records, njit

ONGOING = 2
"""What `Kernels.result` says of a game that goes on; −1, 0 and 1 are a loss, a draw and a win."""
NO_KEY = np.uint64(0)
"""The key of a position whose evaluation no other shares."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@njit
def mix(x: np.uint64) -> np.uint64:
    """Scramble 64 bits, one to one (SplitMix64's finish)."""
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


@njit
def chain(key: np.uint64, fact: int) -> np.uint64:
    """A key with one more fact; the order matters."""
    return mix(key * GOLDEN + np.uint64(fact) + _S31)


EMPTY = np.dtype([("unused", np.int64)])
"""Working space of a game that needs none."""


@njit
def nothing(p: Record, scratch: Record) -> None:
    """Default of `prepare`."""


@njit
def at_root(scratch: Record) -> None:
    """Default of `begin`."""


@njit
def no_cycle(p: Record) -> int:
    """Default of `cycle`: positions do not come back."""
    return 0


@njit
def never(p: Record, scratch: Record) -> bool:
    """Default of `wins_at_once`: it is not looked for."""
    return False


@njit
def no_forced_win(p: Record, scratch: Record) -> tuple[int, int]:
    """Default of `forced_win`: none is looked for."""
    return -1, 0


def joined(records: Sequence[Records]) -> Records:
    """All these records, each [1], in a fresh array [N]; joined as bytes, for NumPy would copy field by field."""
    return np.frombuffer(bytearray().join([record.tobytes() for record in records]), records[0].dtype)


def no_points(position: Any) -> float:
    """Default of `side_length`: the game is not counted in points."""
    return 0.0


def moves_since(old: Any, new: Any) -> list[str] | None:
    """Default of `moves_between`: both begin alike and `new` has more moves."""
    known = len(old.moves)
    return list(new.moves[known:]) if new.moves[:known] == old.moves else None


@dataclass(frozen=True)
class Kernels:
    """A game as the search knows it. The functions marked * are compiled (`keima.jit.njit`).

    Attributes:
        dtype: of a position's record; equal positions may differ in it.
        max_moves: room for the legal moves of one position; a move is an int16.
        play: * (p, scratch, move): make a legal move.
        side: * (p) → the number of the side to move, from 0 to 255.
        other: * (side) → the other side's number.
        result: * (p, scratch) → (−1, 0, 1 for the side to move, or ONGOING; its points, NaN where the game has none).
        legal_moves: * (p, scratch, moves) → how many were written into `moves` (int16 [max_moves]); called after
            `result` of the same position, so that what that found need not be found again.
        key: * (p, scratch, history) → a hash (uint64) of all that evaluation and legal moves depend on, and of as many
            earlier moves; `NO_KEY` where evaluations are not shared.
        name: (position, move, side) → the name of a move made by that side; `position` is any of the same board.
        code: (position, name) → the move of a name; −1 if no legal move of the position has it.
        scratch: dtype of a tree's working space.
        prepare: * (p, scratch): before anything else, with the root.
        begin: * (scratch): a descent begins at the root.
        cycle: * (p) → plies since this position occurred before, 0 if it did not.
        wins_at_once: * (p, scratch) → has the side to move a move that wins? Asked where the search proves results.
        forced_win: * (p, scratch) → (a move that wins by force, −1 if none is seen; plies from there to the end); asked
            of a root.
        side_length: (position) → the board's side, what points are measured by; 0 where the game is not scored.
        draw_side: the number of the side for which a draw is worth `draw_score`, so that it is worth less to the other:
            White, or the side that moves first.
        moves_between: (old, new) → the moves that lead from one position to the other, the sides in turn; or None.
    """

    dtype: np.dtype[Any]
    max_moves: int
    play: Callable[[Record, Record, int], None]
    side: Callable[[Record], int]
    other: Callable[[int], int]
    result: Callable[[Record, Record], tuple[int, float]]
    legal_moves: Callable[[Record, Record, NDArray[np.int16]], int]
    key: Callable[[Record, Record, int], np.uint64]
    name: Callable[[Any, int, int], str]
    code: Callable[[Any, str], int]
    scratch: np.dtype[Any] = EMPTY
    prepare: Callable[[Record, Record], None] = nothing
    begin: Callable[[Record], None] = at_root
    cycle: Callable[[Record], int] = no_cycle
    wins_at_once: Callable[[Record, Record], bool] = never
    forced_win: Callable[[Record, Record], tuple[int, int]] = no_forced_win
    side_length: Callable[[Any], float] = no_points
    draw_side: int = 0
    moves_between: Callable[[Any, Any], list[str] | None] = moves_since

    def new_scratch(self, root: Records) -> Records:
        """The working space of a tree with this root ([1] of `dtype`): [1] of `scratch`."""
        scratch = np.zeros(1, self.scratch)
        self.prepare(root[0], scratch[0])
        self.begin(scratch[0])
        return scratch
