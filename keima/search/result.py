"""What a search found: the moves with their visits and values, for the side to move at the root."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class MoveInfo:
    """One move at the root. Every value is for the **side to move at the root**.

    Attributes:
        move: GTP vertex or "pass", or UCI.
        order: 0 for the best move, then 1, 2, ...
        visits: visits of the move.
        prior: the policy's probability P, after root temperature and noise.
        value: Q = win − loss in [−1, 1].
        win, draw, loss: probabilities (Go: draw is "no result").
        utility: what the search maximised: value plus whatever the preset adds (score, moves left).
        lcb: lower confidence bound of `utility`; −inf below two visits.
        lead: points ahead (Go networks with a score head), else None.
        score_stdev: standard deviation of the final score in points, else None.
        moves_left: plies to the end (chess networks with such a head), else None.
        pv: the principal variation, beginning with this move.
        mate: solved result: plies to a forced win (positive) or loss (negative), 0 for a solved draw, else None.
    """

    move: str
    order: int
    visits: int
    prior: float
    value: float
    win: float
    draw: float
    loss: float
    utility: float
    lcb: float
    lead: float | None = None
    score_stdev: float | None = None
    moves_left: float | None = None
    pv: tuple[str, ...] = ()
    mate: int | None = None


@dataclass(frozen=True)
class SearchResult:
    """The root of a search. Every value is for the **side to move at the root**.

    Attributes:
        position: the root.
        best: the move to play by the preset's rule (visits, or KataGo's LCB).
        moves: every visited move, best first.
        visits: of the root.
        value, win, draw, loss, utility, lead, score_stdev, moves_left: of the root, averaged over the tree; value, win,
            draw and loss are the proven result where there is one.
        ownership: float32 [ysize, xsize] averaged over the tree, +1 = the root's side to move owns it; None unless
            asked for and the network has it.
        policy: the network's own probability of every legal move at the root, before noise and temperature.
        raw_value, raw_lead: the network's own answer for the root.
        seconds: wall-clock time of this search.
        evaluations: positions the network evaluated in it.
        depth, max_depth: average and greatest length of the paths searched.
        stopped_by: "visits", "seconds", "clock", "early", "stopped", "solved", "memory" or "running".
    """

    position: Any
    best: str
    moves: tuple[MoveInfo, ...]
    visits: int
    value: float
    win: float
    draw: float
    loss: float
    utility: float
    lead: float | None = None
    score_stdev: float | None = None
    moves_left: float | None = None
    ownership: NDArray[np.float32] | None = None
    policy: dict[str, float] = field(default_factory=dict)
    raw_value: float = 0.0
    raw_lead: float | None = None
    seconds: float = 0.0
    evaluations: int = 0
    depth: float = 0.0
    max_depth: int = 0
    stopped_by: str = "running"

    @property
    def principal_variation(self) -> tuple[str, ...]:
        """The best move and the expected answers to it."""
        return self.moves[0].pv if self.moves else ()

    def move(self, name: str) -> MoveInfo | None:
        """The root move of that name, if it was visited."""
        return next((info for info in self.moves if info.move == name), None)
