"""What the readers of both games make of a piece of input: rows of a store, and the games that are none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from keima.games.go.sgf_text import RawGame
from keima.training.schema import SCHEMAS, pa


@dataclass(frozen=True)
class Chunk:
    """A piece of input that one worker reads on its own.

    Attributes:
        problem: why the file cannot be read, or not any further; a chunk without games.
        go: Go: (file number, game) pairs, of one file or many.
        file: chess: the number of the file that `data` is from.
        line: chess: the line of the file that `data` begins on, from 1.
        data: chess: PGN, whole games.
    """

    go: Sequence[tuple[int, RawGame]] = ()
    file: int = 0
    line: int = 1
    data: bytes = b""
    problem: str = ""


@dataclass(frozen=True)
class Broken:
    """A game that was left out.

    Attributes:
        file: the number of its file.
        index: which game of the file (in chess: of the chunk), from 1; 0 where it is the file itself.
        line: the line of the file it begins on, or (chess) where it breaks, from 1.
        reason: why, and where in the game.
    """

    file: int
    index: int
    line: int
    reason: str


@dataclass
class ReadChunk:
    """What a chunk gave.

    Attributes:
        batch: rows of the store's schema, "source" still empty.
        files, indices: which game of which file each row is; in chess counted within the chunk.
        broken: the games that cannot be read or played.
        short: how many games had too few moves.
        games: how many games there were, good and bad.
        file: chess: the number of the chunk's file.
    """

    batch: pa.RecordBatch
    files: list[int]
    indices: list[int]
    broken: list[Broken]
    short: int
    games: int
    file: int


@dataclass
class Rows:
    """Gathers the games of a chunk. Fields as in `ReadChunk`."""

    game: str
    min_moves: int
    rows: list[dict[str, Any]] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    short: int = 0
    games: int = 0
    file: int = 0

    def add(self, row: dict[str, Any], file: int, index: int) -> None:
        """Take a game in, unless it has too few moves."""
        if len(row["moves"]) < 2 * self.min_moves:
            self.short += 1
            return
        self.rows.append(row)
        self.files.append(file)
        self.indices.append(index)

    def finish(self) -> ReadChunk:
        """The rows as Arrow, with all that was counted."""
        batch = pa.RecordBatch.from_pylist(self.rows, schema=SCHEMAS[self.game])
        return ReadChunk(batch, self.files, self.indices, self.broken, self.short, self.games, self.file)


_DATE = re.compile(r"\D{0,3}(\d{4})(?:\s*[-./年]\s*(\d{1,2})(?:\s*[-./月]\s*(\d{1,2}))?)?(?!\d)")


def iso_date(text: str) -> str:
    """The first date in a text as ISO writes it (a month or year if that is all there is), else the text as it is.

    >>> iso_date("2010.6.1"), iso_date("1846-07-21,22,23"), iso_date("1972.07.??"), iso_date("spring")
    ('2010-06-01', '1846-07-21', '1972-07', 'spring')
    """
    match = _DATE.match(text)
    if not match:
        return text.strip()
    year, month, day = (int(part) if part else None for part in match.groups())
    if month is None or not 1 <= month <= 12:
        return f"{year:04d}" if month is None else text.strip()
    return f"{year:04d}-{month:02d}" + (f"-{day:02d}" if day is not None and 1 <= day <= 31 else "")


def game_key(start: bytes, moves: bytes) -> int:
    """A 64-bit hash of a game: where it starts and its moves."""
    person = blake2b(start, digest_size=16).digest()
    return int.from_bytes(blake2b(moves, digest_size=8, person=person).digest(), "little")
