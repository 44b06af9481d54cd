"""Many trees of one game and board side by side, each with one leaf under way at most: what self-play searches in.

A tree's search is then that of one descent after the other, whatever is searched beside it: no virtual loss, no
guesses. Batches are as large as there are trees. `gather_trees` is a template as `keima.search.gather.gather` is.

Every search begins with an empty tree, as AlphaZero's pseudocode does (Science 362, 2018): nothing is kept from move to
move, and no tree grows beyond the visits it was made for.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.games.game import get_game
from keima.games.kernels import chain
from keima.games.position import Position
from keima.jit import Records, instantiate, njit
from keima.search.expand import Leaves, expand
from keima.search.gather import NO_RANDOM, Descents, Random, gather_of
from keima.search.tree import FRESH, LEAST_MEMORY, Tree, TreeArrays, new_arrays
from keima.systems.parameters import Parameters


class Forest:
    """T trees for searches of at most so many visits, and their root positions.

    Args:
        position: any of the game and board that all trees are of.
        parameters: of the search; each tree may get others by `begin`.
        visits: most of one search.
        count: T.

    Attributes:
        trees: each with `position`, `side` and so on as any `Tree`, in the arrays they share.
        wanted: int32 [T], the visits each search is to make; 0: the tree is asleep.
        rows: int32 [T], the row of each tree's leaf in the batch under way, −1 without one.
    """

    def __init__(self, position: Position, parameters: Parameters, visits: int, count: int) -> None:
        kernels = get_game(position.game).kernels
        edges = (visits + 1) * min(parameters.priors.edge_cap, kernels.max_moves)
        self.arrays = new_arrays((count,), visits + 3, edges, parameters)
        self.trees = [Tree(parameters, LEAST_MEMORY, TreeArrays(*(a[t] for a in self.arrays))) for t in range(count)]
        self.wanted = np.zeros(count, np.int32)
        self.rows = np.full(count, -1, np.int32)
        self.keys = np.zeros(count, np.uint64)
        self._roots = np.zeros(count, kernels.dtype)
        self._scratch = np.zeros(count, kernels.scratch)
        self._gather = _gather_trees_of(position.game)
        self.records = np.zeros(count, kernels.dtype)
        moves = count, kernels.max_moves
        nodes, counts = np.zeros((2, count), np.int32)
        self.leaves = Leaves(nodes, np.zeros(moves, np.int16), counts, np.zeros(moves, np.int32))
        self.symmetries = np.zeros(count, np.int64)

    def begin(self, t: int, position: Position, parameters: Parameters, visits: int, key: int) -> None:
        """Begin a search of so many visits in tree t; `key` (64 bits) is what its symmetries are drawn by."""
        tree = self.trees[t]
        tree.reset()
        if parameters is not tree.parameters:
            tree.parameters = parameters
            tree.record[:] = parameters.record()
        tree.place(position)
        tree.plan(visits)
        _put(self._roots, t, position.record)
        _put(self._scratch, t, tree.scratch)
        self.wanted[t], self.keys[t] = visits, key

    def gather(self, chosen: NDArray[np.bool_], symmetries: NDArray[np.int64]) -> int:
        """Descend once in each of the chosen trees (bool [T]) that is not done; how many leaves are to be evaluated.

        They stand in the first rows of `records`, `leaves` and `self.symmetries`, each of those drawn from
        `symmetries`. A tree without a row has come to ends of games instead, which count as visits, or is done.
        """
        return int(
            self._gather(
                self.arrays,
                Descents(self._roots, self._scratch, self.records),
                self.leaves,
                NO_RANDOM,
                chosen,
                self.wanted,
                self.keys,
                symmetries,
                self.rows,
                self.symmetries,
            )
        )

    def expand(self, policy: NDArray[np.float32], answers: NDArray[np.float32]) -> None:
        """Add a batch's answers, as `keima.search.expand.expand`, except those of roots."""
        expand_trees(self.arrays, self.leaves, policy, answers, self.rows)

    def fresh(self) -> NDArray[np.int64]:
        """The trees whose leaf under way is their root."""
        found: NDArray[np.int64] = np.flatnonzero((self.rows >= 0) & (self.leaves.nodes[self.rows] == 0))
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


def _of_the_game(*arguments: Any) -> Any:
    """Stands for a kernel of the game in the template."""
    raise NotImplementedError


begin = result = legal_moves = gather = _of_the_game


def gather_trees(
    forest: TreeArrays,
    descents: Descents,
    batch: Leaves,
    random: Random,
    chosen: NDArray[np.bool_],
    wanted: NDArray[np.int32],
    keys: NDArray[np.uint64],
    available: NDArray[np.int64],
    rows: NDArray[np.int32],
    symmetries: NDArray[np.int64],
) -> int:
    """See `Forest.gather`; `forest` is T trees' arrays, `descents.root` and `.scratch` are [T]."""
    found = 0
    for t in range(len(rows)):
        rows[t] = -1
        if not chosen[t] or wanted[t] == 0:
            continue
        tree = tree_of(forest, t)
        visits = tree.nodes[0].visits
        if tree.nodes[0].state == FRESH:
            descents.leaves[found] = descents.root[t]
            position, scratch = descents.leaves[found], descents.scratch[t]
            begin(scratch)
            result(position, scratch)
            batch.nodes[found] = 0
            batch.counts[found] = legal_moves(position, scratch, batch.moves[found])
        else:
            here = Descents(descents.root[t : t + 1], descents.scratch[t : t + 1], descents.leaves)
            leaves, _ = gather(tree, here, batch, random, found, 1, wanted[t] - visits)
            if leaves == 0:
                continue
        rows[t] = found
        draw = chain(keys[t], visits) >> np.uint64(40)
        symmetries[found] = available[np.int64(draw % np.uint64(len(available)))]
        found += 1
    return found


@cache
def _gather_trees_of(game: str) -> Any:
    """`gather_trees` with a game's kernels."""
    kernels = get_game(game).kernels
    names = {name: getattr(kernels, name) for name in ("begin", "result", "legal_moves")}
    return instantiate(gather_trees, f"gather_trees_{game}", gather=gather_of(game, None), **names)


@njit
def expand_trees(
    forest: TreeArrays,
    leaves: Leaves,
    policy: NDArray[np.float32],
    answers: NDArray[np.float32],
    rows: NDArray[np.int32],
) -> None:
    """Add the leaf of every tree (its row of the batch, −1: none) but for roots, which are `set_root`'s."""
    for t in range(len(rows)):
        row = rows[t]
        if row < 0 or leaves.nodes[row] == 0:
            continue
        tree = tree_of(forest, t)
        expand(tree, leaves, policy, answers, row, row + 1)
