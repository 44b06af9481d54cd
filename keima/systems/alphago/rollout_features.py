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
patterns are known is told when an encoding is made: the commonest among the moves that games offer
(`commonest_patterns`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest
from keima.games.go.board import MAX_POINTS, PASS_LOC, loc_of
from keima.games.go.position import RECORD
from keima.games.go.vertices import SYMMETRIES
from keima.jit import Record, Records, njit
from keima.systems.alphago.local_features import (
    DIAMOND,
    NAKADE_STONES,
    ROLLOUT,
    WEIGHTS,
    apply_save_atari,
    diamond_point,
    find,
    insert_all,
    nakade_pattern,
    response_code,
    response_key,
    start_rollout,
)
from keima.systems.alphago.rollout import MAX_PATTERNS
from keima.systems.encoding import Batch, LegalMoves
from keima.systems.go_points import GoEncoding, policy_indices

if TYPE_CHECKING:
    from keima.games.archive import FlatGames

PLANES = 5
PATTERN, RESPONSE, NEIGHBOUR, NAKADE, SAVE_ATARI = range(PLANES)
"""Planes by what they hold."""

FIRST_PATTERN, FIRST_RESPONSE = 2, 1
"""Numbers of the first known pattern in planes 0 and 1."""

_AROUND = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]
_DIAMOND = [*_AROUND, (-2, 0), (0, -2), (0, 2), (2, 0)]
_CHUNK = 4096


def _images(points: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """int64 [8, len(points)]: where each symmetry takes the k-th of these (row, column) steps."""

    def image(symmetry: int, y: int, x: int) -> int:
        y, x = (-y if symmetry & 1 else y), (-x if symmetry & 2 else x)
        return points.index((x, y) if symmetry & 4 else (y, x))

    return np.array([[image(symmetry, *point) for point in points] for symmetry in range(SYMMETRIES)])


_AROUND_IMAGES, _DIAMOND_IMAGES = _images(_AROUND), _images(_DIAMOND)


def pattern_images(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """3×3 codes int64 [n] → their eight images, int64 [8, n]."""
    return _turned(codes, _AROUND_IMAGES)


def response_images(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Response keys int64 [n] → their eight images, int64 [8, n]."""
    last_first = DIAMOND - 1 - _DIAMOND_IMAGES[:, ::-1]
    return (_turned(keys >> 4, last_first) << 4) | _DIAMOND_IMAGES[:, keys & 15]


def _turned(codes: NDArray[np.int64], images: NDArray[np.int64]) -> NDArray[np.int64]:
    """Codes [n], three bits a point → [8, n]: the bits of point k moved to the place of point `images[symmetry, k]`."""
    turned = np.zeros((SYMMETRIES, len(codes)), np.int64)
    for k in range(images.shape[1]):
        turned |= ((codes >> (3 * k)) & 7) << (3 * images[:, k, None])
    return turned


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
    apply_save_atari(b, r, colour, 1.0)
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
    """Write the features of RECORD [N] into float32 [N, 5, H, W]; `tables` are of `number_tables`."""
    rollouts = np.empty(1, ROLLOUT)
    for n in range(len(records)):
        _fill_features(records[n].board, records[n].history, rollouts[0], tables, planes[n])


@njit
def list_patterns(records: Records, tables: Record, codes: NDArray[np.int64], keys: NDArray[np.int64]) -> None:
    """Write the patterns of the moves of RECORD [N]: which of them a policy should know is counted from these.

    Args:
        tables: any WEIGHTS record, its patterns do not matter.
        codes: int64 [N, points], written: the 3×3 code at each point; −1 where no move is considered.
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
    """WEIGHTS [1] of numbers: 2 + k for the k-th pattern and its images, 1 + k for a response pattern."""
    tables: Records = np.zeros(1, WEIGHTS)
    kinds = (
        (pattern_images(patterns), "pattern", FIRST_PATTERN),
        (response_images(responses), "response", FIRST_RESPONSE),
    )
    for images, name, first in kinds:
        numbers = np.tile(np.arange(first, first + images.shape[1], dtype=np.float32), SYMMETRIES)
        insert_all(tables[0][f"{name}_keys"], tables[0][f"{name}_values"], images.ravel().astype(np.uint64), numbers)
    return tables


class RolloutEncoding(GoEncoding):
    """Features of Go positions of any size, never turned, for these 3×3 codes [P] and response keys [R].

    No two of them are images of one another.
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
        """Write the features."""
        encode_rollout(records, self.tables[0], batch.inputs["planes"])

    def legal_moves(self, position: Any, symmetry: int = 0) -> LegalMoves:
        """The legal moves, pass last: it is played where nothing else is left."""
        names = position.legal()
        table = policy_indices(position.xsize, position.ysize, 0)
        return LegalMoves(np.array([table[name] for name in names], np.int64), names)


def commonest_patterns(games: FlatGames, sample: int = 100_000) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The commonest patterns in a sample of positions of games of Go, for `RolloutSoftmax.know`.

    A 3×3 pattern counts once for every point it lies around while a move there is considered, a response pattern for
    every point around the previous move. Of equally common ones the smaller code is kept, so that the same games always
    give the same patterns.

    Raises:
        BadRequest: another game, or no moves.
    """
    total = int(games.start[-1])
    if games.game != "go" or not total:
        raise BadRequest("a rollout policy learns from games of Go, and there are none")
    chosen = np.sort(np.random.default_rng(0).integers(0, total, sample))
    rows = np.searchsorted(games.start, chosen, side="right") - 1
    turns = chosen - games.start[rows]
    patterns, responses = _Counter(pattern_images), _Counter(response_images)
    tables = np.zeros(1, WEIGHTS)
    records = np.zeros(_CHUNK, RECORD)
    for first in range(0, sample, _CHUNK):
        part = slice(first, min(first + _CHUNK, sample))
        here = records[: part.stop - first]
        games.replay(rows[part], turns[part], here)
        codes = np.full((len(here), MAX_POINTS), -1, np.int64)
        keys = np.empty((len(here), DIAMOND), np.int64)
        list_patterns(here, tables[0], codes, keys)
        patterns.add(codes)
        responses.add(keys)
    return patterns.commonest(), responses.commonest()


class _Counter:
    """Counts patterns, those that are images of one another together."""

    def __init__(self, images: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> None:
        self._images = images
        self._keys = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)

    def add(self, keys: NDArray[np.int64]) -> None:
        """Count these, [...]; negative ones stand for none."""
        found, counts = np.unique(keys[keys >= 0], return_counts=True)
        together = np.concatenate([self._keys, self._images(found).min(axis=0)])
        self._keys, places = np.unique(together, return_inverse=True)
        weights = np.concatenate([self._counts, counts])
        self._counts = np.bincount(places, weights, len(self._keys)).astype(np.int64)

    def commonest(self) -> NDArray[np.int64]:
        """Those met more than once, the commonest first, as many as a policy holds with all their images."""
        order = np.argsort(-self._counts, kind="stable")
        keys = self._keys[order[self._counts[order] > 1]]
        images = np.sort(self._images(keys), axis=0)
        different = 1 + (np.diff(images, axis=0) != 0).sum(axis=0)
        return keys[np.cumsum(different) <= MAX_PATTERNS]
