"""Stored games of Go as arrays, and played up to one of their positions in kernels that hold no lock.

A move is a uint16: row · xsize + column in the low 15 bits, row 0 the top; xsize · ysize is a pass; bit 15 is set for
White. What the store promises is trusted here: moves can be made, stones are on the board. Where it was not the turn of
the side of the next move, the history begins anew, as `keima.games.go.position` does it.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keima.games.archive import FlatGames, Kinds
from keima.games.go.area import calculate_area
from keima.games.go.board import BLACK, EMPTY, MAX_POINTS, MAX_SIZE, MIN_SIZE, PASS_LOC, WHITE, clear, loc_of, place
from keima.games.go.history import begin, give_turn, score_now, write_rules
from keima.games.go.moves import play_many
from keima.games.go.position import RECORD, Position
from keima.games.go.rules import Rules
from keima.games.rows import (
    UNKNOWN_WINNER,
    ArrayColumns,
    Names,
    numbers,
    plain,
    rank_number,
    refuse,
    refuse_codes,
    store_schema,
    unpacked,
)
from keima.jit import Record, Records, njit

WHITE_BIT = 1 << 15
"""Set in a packed move (and setup stone) of White."""
POINT_BITS = WHITE_BIT - 1
_AGREEMENT = 0.5

SCHEMA = store_schema(
    "go",
    [
        ("setup", pa.binary()),
        ("to_play_first", pa.uint8()),
        ("xsize", pa.uint8()),
        ("ysize", pa.uint8()),
        ("rules", pa.string()),
        ("komi", pa.float32()),
        ("handicap", pa.uint8()),
    ],
    [("score", pa.float32()), ("black_rank", pa.string()), ("white_rank", pa.string()), ("date", pa.string())],
)


class GoColumns(ArrayColumns):
    """The columns of a store of Go."""

    names = ("moves", "setup", "to_play_first", "xsize", "ysize", "rules", "komi", "handicap", "winner", "score",
             "black_rank", "white_rank", "key")  # fmt: skip

    def __init__(self) -> None:
        super().__init__(SCHEMA)
        self.rules, self.ranks = Names(), Names("")

    def take(self, batch: pa.RecordBatch, moves: NDArray[np.uint16], sizes: NDArray[np.int64]) -> None:
        """See `ArrayColumns`."""
        setup, setup_sizes = unpacked(batch.column("setup"), "setup")
        for name in ("to_play_first", "xsize", "ysize"):
            self.keep(name, numbers(batch, name, np.uint8))
        xsize, ysize = self.parts["xsize"][-1], self.parts["ysize"][-1]
        for side in (xsize, ysize):
            refuse((side < MIN_SIZE) | (side > MAX_SIZE), self.games, "board sides must be 2 to 19")
        area = xsize.astype(np.int64) * ysize
        refuse_codes((moves & POINT_BITS) > np.repeat(area, sizes), sizes, self.games, "a move off the board")
        wrong = (setup & POINT_BITS) >= np.repeat(area, setup_sizes)
        refuse_codes(wrong, setup_sizes, self.games, "a setup stone off the board")
        self.keep("setup", setup)
        self.keep("setup_start", setup_sizes)
        self.keep("rules_index", self.rules.indices(batch.column("rules"), np.uint16))
        self.keep("black_rank", self.ranks.indices(batch.column("black_rank"), np.uint16))
        self.keep("white_rank", self.ranks.indices(batch.column("white_rank"), np.uint16))
        self.keep("komi", numbers(batch, "komi", np.float32))
        self.keep("handicap", numbers(batch, "handicap", np.uint8))
        self.keep("score", numbers(batch, "score", np.float32, float("nan")))
        for text in self.rules.numbers:
            Rules.parse(text)

    def texts(self) -> dict[str, list[str]]:
        """Rules and ranks."""
        return {"rules": list(self.rules.numbers), "ranks": list(self.ranks.numbers)}


_Arrays = namedtuple(
    "_Arrays", "moves start setup setup_start to_play_first xsize ysize rules_index rules komi score winner"
)
"""G games as kernels read them; the fields are those of `GoGames`, but `rules` int32 [R, 7] of `Rules.numbers`."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GoGames(FlatGames):
    """G games of Go.

    **Ownership** is read off the final board, where the game came to its end by two passes or has a score; a game
    resigned or lost on time has none. Records do not say which stones were dead, and people pass with dead stones
    standing. So the board is scored as it stands, by the game's own rules (`count_area`: stones are dead only inside
    pass-alive territory), and believed where the result is the recorded one: the same score (to half a point), or where
    no score is recorded, the same winner. Else, and where the winner is unknown too, only the points that Benson's
    pass-alive areas settle are told, whatever the players agreed; the others are NaN.

    Of the scored games of one server's month 2 % are believed, and in three of four some points are settled. Taking off
    the chains that random playouts give to the other side raised the 2 % to 5 %, at 6 ms a game: not worth having.
    Whoever needs the owners of games that people counted by agreement should estimate them with a network.
    """

    game = "go"
    tells = FlatGames.tells | {"score", "ownership"}

    setup: NDArray[np.uint16]  # stones on the board before the first move, packed like moves
    setup_start: NDArray[np.int64]  # [G + 1]: game g's are `setup[setup_start[g]:setup_start[g + 1]]`
    to_play_first: NDArray[np.uint8]  # [G]: 0 Black, 1 White moves first
    xsize: NDArray[np.uint8]  # [G], columns
    ysize: NDArray[np.uint8]  # [G], rows
    rules_index: NDArray[np.uint16]  # [G], into `rules`
    rules: tuple[Rules, ...]  # the rule sets met
    komi: NDArray[np.float32]  # [G], points for White
    handicap: NDArray[np.uint8]  # [G], stones
    score: NDArray[np.float32]  # [G]: Black's final lead in points, NaN unknown
    black_rank: NDArray[np.uint16]  # [G], into `ranks`
    white_rank: NDArray[np.uint16]  # [G], into `ranks`
    ranks: tuple[str, ...]  # those met, as written; "" is unknown

    @classmethod
    def load(
        cls, moves: NDArray[np.uint16], arrays: Mapping[str, NDArray[Any]], texts: Mapping[str, list[str]]
    ) -> GoGames:
        """See `FlatGames`."""
        rules = tuple(Rules.parse(text) for text in texts["rules"])
        return cls(moves=moves, **arrays, rules=rules, ranks=tuple(texts["ranks"]))

    @cached_property
    def _arrays(self) -> _Arrays:
        rules = np.array([rules.numbers() for rules in self.rules], np.int32).reshape(len(self.rules), 7)
        return _Arrays(*(plain(rules if name == "rules" else getattr(self, name)) for name in _Arrays._fields))

    def replay(self, chosen: NDArray[np.int64], turns: NDArray[np.int64], records: Records) -> None:
        """See `FlatGames`; `records` are RECORD."""
        _replay(self._arrays, chosen, turns, records)

    def next_moves(self, chosen: NDArray[np.int64], turns: NDArray[np.int64]) -> NDArray[np.int16]:
        """The points, or PASS_LOC."""
        point = self.moves[self.start[chosen] + turns].astype(np.int64) & POINT_BITS
        xsize = self.xsize[chosen].astype(np.int64)
        loc = point + point // xsize + xsize + 2
        return np.where(point == xsize * self.ysize[chosen], PASS_LOC, loc).astype(np.int16)

    def first_to_move(self, chosen: NDArray[np.int64], turns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Is it Black's move?"""
        black: NDArray[np.bool_] = (self.moves[self.start[chosen] + turns] & WHITE_BIT) == 0
        return black

    def kinds(self) -> Kinds:
        """A kind for every size and rule set."""
        code = (self.xsize.astype(np.int64) << 32) | (self.ysize.astype(np.int64) << 16) | self.rules_index
        found, of = np.unique(code, return_inverse=True)
        begun = [
            Position.start((each >> 32, each >> 16 & 0xFFFF), self.rules[each & 0xFFFF]) for each in found.tolist()
        ]
        return Kinds(of.astype(np.int64), begun)

    def lower_rank(self) -> NDArray[np.float64]:
        """See `FlatGames`."""
        each = np.array([rank_number(rank) for rank in self.ranks] or [np.nan])
        lower: NDArray[np.float64] = np.minimum(each[self.black_rank], each[self.white_rank])
        return lower

    def final_lead(self, chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        """Black's."""
        return self.score[chosen]

    def fill_ownership(
        self,
        chosen: NDArray[np.int64],
        turns: NDArray[np.int64],
        symmetries: NDArray[np.int64],
        ownership: NDArray[np.float32],
    ) -> None:
        """See `FlatGames`, and the class."""
        _fill_ownership(self._arrays, chosen, turns, symmetries, ownership)


# --- Kernels ----------------------------------------------------------------------------------------------------------


@njit
def _loc(packed: int, xsize: int, ysize: int) -> int:
    """The point of a packed move or stone."""
    point = packed & POINT_BITS
    if point == xsize * ysize:
        return PASS_LOC
    return point + point // xsize + xsize + 2


@njit
def _set_up(games: _Arrays, g: int, b: Record, h: Record) -> None:
    """Write game g before its first move into a board and a history record."""
    xsize = int(games.xsize[g])
    ysize = int(games.ysize[g])
    clear(b, xsize, ysize)
    for i in range(games.setup_start[g], games.setup_start[g + 1]):
        packed = int(games.setup[i])
        place(b, _loc(packed, xsize, ysize), WHITE if packed & WHITE_BIT else BLACK)
    write_rules(h, games.rules[games.rules_index[g]], games.komi[g], False)
    begin(b, h, WHITE if games.to_play_first[g] else BLACK, 0)


@njit
def _replay_game(
    games: _Arrays, g: int, count: int, b: Record, h: Record, locs: NDArray[np.int16], colours: NDArray[np.int8]
) -> None:
    """Make `b`, `h` the position after the first `count` moves of game g.

    `locs` and `colours` [≥ moves of the game] are written: points and colours of those moves and of the next one.
    """
    xsize = int(games.xsize[g])
    ysize = int(games.ysize[g])
    first = games.start[g]
    for i in range(min(count + 1, games.start[g + 1] - first)):
        packed = int(games.moves[first + i])
        locs[i] = _loc(packed, xsize, ysize)
        colours[i] = WHITE if packed & WHITE_BIT else BLACK
    _set_up(games, g, b, h)
    play_many(b, h, locs, colours, count)


@njit
def _replay(games: _Arrays, chosen: NDArray[np.int64], turns: NDArray[np.int64], records: Records) -> None:
    longest = 0
    for i in range(len(chosen)):
        longest = max(longest, turns[i] + 1)
    locs = np.empty(longest, np.int16)
    colours = np.empty(longest, np.int8)
    for i in range(len(chosen)):
        g = chosen[i]
        b, h = records[i].board, records[i].history
        _replay_game(games, g, turns[i], b, h, locs, colours)
        if turns[i] < games.start[g + 1] - games.start[g]:
            to_play = int(colours[turns[i]])
            if h.to_play != to_play:
                give_turn(b, h, to_play)


@njit
def _ended_by_passes(games: _Arrays, g: int) -> bool:
    """Are the last two moves of game g passes?"""
    first, last = games.start[g], games.start[g + 1]
    area = int(games.xsize[g]) * int(games.ysize[g])
    return bool(last - first >= 2 and games.moves[last - 1] & POINT_BITS == area == games.moves[last - 2] & POINT_BITS)


@njit
def _final_owners(
    games: _Arrays,
    g: int,
    b: Record,
    h: Record,
    locs: NDArray[np.int16],
    colours: NDArray[np.int8],
    area: NDArray[np.int8],
    owners: NDArray[np.float32],
) -> None:
    """Write who owns each point at the end of game g into `owners`: +1 Black, −1 White, 0 nobody, NaN not known.

    The other arguments are working space.
    """
    owners[:] = np.nan
    scored = not np.isnan(games.score[g])
    if not scored and not _ended_by_passes(games, g):
        return
    _replay_game(games, g, games.start[g + 1] - games.start[g], b, h, locs, colours)
    lead = -score_now(b, h, area)
    if scored:
        believed = abs(lead - games.score[g]) <= _AGREEMENT
    else:
        believed = games.winner[g] != UNKNOWN_WINNER and np.sign(lead) == games.winner[g]
    if not believed:
        calculate_area(b, area, False, False, False, h.suicide == 1)
    for loc in range(MAX_POINTS):
        if area[loc] == BLACK:
            owners[loc] = 1.0
        elif area[loc] == WHITE:
            owners[loc] = -1.0
        elif believed and area[loc] == EMPTY:
            owners[loc] = 0.0


@njit
def _fill_ownership(
    games: _Arrays,
    chosen: NDArray[np.int64],
    turns: NDArray[np.int64],
    symmetries: NDArray[np.int64],
    ownership: NDArray[np.float32],
) -> None:
    longest = 0
    for i in range(len(chosen)):
        longest = max(longest, games.start[chosen[i] + 1] - games.start[chosen[i]])
    record = np.zeros(1, RECORD)
    locs, colours, area = np.empty(longest, np.int16), np.empty(longest, np.int8), np.empty(MAX_POINTS, np.int8)
    owners = np.empty(MAX_POINTS, np.float32)
    for i in range(len(chosen)):
        g = chosen[i]
        xsize, ysize = np.int64(games.xsize[g]), np.int64(games.ysize[g])
        _final_owners(games, g, record[0].board, record[0].history, locs, colours, area, owners)
        sign = -1.0 if games.moves[games.start[g] + turns[i]] & WHITE_BIT else 1.0
        ownership[i] = np.nan
        for y in range(ysize):
            for x in range(xsize):
                row = ysize - 1 - y if symmetries[i] & 1 else y
                column = xsize - 1 - x if symmetries[i] & 2 else x
                if symmetries[i] & 4:
                    row, column = column, row
                ownership[i, row, column] = sign * owners[loc_of(x, y, xsize)]  # type: ignore[arg-type]
