"""Games of connect four in a game store: `moves` are the columns, 0 to 6, as uint16."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from keima.errors import BadRequest, KeimaError
from keima.games import rows as store
from keima.games.archive import Archive, FlatGames, Kinds, PolicyGames
from keima.games.connect_four.kernels import COLUMNS, NAMES, ONGOING, SQUARES, WON, legal_moves, make
from keima.games.connect_four.position import Position
from keima.games.connect_four.records import GameRecord, parse_game, split_games
from keima.jit import Records, njit

_WINNERS = {"1-0": 1, "0-1": -1, "1/2-1/2": 0}
Moves = NDArray[np.uint16]
Indices = NDArray[np.int64]

_AFTER = [("date", pa.string()), ("event", pa.string())]
SCHEMA = store.store_schema("connect_four", [], _AFTER, players=("first", "second"))


class _Columns(store.ArrayColumns):
    names = ("moves", "winner", "key")

    def take(self, batch: pa.RecordBatch, moves: Moves, sizes: Indices) -> None:
        store.refuse_codes(moves >= COLUMNS, sizes, self.games, "a code that is no column")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ConnectFourGames(FlatGames):
    """G games of connect four."""

    game = "connect_four"

    def replay(self, chosen: Indices, turns: Indices, records: Records) -> None:
        """See `FlatGames`."""
        records[: len(chosen)].view(np.uint8)[:] = 0
        _replay(store.plain(self.moves), store.plain(self.start), chosen, turns, records)

    def next_moves(self, chosen: Indices, turns: Indices) -> NDArray[np.int16]:
        """The columns."""
        columns: Moves = self.moves[self.start[chosen] + turns]
        return columns.astype(np.int16)

    def first_to_move(self, chosen: Indices, turns: Indices) -> NDArray[np.bool_]:
        """After an even number of discs."""
        return np.asarray(turns % 2 == 0)

    def kinds(self) -> Kinds:
        """One: all games begin alike."""
        return Kinds(np.zeros(len(self), np.int64), [Position.start()])


@njit
def _replay(moves: Moves, start: Indices, chosen: Indices, turns: Indices, records: Records) -> None:
    for i in range(len(chosen)):
        first = start[chosen[i]]
        for k in range(first, first + turns[i]):
            make(records[i], moves[k])


class _PolicyGames(PolicyGames):
    most_moves = COLUMNS

    def begin(self, size: int, rules: str, komi: float) -> Position:
        if size:
            raise BadRequest("the board of connect four is 7×6", place="size")
        return Position.start()

    def longest(self, position: Position) -> int:  # type: ignore[override]
        return SQUARES

    def candidates(self, records: Records, passes: bool, moves: NDArray[np.int16], counts: NDArray[np.int32]) -> None:
        _candidates(records, moves, counts)

    def play(self, records: Records, rows: Indices, chosen: NDArray[np.int16], packed: Moves) -> None:
        _play(records, rows, chosen, packed)

    def over(self, records: Records) -> NDArray[np.bool_]:
        over: NDArray[np.bool_] = records["state"] != ONGOING
        return over

    def count(self, records: Records) -> NDArray[np.float32]:
        """After an odd number of discs it was the first player who made four."""
        won = np.where(records["ply"] % 2 == 1, 1, -1)
        return np.where(records["state"] == WON, won, 0).astype(np.float32)

    def games(self, begin: object, moves: Moves, start: Indices, lead: NDArray[np.float32]) -> ConnectFourGames:
        key = np.arange(len(lead), dtype=np.uint64)
        return ConnectFourGames(moves=moves, start=start, winner=np.sign(lead).astype(np.int8), key=key)

    def rows(self, games: FlatGames, firsts: Sequence[str], seconds: Sequence[str], number: int) -> Iterator[store.Row]:
        results = {winner: result for result, winner in _WINNERS.items()}
        for g, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
            moves = games.moves[games.start[g] : games.start[g + 1]]
            yield _row(moves, results[int(games.winner[g])], first, second, source=f"played#{number + g + 1}")


@njit
def _candidates(records: Records, moves: NDArray[np.int16], counts: NDArray[np.int32]) -> None:
    for i in range(len(records)):
        counts[i] = legal_moves(records[i], moves[i])


@njit
def _play(records: Records, rows: Indices, chosen: NDArray[np.int16], packed: Moves) -> None:
    for k in range(len(rows)):
        packed[k] = chosen[k]
        make(records[rows[k]], chosen[k])


class _Archive(Archive):
    schema = SCHEMA
    games = ConnectFourGames
    columns = staticmethod(partial(_Columns, SCHEMA))
    policy_games = _PolicyGames()
    codes = COLUMNS
    nothing = "holds no game of connect four"

    def pieces(self, stream: IO[bytes], file: int) -> Iterator[store.Piece]:
        return (store.Piece(file, line, data, index) for index, (line, data) in enumerate(split_games(stream), 1))

    def read(self, chunk: store.Chunk, rules: str | None, min_moves: int) -> store.ReadChunk:
        found = store.ReadChunk(SCHEMA, min_moves)
        for piece in chunk.pieces:
            found.games += 1
            try:
                record = parse_game(piece.data, "", piece.index, piece.line)
                record.final()
            except KeimaError as error:
                reason = ": ".join(part for part in (error.place, error.message) if part)
                found.broken.append(store.Broken(piece.file, piece.index, piece.line, reason))
            else:
                columns, date = [NAMES.index(move) for move in record.moves], store.iso_date(record.date)
                players = record.players
                row = _row(columns, record.result, players["1"], players["2"], date, record.event)
                found.add(row, piece.file, piece.index)
        return found.finish()

    def record(self, row: store.Row, turns: Sequence[tuple[str, str]]) -> GameRecord:
        """See `Archive`."""
        tags = {"First": row["first"], "Second": row["second"], "Date": row["date"], "Event": row["event"]}
        tags = {name: text for name, text in tags.items() if text}
        return GameRecord(tuple(move for _, move in turns), tags, row["result"] or "*")


def _row(
    columns: ArrayLike, result: str, first: str, second: str, date: str = "", event: str = "", source: str = ""
) -> store.Row:
    moves = np.array(columns, "<u2").tobytes()
    row = {"moves": moves, "winner": _WINNERS.get(result), "result": result, "first": first, "second": second}
    return {**row, "date": date, "event": event, "source": source, "key": store.game_key(b"", moves)}


ARCHIVE = _Archive()
