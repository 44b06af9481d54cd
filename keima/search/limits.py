"""When a search stops: visits, seconds, or a share of the game clock."""

from __future__ import annotations

from dataclasses import dataclass

from keima.errors import BadRequest


@dataclass(frozen=True)
class Clock:
    """The game clock of the side to move.

    Attributes:
        main: seconds of main time left.
        increment: seconds added after each move (Fischer).
        period: seconds of one byo-yomi period; 0 for none.
        periods: byo-yomi periods left (Japanese), or 1 for Canadian.
        period_moves: moves to make in the period (Canadian); 1 for Japanese.
        moves_to_go: moves until the next time control (chess), or None.
    """

    main: float
    increment: float = 0.0
    period: float = 0.0
    periods: int = 0
    period_moves: int = 1
    moves_to_go: int | None = None

    def __post_init__(self) -> None:
        times = {"main": self.main, "increment": self.increment, "period": self.period}
        for name, seconds in times.items():
            if not seconds >= 0:
                raise BadRequest(f"clock: {name} must be at least 0 seconds, not {seconds}")
        if self.periods < 0 or self.period_moves < 1:
            raise BadRequest(f"clock: {self.periods} periods of {self.period_moves} moves cannot be")


@dataclass(frozen=True)
class Limits:
    """What ends a search; the first that is reached does. With none of them it runs until it is stopped.

    Attributes:
        visits: visits of the root, those kept from an earlier search included.
        seconds: wall-clock seconds.
        clock: the game clock; the search works out its own share of it.
        early_stop: end also when no further visit can change the move (never while pondering or analysing).
    """

    visits: int | None = None
    seconds: float | None = None
    clock: Clock | None = None
    early_stop: bool = False

    def __post_init__(self) -> None:
        if self.visits is not None and self.visits < 1:
            raise BadRequest(f"visits must be at least 1, not {self.visits}")
        if self.seconds is not None and not self.seconds >= 0:
            raise BadRequest(f"seconds must be at least 0, not {self.seconds}")
