"""The chess board as a picture: the policy as arrows; `board.js` draws it on a review's page."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from keima.errors import IllegalMove
from keima.games.chess.position import Position
from keima.games.drawing import LABELLED, LEAST_SHOWN, Drawing, Panel, frame, small_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LIGHT, _DARK, _ARROW = "#f0e4cf", "#b58e65", "#1f6f54"
_GLYPHS = dict(zip("KQRBNPkqrbnp", "♚♛♜♝♞♟" * 2, strict=True))


class _Drawing(Drawing[Position]):
    def board(self, position: Position) -> dict[str, object]:
        fields: dict[str, object] = {"fen": position.fen()}
        if position.in_check:
            king = "".join(position.rows()).index("k" if position.to_play == "b" else "K")
            fields["check"] = f"{'abcdefgh'[king % 8]}{8 - king // 8}"
        return fields

    def thumbnail(self, board: Mapping[str, object]) -> str:
        """Its men as glyphs, White's light."""
        rows = re.sub(r"\d", lambda run: "." * int(run[0]), str(board["fen"]).split()[0]).split("/")
        dark = [f'<rect x="{x}" y="{y}" width="1" height="1"/>' for y in range(8) for x in range(8) if (x + y) % 2]
        men = [
            f'<text x="{x + 0.5}" y="{y + 0.87}" fill="{"#fff" if man.isupper() else "#111"}" stroke="#111">'
            f"{_GLYPHS[man]}</text>"
            for y, row in enumerate(rows)
            for x, man in enumerate(row)
            if man != "."
        ]
        style = 'font-size="1" text-anchor="middle" stroke-width=".03"'
        return small_svg(8, 8, _LIGHT, [f'<g fill="{_DARK}">', *dark, f"</g><g {style}>", *men, "</g>"])

    def written(self, position: Position, moves: Sequence[str]) -> list[str] | None:
        names = []
        for move in moves:
            try:
                names.append(position.san(move))
                position = position.play(move)
            except IllegalMove:
                break
        return names

    def panels(self, position: Position, policy: Mapping[str, float], ownership: object) -> list[Panel]:
        return [lambda axes: draw_arrows(axes, position, policy)]


DRAWING = _Drawing()


def draw_arrows(axes: Axes, position: Position, policy: Mapping[str, float]) -> None:
    """The board from White's side with an arrow for each likely move, wider and darker the likelier it is."""
    from matplotlib.patches import Rectangle

    for square in range(64):
        x, y = square % 8, square // 8
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, color=_DARK if (x + y) % 2 else _LIGHT, zorder=1))
    for index, letter in enumerate("".join(position.rows())):
        if letter != ".":
            _draw_piece(axes, letter, index % 8, index // 8)
    likely = sorted(policy.items(), key=lambda pair: -pair[1])[:LABELLED]
    for move, probability in reversed(likely):
        if probability >= LEAST_SHOWN:
            _draw_arrow(axes, move, probability)
    frame(axes, 8, 8, "abcdefgh")
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
    from matplotlib.patches import FancyArrowPatch

    (x0, y0), (x1, y1) = ((ord(at[0]) - ord("a"), 8 - int(at[1])) for at in (move[:2], move[2:4]))
    weight = math.sqrt(probability)
    style = f"simple,head_length={4 + 8 * weight},head_width={4 + 10 * weight},tail_width={1 + 5 * weight}"
    arrow = FancyArrowPatch((x0, y0), (x1, y1), arrowstyle=style, shrinkA=4, shrinkB=2, linewidth=0, zorder=3)
    arrow.set(color=_ARROW, alpha=0.3 + 0.6 * weight)
    axes.add_patch(arrow)
    label = f"{100 * probability:.0f}{'=' + move[4].upper() if len(move) > 4 else ''}"
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": _ARROW, "linewidth": 0.5, "alpha": 0.85}
    x, y = x0 + 0.75 * (x1 - x0), y0 + 0.75 * (y1 - y0)
    axes.text(x, y, label, ha="center", va="center", fontsize=7, color="#123", zorder=4, bbox=box)
