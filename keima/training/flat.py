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
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadStore, KeimaError
from keima.games.go.board import MAX_SIZE, MIN_SIZE
from keima.games.go.rules import Rules
from keima.training.schema import WHITE_BIT, pa, pc, reading

if TYPE_CHECKING:
    from keima.training.store import GameStore

UNKNOWN_WINNER = -2
UNKNOWN_ELO = -1
_FORMAT = "1"
_MOVES, _ARRAYS, _TEXTS = "moves.bin", "arrays.npz", "texts.json"
_CHESS_KINDS = 7
_ABANDONED = 3600.0
"""Seconds after which unfinished arrays are those of a killed process."""


def _empty(dtype: Any) -> Callable[[], Any]:
    return partial(np.zeros, 0, dtype)


_BOOL, _U8, _U16, _F32 = _empty(np.bool_), _empty(np.uint8), _empty(np.uint16), _empty(np.float32)
_I16, _I32, _I64 = _empty(np.int16), _empty(np.int32), _empty(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class FlatGames:
    """G games as arrays; all read-only. What belongs to the other game is empty.

    Game g's moves are `moves[start[g]:start[g + 1]]`, packed as in the store.

    Attributes:
        game: "go" or "chess".
        moves: uint16 [total], memory-mapped.
        start: int64 [G + 1].
        winner: int8 [G]: +1 Black (Go) or White (chess), −1 the other side, 0 drawn or no result, −2 unknown.
        key: uint64 [G], a hash of setup and moves.
        setup: Go, uint16 [S]: stones on the board before the first move, packed like moves.
        setup_start: Go, int64 [G + 1]: game g's are `setup[setup_start[g]:setup_start[g + 1]]`.
        to_play_first: Go, uint8 [G]: 0 Black, 1 White moves first.
        xsize: Go, uint8 [G], columns.
        ysize: Go, uint8 [G], rows.
        rules_index: Go, uint16 [G], into `rules`.
        rules: Go, the rule sets met.
        komi: Go, float32 [G], points for White.
        handicap: Go, uint8 [G], stones.
        score: Go, float32 [G]: Black's final lead in points, NaN unknown.
        black_rank: Go, uint16 [G], into `ranks`.
        white_rank: Go, uint16 [G], into `ranks`.
        ranks: Go, the ranks met, as written; "" is unknown.
        start_fen: chess, int32 [G], into `start_fens`; −1 is the usual start.
        start_fens: chess, the other starting positions.
        chess960: chess, bool [G].
        white_elo: chess, int16 [G], −1 unknown.
        black_elo: chess, int16 [G], −1 unknown.
    """

    game: str
    moves: NDArray[np.uint16]
    start: NDArray[np.int64]
    winner: NDArray[np.int8]
    key: NDArray[np.uint64]
    setup: NDArray[np.uint16] = field(default_factory=_U16)
    setup_start: NDArray[np.int64] = field(default_factory=_I64)
    to_play_first: NDArray[np.uint8] = field(default_factory=_U8)
    xsize: NDArray[np.uint8] = field(default_factory=_U8)
    ysize: NDArray[np.uint8] = field(default_factory=_U8)
    rules_index: NDArray[np.uint16] = field(default_factory=_U16)
    rules: tuple[Rules, ...] = ()
    komi: NDArray[np.float32] = field(default_factory=_F32)
    handicap: NDArray[np.uint8] = field(default_factory=_U8)
    score: NDArray[np.float32] = field(default_factory=_F32)
    black_rank: NDArray[np.uint16] = field(default_factory=_U16)
    white_rank: NDArray[np.uint16] = field(default_factory=_U16)
    ranks: tuple[str, ...] = ()
    start_fen: NDArray[np.int32] = field(default_factory=_I32)
    start_fens: tuple[str, ...] = ()
    chess960: NDArray[np.bool_] = field(default_factory=_BOOL)
    white_elo: NDArray[np.int16] = field(default_factory=_I16)
    black_elo: NDArray[np.int16] = field(default_factory=_I16)

    def __len__(self) -> int:
        """How many games."""
        return len(self.winner)

    def __repr__(self) -> str:
        return f"<FlatGames: {len(self)} games of {self.game}, {len(self.moves)} moves>"


def flatten(store: GameStore) -> FlatGames:
    """The store's flat arrays, from its cache if that fits the files as they are, else made anew.

    Raises:
        BadStore: damaged data, or there is nowhere to keep the arrays.
    """
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
    raise BadStore(
        f"no room for its flat arrays, beside it or in {tempfile.gettempdir()}: {reason}", source=str(store.path)
    )


def _fingerprint(store: GameStore) -> str:
    """A name for the store's present content."""
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


def _build(store: GameStore, place: Path, folder: Path) -> None:
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
    """Whether another process may still be writing there."""
    try:
        return time.time() - folder.stat().st_mtime < _ABANDONED
    except OSError:
        return False


def _write_arrays(store: GameStore, folder: Path) -> None:
    columns = _GoColumns() if store.game == "go" else _ChessColumns()
    with (folder / _MOVES).open("wb") as moves:
        for batch in store.batches(columns.names):
            try:
                moves.write(columns.add(batch))
            except KeimaError as error:
                raise BadStore(error.message, source=str(store.path), place=error.place) from error
    arrays, texts = columns.finish()
    np.savez(folder / _ARRAYS, allow_pickle=False, **arrays)
    (folder / _TEXTS).write_text(json.dumps(texts), encoding="utf-8")
    for name in (_MOVES, _ARRAYS, _TEXTS):
        with (folder / name).open("rb") as stream:
            os.fsync(stream.fileno())


def _load(game: str, folder: Path) -> FlatGames:
    """The arrays of a finished folder."""
    with np.load(folder / _ARRAYS, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    texts = json.loads((folder / _TEXTS).read_text(encoding="utf-8"))
    total = int(arrays["start"][-1])
    moves = np.memmap(folder / _MOVES, np.uint16, "r", shape=(total,)) if total else np.zeros(0, np.uint16)
    for array in arrays.values():
        array.setflags(write=False)
    fields: dict[str, Any] = {**arrays, **{name: tuple(found) for name, found in texts.items()}}
    fields["rules"] = tuple(Rules.parse(text) for text in fields.get("rules", ()))
    return FlatGames(game=game, moves=moves, **fields)


class _Names:
    """Texts numbered in the order they are met."""

    def __init__(self, *first: str) -> None:
        self.numbers = {name: number for number, name in enumerate(first)}

    def indices(self, column: pa.Array, dtype: Any) -> NDArray[Any]:
        """The number of each row's text."""
        encoded = pc.dictionary_encode(pc.fill_null(column, ""))
        table = [self.numbers.setdefault(text, len(self.numbers)) for text in encoded.dictionary.to_pylist()]
        if len(self.numbers) > np.iinfo(dtype).max:
            raise BadStore(f"more than {np.iinfo(dtype).max} different texts in one column")
        return np.asarray(table, dtype)[encoded.indices.to_numpy()] if table else np.zeros(0, dtype)


class _Columns(ABC):
    """Gathers the columns of one game's store batch by batch."""

    names: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.parts: dict[str, list[NDArray[Any]]] = {}
        self.games = 0

    def add(self, batch: pa.RecordBatch) -> bytes:
        """Take a batch in; its moves end to end. Raises BadStore where they cannot be."""
        moves, sizes = _unpacked(batch.column("moves"), "moves")
        self.keep("start", sizes)
        winner = _numbers(batch, "winner", np.int8, UNKNOWN_WINNER)
        _refuse(~np.isin(winner, (-1, 0, 1, UNKNOWN_WINNER)), self.games, "winner must be -1, 0 or 1")
        self.keep("winner", winner)
        self.keep("key", _numbers(batch, "key", np.uint64))
        self.take(batch, moves, sizes)
        self.games += batch.num_rows
        return moves.tobytes()

    def keep(self, name: str, part: NDArray[Any]) -> None:
        """Append to an array."""
        self.parts.setdefault(name, []).append(part)

    @abstractmethod
    def take(self, batch: pa.RecordBatch, moves: NDArray[np.uint16], sizes: NDArray[np.int64]) -> None:
        """Take in the columns of this game's kind."""

    def finish(self) -> tuple[dict[str, NDArray[Any]], dict[str, list[str]]]:
        """The arrays, and the texts they point to."""
        arrays = {name: np.concatenate(parts) for name, parts in self.parts.items()}
        for name in ("start", "setup_start"):
            if name in arrays:
                arrays[name] = np.concatenate([[0], np.cumsum(arrays[name])]).astype(np.int64)
        if "start" not in arrays:
            arrays = _no_games()
        return arrays, self.texts()

    @abstractmethod
    def texts(self) -> dict[str, list[str]]:
        """The texts the arrays point to."""


class _GoColumns(_Columns):
    names = ("moves", "setup", "to_play_first", "xsize", "ysize", "rules", "komi", "handicap", "winner", "score",
             "black_rank", "white_rank", "key")  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.rules, self.ranks = _Names(), _Names("")

    def take(self, batch: pa.RecordBatch, moves: NDArray[np.uint16], sizes: NDArray[np.int64]) -> None:
        setup, setup_sizes = _unpacked(batch.column("setup"), "setup")
        for name, dtype in (("to_play_first", np.uint8), ("xsize", np.uint8), ("ysize", np.uint8)):
            self.keep(name, _numbers(batch, name, dtype))
        xsize, ysize = self.parts["xsize"][-1], self.parts["ysize"][-1]
        for side in (xsize, ysize):
            _refuse((side < MIN_SIZE) | (side > MAX_SIZE), self.games, "board sides must be 2 to 19")
        area = xsize.astype(np.int64) * ysize
        _refuse_codes((moves & (WHITE_BIT - 1)) > np.repeat(area, sizes), sizes, self.games, "a move off the board")
        wrong = (setup & (WHITE_BIT - 1)) >= np.repeat(area, setup_sizes)
        _refuse_codes(wrong, setup_sizes, self.games, "a setup stone off the board")
        self.keep("setup", setup)
        self.keep("setup_start", setup_sizes)
        self.keep("rules_index", self.rules.indices(batch.column("rules"), np.uint16))
        self.keep("black_rank", self.ranks.indices(batch.column("black_rank"), np.uint16))
        self.keep("white_rank", self.ranks.indices(batch.column("white_rank"), np.uint16))
        self.keep("komi", _numbers(batch, "komi", np.float32))
        self.keep("handicap", _numbers(batch, "handicap", np.uint8))
        self.keep("score", _numbers(batch, "score", np.float32, float("nan")))
        for text in self.rules.numbers:
            Rules.parse(text)

    def texts(self) -> dict[str, list[str]]:
        return {"rules": list(self.rules.numbers), "ranks": list(self.ranks.numbers)}


class _ChessColumns(_Columns):
    names = ("moves", "start_fen", "chess960", "winner", "white_elo", "black_elo", "key")

    def __init__(self) -> None:
        super().__init__()
        self.fens = _Names("")

    def take(self, batch: pa.RecordBatch, moves: NDArray[np.uint16], sizes: NDArray[np.int64]) -> None:
        _refuse_codes(moves >> 12 >= _CHESS_KINDS, sizes, self.games, "a code that is no move")
        self.keep("start_fen", self.fens.indices(batch.column("start_fen"), np.int32) - np.int32(1))
        self.keep("chess960", _numbers(batch, "chess960", np.bool_, False))
        self.keep("white_elo", _numbers(batch, "white_elo", np.int16, UNKNOWN_ELO))
        self.keep("black_elo", _numbers(batch, "black_elo", np.int16, UNKNOWN_ELO))

    def texts(self) -> dict[str, list[str]]:
        return {"start_fens": list(self.fens.numbers)[1:]}


def _no_games() -> dict[str, NDArray[Any]]:
    """The arrays of an empty store."""
    return {
        "start": np.zeros(1, np.int64),
        "setup_start": np.zeros(1, np.int64),
        "winner": np.zeros(0, np.int8),
        "key": np.zeros(0, np.uint64),
    }


def _unpacked(column: pa.Array, name: str) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """The uint16 codes of a binary column end to end, and how many each row has."""
    if column.null_count:
        raise BadStore(f"{name} must not be null")
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
    sizes = np.diff(offsets)
    if (sizes % 2).any():
        raise BadStore(f"{name} must be two bytes each")
    data = column.buffers()[2]
    packed = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.zeros(0, np.uint8)
    return np.frombuffer(packed.tobytes(), "<u2").astype(np.uint16), sizes // 2


def _numbers(batch: pa.RecordBatch, name: str, dtype: Any, unknown: Any = None) -> NDArray[Any]:
    """A column as an array; nulls become `unknown`, and are refused where that is None."""
    column = batch.column(name)
    if column.null_count:
        if unknown is None:
            raise BadStore(f"{name} must not be null")
        column = pc.fill_null(column, unknown)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype)


def _refuse(wrong: NDArray[np.bool_], before: int, message: str) -> None:
    """Raise BadStore for the first row that is wrong."""
    if wrong.any():
        raise BadStore(message, place=f"row {before + int(np.argmax(wrong)) + 1}")


def _refuse_codes(wrong: NDArray[np.bool_], sizes: NDArray[np.int64], before: int, message: str) -> None:
    """Raise BadStore for the first row with a code that is wrong."""
    if wrong.any():
        row = int(np.searchsorted(np.cumsum(sizes), int(np.argmax(wrong)), side="right"))
        raise BadStore(message, place=f"row {before + row + 1}")
