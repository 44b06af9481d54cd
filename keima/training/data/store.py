"""The game store: collections of games as Parquet, one row a game, moves packed; divided for training and testing.

A store is one `.parquet` file or a folder of them, all of one game; the file's metadata say which (`keima.store`,
`keima.game`). Any Parquet reader opens it; the game's `Archive.schema` tells the columns. Positions and planes are
never stored: training replays the moves.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from keima.atomic import replacing
from keima.errors import BadRequest, BadStore
from keima.games.archive import FlatGames
from keima.games.game import GAMES
from keima.games.rows import VERSION, Counts, numbers, unpacked, value_counts
from keima.plain import Data
from keima.training.data.flat import Stored, flatten, reading

ROW_GROUP = 8192
"""Games a row group; what is held in memory while a store is written or read through."""


class GameStore:
    """A store opened for reading; opening reads the files' footers only.

    Attributes:
        path: the file or folder.
        game: a key of `keima.games.game.GAMES`.
        files: its Parquet files, in order.
        schema, whole: the columns of the game's stores; those that every file has, what searches found among them.
    """

    def __init__(
        self, path: Path, game: str, files: tuple[Path, ...], counts: tuple[int, ...], more: Sequence[pa.Field] = ()
    ) -> None:
        self.path = path
        self.game = game
        self.files = files
        self.schema = GAMES[game].archive.schema
        self._counts = counts
        known = {field.name: field for field in (*more, *self.schema)}
        self.whole = pa.schema([*known.values()], metadata=self.schema.metadata)

    @staticmethod
    def open(path: Path | str) -> GameStore:
        """Open a `.parquet` file, or a folder of them.

        Raises:
            BadStore: no such file, no Parquet, no game store, a newer version, or files of different games.
        """
        path = Path(path)
        if path.is_dir():
            files = tuple(sorted(file for file in path.glob("*.parquet") if not file.name.startswith(".")))
            if not files:
                raise BadStore("no .parquet files in this folder", source=str(path))
        elif path.is_file():
            files = (path,)
        else:
            raise BadStore("no such game store; `keima data import` makes one", source=str(path))
        found = [_read_footer(file) for file in files]
        game = found[0][0]
        for file, (other, _, _) in zip(files, found, strict=True):
            if other != game:
                raise BadStore(f"holds {other}, but {files[0].name} beside it holds {game}", source=str(file))
        more = [field for field in found[0][2] if all(field in schema for _, _, schema in found)]
        return GameStore(path, game, files, tuple(count for _, count, _ in found), more)

    def __len__(self) -> int:
        """How many games."""
        return sum(self._counts)

    def __repr__(self) -> str:
        return f"<GameStore {self.path}: {len(self)} games of {self.game}>"

    @property
    def columns(self) -> list[str]:
        """The columns that every file has, those of the game's stores and others."""
        return list(self.whole.names)

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """These columns of all games (those of the game's stores if None), in the store's order.

        Raises:
            BadStore: an unknown column, or damaged data.
        """
        names = self._checked(columns)
        schema = pa.schema([self.whole.field(name) for name in names])
        return pa.Table.from_batches(self.batches(names), schema=schema)

    def batches(self, columns: Sequence[str] | None = None, rows: int = ROW_GROUP) -> Iterator[pa.RecordBatch]:
        """These columns, some thousand games at a time: for stores larger than memory. Raises BadStore as `table`."""
        names = self._checked(columns)
        for file in self.files:
            with reading(file), pq.ParquetFile(file) as parquet:
                for batch in parquet.iter_batches(batch_size=rows, columns=names):
                    yield batch.select(names)

    def flat(self) -> FlatGames:
        """All games as flat arrays, the moves memory-mapped; made once and kept beside the store (see `flat`).

        Raises:
            BadStore: damaged data, or there is nowhere to keep the arrays.
        """
        return flatten(Stored(self.path, self.game, self.files, len(self), self.batches))

    def info(self, *more: type[Counts]) -> Data:
        """Counts over all games as JSON; each mapping from the most frequent down, dates and Elo in order.

        Args:
            more: what else to count, where every file has the columns for it.

        Returns:
            game, files, bytes, games, moves, moves_per_game (min, mean, median, max), results, dates (games a year,
            first, last), what only stores of this game have: the game's `Archive.counts`, and what `more` count.

        Raises:
            BadStore: damaged data.
        """
        game = GAMES[self.game]
        kinds = (game.archive.counts, *more)
        counts = [kind() for kind in kinds if {*self.columns} >= {*kind.columns}]
        names = dict.fromkeys(name for each in counts for name in each.columns)
        lengths: Counter[int] = Counter()
        winners: Counter[Any] = Counter()
        dates: Counter[str] = Counter()
        for batch in self.batches(list(dict.fromkeys(["moves", "winner", "date", *names]))):
            with reading(self.path):
                lengths.update(unpacked(batch.column("moves"), "moves")[1].tolist())
                winners.update(value_counts(batch.column("winner")))
                dates.update(value_counts(batch.column("date")))
                for each in counts:
                    each.add(batch)
        results = {1: game.sides[0], -1: game.sides[1], 0: game.archive.drawn, None: "unknown"}
        return {
            "game": self.game,
            "files": len(self.files),
            "bytes": sum(file.stat().st_size for file in self.files),
            "games": len(self),
            "moves": sum(length * count for length, count in lengths.items()),
            "moves_per_game": _spread(dict(sorted(lengths.items()))),
            "results": {name: winners[value] for value, name in results.items() if winners[value]},
            "dates": _describe_dates(dates),
            **{name: found for each in counts for name, found in each.describe().items()},
        }

    def _checked(self, names: Sequence[str] | None) -> list[str]:
        for name in names or ():
            if name not in self.whole.names:
                known = ", ".join(self.schema.names)
                raise BadStore(f"no column {name!r}; a {self.game} store has {known}", source=str(self.path))
        return list(self.schema.names if names is None else names)


