"""What the rules of Go remember: ko bans, passes, encore phases, bonuses, and the recent boards that encodings read.

A history is one element of a NumPy array of dtype `HISTORY`, the companion of one `BOARD`; copying it is one `memcpy`.
The semantics are those of KataGo's `cpp/game/boardhistory.cpp`, which its networks were trained under, down to the
territory rules' two encore phases. Perspective: colours are absolute; bonuses and scores are white minus black, points.

In every kernel `b` is a board record and `h` its history record. `moves.play_move` takes any move that can be carried
out, legal or not, as KataGo does for game records; `is_legal_move` tells what the rules say.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keima.games.go.area import calculate_area, independent_life_area
from keima.games.go.board import (
    BLACK,
    EMPTY,
    MAX_POINTS,
    NULL_LOC,
    PASS_LOC,
    WALL,
    WHITE,
    contains,
    copy_points,
    is_legal_ignoring_ko,
    ko_capture,
    opponent,
    player_hash,
    points_of,
)
from keima.jit import Record, njit

KO_SIMPLE, KO_POSITIONAL, KO_SITUATIONAL, KO_SPIGHT = 0, 1, 2, 3
SCORING_AREA, SCORING_TERRITORY = 0, 1
TAX_NONE, TAX_SEKI, TAX_ALL = 0, 1, 2
BONUS_ZERO, BONUS_N, BONUS_N_MINUS_ONE = 0, 1, 2

RECENT = 8
"""How many boards and moves back a history keeps, the current board among them."""
KO_HASHES = 1024
"""How many past situations the repetition rules look back over; in a longer game the oldest are forgotten."""
PASS_HASHES = 64
"""How many situations a side passed in are remembered, for Spight-like endings; the oldest are forgotten."""
ENCORE_CAPTURES = 128
"""How many ko captures of an encore are remembered; the oldest are forgotten."""

HISTORY = np.dtype(
    [
        # The rules, constant through the game.
        ("ko_rule", np.int32),  # KO_SIMPLE, KO_POSITIONAL, KO_SITUATIONAL or KO_SPIGHT
        ("scoring", np.int32),  # SCORING_AREA or SCORING_TERRITORY
        ("tax", np.int32),  # TAX_NONE, TAX_SEKI or TAX_ALL
        ("suicide", np.int32),  # 1: suicide of more than one stone is legal
        ("button_rule", np.int32),  # 1: the rules have a button
        ("bonus_rule", np.int32),  # white's handicap bonus: BONUS_ZERO, BONUS_N or BONUS_N_MINUS_ONE
        ("friendly_pass_ok", np.int32),  # 1: dead stones need not be captured before passing (area scoring)
        ("komi", np.float64),  # points for White
        ("prevent_encore", np.int32),  # 1: territory's two passes do not start an encore (the players agree instead)
        # Where the game stands.
        ("to_play", np.int32),  # BLACK or WHITE
        ("turns", np.int32),  # moves and passes since this history began (it begins anew when a side moves out of turn)
        ("consecutive_passes", np.int32),  # passes in a row that count towards ending the phase
        ("encore_phase", np.int32),  # 0 the game proper; 1, 2 the encores of territory scoring
        ("turns_this_phase", np.int32),  # moves and passes in this phase
        ("valid_turns", np.int32),  # how many of the last moves encodings may look at: those of this phase that obey it
        ("has_button", np.int32),  # 1: the button is still to be taken
        ("past_phase_end", np.int32),  # 1: the phase should have ended, but the encore is prevented
        ("finished", np.int32),  # 1: the game is over
        ("no_result", np.int32),  # 1: over, by endless repetition
        # Points given beside the board, white minus black.
        ("white_bonus", np.float64),  # button, and territory's one point a move (as if area were being counted)
        ("white_handicap_bonus", np.float64),  # white's points for handicap stones
        # Handicap as KataGo counts it.
        ("handicap_override", np.int32),  # the number of handicap stones, or -1 to count them
        ("start_black", np.int32),  # stones of each colour on the board this history began with
        ("start_white", np.int32),
        ("leading_black", np.int32),  # black moves made before White's first stone
        ("white_has_moved", np.int32),  # 1: White has played a stone
        ("white_twice", np.int32),  # 1: White moved (passed) twice in a row before its first stone
        # What encodings look back at. Index 0 is the newest.
        ("recent_loc", np.int16, (RECENT,)),  # the last moves' points (PASS_LOC: a pass); NULL_LOC before the start
        ("recent_colour", np.int8, (RECENT,)),  # who made them; EMPTY before the start
        ("recent_ko", np.int16, (RECENT,)),  # the simple ko point on each of the recent boards
        # [0] the current board's stones, [1] one move ago, ...; those before the start are the board the history began
        # with: min(turns + 1, RECENT) are real.
        ("recent_stones", np.int8, (RECENT, MAX_POINTS)),
        ("placed", np.int16, (MAX_POINTS,)),  # of a stone: `turns` just after its move, 0 for setup
        # Repetition.
        # 1: forbidden to the side to move by superko, or in an encore because this ko was taken in this position before
        ("superko_banned", np.uint8, (MAX_POINTS,)),
        ("ever_occupied", np.uint8, (MAX_POINTS,)),  # 1: a stone stood or was played here at some time
        ("ko_count", np.int32),  # situations recorded since the list was last cleared
        ("ko_hashes", np.uint64, (KO_HASHES,)),  # their hashes; situation i stands at i % KO_HASHES
        ("ko_filter", np.uint64, (64,)),  # a Bloom filter (one bit a hash) in front of that list
        ("pass_count", np.int32, (3,)),  # by colour: situations it passed in
        ("pass_hashes", np.uint64, (3, PASS_HASHES)),  # by colour: their hashes, as a ring
        # Encores.
        ("ko_blocked", np.uint8, (MAX_POINTS,)),  # 1: a stone that took a ko; retaking it needs a "pass for ko" first
        ("ko_block_hash", np.uint64),  # the hash of those marks
        ("encore_start", np.int8, (MAX_POINTS,)),  # the stones at the start of encore phase 2; EMPTY before it
        ("capture_count", np.int32),  # ko captures made in this encore
        ("capture_hashes", np.uint64, (ENCORE_CAPTURES,)),  # the board's hash before each
        ("capture_locs", np.int16, (ENCORE_CAPTURES,)),  # the point it was made on
        ("capture_colours", np.int8, (ENCORE_CAPTURES,)),  # who made it
    ],
    align=True,
)

_ZERO, _ONE, _SIX, _LOW_SIX = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)


@njit
def write_rules(h: Record, rules: NDArray[np.int32], komi: float, encore: bool) -> None:
    """Write the rules, as `Rules.numbers` gives them, and komi; `encore`: two passes start territory's encore."""
    h.ko_rule = rules[0]
    h.scoring = rules[1]
    h.tax = rules[2]
    h.suicide = rules[3]
    h.button_rule = rules[4]
    h.bonus_rule = rules[5]
    h.friendly_pass_ok = rules[6]
    h.komi = komi
    h.prevent_encore = not encore


