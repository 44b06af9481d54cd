"""The rollout policy's features as planes of numbers, for learning its weights (Silver et al. 2016, Extended Data
Table 4); `keima.systems.alphago.local_features` holds the features themselves.

| plane | for every point the number of                                                                             |
| ----- | --------------------------------------------------------------------------------------------------------- |
| 0     | its 3×3 pattern: 0 no move considered here (occupied, suicide, an own eye, ko), 1 a pattern that is not   |
|       | known, from 2 on known ones                                                                               |
| 1     | its response pattern, from 1 on; 0 none                                                                   |
| 2     | its place among the eight around the previous move, 1–8; 0 none                                           |
| 3     | its nakade pattern, 1–8192; 0 none                                                                        |
| 4     | 1 where the move saves own stones beside the previous move from capture                                   |

A pattern and its turned and mirrored images share a number, so that no position need be turned to learn from it. Which
patterns are known is told when an encoding is made: a policy learns weights for the commonest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.games.go.board import MAX_POINTS, PASS_LOC, loc_of
from keima.games.go.vertices import SYMMETRIES
from keima.jit import Record, Records, njit
from keima.systems.alphago.local_features import (
    DIAMOND,
    NAKADE_STONES,
    ROLLOUT,
    WEIGHTS,
    diamond_point,
    find,
    insert_all,
    mark_saved,
    nakade_pattern,
    response_code,
    response_key,
    start_rollout,
)
from keima.systems.encoding import Batch, LegalMoves
from keima.systems.go_points import GoEncoding, policy_indices

PLANES = 5
PATTERN, RESPONSE, NEIGHBOUR, NAKADE, SAVE_ATARI = range(PLANES)
"""Planes by what they hold."""

UNKNOWN_PATTERN, FIRST_PATTERN, FIRST_RESPONSE = 1, 2, 1
"""Numbers of plane 0 for a pattern not known and for the first known; of plane 1 for the first known."""

_AROUND = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]
_DIAMOND = [*_AROUND, (-2, 0), (0, -2), (0, 2), (2, 0)]


def _images(points: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """int64 [8, len(points)]: where each symmetry takes the k-th of these (row, column) steps."""
    images = []
    for symmetry in range(SYMMETRIES):
        row = []
        for y, x in points:
            y, x = (-y if symmetry & 1 else y), (-x if symmetry & 2 else x)
            row.append(points.index((x, y) if symmetry & 4 else (y, x)))
        images.append(row)
    return np.array(images)


_AROUND_IMAGES, _DIAMOND_IMAGES = _images(_AROUND), _images(_DIAMOND)


def pattern_images(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """3×3 codes int64 [n] → their eight images, int64 [8, n]."""
    images = np.zeros((SYMMETRIES, len(codes)), np.int64)
    for k in range(len(_AROUND)):
        state = (codes >> (3 * k)) & 7
        for symmetry in range(SYMMETRIES):
            images[symmetry] |= state << (3 * int(_AROUND_IMAGES[symmetry, k]))
    return images


def response_images(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Response keys int64 [n] → their eight images, int64 [8, n]."""
    images = np.zeros((SYMMETRIES, len(keys)), np.int64)
    codes, moves = keys >> 4, keys & 15
    for k in range(DIAMOND):
        state = (codes >> (3 * (DIAMOND - 1 - k))) & 7
        for symmetry in range(SYMMETRIES):
            images[symmetry] |= state << (3 * (DIAMOND - 1 - int(_DIAMOND_IMAGES[symmetry, k])))
    for symmetry in range(SYMMETRIES):
        images[symmetry] = (images[symmetry] << 4) | _DIAMOND_IMAGES[symmetry][moves]
    return images