class StoreWriter:
    """Writes the rows of one store file of a game, `games` so far; made by `writing`."""

    def __init__(self, game: str, stream: IO[bytes], schema: pa.Schema | None = None) -> None:
        self.game = game
        self.games = 0
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._schema = schema = schema or GAMES[game].archive.schema
        few = [field.name for field in schema if field.type == pa.string() and field.name != "source"]
        self._writer = pq.ParquetWriter(stream, schema, compression="zstd", use_dictionary=few)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; they are kept until a row group is full."""
        if batch.num_rows:
            self._waiting.append(batch)
            self._rows += batch.num_rows
            self.games += batch.num_rows
        if self._rows >= ROW_GROUP:
            self._flush()

    def close(self) -> None:
        """Write what is kept, and the footer."""
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """Let go of the stream: an unfinished file is of no use, and Arrow would still write to it when collected."""
        with suppress(OSError, ValueError, pa.ArrowException):
            self._writer.close()
        self._writer.is_open = False

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting, self._schema), row_group_size=ROW_GROUP)
        self._waiting, self._rows = [], 0


def check_output(path: Path | str) -> None:
    """Make a store's folder, before any work. Raises BadRequest: no `.parquet`, or a folder that cannot be made."""
    if Path(path).suffix != ".parquet":
        raise BadRequest("a game store's name must end in .parquet", source=str(path))
    try:
        Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequest(f"its folder cannot be made: {error.strerror or error}", source=str(path)) from error


@contextmanager
def writing(path: Path | str, game: str, schema: pa.Schema | None = None) -> Iterator[StoreWriter]:
    """A writer whose file takes its place when the block ends well; else whatever was there stays.

    `schema`: of a store of this game with more columns.

    Raises:
        BadStore: it cannot be written there, or the disk is full.
    """
    try:
        with replacing(path) as stream:
            writer = StoreWriter(game, stream, schema)
            try:
                yield writer
                writer.close()
            finally:
                writer.abandon()
    except OSError as error:
        raise BadStore(f"cannot be written: {error.strerror or error}", source=str(path)) from error


def _read_footer(file: Path) -> tuple[str, int, pa.Schema]:
    """(game, rows, columns) of a store file. Raises BadStore if it is none."""
    with reading(file):
        metadata = pq.read_metadata(file)
        found = metadata.schema.to_arrow_schema()
        check_schema(found)
    return found.metadata[b"keima.game"].decode(), metadata.num_rows, found


def check_schema(found: pa.Schema, more: Sequence[pa.Field] = ()) -> pa.Schema:
    """The columns that a store of the game in `found`'s metadata has, and `more`, with that metadata.

    Raises:
        BadStore: `found` is of no store, or has another column.
    """
    facts = found.metadata or {}
    version = facts.get(b"keima.store", b"").decode("utf-8", "replace")
    game = facts.get(b"keima.game", b"").decode("utf-8", "replace")
    if not version:
        raise BadStore("a Parquet file, but no game store of keima's (no `keima.store` in its metadata)")
    if version != VERSION or game not in GAMES:
        known = f"this keima reads version {VERSION} of {' and '.join(GAMES)}"
        raise BadStore(f"a store of {game!r}, version {version!r}; {known}")
    schema = pa.schema([*GAMES[game].archive.schema, *more], metadata=facts)
    for field in schema:
        index = found.get_field_index(field.name)
        if index < 0 or found.field(index).type != field.type:
            what = "is missing" if index < 0 else f"is {found.field(index).type}"
            raise BadStore(f"column {field.name} {what}; it must be {field.type}")
    return schema


