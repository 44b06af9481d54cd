"""The files of a game store, as far as what is made of them needs to know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from keima.errors import BadStore


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Turns what pyarrow raises on a damaged file into a `BadStore` that names it."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadStore(f"cannot be read: {reason}", source=str(file)) from error


class StoreFiles(Protocol):
    """What `GameStore` opens."""

    path: Path
    """The file or folder."""
    game: str
    """A key of `keima.games.game.GAMES`."""
    files: tuple[Path, ...]
    """Its Parquet files, in order."""

    def __len__(self) -> int:
        """How many games."""
        ...

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """These columns, some thousand games at a time."""
        ...