@njit
def begin(b: Record, h: Record, colour: int, encore_phase: int) -> None:
    """Start a history at the board as it stands, `colour` to move; the rules in `h` stay.

    Bonuses are counted from the board (KataGo `BoardHistory::clear`).
    """
    h.to_play = colour
    h.turns = 0
    h.consecutive_passes = 0
    h.encore_phase = encore_phase
    h.turns_this_phase = 0
    h.valid_turns = 0
    h.has_button = h.button_rule if encore_phase == 0 else 0
    reopen(h)
    h.handicap_override = -1
    h.leading_black = 0
    h.white_has_moved = 0
    h.white_twice = 0
    h.recent_loc[:] = NULL_LOC
    h.recent_colour[:] = EMPTY
    for i in range(RECENT):
        h.recent_ko[i] = b.ko
        copy_points(b.stones, h.recent_stones[i])
    h.placed[:] = 0
    h.superko_banned[:] = 0
    clear_ko_hashes(h)
    clear_encore(h)
    if encore_phase == 2:
        copy_points(b.stones, h.encore_start)
    else:
        h.encore_start[:] = EMPTY
    _count_start(b, h)
    add_ko_hash(h, situation_hash(b, h, colour))


@njit
def give_turn(b: Record, h: Record, colour: int) -> None:
    """Let `colour` move next though it is not its turn: everything before is forgotten, the simple ko too.

    What KataGo's GTP and analysis engines do when one side moves twice.
    """
    b.ko = NULL_LOC
    begin(b, h, colour, int(h.encore_phase))


@njit
def _count_start(b: Record, h: Record) -> None:
    """Count the stones a history starts with, and the points they are worth beside the board."""
    h.ever_occupied[:] = 0
    h.start_black = 0
    h.start_white = 0
    for loc in points_of(b):
        h.start_black += b.stones[loc] == BLACK
        h.start_white += b.stones[loc] == WHITE
        h.ever_occupied[loc] = b.stones[loc] == BLACK or b.stones[loc] == WHITE
    h.white_bonus = 0.0
    if h.scoring == SCORING_TERRITORY:  # a point for each move made, those of captured stones too
        h.white_bonus = h.start_black - h.start_white - (b.captures[WHITE] - b.captures[BLACK])
    h.white_handicap_bonus = handicap_bonus(h)


@njit
def reopen(h: Record) -> None:
    """Forget that the game was over."""
    h.past_phase_end = 0
    h.finished = 0
    h.no_result = 0


