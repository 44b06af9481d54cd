"""The columns of a game store and how moves are packed in them; docs/data.md explains each column.

A Go move is a little-endian uint16: row · xsize + column in the low 15 bits, row 0 the top; xsize · ysize is a pass;
bit 15 is set for White. A chess move is the kernel's uint16 (`keima.games.chess.board`): from | to << 6 | kind << 12,
seen from the side that moves, castling as king takes rook.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keima.errors import BadRequest, BadStore

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError as error:
    raise BadRequest("game stores need pyarrow, which is not installed: pip install 'keima[train]'") from error

__all__ = [
    "CHESS_SCHEMA",
    "FEW_VALUES",
    "GO_SCHEMA",
    "ROW_GROUP",
    "SCHEMAS",
    "VERSION",
    "WHITE_BIT",
    "pa",
    "pc",
    "pq",
    "reading",
]

VERSION = "1"
"""Of the columns; in the metadata `keima.store`."""
WHITE_BIT = 1 << 15
"""Set in a packed Go move (and setup stone) of White."""
ROW_GROUP = 8192
"""Games a row group; what is held in memory while a store is written or read through."""

_SHARED_HEAD = [("moves", pa.binary())]
_SHARED_TAIL = [("winner", pa.int8()), ("result", pa.string()), ("black", pa.string()), ("white", pa.string())]
GO_SCHEMA = pa.schema(
    [
        *_SHARED_HEAD,
        ("setup", pa.binary()),
        ("to_play_first", pa.uint8()),
        ("xsize", pa.uint8()),
        ("ysize", pa.uint8()),
        ("rules", pa.string()),
        ("komi", pa.float32()),
        ("handicap", pa.uint8()),
        *_SHARED_TAIL,
        ("score", pa.float32()),
        ("black_rank", pa.string()),
        ("white_rank", pa.string()),
        ("date", pa.string()),
        ("source", pa.string()),
        ("key", pa.uint64()),
    ],
    metadata={"keima.store": VERSION, "keima.game": "go"},
)
CHESS_SCHEMA = pa.schema(
    [
        *_SHARED_HEAD,
        ("start_fen", pa.string()),
        ("chess960", pa.bool_()),
        *_SHARED_TAIL,
        ("white_elo", pa.int16()),
        ("black_elo", pa.int16()),
        ("date", pa.string()),
        ("event", pa.string()),
        ("source", pa.string()),
        ("key", pa.uint64()),
    ],
    metadata={"keima.store": VERSION, "keima.game": "chess"},
)
SCHEMAS = {"go": GO_SCHEMA, "chess": CHESS_SCHEMA}
FEW_VALUES = ("rules", "result", "black", "white", "black_rank", "white_rank", "date", "event", "start_fen")
"""Columns that repeat themselves: kept as a dictionary."""


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Turns what pyarrow raises on a damaged file into a `BadStore` that names it."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadStore(f"cannot be read: {reason}", source=str(file)) from error
