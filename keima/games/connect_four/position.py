"""A position of connect four: columns a–g, the first player begins.

>>> position = Position.start().play("d", "d", "c")
>>> position.to_play, position.legal(), position.is_over
('2', ['a', 'b', 'c', 'd', 'e', 'f', 'g'], False)
>>> print(position)
. . . . . . .
. . . . . . .
. . . . . . .
. . . . . . .
. . . O . . .
. . X X . . .
a b c d e f g
second player (O) to move
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from keima.errors import IllegalMove
from keima.games.connect_four.kernels import COLUMNS, NAMES, ONGOING, RECORD, ROWS, WON, is_legal, legal_moves, make
from keima.games.fields import strings
from keima.jit import Records
from keima.plain import Note


@dataclass(frozen=True)
class Position:
    """A position, immutable, with the moves that led to it; made by `start`, `play` or `from_json`."""

    record: Records = field(repr=False, compare=False)  # `kernels.RECORD` [1], read-only
    moves: tuple[str, ...] = ()  # the columns played
    game: ClassVar[str] = "connect_four"

    def __post_init__(self) -> None:
        self.record.setflags(write=False)

    @classmethod
    def start(cls) -> Position:
        """The empty board."""
        return cls(np.zeros(1, RECORD))

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> Position:
        """The position of {"game": "connect_four", "moves": ["d", "d", "c"]}. Raises BadPosition or IllegalMove."""
        return cls.start().play(*strings(fields, "moves"))

    def to_json(self) -> dict[str, object]:
        """The fields of a POSITIONS line."""
        return {"game": self.game, "moves": list(self.moves)}

    def play(self, *moves: str) -> Position:
        """The position after discs in these columns. Raises IllegalMove; `place` is the move's number in the game."""
        record = self.record.copy()
        for number, move in enumerate(moves, len(self.moves) + 1):
            column = _column(move)
            if not is_legal(record[0], column):
                full = Note("column {move} is full ({rows} discs)", "error.full", move=repr(move), rows=ROWS)
                reason = full if record["state"][0] == ONGOING else Note("the game is over", "error.over")
                unknown = Note("{move} is no column; they are a to g", "error.column", move=f"{move!r:.40}")
                raise IllegalMove(unknown if column < 0 else reason, place=f"move {number}")
            make(record[0], column)
        return replace(self, record=record, moves=(*self.moves, *moves))

    def legal(self) -> list[str]:
        """The columns that take a disc, from the left; none once the game is over."""
        moves = np.empty(COLUMNS, np.int16)
        return [NAMES[column] for column in moves[: legal_moves(self.record[0], moves)].tolist()]

    def is_legal(self, move: str) -> bool:
        """Does the column of that name take a disc?"""
        return is_legal(self.record[0], _column(move))

    @property
    def to_play(self) -> str:
        """ "1" or "2"."""
        return "2" if self.record["ply"][0] & 1 else "1"

    @property
    def is_over(self) -> bool:
        """Do four stand in a line, or is the board full?"""
        return bool(self.record["state"][0] != ONGOING)

    @property
    def winner(self) -> str | None:
        """ "1" or "2"; None for a draw and before the end."""
        return {"1": "2", "2": "1"}[self.to_play] if self.record["state"][0] == WON else None

    @property
    def result(self) -> str | None:
        """ "1-0" where the first player has won, "0-1", "1/2-1/2"; None before the end."""
        return {"1": "1-0", "2": "0-1", None: "1/2-1/2"}[self.winner] if self.is_over else None

    def rows(self) -> list[str]:
        """Six strings of seven, the top row first: "1", "2" or "." on each square."""
        own, other = (int(self.record[name][0]) for name in ("own", "other"))
        first, second = (own, other) if self.to_play == "1" else (other, own)
        squares = [[7 * column + row for column in range(COLUMNS)] for row in range(ROWS - 1, -1, -1)]
        return ["".join("1" if first >> s & 1 else "2" if second >> s & 1 else "." for s in row) for row in squares]

    def __str__(self) -> str:
        """The board, X for the first player and O for the second, and whose turn it is or how it ended."""
        rows = [" ".join(row.translate({ord("1"): "X", ord("2"): "O"})) for row in self.rows()]
        turn = "first player (X)" if self.to_play == "1" else "second player (O)"
        return "\n".join([*rows, " ".join(NAMES), f"game over, {self.result}" if self.is_over else f"{turn} to move"])


def _column(move: str) -> int:
    """The number of a column, −1 for what names none."""
    return NAMES.find(move) if isinstance(move, str) and len(move) == 1 else -1
