"""The board of connect four as a picture; `board.js` draws it on a review's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from keima.games.connect_four.position import NAMES, Position
from keima.games.connect_four.rules import COLUMNS, ROWS, height
from keima.games.drawing import Drawing, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BOARD, _HOLE, _EDGE = "#2f5fa8", "#dbe6f5", "#234a85"
_DISCS = {"1": "#f3c623", "2": "#d8452e"}
"""The first player's discs are yellow, the second's red."""


class ConnectFourDrawing(Drawing[Position]):
    """Holes and discs; the policy as a number and a ring where the disc would fall."""

    def board(self, position: Position) -> dict[str, object]:
        """`rows`: six strings of "1", "2" and ".", the top row first; `line`: the squares of the four, if there are."""
        return {"rows": position.rows(), "line": four_in_line(position)}

    def aspect(self, position: Position) -> float:
        """Seven columns by six rows, and the names of the columns."""
        return COLUMNS / (ROWS + 0.6)

    def panels(
        self, position: Position, policy: Mapping[str, float], ownership: NDArray[np.float32] | None
    ) -> list[Panel]:
        """One board."""
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
    if position.winner is None:
        return []
    board = position.rows()[::-1]
    found = set()
    for row in range(ROWS):
        for column in range(COLUMNS):
            for up, right in ((0, 1), (1, 0), (1, 1), (-1, 1)):
                squares = [(row + k * up, column + k * right) for k in range(4)]
                if all(0 <= r < ROWS and 0 <= c < COLUMNS and board[r][c] == position.winner for r, c in squares):
                    found |= {f"{NAMES[c]}{r + 1}" for r, c in squares}
    return sorted(found)


DRAWING = ConnectFourDrawing()
