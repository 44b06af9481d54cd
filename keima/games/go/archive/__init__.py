"""Games of Go in a game store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import IO

import numpy as np
import pyarrow as pa

from keima.errors import BadRecord, KeimaError
from keima.games.archive import Archive
from keima.games.go.archive.flat import SCHEMA, GoColumns, GoGames
from keima.games.go.archive.policies import GoPolicyGames
from keima.games.go.archive.reading import GoReader, go_row
from keima.games.go.rules import Rules
from keima.games.go.sgf_text import split_games
from keima.games.rows import Broken, Chunk, Counts, Piece, ReadChunk, Rows, by_frequency, numbers, value_counts
from keima.plain import Data


class GoCounts(Counts):
    """What only a store of Go has: sizes, rules, komi, handicap, ranks (of players, not games), scored games."""

    columns = ("xsize", "ysize", "rules", "komi", "handicap", "score", "black_rank", "white_rank")

    def __init__(self) -> None:
        self.sizes: Counter[str] = Counter()
        self.rules: Counter[str] = Counter()
        self.komi: Counter[float] = Counter()
        self.handicap: Counter[int] = Counter()
        self.ranks: Counter[str] = Counter()
        self.scored = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """See `Counts`."""
        code = numbers(batch, "xsize", np.int64) * 256 + numbers(batch, "ysize", np.int64)
        for size, count in zip(*np.unique(code, return_counts=True), strict=True):
            self.sizes[f"{size >> 8}x{size & 255}"] += int(count)
        self.rules.update(value_counts(batch.column("rules")))
        self.komi.update(numbers(batch, "komi", np.float32).tolist())
        self.handicap.update(numbers(batch, "handicap", np.uint8).tolist())
        for name in ("black_rank", "white_rank"):
            self.ranks.update(value_counts(batch.column(name)))
        self.scored += batch.num_rows - batch.column("score").null_count

    def describe(self) -> Data:
        """See `Counts`."""
        return {
            "sizes": by_frequency(self.sizes),
            "rules": by_frequency(self.rules),
            "komi": {f"{komi:g}": count for komi, count in self.komi.most_common()},
            "handicap": {str(stones): count for stones, count in sorted(self.handicap.items())},
            "ranks": by_frequency(self.ranks),
            "scored": self.scored,
        }


class GoArchive(Archive):
    """SGF into rows, rows into arrays.

    Args:
        fast: scan plain games with a kernel; without it the rows are the same, later.
    """

    schema = SCHEMA
    games = GoGames
    columns = GoColumns
    counts = GoCounts
    drawn = "drawn or no result"
    policy_games = GoPolicyGames()
    nothing = "holds no SGF game: nothing begins with `(;`"

    def __init__(self, fast: bool = True) -> None:
        self.fast = fast

    def check_rules(self, rules: str) -> None:
        """See `Archive`."""
        Rules.parse(rules)

    def pieces(self, stream: IO[bytes], file: int) -> Iterator[Piece]:
        """See `Archive`; each is one game."""
        for raw in split_games(stream):
            yield Piece(file, raw.line, raw.data, raw.index, raw.problem)

    def read(self, chunk: Chunk, rules: str | None, min_moves: int) -> ReadChunk:
        """See `Archive`."""
        reader = GoReader(rules, self.fast)
        found = Rows(SCHEMA, min_moves)
        for piece in chunk.pieces:
            found.games += 1
            try:
                if piece.problem:
                    raise BadRecord(piece.problem)
                game = reader.read(piece.data)
            except KeimaError as error:
                reason = ": ".join(part for part in (error.place, error.message) if part)
                found.broken.append(Broken(piece.file, piece.index, piece.line, reason))
            else:
                found.add(go_row(game), piece.file, piece.index)
        return found.finish()


ARCHIVE = GoArchive()
