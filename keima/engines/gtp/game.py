"""The game a GTP engine holds: board, rules, komi, stones set up and moves, each changed by a command."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from keima.engines.gtp.words import Refusal
from keima.errors import BadRecord, KeimaError
from keima.games.go import Position
from keima.games.go.records import GameRecord, parse_sgf, write_sgf
from keima.games.go.rules import NAMED_RULES, Rules
from keima.games.go.vertices import fixed_handicap

MAX_SGF_BYTES = 16 << 20
SMALLEST, LARGEST = 2, 19
FEWEST_HANDICAP, MOST_FREE_HANDICAP = 2, 30
"""KataGo places no more than 30 free handicap stones, and no more than a quarter of the board."""


@dataclass(frozen=True)
class Start:
    """How the game began, `black` and `white` stones set up; `to_play` is None for the usual side."""

    size: tuple[int, int] = (19, 19)
    """Columns, rows."""
    rules: Rules = NAMED_RULES["chinese"]
    komi: float = 7.5
    black: tuple[str, ...] = ()
    white: tuple[str, ...] = ()
    to_play: str | None = None

    def position(self) -> Position:
        """The position before the first move. Raises BadPosition: stones that cannot stand there, a bad komi."""
        return Position.start(
            self.size, self.rules, self.komi, black=self.black, white=self.white, to_play=self.to_play
        )


class Game:
    """A game of Go under the controller's hands; `check` raises for a position the network cannot take.

    Raises:
        KeimaError: by every method whose change cannot be, which leaves the game as it was.
    """

    def __init__(self, start: Start, check: Callable[[Position], None]) -> None:
        self._check = check
        self.begin(start)

    def begin(self, start: Start) -> None:
        """A new game."""
        position = start.position()
        self._check(position)
        self.start, self.position = _start_of(position), position

    def resize(self, xsize: int, ysize: int) -> None:
        """An empty board of that size; rules and komi stay."""
        if not (SMALLEST <= xsize <= LARGEST and SMALLEST <= ysize <= LARGEST):
            raise Refusal(f"unacceptable size: sides are from {SMALLEST} to {LARGEST}")
        try:
            self.begin(Start((xsize, ysize), self.start.rules, self.start.komi))
        except KeimaError as error:
            raise Refusal(f"unacceptable size: {error}") from error

    def clear(self) -> None:
        """An empty board."""
        self.begin(Start(self.start.size, self.start.rules, self.start.komi))

    def change(self, rules: Rules | None = None, komi: float | None = None) -> None:
        """Other rules or another komi for the game as it stands, its moves played again."""
        start = replace(self.start, rules=rules or self.start.rules, komi=self.start.komi if komi is None else komi)
        position = _replay(start.position(), self.position.moves)
        self._check(position)
        self.start, self.position = start, position

    def play(self, colour: str, vertex: str) -> None:
        """Make a move; ko and superko are the controller's business, as in KataGo."""
        try:
            self.position = self.position.play_as(colour, vertex)
        except KeimaError as error:
            raise Refusal(f"illegal move: {error}") from error

    def undo(self, moves: int = 1) -> None:
        """Take back moves."""
        made = self.position.moves
        if moves > len(made):
            raise Refusal("cannot undo")
        self.position = _replay(self.start.position(), made[: len(made) - moves])

    def set_up(self, black: Iterable[str], white: Iterable[str] = (), to_play: str | None = None) -> None:
        """An empty board with these stones."""
        self.begin(replace(self.start, black=tuple(black), white=tuple(white), to_play=to_play))

    def expect_empty(self) -> None:
        """Refuse a handicap on a board that is not empty."""
        if self.position.stones.any():
            raise Refusal("board not empty")

    def fixed_handicap(self, stones: int) -> tuple[str, ...]:
        """Put handicap stones on their customary points (GTP 2 § 4.1.1), and return these."""
        self.expect_empty()
        points = fixed_handicap(stones, self.start.size)
        if not points or (stones > 4 and min(self.start.size) == 7):
            raise Refusal("invalid number of stones; place_free_handicap may place them")
        self.set_up(points)
        return points

    def load(self, path: str, before_move: int | None) -> None:
        """Take over a game from an SGF file, up to the position before a move (from 1), None for the last position."""
        try:
            with Path(path).open("rb") as stream:
                data = stream.read(MAX_SGF_BYTES + 1)
            record = None if len(data) > MAX_SGF_BYTES else parse_sgf(data, rules=self.start.rules.name)
        except (OSError, ValueError, BadRecord) as error:
            raise Refusal(f"cannot load file {path!r}: {getattr(error, 'strerror', None) or error}") from error
        if record is None:
            raise Refusal(f"cannot load file {path!r}: longer than {MAX_SGF_BYTES >> 20} MB")
        begin = position = record.start()
        for number, position in enumerate(record.positions(), 1):
            if not position.moves:  # the first position, or one whose stones the record changes in mid-game
                begin = position
            if number == before_move:
                break
        self._check(position)
        self.start, self.position = _start_of(begin), position

    def sgf(self, result: str, players: dict[str, str]) -> str:
        """The game as SGF; a result as that writes it ("" if unknown), players' names by colour."""
        start = self.start
        handicap, black = ((), start.black) if start.white else (start.black, ())
        to_play, moves = start.position().to_play, self.position.moves
        setup = (handicap, black, start.white)
        record = GameRecord(
            *start.size, start.rules, start.komi, *setup, to_play, moves, result=result, players=players
        )
        return write_sgf(record)


def _start_of(position: Position) -> Start:
    """How a game begins from this position."""
    black, white = (tuple(vertex for found, vertex in position.setup if found == colour) for colour in "BW")
    size = (position.xsize, position.ysize)
    return Start(size, position.rules, position.komi, black, white, position.to_play)


def _replay(position: Position, moves: Iterable[tuple[str, str]]) -> Position:
    for colour, vertex in moves:
        position = position.play_as(colour, vertex)
    return position
