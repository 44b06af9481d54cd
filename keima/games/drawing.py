"""The DRAWING facet: a game's board as a still picture, and on the page of a review.

`board.js` beside a game's `drawing.py` is the board of that page: `keima/review/page/boards.js` says what it offers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from keima.games.position import Position
from keima.places import lend_matplotlib_a_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = TypeVar("P", bound=Position)
LEAST_SHOWN = 0.005
"""Moves and draws of a lower probability are left out of pictures."""
LABELLED = 10
"""How many moves get their probability written beside them."""
Panel = Callable[["Axes"], None]
"""Draws one board on matplotlib axes."""


class Drawing(Generic[P]):
    """How a game is shown."""

    draw = "draw"  # what a draw of evaluations is called; in Go "no result"

    def board(self, position: P) -> dict[str, object]:
        """What the page needs to draw the position, as JSON: fields of an entry of a review's `positions`."""
        raise NotImplementedError

    def written(self, position: P, moves: Sequence[str]) -> list[str] | None:
        """Successive moves as people write them, as far as they are legal; None where their own names serve."""
        return None

    def thumbnail(self, board: Mapping[str, object]) -> str:
        """A small SVG of what `board` gave; "" for a game without one."""
        return ""

    def aspect(self, position: P) -> float:
        """The picture's width by its height."""
        return 1.0

    def panels(self, position: P, policy: Mapping[str, float], ownership: NDArray[np.float32] | None) -> list[Panel]:
        """The boards of a still picture, side by side: the policy, by move, and what else the network says of points.

        `ownership` is [ysize, xsize], for the side to move; None where the network has none.
        """
        raise NotImplementedError


def new_figure(width: float, height: float) -> Figure:
    """An empty picture, in inches, apart from pyplot's global state. Nothing imports Matplotlib before this does."""
    lend_matplotlib_a_folder()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def small_svg(columns: int, rows: int, colour: str, shapes: Iterable[str]) -> str:
    """An SVG whose points are one apart, the first at (0.5, 0.5), on a plain board."""
    size = f'viewBox="0 0 {columns} {rows}" width="{72 * columns / max(columns, rows):.0f}"'
    board = f'<rect width="{columns}" height="{rows}" fill="{colour}"/>'
    return f'<svg class="thumbnail" {size} aria-hidden="true">{board}{"".join(shapes)}</svg>'


def small_disc(x: int, y: int, colour: str) -> str:
    """A disc on a point of `small_svg`."""
    return f'<circle cx="{x + 0.5}" cy="{y + 0.5}" r=".46" fill="{colour}"/>'


def frame(axes: Axes, columns: int, rows: int, letters: Sequence[str]) -> None:
    """Axes of a board: row 0 at the top, letters below, numbers from the bottom at the left, square points."""
    axes.set_xlim(-0.6, columns - 0.4)
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_aspect("equal")
    axes.set_xticks(range(columns), letters, fontsize=7)
    axes.set_yticks(range(rows), [str(rows - row) for row in range(rows)], fontsize=7)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
