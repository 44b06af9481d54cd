"""Names of points: GTP vertices ("Q16", no column I), and the (x, y) and `loc` they stand for; symmetries of the board.

x = 0 is the left column, y = 0 the top row; GTP counts rows from the bottom. A pass is None as (x, y), PASS_LOC as a
`loc`, "pass" in GTP.

    >>> vertex_to_xy("Q16", 19, 19)
    (15, 3)
    >>> xy_to_vertex(15, 3, 19)
    'Q16'
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.errors import IllegalMove
from keima.games.go.board import MAX_POINTS, NULL_LOC, PASS_LOC
from keima.plain import Note

COLUMNS = "ABCDEFGHJKLMNOPQRST"
"""GTP's column letters, left to right."""
PASS = "pass"


def vertex_to_xy(vertex: str, xsize: int, ysize: int) -> tuple[int, int] | None:
    """The (x, y) of a GTP vertex in any case, None for "pass".

    Raises:
        IllegalMove: it names no point of a board of that size.
    """
    text = vertex.strip().upper()
    if text == "PASS":
        return None
    x = COLUMNS.find(text[0]) if text else -1
    row = text[1:]
    if 0 <= x < xsize and row.isascii() and row.isdecimal() and len(row) <= 2 and 1 <= int(row) <= ysize:
        return x, ysize - int(row)
    template = '"{vertex}" is not a point of a {xsize}x{ysize} board, nor "pass"'
    raise IllegalMove(Note(template, "error.point", vertex=vertex[:20], xsize=xsize, ysize=ysize))


def xy_to_vertex(x: int, y: int, ysize: int) -> str:
    """The GTP vertex of column x and row y."""
    return f"{COLUMNS[x]}{ysize - y}"


def vertex_to_loc(vertex: str, xsize: int, ysize: int) -> int:
    """The `loc` of a GTP vertex, PASS_LOC for "pass".

    Raises:
        IllegalMove: it names no point of a board of that size.
    """
    xy = vertex_to_xy(vertex, xsize, ysize)
    return PASS_LOC if xy is None else (xy[0] + 1) + (xy[1] + 1) * (xsize + 1)


def loc_to_vertex(loc: int, xsize: int, ysize: int) -> str:
    """The GTP vertex of a `loc`; "pass" for PASS_LOC, "" for what is no point of the board."""
    return vertex_table(xsize, ysize)[loc]


@cache
def board_locs(xsize: int, ysize: int) -> NDArray[np.int64]:
    """The `loc` of every point, int64 [ysize, xsize]; read-only."""
    locs = np.arange(1, xsize + 1)[None, :] + np.arange(1, ysize + 1)[:, None] * (xsize + 1)
    locs.setflags(write=False)
    return locs


@cache
def vertex_table(xsize: int, ysize: int) -> tuple[str, ...]:
    """The GTP vertex of each `loc` (MAX_POINTS of them); "" for walls, "pass" for PASS_LOC."""
    table = [""] * MAX_POINTS
    for (y, x), loc in np.ndenumerate(board_locs(xsize, ysize)):
        table[loc] = xy_to_vertex(x, y, ysize)
    table[PASS_LOC] = PASS
    table[NULL_LOC] = ""
    return tuple(table)


def fixed_handicap(stones: int, size: tuple[int, int]) -> tuple[str, ...]:
    """The customary points of 2 to 9 handicap stones (GTP 2 `fixed_handicap`); empty where there is no custom.

    `size` is (xsize, ysize), from 7 on; even sizes know corner stones only.
    """
    xsize, ysize = size
    if min(size) < 7 or stones not in range(2, 10) or (stones > 4 and (xsize % 2 == 0 or ysize % 2 == 0)):
        return ()
    edge_x, edge_y = (4 if xsize > 12 else 3), (4 if ysize > 12 else 3)
    left, middle, right = COLUMNS[edge_x - 1], COLUMNS[xsize // 2], COLUMNS[xsize - edge_x]
    low, centre, high = edge_y, ysize // 2 + 1, ysize - edge_y + 1
    corners = [f"{left}{low}", f"{right}{high}", f"{right}{low}", f"{left}{high}"]
    sides = [f"{left}{centre}", f"{right}{centre}", f"{middle}{low}", f"{middle}{high}"]
    tengen = f"{middle}{centre}"
    if stones <= 4:
        return tuple(corners[:stones])
    points = corners + sides[: (stones - 4) // 2 * 2]
    return tuple([*points, tengen] if stones % 2 else points)


SYMMETRIES, FLIP_ROWS, FLIP_COLUMNS, TRANSPOSE = 8, 1, 2, 4


def inverse(symmetry: int) -> int:
    """The symmetry that undoes this one: only 5 and 6, the quarter turns, are not their own."""
    return {5: 6, 6: 5}.get(symmetry, symmetry)


def symmetric_array(points: NDArray[Any], symmetry: int) -> NDArray[Any]:
    """A per-point array [..., ysize, xsize] after the symmetry, as a view."""
    rows = slice(None, None, -1) if symmetry & FLIP_ROWS else slice(None)
    columns = slice(None, None, -1) if symmetry & FLIP_COLUMNS else slice(None)
    flipped = points[..., rows, columns]
    return np.swapaxes(flipped, -1, -2) if symmetry & TRANSPOSE else flipped
