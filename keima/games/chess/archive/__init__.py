"""Games of chess in a game store."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from keima.errors import BadRecord
from keima.games.archive import Archive
from keima.games.chess.archive.flat import SCHEMA, ChessColumns, ChessGames
from keima.games.chess.archive.reading import ChessReader, game_starts, split_pgn
from keima.games.rows import Broken, Chunk, Counts, Piece, ReadChunk, Rows, value_counts
from keima.plain import Data

CHUNK_BYTES = 1 << 20
_ELO_STEP = 200
_PLACE = re.compile(r"game (\d+) \(line (\d+)\)")


class ChessCounts(Counts):
    """What only a store of chess has: Elo (players by steps of 200), starts (usual, other, chess960)."""

    columns = ("start_fen", "chess960", "white_elo", "black_elo")

    def __init__(self) -> None:
        self.elo: Counter[int | None] = Counter()
        self.starts: Counter[str] = Counter()

    def add(self, batch: pa.RecordBatch) -> None:
        """See `Counts`."""
        for name in ("white_elo", "black_elo"):
            for elo, count in value_counts(batch.column(name)).items():
                self.elo[None if elo is None else elo // _ELO_STEP * _ELO_STEP] += count
        others = batch.num_rows - batch.column("start_fen").null_count
        chess960 = int(pc.sum(batch.column("chess960")).as_py() or 0)
        self.starts.update({"usual": batch.num_rows - others, "other": others - chess960, "chess960": chess960})

    def describe(self) -> Data:
        """See `Counts`."""
        known = sorted((elo, count) for elo, count in self.elo.items() if elo is not None)
        elo = {f"{low}-{low + _ELO_STEP - 1}": count for low, count in known}
        return {
            "elo": elo | ({"unknown": self.elo[None]} if self.elo[None] else {}),
            "starts": {name: count for name, count in self.starts.items() if count},
        }


class ChessArchive(Archive):
    """PGN into rows, rows into arrays.

    Args:
        fast: read plain games with a kernel; without it the rows are the same, later.
    """

    schema = SCHEMA
    games = ChessGames
    columns = ChessColumns
    counts = ChessCounts
    chunk_games = 1
    nothing = "holds no PGN game"

    def __init__(self, fast: bool = True) -> None:
        self.fast = fast

    def pieces(self, stream: IO[bytes], file: int) -> Iterator[Piece]:
        """See `Archive`; each may hold several games."""
        for line, data in split_pgn(stream, CHUNK_BYTES):
            yield Piece(file, line, data)

    def read(self, chunk: Chunk, rules: str | None, min_moves: int) -> ReadChunk:
        """See `Archive`; there are no rules to choose."""
        reader = ChessReader(self.fast)
        (piece,) = chunk.pieces
        found = Rows(SCHEMA, min_moves, continued=piece.file)
        line = piece.line
        starts = [0, *game_starts(piece.data), len(piece.data)]
        for begin, end in pairwise(starts):
            text = piece.data[begin:end]
            for row in reader.read(text) if text.strip() else ():
                found.games += 1
                if isinstance(row, BadRecord):
                    place = _PLACE.search(row.place or "")
                    inner = line + int(place[2]) - 1 if place else line
                    found.broken.append(Broken(piece.file, found.games, inner, row.message))
                else:
                    found.add(row, piece.file, found.games)
            line += text.count(b"\n")
        return found.finish()


ARCHIVE = ChessArchive()
