"""The Go board as a picture: policy as a heat map, ownership; `board.js` draws it on a review's page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from keima.games.drawing import LABELLED, LEAST_SHOWN, Drawing, Panel, frame, small_disc, small_svg
from keima.games.go.board import BLACK, EMPTY
from keima.games.go.position import Position
from keima.games.go.vertices import COLUMNS, loc_to_vertex, vertex_to_xy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WOOD = "#e3bb72"
_LINE = "#5b4522"
_STONES = {"B": "#161616", "W": "#fafafa"}
_POLICY = ("#d8f0d0", "#7cc576", "#f2d13a", "#e0552b", "#8e1230")


class GoDrawing(Drawing[Position]):
    """Stones, the policy beside them, and the ownership on a board of its own."""

    draw = "no result"

    def board(self, position: Position) -> dict[str, object]:
        """`stones`: rows of "B", "W" and ".", the top one first, parted by slashes; `ko`: where it is forbidden."""
        rows = ["".join(".BW"[stone] for stone in row) for row in position.stones.tolist()]
        board: dict[str, object] = {"stones": "/".join(rows)}
        ko = int(position.board[0]["ko"])
        return {**board, "ko": loc_to_vertex(ko, position.xsize, position.ysize)} if ko else board

    def thumbnail(self, board: Mapping[str, object]) -> str:
        """The stones on plain wood."""
        rows = str(board["stones"]).split("/")
        points = ((x, y, point) for y, row in enumerate(rows) for x, point in enumerate(row) if point in _STONES)
        return small_svg(len(rows[0]), len(rows), _WOOD, (small_disc(x, y, _STONES[point]) for x, y, point in points))

    def aspect(self, position: Position) -> float:
        """That of the board."""
        return position.xsize / position.ysize

    def panels(
        self, position: Position, policy: Mapping[str, float], ownership: NDArray[np.float32] | None
    ) -> list[Panel]:
        """The policy; the ownership where the network gives one."""
        panels: list[Panel] = [lambda axes: draw_policy(axes, position, policy)]
        if ownership is not None:
            panels.append(lambda axes: draw_ownership(axes, position, ownership))
        return panels


DRAWING = GoDrawing()


def draw_policy(axes: Axes, position: Position, policy: Mapping[str, float]) -> None:
    """The board with each likely move's point coloured by its probability, the likeliest labelled in per cent."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Circle

    heat = LinearSegmentedColormap.from_list("policy", _POLICY)
    _draw_board(axes, position)
    moves = [(move, p) for move, p in policy.items() if move != "pass" and p >= LEAST_SHOWN]
    moves.sort(key=lambda pair: -pair[1])
    for rank, (move, probability) in enumerate(moves):
        x, y = vertex_to_xy(move, position.xsize, position.ysize) or (0, 0)
        shade = math.sqrt(probability)
        axes.add_patch(Circle((x, y), 0.46, color=heat(shade), alpha=0.35 + 0.6 * shade, linewidth=0, zorder=3))
        if rank < LABELLED:
            axes.text(x, y, f"{100 * probability:.0f}", ha="center", va="center", fontsize=7, color="black", zorder=5)
    axes.set_title("policy, %", fontsize=9)


def draw_ownership(axes: Axes, position: Position, ownership: NDArray[np.float32]) -> None:
    """The board with a square on each point: dark where Black is expected to own it, light where White is."""
    from matplotlib.patches import Rectangle

    _draw_board(axes, position)
    for_black = ownership if position.to_play == "B" else -ownership
    for (y, x), owned in np.ndenumerate(for_black):
        side = 0.55 * math.sqrt(min(1.0, abs(float(owned))))
        shade = "#111111" if owned > 0 else "#ffffff"
        corner = (x - side / 2, y - side / 2)
        axes.add_patch(Rectangle(corner, side, side, facecolor=shade, edgecolor="#777777", linewidth=0.3, zorder=4))
    axes.set_title("ownership", fontsize=9)


def _draw_board(axes: Axes, position: Position) -> None:
    """Lines, star points, coordinates, stones, and a ring on the last move."""
    from matplotlib.patches import Circle

    xsize, ysize = position.xsize, position.ysize
    axes.set_facecolor(_WOOD)
    for x in range(xsize):
        axes.plot([x, x], [0, ysize - 1], color=_LINE, linewidth=0.7, zorder=1)
    for y in range(ysize):
        axes.plot([0, xsize - 1], [y, y], color=_LINE, linewidth=0.7, zorder=1)
    for x, y in _stars(xsize, ysize):
        axes.add_patch(Circle((x, y), 0.1, color=_LINE, zorder=2))
    for (y, x), stone in np.ndenumerate(position.stones):
        if stone != EMPTY:
            shade = "#161616" if stone == BLACK else "#fafafa"
            axes.add_patch(Circle((x, y), 0.47, facecolor=shade, edgecolor="#161616", linewidth=0.6, zorder=3))
    if position.moves and position.moves[-1][1] != "pass":
        colour, vertex = position.moves[-1]
        ring = "#fafafa" if colour == "B" else "#161616"
        axes.add_patch(
            Circle(
                vertex_to_xy(vertex, xsize, ysize) or (0, 0), 0.2, fill=False, edgecolor=ring, linewidth=1.2, zorder=4
            )
        )
    frame(axes, xsize, ysize, COLUMNS[:xsize])


def _stars(xsize: int, ysize: int) -> list[tuple[int, int]]:
    """The star points of 9×9, 13×13 and 19×19; none of other boards."""
    if xsize != ysize or xsize not in (9, 13, 19):
        return []
    edge, middle = (2 if xsize == 9 else 3), xsize // 2
    lines = (edge, middle, xsize - 1 - edge)
    corners = [(x, y) for x in lines for y in lines]
    return corners if xsize == 19 else [(x, y) for x, y in corners if (x == middle) == (y == middle)]
