"""Many trees of one game and board side by side, each with one leaf under way at most: what self-play searches in.

A tree's search is then that of one descent after the other, whatever is searched beside it: no virtual loss, no
guesses. Batches are as large as there are trees. `gather_trees` is a template as `keima.search.gather.gather` is.

Every search begins with an empty tree, as AlphaZero's pseudocode does (Science 362, 2018), and no tree grows beyond the
visits it was made for. Evaluations are kept, those of a position under the symmetry that its key draws: about half of
what a search asks was asked before, most of it by the search of the move before.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keima.games.game import get_game
from keima.games.kernels import NO_KEY, chain
from keima.games.position import Position
from keima.jit import Record, Records, instantiate, njit
from keima.search.expand import Leaves, expand, new_leaves
from keima.search.gather import NO_RANDOM, Descents, Random, gather_of, of_the_game
from keima.search.tree import FRESH, LEAST_MEMORY, Tree, TreeArrays, new_arrays
from keima.systems.parameters import Parameters

HISTORY = 8
"""Moves back that an evaluation may depend on: as many as any encoding looks at."""
_MEMORY = 1 << 27
"""Bytes of a cache of evaluations, at most."""


class EvaluationCache(NamedTuple):
    """Evaluations by key, in the place that the key's last bits name (KataGo's `NNCacheTable`, Lc0's `NNCache`).

    A key holds all that an evaluation depends on, so that what is kept is what the network would say once more: a
    search finds the same with and without. Of two evaluations that want one place the later one stays.
    """

    keys: NDArray[np.uint64]  # [size], a power of two; NO_KEY: nothing is kept here
    logits: NDArray[np.float32]  # [size, M], of the legal moves in their order
    answers: NDArray[np.float32]  # [size, 6], columns as of `keima.search.expand`
    hits: NDArray[np.int64]  # [1], how often one was found


def new_cache(moves: int, memory: int = _MEMORY) -> EvaluationCache:
    """An empty cache for positions of at most so many legal moves, within so many bytes."""
    size = 1 << max(0, (memory // (8 + 4 * (moves + 6))).bit_length() - 1)
    logits, answers = np.zeros((size, moves), np.float32), np.zeros((size, 6), np.float32)
    return EvaluationCache(np.zeros(size, np.uint64), logits, answers, np.zeros(1, np.int64))


@njit
def recall(cache: EvaluationCache, key: np.uint64) -> int:
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


class Roots(NamedTuple):
    """The roots of T trees, as kernels take them."""

    positions: Records  # [T]
    scratch: Records  # [T]
    salts: NDArray[np.uint64]  # [T], see `Forest.begin`
    leaves: Leaves  # [T], their legal moves
    keys: NDArray[np.uint64]  # [T], of their evaluations


class Gathered(NamedTuple):
    """A batch of at most one leaf of each of T trees."""

    rows: NDArray[np.int32]  # [T], the row of each tree's leaf, −1 without one
    positions: Records  # [T], row by row
    leaves: Leaves  # [T]
    symmetries: NDArray[np.int64]  # [T], to evaluate them under
    keys: NDArray[np.uint64]  # [T], of their evaluations


class Known(NamedTuple):
    """What the cache has of a root."""

    moves: NDArray[np.int16]  # [k], the legal ones
    logits: NDArray[np.float32]  # [1, k]
    answer: NDArray[np.float32]  # [6]


class Forest:
    """T trees for searches of at most so many visits, and their root positions.

    Args:
        position: any of the game and board that all trees are of.
        parameters: of the search; each tree may get others by `begin`.
        visits: most of one search.
        count: T.
        cache: of evaluations; forests may share one.

    Attributes:
        trees: each with `position`, `side` and so on as any `Tree`, in the arrays they share.
        wanted: int32 [T], the visits each search is to make; 0: the tree is asleep.
        batch: the one under way.
    """

    def __init__(
        self, position: Position, parameters: Parameters, visits: int, count: int, cache: EvaluationCache
    ) -> None:
        kernels = get_game(position.game).kernels
        edges = (visits + 1) * min(parameters.priors.edge_cap, kernels.max_moves)
        self.arrays = new_arrays((count,), visits + 3, edges, parameters)
        self.trees = [Tree(parameters, LEAST_MEMORY, TreeArrays(*(a[t] for a in self.arrays))) for t in range(count)]
        self.wanted = np.zeros(count, np.int32)
        self._cache = cache
        self._meet, self._gather = _kernels_of(position.game)
        salts, root_keys, keys = np.zeros((3, count), np.uint64)
        root_leaves, leaves = (new_leaves(count, kernels.max_moves) for _ in range(2))
        positions, scratch = np.zeros((2, count), kernels.dtype), np.zeros(count, kernels.scratch)
        self._roots = Roots(positions[0], scratch, salts, root_leaves, root_keys)
        self.batch = Gathered(np.full(count, -1, np.int32), positions[1], leaves, np.zeros(count, np.int64), keys)

    def begin(self, t: int, position: Position, parameters: Parameters, visits: int, salt: int) -> Known | None:
        """Begin a search of so many visits in tree t; what the cache has of its root, for `set_root`.

        `salt` (64 bits) is drawn from all that an evaluation depends on beside its position: network, rules, and the
        seed of symmetries.
        """
        tree, roots = self.trees[t], self._roots
        tree.reset()
        if parameters is not tree.parameters:
            tree.parameters = parameters
            tree.record[:] = parameters.record()
        tree.place(position)
        tree.plan(visits)
        _put(roots.positions, t, position.record)
        _put(roots.scratch, t, tree.scratch)
        self.wanted[t], roots.salts[t] = visits, salt
        place = self._meet(roots, self._cache, t)
        if place < 0:
            return None
        count = roots.leaves.counts[t]
        logits, answer = self._cache.logits[place : place + 1, :count], self._cache.answers[place]
        return Known(roots.leaves.moves[t, :count], logits, answer)

    def gather(self, chosen: NDArray[np.bool_], symmetries: NDArray[np.int64]) -> int:
        """Descend in each of the chosen trees (bool [T]) until a leaf is to be evaluated; how many there are.

        They stand in the first rows of `batch`, each under one of `symmetries`. A tree without a row has come to ends
        of games instead, which count as visits, as positions do that the cache has; or it is done.
        """
        return int(
            self._gather(self.arrays, self._roots, self.batch, self._cache, NO_RANDOM, chosen, self.wanted, symmetries)
        )

    def expand(self, policy: NDArray[np.float32], answers: NDArray[np.float32]) -> None:
        """Add a batch's answers, as `keima.search.expand.expand`, except those of roots; and keep them all."""
        expand_trees(self.arrays, self.batch, policy, answers, self._cache)

    def fresh(self) -> NDArray[np.int64]:
        """The trees whose leaf under way is their root."""
        rows = self.batch.rows
        found: NDArray[np.int64] = np.flatnonzero((rows >= 0) & (self.batch.leaves.nodes[rows] == 0))
        return found

    def done(self) -> NDArray[np.int64]:
        """The trees that have made their visits, or are proven."""
        root = self.arrays.nodes[:, 0]
        solved = (root["lower"] == root["upper"]) & (root["state"] != FRESH)
        found: NDArray[np.int64] = np.flatnonzero((self.wanted > 0) & ((root["visits"] >= self.wanted) | solved))
        return found


