"""Go as the search knows it: moves played by the rules' own kernels, ends of games, and keys of positions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from keima.games.go.board import EMPTY, MAX_POINTS, WALL, WHITE, points_of, size_hash, stone_hash
from keima.games.go.history import KO_SIMPLE, RECENT, is_over, legal_moves, pass_would_end_phase, score_now
from keima.games.go.moves import play_move
from keima.games.go.position import RECORD, Position
from keima.games.go.vertices import loc_to_vertex, vertex_to_loc
from keima.games.kernels import NO_KEY, ONGOING, Kernels, chain
from keima.jit import Record, njit

MAX_MOVES = 362

SCRATCH = np.dtype(
    [
        ("root_hashes", np.uint64, (RECENT,)),  # of the last boards before the root's, and its own, as `hashes`
        ("hashes", np.uint64, (RECENT,)),  # of the board d moves after the root at index d modulo RECENT
        ("depth", np.int64),  # moves since the root
        ("area", np.int8, (MAX_POINTS,)),
    ],
    align=True,
)


@njit
def prepare(p: Record, scratch: Record) -> None:
    """Work out the hashes of the root's last `RECENT` boards, the one t moves ago at index −t modulo `RECENT`."""
    b, h = p.board, p.history
    for t in range(RECENT):
        key = size_hash(b.xsize, b.ysize)
        for loc in points_of(b):
            stone = h.recent_stones[t, loc]
            if stone not in (EMPTY, WALL):
                key ^= stone_hash(loc, stone)
        scratch.root_hashes[(RECENT - t) % RECENT] = key


@njit
def begin(scratch: Record) -> None:
    """Back to the root."""
    scratch.depth = 0
    for t in range(RECENT):
        scratch.hashes[t] = scratch.root_hashes[t]


@njit
def play(p: Record, scratch: Record, move: int) -> None:
    """Make a move for the side to move."""
    play_move(p.board, p.history, int(move), int(p.history.to_play))
    scratch.depth += 1
    scratch.hashes[scratch.depth % RECENT] = p.board.hash


@njit
def side(p: Record) -> int:
    """BLACK or WHITE."""
    return int(p.history.to_play)


@njit
def other(side: int) -> int:
    """The opponent."""
    return 3 - side


@njit
def result(p: Record, scratch: Record) -> tuple[int, float]:
    """Who has won and by how much, for the side to move; a game without result is drawn and has no points."""
    if not is_over(p.history):
        return ONGOING, 0.0
    if p.history.no_result:
        return 0, math.nan
    score = score_now(p.board, p.history, scratch.area)
    if p.history.to_play != WHITE:
        score = -score
    if score > 0:
        return 1, score
    return (-1 if score < 0 else 0), score


@njit
def moves_of(p: Record, scratch: Record, moves: NDArray[np.int16]) -> int:
    """Write the legal moves; how many."""
    return legal_moves(p.board, p.history, moves)


@njit
def key(p: Record, scratch: Record, history: int) -> np.uint64:
    """A hash of all that a position's evaluation and legal moves depend on.

    Stones, side to move, every ko and superko ban, passes, phase, points beside the board, and the last `history`
    moves with the boards before them. In the second encore what stood at its beginning matters too: nothing is shared.
    """
    b, h = p.board, p.history
    if h.encore_phase >= 2:
        return NO_KEY
    key = chain(b.hash, h.to_play)
    key = chain(key, b.ko)
    key = chain(
        key, h.consecutive_passes * 64 + h.encore_phase * 8 + h.has_button * 4 + pass_would_end_phase(b, h, h.to_play)
    )
    key = chain(key, int(4 * (h.white_bonus + h.white_handicap_bonus)) + 100_000)
    if h.encore_phase > 0 or h.ko_rule != KO_SIMPLE:
        key = chain(key ^ h.ko_block_hash, 1)
        for loc in points_of(b):
            if h.superko_banned[loc]:
                key = chain(key, loc)
    if history > 0:
        key = chain(key, min(h.turns, RECENT) * 16 + min(h.valid_turns, RECENT))
        for t in range(history):
            key = chain(key, h.recent_loc[t] * 4 + h.recent_colour[t])
            if t > 0:
                key = chain(key ^ scratch.hashes[(scratch.depth - t) % RECENT], t)
    return key


def name(position: Position, move: int, side: int) -> str:
    """The GTP vertex of a move."""
    return loc_to_vertex(move, position.xsize, position.ysize)


def code(position: Position, name: str) -> int:
    """The move of a GTP vertex."""
    return vertex_to_loc(name, position.xsize, position.ysize) if position.is_legal(name) else -1


def side_length(position: Position) -> float:
    """The square root of the board's area."""
    return float(np.sqrt(position.xsize * position.ysize))


def moves_between(old: Position, new: Position) -> list[str] | None:
    """The moves that lead from one position to another of the same game, the sides in turn; None where none do."""
    known = len(old.moves)
    if new.moves[:known] != old.moves:
        return None
    if (old.xsize, old.ysize, old.rules, old.komi, old.setup) != (new.xsize, new.ysize, new.rules, new.komi, new.setup):
        return None
    names = [vertex for _, vertex in new.moves[known:]]
    colours = [colour for colour, _ in new.moves[known:]]
    wanted = [old.to_play if k % 2 == 0 else "BW"[old.to_play == "B"] for k in range(len(names) + 1)]
    if colours != wanted[:-1] or new.to_play != wanted[-1]:
        return None
    turns = int(new.history[0]["turns"]) - int(old.history[0]["turns"])
    return names if turns == len(names) else None


KERNELS = Kernels(
    dtype=RECORD,
    max_moves=MAX_MOVES,
    play=play,
    side=side,
    other=other,
    result=result,
    legal_moves=moves_of,
    key=key,
    name=name,
    code=code,
    scratch=SCRATCH,
    prepare=prepare,
    begin=begin,
    side_length=side_length,
    draw_side=WHITE,
    moves_between=moves_between,
)
