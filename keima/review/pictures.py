"""Still pictures of what a network thinks: policy and ownership on a Go board, policy as arrows on a chess board.

Everything is drawn on a matplotlib `Figure`; nothing touches pyplot's global state. `save` writes PNG or SVG, the same
bytes for the same picture.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

from keima.atomic import replacing
from keima.encodings.encoding import Array
from keima.errors import BadRequest
from keima.games.go.board import BLACK, EMPTY
from keima.inference.evaluation import Evaluation

ENDINGS = (".png", ".svg")

_WOOD = "#e3bb72"
_LINE = "#5b4522"
_POLICY = LinearSegmentedColormap.from_list("policy", ["#d8f0d0", "#7cc576", "#f2d13a", "#e0552b", "#8e1230"])
_LIGHT, _DARK, _ARROW = "#f0e4cf", "#b58e65", "#1f6f54"
_COLUMNS = "ABCDEFGHJKLMNOPQRST"
_LEAST_SHOWN = 0.005
"""Moves and draws of a lower probability are left out."""
_LABELLED = 10
"""How many moves get their probability written beside them."""
_GLYPHS = dict(zip("KQRBNPkqrbnp", "♚♛♜♝♞♟" * 2, strict=True))


def picture(position: Any, evaluation: Evaluation) -> Figure:
    """What the network thinks of a position, with its numbers as the title.

    Args:
        position: of Go (policy heatmap, and beside it ownership where the network gives it) or of chess (arrows).
        evaluation: the answer for that position.
    """
    if hasattr(position, "xsize"):
        panels = 1 if evaluation.ownership is None else 2
        figure, axes = _figure(panels, position.xsize / position.ysize)
        draw_policy(axes[0], position, evaluation)
        if evaluation.ownership is not None:
            draw_ownership(axes[1], position, evaluation)
    else:
        figure, axes = _figure(1, 1.0)
        draw_arrows(axes[0], position, evaluation)
    figure.suptitle(caption(position, evaluation), fontsize=11)
    return figure


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write the picture as PNG or SVG, as the file's name ends, whole or not at all.

    Raises:
        BadRequest: another ending, or a place that cannot be written.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in ENDINGS:
        raise BadRequest(
            f"a picture ends in {' or '.join(ENDINGS)}, not {suffix or 'nothing'!r}", source=os.fspath(path)
        )
    settings: Any = {"svg.hashsalt": "keima", "svg.fonttype": "path"}
    metadata = {"Date": None} if suffix == ".svg" else {"Software": None}
    try:
        with matplotlib.rc_context(settings), replacing(path) as file:
            figure.savefig(file, format=suffix[1:], dpi=130, metadata=metadata)
    except OSError as error:
        raise BadRequest(f"cannot write the picture: {error.strerror or error}", source=os.fspath(path)) from error


def caption(position: Any, evaluation: Evaluation) -> str:
    """The numbers of an answer in one line, for the side to move."""
    names = {"B": "Black", "W": "White", "b": "Black", "w": "White"}
    parts = [f"{names[position.to_play]} to play"]
    if evaluation.win is not None:
        parts.append(f"win {100 * evaluation.win:.1f} %")
    if evaluation.draw is not None and evaluation.draw >= _LEAST_SHOWN:
        parts.append(f"{'no result' if hasattr(position, 'xsize') else 'draw'} {100 * evaluation.draw:.1f} %")
    if evaluation.lead is not None:
        parts.append(f"lead {evaluation.lead:+.1f}")
    if evaluation.moves_left is not None:
        parts.append(f"{evaluation.moves_left:.0f} plies left")
    if "pass" in evaluation.policy:
        parts.append(f"pass {100 * evaluation.policy['pass']:.1f} %")
    return " · ".join(parts)


# --- Go ---------------------------------------------------------------------------------------------------------------


def draw_policy(axes: Axes, position: Any, evaluation: Evaluation) -> None:
    """The board with each likely move's point coloured by its probability, the likeliest labelled in per cent."""
    _draw_board(axes, position)
    moves = [(move, p) for move, p in evaluation.policy.items() if move != "pass" and p >= _LEAST_SHOWN]
    moves.sort(key=lambda pair: -pair[1])
    for rank, (move, probability) in enumerate(moves):
        x, y = _point(move, position.ysize)
        shade = math.sqrt(probability)
        axes.add_patch(Circle((x, y), 0.46, color=_POLICY(shade), alpha=0.35 + 0.6 * shade, linewidth=0, zorder=3))
        if rank < _LABELLED:
            axes.text(x, y, f"{100 * probability:.0f}", ha="center", va="center", fontsize=7, color="black", zorder=5)
    axes.set_title("policy, %", fontsize=9)