def _spread(lengths: dict[int, int]) -> dict[str, float]:
    """Least, mean, median and greatest number of moves, from the games of each number, rising."""
    if not lengths:
        return {}
    games = sum(lengths.values())
    sums = list(accumulate(lengths.values()))
    return {
        "min": min(lengths),
        "mean": round(sum(length * count for length, count in lengths.items()) / games, 1),
        "median": list(lengths)[bisect_left(sums, (games + 1) // 2)],
        "max": max(lengths),
    }


def _describe_dates(dates: Counter[str]) -> Data:
    """First and last ISO date, games a year; what is no ISO date is counted as "unknown"."""
    known = {date: count for date, count in dates.items() if date and date[:4].isdecimal() and date[4:5] in ("", "-")}
    years: Counter[str] = Counter()
    for date, count in known.items():
        years[date[:4]] += count
    unknown = sum(dates.values()) - sum(known.values())
    return {
        "first": min(known, default=""),
        "last": max(known, default=""),
        "years": dict(sorted(years.items())) | ({"unknown": unknown} if unknown else {}),
    }


# --- Games to train on and games to test on ---------------------------------------------------------------------------

TRAIN, TEST = "train.parquet", "test.parquet"
_MIX = np.uint64(0x9E3779B97F4A7C15)
_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")


@dataclass(frozen=True)
class TestGames:
    """Which games are for testing; exactly one attribute is set.

    Attributes:
        source: a pattern with * and ? for the name of the file they came from, "tygem-2010-06*".
        date: the beginning of their date: "2010", "2010-06" or "2010-06-17".
        fraction: about this part of all games, 0 to 1, chosen by each game's key: a game stays on its side whatever
            other games there are.
    """

    __test__ = False  # no test case for pytest
    source: str | None = None
    date: str | None = None
    fraction: float | None = None

    def __post_init__(self) -> None:
        if sum(value is not None for value in (self.source, self.date, self.fraction)) != 1:
            raise BadRequest("choose the test games by exactly one of --test-source, --test-date, --test-fraction")
        if self.fraction is not None and not 0 < self.fraction < 1:
            raise BadRequest(f"--test-fraction {self.fraction}: must lie between 0 and 1")
        if self.date is not None and not _DATE.fullmatch(self.date):
            raise BadRequest(f"--test-date {self.date!r}: a year, month or day like 2010, 2010-06, 2010-06-17")

    def of(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which rows are test games."""
        if self.fraction is not None:
            key = numbers(batch, "key", np.uint64) * _MIX
            return np.asarray((key >> np.uint64(11)) < np.uint64(self.fraction * 2**53))
        if self.date is not None:
            return np.array([(date or "").startswith(self.date) for date in batch.column("date").to_pylist()], np.bool_)
        pattern = self.source or ""
        sources = (source or "" for source in batch.column("source").to_pylist())
        return np.array([fnmatchcase(source.rpartition("#")[0], pattern) for source in sources], np.bool_)


@dataclass(frozen=True)
class SplitReport:
    """How many games went where."""

    train: int
    test: int


def split_store(store: GameStore, folder: Path | str, test: TestGames) -> SplitReport:
    """Write `train.parquet` and `test.parquet` into a folder, made if need be; what searches found goes with the games.

    Raises:
        BadRequest: all games, or none, would be test games; nothing is written.
        BadStore: damaged data, or the files cannot be written.
    """
    counts = [0, 0]
    for batch in store.batches(["source", "date", "key"]):
        with reading(store.path):
            chosen = int(test.of(batch).sum())
        counts[0] += len(batch) - chosen
        counts[1] += chosen
    if 0 in counts:
        which = "no game is a test game" if not counts[1] else "every game would be a test game"
        raise BadRequest(f"{which}; {_example(store, test)}", source=str(store.path))
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadStore(f"cannot be made: {error.strerror or error}", source=str(folder)) from error
    for file in store.files:
        if file.resolve() in {(folder / name).resolve() for name in (TRAIN, TEST)}:
            raise BadRequest("the store would be written over itself; choose another folder", source=str(file))
    with (
        writing(folder / TRAIN, store.game, store.whole) as train_writer,
        writing(folder / TEST, store.game, store.whole) as test_writer,
    ):
        for batch in store.batches(store.columns):
            is_test = test.of(batch)
            test_writer.write(batch.filter(pa.array(is_test)))
            train_writer.write(batch.filter(pa.array(~is_test)))
    return SplitReport(*counts)


def _example(store: GameStore, test: TestGames) -> str:
    column = "date" if test.date is not None else "source"
    for batch in store.batches([column], rows=1):
        return f"the first game's {column} is {batch.column(column)[0].as_py()!r}"
    return "the store is empty"
