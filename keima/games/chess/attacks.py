"""Bitboards: sets of squares as 64-bit words, and where each piece attacks.

Square a1 is bit 0, b1 bit 1, a2 bit 8, h8 bit 63. Sliding attacks use *obstruction difference*
(https://www.chessprogramming.org/Obstruction_Difference): one subtraction along each of four lines, from 6 KB of masks,
so there is no magic table to build at start-up and nothing large to evict the network's data from the cache.

Every bitboard and square inside a kernel is `uint64`: Numba turns a mixture of uint64 and int64 into float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from keima.jit import njit

Word = NDArray[np.uint64]

ZERO = np.uint64(0)
ONE = np.uint64(1)
ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
NOT_A = np.uint64(0xFEFE_FEFE_FEFE_FEFE)
NOT_H = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
RANK_1 = np.uint64(0xFF)
RANK_3 = np.uint64(0xFF_0000)
RANK_8 = np.uint64(0xFF00_0000_0000_0000)
LIGHT = np.uint64(0x55AA_55AA_55AA_55AA)

VERTICAL, HORIZONTAL, DIAGONAL, ANTIDIAGONAL = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
"""The four lines through a square: along a file, along a rank, parallel to a1–h8, parallel to h1–a8."""

_LINE_STEPS = ((0, 1), (1, 0), (1, 1), (-1, 1))  # (file, rank) towards higher squares, in the order of the lines


def _ray(square: int, file_step: int, rank_step: int) -> list[int]:
    """The squares from `square` (not included) to the edge in one direction, nearest first."""
    file, rank = square % 8 + file_step, square // 8 + rank_step
    found = []
    while 0 <= file < 8 and 0 <= rank < 8:
        found.append(rank * 8 + file)
        file, rank = file + file_step, rank + rank_step
    return found


def _leaps(steps: tuple[tuple[int, int], ...]) -> Word:
    """uint64 [64]: the squares one leap away from each square."""
    table = [sum(1 << s for step in steps for s in _ray(square, *step)[:1]) for square in range(64)]
    return np.array(table, np.uint64)


def _lines() -> tuple[Word, Word, Word, Word]:
    """Masks of the lines: below and above each square [4, 64]; between two squares and through them [64, 64]."""
    lower, upper = [[0] * 64 for _ in range(4)], [[0] * 64 for _ in range(4)]
    between, through = [[0] * 64 for _ in range(64)], [[0] * 64 for _ in range(64)]
    for square in range(64):
        for line, (file_step, rank_step) in enumerate(_LINE_STEPS):
            forward, backward = _ray(square, file_step, rank_step), _ray(square, -file_step, -rank_step)
            upper[line][square] = sum(1 << s for s in forward)
            lower[line][square] = sum(1 << s for s in backward)
            whole = upper[line][square] | lower[line][square] | 1 << square
            for ray in (forward, backward):
                passed = 0
                for other in ray:
                    between[square][other], through[square][other] = passed, whole
                    passed |= 1 << other
    return tuple(np.array(table, np.uint64) for table in (lower, upper, between, through))  # type: ignore[return-value]


_WORD = types.uint64(types.uint64)


def _intrinsic(function: Callable[..., Any]) -> Callable[[np.uint64], np.uint64]:
    """Callers see the kernel's signature, not the generator's."""
    return cast(Callable[[np.uint64], np.uint64], intrinsic(function))


KNIGHT_ATTACKS = _leaps(((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)))
KING_ATTACKS = _leaps(((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)))
LOWER, UPPER, BETWEEN, THROUGH = _lines()
LINES = LOWER | UPPER


@_intrinsic
def popcount(typing_context: object, word: object) -> tuple[object, object]:
    """Number of squares in a bitboard, as uint64."""
    return _WORD, lambda c, builder, _, args: builder.ctpop(args[0])


@_intrinsic
def lowest(typing_context: object, word: object) -> tuple[object, object]:
    """The lowest square of a bitboard that is not empty, as uint64."""
    return _WORD, lambda c, builder, _, args: builder.cttz(args[0], c.get_constant(types.boolean, 1))


@_intrinsic
def highest(typing_context: object, word: object) -> tuple[object, object]:
    """The highest square of a bitboard that is not empty, as uint64."""

    def generate(context: Any, builder: Any, _signature: object, args: list[object]) -> object:
        zeros = builder.ctlz(args[0], context.get_constant(types.boolean, 1))
        return builder.xor(zeros, context.get_constant(types.uint64, 63))

    return _WORD, generate


@_intrinsic
def flip_ranks(typing_context: object, word: object) -> tuple[object, object]:
    """The bitboard with rank 1 and rank 8, 2 and 7, ... exchanged: one byte swap."""
    return _WORD, lambda c, builder, _, args: builder.bswap(args[0])


@njit
def bit(square: np.uint64) -> np.uint64:
    """The bitboard that holds one square (uint64)."""
    return ONE << square


@njit
def line_attacks(square: np.uint64, occupied: np.uint64, line: np.uint64) -> np.uint64:
    """Squares a slider on `square` attacks along one of the four lines: up to and including the first piece."""
    below = LOWER[line, square] & occupied
    above = UPPER[line, square] & occupied
    first_above = above & (~above + ONE)
    return np.uint64(LINES[line, square] & ((first_above << ONE) + (ALL << highest(below | ONE))))


@njit
def rook_attacks(square: np.uint64, occupied: np.uint64) -> np.uint64:
    """Squares a rook on `square` attacks; pieces of either side stop it and are included."""
    return line_attacks(square, occupied, VERTICAL) | line_attacks(square, occupied, HORIZONTAL)


@njit
def bishop_attacks(square: np.uint64, occupied: np.uint64) -> np.uint64:
    """Squares a bishop on `square` attacks; pieces of either side stop it and are included."""
    return line_attacks(square, occupied, DIAGONAL) | line_attacks(square, occupied, ANTIDIAGONAL)
