"""How much of the game clock a move may take.

A clock gives two numbers: the time to aim at, and the time never to exceed. The plan for main time is the field's
usual one: what is left, divided by the moves still to come, and the increment. Byo-yomi time cannot be saved, so a
period is used up except for a safety margin.

Sources: the shape follows Lc0's and KataGo's time managers (`src/search/classic/stoppers/`,
`cpp/search/timecontrols.cpp`) without their learned corrections; the expected lengths of games are of the order
both use.
"""

from __future__ import annotations

from dataclasses import dataclass

from keima.search.limits import Clock

MARGIN = 0.15
"""Seconds kept back for what happens between the search and the clock (at most a tenth of the time there is)."""

_MOST_OF_MAIN = 0.25
_STRETCH = 2.0


@dataclass(frozen=True)
class Budget:
    """Time for one move, in seconds.

    Attributes:
        target: what to use if nothing speaks against it.
        maximum: what never to exceed.
    """

    target: float
    maximum: float


def moves_to_come(game: str, ply: int, area: int = 361) -> float:
    """How many moves of its own a side expects to make yet.

    Args:
        game: "go" or "chess".
        ply: moves of both sides made so far.
        area: points of the board (Go).
    """
    if game == "chess":
        return max(20.0, 45.0 - ply / 4)
    return max(area / 12, 0.35 * area - ply / 2)


def budget(clock: Clock, game: str, ply: int, area: int = 361) -> Budget:
    """The time for one move.

    Args:
        clock: of the side to move.
        game: "go" or "chess".
        ply: moves of both sides made so far.
        area: points of the board (Go).
    """
    period = clock.period / clock.period_moves if clock.periods else 0.0
    if clock.main <= 0 and period > 0:
        time = period - min(MARGIN, period / 10)
        return Budget(time, time)
    moves = float(clock.moves_to_go) if clock.moves_to_go else moves_to_come(game, ply, area)
    safe = max(clock.main - min(MARGIN, clock.main / 10), 0.0)
    share = safe / moves + 0.85 * clock.increment
    most = min(safe, max(share, _MOST_OF_MAIN * safe)) if moves > 1 else safe
    if period > 0:
        most = min(clock.main, most) + 0.9 * period
        share = max(share, 0.9 * period)
    return Budget(min(share, most), min(_STRETCH * share, most))
