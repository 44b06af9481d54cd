"""What training knows of a game: its records as rows of a game store, and the stored games as arrays.

A game's facet is `ARCHIVE`, an `Archive`:

    records  → `pieces` → `chunks` → `read` (in worker processes) → rows of `schema`
    rows     → `columns` → arrays on the disk → `games`: its class of `FlatGames`
    arrays   → `FlatGames.replay` → position records, which an encoding turns into planes

`policy_games` plays games without records: policies against each other, without a search.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keima.errors import BadRecord, BadRequest
from keima.games.position import Position
from keima.games.records import GameRecord
from keima.games.rows import UNKNOWN_WINNER, ArrayColumns, Chunk, Counts, Piece, ReadChunk, Row
from keima.games.streams import GameFile
from keima.jit import Records
from keima.plain import Data

__all__ = ["UNKNOWN_WINNER", "Archive", "FlatGames", "PolicyGames"]

CHUNK_BYTES = 1 << 20
"""Bytes of records after which a chunk ends."""


class Kinds(NamedTuple):
    """How games begin, as far as an encoding cares (size, rules): each game's kind [G], and how each kind begins."""

    of: NDArray[np.int64]
    positions: Sequence[Position]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FlatGames(ABC):
    """G games as arrays; all read-only. A game's own class adds how its games begin and what they tell.

    A position is the one *before* the move `turn` of a game (0 is the first), with the side of that move to play.
    """

    game: ClassVar[str]
    """The name of the game."""
    tells: ClassVar[frozenset[str]] = frozenset({"policy", "value", "moves_left"})
    """The targets its games may tell: these, "score" (points) and "ownership" (of each point)."""

    moves: NDArray[np.uint16]  # [total], memory-mapped, as in the store: game g's are `moves[start[g]:start[g + 1]]`
    start: NDArray[np.int64]  # [G + 1]
    winner: NDArray[np.int8]  # [G]: +1 the first of `Game.sides`, −1 the second, 0 drawn or no result, −2 unknown
    key: NDArray[np.uint64]  # [G], a hash of beginning and moves

    def __len__(self) -> int:
        """How many games."""
        return len(self.winner)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} games of {self.game}, {len(self.moves)} moves>"

    @classmethod
    def load(
        cls, moves: NDArray[np.uint16], arrays: Mapping[str, NDArray[Any]], texts: Mapping[str, list[str]]
    ) -> FlatGames:
        """The games whose arrays and texts `Archive.columns` gathered."""
        fields: Data = {**arrays, **{name: tuple(found) for name, found in texts.items()}}
        return cls(moves=moves, **fields)

    @abstractmethod
    def replay(self, chosen: NDArray[np.int64], turns: NDArray[np.int64], records: Records) -> None:
        """Write N positions, in a kernel that holds no lock.

        Args:
            chosen, turns: int64 [N], games, and of each the number of moves made; as many as it has: its end.
            records: [≥ N] of the game's `Kernels.dtype`, overwritten.
        """

    @abstractmethod
    def next_moves(self, chosen: NDArray[np.int64], turns: NDArray[np.int64]) -> NDArray[np.int16]:
        """The moves made in N positions, int16 [N] as the game's kernels write them."""

    @abstractmethod
    def first_to_move(self, chosen: NDArray[np.int64], turns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Bool [N]: the first of `Game.sides` makes the next move."""

    @abstractmethod
    def kinds(self) -> Kinds:
        """How the games begin."""

    def lower_rank(self) -> NDArray[np.float64] | None:
        """The lower of both players' ranks by `rank_number`, NaN unknown; None where players have none."""
        return None

    def lower_rating(self) -> NDArray[np.int16] | None:
        """The lower of both players' ratings, −1 unknown; None where players have none."""
        return None

    def final_lead(self, chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        """The final lead of the first side in points, float32 [N]; NaN unknown. Without points: +1, 0, −1."""
        winner = self.winner[chosen].astype(np.float32)
        return np.where(winner == UNKNOWN_WINNER, np.float32(np.nan), winner)

    def fill_ownership(
        self,
        chosen: NDArray[np.int64],
        turns: NDArray[np.int64],
        symmetries: NDArray[np.int64],
        ownership: NDArray[np.float32],
    ) -> None:
        """Write who owns each point at the end, +1 the side to move, −1 the other, NaN unknown or off the board.

        Args:
            chosen, turns: int64 [N], the positions.
            symmetries: int64 [N], by bits: 1 flips rows, 2 flips columns, 4 transposes.
            ownership: float32 [N, H, W], written.
        """
        raise BadRequest(f"games of {self.game} have no ownership")


class PolicyGames(ABC):
    """Games that policies play against each other without a search."""

    @abstractmethod
    def begin(self, size: int, rules: str, komi: float) -> Position:
        """The position games begin from; `size` 0 is the usual board.

        Raises:
            BadRequest: what cannot be; the place is the argument's name.
        """

    @abstractmethod
    def longest(self, position: Position) -> int:
        """Moves after which a game that began so is ended and counted."""

    @abstractmethod
    def candidates(self, records: Records, passes: bool, moves: NDArray[np.int16], counts: NDArray[np.int32]) -> None:
        """Write the moves a policy is asked about in N positions: `moves` [N, `most_moves`], `counts` [N] of them.

        A policy that does not pass is asked about the pass only where it is the only move.
        """

    most_moves: int
    """No position has more candidates."""

    @abstractmethod
    def play(
        self, records: Records, rows: NDArray[np.int64], chosen: NDArray[np.int16], packed: NDArray[np.uint16]
    ) -> None:
        """Make a move in each of the positions `rows` of `records`, and write it as a store has it: uint16 [rows]."""

    @abstractmethod
    def over(self, records: Records) -> NDArray[np.bool_]:
        """Bool [N]: the games that have ended."""

    @abstractmethod
    def count(self, records: Records) -> NDArray[np.float32]:
        """The first side's lead at the end in points, or +1, 0, −1; float32 [N], 0 for a game without a result."""

    @abstractmethod
    def games(
        self, begin: Position, moves: NDArray[np.uint16], start: NDArray[np.int64], lead: NDArray[np.float32]
    ) -> FlatGames:
        """The games that began at one position, as a store has them; `lead` [G] of `count`."""

    @abstractmethod
    def rows(self, games: FlatGames, firsts: Sequence[str], seconds: Sequence[str], number: int) -> Iterator[Row]:
        """The rows of games of `games`, by the names of who had which of the game's sides; the first is `number`."""


class Archive(ABC):
    """A game's facet `ARCHIVE`."""

    schema: pa.Schema
    """Columns of its stores: `store_schema`."""
    games: type[FlatGames]
    """Its games as arrays."""
    columns: Callable[[], ArrayColumns]
    """Gathers those."""
    counts: type[Counts] = Counts
    """Counts what only its stores have, for `keima data info`."""
    drawn: str = "drawn"
    """What `keima data info` calls a game that neither side won."""
    policy_games: PolicyGames
    """Games without records."""
    codes: int = 1 << 15
    """Its kernels' moves are below this."""
    chunk_games: int = 512
    """Most pieces of a chunk."""
    nothing: str = "holds no game"
    """What is said of a file without one."""

    def check_rules(self, rules: str) -> None:  # noqa: B027
        """Refuse rules to be assumed that are none, where the game has a choice. Raises KeimaError."""

    @abstractmethod
    def pieces(self, stream: IO[bytes], file: int) -> Iterator[Piece]:
        """The pieces of a file of records, which has this number. Raises BadRecord where it cannot be read on."""

    def chunks(self, files: Sequence[GameFile], done: Callable[[int], None]) -> Iterator[Chunk]:
        """The input in chunks of many files; one that cannot be read (any further) gives a chunk that says so.

        `done` is told how many files have been read.
        """
        pieces: list[Piece] = []
        size = 0
        for number, file in enumerate(files):
            found, problem = False, ""
            try:
                with file.open() as stream:
                    for piece in self.pieces(stream, number):
                        found = True
                        pieces.append(piece)
                        size += len(piece.data)
                        if len(pieces) >= self.chunk_games or size >= CHUNK_BYTES:
                            yield Chunk(pieces)
                            pieces, size = [], 0
            except BadRecord as error:
                problem = error.message
            if pieces and (problem or not found):
                yield Chunk(pieces)
                pieces, size = [], 0
            if problem or not found:
                yield Chunk(file=number, problem=problem or self.nothing)
            done(number + 1)
        if pieces:
            yield Chunk(pieces)

    @abstractmethod
    def read(self, chunk: Chunk, rules: str | None, min_moves: int) -> ReadChunk:
        """The rows of a chunk's games, in a worker process; `rules` for a record that names none that are known."""

    def flat(self, batches: Iterable[pa.RecordBatch]) -> FlatGames:
        """Rows as arrays in memory. Raises BadStore for a row that no reader would have written."""
        columns = self.columns()
        moves = np.frombuffer(b"".join([columns.add(batch) for batch in batches]), np.uint16)
        return self.games.load(moves, *columns.finish())

    @abstractmethod
    def record(self, row: Row, turns: Sequence[tuple[str, str]]) -> GameRecord:
        """The record of a row, whose moves are these: (side, move) each, by the game's letters and names."""
