"""Playing moves of Go: the board, and everything the rules remember, one move or many.

In every kernel `b` is a board record and `h` its history record. `play_many` leaves both as `play_move` would, move
after move, without what the next move overwrites: recent boards, and the points that superko forbids.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keima.games.go.area import wide
from keima.games.go.board import (
    BLACK,
    EMPTY,
    NULL_LOC,
    PASS_LOC,
    WALL,
    WHITE,
    contains,
    copy_points,
    hash_after,
    is_illegal_suicide,
    is_suicide,
    ko_capture,
    ko_mark_hash,
    neighbour,
    opponent,
    play,
    player_hash,
    points_of,
)
from keima.games.go.history import (
    _ZERO,
    ENCORE_CAPTURES,
    KO_SIMPLE,
    KO_SITUATIONAL,
    PASS_HASHES,
    RECENT,
    SCORING_TERRITORY,
    add_ko_hash,
    clear_encore,
    clear_ko_hashes,
    end_game,
    give_turn,
    handicap_bonus,
    is_final_phase,
    is_over,
    legal_moves,
    occurrences,
    passed_here_before,
    passes_after_pass,
    passes_clear_history,
    reopen,
    situation_hash,
)
from keima.jit import Record, njit


@njit
def play_move(b: Record, h: Record, loc: int, colour: int) -> None:
    """Make a move or pass: the board, and everything the rules remember, up to the end of the game.

    Any move that `is_playable` can be made, even after the end, which it takes back. For a move out of turn call
    `give_turn` first, as KataGo's engines do.
    """
    _play(b, h, loc, colour, 0)


@njit
def play_many(b: Record, h: Record, locs: NDArray[np.int16], colours: NDArray[np.int8], count: int) -> None:
    """Make the first `count` moves of a game, each `is_playable` in its place; a side may move out of turn."""
    for i in range(count):
        if colours[i] != h.to_play:
            give_turn(b, h, colours[i])
        _play(b, h, locs[i], colours[i], count - 1 - i)


@njit
def _play(b: Record, h: Record, loc: int, colour: int, following: int) -> None:
    """Make a move which so many others follow at once: what those will overwrite is not worked out."""
    if is_over(h):
        h.valid_turns = min(h.valid_turns, 1)
    reopen(h)
    ends_phase = False
    if loc == PASS_LOC:
        ends_phase = _record_pass(b, h, colour)
    else:
        h.consecutive_passes = 0
    passed_for_ko = h.encore_phase > 0 and loc != PASS_LOC and _pass_for_ko(b, h, loc, colour)
    if not passed_for_ko:
        _play_on_board(b, h, loc, colour)
    _remember(b, h, loc, colour, following < RECENT)
    key = situation_hash(b, h, opponent(colour))
    add_ko_hash(h, key)
    if following == 0:
        _find_superko_bans(b, h)
    if loc != PASS_LOC and not passed_for_ko and h.scoring == SCORING_TERRITORY and h.encore_phase <= 1:
        h.white_bonus += 1.0 if colour == BLACK else -1.0
    _count_handicap(h, loc, colour)
    if ends_phase or h.consecutive_passes >= 2:
        _end_phase(b, h)
    if (
        loc != PASS_LOC
        and (h.encore_phase > 0 or h.ko_rule == KO_SIMPLE)
        and h.ko_count >= 3
        and occurrences(h, key) >= 3
    ):
        h.no_result = 1
        h.finished = 1


@njit
def _record_pass(b: Record, h: Record, colour: int) -> bool:
    """Take the button, or count the pass towards the end of the phase; does it end the phase by repetition?"""
    if h.has_button:
        h.has_button = 0
        h.white_bonus += 0.5 if colour == WHITE else -0.5
        h.consecutive_passes = 0
        h.pass_count[:] = 0
        clear_ko_hashes(h)
        return False
    if passes_clear_history(h):
        clear_ko_hashes(h)
    key = situation_hash(b, h, colour)
    h.consecutive_passes = passes_after_pass(h)
    repeated = passed_here_before(h, colour, key)
    h.pass_hashes[colour, h.pass_count[colour] % PASS_HASHES] = key
    h.pass_count[colour] += 1
    return repeated


@njit
def _set_ko_blocked(h: Record, loc: int, blocked: int) -> None:
    """Mark a stone whose retaking needs a pass for ko, or lift the mark."""
    if h.ko_blocked[loc] != blocked:
        h.ko_blocked[loc] = blocked
        h.ko_block_hash ^= ko_mark_hash(loc)


@njit
def _pass_for_ko(b: Record, h: Record, loc: int, colour: int) -> bool:
    """Lift the mark a move in an encore runs into, if there is one; was there?"""
    marked = loc
    if b.stones[loc] != opponent(colour):
        marked = ko_capture(b, loc, colour)
    if not h.ko_blocked[marked]:
        return False
    _set_ko_blocked(h, marked, 0)
    b.ko = NULL_LOC
    return True


@njit
def _play_on_board(b: Record, h: Record, loc: int, colour: int) -> None:
    """Make the move on the board; in an encore mark ko captures instead of banning the retaking."""
    hash_before = b.hash
    play(b, loc, colour)
    if h.encore_phase == 0:
        return
    if b.ko != NULL_LOC:
        _set_ko_blocked(h, loc, 1)
        slot = h.capture_count % ENCORE_CAPTURES
        h.capture_hashes[slot] = hash_before
        h.capture_locs[slot] = loc
        h.capture_colours[slot] = colour
        h.capture_count += 1
        b.ko = NULL_LOC
    for point in points_of(b):
        if b.stones[point] == EMPTY:
            _set_ko_blocked(h, point, 0)


@njit
def _remember(b: Record, h: Record, loc: int, colour: int, boards: bool) -> None:
    """Shift the recent moves and, if asked to, boards by one, the new ones in front, and pass the turn."""
    for i in range(RECENT - 1, 0, -1):
        h.recent_loc[i] = h.recent_loc[i - 1]
        h.recent_colour[i] = h.recent_colour[i - 1]
        h.recent_ko[i] = h.recent_ko[i - 1]
        if boards:
            copy_points(h.recent_stones[i - 1], h.recent_stones[i])
    h.recent_loc[0] = loc
    h.recent_colour[0] = colour
    h.recent_ko[0] = b.ko
    if boards:
        copy_points(b.stones, h.recent_stones[0])
    h.turns += 1
    h.turns_this_phase += 1
    h.valid_turns += 1
    h.to_play = opponent(colour)
    if loc != PASS_LOC:
        h.ever_occupied[loc] = 1
        h.placed[loc] = h.turns


@njit
def _find_superko_bans(b: Record, h: Record) -> None:
    """Mark the points superko forbids to the side to move; in an encore, the kos it already took in this position."""
    colour = int(h.to_play)
    if h.encore_phase > 0:
        h.superko_banned[:] = 0
        for i in range(min(h.capture_count, ENCORE_CAPTURES)):
            if h.capture_hashes[i] == b.hash and h.capture_colours[i] == colour:
                h.superko_banned[h.capture_locs[i]] = 1
        return
    if h.ko_rule == KO_SIMPLE:
        return
    side = player_hash(opponent(colour)) if h.ko_rule == KO_SITUATIONAL else _ZERO
    for loc in points_of(b):
        h.superko_banned[loc] = 0
        if b.stones[loc] == EMPTY and _could_repeat(b, h, loc, colour):
            h.superko_banned[loc] = occurrences(h, hash_after(b, loc, colour) ^ side) > 0


@njit
def _could_repeat(b: Record, h: Record, loc: int, colour: int) -> bool:
    """May a move on this empty point repeat a situation, and is it not forbidden already by suicide or simple ko?"""
    if not h.ever_occupied[loc] and not is_suicide(b, loc, colour):
        return False
    return loc != b.ko and not is_illegal_suicide(b, loc, colour, h.suicide == 1)


@njit
def _count_handicap(h: Record, loc: int, colour: int) -> None:
    """Count Black's moves before White's first stone, which may be handicap stones, and White's points for them."""
    if colour == WHITE:
        if h.recent_colour[1] == WHITE and not h.white_has_moved:
            h.white_twice = 1
        if loc != PASS_LOC:
            h.white_has_moved = 1
    elif not h.white_has_moved:
        if loc != PASS_LOC:
            h.leading_black += 1
        h.white_handicap_bonus = handicap_bonus(h)


