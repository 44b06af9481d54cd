"""A run's numbers as they come: metrics.jsonl, one JSON object a line, TensorBoard's event files, and pictures of them.

A line is written in one piece. After a stop, lines of steps later than the checkpoint the run goes on from are cut
off, so the file reads as if the run had never stopped.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keima.atomic import replacing
from keima.games.drawing import new_figure
from keima.plain import Data, Fields
from keima.training.run.objective import TOTAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FILE = "metrics.jsonl"


def read_metrics(path: Path) -> list[Data]:
    """The lines of a metrics.jsonl; none where it is missing. A last line cut short is left out."""
    return parse_metrics(path.read_text(encoding="utf-8")) if path.exists() else []


def parse_metrics(text: str) -> list[Data]:
    """The lines of a metrics.jsonl's text."""
    lines: list[Data] = []
    for line in text.splitlines():
        try:
            parsed = json.loads(line)
        except ValueError:
            continue
        if isinstance(parsed, dict) and isinstance(parsed.get("step"), int):
            lines.append(parsed)
    return lines


class Metrics:
    """Writes a run's numbers, by one of its processes. Raises OSError where the disk is full or not writable."""

    def __init__(self, folder: Path, step: int) -> None:
        """Open for a run that goes on from a step (0 for a fresh one); later lines are cut off."""
        self.path = folder / FILE
        self.lines = [line for line in read_metrics(self.path) if step and line["step"] <= step]
        with replacing(self.path, "w") as stream:
            stream.writelines(json.dumps(line) + "\n" for line in self.lines)
        self._stream = self.path.open("a", encoding="utf-8")
        self._board = _board(folder / "tensorboard", step)

    def write(self, line: Fields) -> None:
        """Add a line."""
        self._stream.write(json.dumps(line) + "\n")
        self._stream.flush()
        self.lines.append(dict(line))
        if self._board is not None:
            numbers = {f"training/{name}": number for name, number in line.items() if name != "step"}
            numbers |= {f"held-out/{name}": number for name, number in line.get("evaluation", {}).items()}
            for name, number in numbers.items():
                if isinstance(number, (int, float)) and math.isfinite(number):
                    self._board.add_scalar(name, float(number), line["step"])
            self._board.flush()

    def close(self) -> None:
        """Close the files."""
        self._stream.close()
        if self._board is not None:
            self._board.close()


def _board(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=step + 1 if step else None)


# --- Pictures ---------------------------------------------------------------------------------------------------------

INK, BLUE, ORANGE, GREEN, PALE = "#333333", "#2f6db5", "#c8642b", "#3f8f5a", "#d9d9d9"
COLOURS = (BLUE, ORANGE, GREEN, "#8a5aa8", "#b0892c", "#5a9fa8", "#a84f6e", "#777777")
"""For lines beside one another, in this order."""
_SHARES = (("top1", BLUE), ("top5", GREEN), ("value_accuracy", ORANGE))
_ERRORS = (("cross_entropy", "cross-entropy (nats)", BLUE), ("value_mse", "value MSE", ORANGE))
"""Each on an axis of its own, which need not begin at 0: what a training brings is a small part of either."""
_APART = 8
"""Losses further apart than so many times are not seen side by side on a linear axis."""
_NOT_TERMS = (
    *("step", "positions", "games", "learning_rate", "positions_per_second", "games_per_second", "evaluation"),
    *("generation", "window", "games_played"),
)


