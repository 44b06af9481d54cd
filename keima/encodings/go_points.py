"""What the Go encodings of this family share: the order of the planes' points under a symmetry, and the legal moves.

A symmetry is three bits (KataGo `cpp/neuralnet/nninputs.h`, `SymmetryHelpers`): 1 flips rows, 2 flips columns,
4 transposes after the flips. Planes have H rows and W columns; row 0 is the top of the board under symmetry 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.encodings.encoding import Array, LegalMoves
from keima.errors import BadRequest, UnsupportedPosition
from keima.games.go.board import MAX_POINTS, PASS_LOC, loc_of
from keima.games.go.symmetry import SYMMETRIES, inverse, symmetric_array
from keima.games.go.vertices import loc_to_vertex
from keima.jit import njit


@njit
def plane_steps(xsize: int, ysize: int, symmetry: int) -> tuple[int, int, int]:
    """How a plane runs over the board's points: where row 0, column 0 is, the step to the next row, the next column.

    Args:
        xsize: columns of the board.
        ysize: rows of the board.
        symmetry: 0–7.
    """
    x = xsize - 1 if symmetry & 2 else 0
    y = ysize - 1 if symmetry & 1 else 0
    right = -1 if symmetry & 2 else 1
    down = -(xsize + 1) if symmetry & 1 else xsize + 1
    if symmetry & 4:
        return loc_of(x, y, xsize), right, down
    return loc_of(x, y, xsize), down, right


@njit
def fill_locs(xsize: int, ysize: int, symmetry: int, locs: NDArray[np.int64]) -> None:
    """Write the board's point (`board.py`'s loc) for each of the H·W points of a plane, in row order.

    Args:
        xsize: columns of the board.
        ysize: rows of the board.
        symmetry: 0–7.
        locs: int64 [≥ H·W], written.
    """
    transposed = (symmetry & 4) != 0
    height = xsize if transposed else ysize
    width = ysize if transposed else xsize
    first, row_step, column_step = plane_steps(xsize, ysize, symmetry)
    for row in range(height):
        for column in range(width):
            locs[row * width + column] = first + row * row_step + column * column_step


def go_shape(position: Any, symmetry: int) -> tuple[int, int]:
    """(H, W) of the planes of a position under a symmetry."""
    return (position.xsize, position.ysize) if symmetry & 4 else (position.ysize, position.xsize)


def symmetry_list(symmetries: Sequence[int] | int, n: int) -> NDArray[np.int64]:
    """Symmetries as int64 [n].

    Raises:
        BadRequest: a symmetry outside 0–7, or not as many as positions.
    """
    each = np.full(n, symmetries) if isinstance(symmetries, (int, np.integer)) else np.asarray(list(symmetries))
    if each.shape != (n,):
        raise BadRequest(f"{n} positions need {n} symmetries, not {each.size}")
    if n and (each.dtype.kind not in "iu" or each.min() < 0 or each.max() >= SYMMETRIES):
        raise BadRequest(f"symmetries are whole numbers from 0 to 7, not {symmetries!r}")
    return each.astype(np.int64)


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


def go_legal_moves(position: Any, symmetry: int, pass_move: bool = True) -> LegalMoves:
    """The position's legal moves with their policy indices (H·W + 1 moves, pass last) under a symmetry.

    Args:
        position: a Go position.
        symmetry: 0–7.
        pass_move: include the pass; False for a policy that has none.
    """
    names = [name for name in position.legal() if pass_move or name != "pass"]
    table = policy_indices(position.xsize, position.ysize, symmetry)
    return LegalMoves(indices=np.array([table[name] for name in names], dtype=np.int64), names=names)


def restore_points(points: Array, symmetry: int) -> Array:
    """Turn a per-point array [H, W] of planes encoded under `symmetry` back to the board's rows [ysize, xsize]."""
    return symmetric_array(points, inverse(symmetry))


def check_go_position(position: Any, encoding: str, board_size: int | None = None) -> None:
    """Raise unless `position` is a Go position, and of that size where `board_size` is given.

    Raises:
        UnsupportedPosition: it is not; the message says what the encoding takes.
    """
    if not hasattr(position, "xsize"):
        found = "a chess position" if hasattr(position, "fen") else type(position).__name__
        raise UnsupportedPosition(f"the {encoding} encoding takes Go positions, not {found}")
    if board_size is not None and (position.xsize, position.ysize) != (board_size, board_size):
        found = f"{position.xsize}×{position.ysize}"
        raise UnsupportedPosition(f"this network is for {board_size}×{board_size} boards, not {found}")


def stack(positions: Sequence[Any]) -> tuple[Array, Array]:
    """The positions' records side by side: BOARD [N] and HISTORY [N]."""
    return stack_records([p.board for p in positions]), stack_records([p.history for p in positions])


def stack_records(records: Sequence[Array]) -> Array:
    """One-element arrays of one structured dtype side by side, copied as bytes (NumPy would go field by field)."""
    stacked = np.empty(len(records), records[0].dtype)
    rows = stacked.view(np.uint8).reshape(len(records), -1)
    for row, record in zip(rows, records, strict=True):
        row[:] = record.view(np.uint8)
    return stacked


def common_shape(positions: Sequence[Any], symmetries: NDArray[np.int64]) -> tuple[int, int]:
    """The (H, W) that all positions have under their symmetries.

    Raises:
        BadRequest: no positions, or several shapes; a batch holds one shape.
    """
    shapes = {go_shape(p, s) for p, s in zip(positions, symmetries.tolist(), strict=True)}
    if len(shapes) != 1:
        found = ", ".join(f"{h}×{w}" for h, w in sorted(shapes)) or "no positions"
        raise BadRequest(f"a batch holds planes of one shape, not {found}")
    return shapes.pop()
