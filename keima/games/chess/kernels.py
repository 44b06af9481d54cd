"""Chess as the search knows it, with the rules' own kernels: ends of games, mates, keys of positions; perft."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from keima.games.chess import board
from keima.games.chess.attacks import LIGHT, ZERO, popcount
from keima.games.kernels import ONGOING as GOES_ON
from keima.games.kernels import Kernels, chain
from keima.jit import Record, Records, njit

ONGOING, CHECKMATE, STALEMATE, INSUFFICIENT, FIFTY_MOVES, THREEFOLD = range(6)
MATE_MOVES = 3
"""Mates by checks alone in so many moves are looked for at the root, before the search."""
MATE_BUDGET = 30_000
"""Moves tried for that, some ten milliseconds at most."""

SCRATCH = np.dtype(
    [
        ("boards", board.BOARD, (2 * MATE_MOVES + 1,)),
        ("lists", np.uint16, (2 * MATE_MOVES + 1, board.MAX_MOVES)),  # the first one: the legal moves `result` found
        ("budget", np.int64, (1,)),
        ("count", np.int64),  # how many moves it found
    ],
    align=True,
)


@njit
def insufficient_material(b: Record) -> bool:
    """Whether no sequence of moves can mate: K v K, K+N v K, K+B v K, or only bishops on squares of one colour."""
    if b.pieces[board.PAWN] | b.pieces[board.ROOK] | b.pieces[board.QUEEN]:
        return False
    if popcount(b.ours | b.theirs) < np.uint64(4):
        return True
    if b.pieces[board.KNIGHT]:
        return False
    return bool(b.pieces[board.BISHOP] & LIGHT == ZERO or b.pieces[board.BISHOP] & ~LIGHT == ZERO)


@njit
def ending(s: Record, move_count: int) -> int:
    """Why a search stops at this STATE, given its number of legal moves, or ONGOING: lc0's rules (`position.cc`)."""
    if move_count == 0:
        return CHECKMATE if board.in_check(s) else STALEMATE
    if insufficient_material(s):
        return INSUFFICIENT
    if s.rule50 >= 100:
        return FIFTY_MOVES
    return THREEFOLD if s.repetitions >= 2 else ONGOING


@njit
def play(p: Record, scratch: Record, move: int) -> None:
    """Make a move."""
    board.make(p, np.uint16(move))  # type: ignore[arg-type]


@njit
def side(p: Record) -> int:
    """0 for White, 1 for Black."""
    return int(p.side)


@njit
def other(side: int) -> int:
    """The opponent."""
    return 1 - side


@njit
def result(p: Record, scratch: Record) -> tuple[int, float]:
    """A loss where the side to move is mated, a draw where the rules or a claim end the game; no points."""
    scratch.count = board.legal_moves(p, scratch.lists[0])
    end = ending(p, scratch.count)
    if end == ONGOING:
        return GOES_ON, math.nan
    return (-1 if end == CHECKMATE else 0), math.nan


@njit
def moves_of(p: Record, scratch: Record, moves: NDArray[np.int16]) -> int:
    """The legal moves `result` found."""
    for k in range(scratch.count):
        moves[k] = scratch.lists[0, k]
    return int(scratch.count)


@njit
def key(p: Record, scratch: Record, history: int) -> np.uint64:
    """A hash of the board, earlier occurrences and the fifty-move clock; and of `history` positions before it.

    Of those, also of all that were repetitions: encodings may go back to them, however long ago they were.
    """
    key = chain(p.hash, p.rule50 * 4 + min(p.repetitions, 3))
    key = chain(key, p.ep)
    if history > 0:
        key = chain(key, min(p.known, board.SLOTS) * board.SLOTS + min(p.repeated, board.SLOTS - 1))
        for t in range(1, min(history, p.known, board.SLOTS - 1) + 1):
            key = _chain_slot(key, p.past[(p.known - t) & (board.SLOTS - 1)])
        for t in range(1, min(p.repeated, board.SLOTS) + 1):
            key = _chain_slot(key, p.repeats[(p.repeated - t) & (board.SLOTS - 1)])
    return key


@njit
def _chain_slot(key: np.uint64, slot: NDArray[np.uint64]) -> np.uint64:
    """A key with a position of the past."""
    for word in slot:
        key = chain(key, word)
    return key


