"""Rows of a game store: what every game's readers and arrays are made with.

A row is a game: `moves` as uint16, little-endian, in a code of the game's own, the columns every game has, and those of
the game (`store_schema`). docs/data.md explains each column.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from keima.errors import BadRequest, BadStore
from keima.plain import Data

try:
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as error:
    raise BadRequest("game stores need pyarrow, which is not installed: pip install 'keima[train]'") from error

VERSION = "1"
"""Of the columns; in the metadata `keima.store`."""
UNKNOWN_WINNER = -2
"""In arrays, where a row has no winner."""

Row = Data
"""A game by the names of its columns."""
Columns = Sequence[tuple[str, pa.DataType]]


def store_schema(
    game: str, before: Columns, after: Columns, players: tuple[str, str] = ("black", "white")
) -> pa.Schema:
    """The columns of a game's store: moves, those before the result, the result and the players, those after it.

    Args:
        before: how the game began.
        after: of the players and the result; "date" (ISO, "" unknown) among them.
        players: the columns of their names.
    """
    result = [("winner", pa.int8()), ("result", pa.string()), *((name, pa.string()) for name in players)]
    last = [("source", pa.string()), ("key", pa.uint64())]
    columns = [("moves", pa.binary()), *before, *result, *after, *last]
    return pa.schema(columns, metadata={"keima.store": VERSION, "keima.game": game})


# --- Reading records --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """A part of a file, from a line on: game `index` of it (lines and games from 1), or several, to be counted on (0).

    `problem` says why it is no game.
    """

    file: int
    line: int
    data: bytes
    index: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Chunk:
    """Input that one worker reads on its own: pieces of one file or many, or why a file cannot be read any further."""

    pieces: Sequence[Piece] = ()
    file: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Broken:
    """A game that was left out: its file and `index` there (0: the file itself), where it begins or breaks, and why."""

    file: int
    index: int
    line: int
    reason: str


@dataclass
class ReadChunk:
    """The games of a chunk; those of fewer than `min_moves` moves are left out."""

    schema: pa.Schema
    min_moves: int
    continued: int | None = None  # the file whose games are counted on from those of earlier chunks; None: each is told
    batch: pa.RecordBatch = None  # rows of the schema, "source" still empty; once it is finished
    rows: list[Row] = field(default_factory=list)
    files: list[int] = field(default_factory=list)  # which game of which file each row is
    indices: list[int] = field(default_factory=list)  # from 1
    broken: list[Broken] = field(default_factory=list)  # the games that cannot be read or played
    short: int = 0  # how many games had too few moves
    games: int = 0  # how many there were, good and bad

    def add(self, row: Row, file: int, index: int) -> None:
        """Take a game in, unless it has too few moves."""
        if len(row["moves"]) < 2 * self.min_moves:
            self.short += 1
            return
        self.rows.append(row)
        self.files.append(file)
        self.indices.append(index)

    def finish(self) -> ReadChunk:
        """Make the rows a batch."""
        self.batch, self.rows = pa.RecordBatch.from_pylist(self.rows, schema=self.schema), []
        return self


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


_RANK = re.compile(r"\s*(\d+)\s*-?\s*(k|d|p|kyu|dan|pro)\b", re.IGNORECASE)


def rank_number(rank: str) -> float:
    """A rank as a number that orders them (1k is 0, 1d is 1, 1p is 11); NaN for what is none."""
    found = _RANK.match(rank)
    if not found:
        return float("nan")
    number = int(found[1])
    return {"k": 1 - number, "d": number, "p": 10 + number}[found[2][0].lower()]


# --- Counting rows ----------------------------------------------------------------------------------------------------


class Counts:
    """Counts the columns of a store that only this game has, batch by batch; here: none."""

    columns: tuple[str, ...] = ()
    """Those it looks at."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Count a batch of rows."""

    def describe(self) -> Data:
        """The counts as JSON."""
        return {}


def value_counts(column: pa.Array) -> dict[Any, int]:
    """How often each value stands in a column."""
    return {item["values"]: item["counts"] for item in pc.value_counts(column).to_pylist()}


def by_frequency(counter: Counter[str]) -> dict[str, int]:
    """From the most frequent down; an empty text is "unknown"."""
    return {name or "unknown": count for name, count in counter.most_common()}


# --- Rows into arrays -------------------------------------------------------------------------------------------------