def draw_plots(folder: str | os.PathLike[str], lines: Sequence[Fields]) -> list[Path]:
    """Draw the lines of a metrics.jsonl: losses.png, and with an evaluation learning.png and evaluation.png; the files.

    Each is written whole or not at all; an OSError where it cannot be.
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


def _figure(panels: int = 2) -> tuple[Figure, list[Axes]]:
    figure = new_figure(5.5 * panels, 4.2)
    axes = list(figure.subplots(1, panels))
    for each in axes:
        each.xaxis.set_major_formatter("{x:,g}")
        each.spines[["top", "right"]].set_visible(False)
        each.grid(color=PALE, linewidth=0.6)
        each.set_axisbelow(True)
    return figure, axes


def _save(figure: Figure, path: Path) -> Path:
    with replacing(path) as stream:
        figure.savefig(stream, format="png", dpi=110)
    return path


def _losses(lines: Sequence[Fields]) -> Figure:
    figure, (left, right) = _figure()
    steps = [line["step"] for line in lines]
    plot_losses(left, lines)
    left.set_title("Training loss and its terms")
    right.plot(steps, [line["learning_rate"] for line in lines], color=BLUE, linewidth=1.4, marker=_marker(lines))
    right.set(title="Learning rate", ylim=(0, None))
    _of_steps(left, right)
    right.yaxis.set_major_formatter("{x:g}")
    return figure


def _of_steps(*each: Axes) -> None:
    """Axes over steps, which are whole numbers."""
    from matplotlib.ticker import MaxNLocator

    for axes in each:
        axes.set_xlabel("step")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _marker(lines: Sequence[Fields]) -> str | None:
    """A dot where there is one line only, which no curve would show."""
    return "o" if len(lines) == 1 else None


def plot_losses(axes: Axes, lines: Sequence[Fields]) -> None:
    """Plot the loss and its terms by step; on a logarithmic axis where they are of different size."""
    from matplotlib.ticker import LogLocator

    steps = [line["step"] for line in lines]
    terms = [name for name in lines[-1] if name not in _NOT_TERMS]
    terms.sort(key=lambda name: name != TOTAL)
    for index, name in enumerate(terms):
        numbers = [line.get(name, float("nan")) for line in lines]
        colour = INK if name == TOTAL else COLOURS[index % len(COLOURS)]
        axes.plot(steps, numbers, color=colour, linewidth=1.2, label=name, marker=_marker(lines))
    last = [lines[-1][name] for name in terms]
    if min(last, default=0) > 0 and max(last) > _APART * min(last):
        axes.set_yscale("log", subs=())
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
        axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False, fontsize=8)


def _learning(lines: Sequence[Fields]) -> Figure:
    figure, (left, *others) = _figure(3)
    steps = [line["step"] for line in lines]
    for name, colour in _SHARES:
        _curve(left, steps, lines, name, colour)
    left.set_title("Held-out games: shares")
    left.yaxis.set_major_formatter(_percent)
    if left.get_legend_handles_labels()[0]:
        left.legend(frameon=False, fontsize=8)
    for axes, (name, title, colour) in zip(others, _ERRORS, strict=True):
        _curve(axes, steps, lines, name, colour)
        axes.set_title(f"Held-out games: {title}")
        axes.yaxis.set_major_formatter("{x:g}")
    _of_steps(left, *others)
    return figure


def _percent(share: float, _tick: float | None = None) -> str:
    return f"{100 * share:.3g} %"


def _curve(axes: Axes, steps: Sequence[int], lines: Sequence[Fields], name: str, colour: str) -> None:
    numbers = [line["evaluation"].get(name) for line in lines]
    if any(number is not None for number in numbers):
        known = [float("nan") if number is None else number for number in numbers]
        axes.plot(steps, known, color=colour, marker="o", markersize=3, linewidth=1.4, label=name)


def _last_evaluation(line: Fields) -> Figure:
    evaluation = line["evaluation"]
    figure, (left, right) = _figure()
    phases = evaluation["phases"]
    for name, colour in _SHARES:
        points = [(phase["ply"], phase[name]) for phase in phases if name in phase]
        if points:
            left.plot(*zip(*points, strict=True), color=colour, marker="o", markersize=3, linewidth=1.4, label=name)
    left.set(title=f"By phase, step {line['step']:,}", xlabel="from ply", ylim=(0, 1))
    left.yaxis.set_major_formatter(_percent)
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
