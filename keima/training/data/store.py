"""The game store: collections of games as Parquet, one row a game, moves packed.

A store is one `.parquet` file or a folder of them, all of one game; the file's metadata say which (`keima.store`,
`keima.game`). Any Parquet reader opens it; the game's `Archive.schema` tells the columns. Positions and planes are
never stored: training replays the moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from keima.atomic import replacing
from keima.errors import BadRequest, BadStore
from keima.games.archive import FlatGames
from keima.games.game import GAMES
from keima.games.rows import VERSION
from keima.plain import Data
from keima.training.data.files import reading
from keima.training.data.flat import flatten
from keima.training.data.summary import summarise

ROW_GROUP = 8192
"""Games a row group; what is held in memory while a store is written or read through."""


class GameStore:
    """A store opened for reading; opening reads the files' footers only.

    Attributes:
        path: the file or folder.
        game: a key of `keima.games.game.GAMES`.
        files: its Parquet files, in order.
        schema: its columns.
    """

    def __init__(self, path: Path, game: str, files: tuple[Path, ...], counts: tuple[int, ...]) -> None:
        self.path = path
        self.game = game
        self.files = files
        self.schema = GAMES[game].archive.schema
        self._counts = counts

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
        for file, (other, _) in zip(files, found, strict=True):
            if other != game:
                raise BadStore(f"holds {other}, but {files[0].name} beside it holds {game}", source=str(file))
        return GameStore(path, game, files, tuple(count for _, count in found))

    def __len__(self) -> int:
        """How many games."""
        return sum(self._counts)

    def __repr__(self) -> str:
        return f"<GameStore {self.path}: {len(self)} games of {self.game}>"

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """These columns of all games (all columns if None), in the store's order.

        Raises:
            BadStore: an unknown column, or damaged data.
        """
        names = self._checked(columns)
        schema = pa.schema([self.schema.field(name) for name in names])
        return pa.Table.from_batches(self.batches(names), schema=schema)

    def batches(self, columns: Sequence[str] | None = None, rows: int = ROW_GROUP) -> Iterator[pa.RecordBatch]:
        """These columns, some thousand games at a time: for stores larger than memory.

        Raises:
            BadStore: an unknown column, or damaged data.
        """
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
        return flatten(self)

    def info(self) -> Data:
        """What is in the store, as JSON: see `keima.training.data.summary`.

        Raises:
            BadStore: damaged data.
        """
        return summarise(self)

    def _checked(self, names: Sequence[str] | None) -> list[str]:
        """These columns, all if None."""
        known = self.schema.names
        for name in names or ():
            if name not in known:
                raise BadStore(f"no column {name!r}; a {self.game} store has {', '.join(known)}", source=str(self.path))
        return list(known if names is None else names)


class StoreWriter:
    """Writes the rows of one store file; made by `writing`.

    Attributes:
        game: a key of `keima.games.game.GAMES`.
        games: rows written so far.
    """

    def __init__(self, game: str, stream: IO[bytes]) -> None:
        self.game = game
        self.games = 0
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._schema = schema = GAMES[game].archive.schema
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
    """Refuse a store that cannot be written, before any work.

    Raises:
        BadRequest: no `.parquet`, or in no folder.
    """
    if Path(path).suffix != ".parquet":
        raise BadRequest("a game store's name must end in .parquet", source=str(path))
    if not Path(path).absolute().parent.is_dir():
        raise BadRequest("there is no such folder to write into", source=str(path))


@contextmanager
def writing(path: Path | str, game: str) -> Iterator[StoreWriter]:
    """A writer whose file takes its place when the block ends well; else whatever was there stays.

    Raises:
        BadStore: it cannot be written there, or the disk is full.
    """
    try:
        with replacing(path) as stream:
            writer = StoreWriter(game, stream)
            try:
                yield writer
                writer.close()
            finally:
                writer.abandon()
    except OSError as error:
        raise BadStore(f"cannot be written: {error.strerror or error}", source=str(path)) from error


def _read_footer(file: Path) -> tuple[str, int]:
    """(game, rows) of a store file. Raises BadStore if it is none."""
    with reading(file):
        metadata = pq.read_metadata(file)
        schema = metadata.schema.to_arrow_schema()
    facts = schema.metadata or {}
    version = facts.get(b"keima.store", b"").decode("utf-8", "replace")
    game = facts.get(b"keima.game", b"").decode("utf-8", "replace")
    if not version:
        raise BadStore(
            "a Parquet file, but no game store of keima's (no `keima.store` in its metadata)", source=str(file)
        )
    if version != VERSION or game not in GAMES:
        raise BadStore(f"a store of {game!r}, version {version!r}; this keima reads version {VERSION} of "
                       f"{' and '.join(GAMES)}", source=str(file))  # fmt: skip
    for field in GAMES[game].archive.schema:
        index = schema.get_field_index(field.name)
        if index < 0 or schema.field(index).type != field.type:
            found = "is missing" if index < 0 else f"is {schema.field(index).type}"
            raise BadStore(f"column {field.name} {found}; it must be {field.type}", source=str(file))
    return game, metadata.num_rows
