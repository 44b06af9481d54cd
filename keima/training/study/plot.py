"""A study as one picture: learning curves above, the final figures with their uncertainty below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keima.atomic import replacing
from keima.games.drawing import new_figure
from keima.plain import Fields
from keima.training.run.metrics import COLOURS, INK, PALE
from keima.training.study.record import Contents, limits_of, share_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = ("o", "D")

Bar = tuple[float, float]
"""A figure and half its 95 % interval (0 where none is known)."""


def draw_study(path: Path, contents: Contents) -> Path:
    """Draw a study's picture (PNG), written whole or not at all; variants without figures are left out.

    Raises:
        OSError: it cannot be written.
    """
    shown = {name: known for name, known in contents["variants"].items() if "evaluation" in known}
    colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(shown)}
    evaluations = [known["evaluation"] for known in shown.values()]
    errors = [each.get("value_mse") for each in evaluations]
    bars: dict[str, list[Bar | None]] = {
        "Top-1, %": [_top1(each) for each in evaluations],
        "Value error, (v − z)²": [None if error is None else (error, 0.0) for error in errors],
        "Evaluations a second": [(known["evaluations_per_second"], 0.0) for known in shown.values()],
    }
    panels: list[Callable[[Axes], None]] = [
        partial(_bars, title=title, bars=numbers, colours=colours) for title, numbers in bars.items()
    ]
    if limits_of(contents):
        panels.append(partial(_matches, contents=contents, shown=shown, colours=colours))
    height = 4.2 + 1.1 + 0.42 * len(shown)
    figure = new_figure(13, height)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    figure.suptitle(contents["title"], x=0.01, ha="left", fontsize=14, color=INK)
    halves: Any = figure.subfigures(2, 1, height_ratios=(4.2, height - 4.2))
    upper, lower = halves
    for axes, (title, key, factor) in zip(
        upper.subplots(1, 2),
        (("Held-out top-1, %", "top1", 100.0), ("Held-out value error, (v − z)²", "value_mse", 1.0)),
        strict=True,
    ):
        _curves(axes, title, shown, key, factor, colours)
        if key == "top1" and axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize=9)
    for at, (axes, draw) in enumerate(zip(lower.subplots(1, len(panels)), panels, strict=True)):
        draw(axes)
        axes.set_yticks(range(len(shown)), list(shown) if at == 0 else [""] * len(shown))
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
    with replacing(path) as stream:
        figure.savefig(stream, format="png", dpi=110)
    return path


def _plain(axes: Axes, title: str, grid: str) -> None:
    axes.set_title(title, fontsize=11, loc="left", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color=PALE, linewidth=0.6)  # type: ignore[arg-type]
    axes.set_axisbelow(True)


def _curves(axes: Axes, title: str, shown: Fields, key: str, factor: float, colours: Mapping[str, str]) -> None:
    """One number over the positions seen in training, a line a variant."""
    _plain(axes, title, "both")
    for name, known in shown.items():
        points = [(each["positions"], factor * each[key]) for each in known["curve"] if each.get(key) is not None]
        if points:
            across, up = zip(*points, strict=True)
            axes.plot(across, up, color=colours[name], marker="o", markersize=3.5, linewidth=1.6, label=name)
    axes.set_xlabel("positions seen in training")
    axes.set_xlim(0, None)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _top1(evaluation: Fields) -> Bar | None:
    share = evaluation.get("top1")
    return None if share is None else (100 * share, 100 * share_error(share, evaluation["positions"]))


def _bars(axes: Axes, title: str, bars: Sequence[Bar | None], colours: Mapping[str, str]) -> None:
    _plain(axes, title, "x")
    most = max((number + error for number, error in filter(None, bars)), default=1.0) or 1.0
    for at, (bar, colour) in enumerate(zip(bars, colours.values(), strict=True)):
        if bar is None:
            axes.text(0, at, " none", va="center", fontsize=9, color=INK)
            continue
        number, error = bar
        axes.barh(at, number, height=0.6, color=colour)
        if error:
            axes.errorbar(number, at, xerr=error, color=INK, linewidth=1.2, capsize=3)
        digits = 3 if most < 10 else 1 if most < 100 else 0
        axes.text(number + error + 0.02 * most, at, f"{number:,.{digits}f}", va="center", fontsize=9, color=INK)
    axes.set_xlim(0, 1.25 * most)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")


def _matches(axes: Axes, contents: Contents, shown: Fields, colours: Mapping[str, str]) -> None:
    """Elo against the reference with its 95 % interval, a mark a match; an arrow where an end is not bounded."""
    reference, limits = contents["reference"], limits_of(contents)
    _plain(axes, f"Elo against {reference}, 95 %", "x")
    axes.axvline(0, color=INK, linewidth=0.8)
    ends = [
        abs(end)
        for known in shown.values()
        for match in known.get("matches", {}).values()
        for end in (match["elo"], *match["elo_interval"])
        if end is not None
    ]
    edge = 1.15 * max([*ends, 50.0])
    for at, (name, known) in enumerate(shown.items()):
        if name == reference:
            axes.text(0, at, "reference", ha="center", va="center", fontsize=9, color=INK, backgroundcolor="white")
        for index, limit in enumerate(limits):
            match = known.get("matches", {}).get(limit)
            if match is not None:
                offset = (index - (len(limits) - 1) / 2) * 0.3
                _interval(axes, at + offset, match, edge, colours[name], _MARKERS[index % len(_MARKERS)])
    axes.set_xlim(-edge, edge)
    axes.locator_params(axis="x", nbins=5)
    if len(limits) > 1:
        for index, limit in enumerate(limits):
            axes.plot([], [], color=INK, marker=_MARKERS[index % len(_MARKERS)], linestyle="", label=limit)
        axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=len(limits))
    else:
        axes.set_xlabel(limits[0])


def _interval(axes: Axes, at: float, match: Fields, edge: float, colour: str, marker: str) -> None:
    low, high = match["elo_interval"]
    axes.plot([-edge if low is None else low, edge if high is None else high], [at, at], color=colour, linewidth=2)
    for end, side, arrow in ((low, -0.97 * edge, "<"), (high, 0.97 * edge, ">")):
        if end is None:
            axes.plot([side], [at], marker=arrow, color=colour, markersize=7)
    if match["elo"] is not None:
        axes.plot([match["elo"]], [at], marker=marker, color=colour, markersize=7, markeredgecolor="white")