@njit
def clear_ko_hashes(h: Record) -> None:
    """Forget all past situations."""
    h.ko_count = 0
    h.ko_filter[:] = _ZERO


@njit
def clear_encore(h: Record) -> None:
    """Forget passes, marks and ko captures, as at the start of each phase."""
    h.pass_count[:] = 0
    h.ko_blocked[:] = 0
    h.ko_block_hash = _ZERO
    h.capture_count = 0


@njit
def situation_hash(b: Record, h: Record, colour: int) -> np.uint64:
    """The hash by which the rules tell whether a situation is repeated, with `colour` to move.

    Stones alone under positional and Spight ko; stones and side to move under simple and situational ko; in an encore
    stones, side and marks.
    """
    if h.encore_phase > 0 or h.ko_rule == KO_SITUATIONAL or h.ko_rule == KO_SIMPLE:
        return np.uint64(b.hash ^ player_hash(colour) ^ h.ko_block_hash)
    return np.uint64(b.hash ^ h.ko_block_hash)


@njit
def occurrences(h: Record, key: np.uint64) -> int:
    """How often a situation stands in the list, the current one included."""
    if (h.ko_filter[(key >> _SIX) & _LOW_SIX] >> (key & _LOW_SIX)) & _ONE == _ZERO:  # it is surely new
        return 0
    count = 0
    for i in range(min(h.ko_count, KO_HASHES)):
        if h.ko_hashes[i] == key:
            count += 1
    return count


@njit
def add_ko_hash(h: Record, key: np.uint64) -> None:
    """Record a situation."""
    h.ko_hashes[h.ko_count % KO_HASHES] = key
    h.ko_count += 1
    h.ko_filter[(key >> _SIX) & _LOW_SIX] |= _ONE << (key & _LOW_SIX)


@njit
def handicap_stones(h: Record) -> int:
    """How many handicap stones Black has: those set up, and the moves before White's first.

    None where White has stones at the start, and one stone or move is an ordinary game (KataGo
    `computeNumHandicapStones`).
    """
    if h.handicap_override >= 0:
        return int(h.handicap_override)
    if h.start_white != 0:
        return 0
    stones = int(h.start_black)
    if not h.white_twice:
        stones += int(h.leading_black)
    return stones if stones > 1 else 0


@njit
def handicap_bonus(h: Record) -> int:
    """White's points for Black's handicap stones, by the rules' `bonus_rule`."""
    if h.bonus_rule == BONUS_N:
        return handicap_stones(h)
    if h.bonus_rule == BONUS_N_MINUS_ONE:
        return max(handicap_stones(h) - 1, 0)
    return 0


@njit
def self_komi(h: Record, colour: int, draw_value: float) -> float:
    """Komi and all bonuses as points for `colour`, a drawn game counted as `draw_value` wins for White (0.5: even).

    KataGo `BoardHistory::currentSelfKomi`.
    """
    komi = h.white_bonus + h.white_handicap_bonus + h.komi
    if (h.komi == np.floor(h.komi)) != (h.button_rule == 1):
        komi += draw_value - 0.5
    return float(komi if colour == WHITE else -komi)


@njit
def is_over(h: Record) -> bool:
    """Is the game over, or past the two passes that would start a prevented encore?"""
    return bool(h.finished == 1 or h.past_phase_end == 1)


@njit
def is_pass_for_ko(b: Record, h: Record, loc: int, colour: int) -> bool:
    """In an encore: would this move, on a marked stone or on the point that retakes it, only lift the mark?"""
    if h.encore_phase == 0 or loc == PASS_LOC or loc < 0 or loc >= MAX_POINTS:
        return False
    if b.stones[loc] == opponent(colour) and h.ko_blocked[loc]:
        return bool(b.size[b.head[loc]] == 1 and b.liberties[b.head[loc]] == 1)
    return bool(h.ko_blocked[ko_capture(b, loc, colour)] == 1)


@njit
def is_legal_move(b: Record, h: Record, loc: int, colour: int) -> bool:
    """Do the rules allow this move (PASS_LOC too)? Only to the side to move; the game's end is not looked at.

    KataGo `BoardHistory::isLegal`.
    """
    if colour != h.to_play:
        return False
    if h.encore_phase > 0:
        if is_pass_for_ko(b, h, loc, colour):
            return True
    elif loc == b.ko:
        return False
    return is_legal_ignoring_ko(b, loc, colour, h.suicide == 1) and h.superko_banned[loc] == 0


@njit
def is_playable(b: Record, h: Record, loc: int, colour: int) -> bool:
    """Can this move be carried out, whatever the rules say of ko, suicide of a chain, and turn?

    What a game record may hold (KataGo `BoardHistory::isLegalTolerant`).
    """
    return is_pass_for_ko(b, h, loc, colour) or is_legal_ignoring_ko(b, loc, colour, True)


