"""Stored games played up to one of their positions, in kernels that hold no lock, so that threads run side by side.

The arrays of `FlatGames` come as named tuples that kernels take. What the store promises is trusted here: moves can be
made, stones are on the board. A position is the one *before* its move `turn` (0 is the first), with the side of that
move to play; where that was not its turn, the history begins anew, as `keima.games.go.position` does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keima.games.chess import board as chess_board
from keima.games.chess.board import join_states, make
from keima.games.chess.position import Position as ChessPosition
from keima.games.go.board import BLACK, PASS_LOC, WHITE, clear, place
from keima.games.go.history import begin, give_turn
from keima.games.go.replay import play_many
from keima.games.go.rules import HANDICAP_BONUSES, KO_RULES, SCORING_RULES, TAX_RULES, Rules
from keima.jit import njit

if TYPE_CHECKING:
    from keima.training.flat import FlatGames

WHITE_BIT = 1 << 15
"""Set in a packed Go move of White; the other bits are row · xsize + column, or xsize · ysize for a pass."""
POINT_BITS = WHITE_BIT - 1


class GoGames(NamedTuple):
    """G games of Go as kernels read them; the fields are those of `FlatGames`, but `rules` a table of numbers."""

    moves: NDArray[np.uint16]  # [total]
    start: NDArray[np.int64]  # [G + 1]
    setup: NDArray[np.uint16]
    setup_start: NDArray[np.int64]  # [G + 1]
    to_play_first: NDArray[np.uint8]  # [G]
    xsize: NDArray[np.uint8]  # [G]
    ysize: NDArray[np.uint8]  # [G]
    rules_index: NDArray[np.uint16]  # [G], row of `rules`
    rules: NDArray[np.int32]  # [R, 7]: ko, scoring, tax, suicide, button, handicap bonus, friendly pass
    komi: NDArray[np.float32]  # [G]


class ChessGames(NamedTuple):
    """G games of chess as kernels read them."""

    moves: NDArray[np.uint16]  # [total], kernel moves
    start: NDArray[np.int64]  # [G + 1]
    first: NDArray[np.int64]  # [G], row of `states`
    states: NDArray[Any]  # STATE [F], the starting positions


def go_games(flat: FlatGames) -> GoGames:
    """The arrays of Go games for kernels."""
    rules = np.array([_rule_numbers(rules) for rules in flat.rules], np.int32).reshape(len(flat.rules), 7)
    arrays = (flat.moves, flat.start, flat.setup, flat.setup_start, flat.to_play_first, flat.xsize, flat.ysize)
    return GoGames(*(plain(array) for array in (*arrays, flat.rules_index, rules, flat.komi)))


def chess_games(flat: FlatGames) -> ChessGames:
    """The arrays of chess games for kernels; one starting position for every start and kind of castling met."""
    kinds: dict[tuple[int, bool], int] = {}
    first = np.empty(len(flat), np.int64)
    pairs = zip(flat.start_fen.tolist(), flat.chess960.tolist(), strict=True)
    for game, pair in enumerate(pairs):
        first[game] = kinds.setdefault(pair, len(kinds))
    starts = [ChessPosition.from_fen(None if k < 0 else flat.start_fens[k], chess960=free).state for k, free in kinds]
    states = join_states(starts) if starts else np.zeros(0, chess_board.STATE)
    return ChessGames(*(plain(array) for array in (flat.moves, flat.start, first, states)))


def plain(array: NDArray[Any]) -> Any:
    """The array as a plain read-only view: one type for kernels, whether it is memory-mapped or not."""
    view = np.asarray(array).view(np.ndarray)
    view.setflags(write=False)
    return view


def _rule_numbers(rules: Rules) -> tuple[int, ...]:
    """The rules as a history record holds them."""
    return (
        KO_RULES.index(rules.ko),
        SCORING_RULES.index(rules.scoring),
        TAX_RULES.index(rules.tax),
        int(rules.suicide),
        int(rules.has_button),
        HANDICAP_BONUSES.index(rules.white_handicap_bonus),
        int(rules.friendly_pass_ok),
    )


@njit
def _loc(packed: int, xsize: int, ysize: int) -> int:
    """The point of a packed move or stone."""
    point = packed & POINT_BITS
    if point == xsize * ysize:
        return PASS_LOC
    return point + point // xsize + xsize + 2


@njit
def _set_up(games: Any, g: int, b: Any, h: Any) -> None:
    """Write game g before its first move into a board and a history record."""
    xsize = int(games.xsize[g])
    ysize = int(games.ysize[g])
    clear(b, xsize, ysize)
    for i in range(games.setup_start[g], games.setup_start[g + 1]):
        packed = int(games.setup[i])
        place(b, _loc(packed, xsize, ysize), WHITE if packed & WHITE_BIT else BLACK)
    rules = games.rules[games.rules_index[g]]
    h.ko_rule = rules[0]
    h.scoring = rules[1]
    h.tax = rules[2]
    h.suicide = rules[3]
    h.button_rule = rules[4]
    h.bonus_rule = rules[5]
    h.friendly_pass_ok = rules[6]
    h.komi = games.komi[g]
    h.prevent_encore = 1
    h.pass_alive_suicide = 0
    h.count_black_moves = 1
    begin(b, h, WHITE if games.to_play_first[g] else BLACK, 0)


@njit
def replay_game(games: Any, g: int, count: int, b: Any, h: Any, locs: Any, colours: Any) -> None:
    """Make `b`, `h` the position after the first `count` moves of game g.

    Args:
        games: `GoGames`.
        g: the game.
        count: moves to make.
        b: BOARD record, overwritten.
        h: HISTORY record, overwritten.
        locs: int16 [≥ moves of the game], working space: its moves' points, one more than made.
        colours: int8 of that size, working space: who makes them.
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
def replay_go(games: Any, chosen: NDArray[np.int64], turns: NDArray[np.int64], boards: Any, histories: Any) -> None:
    """Write N positions.

    Args:
        games: `GoGames`.
        chosen: int64 [N], games.
        turns: int64 [N], of each the number of moves made, fewer than it has.
        boards: BOARD [≥ N], overwritten.
        histories: HISTORY [≥ N], overwritten.
    """
    longest = 0
    for i in range(len(chosen)):
        longest = max(longest, turns[i] + 1)
    locs = np.empty(longest, np.int16)
    colours = np.empty(longest, np.int8)
    for i in range(len(chosen)):
        replay_game(games, chosen[i], turns[i], boards[i], histories[i], locs, colours)
        to_play = int(colours[turns[i]])
        if histories[i].to_play != to_play:
            give_turn(boards[i], histories[i], to_play)


@njit
def replay_chess(games: Any, chosen: NDArray[np.int64], turns: NDArray[np.int64], states: Any) -> None:
    """Write N positions of chess into `states` (STATE [≥ N]); the other arguments as for `replay_go`."""
    for i in range(len(chosen)):
        g = chosen[i]
        states[i] = games.states[games.first[g]]
        s = states[i]
        first = games.start[g]
        for k in range(first, first + turns[i]):
            make(s, games.moves[k])