class ArrayColumns(ABC):
    """Gathers a store's columns into flat arrays batch by batch, and refuses what no reader would have written."""

    names: tuple[str, ...]
    """The columns it reads, "moves", "winner" and "key" among them."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = pa.schema([schema.field(name) for name in self.names])
        self.parts: dict[str, list[NDArray[Any]]] = {}
        self.games = 0

    def add(self, batch: pa.RecordBatch) -> bytes:
        """Take a batch in; its moves end to end. Raises BadStore where they cannot be."""
        moves, sizes = unpacked(batch.column("moves"), "moves")
        self.keep("start", sizes)
        winner = numbers(batch, "winner", np.int8, UNKNOWN_WINNER)
        refuse(~np.isin(winner, (-1, 0, 1, UNKNOWN_WINNER)), self.games, "winner must be -1, 0 or 1")
        self.keep("winner", winner)
        self.keep("key", numbers(batch, "key", np.uint64))
        self.take(batch, moves, sizes)
        self.games += batch.num_rows
        return moves.tobytes()

    def keep(self, name: str, part: NDArray[Any]) -> None:
        """Append to an array; one whose name ends in "start" holds sizes, which become where each game begins."""
        self.parts.setdefault(name, []).append(part)

    @abstractmethod
    def take(self, batch: pa.RecordBatch, moves: NDArray[np.uint16], sizes: NDArray[np.int64]) -> None:
        """Take in the game's own columns; look whether its `moves`, `sizes` of each row, can be."""

    def texts(self) -> dict[str, list[str]]:
        """The texts the arrays point to."""
        return {}

    def finish(self) -> tuple[dict[str, NDArray[Any]], dict[str, list[str]]]:
        """The arrays, and the texts they point to."""
        if not self.parts:
            self.add(pa.RecordBatch.from_pylist([], schema=self.schema))
        arrays = {name: np.concatenate(parts) for name, parts in self.parts.items()}
        for name in arrays:
            if name.endswith("start"):
                arrays[name] = np.concatenate([[0], np.cumsum(arrays[name])]).astype(np.int64)
        return arrays, self.texts()


class Names:
    """Texts numbered in the order they are met."""

    def __init__(self, *first: str) -> None:
        self.numbers = {name: number for number, name in enumerate(first)}

    def indices(self, column: pa.Array, dtype: type[np.integer[Any]]) -> NDArray[Any]:
        """The number of each row's text."""
        encoded = pc.dictionary_encode(pc.fill_null(column, ""))
        table = [self.numbers.setdefault(text, len(self.numbers)) for text in encoded.dictionary.to_pylist()]
        if len(self.numbers) > np.iinfo(dtype).max:
            raise BadStore(f"more than {np.iinfo(dtype).max} different texts in one column")
        return np.asarray(table, dtype)[encoded.indices.to_numpy()] if table else np.zeros(0, dtype)


def unpacked(column: pa.Array, name: str) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """The uint16 codes of a binary column end to end, and how many each row has."""
    if column.null_count:
        raise BadStore(f"{name} must not be null")
    if not len(column):
        return np.zeros(0, np.uint16), np.zeros(0, np.int64)
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
    sizes = np.diff(offsets)
    if (sizes % 2).any():
        raise BadStore(f"{name} must be two bytes each")
    data = column.buffers()[2]
    packed = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.zeros(0, np.uint8)
    return np.frombuffer(packed.tobytes(), "<u2").astype(np.uint16), sizes // 2


def numbers(batch: pa.RecordBatch, name: str, dtype: DTypeLike, unknown: float | None = None) -> NDArray[Any]:
    """A column as an array; nulls become `unknown`, and are refused where that is None."""
    column = batch.column(name)
    if column.null_count:
        if unknown is None:
            raise BadStore(f"{name} must not be null")
        column = pc.fill_null(column, unknown)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype)


def refuse(wrong: NDArray[np.bool_], before: int, message: str) -> None:
    """Raise BadStore for the first row that is wrong; `before` rows came earlier."""
    if wrong.any():
        raise BadStore(message, place=f"row {before + int(np.argmax(wrong)) + 1}")


def refuse_codes(wrong: NDArray[np.bool_], sizes: NDArray[np.int64], before: int, message: str) -> None:
    """Raise BadStore for the first row with a code that is wrong; `sizes` codes a row."""
    if wrong.any():
        row = int(np.searchsorted(np.cumsum(sizes), int(np.argmax(wrong)), side="right"))
        raise BadStore(message, place=f"row {before + row + 1}")


def plain(array: NDArray[Any]) -> NDArray[Any]:
    """The array as a plain read-only view: one type for kernels, whether it is memory-mapped or not."""
    view = np.asarray(array).view(np.ndarray)
    view.setflags(write=False)
    return view
