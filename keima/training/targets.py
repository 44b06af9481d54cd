"""What a position of a recorded game teaches: the move played, who won, by how much, who owned what, how long it took.

All for the side that makes the next move. What a record does not tell is missing: −1 for a policy index, NaN elsewhere.

**Ownership** is read off the final board, where the game came to its end by two passes or has a score; a game resigned
or lost on time has none. Records do not say which stones were dead, and people pass with dead stones standing. So the
board is scored as it stands, by the game's own rules (`count_area`: stones are dead only inside pass-alive territory),
and believed where the result is the recorded one: the same score (to half a point), or where no score is
recorded, the same winner. Else, and where the winner is unknown too, only the points that Benson's pass-alive areas
settle are told, whatever the players agreed; the others are NaN.

Of the scored games of one server's month 2 % are believed, and in three of four some points are settled. Taking off the
chains that random playouts give to the other side raised the 2 % to 5 %, at 6 ms a game: not worth having. Whoever
needs the owners of games that people counted by agreement should estimate them with a network.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.encodings.go_points import fill_locs
from keima.games.go.area import calculate_area
from keima.games.go.board import BLACK, BOARD, EMPTY, MAX_POINTS, NULL_LOC, WHITE
from keima.games.go.history import HISTORY, score_now
from keima.jit import njit
from keima.training.replay import POINT_BITS, WHITE_BIT, replay_game

TARGETS = frozenset({"policy", "value", "score", "ownership", "moves_left"})
"""What a loader can be asked for."""

NO_MOVE = -1
UNKNOWN_WINNER = -2
_AGREEMENT = 0.5


def go_policy(
    packed: NDArray[Any],
    sizes: tuple[NDArray[Any], NDArray[Any]],
    symmetries: NDArray[np.int64],
    shape: tuple[int, int],
) -> NDArray[np.int64]:
    """The policy index of packed Go moves under symmetries.

    Args:
        packed: uint16 [N].
        sizes: columns and rows of the boards, [N] each.
        symmetries: int64 [N], 0–7.
        shape: (H, W) of the planes, which may be larger than the boards.

    Returns:
        int64 [N]: row · W + column in the planes' orientation; H · W for a pass.
    """
    point = packed.astype(np.int64) & POINT_BITS
    xsize, ysize = (size.astype(np.int64) for size in sizes)
    row, column = np.divmod(point, xsize)
    row = np.where(symmetries & 1, ysize - 1 - row, row)
    column = np.where(symmetries & 2, xsize - 1 - column, column)
    transposed = (symmetries & 4) != 0
    row, column = np.where(transposed, column, row), np.where(transposed, row, column)
    return np.where(point == xsize * ysize, shape[0] * shape[1], row * shape[1] + column)


def for_side(first_sides: NDArray[Any], first_to_move: NDArray[np.bool_]) -> NDArray[np.float32]:
    """A number of the first side (Black in Go, White in chess), for the side to move; float32 [N], NaN stays."""
    numbers = first_sides.astype(np.float32)
    return np.where(first_to_move, numbers, -numbers).astype(np.float32)


def winners(winner: NDArray[np.int8]) -> NDArray[np.float32]:
    """+1, 0, −1 as stored; NaN where the winner is unknown."""
    return np.where(winner == UNKNOWN_WINNER, np.float32(np.nan), winner.astype(np.float32))


@njit
def _ended_by_passes(games: Any, g: int) -> bool:
    """Are the last two moves of game g passes?"""
    first, last = games.start[g], games.start[g + 1]
    area = int(games.xsize[g]) * int(games.ysize[g])
    return last - first >= 2 and games.moves[last - 1] & POINT_BITS == area == games.moves[last - 2] & POINT_BITS


@njit
def final_owners(games: Any, scores: Any, winner: Any, g: int, b: Any, h: Any, work: Any, owners: Any) -> None:
    """Write who owns each point at the end of game g: +1 Black, −1 White, 0 nobody, NaN not known.

    Args:
        games: `GoGames`.
        scores: float32 [G], Black's final lead, NaN unknown.
        winner: int8 [G], +1 Black, −1 White, 0 drawn, −2 unknown.
        g: the game.
        b: BOARD record, working space.
        h: HISTORY record, likewise.
        work: (locs, colours) as for `replay_game`, and area, int8 [MAX_POINTS].
        owners: float32 [MAX_POINTS], written.
    """
    locs, colours, area = work
    owners[:] = np.nan
    scored = not np.isnan(scores[g])
    if not scored and not _ended_by_passes(games, g):
        return
    replay_game(games, g, games.start[g + 1] - games.start[g], b, h, locs, colours)
    lead = -score_now(b, h, area)
    if scored:
        believed = abs(lead - scores[g]) <= _AGREEMENT
    else:
        believed = winner[g] != UNKNOWN_WINNER and np.sign(lead) == winner[g]
    if not believed:
        calculate_area(b, area, False, False, False, h.suicide == 1)
    for loc in range(NULL_LOC, MAX_POINTS):
        if area[loc] == BLACK:
            owners[loc] = 1.0
        elif area[loc] == WHITE:
            owners[loc] = -1.0
        elif believed and area[loc] == EMPTY:
            owners[loc] = 0.0


@njit
def fill_ownership(
    games: Any,
    scores: NDArray[np.float32],
    winner: NDArray[np.int8],
    chosen: NDArray[np.int64],
    turns: NDArray[np.int64],
    symmetries: NDArray[np.int64],
    ownership: NDArray[np.float32],
) -> None:
    """Write the ownership of N positions as the side to move sees it.

    Args:
        games: `GoGames`.
        scores: float32 [G], Black's final lead, NaN unknown.
        winner: int8 [G], as stored.
        chosen: int64 [N], games.
        turns: int64 [N], moves made.
        symmetries: int64 [N], 0–7.
        ownership: float32 [N, H, W], written; off the board NaN.
    """
    longest = 0
    for i in range(len(chosen)):
        longest = max(longest, games.start[chosen[i] + 1] - games.start[chosen[i]])
    board, history = np.zeros(1, BOARD), np.zeros(1, HISTORY)
    work = (np.empty(longest, np.int16), np.empty(longest, np.int8), np.empty(MAX_POINTS, np.int8))
    owners = np.empty(MAX_POINTS, np.float32)
    locs = np.empty(MAX_POINTS, np.int64)
    for i in range(len(chosen)):
        g = chosen[i]
        xsize, ysize = int(games.xsize[g]), int(games.ysize[g])
        final_owners(games, scores, winner, g, board[0], history[0], work, owners)
        fill_locs(xsize, ysize, symmetries[i], locs)
        sign = -1.0 if games.moves[games.start[g] + turns[i]] & WHITE_BIT else 1.0
        width = ysize if symmetries[i] & 4 else xsize
        ownership[i] = np.nan
        for p in range(xsize * ysize):
            ownership[i, p // width, p % width] = sign * owners[locs[p]]
