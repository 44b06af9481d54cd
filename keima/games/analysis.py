"""Games in the JSON analysis protocol (`keima.engines.analysis`): how queries describe them, what answers tell.

A game's `analysis.py` makes the facet ANALYSIS, an `Analysis` whose methods hold what the game has of its own. What
stands here serves a game whose moves have names and whose values are win, draw and loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from keima.errors import KeimaError
from keima.games.fields import Fields as Fields
from keima.games.fields import shown as shown
from keima.games.position import Position

P = TypeVar("P", bound=Position)
Points = NDArray[np.floating]


class QueryError(KeimaError):
    """A query that cannot be carried out; `field` is at fault."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class Move:
    """One move of a query, and who makes it as answers name the sides; None: whose turn it is."""

    name: str
    side: str | None = None


class Analysis(ABC, Generic[P]):
    """One game in the protocol."""

    fields: tuple[str, ...] = ()  # of a query: those that only this game has
    moves_are: str = "moves"  # what a list of moves is called in messages
    has_points: bool = False  # answers tell leads and scores; else `wdl`, and plies as `movesLeft`

    def __init__(self, letters: tuple[str, str], sides: tuple[str, str]) -> None:
        both = zip(letters, sides, strict=True)
        # How queries name a side, in lower case → how answers do; the side that moves first comes first, and values are
        # told for it where nobody asks otherwise.
        self.sides = {word.lower(): letter.upper() for letter, name in both for word in (letter, name)}

    @abstractmethod
    def start(self, fields: Fields) -> P:
        """The position before the first move of a query.

        Raises:
            QueryError: a field is missing, of the wrong kind or out of range.
        """

    def moves(self, fields: Fields, start: P) -> list[Move]:
        """The moves of a query. Raises `QueryError`."""
        moves = fields.get("moves", [])
        if not isinstance(moves, list) or not all(isinstance(move, str) for move in moves):
            raise QueryError("moves", f"Must be a list of {self.moves_are}")
        return [Move(name) for name in moves]

    def play(self, position: P, move: Move) -> P:
        """The position after a move. Raises `IllegalMove`."""
        return position.play(move.name)

    def read_move(self, text: str, position: P) -> str:
        """A move of `avoidMoves` or `allowMoves` as answers name it, legal here or not. Raises `KeimaError`."""
        return text

    def side(self, position: P) -> str:
        """The side to move, as answers name it."""
        return self.sides[position.to_play.lower()]

    def outcome(self, position: P) -> float | None:
        """A finished game's value in [−1, 1] for the side to move; None where a search goes on."""
        return None

    def policy(self, position: P, policy: Mapping[str, float]) -> list[float] | dict[str, float]:
        """`policy` of an answer."""
        return {move: rounded(probability) for move, probability in policy.items()}

    def hashes(self, position: P) -> dict[str, str]:
        """Names of a position: fields of `rootInfo`, the same for the same position however it came about."""
        return {}


def whole(fields: Fields, name: str, least: int, most: int, message: str) -> int:
    """A whole number of a query. Raises `QueryError` with `message`: missing, no whole number, or out of range."""
    number = fields.get(name)
    if not is_whole(number) or not least <= cast(int, number) <= most:
        raise QueryError(name, f"{message}, found {shown(number)}")
    return cast(int, number)


def number(fields: Fields, name: str, least: float, most: float) -> float:
    """A finite number of a query, which has the field. Raises `QueryError`."""
    found = fields[name]
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not least <= found <= most:
        raise QueryError(name, f"Must be a number from {least:g} to {most:g}, found {shown(found)}")
    return float(found)


def flag(fields: Fields, name: str) -> bool:
    """True or false; a field left out is false. Raises `QueryError`."""
    found = fields.get(name, False)
    if not isinstance(found, bool):
        raise QueryError(name, f"Must be true or false, found {shown(found)}")
    return found


def side(analysis: Analysis[P], fields: Fields, name: str) -> str:
    """A side named by a field, as answers name it. Raises `QueryError`."""
    written = fields.get(name)
    found = analysis.sides.get(written.lower()) if isinstance(written, str) else None
    if found is None:
        raise QueryError(name, "Must be " + " or ".join(f'"{one}"' for one in dict.fromkeys(analysis.sides.values())))
    return found


def is_whole(found: object) -> bool:
    """Is it a whole number (true and false are none)?"""
    return isinstance(found, int) and not isinstance(found, bool)


def rounded(value: float) -> float:
    """Nine significant digits, as KataGo writes; never minus zero."""
    return float(f"{value:.9g}") + 0.0
