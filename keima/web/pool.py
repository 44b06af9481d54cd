"""Searches of many sessions on one network: each has its own tree, all share batches, none waits for another to end.

One thread belongs to a pool and touches its trees; `start` and `Running.stop` may be called from any. What reports come
of a search are called on that thread; their time is measured, and they come no oftener than a small share of it allows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from keima.errors import KeimaError
from keima.games.position import Position
from keima.review.variations import CANDIDATES
from keima.search.batches import BatchesInFlight, Share, share_of
from keima.search.report import SearchResult, choose, make_result
from keima.search.root import Considered, prepare_roots
from keima.search.search import parameters_of
from keima.search.tree import Ownership, Tree

if TYPE_CHECKING:
    from keima.inference.evaluator import Evaluator

MEMORY = 1 << 28
"""Bytes one tree may take."""
REPORTING = 0.03
"""The share of a pool's time that reports of searches under way may take."""


@dataclass
class Ask:
    """A search that is wanted."""

    position: Position
    visits: int | None = None  # of the root; None: until it is stopped
    seconds: float | None = None
    ownership: bool = False
    every: float = 0.1  # seconds between reports
    temperature: float = 0.0  # of the move chosen
    profile: str | None = None
    on_update: Callable[[SearchResult], None] | None = None
    on_end: Callable[[Found], None] | None = None


@dataclass(frozen=True)
class Found:
    """How a search ended: its result and the move to play, or the error that ended it."""

    result: SearchResult | None = None
    move: str = ""
    error: BaseException | None = None


@dataclass(eq=False)
class Kept:
    """A tree that lives from one search to the next of the same session, network and profile."""

    tree: Tree | None = None
    lane: object = None  # the lane it belongs to


@dataclass(eq=False)
class Running:
    """A search under way."""

    ask: Ask
    kept: Kept
    pool: SearchPool
    began: float = 0.0
    before: int = 0  # visits the tree had
    next_update: float = 0.0
    ended_by: str = ""
    stopped: bool = False
    done: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """End it; `on_end` comes with what was found. Any thread."""
        self.stopped = True
        self.pool.wake()

    @property
    def tree(self) -> Tree:
        """Its tree, once it has begun."""
        assert self.kept.tree is not None
        return self.kept.tree


