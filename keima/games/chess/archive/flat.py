"""Stored games of chess as arrays, and played up to one of their positions in kernels that hold no lock.

A move is the kernel's uint16 (`keima.games.chess.board`): from | to << 6 | kind << 12, seen from the side that moves,
castling as king takes rook. What the store promises is trusted here: moves can be made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keima.games.archive import FlatGames, Kinds
from keima.games.chess.board import STATE, join_states, make
from keima.games.chess.position import Position
from keima.games.rows import ArrayColumns, Names, numbers, plain, refuse_codes, store_schema
from keima.jit import Records, njit

UNKNOWN_ELO = -1
_MOVE_KINDS = 7

SCHEMA = store_schema(
    "chess",
    [("start_fen", pa.string()), ("chess960", pa.bool_())],
    [("white_elo", pa.int16()), ("black_elo", pa.int16()), ("date", pa.string()), ("event", pa.string())],
)


class ChessColumns(ArrayColumns):
    """The columns of a store of chess."""

    names = ("moves", "start_fen", "chess960", "winner", "white_elo", "black_elo", "key")

    def __init__(self) -> None:
        super().__init__(SCHEMA)
        self.fens = Names("")

    def take(self, batch: pa.RecordBatch, moves: NDArray[np.uint16], sizes: NDArray[np.int64]) -> None:
        """See `ArrayColumns`."""
        refuse_codes(moves >> 12 >= _MOVE_KINDS, sizes, self.games, "a code that is no move")
        self.keep("start_fen", self.fens.indices(batch.column("start_fen"), np.int32) - np.int32(1))
        self.keep("chess960", numbers(batch, "chess960", np.bool_, False))
        self.keep("white_elo", numbers(batch, "white_elo", np.int16, UNKNOWN_ELO))
        self.keep("black_elo", numbers(batch, "black_elo", np.int16, UNKNOWN_ELO))

    def texts(self) -> dict[str, list[str]]:
        """Starting positions."""
        return {"start_fens": list(self.fens.numbers)[1:]}


class _Arrays(NamedTuple):
    """G games as kernels read them."""

    moves: NDArray[np.uint16]  # [total], kernel moves
    start: NDArray[np.int64]  # [G + 1]
    first: NDArray[np.int64]  # [G], row of `states`
    states: Records  # STATE [F], the starting positions


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ChessGames(FlatGames):
    """G games of chess.

    Attributes:
        start_fen: int32 [G], into `start_fens`; −1 is the usual start.
        start_fens: the other starting positions.
        chess960: bool [G].
        white_elo, black_elo: int16 [G], −1 unknown.
    """

    game = "chess"

    start_fen: NDArray[np.int32]
    start_fens: tuple[str, ...]
    chess960: NDArray[np.bool_]
    white_elo: NDArray[np.int16]
    black_elo: NDArray[np.int16]

    @cached_property
    def _arrays(self) -> _Arrays:
        """One starting position for every start and kind of castling met."""
        met: dict[tuple[int, bool], int] = {}
        first = np.empty(len(self), np.int64)
        pairs = zip(self.start_fen.tolist(), self.chess960.tolist(), strict=True)
        for game, pair in enumerate(pairs):
            first[game] = met.setdefault(pair, len(met))
        starts = [Position.from_fen(None if k < 0 else self.start_fens[k], chess960=free).record for k, free in met]
        states = join_states(starts) if starts else np.zeros(0, STATE)
        return _Arrays(plain(self.moves), plain(self.start), plain(first), plain(states))

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
    """Write N positions; see `FlatGames.replay`."""
    for i in range(len(chosen)):
        g = chosen[i]
        records[i] = games.states[games.first[g]]
        s = records[i]
        first = games.start[g]
        for k in range(first, first + turns[i]):
            make(s, games.moves[k])
