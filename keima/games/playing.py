"""The PLAYING facet: what matches and engines need of a game beside its rules.

    playing.py of a game:  PLAYING = Playing() or one of a class of its own

`Playing` is for a game whose end its rules decide, such as connect four: a subclass says only what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from keima.errors import BadRecord, BadRequest
from keima.games.position import Position
from keima.games.records import GameRecord

P = TypeVar("P", bound=Position)
R = TypeVar("R", bound=GameRecord)


@dataclass(frozen=True)
class Opening:
    """Where a game begins: what its record calls it, and the position with the moves that led to it."""

    name: str
    position: Position


@dataclass(frozen=True)
class Verdict:
    """How a game ended."""

    winner: int | None  # the side's number among the game's sides (0 usually moves first), None for a draw
    result: str  # as the game's records write it
    reason: str  # in words: "checkmate", "score (agreed)"


@dataclass(frozen=True)
class Opinion:
    """What another program says of a position, everything for the side to move."""

    winrate: float  # win + draw / 2, in [0, 1]
    centipawns: int | None = None  # None where the end is in sight
    mate: int | None = None  # plies to a forced win (above 0) or loss (below); None: none found
    pv: tuple[str, ...] = ()  # the variation it expects, the move it would play first
    moves: tuple[Opinion, ...] = ()  # of its best moves, if several were asked for: this one again, then the others


class Opinions(Protocol):
    """A program that judges positions; to be closed."""

    name: str
    """As it calls itself."""

    def __call__(self, positions: Sequence[Position]) -> Iterator[Opinion | None]:
        """One after another, in their order; None where the game is over.

        Raises:
            BadRequest: the program fails.
        """

    def close(self) -> None:
        """End the program."""


Judge = Callable[..., Sequence[Any]]
"""What evaluates positions, as `keima.Evaluator` does: (positions, symmetry) → answers with `ownership` or None."""


class Table(Protocol):
    """A match's game that has stopped, as far as settling its result needs it."""

    @property
    def position(self) -> Position:
        """The last position."""

    @property
    def limit(self) -> int:
        """The moves after which the game was stopped, where it is not over."""

    @property
    def names(self) -> tuple[str, str]:
        """The players of the first and the second side."""

    @property
    def scorer(self) -> str | None:
        """The name of a third player that decides alone; None without one."""

    def ask_scorer(self) -> frozenset[str] | float | None:
        """What it says: the dead stones, or the second side's points minus the first's; None if it cannot say."""

    def dead_stones(self) -> tuple[frozenset[str], frozenset[str]]:
        """The stones dead for either player, by their points."""

    def play_on(self, position: Position, most: int) -> Position | None:
        """The position after at most so many moves, no stone agreed on; None if a player lost on the way."""

    def note(self, text: str) -> None:
        """Keep a remark for the game's record."""


class Playing(Generic[P, R]):
    """What a match asks of a game."""

    protocol: str | None = None  # what other programs that play it speak: "gtp"; None: nothing
    phases: tuple[int, int] = (10, 4)  # plies of a phase, and how many; the last one takes all that comes after
    scored: bool = False  # players may differ about the score at the end, and a third one be asked
    lists: tuple[str, ...] = ()  # endings of files that hold one opening a line
    # the least losses in points of a blunder, a mistake and an inaccuracy; None: no points, or none to grade by
    points_lost: tuple[float, float, float] | None = None

    def __init__(self, position: type[P]) -> None:
        self._position = position

    def start(self, size: tuple[int, int] | None = None, rules: str | None = None, komi: float | None = None) -> P:
        """The position a match's games begin from, before their openings; None: as usual, or the game has no choice.

        Raises:
            BadPosition, BadRequest: what cannot be; `size` is (columns, rows).
        """
        return self._position.from_json({})

    def table(self, start: P) -> dict[str, object]:
        """What was chosen of board and rules, as a match remembers it."""
        return {}

    def openings(self, start: P, seed: int) -> list[Opening]:
        """The built-in balanced openings, each once. Raises `BadRequest`: there are none from that start."""
        raise BadRequest("no built-in openings; choose --openings random:4 or none")

    def opening(self, record: R, start: P, plies: int | None) -> P:
        """The position after a record's first moves, under the board and rules of `start`.

        Raises:
            BadRecord: it is of another board.
            IllegalMove: a move breaks the rules.
        """
        position = self._position.from_json(record.setup)
        return position.play(*(move for _, move in record.turns[:plies]))

    def listed(self, line: str, start: P) -> P:
        """The opening a line of a list names. Raises `BadPosition`: it names none."""
        raise BadRecord("there are no lists of openings for this game")

    def move_limit(self, start: P) -> int:
        """Moves after which a match ends a game by itself."""
        return 600

    def moves_to_come(self, position: P) -> float:
        """How many moves of its own a side expects to make yet; for its clock."""
        return 20.0

    def follow(self, position: P, side: str, move: str) -> P:
        """The position after a move as a record may hold it. Raises `IllegalMove`: even a record cannot hold it."""
        return position.play(move)

    def stops(self, position: P) -> bool:
        """Has the game ended, or is there a draw to be claimed, which players of a match always do?"""
        return position.is_over

    def outcome(self, position: P) -> Verdict | None:
        """How a finished game ended by its rules alone; None before the end, or where the players have to agree."""
        raise NotImplementedError

    def settle(self, table: Table) -> Verdict | None:
        """How a stopped game ends; None where a player lost while it was settled."""
        position = table.position
        assert isinstance(position, self._position)
        verdict = self.outcome(position)
        return verdict or Verdict(None, self.result(None), f"{table.limit} plies without an end")

    def count(self, position: P) -> Verdict:
        """What a game is worth that ends here, by itself or because it is too long, for players that need not agree."""
        return self.outcome(position) or Verdict(None, self.result(None), "too many moves")

    def certain(self, position: P) -> Verdict | None:
        """What a game that goes on must come to whatever is played, where that is easily seen; None otherwise."""
        return None

    def result(self, winner: int | None, how: str = "") -> str:
        """A result as the game's records write it; `winner` is the side's number, None for a draw.

        `how`: "R" resignation, "T" time, "F" forfeit; "" by the rules. Many formats do not tell, nor does this one.
        """
        return "1/2-1/2" if winner is None else ("1-0", "0-1")[winner]

    def centipawns(self, value: float) -> int | None:
        """A value (win − loss, in [−1, 1]) as the game's players count; None where they do not count so."""
        return None

    def program(self, command: str, nodes: int, moves: int = 1) -> Opinions:
        """Start a program that speaks `protocol`, to judge positions with so many nodes each, or their best `moves`.

        Raises:
            BadRequest: none can judge this game, or the program does not start.
        """
        raise BadRequest("no outside programs judge this game")

    def dead_stones(self, judge: Judge, position: P) -> frozenset[str] | None:
        """The stones a network takes for dead at the end; None without an opinion, or where there is no such thing."""
        return None
