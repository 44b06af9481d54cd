"""The game clock as GTP tells it: `time_settings`, `kgs-time_settings`, `kata-time_settings` and `time_left`.

GTP 2 knows absolute and Canadian time; KGS added Japanese byo-yomi, KataGo Fischer time. Controllers send `time_left`
before each move, or never: between two of them the clock runs by what our own moves took. `Told` is the clock as KataGo
holds it, with its plan for `kata-debug-print-tc` (v1.17.2 `cpp/search/timecontrols.cpp`, `getTime` and
`roundUpTimeLimitIfNeeded`); how our own search spends time: `keima.search.clock`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from keima.search.limits import Clock

UNLIMITED = 1e25
"""The most seconds that are taken; as a limit they are none."""
_TOLD_LIMIT = 1e20
"""Seconds from which on `Told` says nothing of a limit."""
_RESERVED_PERIODS = 5
"""Periods of byo-yomi before the last ones count as main time."""


@dataclass(frozen=True)
class Told:
    """One side's clock as KataGo holds it, seconds.

    Attributes:
        main, increment, main_limit, move_limit: as it was set.
        periods, stones, period: of byo-yomi: how many periods, stones in each, and its length.
        main_left, in_overtime, periods_left, stones_left, period_left: as it stands.
    """

    main: float = 1e30
    increment: float = 0.0
    main_limit: float = 1e40
    move_limit: float = 1e40
    periods: int = 0
    stones: int = 0
    period: float = 0.0
    main_left: float = 1e30
    in_overtime: bool = False
    periods_left: int = 0
    stones_left: int = 0
    period_left: float = 0.0

    def left(self, seconds: float, stones: int) -> Told:
        """The clock after `time_left`."""
        if stones == 0:
            main = replace(self, main_left=seconds, in_overtime=False, periods_left=self.periods)
            return replace(main, stones_left=0, period_left=0.0)
        by_periods = self.periods > 1 and self.stones == 1
        periods, moves = (min(stones, self.periods), 1) if by_periods else (1, min(stones, self.stones))
        over = replace(self, main_left=0.0, in_overtime=True, periods_left=periods)
        return replace(over, stones_left=moves, period_left=seconds)

    def describe(self, area: int, stones: int, lag: float) -> str:
        """KataGo's line about it, for `stones` on a board of `area` points; `lag`: seconds of `lagBuffer`."""
        facts = {
            "originalMainTime": self.main,
            "increment": self.increment or None,
            "mainTimeLimit": self.main_limit if self.main_limit < _TOLD_LIMIT else None,
            "maxTimePerMove": self.move_limit if self.move_limit < _TOLD_LIMIT else None,
            "originalNumPeriods": self.periods or None,
            "numStonesPerPeriod": self.stones or None,
            "perPeriodTime": self.period or None,
            "mainTimeLeft": self.main_left,
            "inOvertime": self.in_overtime,
            "numPeriodsLeftIncludingCurrent": self.periods_left or None,
            "numStonesLeftInPeriod": self.stones_left or None,
            "timeLeftInPeriod": self.period_left or None,
        }
        least, wanted, most = self._plan(area, stones, lag)
        rounded = self._rounded_up(lag, wanted - 1e-6, wanted)
        ends = f"rrec0 {self._rounded_up(lag, 0.0, wanted):g} rreclimit {rounded:g}"
        again = self._rounded_up(lag, rounded - 1e-6, rounded)
        told = " ".join(f"{name} {number:g}" for name, number in facts.items() if number is not None)
        return f"{told} minRecMax {least:g} {wanted:g} {most:g} {ends} rreclimit2 {again:g}"

    def _plan(self, area: int, stones: int, lag: float) -> tuple[float, float, float]:
        """Seconds for a move: less would be lost anyway; recommended; never more."""
        if self.increment > 0 or self.periods_left <= 0:
            least, wanted, most = self._plan_main(area, stones, lag)
        else:
            least, wanted, most, doubled = self._plan_periods(area, stones, lag)
            lag *= 2 if doubled else 1
        most = max(_less_lag(min(most, self.move_limit), lag), 0.0)
        return min(max(_less_lag(least, lag), 0.0), most), min(max(_less_lag(wanted, lag), 0.0), most), most

    def _plan_main(self, area: int, stones: int, lag: float) -> tuple[float, float, float]:
        """Absolute and Fischer time."""
        least = min(max(0.0, self.main_left * 0.5), max(0.0, self.main_left + self.increment - self.main_limit))
        if self.main_left <= self.increment:
            return least, _less_lag(self.main_left, lag), self.main_left
        excess = _less_lag(self.main_left - self.increment, lag)
        share = excess
        if excess > 0:
            slow = excess / _turns(area, stones, 0.95, 20, 0.15, 30) + 2 * self.increment
            share = min(excess / _turns(area, stones, 0.75, 15, 0.10, 20), slow)
        return least, self.increment + share, min(self.main_left, self.increment + excess / 5)

    def _plan_periods(self, area: int, stones: int, lag: float) -> tuple[float, float, float, bool]:
        """Byo-yomi and Canadian time; and whether the lag counts twice, as running out would lose."""
        now = self._spent(0.0)
        main, in_overtime = now.main_left, now.in_overtime
        if now.periods_left > _RESERVED_PERIODS:
            spare = self.period * (now.periods_left - _RESERVED_PERIODS)
            main += spare if not self.in_overtime else now.period_left + spare - self.period
            in_overtime = False
        if not in_overtime:
            a_move = self.period / (0.75 * self.stones + 0.25)
            most = a_move + max(min(a_move * 1.75, main), main / 5)
            if main < most < main + a_move:
                most = main + a_move
            last = most > main and now.periods_left <= 1 and self.stones <= 1
            return 0.0, self._share(main, area, stones), most, last
        left, periods, moves = now.period_left, now.periods_left, now.stones_left
        enough = _less_lag(0.5 * self.period, lag) * (periods - 1) / (_RESERVED_PERIODS - 1)
        if periods > 1 and _less_lag(left, lag) < enough:
            left, periods = left + self.period, periods - 1
        least = left if moves <= 1 else 0.0
        return least, left / moves, left / (0.75 * moves + 0.25), periods <= 1 and moves <= 1

    def _share(self, main: float, area: int, stones: int) -> float:
        """Of main time before byo-yomi."""
        absolute = _turns(area, stones, 0.95, 20, 0.15, 30)
        if self.period <= 0 or self.stones <= 0:
            return main / absolute
        a_move = self.period / self.stones
        best = main / a_move * math.exp(-1.0)  # e times the byo-yomi time a move is best where strength grows as log
        wanted = _turns(area, stones, 0.50, 10, 0.02, 4)
        turns = max(min(min(wanted, best * 1.75) if wanted > best else best, absolute), 1.0)
        share = max(min(main / turns, main / absolute + 3 * a_move), a_move)
        return main + a_move if share < a_move * 1.5 and main < a_move * 1.5 else share

    def _spent(self, seconds: float) -> Told:
        """The clock after so many seconds of thinking."""
        main, left, periods = self.main_left, self.period_left, self.periods_left
        in_overtime, moves = self.in_overtime, self.stones_left
        if in_overtime:
            left -= seconds
        else:
            main -= seconds
            if main < 0:
                in_overtime, left, moves = True, main + self.period, self.stones
        while in_overtime and left < 0 and periods > 1:
            periods, left = periods - 1, left + self.period
        return replace(
            self, main_left=main, in_overtime=in_overtime, periods_left=periods, stones_left=moves, period_left=left
        )

    def _rounded_up(self, lag: float, used: float, limit: float) -> float:
        """A limit moved to where no time of a period is lost by it, after so many seconds of thinking."""
        if self.increment > 0 or self.periods_left <= 0:
            return limit
        now = self._spent(used)
        a_move = self.period / self.stones
        safe = _less_lag(a_move, lag)
        bit = min(max(lag, safe * 0.01), safe)
        if not now.in_overtime:
            if now.main_left >= a_move * 0.5:
                return limit
            end = used + now.main_left + (safe if self.stones <= 1 else bit)
        elif now.period_left <= 0:
            return limit
        elif now.stones_left > 1:
            begun = self.period - now.period_left
            if self.in_overtime or begun >= bit:
                return limit
            end = used + bit - begun
        else:
            end = _less_lag(used + now.period_left, lag)
        return limit if end < used else max(limit, end)


