"""Game records into a game store: SGF or PGN files, folders and archives, read in pieces by several processes.

Memory stays bounded however large the input: pieces of some hundred games are read, checked and packed, duplicates
dropped, and row groups written as they fill. The store appears under its name when it is complete, or not at all.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from keima.errors import BadRecord, BadRequest, BadStore, KeimaError
from keima.games.files import find_game_files, game_of_file
from keima.games.game import GAMES, get_game
from keima.games.rows import Broken, Chunk, ReadChunk
from keima.games.streams import GameFile
from keima.jit import njit
from keima.training.data.store import check_output, writing

ALONE_SECONDS = 5.0
"""Workers are started when reading has taken this long (the first chunk, which may compile kernels, left out)."""

Progress = Callable[[int, int, int], None]


@dataclass
class ImportReport:
    """What an import did.

    Attributes:
        game: a key of `GAMES`.
        files, games, moves: read, written, and in these.
        duplicates: games left out because one with the same start and moves was written before.
        short: games left out because they have too few moves.
        broken: (source, reason) of each game, or file, that could not be read or breaks the rules, in order.
        seconds: how long it took.
        bytes: the store's size.
    """

    game: str
    files: int = 0
    games: int = 0
    moves: int = 0
    duplicates: int = 0
    short: int = 0
    broken: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0
    bytes: int = 0


def import_games(
    paths: Iterable[Path | str],
    out: Path | str,
    *,
    game: str | None = None,
    rules: str | None = None,
    min_moves: int = 10,
    workers: int | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Read game records into a store. The same input gives the same store, however many workers read it.

    Args:
        paths: files (`.sgf`, `.pgn`, also `.gz`), `.zip` archives, folders that are searched through.
        out: the store to write, `*.parquet`; replaced if it exists.
        game: by name, to take only these of mixed folders; None: whichever the files are.
        rules: to assume where a record names none or unknown ones, of games that have a choice; Go: "chinese" if None.
        min_moves: games with fewer moves (plies) are left out, and counted.
        workers: processes; None: one for each core. With more than one, a script that calls this needs the usual
            `if __name__ == "__main__":`.
        progress: called now and then with (games read, files read, files in all).

    Raises:
        BadRequest: `out` is no `.parquet`, unknown rules or game, or files of several games.
        BadRecord: there is no game to write; says what is wrong with the first.
        BadStore: the store cannot be written, the disk is full, or a worker was killed. Nothing is changed then.
    """
    started = time.perf_counter()
    paths = list(paths)
    check_output(out)
    for path in paths:
        if not Path(path).exists():
            raise BadRequest("no such file or folder", source=str(path))
    if game is not None:
        get_game(game)
    if min_moves < 0 or (workers is not None and workers < 1):
        raise BadRequest(f"min_moves {min_moves} and workers {workers}: not below 0 and 1")
    sources = _Sources.find(paths, game)
    archive = GAMES[sources.game].archive
    if rules is not None:
        try:
            archive.check_rules(rules)
        except KeimaError as error:
            raise BadRequest(error.message) from error
    report = ImportReport(sources.game, files=len(sources.files), broken=sources.broken)
    worker = partial(_read, game=sources.game, rules=rules, min_moves=min_moves)
    intake = _Intake(sources, report, progress)
    chunks = archive.chunks(sources.files, intake.note_files)
    try:
        with writing(out, sources.game) as writer:
            for found in _in_order(worker, chunks, workers or os.cpu_count() or 1):
                writer.write(intake.take(found))
            if not report.games:
                counts = f"{len(report.broken)} broken, {report.short} too short, {report.duplicates} duplicates"
                first = f"; the first: {report.broken[0][0]}: {report.broken[0][1]}" if report.broken else ""
                source = str(paths[0]) if len(paths) == 1 else None
                raise BadRecord(f"no game to write ({counts}){first}", source=source)
    except BrokenProcessPool as error:
        reason = "a worker process was killed (was memory short?), or the script that imports runs without "
        advice = '`if __name__ == "__main__":`; --workers 1 needs no other process'
        raise BadStore(f"nothing written: {reason}{advice}", source=str(out)) from error
    report.bytes = Path(out).stat().st_size
    report.seconds = time.perf_counter() - started
    return report