@njit
def _fill_features(b: Record, h: Record, r: Record, tables: Record, planes: NDArray[np.float32]) -> None:
    """Write the planes [5, H, W] of one position; `r` is scratch. The features are those that `choose_move` weighs."""
    start_rollout(b, h, r, tables)
    colour = int(h.to_play)
    stride = int(b.stride)
    planes[:] = 0.0
    for y in range(int(b.ysize)):
        for x in range(int(b.xsize)):
            planes[PATTERN, y, x] = r.weight[colour, loc_of(x, y, int(b.xsize))]
    if b.ko > PASS_LOC:
        planes[PATTERN, b.ko // stride - 1, b.ko % stride - 1] = 0.0
    previous = int(r.previous)
    if previous <= PASS_LOC:
        return
    mark_saved(b, r, colour)
    for i in range(int(r.touched_count)):
        loc = int(r.touched[i])
        planes[SAVE_ATARI, loc // stride - 1, loc % stride - 1] = 1.0
    code = response_code(r, colour, stride)
    for k in range(DIAMOND):
        loc = diamond_point(previous, k, stride)
        if loc < 0 or loc >= MAX_POINTS or r.state[loc] != 0:
            continue
        y, x = loc // stride - 1, loc % stride - 1
        if k < 8:
            planes[NEIGHBOUR, y, x] = k + 1
        planes[RESPONSE, y, x] = find(tables.response_keys, tables.response_values, response_key(code, k), 0.0)
    if 2 <= r.captured_count <= NAKADE_STONES:
        for i in range(int(r.captured_count)):
            loc = int(r.captured[i])
            planes[NAKADE, loc // stride - 1, loc % stride - 1] = nakade_pattern(r, i, stride) + 1


@njit
def encode_rollout(records: Records, tables: Record, planes: NDArray[np.float32]) -> None:
    """Write the features of N positions.

    Args:
        records: RECORD [N].
        tables: WEIGHTS record whose values are the patterns' numbers (`number_tables`).
        planes: float32 [N, 5, H, W], overwritten.
    """
    rollouts = np.empty(1, ROLLOUT)
    for n in range(len(records)):
        _fill_features(records[n].board, records[n].history, rollouts[0], tables, planes[n])


@njit
def list_patterns(records: Records, tables: Record, codes: NDArray[np.int64], keys: NDArray[np.int64]) -> None:
    """Write the patterns of N positions' moves: which of them a policy should know is counted from these.

    Args:
        records: RECORD [N].
        tables: WEIGHTS record; any, its patterns do not matter.
        codes: int64 [N, points], overwritten: the 3×3 code at each point; −1 where no move is considered.
        keys: int64 [N, 12], overwritten: the response keys of the points around the previous move; −1 for none.
    """
    rollouts = np.empty(1, ROLLOUT)
    r = rollouts[0]
    for n in range(codes.shape[0]):
        b, h = records[n].board, records[n].history
        start_rollout(b, h, r, tables)
        colour = int(h.to_play)
        stride = int(b.stride)
        for y in range(int(b.ysize)):
            for x in range(int(b.xsize)):
                loc = loc_of(x, y, int(b.xsize))
                considered = r.weight[colour, loc] > 0.0 and loc != b.ko
                codes[n, y * int(b.xsize) + x] = int(r.code[colour, loc]) if considered else -1
        keys[n] = -1
        if r.previous > PASS_LOC:
            code = response_code(r, colour, stride)
            for k in range(DIAMOND):
                loc = diamond_point(int(r.previous), k, stride)
                if 0 <= loc < MAX_POINTS and r.state[loc] == 0:
                    keys[n, k] = np.int64(response_key(code, k))


def number_tables(patterns: NDArray[np.int64], responses: NDArray[np.int64]) -> Records:
    """WEIGHTS [1] that hold numbers in place of weights: the k-th pattern and all its images have number 2 + k.

    Args:
        patterns: 3×3 codes, int64 [P], no two images of one another.
        responses: response keys, int64 [R], likewise; their numbers are 1 + k.
    """
    tables: Records = np.zeros(1, WEIGHTS)
    kinds = (
        (patterns, pattern_images, "pattern", FIRST_PATTERN),
        (responses, response_images, "response", FIRST_RESPONSE),
    )
    for keys, images_of, name, first in kinds:
        images = images_of(keys)
        numbers = np.broadcast_to(np.arange(first, first + len(keys), dtype=np.float32), images.shape)
        flat = np.ascontiguousarray(images.reshape(-1)).astype(np.uint64)
        insert_all(tables[0][f"{name}_keys"], tables[0][f"{name}_values"], flat, numbers.reshape(-1).copy())
    return tables


class RolloutEncoding(GoEncoding):
    """Features of Go positions of any size, for the patterns that a policy knows; they are never turned.

    Args:
        patterns: 3×3 codes, int64 [P], no two images of one another.
        responses: response keys, int64 [R], likewise.
    """

    name = "rollout"
    planes = PLANES
    symmetries: tuple[int, ...] = (0,)  # patterns and their images share a number: there is nothing to turn
    pass_move = False

    def __init__(self, patterns: NDArray[np.int64] | None = None, responses: NDArray[np.int64] | None = None) -> None:
        super().__init__()
        none = np.zeros(0, np.int64)
        self.tables = number_tables(none if patterns is None else patterns, none if responses is None else responses)

    def write(self, records: Records, symmetries: NDArray[np.int64], batch: Batch) -> None:
        """Write the features, whatever the symmetries."""
        encode_rollout(records, self.tables[0], batch.inputs["planes"])

    def legal_moves(self, position: Any, symmetry: int = 0) -> LegalMoves:
        """The legal moves, pass last: it is played where nothing else is left."""
        names = position.legal()
        table = policy_indices(position.xsize, position.ysize, 0)
        return LegalMoves(np.array([table[name] for name in names], np.int64), names)


ENCODINGS: dict[str, RolloutEncoding] = {}
"""None by name: an encoding is of the patterns that a policy knows."""