def draw_ownership(axes: Axes, position: Any, evaluation: Evaluation) -> None:
    """The board with a square on each point: dark where Black is expected to own it, light where White is."""
    _draw_board(axes, position)
    if evaluation.ownership is None:
        raise BadRequest("this network gives no ownership")
    for_black = evaluation.ownership if position.to_play == "B" else -evaluation.ownership
    for (y, x), owned in np.ndenumerate(for_black):
        side = 0.55 * math.sqrt(min(1.0, abs(float(owned))))
        shade = "#111111" if owned > 0 else "#ffffff"
        corner = (x - side / 2, y - side / 2)
        axes.add_patch(Rectangle(corner, side, side, facecolor=shade, edgecolor="#777777", linewidth=0.3, zorder=4))
    axes.set_title("ownership", fontsize=9)


def _draw_board(axes: Axes, position: Any) -> None:
    """Lines, star points, coordinates, stones, and a ring on the last move."""
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
        axes.add_patch(Circle(_point(vertex, ysize), 0.2, fill=False, edgecolor=ring, linewidth=1.2, zorder=4))
    _frame(axes, xsize, ysize, list(_COLUMNS[:xsize]))


def _point(vertex: str, ysize: int) -> tuple[int, int]:
    """Column and row (from the top) of a GTP vertex."""
    return _COLUMNS.index(vertex[0].upper()), ysize - int(vertex[1:])


def _stars(xsize: int, ysize: int) -> list[tuple[int, int]]:
    """The star points of 9×9, 13×13 and 19×19; none of other boards."""
    if xsize != ysize or xsize not in (9, 13, 19):
        return []
    edge, middle = (2 if xsize == 9 else 3), xsize // 2
    lines = (edge, middle, xsize - 1 - edge)
    corners = [(x, y) for x in lines for y in lines]
    return corners if xsize == 19 else [(x, y) for x, y in corners if (x == middle) == (y == middle)]


# --- Chess ------------------------------------------------------------------------------------------------------------


def draw_arrows(axes: Axes, position: Any, evaluation: Evaluation) -> None:
    """The board from White's side with an arrow for each likely move, wider and darker the likelier it is."""
    for square in range(64):
        x, y = square % 8, square // 8
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, color=_DARK if (x + y) % 2 else _LIGHT, zorder=1))
    for y, row in enumerate(position.fen().split()[0].split("/")):
        x = 0
        for letter in row:
            if letter.isdigit():
                x += int(letter)
                continue
            _draw_piece(axes, letter, x, y)
            x += 1
    likely = sorted(evaluation.policy.items(), key=lambda pair: -pair[1])[:_LABELLED]
    for move, probability in reversed(likely):
        if probability >= _LEAST_SHOWN:
            _draw_arrow(axes, move, probability)
    _frame(axes, 8, 8, list("abcdefgh"))
    axes.set_title("policy, %", fontsize=9)


def _draw_piece(axes: Axes, letter: str, x: int, y: int) -> None:
    """A filled glyph, light with a dark rim for White."""
    from matplotlib.patheffects import withStroke

    shade, rim = ("#fdfdfd", "#222222") if letter.isupper() else ("#222222", "#dddddd")
    text = axes.text(x, y, _GLYPHS[letter], ha="center", va="center_baseline", fontsize=25, color=shade, zorder=2)
    text.set_fontfamily("DejaVu Sans")
    text.set_path_effects([withStroke(linewidth=1.4, foreground=rim)])