def _put(records: Records, t: int, record: Records) -> None:
    """Copy a record as bytes: NumPy would copy field by field."""
    records[t : t + 1].view(np.uint8)[:] = record.view(np.uint8)


@njit
def tree_of(forest: TreeArrays, t: int) -> TreeArrays:
    """Tree t of the arrays of T trees."""
    return TreeArrays(
        forest.nodes[t],
        forest.edge_moves[t],
        forest.edge_priors[t],
        forest.table[t],
        forest.heads[t],
        forest.roots[t],
        forest.parameters[t],
    )


begin = result = legal_moves = key = gather = of_the_game


def evaluation_key(position: Record, scratch: Record, salt: np.uint64) -> np.uint64:
    """A key of all that an evaluation depends on."""
    own = key(position, scratch, HISTORY)
    return chain(salt, own) if own != NO_KEY else NO_KEY


def meet_root(roots: Roots, cache: EvaluationCache, t: int) -> int:
    """Write root t's moves and key; its place in the cache, or −1."""
    position, scratch = roots.positions[t], roots.scratch[t]
    begin(scratch)
    result(position, scratch)
    roots.leaves.counts[t] = legal_moves(position, scratch, roots.leaves.moves[t])
    roots.keys[t] = evaluation_key(position, scratch, roots.salts[t])
    return recall(cache, roots.keys[t])


