"""A store divided into games to train on and games to test on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keima.errors import BadRequest, BadStore
from keima.training.data.store import GameStore, writing

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
            key = batch.column("key").to_numpy() * _MIX
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
    """Write `train.parquet` and `test.parquet` into a folder, which is made if need be.

    Raises:
        BadRequest: all games, or none, would be test games; nothing is written.
        BadStore: damaged data, or the files cannot be written.
    """
    counts = [0, 0]
    for batch in store.batches(["source", "date", "key"]):
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
    with writing(folder / TRAIN, store.game) as train_writer, writing(folder / TEST, store.game) as test_writer:
        for batch in store.batches():
            is_test = test.of(batch)
            test_writer.write(batch.filter(pa.array(is_test)))
            train_writer.write(batch.filter(pa.array(~is_test)))
    return SplitReport(*counts)


def _example(store: GameStore, test: TestGames) -> str:
    """What the store's sources or dates look like, to choose from."""
    column = "date" if test.date is not None else "source"
    for batch in store.batches([column], rows=1):
        return f"the first game's {column} is {batch.column(column)[0].as_py()!r}"
    return "the store is empty"
