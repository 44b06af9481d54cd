"""Chess played without records: moves drawn from policies, games ended by the rules or where they grow too long."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest
from keima.games import kernels
from keima.games.archive import FlatGames, PolicyGames
from keima.games.chess.archive.reading import row_of
from keima.games.chess.board import MAX_MOVES, legal_moves, make
from keima.games.chess.kernels import SCRATCH, result
from keima.games.chess.position import Position
from keima.games.rows import Row
from keima.jit import Records, njit

LONGEST = 400
"""Plies of a game; it is drawn then."""
_RESULTS = {1: "1-0", -1: "0-1", 0: "1/2-1/2"}
MakeGames = Callable[[NDArray[np.uint16], NDArray[np.int64], NDArray[np.int8]], FlatGames]


class ChessPolicyGames(PolicyGames):
    """See `PolicyGames`; `made` makes games from the usual start of moves, starts and winners."""

    most_moves = MAX_MOVES

    def __init__(self, made: MakeGames) -> None:
        self._made = made

    def begin(self, size: int, rules: str, komi: float) -> Position:
        """The usual start; rules and komi are of no account."""
        if size:
            raise BadRequest("the board of chess is 8×8", place="size")
        return Position.start()

    def longest(self, position: object) -> int:
        """See `PolicyGames`."""
        return LONGEST

    def candidates(self, records: Records, passes: bool, moves: NDArray[np.int16], counts: NDArray[np.int32]) -> None:
        """Its legal moves."""
        _candidates(records, moves.view(np.uint16), counts)

    def play(
        self, records: Records, rows: NDArray[np.int64], chosen: NDArray[np.int16], packed: NDArray[np.uint16]
    ) -> None:
        """See `PolicyGames`."""
        packed[:] = chosen.view(np.uint16)
        _play(records, rows, packed)

    def over(self, records: Records) -> NDArray[np.bool_]:
        """By the rules, draws by repetition and fifty moves among them."""
        over: NDArray[np.bool_] = _results(records) != kernels.ONGOING
        return over

    def count(self, records: Records) -> NDArray[np.float32]:
        """+1 where White won; games that were cut off are drawn."""
        found = _results(records)
        white = np.where(records["side"] == 0, found, -found)
        return np.where(found == kernels.ONGOING, 0, white).astype(np.float32)

    def games(
        self, begin: object, moves: NDArray[np.uint16], start: NDArray[np.int64], lead: NDArray[np.float32]
    ) -> FlatGames:
        """See `PolicyGames`."""
        return self._made(moves, start, np.sign(lead).astype(np.int8))

    def rows(self, games: FlatGames, firsts: Sequence[str], seconds: Sequence[str], number: int) -> Iterator[Row]:
        """See `PolicyGames`."""
        start = Position.start()
        for g, (white, black) in enumerate(zip(firsts, seconds, strict=True)):
            moves = games.moves[games.start[g] : games.start[g + 1]]
            row = row_of({"White": white, "Black": black}, moves, start, _RESULTS[int(games.winner[g])])
            yield row | {"source": f"played#{number + g + 1}"}


def _results(records: Records) -> NDArray[np.int64]:
    found = np.empty(len(records), np.int64)
    _find_results(records, np.zeros(1, SCRATCH), found)
    return found


@njit
def _find_results(records: Records, scratch: Records, found: NDArray[np.int64]) -> None:
    for i in range(len(records)):
        found[i] = result(records[i], scratch[0])[0]


@njit
def _candidates(records: Records, moves: NDArray[np.uint16], counts: NDArray[np.int32]) -> None:
    for i in range(len(records)):
        counts[i] = legal_moves(records[i], moves[i])


@njit
def _play(records: Records, rows: NDArray[np.int64], packed: NDArray[np.uint16]) -> None:
    for k in range(len(rows)):
        make(records[rows[k]], packed[k])
