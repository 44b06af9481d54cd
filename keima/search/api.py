"""Searching in one call: a position, or many whose trees share batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from keima.errors import BadRequest, KeimaError
from keima.games.position import Position
from keima.search.batches import BatchesInFlight, RootedTree, SearchEvaluator, Share, share_of
from keima.search.limits import Limits
from keima.search.memory import Tree
from keima.search.report import SearchResult, make_result
from keima.search.root import Considered, prepare_roots
from keima.search.search import DEFAULT_MEMORY, Search, parameters_of
from keima.systems.parameters import Number, Parameters

DEFAULT_VISITS = 800
"""Of a search that is given neither visits nor seconds."""


def search(
    evaluator: SearchEvaluator,
    position: Position,
    visits: int | None = None,
    preset: str | Parameters = "auto",
    *,
    seconds: float | None = None,
    ownership: bool = False,
    **options: Any,
) -> SearchResult:
    """Search one position.

    Args:
        evaluator: `Evaluator`.
        position: of the network's game.
        visits: of the root; None: 800, or without end where `seconds` is given.
        preset: see `Search`.
        seconds: ends the search even if the visits are not made.
        ownership: average the network's ownership over the positions evaluated.
        options: further arguments of `Search`.

    Raises:
        UnsupportedPosition: the network cannot take the position.
        BadRequest: an unknown preset or option, visits below 1, seconds below 0.
    """
    if visits is None and seconds is None:
        visits = DEFAULT_VISITS
    one = Search(evaluator, preset, **options)
    one.set_position(position)
    return one.run(Limits(visits=visits, seconds=seconds), ownership=ownership)


def search_batch(
    evaluator: SearchEvaluator,
    positions: Sequence[Position],
    visits: int = DEFAULT_VISITS,
    preset: str | Parameters = "auto",
    *,
    batch_size: int | None = None,
    seed: int = 0,
    memory: int = DEFAULT_MEMORY,
    **overrides: Number,
) -> list[SearchResult]:
    """Search many positions side by side, each in a tree of its own, their leaves sharing batches.

    Every tree has only a few leaves under way, so its visits are worth nearly as much as one after the other. The same
    positions in the same order and the same seed give the same results.

    Args:
        evaluator: `Evaluator`.
        positions: of the network's game, of any sizes.
        visits: of each root.
        preset: see `Search`.
        batch_size: most leaves evaluated together; None: the evaluator's.
        seed: of everything random.
        memory: bytes all trees may take together.
        overrides: parameters in place of the preset's, by name.

    Returns:
        The results in the positions' order; `seconds` is each group's, of one board size.

    Raises:
        UnsupportedPosition: the network cannot take a position.
        BadRequest: an unknown preset or parameter, visits below 1, too little memory for so many trees.
    """
    if visits < 1:
        raise BadRequest(f"visits must be at least 1, not {visits}")
    for index, position in enumerate(positions):
        try:
            evaluator.encoding.check(position)
        except KeimaError as error:
            raise error.at(place=f"position {index}") from None
    parameters = parameters_of(evaluator, preset, overrides)
    size = int(evaluator.batch_size if batch_size is None else batch_size)
    if size < 1:
        raise BadRequest(f"batch_size must be at least 1, not {size}")
    rng = np.random.default_rng(seed)
    results: dict[int, SearchResult] = {}
    waiting = list(range(len(positions)))
    while waiting:
        batches = BatchesInFlight(evaluator, positions[waiting[0]], parameters, size, rng)
        group = [k for k in waiting if batches.fits(positions[k])]
        waiting = [k for k in waiting if k not in set(group)]
        trees = [RootedTree(Tree(parameters, memory // len(positions)), positions[k]) for k in group]
        results.update(zip(group, _SideBySide(batches, trees, parameters, rng).run(visits), strict=True))
    return [results[k] for k in range(len(positions))]


class _SideBySide:
    """Trees on positions of one board, searched in turns."""

    def __init__(
        self, batches: BatchesInFlight, trees: list[RootedTree], parameters: Parameters, rng: np.random.Generator
    ) -> None:
        self._batches = batches
        self._trees = trees
        self._answers = prepare_roots(batches, trees, parameters, rng, Considered(), threading.Lock())
        self._ended = [""] * len(trees)
        self._next = 0

    def run(self, visits: int) -> list[SearchResult]:
        """Search each tree to that many visits."""
        began = time.perf_counter()
        while True:
            shares = self._shares(visits)
            found = made = 0
            if shares and self._batches.has_room:
                found, made = self._batches.start(shares)
            if not found or not self._batches.has_room:
                if not self._batches.is_empty:
                    self._batches.finish()
                elif not made:
                    break
        seconds = time.perf_counter() - began
        return [
            make_result(rooted, answer, seconds, ended or "solved")
            for rooted, answer, ended in zip(self._trees, self._answers, self._ended, strict=True)
        ]

    def _shares(self, visits: int) -> list[Share]:
        """What each tree not done yet may add to the next batch, beginning where the last one left off."""
        open_trees = []
        for step in range(len(self._trees)):
            k = (self._next + step) % len(self._trees)
            if not self._ended[k]:
                self._ended[k] = self._ends(self._trees[k].tree, visits)
            if not self._ended[k]:
                open_trees.append(k)
        if not open_trees:
            return []
        most = -(-self._batches.batch_size // len(open_trees))
        shares = []
        room = self._batches.batch_size
        for k in open_trees:
            rooted = self._trees[k]
            leaves = min(share_of(rooted, self._batches.batch_size), most)
            quota = visits - rooted.tree.visits - rooted.pending
            if leaves > 0 and quota > 0 and room > 0:
                shares.append(Share(rooted, leaves, quota))
                room -= min(leaves, quota)
                self._next = k + 1
        return shares

    def _ends(self, tree: Tree, visits: int) -> str:
        """What ends one tree's search now, or ""."""
        if tree.visits >= visits:
            return "visits"
        if tree.solved or tree.roots["count"][0] == 0:
            return "solved"
        return "" if tree.reserve(self._batches.batch_size) else "memory"
