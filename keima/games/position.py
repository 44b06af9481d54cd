"""What every game's positions have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from keima.jit import Records

if TYPE_CHECKING:
    from typing_extensions import Self


class Position(Protocol):
    """A position of a game: immutable; what it is called and drawn like is the game's own."""

    def __hash__(self) -> int:
        """Equal positions have equal ones."""

    @property
    def game(self) -> str:
        """The name of the game, a key of `GAMES`."""

    @property
    def record(self) -> Records:
        """The position for kernels: [1] of the game's `Kernels.dtype`, read-only."""

    @property
    def to_play(self) -> str:
        """The side to move, one of the game's `letters`."""

    @property
    def moves(self) -> Sequence[object]:
        """The moves made since the position it began from."""

    @property
    def is_over(self) -> bool:
        """Has the game ended?"""

    @property
    def result(self) -> str | None:
        """A finished game's result as its records write it; None before the end."""

    def legal(self) -> list[str]:
        """The legal moves by name."""

    def is_legal(self, move: str) -> bool:
        """Whether the move may be played here; False also for what names no move."""

    def play(self, *moves: str) -> Self:
        """The position after these moves. Raises `IllegalMove`."""

    def to_json(self) -> dict[str, object]:
        """The fields of a POSITIONS line."""

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> Self:
        """The position of a POSITIONS line's fields.

        Raises:
            BadPosition: a field is of the wrong kind or out of range; the message names it.
            IllegalMove: a move breaks the rules; the message names its number.
        """