class _Lane:
    """Searches on boards of one shape with the same options: they share batches."""

    def __init__(self, evaluator: Evaluator, position: Position, rng: np.random.Generator) -> None:
        self.parameters = parameters_of(evaluator, "auto", {})
        self.batches = BatchesInFlight(evaluator, position, self.parameters, evaluator.batch_size, rng)
        self.running: list[Running] = []
        self.interrupt = threading.Event()
        self.report_seconds = 0.0
        self._rng = rng
        self._next = 0

    def begin(self, one: Running) -> None:
        """Put its position at the root of its tree and evaluate that."""
        kept, ask = one.kept, one.ask
        if kept.tree is None or kept.lane is not self:
            kept.tree, kept.lane = Tree(self.parameters, MEMORY), self
        tree = kept.tree
        tree.set_position(ask.position)
        fresh = ask.ownership and tree.ownership is None
        if fresh:
            tree.ownership = Ownership()
        if tree.answer is None or fresh:
            prepare_roots(self.batches, [tree], self._rng, Considered(), nullcontext())
        tree.start_counting()
        tree.plan(ask.visits or tree.visits + 800)
        one.began = time.perf_counter()
        one.before = tree.visits
        one.next_update = one.began
        self.running.append(one)

    def step(self) -> list[Running]:
        """Add to the batches or take one in; the searches that have ended."""
        self.interrupt.clear()
        now = time.perf_counter()
        for one in self.running:
            one.ended_by = one.ended_by or self._reason(one, now)
        if all(one.ended_by == "stopped" for one in self.running):
            self.batches.abandon()
        ended = [one for one in self.running if one.ended_by and not one.tree.pending]
        self.running = [one for one in self.running if one not in ended]
        shares = self._shares()
        found = made = 0
        if shares and self.batches.has_room:
            found, made = self.batches.start(shares)
        if not found or not self.batches.has_room:
            if not self.batches.is_empty:
                self.batches.finish(self.interrupt)
            elif shares and not made:
                for share in shares:
                    next(one for one in self.running if one.tree is share.tree).ended_by = "solved"
        self._report()
        return ended

    def _reason(self, one: Running, now: float) -> str:
        tree, ask = one.tree, one.ask
        if one.stopped:
            return "stopped"
        if ask.visits is not None and tree.visits >= ask.visits:
            return "visits"
        if tree.roots["count"][0] == 0 or tree.solved:
            return "solved"
        if ask.seconds is not None and now - one.began + self.batches.seconds_a_batch >= ask.seconds:
            return "seconds"
        return "" if tree.reserve(self.batches.batch_size) else "memory"

    def _shares(self) -> list[Share]:
        """What each search may add to the next batch, beginning where the last one left off."""
        size, going = self.batches.batch_size, [one for one in self.running if not one.ended_by]
        shares: list[Share] = []
        room = size
        for k in range(len(going)):
            place = (self._next + k) % len(going)
            one = going[place]
            leaves = min(share_of(one.tree, size), max(1, -(-size // len(going))))
            quota = (one.ask.visits or 1 << 60) - one.tree.visits - one.tree.pending
            if leaves > 0 and quota > 0 and room > 0:
                shares.append(Share(one.tree, leaves, quota))
                room -= min(leaves, quota)
            if room <= 0:
                self._next = place + 1
                break
        return shares

    def _report(self) -> None:
        for one in self.running:
            update = one.ask.on_update
            began = time.perf_counter()
            if update is None or one.ended_by or began < one.next_update or one.tree.visits <= one.before:
                continue
            update(one_result(one, "running", CANDIDATES))
            spent = time.perf_counter() - began
            self.report_seconds = 0.8 * self.report_seconds + 0.2 * spent if self.report_seconds else spent
            least = len(self.running) * min(self.report_seconds / REPORTING, 0.1)
            pause = max(one.ask.every, least)
            one.next_update = max(one.next_update + pause, began + pause / 2)  # so many a second, between batches


def one_result(one: Running, why: str, most: int | None = None) -> SearchResult:
    """What a search has found; with `most`, only the best moves."""
    return make_result(one.tree, time.perf_counter() - one.began, why, most)


class SearchPool:
    """The searches on one network.

    Args:
        evaluator: nobody else's.
        seed: of everything random.
    """

    def __init__(self, evaluator: Evaluator, seed: int = 0) -> None:
        self.evaluator = evaluator
        self._rng = np.random.default_rng(seed)
        self._changed = threading.Condition()
        self._coming: list[Running] = []
        self._lanes: dict[tuple[str | None, int], _Lane] = {}
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="searches", daemon=True)
        self._thread.start()

    def start(self, ask: Ask, kept: Kept | None = None) -> Running:
        """Begin a search, of the tree that is kept where there is one. Errors come to `on_end`."""
        running = Running(ask, kept or Kept(), self)
        with self._changed:
            self._coming.append(running)
            self._changed.notify()
        return running

    def wake(self) -> None:
        """Look again at what was stopped."""
        with self._changed:
            for lane in self._lanes.values():
                if all(one.stopped for one in lane.running):
                    lane.interrupt.set()
            self._changed.notify()

    @property
    def searching(self) -> int:
        """How many searches are under way."""
        return len(self._coming) + sum(len(lane.running) for lane in self._lanes.values())

    def close(self) -> None:
        """End all searches and the thread."""
        with self._changed:
            self._closed = True
            for lane in self._lanes.values():
                lane.interrupt.set()
            self._changed.notify()
        self._thread.join(5)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._closed and not self.searching:
                    self._changed.wait()
                if self._closed:
                    return
                coming, self._coming = self._coming, []
            for one in coming:
                self._begin(one)
            for key, lane in list(self._lanes.items()):
                try:
                    ended = lane.step() if lane.running else []
                except Exception as error:  # a fault of one lane is told, and ends its searches alone
                    self._lanes.pop(key)
                    for one in lane.running:
                        _end(one, Found(error=error))
                    continue
                for one in ended:
                    self._end(one)

    def _begin(self, one: Running) -> None:
        if one.stopped:
            _end(one, Found())
            return
        using = [other for lane in self._lanes.values() for other in lane.running if other.kept is one.kept]
        if using:  # its tree is still searched: that ends first
            for other in using:
                other.stopped = True
            with self._changed:
                self._coming.append(one)
            return
        try:
            self._lane(one.ask).begin(one)
        except Exception as error:
            _end(one, Found(error=error))

    def _lane(self, ask: Ask) -> _Lane:
        """The lane of a search; raises KeimaError where the network cannot take the position or the profile."""
        evaluator = self.evaluator
        if ask.profile is not None:
            evaluator = evaluator.bind(profile=ask.profile)
        evaluator.encoding.check(ask.position)
        for (profile, _), lane in self._lanes.items():
            if profile == ask.profile and lane.batches.fits(ask.position):
                return lane
        lane = _Lane(evaluator, ask.position, self._rng)
        if len(self._lanes) > 8:
            self._lanes = {key: one for key, one in self._lanes.items() if one.running}
        self._lanes[(ask.profile, id(lane))] = lane
        return lane

    def _end(self, one: Running) -> None:
        try:
            move = choose(one.tree, one.ask.temperature, self._rng) if one.tree.answer is not None else ""
            found = Found(one_result(one, one.ended_by), move)
        except KeimaError as error:
            found = Found(error=error)
        _end(one, found)


def _end(one: Running, found: Found) -> None:
    one.done.set()
    if one.ask.on_end is not None:
        one.ask.on_end(found)
