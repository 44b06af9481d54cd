"""The results of a match: a line for each game, and where the match stands."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from keima.engines.match.elo import Sprt, Tally
from keima.engines.match.game import Ending
from keima.games.playing import Opening
from keima.plain import Data


@dataclass(frozen=True)
class GameResult:
    """One line of `games.jsonl`.

    Attributes:
        number: from 1.
        opening: its name.
        first: "A" or "B": who had the first side.
        winner: "A", "B", or None for a draw.
        result, reason: as in `Ending`.
        fault: {"player": "A" or "B", "kind": …, "detail": …} of the engine that lost by one, or None.
        plies: moves after the opening.
        seconds: thinking time of A and B.
        notes: as in `Ending`.
    """

    number: int
    opening: str
    first: str
    winner: str | None
    result: str
    reason: str
    fault: dict[str, str] | None
    plies: int
    seconds: tuple[float, float]
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(number: int, opening: Opening, a_first: bool, ending: Ending) -> GameResult:
        """What is remembered of a game."""
        names = "AB" if a_first else "BA"
        fault = None
        if ending.fault is not None:
            fault = {"player": names[ending.fault.side], "kind": ending.fault.kind, "detail": ending.fault.detail}
        seconds = ending.seconds if a_first else ending.seconds[::-1]
        return GameResult(
            number,
            opening.name,
            names[0],
            None if ending.winner is None else names[ending.winner],
            ending.result,
            ending.reason,
            fault,
            ending.plies,
            (round(seconds[0], 3), round(seconds[1], 3)),
            ending.notes,
        )

    @property
    def points(self) -> float:
        """A's points: 1, ½ or 0."""
        return {"A": 1.0, "B": 0.0, None: 0.5}[self.winner]


@dataclass(frozen=True)
class Summary:
    """Where a match stands.

    Attributes:
        names: of A and B.
        tally: A's results.
        as_first: A's wins, draws and losses where A had the first side.
        results: all games, by number.
        sprt: the test, its log-likelihood ratio and verdict ("H0", "H1" or None); None without a test.
    """

    names: tuple[str, str]
    tally: Tally
    as_first: tuple[int, int, int]
    results: tuple[GameResult, ...]
    sprt: tuple[Sprt, float, str | None] | None

    @property
    def as_second(self) -> tuple[int, int, int]:
        """A's wins, draws and losses where B moved first."""
        wins, draws, losses = self.as_first
        return self.tally.wins - wins, self.tally.draws - draws, self.tally.losses - losses

    @property
    def faults(self) -> list[GameResult]:
        """The games lost by a fault."""
        return [result for result in self.results if result.fault is not None]

    def to_json(self) -> Data:
        """Plain data; an infinite Elo is null."""
        tally = self.tally
        line: Data = {
            "a": self.names[0],
            "b": self.names[1],
            "games": tally.games,
            "wins": tally.wins,
            "draws": tally.draws,
            "losses": tally.losses,
            "pairs": list(tally.pairs),
            "as_first": list(self.as_first),
            "as_second": list(self.as_second),
            "score": tally.score,
            "score_interval": list(tally.score_interval),
            "elo": _finite(tally.elo),
            "elo_interval": [_finite(bound) for bound in tally.elo_interval],
            "superiority": tally.superiority,
            "reasons": dict(Counter(result.reason for result in self.results)),
            "faults": [{"game": result.number, **(result.fault or {})} for result in self.faults],
            "seconds": [round(sum(result.seconds[who] for result in self.results), 3) for who in (0, 1)],
            "plies": sum(result.plies for result in self.results),
        }
        if self.sprt is not None:
            test, ratio, verdict = self.sprt
            bounds = {"lower": test.lower, "upper": test.upper}
            line["sprt"] = {**asdict(test), "llr": ratio, **bounds, "verdict": verdict}
        return line


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def summarise(
    results: Sequence[GameResult], names: tuple[str, str], swap: bool = True, sprt: Sprt | None = None
) -> Summary:
    """Count the games of a match."""
    ordered = sorted(results, key=lambda result: result.number)
    points = {result.number: result.points for result in ordered}
    pairs = [0] * 5
    if swap:
        for number in points:
            if number % 2 == 1 and number + 1 in points:
                pairs[round(2 * (points[number] + points[number + 1]))] += 1
    wins, draws, losses = _counts(points.values())
    tally = Tally(wins, draws, losses, (pairs[0], pairs[1], pairs[2], pairs[3], pairs[4]))
    first = _counts(result.points for result in ordered if result.first == "A")
    test = None if sprt is None else (sprt, sprt.ratio(tally), sprt.verdict(tally))
    return Summary(names, tally, first, tuple(ordered), test)


def _counts(points: Iterable[float]) -> tuple[int, int, int]:
    """Wins, draws and losses."""
    count = Counter(points)
    return count[1.0], count[0.5], count[0.0]
