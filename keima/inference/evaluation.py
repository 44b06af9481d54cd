"""One position's answer: what `Evaluator` returns and `keima eval` prints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest


@dataclass(frozen=True)
class Evaluation:
    """A network's answer for one position, everything for the **side to move**.

    Fields that the network lacks are None (and absent from `to_json`).
    """

    policy: dict[str, float]  # probability of each legal move by name (GTP vertex and "pass", or UCI); sums to 1
    logits: dict[str, float]  # the same moves' raw logits
    win: float | None = None  # probabilities; in Go `draw` is "no result"
    draw: float | None = None
    loss: float | None = None
    value: float | None = None  # win − loss, in [−1, 1]
    lead: float | None = None  # points ahead (Go)
    ownership: NDArray[np.float32] | None = None  # [ysize, xsize] in [−1, 1], row 0 the top of the board
    moves_left: float | None = None  # plies to the end of the game
    extra: Mapping[str, float] = field(default_factory=dict)  # further numbers by name (KataGo: score_mean, ...)

    def __repr__(self) -> str:
        best = f"best={self.best!r} ({self.policy[self.best]:.1%} of {len(self.policy)})" if self.policy else "no moves"
        told = [
            f"{name}={number:.3f}"
            for name in ("win", "draw", "loss", "lead")
            if (number := getattr(self, name)) is not None
        ]
        return f"<Evaluation {', '.join([best, *told])}>"

    @property
    def best(self) -> str:
        """The legal move with the highest probability."""
        return max(self.policy, key=lambda move: self.policy[move])

    def at_temperature(self, temperature: float) -> Evaluation:
        """The same answer with a sharper (below 1) or flatter (above 1) policy: each probability to the power of 1/T.

        Probabilities are renormalised over the legal moves; logits and everything else stay.

        Raises:
            BadRequest: a temperature that is not a positive, finite number.
        """
        if not (math.isfinite(temperature) and temperature > 0):
            raise BadRequest(f"a temperature is a number above 0, not {temperature}")
        if temperature == 1 or not self.policy:
            return self
        logits = np.array([self.logits[move] for move in self.policy], np.float64)
        powers = np.exp((logits - logits.max()) / temperature)
        return replace(self, policy=dict(zip(self.policy, (powers / powers.sum()).tolist(), strict=True)))

    def to_json(self) -> dict[str, object]:
        """The answer as plain Python data, in the order of DESIGN's answer line; absent fields left out."""
        names = ("policy", "logits", "win", "draw", "loss", "value", "lead", "ownership", "moves_left")
        line = {name: getattr(self, name) for name in names}
        if self.ownership is not None:
            line["ownership"] = [[round(float(point), 6) for point in row] for row in self.ownership]
        line["extra"] = dict(self.extra) or None
        return {name: value for name, value in line.items() if value is not None}
