"""The game clock as GTP tells it: `time_settings`, `kgs-time_settings`, `kata-time_settings` and `time_left`.

GTP 2 knows absolute and Canadian time; KGS added Japanese byo-yomi, KataGo Fischer time. Controllers send `time_left`
before each move, or never: between two of them the clock runs by what our own moves took.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from keima.engines.gtp.time_plan import Told
from keima.search.limits import Clock

UNLIMITED = 1e25
"""The most seconds that are taken; as a limit they are none."""


@dataclass
class TimeControl:
    """One side's clock.

    Attributes:
        main: seconds of main time at the start.
        increment: seconds added after each move.
        period: seconds of a byo-yomi period, 0 for none.
        periods: Japanese periods; 1 for Canadian time.
        period_moves: moves to make in a period; 1 for Japanese time.
        main_limit: main time never grows above it.
        move_limit: seconds a move may take at most.
        told: the clock as KataGo would hold it.
    """

    main: float
    increment: float = 0.0
    period: float = 0.0
    periods: int = 0
    period_moves: int = 1
    main_limit: float = UNLIMITED
    move_limit: float = UNLIMITED
    told: Told = field(init=False)
    _main_left: float = field(init=False)
    _period_left: float = field(init=False)
    _periods_left: int = field(init=False)
    _moves_left: int = field(init=False)

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Wind the clock up for a new game."""
        self._main_left = self.main
        self._begin_periods(self.periods)
        stones = self.period_moves if self.periods else 0
        limits = (self.main_limit, self.move_limit)
        self.told = Told(self.main, self.increment, *limits, self.periods, stones, self.period, self.main)
        self.told = replace(self.told, periods_left=self.periods)

    def clock(self) -> Clock:
        """What is left, for the search."""
        if self._main_left > 0 or not self.periods:
            return Clock(
                max(self._main_left, 0.0), self.increment, self.period, self.periods, period_moves=self.period_moves
            )
        return Clock(0.0, 0.0, self._period_left, max(self._periods_left, 1), period_moves=self._moves_left)

    def set_left(self, seconds: float, stones: int) -> None:
        """Take over a `time_left`: seconds, and stones (Canadian) or periods (Japanese, as KGS) left in byo-yomi."""
        self.told = self.told.left(seconds, stones)
        seconds = max(seconds, 0.0)
        if stones == 0:
            self._main_left = seconds
            self._begin_periods(self.periods)
        elif self.periods > 1 and self.period_moves == 1:
            self._main_left = 0.0
            self._begin_periods(min(stones, self.periods))
            self._period_left = seconds
        else:
            self._main_left = 0.0
            self._period_left, self._moves_left = seconds, min(stones, self.period_moves)

    def spend(self, seconds: float) -> None:
        """Let the clock run for one move."""
        if self._main_left > seconds or not self.periods:
            self._main_left = min(max(self._main_left - seconds, 0.0) + self.increment, self.main_limit)
            return
        seconds -= max(self._main_left, 0.0)
        self._main_left = 0.0
        while seconds >= self._period_left and self._periods_left > 1:
            seconds -= self._period_left
            self._begin_periods(self._periods_left - 1)
        self._moves_left -= 1
        self._period_left = max(self._period_left - seconds, 0.0)
        if self._moves_left <= 0:
            self._begin_periods(self._periods_left)

    def _begin_periods(self, periods: int) -> None:
        self._period_left, self._periods_left, self._moves_left = self.period, periods, max(self.period_moves, 1)
