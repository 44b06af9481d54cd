"""Searching in one call: a position, or many whose trees share batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from keima.errors import BadRequest, KeimaError
from keima.search.limits import Limits
from keima.search.pipeline import Pipeline, Planted, leaves_wanted
from keima.search.planting import Wanted, leaves_for, plant_roots, rollout_weights, with_or_without_value
from keima.search.presets import Parameters, find_preset
from keima.search.report import make_result
from keima.search.result import SearchResult
from keima.search.search import DEFAULT_MEMORY, Search
from keima.search.storage import Tree

DEFAULT_VISITS = 800
"""Of a search that is given neither visits nor seconds."""


def search(
    evaluator: Any,
    position: Any,
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
    evaluator: Any,
    positions: Sequence[Any],
    visits: int = DEFAULT_VISITS,
    preset: str | Parameters = "auto",
    *,
    batch_size: int | None = None,
    seed: int = 0,
    memory: int = DEFAULT_MEMORY,
    **overrides: float,
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
    encoding = evaluator.network.encoding
    for index, position in enumerate(positions):
        try:
            encoding.check(position)
        except KeimaError as error:
            raise error.at(place=f"position {index}") from None
    parameters = with_or_without_value(find_preset(preset, evaluator.network.system, overrides), evaluator.network)
    weights = rollout_weights(parameters, None)
    size = int(evaluator.batch_size if batch_size is None else batch_size)
    if size < 1:
        raise BadRequest(f"batch_size must be at least 1, not {size}")
    rng = np.random.default_rng(seed)
    results: dict[int, SearchResult] = {}
    waiting = list(range(len(positions)))
    while waiting:
        leaves = leaves_for(encoding, positions[waiting[0]], max(size, 8))
        if weights is not None:
            leaves.use_playouts(weights, rng.integers(1, 2**63, 1, np.uint64))
        group = [k for k in waiting if leaves.fits(positions[k])]
        waiting = [k for k in waiting if k not in set(group)]
        pipeline = Pipeline(evaluator, leaves, parameters, size, rng)
        side_by_side = _SideBySide(pipeline, [positions[k] for k in group], parameters, memory // len(positions), rng)
        results.update(zip(group, side_by_side.run(visits), strict=True))
    return [results[k] for k in range(len(positions))]


class _SideBySide:
    """Trees on positions of one kind, searched in turns."""

    def __init__(
        self, pipeline: Pipeline, positions: list[Any], parameters: Parameters, memory: int, rng: np.random.Generator
    ) -> None:
        self._pipeline = pipeline
        self._positions = positions
        leaves = pipeline.leaves
        self._trees = [
            Planted(Tree(parameters, memory), leaves.root_of(position), leaves.side(position)) for position in positions
        ]
        self._answers = plant_roots(pipeline, self._trees, positions, parameters, rng, Wanted(), threading.Lock())
        self._ended = [""] * len(positions)
        self._next = 0

    def run(self, visits: int) -> list[SearchResult]:
        """Search each tree to that many visits."""
        began = time.perf_counter()
        while True:
            wishes = self._wishes(visits)
            found = made = 0
            if wishes and self._pipeline.has_room:
                found, made = self._pipeline.start(wishes)
            if not found or not self._pipeline.has_room:
                if not self._pipeline.is_empty:
                    self._pipeline.finish()
                elif not made:
                    break
        seconds = time.perf_counter() - began
        return [
            make_result(planted.tree, position, self._pipeline.leaves, answer, None, seconds, ended or "solved")
            for planted, position, answer, ended in zip(
                self._trees, self._positions, self._answers, self._ended, strict=True
            )
        ]

    def _wishes(self, visits: int) -> list[tuple[Planted, int, int]]:
        """What each tree not done yet would like to add to the next batch, beginning where the last one left off."""
        open_trees = []
        for step in range(len(self._trees)):
            k = (self._next + step) % len(self._trees)
            planted = self._trees[k]
            if not self._ended[k]:
                self._ended[k] = self._ends(planted.tree, visits)
            if not self._ended[k]:
                open_trees.append(k)
        if not open_trees:
            return []
        share = -(-self._pipeline.batch_size // len(open_trees))
        wishes = []
        room = self._pipeline.batch_size
        for k in open_trees:
            planted = self._trees[k]
            wanted = min(leaves_wanted(planted, self._pipeline.batch_size), share)
            quota = visits - planted.tree.visits - planted.pending
            if wanted > 0 and quota > 0 and room > 0:
                wishes.append((planted, wanted, quota))
                room -= min(wanted, quota)
                self._next = k + 1
        return wishes

    def _ends(self, tree: Tree, visits: int) -> str:
        """What ends one tree's search now, or ""."""
        if tree.visits >= visits:
            return "visits"
        if tree.solved or tree.roots["count"][0] == 0:
            return "solved"
        return "" if tree.reserve(self._pipeline.batch_size) else "memory"