@njit
def legal_moves(b: Record, h: Record, moves: NDArray[np.int16]) -> int:
    """Write the points the side to move may play into `moves` (int16 [>= 362]), row by row, PASS_LOC last; how many."""
    count = 0
    colour = int(h.to_play)
    for loc in points_of(b):
        if is_legal_move(b, h, loc, colour):
            moves[count] = loc
            count += 1
    moves[count] = PASS_LOC
    return count + 1


@njit
def passes_after_pass(h: Record) -> int:
    """How many passes in a row there would be after one more; Spight ko does not count them."""
    if h.encore_phase == 0 and h.ko_rule == KO_SPIGHT:
        return 0
    return int(h.consecutive_passes) + 1


@njit
def passes_clear_history(h: Record) -> bool:
    """Does a pass lift ko bans here, and end the phase where the side passed in the same situation before?"""
    return bool(h.encore_phase > 0 or h.ko_rule == KO_SIMPLE or h.ko_rule == KO_SPIGHT)


@njit
def passed_here_before(h: Record, colour: int, key: np.uint64) -> bool:
    """Has `colour` passed in this situation before, so that passing again ends the phase?"""
    passes = min(h.pass_count[colour], PASS_HASHES)
    return passes_clear_history(h) and contains(h.pass_hashes[colour], passes, key)


@njit
def pass_would_end_phase(b: Record, h: Record, colour: int) -> bool:
    """Would a pass end the game or, under territory rules, this phase of it?"""
    return passes_after_pass(h) >= 2 or passed_here_before(h, colour, situation_hash(b, h, colour))


@njit
def is_final_phase(h: Record) -> bool:
    """Is it the phase whose end is the game's?"""
    return bool(h.scoring == SCORING_AREA or h.encore_phase >= 2)


@njit
def is_friendly_pass(b: Record, h: Record, colour: int) -> bool:
    """Would a pass end the game though, under friendly-pass rules, a search should want a third one?

    KataGo `BoardHistory::shouldSuppressEndGameFromFriendlyPass`.
    """
    return (
        h.friendly_pass_ok == 1
        and h.scoring == SCORING_AREA
        and passes_after_pass(h) == 2
        and not passed_here_before(h, colour, situation_hash(b, h, colour))
    )


@njit
def count_area(b: Record, h: Record, area: NDArray[np.int8]) -> int:
    """Write who owns each point at the end of the game into `area` (int8 [MAX_POINTS]); White's points minus Black's.

    By the scoring and tax rules (group tax included), without komi and bonuses. Under territory rules this too counts
    owned points, stones among them: `white_bonus` has taken back one for each move, so that a stone is worth nothing. A
    stone that is not alive by itself counts for its side if it stood when encore phase 2 began, or before that phase.
    """
    suicide = h.suicide == 1
    groups = 0
    if h.scoring == SCORING_AREA and h.tax == TAX_NONE:
        calculate_area(b, area, True, True, True, suicide)
    else:
        keep_stones = h.scoring == SCORING_AREA
        keep_territories = h.scoring == SCORING_TERRITORY and h.tax == TAX_NONE
        groups = independent_life_area(b, area, keep_territories, keep_stones, suicide)
    if h.scoring == SCORING_TERRITORY:
        _add_standing_stones(b, h, area)
    score = -2 * groups if h.tax == TAX_ALL else 0
    for loc in points_of(b):
        if area[loc] == WHITE:
            score += 1
        elif area[loc] == BLACK:
            score -= 1
    return score


@njit
def _add_standing_stones(b: Record, h: Record, area: NDArray[np.int8]) -> None:
    """Give points nobody owns yet to the stones on them, if those stood when encore phase 2 began."""
    for loc in points_of(b):
        is_given = h.encore_phase < 2 or h.encore_start[loc] == b.stones[loc]
        if area[loc] == EMPTY and b.stones[loc] != WALL and is_given:
            area[loc] = b.stones[loc]


@njit
def score_now(b: Record, h: Record, area: NDArray[np.int8]) -> float:
    """The result if the game ended here: white minus black, komi and bonuses included; writes `area` as `count_area`.

    A button not yet taken goes to the side to move.
    """
    score = count_area(b, h, area) + h.white_bonus + h.white_handicap_bonus + h.komi
    if h.has_button:
        score += 0.5 if h.to_play == WHITE else -0.5
    return float(score)


@njit
def end_game(b: Record, h: Record) -> None:
    """End the game here; a button not yet taken goes to the side to move."""
    if h.has_button:
        h.has_button = 0
        h.white_bonus += 0.5 if h.to_play == WHITE else -0.5
    reopen(h)
    h.finished = 1
