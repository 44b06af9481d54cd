"""The stream of batches between trees and the network: leaves are gathered while earlier ones are evaluated."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.encodings.encoding import Array
from keima.networks.network import Heads
from keima.search.presets import Parameters
from keima.search.report import Ownership
from keima.search.slots import Slots
from keima.search.storage import Tree
from keima.search.tree import DRAW, LEAD, MOVES_LEFT, SCORE, SCORE_SQ, VALUE, cancel, expand

BATCHES_IN_FLIGHT = 2
"""Batches under way at once: one is evaluated while the other is gathered or read."""

_SLOW = 0.02
"""Seconds a batch takes from which on its answer is awaited in a thread, so that `stop` need not wait for it."""


@dataclass
class Planted:
    """A tree with the records its descents start from, and where its ownership is summed up."""

    tree: Tree
    root: tuple[Array, ...]
    side: int
    ownership: Ownership | None = None
    pending: int = 0


@dataclass
class _Flight:
    """A batch under way, and which of its rows are whose."""

    handle: Any
    slots: Slots
    shares: list[tuple[Planted, int, int]]
    symmetries: NDArray[np.int64]
    started: float
    sides: list[int] = field(default_factory=list)


class Pipeline:
    """Gathers leaves into batches, submits them, adds the answers to the trees in the order they were submitted.

    Args:
        evaluator: `Evaluator`, or anything with its `submit`.
        leaves: of the game (`GoLeaves`, `ChessLeaves`).
        parameters: of the search.
        batch_size: most leaves of one batch.
        rng: of the symmetries.
    """

    def __init__(
        self, evaluator: Any, leaves: Any, parameters: Parameters, batch_size: int, rng: np.random.Generator
    ) -> None:
        self.leaves = leaves
        self.batch_size = batch_size
        self.seconds_a_batch = 0.0
        self._evaluator = evaluator
        self._parameters = parameters
        self._rng = rng
        self._flights: deque[_Flight] = deque()
        self._spare = [Slots(batch_size, leaves.max_moves) for _ in range(BATCHES_IN_FLIGHT)]
        self._waiter: ThreadPoolExecutor | None = None

    @property
    def has_room(self) -> bool:
        """Can another batch be started?"""
        return bool(self._spare)

    @property
    def is_empty(self) -> bool:
        """Is nothing under way?"""
        return not self._flights

    def start(self, wishes: Sequence[tuple[Planted, int, int]]) -> tuple[int, int]:
        """Gather a batch and submit it.

        Args:
            wishes: (tree, leaves wanted of it, visits it may still make) of each tree.

        Returns:
            (leaves submitted, visits made on the way)
        """
        slots = self._spare.pop()
        shares, filled, made = [], 0, 0
        for planted, wanted, quota in wishes:
            wanted = min(wanted, self.batch_size - filled)
            if wanted <= 0 or quota <= 0:
                continue
            found, done = self.leaves.gather(planted.tree, planted.root, slots, filled, wanted, quota)
            made += done
            if found:
                planted.pending += found
                shares.append((planted, filled, filled + found))
                filled += found
        if not filled:
            self._spare.append(slots)
            return 0, made
        symmetries = self._symmetries(filled)
        batch = self.leaves.encode(slots, filled, symmetries, self._parameters.policy_optimism)
        handle = self._evaluator.submit(batch)
        self._flights.append(_Flight(handle, slots, shares, symmetries, time.perf_counter()))
        return filled, made

    def _symmetries(self, n: int) -> NDArray[np.int64]:
        """A random symmetry for each leaf; on oblong boards all keep its shape."""
        most = self.leaves.symmetries
        if most == 1 or not self._parameters.random_symmetry:
            return np.zeros(n, np.int64)
        return self._rng.integers(0, most, n)

    def finish(self, stopped: threading.Event | None = None, lock: Any = None) -> bool:
        """Add the oldest batch's answers to its trees; False where `stopped` was set before they came.

        Args:
            stopped: gives up waiting when set.
            lock: held while trees change.
        """
        flight = self._flights[0]
        heads = self._await(flight, stopped)
        if heads is None:
            return False
        self._flights.popleft()
        seconds = time.perf_counter() - flight.started
        self.seconds_a_batch = seconds if not self.seconds_a_batch else 0.8 * self.seconds_a_batch + 0.2 * seconds
        if lock is None:
            self._add(flight, heads)
        else:
            with lock:
                self._add(flight, heads)
        self._spare.append(flight.slots)
        return True

    def _await(self, flight: _Flight, stopped: threading.Event | None) -> Heads | None:
        """The batch's heads; None if `stopped` is set first."""
        if stopped is None or 0 < self.seconds_a_batch < _SLOW:
            return flight.handle.result()
        if self._waiter is None:
            self._waiter = ThreadPoolExecutor(1, "keima-search")
        future: Future[Heads] = self._waiter.submit(flight.handle.result)
        wake = threading.Event()
        future.add_done_callback(lambda _: wake.set())
        while not wake.wait(0.01):
            if stopped.is_set():
                return None
        return future.result()

    def _add(self, flight: _Flight, heads: Heads) -> None:
        policy = np.ascontiguousarray(heads.policy, dtype=np.float32)
        answers = answers_of(heads)
        slots = flight.slots
        for planted, first, end in flight.shares:
            nodes, edge_moves, edge_priors, table, head, _, p = planted.tree.arrays
            expand(
                nodes,
                edge_moves,
                edge_priors,
                table,
                head,
                p,
                slots.nodes[first:end],
                slots.moves[first:end],
                slots.indices[first:end],
                slots.counts[first:end],
                policy,
                answers,
                first,
            )
            planted.pending -= end - first
            if planted.ownership is not None and heads.ownership is not None:
                self._add_ownership(planted, flight, heads.ownership, first, end)

    def _add_ownership(self, planted: Planted, flight: _Flight, ownership: Array, first: int, end: int) -> None:
        sides = planted.tree.nodes["side"]
        for row in range(first, end):
            points = self.leaves.restore(ownership[row], int(flight.symmetries[row]))
            same = sides[flight.slots.nodes[row]] == planted.side
            planted.ownership.add(points, 1.0 if same else -1.0)  # type: ignore[union-attr]

    def drain(self) -> None:
        """Wait for everything under way."""
        while self._flights:
            self.finish()

    def abandon(self) -> None:
        """Take everything under way back from the trees; answers that still come are not looked at."""
        while self._flights:
            flight = self._flights.popleft()
            for planted, first, end in flight.shares:
                cancel(planted.tree.nodes, flight.slots.nodes[first:end])
                planted.pending -= end - first
            self._spare.append(flight.slots)

    def close(self) -> None:
        """Let the waiting thread go."""
        if self._waiter is not None:
            self._waiter.shutdown(wait=False)
            self._waiter = None

    def evaluate_roots(
        self, roots: Sequence[tuple[Array, ...]], symmetries: NDArray[np.int64], optimism: float
    ) -> tuple[Slots, Heads]:
        """Evaluate roots, each under a symmetry: their moves with policy indices, and the heads, row by row."""
        slots = Slots(len(roots), self.leaves.max_moves)
        for row, root in enumerate(roots):
            self.leaves.put_root(root, slots, row)
        batch = self.leaves.encode(slots, len(roots), symmetries, optimism)
        return slots, self._evaluator.submit(batch).result()


def leaves_wanted(planted: Planted, batch_size: int) -> int:
    """How many leaves of a tree the next batch may have: few while it has few visits."""
    p = planted.tree.parameters
    most = int(max(p.min_in_flight, p.in_flight_share * planted.tree.visits))
    return max(0, min(batch_size, -(-most // BATCHES_IN_FLIGHT), most - planted.pending))


def answers_of(heads: Heads) -> NDArray[np.float32]:
    """A batch's numbers for the tree: float32 [N, 6], columns VALUE … MOVES_LEFT; 0 where the network has none."""
    answers = np.zeros((len(heads.policy), 6), np.float32)
    if heads.value is not None:
        answers[:, VALUE] = heads.value
    if heads.wdl is not None:
        answers[:, DRAW] = heads.wdl[:, 1]
    if heads.lead is not None:
        mean = heads.extra.get("score_mean", heads.lead)
        stdev = heads.extra.get("score_stdev")
        answers[:, SCORE] = mean
        answers[:, SCORE_SQ] = np.square(mean) + (np.square(stdev) if stdev is not None else 0.0)
        answers[:, LEAD] = heads.lead
    if heads.moves_left is not None:
        answers[:, MOVES_LEFT] = heads.moves_left
    return answers
