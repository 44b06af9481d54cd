"""Pictures of a run, drawn from metrics.jsonl: losses, learning, accuracy and value by phase, calibration."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keima.atomic import replacing
from keima.plain import Fields
from keima.training.run.objective import TOTAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Line = Fields

INK, BLUE, ORANGE, GREEN, PALE = "#333333", "#2f6db5", "#c8642b", "#3f8f5a", "#d9d9d9"
COLOURS = (BLUE, ORANGE, GREEN, "#8a5aa8", "#b0892c", "#5a9fa8", "#a84f6e", "#777777")
"""For lines beside one another, in this order."""
_NOT_TERMS = ("step", "positions", "games", "learning_rate", "positions_per_second", "games_per_second", "evaluation")


def draw_plots(folder: str | os.PathLike[str], lines: Sequence[Line]) -> list[Path]:
    """Draw a run's pictures as PNG files, each written whole or not at all.

    Args:
        folder: where to; made if missing.
        lines: the objects of metrics.jsonl, in order.

    Returns:
        The files: losses.png, and with at least one evaluation learning.png and evaluation.png.

    Raises:
        OSError: a file cannot be written.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    training = [line for line in lines if "evaluation" not in line]
    evaluations = [line for line in lines if "evaluation" in line]
    drawn = []
    if training:
        drawn.append(_save(_losses(training), target / "losses.png"))
    if evaluations:
        drawn.append(_save(_learning(evaluations), target / "learning.png"))
        drawn.append(_save(_last_evaluation(evaluations[-1]), target / "evaluation.png"))
    return drawn


def _figure(panels: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5 * panels, 4.2), layout="constrained")
    axes = [figure.add_subplot(1, panels, index + 1) for index in range(panels)]
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.grid(color=PALE, linewidth=0.6)
        each.set_axisbelow(True)
    return figure, axes


def _save(figure: Figure, path: Path) -> Path:
    with replacing(path) as stream:
        figure.savefig(stream, format="png", dpi=110)
    return path


def _losses(lines: Sequence[Line]) -> Figure:
    """Each term of the loss over the steps, and the learning rate."""
    figure, (left, right) = _figure(2)
    steps = [line["step"] for line in lines]
    terms = [name for name in lines[-1] if name not in _NOT_TERMS]
    terms.sort(key=lambda name: name != TOTAL)
    for index, name in enumerate(terms):
        numbers = [line.get(name, float("nan")) for line in lines]
        colour = INK if name == TOTAL else COLOURS[index % len(COLOURS)]
        left.plot(steps, numbers, color=colour, linewidth=1.2, label=name)
    left.set(title="Training loss and its terms", xlabel="step")
    left.legend(frameon=False, fontsize=8)
    right.plot(steps, [line["learning_rate"] for line in lines], color=BLUE, linewidth=1.4)
    right.set(title="Learning rate", xlabel="step", yscale="log")
    return figure


def _learning(lines: Sequence[Line]) -> Figure:
    """The held-out numbers over the steps."""
    figure, (left, right) = _figure(2)
    steps = [line["step"] for line in lines]
    for name, colour in (("top1", BLUE), ("top5", GREEN), ("value_accuracy", ORANGE)):
        _curve(left, steps, lines, name, colour)
    left.set(title="Held-out games: shares", xlabel="step", ylim=(0, 1))
    for name, colour in (("cross_entropy", BLUE), ("value_mse", ORANGE)):
        _curve(right, steps, lines, name, colour)
    right.set(title="Held-out games: cross-entropy (nats), value MSE", xlabel="step", ylim=(0, None))
    for axes in (left, right):
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize=8)
    return figure


def _curve(axes: Axes, steps: Sequence[int], lines: Sequence[Line], name: str, colour: str) -> None:
    numbers = [line["evaluation"].get(name) for line in lines]
    if any(number is not None for number in numbers):
        known = [float("nan") if number is None else number for number in numbers]
        axes.plot(steps, known, color=colour, marker="o", markersize=3, linewidth=1.4, label=name)


def _last_evaluation(line: Line) -> Figure:
    """Phases and calibration of one evaluation."""
    evaluation = line["evaluation"]
    figure, (left, right) = _figure(2)
    phases = evaluation["phases"]
    for name, colour in (("top1", BLUE), ("top5", GREEN), ("value_accuracy", ORANGE)):
        points = [(phase["ply"], phase[name]) for phase in phases if name in phase]
        if points:
            left.plot(*zip(*points, strict=True), color=colour, marker="o", markersize=3, linewidth=1.4, label=name)
    left.set(title=f"By phase, step {line['step']:,}", xlabel="from ply", ylim=(0, 1))
    left.legend(frameon=False, fontsize=8)
    right.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle="--")
    for name, colour in (("policy", BLUE), ("value", ORANGE)):
        bins = evaluation["calibration"][name]
        if bins:
            expected, found = [each["expected"] for each in bins], [each["found"] for each in bins]
            right.plot(expected, found, color=colour, marker="o", markersize=4, linewidth=1.4, label=name)
    right.set(title="Calibration", xlabel="said", ylabel="came true", xlim=(0, 1), ylim=(0, 1))
    right.legend(*right.get_legend_handles_labels(), frameon=False, fontsize=8)
    return figure
