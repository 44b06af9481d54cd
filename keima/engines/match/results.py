"""The results of a match: a line for each game, where the match stands, and what it leaves on disk.

A match's folder holds `match.json` (which match), `games.jsonl` (a line a game), one record a game and `summary.json`.
A game's record is written whole, then its line is appended and forced to disk. A line cut off by a kill is dropped, and
its game played again.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import IO

from keima.atomic import replacing
from keima.elo import Sprt, Tally
from keima.engines.match.game import Ending
from keima.errors import BadRecord, BadRequest
from keima.games.game import GAMES
from keima.games.playing import Opening
from keima.games.records import PlayedGame
from keima.plain import Data


@dataclass(frozen=True)
class GameResult:
    """One line of `games.jsonl`.

    Attributes:
        number: from 1.
        first: "A" or "B": who had the first side.
        winner: "A", "B", or None for a draw.
        result, reason, plies, notes: as in `Ending`.
        fault: {"player": "A" or "B", "kind": …, "detail": …} of the engine that lost by one, or None.
        seconds: thinking time of A and B.
        moves: a hash of opening and moves, hex; "" in a folder of an older keima.
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
    moves: str = ""

    @staticmethod
    def of(number: int, opening: Opening, a_first: bool, ending: Ending) -> GameResult:
        """What is remembered of a game."""
        names, lost = "AB" if a_first else "BA", ending.fault
        fault = {"player": names[lost.side], "kind": lost.kind, "detail": lost.detail} if lost else None
        seconds = ending.seconds if a_first else ending.seconds[::-1]
        winner = None if ending.winner is None else names[ending.winner]
        how = (ending.result, ending.reason, fault, ending.plies, (round(seconds[0], 3), round(seconds[1], 3)))
        moves = sha256(repr((opening.name, *ending.position.moves)).encode()).hexdigest()[:16]
        return GameResult(number, opening.name, names[0], winner, *how, ending.notes, moves)

    @property
    def points(self) -> float:
        """A's points: 1, ½ or 0."""
        return {"A": 1.0, "B": 0.0, None: 0.5}[self.winner]


@dataclass(frozen=True)
class Summary:
    """Where a match stands.

    Attributes:
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
    def repeated(self) -> int:
        """Games that are another one over again, A and B on the same sides: such a game tells nothing new."""
        known = [(result.first, result.moves) for result in self.results if result.moves]
        return len(known) - len(set(known))

    @property
    def decided(self) -> bool:
        """Has the test an end?"""
        return self.sprt is not None and self.sprt[2] is not None

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
            **{name: getattr(tally, name) for name in ("games", "wins", "draws", "losses")},
            "pairs": list(tally.pairs),
            "as_first": list(self.as_first),
            "as_second": list(self.as_second),
            "score": tally.score,
            "score_interval": list(tally.score_interval),
            "elo": _finite(tally.elo),
            "elo_interval": [_finite(bound) for bound in tally.elo_interval],
            "superiority": tally.superiority,
            "repeated": self.repeated,
            "reasons": dict(Counter(result.reason for result in self.results)),
            "faults": [{"game": result.number, **(result.fault or {})} for result in self.faults],
            "seconds": [round(sum(result.seconds[who] for result in self.results), 3) for who in (0, 1)],
            "plies": sum(result.plies for result in self.results),
        }
        if self.sprt is not None:
            test, ratio, verdict = self.sprt
            told = {"llr": ratio, "lower": test.lower, "upper": test.upper, "verdict": verdict}
            line["sprt"] = {**asdict(test), **told}
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
    count = Counter(points)
    return count[1.0], count[0.5], count[0.0]


class MatchFolder:
    """The folder of one match; a context manager that keeps other processes out of it.

    Raises:
        BadRequest: it cannot be made, or holds another match.
    """

    def __init__(self, path: Path, description: Mapping[str, object]) -> None:
        self.path, self._lines = path, path / "games.jsonl"
        self._suffix = GAMES[str(description["game"])].suffixes[0]
        self._games: IO[bytes] | None = None
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._check(description)
        except OSError as error:
            raise BadRequest(f"cannot be written: {error.strerror or error}", source=str(path)) from error

    def __enter__(self) -> MatchFolder:
        file = self._lines.open("ab")
        try:
            _lock(file)
        except OSError:
            file.close()
            raise BadRequest("another process is playing this match", source=str(self.path)) from None
        self._games = file
        os.truncate(self._lines, self._lines.read_bytes().rfind(b"\n") + 1)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._games is not None
        self._games.close()
        self._games = None

    def lines(self) -> list[Data]:
        """What is known of the games that have ended. Raises BadRecord: a line that is no JSON object."""
        found, written = [], self._lines.read_bytes() if self._lines.exists() else b""
        for number, line in enumerate(written.split(b"\n")[:-1], 1):
            try:
                fields = json.loads(line)
                found.append({**fields, "seconds": tuple(fields["seconds"]), "notes": tuple(fields["notes"])})
            except (ValueError, TypeError, KeyError) as error:
                raise BadRecord("no game's line; remove it", source=str(self._lines), place=f"line {number}") from error
        return found

    def keep(self, number: int, record: str, line: Mapping[str, object]) -> None:
        """Write a game's record, then its line."""
        assert self._games is not None
        _write_whole(self.path / f"{number:04d}{self._suffix}", record)
        self._games.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self._games.flush()
        os.fsync(self._games.fileno())

    def write_summary(self, summary: Mapping[str, object]) -> None:
        """Write `summary.json`."""
        _write_whole(self.path / "summary.json", json.dumps(summary, ensure_ascii=False, indent=2) + "\n")

    def _check(self, description: Mapping[str, object]) -> None:
        """Is this the match the folder holds? An empty folder is made its own."""
        path = self.path / "match.json"
        if not path.exists():
            _write_whole(path, json.dumps(description, ensure_ascii=False, indent=2) + "\n")
            return
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise BadRequest("is no match's description; choose another folder", source=str(path)) from error
        for name in sorted({*found, *description}):
            if found.get(name) != description.get(name):
                what = f"{name} was {found.get(name)!r}, now {description.get(name)!r}"
                raise BadRequest(f"holds another match: {what}; choose another folder", source=str(self.path))


def _lock(file: IO[bytes]) -> None:
    """Take the file for this process; freed when it is closed. Raises OSError where another has it."""
    try:
        import fcntl
    except ImportError:  # no such locks on Windows
        return
    fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def _write_whole(path: Path, text: str) -> None:
    with replacing(path, "w") as stream:
        stream.write(text)


def record_text(number: int, names: tuple[str, str], opening: Opening, ending: Ending) -> str:
    """The game as a record, the reason of its end, faults and notes in it; `names` has the first side first."""
    records = GAMES[ending.position.game].records
    how = (opening.name, ending.reason, date.today().isoformat(), ending.notes)
    game = PlayedGame(ending.position, names, ending.result, "keima match", number, *how)
    return records.write(records.of_game(game))