@njit
def _end_phase(b: Record, h: Record) -> None:
    """After the passes that end a phase: score the game, or go on to the next encore."""
    if is_final_phase(h):
        end_game(b, h)
    elif h.prevent_encore:
        h.past_phase_end = 1
        h.valid_turns = min(h.valid_turns, 1)
    else:
        h.encore_phase += 1
        h.turns_this_phase = 0
        h.valid_turns = 0
        if h.encore_phase == 2:
            copy_points(b.stones, h.encore_start)
        h.superko_banned[:] = 0
        h.consecutive_passes = 0
        clear_encore(h)
        clear_ko_hashes(h)
        add_ko_hash(h, situation_hash(b, h, int(h.to_play)))


@njit
def is_true_eye(b: Record, loc: int, colour: int, path: NDArray[np.int16], length: int) -> bool:
    """Is the empty point `loc` a true eye of `colour`? `path[:length]` holds the points already being asked about."""
    stride = int(b.stride)
    if b.stones[loc] != EMPTY:
        return False
    allowed = 1
    for k in range(4):
        stone = b.stones[neighbour(loc, k, stride)]
        if stone == WALL:
            allowed = 0
        elif stone != colour:
            return False
    bad = 0
    for k in range(4):
        diagonal = loc + (stride if k >= 2 else -stride) + (1 if k % 2 else -1)
        stone = b.stones[diagonal]
        if stone == opponent(colour):
            bad += 1
        elif stone == EMPTY and not contains(path, length, diagonal):
            path[length] = loc
            if not is_true_eye(b, diagonal, colour, path, length + 1):
                bad += 1
        if bad > allowed:
            return False
    return True


@njit
def sensible_moves(b: Record, h: Record, passes: bool, path: NDArray[np.int16], moves: NDArray[np.int16]) -> int:
    """Write the moves that a policy is asked about: legal points that are no own true eye, row by row; how many.

    Args:
        passes: PASS_LOC comes last; else it is there only where it is the only one.
        path: int16 [MAX_POINTS], working space.
        moves: int16 [≥ 362], written.
    """
    found = legal_moves(b, h, moves)
    colour = int(h.to_play)
    count = 0
    for m in range(found - 1):
        if not is_true_eye(b, wide(moves[m]), colour, path, wide(0)):  # types: see `keima.jit` on recursion
            moves[count] = moves[m]
            count += 1
    if passes or count == 0:
        moves[count] = PASS_LOC
        count += 1
    return count
