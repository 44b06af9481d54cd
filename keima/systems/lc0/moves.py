"""Lc0's 1858 moves: what each policy index means, and where the convolutional policy head writes it.

A move is seen from the side to move (a1 is its own left corner, its pawns go up), and has an index if a queen or a
knight could make it on an empty board:

| indices     | moves                                                                                             |
| ----------- | ------------------------------------------------------------------------------------------------- |
| 0 – 1791    | from-square a1, b1, … h8; for each, every to-square a queen or knight reaches, a1, b1, … h8       |
| 1792 – 1857 | promotions from rank 7 to 8: a7a8q, a7a8r, a7a8b, a7b8q, a7b8r, a7b8b, b7a8q, … h7h8b             |

Promotion to a knight is the plain move (a7a8). Castling is "king takes own rook" (e1h1, e1a1, and any files in
Chess960). Worked values: 0 is a1b1, 7 is a1a2, 293 d2d4, 322 e2e4, 103 e1h1, 97 e1a1, 1792 a7a8q, 1857 h7h8b.

The convolutional head has 80 planes of 8 × 8 (73 are used). The square is where the move starts; the plane tells where
it goes:

| planes  | moves                                                                                                 |
| ------- | ----------------------------------------------------------------------------------------------------- |
| 0 – 55  | plane = 7 · direction + distance − 1; directions N, NE, E, SE, S, SW, W, NW; distance 1 – 7             |
| 56 – 63 | knight moves (files, ranks): (1,2) (2,1) (2,−1) (1,−2) (−1,−2) (−2,−1) (−2,1) (−1,2)                     |
| 64 – 72 | promotions to rook, bishop, queen: capturing to the left 64 – 66, straight 67 – 69, to the right 70 – 72 |
| 73 – 79 | nothing                                                                                               |

Facts from lc0 `src/neural/encoder.cc` (move list) and `src/neural/tables/policy_map.h` (planes).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from keima.jit import njit

MOVES = 1858
"""A, the length of Lc0's policy."""

_DIRECTIONS = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))
_KNIGHT_STEPS = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))
_SQUARES = [file + rank for rank in "12345678" for file in "abcdefgh"]


def _plain_plane(source: int, target: int) -> int | None:
    """The plane of a queen's or knight's move, or None where it is neither."""
    files, ranks = target % 8 - source % 8, target // 8 - source // 8
    if (files, ranks) in _KNIGHT_STEPS:
        return 56 + _KNIGHT_STEPS.index((files, ranks))
    distance = max(abs(files), abs(ranks))
    if distance and (files == 0 or ranks == 0 or abs(files) == abs(ranks)):
        return 7 * _DIRECTIONS.index((files // distance, ranks // distance)) + distance - 1
    return None


def _all_moves() -> Iterator[tuple[int, int, int, int]]:
    """(from, to, promotion, plane) of each move in the order of the indices, promotion as in `POLICY_INDEX`."""
    for source in range(64):
        for target in range(64):
            plane = _plain_plane(source, target)
            if plane is not None:
                yield source, target, 0, plane
    for source in range(48, 56):
        for target in range(max(56, source + 7), min(64, source + 10)):
            for promotion in (4, 3, 2):
                yield source, target, promotion, 64 + 3 * (target - source - 7) + (3, 2, 4).index(promotion)


_FROM, _TO, _PROMOTION, _PLANE = np.array(list(_all_moves()), np.int64).T

MOVE_NAMES = tuple(
    _SQUARES[source] + _SQUARES[target] + ("", "n", "b", "r", "q")[promotion]
    for source, target, promotion, _ in _all_moves()
)
"""UCI-like name of each policy index, from the side to move."""

CONVOLUTION_INDEX: NDArray[np.int64] = _PLANE * 64 + _FROM
"""int64 [1858]: where in the flattened 80 × 8 × 8 output of the convolutional head each policy index stands."""

ATTENTION_INDEX: NDArray[np.int64] = np.where(
    _PROMOTION == 0, _FROM * 64 + _TO, 64 * 64 + ((_FROM - 48) * 8 + _TO - 56) * 3 + 4 - _PROMOTION
)
"""int64 [1858]: where each policy index stands among the attention policy's 64 × 64 pairs of squares and, after them,
8 × 8 × 3 promotions: file left, file reached, queen or rook or bishop (`tables/attention_policy_map.h`)."""

POLICY_INDEX: NDArray[np.int16] = np.full((5, 64, 64), -1, np.int16)
"""int16 [promotion, from, to]: the policy index of a move, or −1.

Promotion 0 none, 1 knight, 2 bishop, 3 rook, 4 queen.
"""
POLICY_INDEX[_PROMOTION, _FROM, _TO] = np.arange(MOVES)
POLICY_INDEX[1] = POLICY_INDEX[0]


@njit
def transform_square(square: int, transform: int) -> int:
    """Where the canonical transform takes a square: bit 1 mirrors files, 2 mirrors ranks, 4 then reflects in h1–a8."""
    file, rank = square & 7, square >> 3
    if transform & 1:
        file = 7 - file
    if transform & 2:
        rank = 7 - rank
    if transform & 4:
        file, rank = 7 - rank, 7 - file
    return rank * 8 + file


@njit
def policy_index(move: int, transform: int) -> int:
    """The policy index of a chess kernel's move (`keima.games.chess.board`) in planes turned by `transform`."""
    kind = move >> 12
    promotion = kind if kind <= 4 else 0
    source, target = transform_square(move & 63, transform), transform_square((move >> 6) & 63, transform)
    return int(POLICY_INDEX[promotion, source, target])


@njit
def policy_indices(moves: NDArray[np.integer], count: int, transform: int, indices: NDArray[np.integer]) -> None:
    """Write the policy index of each of `count` kernel moves into `indices` (any integer array)."""
    for n in range(count):
        move: int = np.int64(moves[n])  # type: ignore[assignment]
        indices[n] = policy_index(move, transform)
