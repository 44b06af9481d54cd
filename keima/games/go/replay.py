"""Playing a recorded game's moves up to some position, as fast as that goes.

`play_many` leaves board and history as `give_turn` and `play_move` would, move after move. Most moves of most games are
plain: in turn, no pass, the game still going. Of those it skips what the next move overwrites: shifting the recent
boards, and looking for points that superko forbids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.games.go.board import BLACK, MAX_POINTS, PASS_LOC, WHITE, opponent, play
from keima.games.go.history import (
    KO_SIMPLE,
    RECENT,
    SCORING_TERRITORY,
    _add_ko_hash,
    _find_superko_bans,
    give_turn,
    handicap_bonus,
    is_over,
    occurrences,
    play_move,
    situation_hash,
)
from keima.jit import njit


@njit
def play_many(b: Any, h: Any, locs: NDArray[np.int16], colours: NDArray[np.int8], count: int) -> None:
    """Make the first `count` moves of a game, each `is_playable` in its place; a side may move out of turn.

    Args:
        b: BOARD record.
        h: its HISTORY record, begun.
        locs: int16 [≥ count], points or PASS_LOC.
        colours: int8 [≥ count], BLACK or WHITE.
        count: how many moves to make.
    """
    done = 0
    if h.encore_phase == 0 and not is_over(h):
        done = _play_plain(b, h, locs, colours, _plain_moves(h, locs, colours, count))
    for i in range(done, count):
        if colours[i] != h.to_play:
            give_turn(b, h, int(colours[i]))
        play_move(b, h, int(locs[i]), int(colours[i]))


@njit
def _plain_moves(h: Any, locs: NDArray[np.int16], colours: NDArray[np.int8], count: int) -> int:
    """How many of the moves come in turn, before the first pass."""
    colour = int(h.to_play)
    for i in range(count):
        if colours[i] != colour or locs[i] == PASS_LOC:
            return i
        colour = opponent(colour)
    return count


@njit
def _play_plain(b: Any, h: Any, locs: NDArray[np.int16], colours: NDArray[np.int8], count: int) -> int:
    """Make moves that are plain; returns how many: fewer than `count` where endless repetition ends the game."""
    recent = np.empty((RECENT, MAX_POINTS), np.int8)
    kos = np.empty(RECENT, np.int16)
    done = 0
    while done < count and h.no_result == 0:
        loc = int(locs[done])
        colour = int(colours[done])
        play(b, loc, colour)
        done += 1
        recent[done & (RECENT - 1)] = b.stones
        kos[done & (RECENT - 1)] = b.ko
        h.turns += 1
        h.to_play = opponent(colour)
        h.ever_occupied[loc] = 1
        h.placed[loc] = h.turns
        if h.scoring == SCORING_TERRITORY:
            h.white_bonus += 1.0 if colour == BLACK else -1.0
        _count_handicap(h, colour)
        key = situation_hash(b, h, opponent(colour))
        _add_ko_hash(h, key)
        if h.ko_rule == KO_SIMPLE and h.ko_count >= 3 and occurrences(h, key) >= 3:
            h.no_result = 1
            h.finished = 1
    if done > 0:
        h.consecutive_passes = 0
        h.turns_this_phase += done
        h.valid_turns += done
        _write_recent(h, locs, colours, done, recent, kos)
        _find_superko_bans(b, h)
    return done


@njit
def _count_handicap(h: Any, colour: int) -> None:
    """As the history does after each move; in turn, White never moves twice."""
    if colour == WHITE:
        h.white_has_moved = 1
    elif h.count_black_moves and not h.white_has_moved:
        h.leading_black += 1
        h.white_handicap_bonus = handicap_bonus(h)


@njit
def _write_recent(h: Any, locs: Any, colours: Any, done: int, recent: NDArray[np.int8], kos: NDArray[np.int16]) -> None:
    """Put the last boards and moves of `done` new ones in front of those the history has."""
    for k in range(RECENT - 1, -1, -1):
        if k >= done:
            h.recent_loc[k] = h.recent_loc[k - done]
            h.recent_colour[k] = h.recent_colour[k - done]
            h.recent_ko[k] = h.recent_ko[k - done]
            h.recent_stones[k] = h.recent_stones[k - done]
        else:
            h.recent_loc[k] = locs[done - 1 - k]
            h.recent_colour[k] = colours[done - 1 - k]
            h.recent_ko[k] = kos[(done - k) & (RECENT - 1)]
            h.recent_stones[k] = recent[(done - k) & (RECENT - 1)]
