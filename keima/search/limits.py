"""When a search stops: visits, seconds, or a share of the game clock.

Main time left is divided by the moves still to come, which the game expects, and the increment added. Byo-yomi time
cannot be saved, so a period is used up except for a safety margin. The shape follows Lc0's and KataGo's time managers
(`src/search/classic/stoppers/`, `cpp/search/timecontrols.cpp`) without their learned corrections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from keima.errors import BadRequest

MARGIN = 0.15
"""Seconds kept back for what happens between the search and the clock (at most a tenth of the time there is)."""

_MOST_OF_MAIN = 0.25
_STRETCH = 2.0


@dataclass(frozen=True)
class Clock:
    """The game clock of the side to move, in seconds."""

    main: float  # left
    increment: float = 0.0  # added after each move (Fischer)
    period: float = 0.0  # one byo-yomi period; 0 for none
    periods: int = 0  # byo-yomi periods left (Japanese), or 1 for Canadian
    period_moves: int = 1  # moves to make in the period (Canadian); 1 for Japanese
    moves_to_go: int | None = None  # moves until the next time control (chess)

    def __post_init__(self) -> None:
        for name in ("main", "increment", "period"):
            if not getattr(self, name) >= 0:
                raise BadRequest(f"clock: {name} must be at least 0 seconds, not {getattr(self, name)}")
        if self.periods < 0 or self.period_moves < 1:
            raise BadRequest(f"clock: {self.periods} periods of {self.period_moves} moves cannot be")


@dataclass(frozen=True)
class Limits:
    """What ends a search; the first that is reached does. With none of them it runs until it is stopped."""

    visits: int | None = None  # of the root, those kept from an earlier search included
    seconds: float | None = None  # of wall-clock time
    clock: Clock | None = None  # the game clock; the search works out its own share of it
    early_stop: bool = False  # end also when no further visit can change the move; not for pondering or analysing

    def __post_init__(self) -> None:
        if self.visits is not None and self.visits < 1:
            raise BadRequest(f"visits must be at least 1, not {self.visits}")
        if self.seconds is not None and not self.seconds >= 0:
            raise BadRequest(f"seconds must be at least 0, not {self.seconds}")


class Budget(NamedTuple):
    """Seconds for one move: what to use if nothing speaks against it, and what never to exceed."""

    target: float
    maximum: float


def budget(clock: Clock, moves_to_come: float) -> Budget:
    """The time for one move of a side that expects to make so many yet."""
    period = clock.period / clock.period_moves if clock.periods else 0.0
    if clock.main <= 0 and period > 0:
        time = period - min(MARGIN, period / 10)
        return Budget(time, time)
    moves = float(clock.moves_to_go) if clock.moves_to_go else moves_to_come
    safe = max(clock.main - min(MARGIN, clock.main / 10), 0.0)
    share = safe / moves + 0.85 * clock.increment
    most = min(safe, max(share, _MOST_OF_MAIN * safe)) if moves > 1 else safe
    if period > 0:
        most = min(clock.main, most) + 0.9 * period
        share = max(share, 0.9 * period)
    return Budget(min(share, most), min(_STRETCH * share, most))
