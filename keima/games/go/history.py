"""What the rules of Go remember: ko bans, passes, encore phases, bonuses, and the recent boards that encodings read.

A history is one element of a NumPy array of dtype `HISTORY`, the companion of one `BOARD`; copying it is one `memcpy`.
The semantics are those of KataGo's `cpp/game/boardhistory.cpp`, which its networks were trained under, down to the
territory rules' two encore phases. Perspective: colours are absolute; bonuses and scores are white minus black, points.

In every kernel `b` is a board record and `h` its history record.
"""

from __future__ import annotations

import numpy as np

from keima.games.go.board import MAX_POINTS

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
        ("scored", np.int32),  # 1: over, with a score
        ("no_result", np.int32),  # 1: over, by endless repetition
        ("winner", np.int32),  # of a finished game: BLACK, WHITE, or EMPTY for a draw or no result
        ("final_score", np.float64),  # of a scored game: white minus black, everything included
        # Points given beside the board, white minus black.
        ("white_bonus", np.float64),  # button, and territory's one point a move (as if area were being counted)
        ("white_handicap_bonus", np.float64),  # white's points for handicap stones
        # Handicap as KataGo counts it.
        ("count_black_moves", np.int32),  # 1: black moves in a row at the start count as handicap stones
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
        (
            "recent_stones",
            np.int8,
            (RECENT, MAX_POINTS),
        ),  # [0] the current board's stones, [1] one move ago, ...; those
        # before the start are the board the history began with: min(turns + 1, RECENT) are real
        (
            "placed",
            np.int16,
            (MAX_POINTS,),
        ),  # of a stone: `turns` just after its move; 0 for setup. Age: turns - placed
        # Repetition.
        ("superko_banned", np.uint8, (MAX_POINTS,)),  # 1: forbidden to the side to move by superko, or in an encore
        # because this ko was already taken in this position
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