@dataclass
class _Sources:
    """The files to read: what messages call them, what the store does, and those that cannot be opened."""

    game: str
    files: list[GameFile]
    names: list[str]
    broken: list[tuple[str, str]]

    @staticmethod
    def find(paths: Iterable[Path | str], game: str | None) -> _Sources:
        found = _Sources("", [], [], [])
        for path in paths:
            for file in find_game_files([path]):
                if isinstance(file, BadRecord):
                    found.broken.append((file.source or str(path), file.message))
                elif game in (None, its := game_of_file(file)):
                    found.game = found.game or its
                    if its != found.game:
                        first = f"{found.files[0].name} is {found.game}; choose with --game"
                        raise BadRequest(f"a store holds one game, but {file.name} is {its} and {first}")
                    found.files.append(file)
                    folder = path if Path(path).is_dir() else Path(path).parent  # else the bare name
                    found.names.append(os.path.relpath(file.name, folder).replace(os.sep, "/"))
        if not found.files:
            what = f"no {game} records" if game else "no game records"
            source, reason = found.broken[0] if found.broken else (None, what)
            raise BadRecord(reason, source=source)
        return found


def _read(chunk: Chunk, game: str, rules: str | None, min_moves: int) -> ReadChunk:
    archive = GAMES[game].archive
    if chunk.problem:
        found = ReadChunk(archive.schema, min_moves).finish()
        found.broken.append(Broken(chunk.file, 0, 0, chunk.problem))
        return found
    return archive.read(chunk, rules, min_moves)


def _in_order(worker: Callable[[Chunk], ReadChunk], chunks: Iterator[Chunk], workers: int) -> Iterator[ReadChunk]:
    """What the worker makes of each chunk, in order; by several processes once it takes long."""
    deadline = None
    for chunk in chunks:
        yield worker(chunk)
        deadline = deadline or time.monotonic() + ALONE_SECONDS
        if workers > 1 and time.monotonic() > deadline:
            break
    else:
        return
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        waiting: deque[Future[ReadChunk]] = deque()
        for chunk in chunks:
            waiting.append(pool.submit(worker, chunk))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


class _Intake:
    """Puts what the workers give into the report, and takes duplicates out."""

    def __init__(self, sources: _Sources, report: ImportReport, progress: Progress | None) -> None:
        self.sources = sources
        self.report = report
        self.progress = progress
        self.files_done = 0
        self._seen = _KeySet()
        self._games = 0
        self._before: dict[int, int] = {}

    def note_files(self, done: int) -> None:
        self.files_done = done

    def take(self, found: ReadChunk) -> pa.RecordBatch:
        """The rows of a chunk that are new, with their sources."""
        before = {found.continued: self._before.get(found.continued, 0)} if found.continued is not None else {}
        names = [
            f"{self.sources.names[file]}#{before.get(file, 0) + index}"
            for file, index in zip(found.files, found.indices, strict=True)
        ]
        for broken in found.broken:
            source = self.sources.files[broken.file].name
            if broken.index:
                source += f": game {before.get(broken.file, 0) + broken.index} (line {broken.line})"
            self.report.broken.append((source, broken.reason))
        if found.continued is not None:
            self._before[found.continued] = self._before.get(found.continued, 0) + found.games
        place = found.batch.schema.get_field_index("source")
        batch = found.batch.set_column(place, "source", pa.array(names, pa.string()))
        batch = batch.filter(pa.array(self._seen.add(batch.column("key").to_numpy())))
        self.report.games += batch.num_rows
        self.report.duplicates += found.batch.num_rows - batch.num_rows
        self.report.short += found.short
        self.report.moves += int(pc.sum(pc.binary_length(batch.column("moves"))).as_py() or 0) // 2
        self._games += found.games
        if self.progress:
            self.progress(self._games, self.files_done, len(self.sources.files))
        return batch


class _KeySet:
    """The 64-bit keys met so far: 8 to 32 bytes a key, where a Python set takes a hundred."""

    def __init__(self) -> None:
        self._table = np.zeros(1 << 16, np.uint64)
        self._count = 0

    def add(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Put keys in; which of them are new."""
        fresh = np.zeros(len(keys), np.bool_)
        while 2 * (self._count + len(keys)) > len(self._table):
            old = self._table[self._table != 0]
            self._table = np.zeros(2 * len(self._table), np.uint64)
            _insert(self._table, old, np.zeros(len(old), np.bool_))
        self._count += int(_insert(self._table, np.maximum(keys, np.uint64(1)), fresh))
        return fresh


@njit
def _insert(table: NDArray[np.uint64], keys: NDArray[np.uint64], fresh: NDArray[np.bool_]) -> int:
    """Put keys, none of them 0, into an open hash table of 2ⁿ entries; marks the new ones and counts them."""
    mask = np.uint64(len(table) - 1)
    count = 0
    for i in range(len(keys)):
        slot = keys[i] & mask
        while table[slot] != 0 and table[slot] != keys[i]:
            slot = (slot + np.uint64(1)) & mask
        if table[slot] == 0:
            table[slot] = keys[i]
            fresh[i] = True
            count += 1
    return count
