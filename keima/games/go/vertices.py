"""Names of points: GTP vertices ("Q16", no column I), SGF letters ("pd"), and the (x, y) and `loc` they stand for.

x = 0 is the left column, y = 0 the top row; GTP counts rows from the bottom. A pass is None as (x, y), PASS_LOC as a
`loc`, "pass" in GTP and "" in SGF.

    >>> vertex_to_xy("Q16", 19, 19)
    (15, 3)
    >>> xy_to_vertex(15, 3, 19)
    'Q16'
    >>> xy_to_sgf(15, 3)
    'pd'
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from keima.errors import IllegalMove
from keima.games.go.board import MAX_POINTS, NULL_LOC, PASS_LOC

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
    raise IllegalMove(f'"{vertex[:20]}" is not a point of a {xsize}x{ysize} board, nor "pass"')


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


def sgf_to_xy(letters: str, xsize: int, ysize: int) -> tuple[int, int] | None:
    """The (x, y) of an SGF point; None for a pass: "", and "tt" (SGF FF[3], for boards up to 19).

    Raises:
        IllegalMove: it names no point of a board of that size.
    """
    if letters in ("", "tt"):
        return None
    if len(letters) == 2:
        x, y = (ord(letter) - ord("a") for letter in letters)
        if 0 <= x < xsize and 0 <= y < ysize:
            return x, y
    raise IllegalMove(f'"{letters[:20]}" is not an SGF point of a {xsize}x{ysize} board')


def xy_to_sgf(x: int, y: int) -> str:
    """The SGF letters of column x and row y."""
    return chr(ord("a") + x) + chr(ord("a") + y)
