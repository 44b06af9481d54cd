"""What a game is. Everything outside `games/` and `systems/` knows only this: no line there names a game.

A game is a folder with one file for each facet, imported when it is first asked for:

    position.py     `Position`, immutable, with the notation the game's players use
    kernels.py      KERNELS: compiled rules on flat records, what the search and every encoding read
    records.py      RECORDS: game records of its players (SGF, PGN, ...) read and written
    archive.py      ARCHIVE: its games as rows of a game store, and replayed from there
    playing.py      PLAYING: openings, phases of a game, how its clock is spent, how a game ends and is scored
    drawing.py      DRAWING: its board as a picture and on a page
    analysis.py     ANALYSIS: its fields in the JSON analysis protocol
    editing.py      EDITING: how it is begun and its board set up by hand; records with variations

and an `__init__.py` with `GAME = Game(...)`. Its name in `keima/games/__init__.py` is the registration.
`keima.check_game` holds a game to the laws the rest relies on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from keima.errors import BadRequest
from keima.games.kernels import joined
from keima.games.position import Position
from keima.jit import Records

if TYPE_CHECKING:
    from keima.games.analysis import Analysis
    from keima.games.archive import Archive
    from keima.games.drawing import Drawing
    from keima.games.kernels import Kernels
    from keima.games.playing import Playing
    from keima.games.records import GameRecord, RecordFormat


T = TypeVar("T")


class _Facet(cached_property[T]):
    """The constant of a facet's file, imported when it is first asked for."""

    def __init__(self) -> None:
        super().__init__(
            lambda game: getattr(import_module(f"{game.package}.{self.attrname}"), str(self.attrname).upper())
        )


@dataclass(frozen=True)
class Game:
    """One game of the house."""

    name: str  # as POSITIONS lines and game stores name it: "go"
    title: str  # as prose names it: "Go"
    sides: tuple[str, str]  # in words, the one that usually moves first first: ("black", "white")
    package: str  # the folder, "keima.games.go"
    letters: tuple[str, str] = ("1", "2")  # the sides as positions and records name them: ("B", "W")
    suffixes: tuple[str, ...] = ()  # of record files, the one we write first; compressed ones end in .gz besides
    fields: tuple[str, ...] = ()  # that only this game has: a POSITIONS line with one needs no `game`

    kernels: ClassVar[_Facet[Kernels]] = _Facet()
    """Compiled rules."""
    records: ClassVar[_Facet[RecordFormat[GameRecord]]] = _Facet()
    """Game records."""
    archive: ClassVar[_Facet[Archive]] = _Facet()
    """Games in a game store."""
    playing: ClassVar[_Facet[Playing[Position, GameRecord]]] = _Facet()
    """What matches and engines need beside the rules."""
    drawing: ClassVar[_Facet[Drawing[Position]]] = _Facet()
    """Pictures, and the board of a review's page."""
    analysis: ClassVar[_Facet[Analysis[Any]]] = _Facet()
    """Queries and answers of the JSON analysis protocol."""
    editing: ClassVar[_Facet[Any]] = _Facet()
    """Boards set up by hand, records with variations: a `keima.games.trees.editing.Editing`."""

    @cached_property
    def position(self) -> type[Position]:
        """The class of its positions."""
        found: type[Position] = import_module(f"{self.package}.position").Position
        return found

    def side(self, letter: str) -> str:
        """The side in words: "black" for "B"."""
        return self.sides[self.letters.index(letter)]

    def from_json(self, fields: Mapping[str, object]) -> Position:
        """The position of a POSITIONS line's fields; see `Position.from_json`."""
        return self.position.from_json(fields)


class _Games(Mapping[str, Game]):
    """The games by name, each imported when it is asked for."""

    def __init__(self, packages: Mapping[str, str]) -> None:
        self._packages = dict(packages)

    def __getitem__(self, name: str) -> Game:
        game: Game = import_module(self._packages[name]).GAME
        return game

    def __iter__(self) -> Iterator[str]:
        return iter(self._packages)

    def __len__(self) -> int:
        return len(self._packages)

    def register(self, name: str, package: str) -> None:
        """Add a game: the package whose `GAME` it is."""
        self._packages[name] = package


GAMES = _Games({name: f"{__package__}.{name}" for name in import_module(__package__).__all__})
"""Every game by name, in the order help lists them."""


def get_game(name: str) -> Game:
    """The game of that name. Raises `BadRequest`: there is none; the message lists those there are."""
    if name not in GAMES:
        raise BadRequest(f"unknown game {name!r}; choose one of {', '.join(GAMES)}")
    return GAMES[name]


def stack(positions: Sequence[Position]) -> Records:
    """The records of N positions of one game side by side, [N]."""
    return joined([position.record for position in positions])