def _draw_arrow(axes: Axes, move: str, probability: float) -> None:
    """From square to square of a UCI move, its probability (and what it promotes to) three quarters along."""
    (x0, y0), (x1, y1) = ((ord(at[0]) - ord("a"), 8 - int(at[1])) for at in (move[:2], move[2:4]))
    weight = math.sqrt(probability)
    arrow = FancyArrowPatch(
        (x0, y0),
        (x1, y1),
        arrowstyle=f"simple,head_length={4 + 8 * weight},head_width={4 + 10 * weight},tail_width={1 + 5 * weight}",
        color=_ARROW,
        alpha=0.3 + 0.6 * weight,
        linewidth=0,
        shrinkA=4,
        shrinkB=2,
        zorder=3,
    )
    axes.add_patch(arrow)
    label = f"{100 * probability:.0f}{'=' + move[4].upper() if len(move) > 4 else ''}"
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": _ARROW, "linewidth": 0.5, "alpha": 0.85}
    x, y = x0 + 0.75 * (x1 - x0), y0 + 0.75 * (y1 - y0)
    axes.text(x, y, label, ha="center", va="center", fontsize=7, color="#123", zorder=4, bbox=box)


# --- Activations ------------------------------------------------------------------------------------------------------


def activation_grid(activation: Array, title: str = "", limit: int = 64) -> Figure:
    """Every channel of a layer as a small image, one colour scale for all; 0 is white, positive red, negative blue.

    Args:
        activation: [C, H, W], as `keima.activations` gives it; [F] and [L, C] are drawn as one image.
        title: above the grid.
        limit: channels drawn at most, the first ones.

    Raises:
        BadRequest: an array of more than three axes, or with no numbers.
    """
    if activation.size == 0 or activation.ndim not in (1, 2, 3):
        raise BadRequest(f"an activation has 1 to 3 axes and some numbers, not the shape {activation.shape}")
    images = activation.reshape(-1, *activation.shape[-2:]) if activation.ndim > 1 else activation[None, None]
    shown = images[:limit]
    columns = math.ceil(math.sqrt(len(shown)))
    rows = math.ceil(len(shown) / columns)
    figure = Figure(figsize=(1 + 1.1 * columns, 0.8 + 1.1 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    reach = float(np.abs(shown).max()) or 1.0
    scale = Normalize(-reach, reach)
    for index, place in enumerate(axes):
        place.set_axis_off()
        if index < len(shown):
            place.imshow(shown[index], cmap="RdBu_r", norm=scale, aspect="equal" if activation.ndim == 3 else "auto")
            place.set_title(str(index), fontsize=6, pad=2)
    figure.colorbar(ScalarMappable(norm=scale, cmap="RdBu_r"), ax=list(axes), shrink=0.8)
    left_out = f" (the first {limit} of {len(images)} channels)" if len(images) > limit else ""
    figure.suptitle(title + left_out, fontsize=10)
    return figure


# --- Frames -----------------------------------------------------------------------------------------------------------


def _figure(panels: int, aspect: float) -> tuple[Figure, list[Axes]]:
    """A figure of equal panels side by side, each `aspect` times as wide as high."""
    figure = Figure(figsize=(5.2 * panels * max(1.0, aspect), 5.7 / min(1.0, aspect)), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(1, panels)))


def _frame(axes: Axes, columns: int, rows: int, letters: list[str]) -> None:
    """Row 0 at the top, letters below, numbers from the bottom at the left, square points."""
    axes.set_xlim(-0.6, columns - 0.4)
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_aspect("equal")
    axes.set_xticks(range(columns), letters, fontsize=7)
    axes.set_yticks(range(rows), [str(rows - row) for row in range(rows)], fontsize=7)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
