"""Games of connect four in a game store: `moves` are the columns, 0 to 6, as uint16."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keima.errors import BadRecord, BadRequest, KeimaError
from keima.games.archive import UNKNOWN_WINNER, Archive, FlatGames, Kinds, PolicyGames
from keima.games.connect_four.position import NAMES, Position
from keima.games.connect_four.records import GameRecord, parse_game, split_games
from keima.games.connect_four.rules import COLUMNS, ONGOING, RECORD, SQUARES, WON, legal_moves, play
from keima.games.rows import (
    ArrayColumns,
    Broken,
    Chunk,
    Counts,
    Piece,
    ReadChunk,
    RecordFile,
    Row,
    Rows,
    game_key,
    iso_date,
    plain,
    refuse_codes,
    store_schema,
)
from keima.jit import Records, njit

CHUNK_GAMES = 512
_WINNERS = {"1-0": 1, "0-1": -1, "1/2-1/2": 0}

SCHEMA = store_schema("connect_four", [], [("date", pa.string()), ("event", pa.string())], players=("first", "second"))


class ConnectFourColumns(ArrayColumns):
    """The columns every game has."""

    names = ("moves", "winner", "key")

    def __init__(self) -> None:
        super().__init__(SCHEMA)

    def take(self, batch: pa.RecordBatch, moves: NDArray[np.uint16], sizes: NDArray[np.int64]) -> None:
        """See `ArrayColumns`."""
        refuse_codes(moves >= COLUMNS, sizes, self.games, "a code that is no column")


class ConnectFourCounts(Counts):
    """Nothing beside what every store has."""

    columns = ()

    def add(self, batch: pa.RecordBatch) -> None:
        """See `Counts`."""

    def describe(self) -> dict[str, object]:
        """See `Counts`."""
        return {}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ConnectFourGames(FlatGames):
    """G games of connect four."""

    game = "connect_four"

    def replay(self, chosen: NDArray[np.int64], turns: NDArray[np.int64], records: Records) -> None:
        """See `FlatGames`."""
        _replay(plain(self.moves), plain(self.start), chosen, turns, np.zeros(1, RECORD), records)

    def next_moves(self, chosen: NDArray[np.int64], turns: NDArray[np.int64]) -> NDArray[np.int16]:
        """The columns."""
        columns: NDArray[np.uint16] = self.moves[self.start[chosen] + turns]
        return columns.astype(np.int16)

    def first_to_move(self, chosen: NDArray[np.int64], turns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """After an even number of discs."""
        return np.asarray(turns % 2 == 0)

    def kinds(self) -> Kinds:
        """One: all games begin alike."""
        return Kinds(np.zeros(len(self), np.int64), [Position.start()])

    def final_lead(self, chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        """+1, 0, −1 as the first player won, neither, or the second; NaN unknown."""
        winner = self.winner[chosen].astype(np.float32)
        return np.where(winner == UNKNOWN_WINNER, np.float32(np.nan), winner)


@njit
def _replay(
    moves: NDArray[np.uint16],
    start: NDArray[np.int64],
    chosen: NDArray[np.int64],
    turns: NDArray[np.int64],
    empty: Records,
    records: Records,
) -> None:
    """Write N positions; see `FlatGames.replay`."""
    for i in range(len(chosen)):
        records[i] = empty[0]
        first = start[chosen[i]]
        for k in range(first, first + turns[i]):
            play(records[i], moves[k])


class ConnectFourPolicyGames(PolicyGames):
    """See `PolicyGames`; there is nothing to choose."""

    most_moves = COLUMNS

    def begin(self, size: int, rules: str, komi: float) -> Position:
        """The empty board, which has one size."""
        if size:
            raise BadRequest("the board of connect four is 7×6", place="size")
        return Position.start()

    def longest(self, position: Position) -> int:  # type: ignore[override]
        """The squares of the board."""
        return SQUARES

    def candidates(self, records: Records, passes: bool, moves: NDArray[np.int16], counts: NDArray[np.int32]) -> None:
        """The columns that take a disc."""
        _candidates(records, moves, counts)

    def play(
        self, records: Records, rows: NDArray[np.int64], chosen: NDArray[np.int16], packed: NDArray[np.uint16]
    ) -> None:
        """See `PolicyGames`."""
        _play(records, rows, chosen, packed)

    def over(self, records: Records) -> NDArray[np.bool_]:
        """Four in a line, or a full board."""
        over: NDArray[np.bool_] = records["state"] != ONGOING
        return over

    def count(self, records: Records) -> NDArray[np.float32]:
        """+1, 0, −1: after an odd number of discs it was the first player who made four."""
        won = np.where(records["ply"] % 2 == 1, 1, -1)
        return np.where(records["state"] == WON, won, 0).astype(np.float32)

    def games(  # type: ignore[override]
        self, begin: Position, moves: NDArray[np.uint16], start: NDArray[np.int64], lead: NDArray[np.float32]
    ) -> ConnectFourGames:
        """See `PolicyGames`."""
        key = np.arange(len(lead), dtype=np.uint64)
        return ConnectFourGames(moves=moves, start=start, winner=np.sign(lead).astype(np.int8), key=key)

    def rows(self, games: FlatGames, firsts: Sequence[str], seconds: Sequence[str], number: int) -> Iterator[Row]:
        """See `PolicyGames`."""
        for row in range(len(games)):
            moves = games.moves[games.start[row] : games.start[row + 1]].astype("<u2").tobytes()
            winner = int(games.winner[row])
            yield {
                "moves": moves,
                "winner": winner,
                "result": next(result for result, found in _WINNERS.items() if found == winner),
                "first": firsts[row],
                "second": seconds[row],
                "date": "",
                "event": "",
                "source": f"played#{number + row + 1}",
                "key": game_key(b"", moves),
            }


@njit
def _candidates(records: Records, moves: NDArray[np.int16], counts: NDArray[np.int32]) -> None:
    for i in range(len(records)):
        counts[i] = legal_moves(records[i], moves[i])


@njit
def _play(records: Records, rows: NDArray[np.int64], chosen: NDArray[np.int16], packed: NDArray[np.uint16]) -> None:
    for k in range(len(rows)):
        packed[k] = chosen[k]
        play(records[rows[k]], chosen[k])


class ConnectFourArchive(Archive):
    """`.c4` into rows, rows into arrays."""

    schema = SCHEMA
    games = ConnectFourGames
    columns = ConnectFourColumns
    counts = ConnectFourCounts
    policy_games = ConnectFourPolicyGames()

    def chunks(self, files: Sequence[RecordFile], done: Callable[[int], None]) -> Iterator[Chunk]:
        """See `Archive`; a chunk holds games of many files."""
        pieces: list[Piece] = []
        for number, file in enumerate(files):
            index, problem = 0, ""
            try:
                with file.open() as stream:
                    for index, (line, data) in enumerate(split_games(stream), 1):
                        pieces.append(Piece(number, line, data, index))
                        if len(pieces) >= CHUNK_GAMES:
                            yield Chunk(pieces)
                            pieces = []
            except BadRecord as error:
                problem = error.message
            if problem or not index:
                yield Chunk(pieces)
                pieces = []
                yield Chunk(file=number, problem=problem or "holds no game of connect four")
            done(number + 1)
        if pieces:
            yield Chunk(pieces)

    def read(self, chunk: Chunk, rules: str | None, min_moves: int) -> ReadChunk:
        """See `Archive`; there are no rules to choose."""
        found = Rows(SCHEMA, min_moves)
        for piece in chunk.pieces:
            found.games += 1
            try:
                record = parse_game(piece.data, "", piece.index, piece.line)
                record.final()
            except KeimaError as error:
                reason = ": ".join(part for part in (error.place, error.message) if part)
                found.broken.append(Broken(piece.file, piece.index, piece.line, reason))
            else:
                found.add(_row(record), piece.file, piece.index)
        return found.finish()


def _row(record: GameRecord) -> Row:
    """A game as a row of the store."""
    moves = np.array([NAMES.index(move) for move in record.moves], "<u2").tobytes()
    return {
        "moves": moves,
        "winner": _WINNERS.get(record.result),
        "result": record.result,
        "first": record.players["1"],
        "second": record.players["2"],
        "date": iso_date(record.date),
        "event": record.event,
        "source": "",
        "key": game_key(b"", moves),
    }


ARCHIVE = ConnectFourArchive()
