"""Which patterns a rollout policy is to know: the commonest among the moves that games offer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest
from keima.games.archive import FlatGames
from keima.games.go.board import MAX_POINTS
from keima.games.go.position import RECORD
from keima.systems.alphago.local_features import DIAMOND, WEIGHTS
from keima.systems.alphago.rollout import MAX_PATTERNS
from keima.systems.alphago.rollout_features import list_patterns, pattern_images, response_images

SAMPLE = 100_000
"""Positions that patterns are counted in."""
_CHUNK = 4096

Images = Callable[[NDArray[np.int64]], NDArray[np.int64]]


def commonest_patterns(
    games: FlatGames, sample: int = SAMPLE, seed: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The commonest patterns of games of Go, for `RolloutSoftmax.know`.

    A 3×3 pattern counts once for every point it lies around while a move there is considered, a response pattern for
    every point around the previous move. Of equally common ones the smaller code is kept, so that the same games always
    give the same patterns.

    Args:
        games: of Go.
        sample: positions to count in.
        seed: which positions.

    Raises:
        BadRequest: another game, or no moves.
    """
    total = int(games.start[-1])
    if games.game != "go" or not total:
        raise BadRequest("a rollout policy learns from games of Go, and there are none")
    chosen = np.sort(np.random.default_rng(seed).integers(0, total, sample))
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

    def __init__(self, images: Images) -> None:
        self._images = images
        self._keys = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)

    def add(self, keys: NDArray[np.int64]) -> None:
        """Count these; negative ones stand for none."""
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
