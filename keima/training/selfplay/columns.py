"""The columns that self-play adds to a game store:

    number      int64   the game's number in its run
    kinds       binary  uint8 a ply: OPENING, FAST, FULL
    values      binary  int16 a ply: Q of the root for the side to move, in steps of 1/32767; −32768 not searched
    networks    binary  int32 a ply: the generation that searched
    pi_counts   binary  uint16 a ply: moves of π, 0 where nothing is to be learned
    pi_moves    binary  int16 each: π's moves, as the game's kernels write them, end to end
    pi_weights  binary  uint16 each: their weights in steps of 1/65535; those of a ply sum to 65535
    played_out  bool    nobody resigned in it
    reason      string  how it ended, in words

Numbers are little-endian.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from keima.errors import BadStore
from keima.games.rows import Counts, Row, by_frequency, numbers, value_counts
from keima.plain import Data
from keima.training.selfplay.game import FULL, OPENING

FORMAT = "1"
"""Of the columns; in the metadata `keima.selfplay`."""
SEARCHED, UNSEARCHED, WHOLE = 32767, -32768, 65535
"""In `values`: Q of 1, and no search; in `pi_weights`: 1."""

KINDS = ("opening", "fast", "full")
"""Names of `OPENING`, `FAST`, `FULL`."""

PACKED: dict[str, DTypeLike] = {
    "kinds": np.uint8,
    "values": "<i2",
    "networks": "<i4",
    "pi_counts": "<u2",
    "pi_moves": "<i2",
    "pi_weights": "<u2",
}
COLUMNS = (
    ("number", pa.int64()),
    *((name, pa.binary()) for name in PACKED),
    ("played_out", pa.bool_()),
    ("reason", pa.string()),
)


def sizes_of(batch: pa.RecordBatch, name: str, width: int) -> NDArray[np.int64]:
    """How many numbers of so many bytes each row of a binary column holds."""
    column = batch.column(name)
    if column.null_count:
        raise BadStore(f"{name} must not be null")
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
    sizes = np.diff(offsets)
    if (sizes % width).any():
        raise BadStore(f"{name} must be {width} bytes each")
    found: NDArray[np.int64] = sizes // width
    return found


def unpacked(column: pa.Array, dtype: DTypeLike) -> NDArray[Any]:
    """The numbers of a binary column's rows, end to end."""
    if not len(column) or column.buffers()[2] is None:
        return np.zeros(0, dtype)
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
    data = column.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0])).to_pybytes()
    if len(data) % np.dtype(dtype).itemsize:
        raise BadStore(f"a column whose values must be {np.dtype(dtype).itemsize} bytes each")
    return np.frombuffer(data, dtype)


class ShardCounts(Counts):
    """What only shards have, for `keima data info`: numbers, full searches, how games ended, networks, duplicates."""

    columns = ("number", "key", "kinds", "networks", "played_out", "reason")

    def __init__(self) -> None:
        self.games: Counter[tuple[int, int]] = Counter()  # by number and key: every run numbers its own from 0
        self.kinds = np.zeros(FULL + 1, np.int64)
        self.reasons: Counter[str] = Counter()
        self.played_out = 0
        self.networks: set[int] = set()

    def add(self, batch: pa.RecordBatch) -> None:
        """See `Counts`."""
        of_each = (numbers(batch, "number", np.int64), numbers(batch, "key", np.uint64))
        self.games.update(zip(*(column.tolist() for column in of_each), strict=True))
        kinds = unpacked(batch.column("kinds"), np.uint8)
        self.kinds += np.bincount(np.minimum(kinds, FULL), minlength=FULL + 1)
        networks = unpacked(batch.column("networks"), "<i4")
        if len(networks) != len(kinds):
            raise BadStore("kinds and networks must hold one number a ply")
        self.networks.update(np.unique(networks[kinds != OPENING]).tolist())
        self.reasons.update(value_counts(batch.column("reason")))
        self.played_out += int(numbers(batch, "played_out", np.bool_, False).sum())

    def describe(self) -> Data:
        """See `Counts`."""
        opening, fast, full = self.kinds.tolist()
        found = [number for number, _ in self.games]
        return {
            "numbers": {"first": min(found, default=0), "last": max(found, default=0)},
            "duplicates": self.games.total() - len(self.games),
            "searches": {"full": full, "fast": fast, "none": opening},
            "ends": by_frequency(self.reasons),
            "played_out": self.played_out,
            "networks": {"first": min(self.networks, default=0), "last": max(self.networks, default=0)},
        }


def describe_row(row: Row, name: Callable[[int, int], str]) -> Data:
    """What self-play's columns tell of a game, as JSON: `number`, `reason`, `played_out`, and of every ply `kind`,
    `network`, where it was searched `q` (for the side to move), where it teaches `policy` by move.

    `name` gives a move's name from its ply and the kernels' code. Rows without the columns have nothing to tell.
    """
    if row.get("kinds") is None:
        return {}
    packed = {column: np.frombuffer(row[column], kind).tolist() for column, kind in PACKED.items()}
    moves, weights = iter(packed["pi_moves"]), iter(packed["pi_weights"])
    plies: list[Data] = []
    columns = zip(packed["kinds"], packed["values"], packed["networks"], packed["pi_counts"], strict=True)
    for ply, (kind, value, network, count) in enumerate(columns):
        told: Data = {"kind": KINDS[kind], "network": network}
        if value != UNSEARCHED:
            told["q"] = round(value / SEARCHED, 5)
        if count:
            told["policy"] = {name(ply, next(moves)): round(next(weights) / WHOLE, 5) for _ in range(count)}
        plies.append(told)
    return {name: row[name] for name in ("number", "reason", "played_out")} | {"plies": plies}
