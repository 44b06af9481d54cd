"""What a network said of positions, kept for searches that meet them again (KataGo's `NNCacheTable`, Lc0's `NNCache`).

A key holds all that an evaluation depends on, so that what is kept is what the network would say once more: a search
finds the same with and without. Of two evaluations that want one place the later one stays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keima.games.kernels import NO_KEY
from keima.jit import njit
from keima.search.expand import Leaves

MEMORY = 1 << 27
"""Bytes of a cache, at most."""


class EvaluationCache(NamedTuple):
    """Evaluations by key, in the place that the key's last bits name."""

    keys: NDArray[np.uint64]  # [size], a power of two; NO_KEY: nothing is kept here
    logits: NDArray[np.float32]  # [size, M], of the legal moves in their order
    answers: NDArray[np.float32]  # [size, 6], columns as of `keima.search.expand`
    hits: NDArray[np.int64]  # [1], how often one was found


def new_cache(moves: int, memory: int = MEMORY) -> EvaluationCache:
    """An empty cache for positions of at most so many legal moves, within so many bytes."""
    size = 1 << max(0, (memory // (8 + 4 * (moves + 6))).bit_length() - 1)
    logits, answers = np.zeros((size, moves), np.float32), np.zeros((size, 6), np.float32)
    return EvaluationCache(np.zeros(size, np.uint64), logits, answers, np.zeros(1, np.int64))


@njit
def find(cache: EvaluationCache, key: np.uint64) -> int:
    """The place of an evaluation, or −1."""
    place = np.int64(key & np.uint64(len(cache.keys) - 1))
    if key == NO_KEY or cache.keys[place] != key:
        return -1
    cache.hits[0] += 1
    return int(place)


@njit
def keep(
    cache: EvaluationCache,
    key: np.uint64,
    leaves: Leaves,
    policy: NDArray[np.float32],
    answers: NDArray[np.float32],
    row: int,
) -> None:
    """Keep a row of a batch's answers; nothing under NO_KEY."""
    if key == NO_KEY:
        return
    place = np.int64(key & np.uint64(len(cache.keys) - 1))
    cache.keys[place] = key
    for k in range(leaves.counts[row]):
        cache.logits[place, k] = policy[row, leaves.indices[row, k]]
    cache.answers[place] = answers[row]