@njit
def cycle(p: Record) -> int:
    """Plies since this position occurred the time before, 0 if it did not."""
    if p.repetitions < 1:
        return 0
    last = p.chain - 1
    for index in range(last - 4, max(-1, last - board.KEYS), -2):
        if p.keys[index & (board.KEYS - 1)] == p.hash:
            return int(last - index)
    return 0


@njit
def forced_mate(
    boards: Records, lists: NDArray[np.uint16], level: np.int64, n: np.int64, budget: NDArray[np.int64]
) -> int:
    """The index of a move of `boards[level]` that mates in at most n own moves by checks alone, or −1.

    Of `boards` [≥ level + 2 n + 1] what comes after `level` is working space; of `lists` [as many, MAX_MOVES]
    `lists[level]` holds the legal moves afterwards; `budget` [1] counts down the moves that may yet be tried.
    """
    for k in range(board.legal_moves(boards[level], lists[level])):
        budget[0] -= 1
        if budget[0] < 0:
            return -1
        boards[level + 1] = boards[level]
        board.make_board(boards[level + 1], lists[level, k])
        if not board.in_check(boards[level + 1]):
            continue
        replies = board.legal_moves(boards[level + 1], lists[level + 1])
        mated = bool(replies == 0 or n > 1)
        for reply in range(replies):
            if not mated:
                break
            boards[level + 2] = boards[level + 1]
            board.make_board(boards[level + 2], lists[level + 1, reply])
            mated = forced_mate(boards, lists, level + 2, n - 1, budget) >= 0
        if mated:
            return k
    return -1


@njit
def mate_from(p: Record, scratch: Record, n: int, budget: int) -> int:
    """`forced_mate` of a position; the only call from outside, since what calls itself has one set of types."""
    board.copy_board(scratch.boards[0], p)
    scratch.budget[0] = budget
    return forced_mate(scratch.boards, scratch.lists, np.int64(0), np.int64(n), scratch.budget)


@njit
def wins_at_once(p: Record, scratch: Record) -> bool:
    """Has the side to move a mate in one?"""
    return mate_from(p, scratch, 1, board.MAX_MOVES) >= 0


@njit
def forced_win(p: Record, scratch: Record) -> tuple[int, int]:
    """A move that mates by checks in a few moves, if no draw can come before."""
    if p.rule50 <= 99 - 2 * MATE_MOVES:
        budget = MATE_BUDGET
        for n in range(1, MATE_MOVES + 1):
            k = mate_from(p, scratch, n, budget)
            if k >= 0:
                return int(scratch.lists[0, k]), 2 * n - 2
            budget = scratch.budget[0]
    return -1, 0


KERNELS = Kernels(
    dtype=board.STATE,
    max_moves=board.MAX_MOVES,
    play=play,
    side=side,
    other=other,
    result=result,
    legal_moves=moves_of,
    key=key,
    name=lambda position, move, side: position.name(move, side),
    code=lambda position, name: position.code(name),
    scratch=SCRATCH,
    cycle=cycle,
    wins_at_once=wins_at_once,
    forced_win=forced_win,
    moves_between=lambda old, new: old.moves_to(new),
)


@njit
def _perft(boards: Records, moves: NDArray[np.uint16], depth: int) -> int:
    """Leaves below `boards[depth]`; lower entries are working space."""
    count = board.legal_moves(boards[depth], moves[depth])
    if depth == 1:
        return count
    total = 0
    for index in range(count):
        boards[depth - 1] = boards[depth]
        board.make_board(boards[depth - 1], moves[depth, index])
        total += _perft(boards, moves, depth - 1)
    return total


@njit
def _perft_from(s: Record, boards: Records, moves: NDArray[np.uint16], depth: int) -> int:
    board.copy_board(boards[depth], s)
    return _perft(boards, moves, depth)


def perft(states: Records, depth: int) -> int:
    """Number of move sequences of `depth` plies from `states[0]` (the last ply counted in bulk); 1 at depth 0."""
    if depth == 0:
        return 1
    boards, moves = np.zeros(depth + 1, board.BOARD), np.zeros((depth + 1, board.MAX_MOVES), np.uint16)
    return int(_perft_from(states[0], boards, moves, depth))
