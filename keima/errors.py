"""The one family of errors keima raises on purpose.

Every message says which file, which place, what was found and what to do next; `source` and `place` carry the
first two as data. The command line prints the message and exits with status 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from keima.plain import Note

if TYPE_CHECKING:
    from typing_extensions import Self


class KeimaError(Exception):
    """Base of all errors keima raises on purpose.

    Attributes:
        message: what is wrong; a `Note` where a page can word it in another language.
        source: the file (or stream) the input came from, if any.
        place: where in it: a line, a byte offset, a move number, a layer's name.
        words: the three as `str` tells them, a `Note` where the message is one.
    """

    def __init__(self, message: str, *, source: str | None = None, place: str | None = None) -> None:
        where = ": ".join(part for part in (source, place) if part)
        self.words = f"{where}: {message}" if where else message
        super().__init__(self.words)
        if where and isinstance(message, Note):
            self.words = Note("{where}: {what}", "error.at", where=where, what=message)
        self.message = message
        self.source = source
        self.place = place

    def at(self, source: str | None = None, place: str | None = None) -> Self:
        """The same error with its place filled in, to re-raise where the file is known: outer place first."""
        inner = ": ".join(part for part in (place, self.place) if part)
        return type(self)(self.message, source=source or self.source, place=inner or None)


class IllegalMove(KeimaError, ValueError):
    """A move the rules forbid in that position, or one that names no point or square of the board."""


class BadPosition(KeimaError, ValueError):
    """A position that cannot be: a malformed FEN, a board over 19, a JSON line that does not describe one."""


class BadRecord(KeimaError, ValueError):
    """A game record (SGF, PGN, JSONL) that cannot be read, or breaks the rules it is played under.

    Attributes:
        partial: the record up to what is wrong with it, where that much could be read.
    """

    partial: object = None

    def at(self, source: str | None = None, place: str | None = None) -> Self:
        """As `KeimaError.at`."""
        return super().at(source, place).with_partial(self.partial)

    def with_partial(self, partial: object) -> Self:
        """The same error, with the game up to it."""
        self.partial = partial
        return self


class BadWeights(KeimaError, ValueError):
    """A network file that is truncated, corrupt, or whose layers do not fit together."""


class UnsupportedNetwork(KeimaError, ValueError):
    """A network file or a name that is well-formed but holds something keima does not run; lists what it does."""


class UnsupportedPosition(KeimaError, ValueError):
    """A position this network cannot take: another game, a board size or rule it was not made for."""


class BadRequest(KeimaError, ValueError):
    """An option or argument outside what is accepted: an unknown backend, precision, symmetry, profile."""


class BadStore(KeimaError, ValueError):
    """A game store (.parquet) that cannot be read or written, is damaged, or holds something else."""


class ConformanceError(KeimaError, AssertionError):
    """A game or system breaks a law the rest of keima relies on; names the law and a counterexample."""
