"""Game records: what every game's records tell, and the RECORDS facet that reads and writes them.

    records.py of a game:  RECORDS = <a RecordFormat>      SGF for Go, PGN for chess

Files, archives and folders are found by `keima.games.files`, which hands a format its stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Protocol, TypeVar

from keima.errors import BadRecord
from keima.games.position import Position


class GameRecord(Protocol):
    """One game as a record tells it. Sides are named by the game's `letters`."""

    @property
    def game(self) -> str:
        """A key of `GAMES`."""

    @property
    def source(self) -> str:
        """The file it came from, "" if none."""

    @property
    def index(self) -> int:
        """Which game of that file, from 1."""

    @property
    def turns(self) -> tuple[tuple[str, str], ...]:
        """(side, move) of each move of the main line."""

    @property
    def result(self) -> str:
        """As written; "" or the format's own word where it is unknown."""

    @property
    def players(self) -> Mapping[str, str]:
        """The players' names by side; "" where unknown."""

    @property
    def ranks(self) -> Mapping[str, str]:
        """The players' ranks by side; "" where unknown."""

    @property
    def date(self) -> str:
        """As written."""

    @property
    def event(self) -> str:
        """As written."""

    @property
    def comments(self) -> Mapping[int, str]:
        """Comments by the number of moves played before them; 0 is before the first."""

    @property
    def clocks(self) -> Mapping[int, float]:
        """Seconds left on the mover's clock after a move, by its number from 1, where the record tells them."""

    @property
    def increment(self) -> float | None:
        """Seconds a move adds to its player's clock; None where clocks do not tell how long a move took."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was taken from a bent record, and how, in words."""

    @property
    def setup(self) -> dict[str, object]:
        """What decides the game besides its moves (board, rules, start), as JSON; part of a report's `game`."""

    @property
    def facts(self) -> dict[str, object]:
        """What else a report's `game` tells of a game of this kind, in place of the record's own words."""

    def positions(self) -> Iterator[Position]:
        """The position before the first move, then the one after each move: `len(turns) + 1` of them.

        Raises:
            IllegalMove: a move breaks the rules; names it. Positions before it were yielded.
            BadRecord: the starting position cannot be.
        """

    def final(self) -> Position:
        """The position after the last move. Raises as `positions`."""


@dataclass(frozen=True)
class PlayedGame:
    """A game that was played here, to become a record."""

    position: Position  # the last one, with the moves since the game's start
    names: tuple[str, str]  # who had the first of the game's sides, who the second
    result: str  # as the game's `Playing.result` writes it
    event: str  # what it was part of
    number: int  # its number there; 0: it has none
    opening: str  # the name of where it began
    reason: str  # how it ended, in words
    date: str  # ISO
    notes: tuple[str, ...] = ()  # what else happened; commented where the game ends


R = TypeVar("R", bound=GameRecord)


class RecordFormat(Protocol[R]):
    """How a game's records are read and written."""

    name: str
    """What people call it: "SGF"."""

    def read(self, stream: IO[bytes], source: str = "") -> Iterator[R | BadRecord]:
        """The games of a stream, one after another as they are asked for.

        A game that cannot be read comes as a `BadRecord` naming source, game and line, its `partial` the game up to
        there, if that much can be made out; the rest go on. Text in any
        encoding the format knows of, and nothing but `OSError` and its like is raised from it.
        """

    def write(self, record: R) -> str:
        """The record as text, comments and variations in it; `read` gives it back equal but for source and notes.

        Raises:
            IllegalMove: a move of the record cannot be played.
        """

    def of_game(self, played: PlayedGame) -> R:
        """The record of a game that was played here."""