def gather_trees(
    forest: TreeArrays,
    roots: Roots,
    batch: Gathered,
    cache: EvaluationCache,
    random: Random,
    chosen: NDArray[np.bool_],
    wanted: NDArray[np.int32],
    available: NDArray[np.int64],
) -> int:
    """See `Forest.gather`; `forest` is T trees' arrays, `available` are the symmetries."""
    found = 0
    for t in range(len(chosen)):
        batch.rows[t] = -1
        if not chosen[t] or wanted[t] == 0:
            continue
        tree, leaves = tree_of(forest, t), rows_of(batch.leaves, found)
        if tree.nodes[0].state == FRESH:
            batch.positions[found] = roots.positions[t]
            leaves.nodes[0] = 0
            leaves.counts[0] = roots.leaves.counts[t]
            leaves.moves[0] = roots.leaves.moves[t]
            batch.keys[found] = roots.keys[t]
        else:
            descents = Descents(
                roots.positions[t : t + 1], roots.scratch[t : t + 1], batch.positions[found : found + 1]
            )
            place = 0
            while place >= 0:
                if gather(tree, descents, leaves, random, 0, 1, wanted[t] - tree.nodes[0].visits)[0] == 0:
                    break
                batch.keys[found] = evaluation_key(descents.leaves[0], descents.scratch[0], roots.salts[t])
                place = recall(cache, batch.keys[found])
                if place >= 0:
                    for k in range(leaves.counts[0]):
                        leaves.indices[0, k] = k
                    expand(tree, leaves, cache.logits[place : place + 1], cache.answers[place : place + 1], 0, 1)
            if place >= 0:  # no leaf waits
                continue
        batch.rows[t] = found
        draw = chain(batch.keys[found] if batch.keys[found] != NO_KEY else roots.salts[t], 1) >> np.uint64(40)
        batch.symmetries[found] = available[np.int64(draw % np.uint64(len(available)))]
        found += 1
    return found


@functools.cache
def _kernels_of(game: str) -> tuple[Any, Any]:
    """`meet_root` and `gather_trees` with a game's kernels."""
    kernels = get_game(game).kernels
    keyed = instantiate(evaluation_key, f"evaluation_key_{game}", key=kernels.key)
    names = {name: getattr(kernels, name) for name in ("begin", "result", "legal_moves")}
    meet = instantiate(meet_root, f"meet_root_{game}", evaluation_key=keyed, **names)
    gather = gather_of(game, None)
    return meet, instantiate(gather_trees, f"gather_trees_{game}", evaluation_key=keyed, gather=gather)


@njit
def rows_of(leaves: Leaves, row: int) -> Leaves:
    """Leaves from some row on."""
    return Leaves(leaves.nodes[row:], leaves.moves[row:], leaves.counts[row:], leaves.indices[row:])


@njit
def expand_trees(
    forest: TreeArrays,
    batch: Gathered,
    policy: NDArray[np.float32],
    answers: NDArray[np.float32],
    cache: EvaluationCache,
) -> None:
    """Add the leaf of every tree that has one, but for roots, which are `set_root`'s; and keep the evaluations."""
    for t in range(len(batch.rows)):
        row = batch.rows[t]
        if row < 0:
            continue
        keep(cache, batch.keys[row], batch.leaves, policy, answers, row)
        if batch.leaves.nodes[row] != 0:
            expand(tree_of(forest, t), batch.leaves, policy, answers, row, row + 1)
