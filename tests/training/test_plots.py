"""A run's plots, as matplotlib has drawn them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from keima.training.run import metrics


def line(step: int) -> dict[str, Any]:
    return {"step": step, "loss": 6.0 - step / 100, "policy": 5.0, "learning_rate": 1e-3}


@pytest.mark.parametrize("steps", [[6], [1, 2, 3]])
def test_a_short_run_is_seen_over_whole_steps(steps: list[int]) -> None:
    """Even one line: a curve through one point shows nothing."""
    figure: Figure = metrics._losses([line(step) for step in steps])
    for axes in figure.axes:
        assert axes.get_xlabel() == "step"
        low, high = axes.get_xlim()
        shown = [tick for tick in axes.get_xticks() if low <= tick <= high]
        assert shown
        assert all(tick == int(tick) for tick in shown)
        for curve in axes.get_lines():
            assert np.size(curve.get_xydata()) > 2 or curve.get_marker() == "o"
