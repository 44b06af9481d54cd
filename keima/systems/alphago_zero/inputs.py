"""AlphaGo Zero's 17 planes and Leela Zero's 18: eight boards of stones, and whose turn it is.

Sources: D. Silver et al., Nature 550 (2017), Methods, "Neural network architecture", and Leela Zero 0.17,
`src/Network.cpp`. Both show the current board and the seven before it, the stones of the side to move apart from the
opponent's; boards from before the game are empty (all zeros). The rules and komi are not shown: the networks were
trained for one rule set (area scoring, komi 7.5).

The two differ in order, and in how the turn is shown. `PLANES` and `LEELA_ZERO_PLANES` are the tables; worked values,
for a board after Black D4, White Q16 with Black to move, symmetry 0 (row 0 is the top, so D4 is row 15, column 3):

    AlphaGo Zero  now: plane 0 has a 1 at D4, plane 1 at Q16; one move ago: plane 2 at D4, plane 3 nowhere; planes 4–15
                  are zero; plane 16 is all ones (Black to move)
    Leela Zero    planes 0 and 1 have a 1 at D4; plane 8 at Q16; planes 2–7 and 9–15 are zero; plane 16 is all ones
                  and plane 17 zero (Black to move)

Some documents list AlphaGo Zero's planes as "8 own, 8 opponent, colour". That counts them; the paper's order
interleaves, s_t = [X_t, Y_t, X_t−1, Y_t−1, …, X_t−7, Y_t−7, C], and so does this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from keima.games.go.board import BLACK, WHITE
from keima.games.go.history import RECENT
from keima.jit import Records, njit
from keima.systems.encoding import Array, Batch, LegalMoves, symmetry_list
from keima.systems.go_points import GoEncoding, plane_steps

_Ints: TypeAlias = NDArray[np.int64]
_Floats: TypeAlias = NDArray[np.float32]

BOARDS = RECENT  # T, the number of boards shown, the current one first: 8


def _ago(t: int) -> str:
    return "now" if t == 0 else "1 move ago" if t == 1 else f"{t} moves ago"


PLANES: tuple[str, ...] = (
    *(f"{whose} stones, {_ago(t)}" for t in range(BOARDS) for whose in ("own", "opponent's")),
    "all ones if Black is to move",
)
"""AlphaGo Zero's planes in order, 17."""

LEELA_ZERO_PLANES: tuple[str, ...] = (
    *(f"own stones, {_ago(t)}" for t in range(BOARDS)),
    *(f"opponent's stones, {_ago(t)}" for t in range(BOARDS)),
    "all ones if Black is to move",
    "all ones if White is to move",
)
"""Leela Zero's planes in order, 18."""


@njit
def _fill_stones(records: Records, symmetries: _Ints, step: int, opponent: int, planes: _Floats) -> None:
    """Write the 2·T stone planes: own at `step`·t, the opponent's `opponent` planes later.

    The boards' sizes follow from the planes' shape and the symmetry.
    """
    height, width = planes.shape[2], planes.shape[3]
    for i in range(len(records)):
        h = records[i].history
        symmetry = symmetries[i]
        xsize, ysize = (height, width) if symmetry & 4 else (width, height)
        steps = plane_steps(xsize, ysize, symmetry)
        boards = min(int(h.turns) + 1, BOARDS)
        for t in range(boards):
            _fill_board(h.recent_stones[t], h.to_play, steps, planes[i, step * t], planes[i, step * t + opponent])
        for t in range(boards, BOARDS):
            planes[i, step * t] = 0
            planes[i, step * t + opponent] = 0


