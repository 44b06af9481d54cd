"""Games of Go in a game store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keima.errors import BadRecord, BadRequest, KeimaError
from keima.games.archive import Archive, FlatGames, PolicyGames
from keima.games.go.archive.flat import POINT_BITS, SCHEMA, WHITE_BIT, GoColumns, GoGames
from keima.games.go.archive.reading import GoReader, PackedGame, go_row
from keima.games.go.board import MAX_POINTS, PASS_LOC, WHITE
from keima.games.go.history import is_over, score_now
from keima.games.go.moves import play_move, sensible_moves
from keima.games.go.position import Position, result_of
from keima.games.go.records import GameRecord
from keima.games.go.rules import Rules
from keima.games.go.sgf_text import split_games
from keima.games.go.vertices import xy_to_vertex
from keima.games.position import Position as AnyPosition
from keima.games.rows import Broken, Chunk, Counts, Piece, ReadChunk, Row, by_frequency, numbers, value_counts
from keima.jit import Records, njit
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


class GoPolicyGames(PolicyGames):
    """By rules that count area.

    A move that fills an own true eye is never made (AlphaGo's "sensibleness"). Two passes end a game, and the area is
    counted with every stone alive that stands on the board.
    """

    most_moves = 362

    def begin(self, size: int, rules: str, komi: float) -> Position:
        """An empty board."""
        size = size or 19
        try:
            parsed = Rules.parse(rules)
        except KeimaError as error:
            raise BadRequest(error.message, place="rules") from error
        if parsed.scoring != "AREA":
            raise BadRequest("games of policies alone are counted by area, which these rules do not", place="rules")
        if abs(komi) > size * size or (2 * komi) % 1:
            message = f"should be a whole or half number within ±{size * size}, not {komi:g}"
            raise BadRequest(message, place="komi")
        return Position.start(size, parsed, komi)

    def longest(self, position: AnyPosition) -> int:
        """Three times as many moves as points."""
        assert isinstance(position, Position)
        return 3 * position.xsize * position.ysize

    def candidates(self, records: Records, passes: bool, moves: NDArray[np.int16], counts: NDArray[np.int32]) -> None:
        """Legal moves that fill no own true eye."""
        _candidates(records, passes, moves, counts)

    def play(
        self, records: Records, rows: NDArray[np.int64], chosen: NDArray[np.int16], packed: NDArray[np.uint16]
    ) -> None:
        """See `PolicyGames`."""
        _play(records, rows, chosen, packed)

    def over(self, records: Records) -> NDArray[np.bool_]:
        """Two passes, or no result."""
        over: NDArray[np.bool_] = records["history"]["finished"] != 0
        return over

    def count(self, records: Records) -> NDArray[np.float32]:
        """Black's lead, every stone alive."""
        leads = np.empty(len(records), np.float32)
        _count(records, leads)
        return leads

    def games(
        self, begin: AnyPosition, moves: NDArray[np.uint16], start: NDArray[np.int64], lead: NDArray[np.float32]
    ) -> GoGames:
        """See `PolicyGames`."""
        assert isinstance(begin, Position)
        count = len(lead)
        none = np.zeros(count, np.uint16)
        return GoGames(
            moves=moves,
            start=start,
            winner=np.sign(lead).astype(np.int8),
            key=np.arange(count, dtype=np.uint64),
            setup=np.zeros(0, np.uint16),
            setup_start=np.zeros(count + 1, np.int64),
            to_play_first=np.zeros(count, np.uint8),
            xsize=np.full(count, begin.xsize, np.uint8),
            ysize=np.full(count, begin.ysize, np.uint8),
            rules_index=none,
            rules=(begin.rules,),
            komi=np.full(count, begin.komi, np.float32),
            handicap=np.zeros(count, np.uint8),
            score=lead,
            black_rank=none,
            white_rank=none,
            ranks=("",),
        )

    def rows(self, games: FlatGames, firsts: Sequence[str], seconds: Sequence[str], number: int) -> Iterator[Row]:
        """See `PolicyGames`."""
        assert isinstance(games, GoGames)
        for row in range(len(games)):
            record = GameRecord(
                int(games.xsize[row]),
                int(games.ysize[row]),
                games.rules[0],
                float(games.komi[row]),
                result=result_of(-float(games.score[row])),
                players={"B": firsts[row], "W": seconds[row]},
            )
            game = PackedGame(record, games.moves[games.start[row] : games.start[row + 1]], games.setup)
            yield {**go_row(game), "source": f"played#{number + row + 1}"}


@njit
def _candidates(records: Records, passes: bool, moves: NDArray[np.int16], counts: NDArray[np.int32]) -> None:
    path = np.empty(MAX_POINTS, np.int16)
    for i in range(len(records)):
        counts[i] = sensible_moves(records[i].board, records[i].history, passes, path, moves[i])


@njit
def _play(records: Records, rows: NDArray[np.int64], chosen: NDArray[np.int16], packed: NDArray[np.uint16]) -> None:
    for k in range(len(rows)):
        b, h = records[rows[k]].board, records[rows[k]].history
        loc, colour = int(chosen[k]), int(h.to_play)
        point = int(b.xsize) * int(b.ysize)
        if loc != PASS_LOC:
            stride = int(b.xsize) + 1
            point = (loc // stride - 1) * int(b.xsize) + loc % stride - 1
        packed[k] = point | WHITE_BIT if colour == WHITE else point
        play_move(b, h, loc, colour)


@njit
def _count(records: Records, leads: NDArray[np.float32]) -> None:
    """Black's lead in points at the end of each game; 0 where there is no result."""
    area = np.empty(MAX_POINTS, np.int8)
    for g in range(len(leads)):
        b, h = records[g].board, records[g].history
        leads[g] = 0.0 if is_over(h) and h.no_result else -score_now(b, h, area)


class GoArchive(Archive):
    """SGF into rows, rows into arrays; what is not `fast` reads plain games without a kernel, to the same rows."""

    schema = SCHEMA
    games = GoGames
    columns = GoColumns
    counts = GoCounts
    drawn = "drawn or no result"
    policy_games = GoPolicyGames()
    codes = MAX_POINTS
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
        found = ReadChunk(SCHEMA, min_moves)
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

    def record(self, row: Row, turns: Sequence[tuple[str, str]]) -> GameRecord:
        """See `Archive`; as many black stones alone as the game's handicap are that."""
        xsize, ysize = row["xsize"], row["ysize"]
        stones: tuple[list[str], list[str]] = [], []
        for packed in np.frombuffer(row["setup"], "<u2").tolist():
            point = packed & POINT_BITS
            stones[packed >= WHITE_BIT].append(xy_to_vertex(point % xsize, point // xsize, ysize))
        black, white = map(tuple, stones)
        handicap = black if not white and len(black) == row["handicap"] else ()
        return GameRecord(
            xsize,
            ysize,
            Rules.parse(row["rules"]),
            row["komi"],
            handicap,
            () if handicap else black,
            white,
            to_play="BW"[row["to_play_first"]],
            moves=tuple(turns),
            result=row["result"],
            players={"B": row["black"], "W": row["white"]},
            ranks={"B": row["black_rank"], "W": row["white_rank"]},
            date=row["date"],
        )


ARCHIVE = GoArchive()
