"""What the Go encodings of this family share: the order of the planes' points under a symmetry, and the legal moves.

A symmetry is three bits (KataGo `cpp/neuralnet/nninputs.h`, `SymmetryHelpers`): 1 flips rows, 2 flips columns,
4 transposes after the flips. Planes have H rows and W columns; row 0 is the top of the board under symmetry 0.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keima.errors import UnsupportedPosition
from keima.games.go.board import MAX_POINTS, PASS_LOC, loc_of
from keima.games.go.vertices import SYMMETRIES, inverse, loc_to_vertex, symmetric_array
from keima.jit import njit
from keima.systems.encoding import Array, Batch, Encoding, LegalMoves

if TYPE_CHECKING:
    from typing_extensions import Self


@njit
def plane_steps(xsize: int, ysize: int, symmetry: int) -> tuple[int, int, int]:
    """How a plane runs over the board's points: where row 0, column 0 is, the step to the next row, the next column."""
    x = xsize - 1 if symmetry & 2 else 0
    y = ysize - 1 if symmetry & 1 else 0
    right = -1 if symmetry & 2 else 1
    down = -(xsize + 1) if symmetry & 1 else xsize + 1
    if symmetry & 4:
        return loc_of(x, y, xsize), right, down
    return loc_of(x, y, xsize), down, right


@njit
def fill_locs(xsize: int, ysize: int, symmetry: int, locs: NDArray[np.int64]) -> None:
    """Write the board's point (`board.py`'s loc) for each of the H·W points of a plane, in row order."""
    transposed = (symmetry & 4) != 0
    height = xsize if transposed else ysize
    width = ysize if transposed else xsize
    first, row_step, column_step = plane_steps(xsize, ysize, symmetry)
    for row in range(height):
        for column in range(width):
            locs[row * width + column] = first + row * row_step + column * column_step


@lru_cache(maxsize=64)
def policy_indices(xsize: int, ysize: int, symmetry: int) -> dict[str, int]:
    """Policy index of every GTP vertex and of "pass" (the last) under a symmetry."""
    locs = np.empty(xsize * ysize, np.int64)
    fill_locs(xsize, ysize, symmetry, locs)
    indices = {loc_to_vertex(loc, xsize, ysize): i for i, loc in enumerate(locs.tolist())}
    indices["pass"] = xsize * ysize
    return indices


@lru_cache(maxsize=64)
def policy_places(xsize: int, ysize: int) -> NDArray[np.int32]:
    """Where each point of the board stands in the policy under each symmetry, pass last: int32 [8, MAX_POINTS]."""
    places = np.zeros((SYMMETRIES, MAX_POINTS), np.int32)
    locs = np.empty(xsize * ysize, np.int64)
    for symmetry in range(SYMMETRIES):
        fill_locs(xsize, ysize, symmetry, locs)
        places[symmetry, locs] = np.arange(xsize * ysize)
        places[symmetry, PASS_LOC] = xsize * ysize
    return places


@njit
def _write_indices(moves: Array, counts: Array, symmetries: Array, places: Array, indices: Array) -> None:
    for k in range(len(counts)):
        for m in range(counts[k]):
            indices[k, m] = places[symmetries[k], moves[k, m]]


class GoEncoding(Encoding):
    """Any board, or one of `board_size` only (a network's heads fix it), its points in row order, pass last."""

    game = "go"
    symmetries = tuple(range(SYMMETRIES))
    pass_move = True  # whether the policy has a pass, as its last index H · W

    def __init__(self, board_size: int | None = None) -> None:
        self.board_size = board_size
        self.board = (board_size or 19,) * 2

    def of_size(self, board_size: int) -> Self:
        """The same encoding for boards of this size only."""
        sized = copy.copy(self)
        sized.board_size, sized.board = board_size, (board_size, board_size)
        return sized

    def check(self, position: Any) -> None:
        """Raise `UnsupportedPosition` unless this is a Go position of a size the encoding takes."""
        super().check(position)
        size = self.board_size
        if size is not None and (position.xsize, position.ysize) != (size, size):
            found = f"{position.xsize}×{position.ysize}"
            raise UnsupportedPosition(f"this network is for {size}×{size} boards, not {found}")

    def shape(self, position: Any, symmetry: int = 0) -> tuple[int, int]:
        """(H, W) of the planes: rows and columns of the board, swapped where the symmetry transposes."""
        return (position.xsize, position.ysize) if symmetry & 4 else (position.ysize, position.xsize)

    def write_indices(self, moves: Array, counts: Array, symmetries: Array, batch: Batch, indices: Array) -> None:
        """Write the policy index of every move; pass is H · W, which a policy without one does not have."""
        height, width = batch.inputs["planes"].shape[2:]
        xsize, ysize = (height, width) if len(symmetries) and symmetries[0] & 4 else (width, height)
        _write_indices(moves, counts, symmetries, policy_places(xsize, ysize), indices)

    def legal_moves(self, position: Any, symmetry: int = 0) -> LegalMoves:
        """The legal moves: index row · W + column in the planes' orientation, pass H · W; GTP vertices."""
        names = [name for name in position.legal() if self.pass_move or name != "pass"]
        table = policy_indices(position.xsize, position.ysize, symmetry)
        return LegalMoves(indices=np.array([table[name] for name in names], dtype=np.int64), names=names)

    def restore(self, points: Array, position: Any, symmetry: int) -> Array:
        """Turn a per-point output [H, W] of planes encoded under `symmetry` back to the board [ysize, xsize]."""
        return symmetric_array(points, inverse(symmetry))