@dataclass
class TimeControl:
    """One side's clock.

    Attributes:
        main, increment, period: seconds at the start, added after each move, and of byo-yomi (0 for none).
        periods, period_moves: Japanese periods and 1, or for Canadian time 1 and the moves to make in it.
        main_limit, move_limit: seconds above which main time never grows, and that a move may take.
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
        told = Told(self.main, self.increment, *limits, self.periods, stones, self.period, self.main)
        self.told = replace(told, periods_left=self.periods)

    def clock(self) -> Clock:
        """What is left, for the search."""
        if self._main_left > 0 or not self.periods:
            main = max(self._main_left, 0.0)
            return Clock(main, self.increment, self.period, self.periods, period_moves=self.period_moves)
        return Clock(0.0, 0.0, self._period_left, max(self._periods_left, 1), period_moves=self._moves_left)

    def set_left(self, seconds: float, stones: int) -> None:
        """Take over a `time_left`: seconds, and stones (Canadian) or periods (Japanese, as KGS) left in byo-yomi."""
        self.told = self.told.left(seconds, stones)
        seconds = max(seconds, 0.0)
        if stones == 0:
            self._main_left = seconds
            self._begin_periods(self.periods)
            return
        self._main_left = 0.0
        if self.periods > 1 and self.period_moves == 1:
            self._begin_periods(min(stones, self.periods))
        else:
            self._moves_left = min(stones, self.period_moves)
        self._period_left = seconds

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


def _less_lag(seconds: float, lag: float) -> float:
    """Time less what the connection may lose; of little time half."""
    return seconds if seconds < 0 else seconds * 0.5 if seconds < 2 * lag else seconds - lag


def _turns(area: int, stones: int, share: float, more: float, least_share: float, least: float) -> float:
    """Own moves to plan for: half of a usual game's length less the stones on the board, but not too few."""
    return 0.5 * max(share * area + more - stones, least_share * area + least)
