"""Games of Go that policies play against each other without a search.

A move that fills an own true eye is never made (AlphaGo's "sensibleness"). Two passes end a game, and the area is
counted with every stone alive that stands on the board.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest, KeimaError
from keima.games.archive import FlatGames, PolicyGames
from keima.games.go.archive.flat import WHITE_BIT, GoGames
from keima.games.go.board import MAX_POINTS, PASS_LOC, WHITE
from keima.games.go.history import is_over, score_now
from keima.games.go.moves import play_move, sensible_moves
from keima.games.go.position import Position
from keima.games.go.rules import Rules
from keima.games.position import Position as AnyPosition
from keima.games.rows import Row, game_key
from keima.jit import Records, njit


class GoPolicyGames(PolicyGames):
    """See `PolicyGames`; rules are those that count area."""

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
            moves = games.moves[games.start[row] : games.start[row + 1]].astype("<u2").tobytes()
            lead, size = float(games.score[row]), (int(games.xsize[row]), int(games.ysize[row]))
            yield {
                "moves": moves,
                "setup": b"",
                "to_play_first": 0,
                "xsize": size[0],
                "ysize": size[1],
                "rules": games.rules[0].name,
                "komi": float(games.komi[row]),
                "handicap": 0,
                "winner": int(games.winner[row]),
                "result": f"{'B' if lead > 0 else 'W'}+{abs(lead):g}" if lead else "0",
                "black": firsts[row],
                "white": seconds[row],
                "score": lead,
                "black_rank": "",
                "white_rank": "",
                "date": "",
                "source": f"played#{number + row + 1}",
                "key": game_key(bytes(size), moves),
            }


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
