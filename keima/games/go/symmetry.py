"""The eight symmetries of the board, numbered as in KataGo (`SymmetryHelpers`, `cpp/neuralnet/nninputs.cpp`).

Three bits: 1 flips the rows (top to bottom), 2 flips the columns (left to right), 4 transposes after the flips. On a
rectangle a transposing symmetry exchanges width and height.

    >>> [inverse(s) for s in range(SYMMETRIES)]
    [0, 1, 2, 3, 4, 6, 5, 7]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.games.go.vertices import vertex_to_xy, xy_to_vertex

SYMMETRIES = 8
FLIP_ROWS = 1
FLIP_COLUMNS = 2
TRANSPOSE = 4


def inverse(symmetry: int) -> int:
    """The symmetry that undoes this one: only 5 and 6, the quarter turns, are not their own."""
    return {5: 6, 6: 5}.get(symmetry, symmetry)


def compose(first: int, then: int) -> int:
    """The one symmetry that does `first`, then `then`."""
    if first & TRANSPOSE:
        then = (then & TRANSPOSE) | ((then & FLIP_COLUMNS) >> 1) | ((then & FLIP_ROWS) << 1)
    return first ^ then


def symmetric_size(xsize: int, ysize: int, symmetry: int) -> tuple[int, int]:
    """(xsize, ysize) of the board after the symmetry."""
    return (ysize, xsize) if symmetry & TRANSPOSE else (xsize, ysize)


def symmetric_point(x: int, y: int, xsize: int, ysize: int, symmetry: int) -> tuple[int, int]:
    """Where the point (x, y) of an xsize × ysize board goes: its (x, y) on the board after the symmetry."""
    if symmetry & FLIP_ROWS:
        y = ysize - 1 - y
    if symmetry & FLIP_COLUMNS:
        x = xsize - 1 - x
    return (y, x) if symmetry & TRANSPOSE else (x, y)


def symmetric_vertex(vertex: str, xsize: int, ysize: int, symmetry: int) -> str:
    """Where a GTP vertex of an xsize × ysize board goes; a pass stays one.

    Raises:
        IllegalMove: the vertex names no point of that board.
    """
    xy = vertex_to_xy(vertex, xsize, ysize)
    if xy is None:
        return "pass"
    return xy_to_vertex(*symmetric_point(*xy, xsize, ysize, symmetry), symmetric_size(xsize, ysize, symmetry)[1])


def symmetric_array(points: NDArray[Any], symmetry: int) -> NDArray[Any]:
    """A per-point array [..., ysize, xsize] after the symmetry, as a view."""
    rows = slice(None, None, -1) if symmetry & FLIP_ROWS else slice(None)
    columns = slice(None, None, -1) if symmetry & FLIP_COLUMNS else slice(None)
    flipped = points[..., rows, columns]
    return np.swapaxes(flipped, -1, -2) if symmetry & TRANSPOSE else flipped
