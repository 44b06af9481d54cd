"""Which patterns a rollout policy is to know: the commonest among the moves that games offer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keima.encodings.rollout import DIAMOND, WEIGHTS
from keima.encodings.rollout_features import list_patterns, pattern_images, response_images
from keima.errors import BadRequest
from keima.games.go.board import BOARD
from keima.games.go.history import HISTORY
from keima.networks.alphago_rollout import MAX_PATTERNS
from keima.training.replay import go_games, replay_go

if TYPE_CHECKING:
    from keima.networks.rollout_softmax import RolloutSoftmax
    from keima.training.flat import FlatGames

SAMPLE = 100_000
"""Positions that patterns are counted in."""
_CHUNK = 4096

Images = Callable[[NDArray[np.int64]], NDArray[np.int64]]


def know_patterns(network: RolloutSoftmax, games: Any, sample: int = SAMPLE, seed: int = 0) -> None:
    """Let a network know the commonest patterns of a game store.

    A 3×3 pattern counts once for every point it lies around while a move there is considered, a response pattern for
    every point around the previous move. Of equally common ones the smaller code is kept, so that the same games always
    give the same patterns.

    Args:
        network: knows nothing yet; what it knew is forgotten.
        games: a `GameStore` of Go or its `FlatGames`.
        sample: positions to count in.
        seed: which positions.

    Raises:
        BadRequest: games of chess, or none.
    """
    flat: FlatGames = games.flat() if hasattr(games, "flat") else games
    total = int(flat.start[-1])
    if flat.game != "go" or not total:
        raise BadRequest("a rollout policy learns from games of Go, and there are none")
    chosen = np.sort(np.random.default_rng(seed).integers(0, total, sample))
    rows = np.searchsorted(flat.start, chosen, side="right") - 1
    turns = chosen - flat.start[rows]
    patterns, responses = _Counter(pattern_images), _Counter(response_images)
    largest = int(flat.xsize.max()) * int(flat.ysize.max())
    records, tables = go_games(flat), np.zeros(1, WEIGHTS)
    boards, histories = np.zeros(_CHUNK, BOARD), np.zeros(_CHUNK, HISTORY)
    for first in range(0, sample, _CHUNK):
        part = slice(first, min(first + _CHUNK, sample))
        count = part.stop - first
        replay_go(records, rows[part], turns[part], boards, histories)
        codes = np.full((count, largest), -1, np.int64)
        keys = np.empty((count, DIAMOND), np.int64)
        list_patterns(boards[:count], histories[:count], tables[0], codes, keys)
        patterns.add(codes)
        responses.add(keys)
    network.know(patterns.commonest(), responses.commonest())


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
