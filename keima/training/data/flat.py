"""A store's games as flat arrays, for kernels that replay them: moves end to end in one memory-mapped file.

The arrays are made from the Parquet files once and kept in a folder `<store>.cache` beside the store (where that is not
writable, in the system's temporary folder), under a fingerprint of the store's files: names, sizes, times and footers.
A store that changes gets new arrays, and the old ones are removed. The folder may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from keima.errors import BadStore, KeimaError
from keima.games.archive import FlatGames
from keima.games.game import GAMES

_FORMAT = "1"
_MOVES, _ARRAYS, _TEXTS = "moves.bin", "arrays.npz", "texts.json"
_ABANDONED = 3600.0
"""Seconds after which unfinished arrays are those of a killed process."""


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Turns what pyarrow raises on a damaged file, and what is wrong with its rows, into a `BadStore` that names it."""
    try:
        yield
    except KeimaError as error:
        raise BadStore(error.message, source=error.source or str(file), place=error.place) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadStore(f"cannot be read: {reason}", source=str(file)) from error


class Stored(NamedTuple):
    """What a store's arrays are made of."""

    path: Path
    game: str
    files: tuple[Path, ...]
    games: int
    batches: Callable[[Sequence[str]], Iterator[pa.RecordBatch]]


def flatten(store: Stored) -> FlatGames:
    """The store's flat arrays, from its cache if that fits the files as they are, else made anew; or a BadStore."""
    fingerprint = _fingerprint(store)
    failure: OSError | None = None
    for place in _places(store.path):
        folder = place / fingerprint
        try:
            if not folder.is_dir():
                _build(store, place, folder)
            return _load(store.game, folder)
        except OSError as error:
            failure = failure or error
    reason = (failure.strerror or str(failure)) if failure else "no place"
    message = f"no room for its flat arrays, beside it or in {tempfile.gettempdir()}: {reason}"
    raise BadStore(message, source=str(store.path))


def _fingerprint(store: Stored) -> str:
    digest = hashlib.sha256(_FORMAT.encode())
    for file in store.files:
        with reading(file), file.open("rb") as stream:
            status = os.fstat(stream.fileno())
            digest.update(f"{file.name} {status.st_size} {status.st_mtime_ns}\n".encode())
            stream.seek(-8, os.SEEK_END)
            length = int.from_bytes(stream.read(4), "little")
            stream.seek(-min(8 + length, status.st_size), os.SEEK_END)
            digest.update(stream.read())
    return digest.hexdigest()[:24]


def _places(path: Path) -> Iterator[Path]:
    """The folders that may hold the arrays, best first; one of our own in the temporary folder, nobody else's."""
    yield path.with_name(path.name + ".cache") if path.name else Path(f"{path.resolve()}.cache")
    user = os.getuid() if hasattr(os, "getuid") else 0
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    shared = Path(tempfile.gettempdir()) / f"keima-{user}"
    with contextlib.suppress(OSError):
        shared.mkdir(mode=0o700, exist_ok=True)
        if not hasattr(os, "getuid") or (shared.lstat().st_uid == user and not shared.is_symlink()):
            yield shared / f"{name}.cache"


def _build(store: Stored, place: Path, folder: Path) -> None:
    """Make the arrays in a new folder beside `folder`, which it then becomes; older ones are removed."""
    place.mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".making-", dir=place))
    try:
        _write_arrays(store, work)
        os.chmod(work, 0o755)
        try:
            os.rename(work, folder)
        except OSError:
            if not folder.is_dir():  # else another process was quicker
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for old in place.iterdir():
        if old != folder and not (old.name.startswith(".") and _is_recent(old)):
            shutil.rmtree(old, ignore_errors=True)


def _is_recent(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime < _ABANDONED
    except OSError:
        return False


def _write_arrays(store: Stored, folder: Path) -> None:
    columns = GAMES[store.game].archive.columns()
    with (folder / _MOVES).open("wb") as moves:
        for batch in store.batches(columns.names):
            with reading(store.path):
                packed = columns.add(batch)
            moves.write(packed)
    arrays, texts = columns.finish()
    if columns.games != store.games:
        raise BadStore(f"damaged: {columns.games} rows, where its files say {store.games}", source=str(store.path))
    np.savez(folder / _ARRAYS, allow_pickle=False, **arrays)
    (folder / _TEXTS).write_text(json.dumps(texts), encoding="utf-8")
    for name in (_MOVES, _ARRAYS, _TEXTS):
        with (folder / name).open("rb") as stream:
            os.fsync(stream.fileno())


def _load(game: str, folder: Path) -> FlatGames:
    with np.load(folder / _ARRAYS, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    texts = json.loads((folder / _TEXTS).read_text(encoding="utf-8"))
    total = int(arrays["start"][-1])
    moves = np.memmap(folder / _MOVES, np.uint16, "r", shape=(total,)) if total else np.zeros(0, np.uint16)
    for array in arrays.values():
        array.setflags(write=False)
    return GAMES[game].archive.games.load(moves, arrays, texts)