@njit
def _fill_board(
    stones: NDArray[np.int8], to_play: int, steps: tuple[int, int, int], mine: _Floats, theirs: _Floats
) -> None:
    """Write one board's two planes [H, W]; `steps` as from `plane_steps`."""
    own = np.int8(to_play)
    other = np.int8(BLACK + WHITE) - own
    first, row_step, column_step = steps
    width = mine.shape[1]
    for row in range(mine.shape[0]):
        start = first + row * row_step
        if column_step == 1:  # the usual case, written so that it compiles to vector instructions
            run = stones[start : start + width]
            for column in range(width):
                mine[row, column] = run[column] == own
                theirs[row, column] = run[column] == other
        else:
            for column in range(width):
                stone = stones[start + column * column_step]
                mine[row, column] = stone == own
                theirs[row, column] = stone == other


@njit
def encode_alphago_zero(records: Records, symmetries: _Ints, planes: _Floats) -> None:
    """Write planes [N, 17, H, W] of RECORDs [N], all of the board size that gives H × W under their symmetries."""
    _fill_stones(records, symmetries, 2, 1, planes)
    for i in range(len(records)):
        planes[i, 2 * BOARDS] = records[i].history.to_play == BLACK


@njit
def encode_leela_zero(records: Records, symmetries: _Ints, planes: _Floats) -> None:
    """As `encode_alphago_zero`, with planes [N, 18, H, W]."""
    _fill_stones(records, symmetries, 1, BOARDS, planes)
    for i in range(len(records)):
        planes[i, 2 * BOARDS] = records[i].history.to_play == BLACK
        planes[i, 2 * BOARDS + 1] = records[i].history.to_play == WHITE


class AlphaGoZeroEncoding(GoEncoding):
    """AlphaGo Zero's inputs: `PLANES`, no globals. The context has `black_to_play`, bool [N]."""

    name = "alphago-zero"
    planes = len(PLANES)
    _encode = staticmethod(encode_alphago_zero)

    def room(self, n: int, shape: tuple[int, int]) -> Batch:
        """A batch to be written."""
        return Batch(super().room(n, shape).inputs, {"black_to_play": np.empty(n, np.bool_)})

    def write(self, records: Records, symmetries: _Ints, batch: Batch) -> None:
        """Write the planes, and who moves."""
        self._encode(records, symmetries, batch.inputs["planes"])
        batch.context["black_to_play"][:] = records["history"]["to_play"] == BLACK


class LeelaZeroEncoding(AlphaGoZeroEncoding):
    """Leela Zero's inputs: `LEELA_ZERO_PLANES`, no globals.

    Leela Zero counts rows from the bottom, so the transpositions among its symmetries are about the other diagonal:
    its 0–3 are ours, its 4, 5, 6, 7 are our 7, 6, 5, 4. With `leelaz_symmetries`, as networks have it, `encode`,
    `legal_moves` and `restore` number them so (leelaz's `heatmap 4`); `write` and `write_indices` follow ours.
    """

    name = "leela-zero"
    planes = len(LEELA_ZERO_PLANES)
    _encode = staticmethod(encode_leela_zero)

    def __init__(self, board_size: int | None = None, leelaz_symmetries: bool = False) -> None:
        super().__init__(board_size)
        self.leelaz_symmetries = leelaz_symmetries

    def _ours(self, symmetry: int) -> int:
        return symmetry ^ 3 if self.leelaz_symmetries and symmetry & 4 else symmetry

    def encode(self, positions: Sequence[Any], symmetries: Sequence[int] | int = 0) -> Batch:
        """Encode N positions of one shape, the symmetries in this encoding's numbering."""
        each = symmetry_list(symmetries, len(positions), self.symmetries)
        return super().encode(positions, [self._ours(symmetry) for symmetry in each.tolist()])

    def legal_moves(self, position: Any, symmetry: int = 0) -> LegalMoves:
        """The legal moves and their indices in the policy [H·W + 1], pass last."""
        return super().legal_moves(position, self._ours(symmetry))

    def restore(self, points: Array, position: Any, symmetry: int) -> Array:
        """Turn a per-point output [H, W] back to the board's rows [ysize, xsize]."""
        return super().restore(points, position, self._ours(symmetry))


ENCODINGS = {"alphago-zero": AlphaGoZeroEncoding(), "leela-zero": LeelaZeroEncoding()}
