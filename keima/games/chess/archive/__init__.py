"""Games of chess in a game store, as arrays, and played up to one of their positions in kernels that hold no lock.

A move is the kernel's uint16 (`keima.games.chess.board`): from | to << 6 | kind << 12, seen from the side that moves,
castling as king takes rook. What the store promises is trusted here: moves can be made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import IO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from keima.errors import BadRecord
from keima.games import rows as store
from keima.games.archive import Archive, FlatGames, Kinds
from keima.games.chess.archive.playing import ChessPolicyGames
from keima.games.chess.archive.reading import ChessReader, game_starts, split_pgn
from keima.games.chess.board import STATE, make
from keima.games.chess.position import Position
from keima.games.chess.records import GameRecord
from keima.games.kernels import joined
from keima.games.rows import ArrayColumns, Broken, Chunk, Counts, Piece, ReadChunk
from keima.jit import Records, njit
from keima.plain import Data

CHUNK_BYTES = 1 << 20
UNKNOWN_ELO = -1
_MOVE_KINDS = 7
_ELO_STEP = 200
_PLACE = re.compile(r"game (\d+) \(line (\d+)\)")

SCHEMA = store.store_schema(
    "chess",
    [("start_fen", pa.string()), ("chess960", pa.bool_())],
    [("white_elo", pa.int16()), ("black_elo", pa.int16()), ("date", pa.string()), ("event", pa.string())],
)


class _Columns(ArrayColumns):
    names = ("moves", "start_fen", "chess960", "winner", "white_elo", "black_elo", "key")

    def __init__(self) -> None:
        super().__init__(SCHEMA)
        self.fens = store.Names("")

    def take(self, batch: pa.RecordBatch, moves: NDArray[np.uint16], sizes: NDArray[np.int64]) -> None:
        store.refuse_codes(moves >> 12 >= _MOVE_KINDS, sizes, self.games, "a code that is no move")
        self.keep("start_fen", self.fens.indices(batch.column("start_fen"), np.int32) - np.int32(1))
        self.keep("chess960", store.numbers(batch, "chess960", np.bool_, False))
        self.keep("white_elo", store.numbers(batch, "white_elo", np.int16, UNKNOWN_ELO))
        self.keep("black_elo", store.numbers(batch, "black_elo", np.int16, UNKNOWN_ELO))

    def texts(self) -> dict[str, list[str]]:
        return {"start_fens": list(self.fens.numbers)[1:]}


class _Arrays(NamedTuple):
    """G games as kernels read them."""

    moves: NDArray[np.uint16]  # [total], kernel moves
    start: NDArray[np.int64]  # [G + 1]
    first: NDArray[np.int64]  # [G], row of `states`
    states: Records  # STATE [F], the starting positions


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ChessGames(FlatGames):
    """G games of chess."""

    game = "chess"

    start_fen: NDArray[np.int32]  # [G], into `start_fens`; −1 is the usual start
    start_fens: tuple[str, ...]
    chess960: NDArray[np.bool_]  # [G]
    white_elo: NDArray[np.int16]  # [G], −1 unknown
    black_elo: NDArray[np.int16]

    @cached_property
    def _arrays(self) -> _Arrays:
        """With one starting position for every start and kind of castling met."""
        met: dict[tuple[int, bool], int] = {}
        pairs = zip(self.start_fen.tolist(), self.chess960.tolist(), strict=True)
        first = np.array([met.setdefault(pair, len(met)) for pair in pairs], np.int64)
        starts = [Position.from_fen(None if k < 0 else self.start_fens[k], chess960=free).record for k, free in met]
        states = joined(starts) if starts else np.zeros(0, STATE)
        return _Arrays(store.plain(self.moves), store.plain(self.start), store.plain(first), store.plain(states))

    def replay(self, chosen: NDArray[np.int64], turns: NDArray[np.int64], records: Records) -> None:
        """See `FlatGames`; `records` are STATE."""
        _replay(self._arrays, chosen, turns, records)

    def next_moves(self, chosen: NDArray[np.int64], turns: NDArray[np.int64]) -> NDArray[np.int16]:
        """The kernel's codes."""
        codes: NDArray[np.int16] = self.moves[self.start[chosen] + turns].astype(np.int16)
        return codes

    def first_to_move(self, chosen: NDArray[np.int64], turns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Is it White's move?"""
        arrays = self._arrays
        white: NDArray[np.bool_] = (arrays.states["side"][arrays.first[chosen]] == 0) == (turns % 2 == 0)
        return white

    def kinds(self) -> Kinds:
        """One: an encoding takes every game of chess."""
        return Kinds(np.zeros(len(self), np.int64), [Position.start()])

    def lower_rating(self) -> NDArray[np.int16]:
        """Elo."""
        lower: NDArray[np.int16] = np.minimum(self.white_elo, self.black_elo)
        return lower


@njit
def _replay(games: _Arrays, chosen: NDArray[np.int64], turns: NDArray[np.int64], records: Records) -> None:
    for i in range(len(chosen)):
        g = chosen[i]
        records[i] = games.states[games.first[g]]
        s = records[i]
        first = games.start[g]
        for k in range(first, first + turns[i]):
            make(s, games.moves[k])


class _Counts(Counts):
    """What only a store of chess has: Elo (players by steps of 200), starts (usual, other, chess960)."""

    columns = ("start_fen", "chess960", "white_elo", "black_elo")

    def __init__(self) -> None:
        self.elo: Counter[int | None] = Counter()
        self.starts: Counter[str] = Counter()

    def add(self, batch: pa.RecordBatch) -> None:
        for name in ("white_elo", "black_elo"):
            for elo, count in store.value_counts(batch.column(name)).items():
                self.elo[None if elo is None else elo // _ELO_STEP * _ELO_STEP] += count
        others = batch.num_rows - batch.column("start_fen").null_count
        chess960 = int(pc.sum(batch.column("chess960")).as_py() or 0)
        self.starts.update({"usual": batch.num_rows - others, "other": others - chess960, "chess960": chess960})

    def describe(self) -> Data:
        known = sorted((elo, count) for elo, count in self.elo.items() if elo is not None)
        elo = {f"{low}-{low + _ELO_STEP - 1}": count for low, count in known}
        return {
            "elo": elo | ({"unknown": self.elo[None]} if self.elo[None] else {}),
            "starts": {name: count for name, count in self.starts.items() if count},
        }


def _played(moves: NDArray[np.uint16], start: NDArray[np.int64], winner: NDArray[np.int8]) -> ChessGames:
    """Games from the usual start."""
    count = len(winner)
    elo = np.full(count, UNKNOWN_ELO, np.int16)
    return ChessGames(
        moves=moves, start=start, winner=winner, key=np.arange(count, dtype=np.uint64),
        start_fen=np.full(count, -1, np.int32), start_fens=(), chess960=np.zeros(count, np.bool_),
        white_elo=elo, black_elo=elo,
    )  # fmt: skip


class ChessArchive(Archive):
    """PGN into rows, rows into arrays; what is not `fast` reads plain games without a kernel, to the same rows."""

    schema = SCHEMA
    games = ChessGames
    columns = _Columns
    counts = _Counts
    policy_games = ChessPolicyGames(_played)
    codes = _MOVE_KINDS << 12
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
        found = ReadChunk(SCHEMA, min_moves, continued=piece.file)
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

    def record(self, row: store.Row, turns: Sequence[tuple[str, str]]) -> GameRecord:
        """See `Archive`."""
        moves = [move for _, move in turns]
        position = Position.from_fen(row["start_fen"], moves, chess960=bool(row["chess960"]))
        tags = {"Event": row["event"], "Date": row["date"].replace("-", "."), "White": row["white"]}
        tags |= {"Black": row["black"], "Result": row["result"] or "*"}
        elo = {"WhiteElo": row["white_elo"], "BlackElo": row["black_elo"]}
        tags |= {name: str(number) for name, number in elo.items() if number is not None}
        return GameRecord.of(position, {name: text or "?" for name, text in tags.items()}, row["result"] or "*")


ARCHIVE = ChessArchive()
