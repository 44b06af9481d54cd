"""Still pictures of what a network thinks: policy and ownership on the game's board; a layer's activations.

Everything is drawn on a matplotlib `Figure`; nothing touches pyplot's global state. `save` writes PNG or SVG, the same
bytes for the same picture.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from keima.atomic import replacing
from keima.errors import BadRequest
from keima.games.drawing import LEAST_SHOWN, new_figure
from keima.games.game import GAMES
from keima.games.position import Position
from keima.inference.evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg")


def picture(position: Position, evaluation: Evaluation) -> Figure:
    """What the network thinks of a position, with its numbers as the title."""
    drawing = GAMES[position.game].drawing
    panels = drawing.panels(position, evaluation.policy, evaluation.ownership)
    aspect = drawing.aspect(position)
    figure = new_figure(5.2 * len(panels) * max(1.0, aspect), 5.7 / min(1.0, aspect))
    for draw, axes in zip(panels, np.atleast_1d(figure.subplots(1, len(panels))), strict=True):
        draw(axes)
    figure.suptitle(caption(position, evaluation), fontsize=11)
    return figure


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write the picture as PNG or SVG, as the file's name ends, whole or not at all. Raises BadRequest."""
    from matplotlib import rc_context

    suffix = Path(path).suffix.lower()
    if suffix not in ENDINGS:
        message = f"a picture ends in {' or '.join(ENDINGS)}, not {suffix or 'nothing'!r}"
        raise BadRequest(message, source=os.fspath(path))
    metadata = {"Date": None} if suffix == ".svg" else {"Software": None}
    try:
        with rc_context({"svg.hashsalt": "keima", "svg.fonttype": "path"}), replacing(path) as file:
            figure.savefig(file, format=suffix[1:], dpi=130, metadata=metadata)
    except OSError as error:
        raise BadRequest(f"cannot write the picture: {error.strerror or error}", source=os.fspath(path)) from error


def caption(position: Position, evaluation: Evaluation) -> str:
    """The numbers of an answer in one line, for the side to move."""
    game = GAMES[position.game]
    parts = [f"{game.side(position.to_play).capitalize()} to play"]
    if evaluation.win is not None:
        parts.append(f"win {100 * evaluation.win:.1f} %")
    if evaluation.draw is not None and evaluation.draw >= LEAST_SHOWN:
        parts.append(f"{game.drawing.draw} {100 * evaluation.draw:.1f} %")
    if evaluation.lead is not None:
        parts.append(f"lead {evaluation.lead:+.1f}")
    if evaluation.moves_left is not None:
        parts.append(f"{evaluation.moves_left:.0f} plies left")
    if "pass" in evaluation.policy:
        parts.append(f"pass {100 * evaluation.policy['pass']:.1f} %")
    return " · ".join(parts)


def activation_grid(activation: NDArray[np.float32], title: str = "", limit: int = 64) -> Figure:
    """The first channels of a layer as small images, one colour scale for all; 0 is white, positive red, negative blue.

    `activation` is [C, H, W], as `keima.activations` gives it; [F] and [L, C] are drawn as one image. Raises BadRequest
    for more axes, or no numbers.
    """
    if activation.size == 0 or activation.ndim not in (1, 2, 3):
        raise BadRequest(f"an activation has 1 to 3 axes and some numbers, not the shape {activation.shape}")
    images = activation.reshape(-1, *activation.shape[-2:]) if activation.ndim > 1 else activation[None, None]
    shown = images[:limit]
    columns = math.ceil(math.sqrt(len(shown)))
    rows = math.ceil(len(shown) / columns)
    figure = new_figure(1 + 1.1 * columns, 0.8 + 1.1 * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    reach = float(np.abs(shown).max()) or 1.0
    aspect: Literal["equal", "auto"] = "equal" if activation.ndim == 3 else "auto"
    for index, place in enumerate(axes):
        place.set_axis_off()
        if index < len(shown):
            drawn = place.imshow(shown[index], cmap="RdBu_r", vmin=-reach, vmax=reach, aspect=aspect)
            place.set_title(str(index), fontsize=6, pad=2)
    figure.colorbar(drawn, ax=list(axes), shrink=0.8)
    left_out = f" (the first {limit} of {len(images)} channels)" if len(images) > limit else ""
    figure.suptitle(title + left_out, fontsize=10)
    return figure


def filter_grid(weights: NDArray[np.float32], title: str = "", limit: int = 64) -> Figure:
    """A layer's weights in the colours of `activation_grid`: a row of small images a filter, one for each input plane.

    [out, in, kH, kW] as `keima.inference.activations.filters` gives it, the first `limit` of either; [out, in] is one
    image.
    """
    out, planes, *kernel = weights.shape
    if not kernel:
        return activation_grid(weights, title)
    shown = weights[:limit, :limit]
    framed = np.pad(shown, ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=np.nan)
    image = framed.transpose(0, 2, 1, 3).reshape(framed.shape[0] * framed.shape[2], -1)
    figure = new_figure(1.5 + 0.16 * shown.shape[1], 1 + 0.16 * shown.shape[0])
    axes = figure.subplots()
    reach = float(np.abs(shown).max()) or 1.0
    drawn = axes.imshow(image, cmap="RdBu_r", vmin=-reach, vmax=reach, interpolation="nearest")
    steps = [
        np.arange(count) * (side + 1) + side / 2 - 0.5 for count, side in zip(shown.shape[:2], kernel, strict=True)
    ]
    axes.set_yticks(steps[0], [str(k) for k in range(len(steps[0]))], fontsize=5)
    axes.set_xticks(steps[1], [str(k) for k in range(len(steps[1]))], fontsize=5, rotation=90)
    axes.set_xlabel("input plane")
    axes.set_ylabel("filter")
    figure.colorbar(drawn, shrink=0.6)
    figure.suptitle(f"{title} ({out} filters of {'×'.join(map(str, kernel))} over {planes} planes)", fontsize=10)
    return figure
