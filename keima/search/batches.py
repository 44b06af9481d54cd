"""Batches in flight between trees and the network: leaves are gathered while earlier ones are evaluated."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from keima.games.game import get_game
from keima.games.position import Position
from keima.jit import Records
from keima.search.expand import DRAW, LEAD, MOVES_LEFT, SCORE, SCORE_SQ, VALUE, Leaves, cancel, expand, new_leaves
from keima.search.gather import NO_RANDOM, Descents, Random, gather_of
from keima.search.tree import Tree
from keima.systems.encoding import Batch, Encoding, symmetries_of
from keima.systems.parameters import Parameters
from keima.systems.playouts import PlayoutPolicy
from keima.systems.presets import playouts_of

if TYPE_CHECKING:
    from keima.systems.network import Heads

BATCHES_IN_FLIGHT = 2
"""Batches under way at once: one is evaluated while the other is gathered or read."""

_NO_LOCK = nullcontext()
_SLOW = 0.02
"""Seconds a batch takes from which on its answer is awaited in a thread, so that `stop` need not wait for it."""


class _Answer(Protocol):
    def result(self) -> Heads: ...


class _Searched(Protocol):
    @property
    def system(self) -> str: ...
    @property
    def output_names(self) -> tuple[str, ...]: ...


class SearchEvaluator(Protocol):
    """What a search asks of an evaluator: `keima.Evaluator`, or what answers like it."""

    @property
    def network(self) -> _Searched:
        """Its network, as far as its system's name and those of its heads go."""

    @property
    def encoding(self) -> Encoding:
        """The network's, options bound."""

    @property
    def batch_size(self) -> int:
        """Positions it likes to evaluate together."""

    def submit(self, batch: Batch) -> _Answer:
        """Start a batch, whose `result()` waits for its heads."""


class Share(NamedTuple):
    """What one tree may add to a batch."""

    tree: Tree
    leaves: int  # at most
    visits: int  # it may still make


class _Room(NamedTuple):
    """Where a batch is gathered."""

    leaves: Leaves
    records: Records  # [capacity], their positions


@dataclass
class _InFlight:
    """A batch under way, and which of its rows are whose."""

    answer: _Answer
    room: _Room
    rows: list[tuple[Tree, int, int]]
    symmetries: NDArray[np.int64]
    started: float


class _Sent:
    """The answer of a batch that a thread encodes and submits."""

    def __init__(self, answer: Future[_Answer]) -> None:
        self._answer = answer

    def result(self) -> Heads:
        """Wait for the thread, then for the evaluator."""
        return self._answer.result().result()

    def settle(self) -> None:
        """Wait until the batch is submitted, or has failed."""
        wait([self._answer])


