"""The board of connect four as a picture; `board.js` draws it on a review's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from keima.games.connect_four.kernels import COLUMNS, NAMES, ROWS, STEPS, height
from keima.games.connect_four.position import Position
from keima.games.drawing import Drawing, Panel, small_disc, small_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BOARD, _HOLE, _EDGE = "#2f5fa8", "#dbe6f5", "#234a85"
_DISCS = {"1": "#f3c623", "2": "#d8452e"}
"""The first player's discs are yellow, the second's red."""


class _Drawing(Drawing[Position]):
    """Holes and discs; the policy as a number and a ring where the disc would fall."""

    def board(self, position: Position) -> dict[str, object]:
        return {"rows": position.rows(), "line": four_in_line(position)}

    def thumbnail(self, board: Mapping[str, object]) -> str:
        rows = [str(row) for row in cast(Sequence[object], board["rows"])]
        discs = [(x, y, _DISCS.get(disc, _HOLE)) for y, row in enumerate(rows) for x, disc in enumerate(row)]
        return small_svg(COLUMNS, ROWS, _BOARD, (small_disc(*disc) for disc in discs))

    def aspect(self, position: Position) -> float:
        return COLUMNS / (ROWS + 0.6)

    def panels(self, position: Position, policy: Mapping[str, float], ownership: object) -> list[Panel]:
        return [lambda axes: draw(axes, position, policy)]


def draw(axes: Axes, position: Position, policy: Mapping[str, float]) -> None:
    """Draw the board, and the policy on the squares the discs would fall to."""
    from matplotlib.patches import Circle, Rectangle

    axes.add_patch(Rectangle((-0.5, -0.5), COLUMNS, ROWS, facecolor=_BOARD, edgecolor=_EDGE, linewidth=2))
    line = set(four_in_line(position))
    for row, text in enumerate(position.rows()):
        for column, letter in enumerate(text):
            y = ROWS - 1 - row
            axes.add_patch(Circle((column, y), 0.4, facecolor=_DISCS.get(letter, _HOLE), edgecolor=_EDGE, linewidth=1))
            if f"{NAMES[column]}{y + 1}" in line:
                axes.add_patch(Circle((column, y), 0.18, facecolor="none", edgecolor="white", linewidth=3))
    top = max(policy.values(), default=1.0)
    for name, probability in policy.items():
        column = NAMES.index(name)
        y = height(position.record[0], column)
        share = float(np.sqrt(probability / top)) if top else 0.0
        axes.add_patch(Circle((column, y), 0.4, facecolor=_DISCS[position.to_play], alpha=0.15 + 0.5 * share))
        axes.text(column, y, f"{100 * probability:.0f}", ha="center", va="center", fontsize=11, color="#1b2a41")
    for column, name in enumerate(NAMES):
        axes.text(column, -0.85, name, ha="center", va="center", fontsize=11)
    axes.set_xlim(-0.6, COLUMNS - 0.4)
    axes.set_ylim(-1.2, ROWS - 0.4)
    axes.set_aspect("equal")
    axes.axis("off")


def four_in_line(position: Position) -> list[str]:
    """The squares of the lines that won, "a1" in the bottom left corner; none before the end."""
    discs, line = int(position.record["other"][0]), 0
    for step in STEPS:
        pairs = discs & discs >> step
        first = pairs & pairs >> 2 * step
        line |= first | first << step | first << 2 * step | first << 3 * step
    return [f"{NAMES[square // 7]}{square % 7 + 1}" for square in range(7 * COLUMNS) if line >> square & 1]


DRAWING = _Drawing()