class BatchesInFlight:
    """Gathers leaves into batches, submits them, adds the answers to the trees in the order they were submitted.

    Where another device evaluates, a thread encodes batches and submits them, while this one goes on in the trees.

    Args:
        position: any position of the board that all trees are of.
        batch_size: most leaves of one batch.
        rng: of symmetries and playouts.
        policy: plays leaves out where the parameters want that; None: the default of the game.

    Attributes:
        capacity: most roots evaluated together.
        symmetries: int64 [k], those that keep the shape of the board.
        seconds_a_batch: a running mean.

    Raises:
        BadRequest: the parameters want playouts, and this game has none.
    """

    def __init__(
        self,
        evaluator: SearchEvaluator,
        position: Position,
        parameters: Parameters,
        batch_size: int,
        rng: np.random.Generator,
        policy: PlayoutPolicy | None = None,
    ) -> None:
        self.batch_size = batch_size
        self.capacity = max(batch_size, 8)
        self.seconds_a_batch = 0.0
        self._evaluator = evaluator
        self._parameters = parameters
        self._rng = rng
        self._position = position
        self._kernels = get_game(position.game).kernels
        self._encoding = _bound(evaluator.encoding, parameters.leaf_options)
        self._root_encoding = _bound(evaluator.encoding, parameters.root_options)
        self._shape = self._encoding.shape(position)
        self.symmetries = symmetries_of(self._encoding, position)
        self._random, self._play_out = NO_RANDOM, None
        if parameters.playouts.rollout_weight:
            playouts = playouts_of(position.game)
            weights = (policy or playouts.policy()).weights
            self._play_out = playouts.play_out
            self._random = Random(weights, rng.integers(1, 2**63, 1, np.uint64))
        self._gather = gather_of(position.game, self._play_out)
        self._in_flight: deque[_InFlight] = deque()
        self._spare = [self._new_room(batch_size) for _ in range(BATCHES_IN_FLIGHT)]
        self._waiter: ThreadPoolExecutor | None = None
        self._sender = None if getattr(evaluator, "device", "cpu") == "cpu" else ThreadPoolExecutor(1, "keima-send")

    def _new_room(self, capacity: int) -> _Room:
        return _Room(new_leaves(capacity, self._kernels.max_moves), np.zeros(capacity, self._kernels.dtype))

    def fits(self, position: Position) -> bool:
        """Can trees of this position share batches with the others?"""
        return position.game == self._position.game and self._encoding.shape(position) == self._shape

    @property
    def has_room(self) -> bool:
        """Can another batch be started?"""
        return bool(self._spare)

    @property
    def is_empty(self) -> bool:
        """Is nothing under way?"""
        return not self._in_flight

    def start(self, shares: Sequence[Share]) -> tuple[int, int]:
        """Gather a batch and submit it: (leaves submitted, visits made on the way)."""
        room = self._spare.pop()
        rows, filled, made = [], 0, 0
        for tree, wanted, visits in shares:
            wanted = min(wanted, self.batch_size - filled)
            if wanted <= 0 or visits <= 0:
                continue
            descents = Descents(tree.position.record, tree.scratch, room.records)
            found, done = self._gather(tree.arrays, descents, room.leaves, self._random, filled, wanted, visits)
            made += done
            if found:
                tree.pending += found
                rows.append((tree, filled, filled + found))
                filled += found
        if not filled:
            self._spare.append(room)
            return 0, made
        symmetries = np.zeros(filled, np.int64)
        if len(self.symmetries) > 1 and self._parameters.batches.random_symmetry:
            symmetries = self.symmetries[self._rng.integers(0, len(self.symmetries), filled)]
        send = partial(self._send, self._encoding, room, filled, symmetries)
        try:
            answer = send() if self._sender is None else _Sent(self._sender.submit(send))
        except BaseException:
            self._take_back(room, rows)
            raise
        self._in_flight.append(_InFlight(answer, room, rows, symmetries, time.perf_counter()))
        return filled, made

    def _send(self, encoding: Encoding, room: _Room, n: int, symmetries: NDArray[np.int64]) -> _Answer:
        """Submit the first n leaves' inputs, having written their moves' policy indices."""
        batch, leaves = encoding.room(n, self._shape), room.leaves
        encoding.write(room.records[:n], symmetries, batch)
        encoding.write_indices(leaves.moves[:n], leaves.counts[:n], symmetries, batch, leaves.indices[:n])
        return self._evaluator.submit(batch)

    def finish(self, stopped: threading.Event | None = None, lock: AbstractContextManager[object] = _NO_LOCK) -> bool:
        """Add the oldest batch's answers to its trees, locked; False where `stopped` was set before they came."""
        oldest = self._in_flight[0]
        heads = self._await(oldest, stopped)
        if heads is None:
            return False
        self._in_flight.popleft()
        seconds = time.perf_counter() - oldest.started
        self.seconds_a_batch = seconds if not self.seconds_a_batch else 0.8 * self.seconds_a_batch + 0.2 * seconds
        with lock:
            self._add(oldest, heads)
        self._spare.append(oldest.room)
        return True

    def _await(self, batch: _InFlight, stopped: threading.Event | None) -> Heads | None:
        """The batch's heads; None if `stopped` is set first."""
        if stopped is None or 0 < self.seconds_a_batch < _SLOW:
            return batch.answer.result()
        self._waiter = self._waiter or ThreadPoolExecutor(1, "keima-search")
        future = self._waiter.submit(batch.answer.result)
        while not wait([future], 0.01).done:
            if stopped.is_set():
                return None
        return future.result()

    def _add(self, batch: _InFlight, heads: Heads) -> None:
        policy = np.ascontiguousarray(heads.policy, dtype=np.float32)
        answers = answers_of(heads)
        for tree, first, end in batch.rows:
            expand(tree.arrays, batch.room.leaves, policy, answers, first, end)
            tree.pending -= end - first
            if tree.ownership is not None and heads.ownership is not None:
                sides = tree.nodes["side"][batch.room.leaves.nodes[first:end]]
                for row, side in zip(range(first, end), sides.tolist(), strict=True):
                    points = self.restore(heads.ownership[row], int(batch.symmetries[row]))
                    tree.ownership.add(points, 1.0 if side == tree.side else -1.0)

    def restore(self, points: NDArray[np.float32], symmetry: int) -> NDArray[np.float32]:
        """Turn a per-point output [H, W] of planes under a symmetry back to the board."""
        return self._encoding.restore(points, self._position, symmetry)

    def abandon(self) -> None:
        """Take everything under way back from the trees; answers that still come are not looked at."""
        while self._in_flight:
            batch = self._in_flight.popleft()
            if isinstance(batch.answer, _Sent):
                batch.answer.settle()  # its room is read until then
            self._take_back(batch.room, batch.rows)

    def _take_back(self, room: _Room, rows: Sequence[tuple[Tree, int, int]]) -> None:
        for tree, first, end in rows:
            cancel(tree.nodes, room.leaves.nodes[first:end])
            tree.pending -= end - first
        self._spare.append(room)

    def evaluate_roots(self, roots: Sequence[Tree], symmetries: NDArray[np.int64]) -> tuple[Leaves, Heads]:
        """Evaluate roots, each under a symmetry: their moves with policy indices, and the heads, row by row."""
        room = self._new_room(len(roots))
        leaves = room.leaves
        for row, tree in enumerate(roots):
            record = tree.position.record
            room.records[row : row + 1].view(np.uint8)[:] = record.view(np.uint8)
            self._kernels.result(record[0], tree.scratch[0])
            leaves.counts[row] = self._kernels.legal_moves(record[0], tree.scratch[0], leaves.moves[row])
        return leaves, self._send(self._root_encoding, room, len(roots), symmetries).result()

    def play_out_root(self, tree: Tree) -> float | None:
        """The result of one playout of a root for its side to move; None without playouts."""
        if self._play_out is None:
            return None
        return float(self._play_out(tree.position.record[0], self._random.weights[0], self._random.state))


def _bound(encoding: Encoding, options: Mapping[str, float]) -> Encoding:
    """The encoding with those of the options that it takes."""
    return encoding.bind(**{name: option for name, option in options.items() if name in encoding.options})


def share_of(tree: Tree, batch_size: int) -> int:
    """How many leaves of a tree the next batch may have: few while it has few visits."""
    p = tree.parameters.batches
    most = int(max(p.min_in_flight, p.in_flight_share * tree.visits))
    return max(0, min(batch_size, -(-most // BATCHES_IN_FLIGHT), most - tree.pending))


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
