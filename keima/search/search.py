"""Monte Carlo tree search over an evaluator: one position at a time, kept from move to move.

search = Search(evaluator)                      # the preset of the network's system
search.set_position(position)
result = search.run(Limits(visits=800))
move = search.choose()
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from keima.errors import BadRequest
from keima.games.game import get_game
from keima.games.position import Position
from keima.search.batches import BatchesInFlight, RootedTree, SearchEvaluator, Share, share_of
from keima.search.limits import Limits, budget
from keima.search.memory import Tree
from keima.search.report import (
    Ownership,
    RootAnswer,
    SearchResult,
    best_by_policy,
    choose_edge,
    make_result,
    root_table,
)
from keima.search.root import Considered, prepare_roots
from keima.search.tree import FRESH, OPEN, UTILITY_MEAN, VISITS
from keima.systems.parameters import Choice, Number, Parameters
from keima.systems.playouts import PlayoutPolicy
from keima.systems.presets import parameters_for

DEFAULT_MEMORY = 1 << 30


class Search:
    """A search that lasts: it keeps its tree from one run to the next and from move to move.

    Single-threaded towards its tree and seeded, it repeats exactly: the same calls give the same tree, whatever the
    machine's speed, unless a limit of time or `stop` ends a run. Batches are submitted while earlier ones are computed;
    leaves under way carry virtual loss. How many may be under way grows with the visits made
    (`Parameters.in_flight_share`), so that a search of few visits is not spoilt by guesses.

    Args:
        evaluator: `Evaluator`, or anything with its `network`, `encoding`, `batch_size` and `submit`; the options bound
            to it hold but for those that are numbers of the search.
        preset: "auto" (the network's own system), the name of another system, or `Parameters`.
        batch_size: most leaves evaluated together; None: the evaluator's.
        seed: of everything random.
        memory: bytes the tree may take; a search that reaches them ends with `stopped_by` "memory".
        rollout_policy: plays leaves out where the preset wants that (AlphaGo); None: one that knows no pattern.
        overrides: parameters in place of the preset's, by name.

    Raises:
        BadRequest: an unknown preset or parameter, a number out of range, or one this network has no use for.
        UnsupportedNetwork: a network whose heads are not enough for this search.
    """

    def __init__(
        self,
        evaluator: SearchEvaluator,
        preset: str | Parameters = "auto",
        *,
        batch_size: int | None = None,
        seed: int = 0,
        memory: int = DEFAULT_MEMORY,
        rollout_policy: PlayoutPolicy | None = None,
        **overrides: Number,
    ) -> None:
        self.evaluator = evaluator
        self.parameters = parameters_of(evaluator, preset, overrides)
        self.batch_size = int(evaluator.batch_size if batch_size is None else batch_size)
        if self.batch_size < 1:
            raise BadRequest(f"batch_size must be at least 1, not {self.batch_size}")
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._policy = rollout_policy
        self._tree = Tree(self.parameters, memory)
        self._lock = threading.Lock()
        self._busy = threading.Lock()
        self._stop = threading.Event()
        self._position: Position | None = None
        self._batches: BatchesInFlight | None = None
        self._rooted: RootedTree | None = None
        self._answer: RootAnswer | None = None
        self._considered: Considered | None = None
        self._ownership: Ownership | None = None
        self._began = time.perf_counter()
        self._seconds = 0.0
        self._stopped_by = "running"

    @property
    def position(self) -> Position | None:
        """The root; None before `set_position`."""
        return self._position

    @property
    def tree(self) -> Tree:
        """The tree itself, open to look at between runs: see `keima.search.tree` for its fields."""
        return self._tree

    def move_name(self, code: int, side: int) -> str:
        """What a move of the tree is called, made by `side` as nodes hold it ("Q16", "pass", "e2e4").

        Raises:
            BadRequest: no position set.
        """
        _, rooted = self._ready()
        return rooted.name(code, side)

    def clear(self) -> None:
        """Forget the tree and the position, and start the random numbers anew."""
        with self._not_running(), self._lock:
            self._forget()
            self._position = None
            self._rng = np.random.default_rng(self._seed)

    def _forget(self) -> None:
        """An empty tree, whose root is to be evaluated."""
        self._tree.reset()
        self._answer = None
        self._considered = None
        self._ownership = None

    @contextmanager
    def _not_running(self) -> Iterator[None]:
        """A stretch in which no other run is under way.

        Raises:
            BadRequest: one is.
        """
        if not self._busy.acquire(blocking=False):
            raise BadRequest("a search is running; stop it first")
        try:
            yield
        finally:
            self._busy.release()

    def set_position(self, position: Position) -> None:
        """Search this position from now on; what was found of it before is kept where it continues the old one.

        Raises:
            UnsupportedPosition: the network cannot take it.
            BadRequest: a run is under way.
        """
        self.evaluator.encoding.check(position)
        with self._not_running(), self._lock:
            self._stop.clear()
            if not self._keeps(position):
                self._forget()
            self._position = position
            self._rooted = RootedTree(self._tree, position)
            self._rooted.ownership = self._ownership
            if self._batches is None or not self._batches.fits(position):
                self._batches = BatchesInFlight(
                    self.evaluator, position, self.parameters, self.batch_size, self._rng, self._policy
                )
            self._seconds = 0.0

    def set_evaluator(self, evaluator: SearchEvaluator) -> None:
        """Ask another binding of the same network from now on, and forget what was found.

        Raises:
            BadRequest: a run is under way.
        """
        with self._not_running(), self._lock:
            self.evaluator = evaluator
            self._forget()
            self._batches = None
            position = self._position
        if position is not None:
            self.set_position(position)

    def _keeps(self, position: Position) -> bool:
        """Move the root along to `position` if the tree has it; False if it does not."""
        old = self._position
        if old is None or old.game != position.game or self._tree.is_fresh:
            return False
        kernels = get_game(position.game).kernels
        names = kernels.moves_between(old, position)
        if names is None:
            return False
        if not names:
            return True
        node, at = 0, old
        for name in names:
            node = self._tree.child(node, kernels.code(at, name))
            if node < 0:
                return False
            at = at.play(name)
        nodes = self._tree.nodes
        if nodes["state"][node] == FRESH or (nodes["state"][node] != OPEN and nodes["child"][node] < 0):
            return False
        self._tree.reroot(node)
        nodes["state"][0] = OPEN
        self._answer = None
        self._considered = None
        self._ownership = None
        return True

    def _ready(self) -> tuple[BatchesInFlight, RootedTree]:
        """The batches and the tree with its root; there is a position.

        Raises:
            BadRequest: there is none.
        """
        if self._batches is None or self._rooted is None or self._position is None:
            raise BadRequest("set_position first")
        return self._batches, self._rooted

    def stop(self) -> None:
        """End the run under way within 50 ms (with a CPU backend that computes at once: after its batch). Any thread.

        Called between `set_position` and `run`, it ends that run at once.
        """
        self._stop.set()

    def run(
        self,
        limits: Limits,
        *,
        on_update: Callable[[SearchResult], None] | None = None,
        update_seconds: float = 1.0,
        allow_moves: Collection[str] | None = None,
        avoid_moves: Collection[str] | None = None,
        ownership: bool = False,
    ) -> SearchResult:
        """Search until a limit is reached or `stop` is called.

        Args:
            limits: what ends the run.
            on_update: called from this thread about every `update_seconds` with the result so far.
            update_seconds: see there.
            allow_moves: consider only these moves at the root.
            avoid_moves: do not consider these.
            ownership: average the network's ownership over the positions evaluated.

        Raises:
            BadRequest: no position set, a run already under way, a move that is not legal here, no move left to
                consider, ownership of a network that has none.
        """
        batches, _ = self._ready()
        with self._not_running():
            self._began = time.perf_counter()
            self._stopped_by = "running"
            self._tree.start_counting()
            try:
                self._prepare(allow_moves, avoid_moves, ownership)
                self._stopped_by = self._loop(limits, on_update, update_seconds)
            finally:
                if not batches.is_empty:
                    with self._lock:
                        batches.abandon()
                self._stop.clear()
                self._seconds = time.perf_counter() - self._began
        return self.result()

    def _prepare(self, allow: Collection[str] | None, avoid: Collection[str] | None, ownership: bool) -> None:
        """Evaluate the root and set up its moves, unless that is done."""
        batches, rooted = self._ready()
        considered = Considered(frozenset(allow) if allow is not None else None, frozenset(avoid or ()))
        fresh_ownership = ownership and self._ownership is None
        if considered == self._considered and not fresh_ownership:
            return
        if fresh_ownership:
            self._ownership = Ownership()
        rooted.ownership = self._ownership
        (self._answer,) = prepare_roots(batches, [rooted], self.parameters, self._rng, considered, self._lock)
        self._considered = considered

    def _loop(self, limits: Limits, on_update: Callable[[SearchResult], None] | None, update_seconds: float) -> str:
        """Gather and add batches until something ends it; what did."""
        (batches, rooted), tree = self._ready(), self._tree
        deadline = _Deadline(limits, rooted.position, self._began)
        next_update = self._began + update_seconds
        while True:
            reason = self._reason(limits, deadline)
            if reason:
                return self._land(reason)
            quota = (limits.visits or 1 << 60) - tree.visits - rooted.pending
            found = made = 0
            if batches.has_room and quota > 0:
                with self._lock:
                    has_memory = tree.reserve(self.batch_size)
                    if has_memory:
                        found, made = batches.start([Share(rooted, share_of(rooted, self.batch_size), quota)])
                if not has_memory:
                    return self._land("memory")
            if not found or not batches.has_room:
                if not batches.is_empty:
                    if not batches.finish(self._stop, self._lock):
                        return "stopped"
                elif not made:
                    return "solved"
            if on_update is not None and time.perf_counter() >= next_update:
                on_update(self.result())
                next_update = time.perf_counter() + update_seconds

    def _land(self, reason: str) -> str:
        """End the run; what is under way is waited for, unless it was stopped."""
        batches, _ = self._ready()
        while reason != "stopped" and not batches.is_empty:
            if not batches.finish(self._stop, self._lock):
                break
        return reason

    def _reason(self, limits: Limits, deadline: _Deadline) -> str:
        """What ends the run now, or ""."""
        tree = self._tree
        if self._stop.is_set():
            return "stopped"
        if limits.visits is not None and tree.visits >= limits.visits:
            return "visits"
        if tree.roots["count"][0] == 0 or tree.solved:
            return "solved"
        batches, _ = self._ready()
        left = deadline.left(batches.seconds_a_batch)
        if left <= 0 and deadline.stretch and self._is_unsettled():
            left = deadline.left(batches.seconds_a_batch, stretched=True)
        if left <= 0:
            return deadline.name
        if limits.early_stop and self._cannot_change(limits, left):
            return "early"
        return ""

    def _is_unsettled(self) -> bool:
        """Is another move thought better than the one with the most visits?"""
        table = root_table(self._tree)
        if not len(table.edges):
            return False
        visits, utility = table.rows[:, VISITS], table.rows[:, UTILITY_MEAN]
        often = visits >= 0.3 * visits.max()
        return bool(np.argmin(np.where(often, utility, np.inf)) != np.argmax(visits))

    def _cannot_change(self, limits: Limits, seconds_left: float) -> bool:
        """Would the same move be played whatever the visits that remain find?"""
        tree = self._tree
        visits = tree.visits
        remaining = float("inf")
        if limits.visits is not None:
            remaining = limits.visits - visits
        spent = time.perf_counter() - self._began
        if seconds_left < float("inf") and spent > 0.05:
            rate = int(tree.heads["descents"][0]) / spent
            remaining = min(remaining, rate * seconds_left * 1.2)
        root = tree.roots[0]
        count = int(root["count"])
        usable = root["allowed"][:count] == 1
        if np.count_nonzero(usable) == 1:
            return True
        if remaining == float("inf"):
            return False
        children = root["child"][:count][usable & (root["child"][:count] >= 0)]
        if not len(children):
            return False
        each = np.sort(tree.nodes["visits"][children])
        second = int(each[-2]) if len(each) > 1 else 0
        if int(each[-1]) - second <= remaining:
            return False
        if self.parameters.final_choice.choice != Choice.LCB:
            return True
        table = root_table(tree)
        return bool(np.argmax(table.value) == np.argmax(table.rows[:, VISITS]))

    def result(self) -> SearchResult:
        """The tree as it stands; while a run is under way from any thread.

        Raises:
            BadRequest: no position set.
        """
        _, rooted = self._ready()
        with self._lock:
            running = self._stopped_by == "running"
            seconds = time.perf_counter() - self._began if running else self._seconds
            return make_result(rooted, self._answer, seconds, self._stopped_by)

    def choose(self, temperature: float = 0.0) -> str:
        """The move to play: the best by the preset's rule, or with a temperature drawn with odds N^(1/temperature).

        Returns:
            The move, or "" where there is none.

        Raises:
            BadRequest: nothing was searched, or a temperature below 0.
        """
        if temperature < 0:
            raise BadRequest(f"temperature must be at least 0, not {temperature}")
        if self._answer is None or self._rooted is None:
            raise BadRequest("run the search first")
        with self._lock:
            table = root_table(self._tree)
            if not len(table.edges):
                return best_by_policy(self._rooted)
            edge = int(table.edges[choose_edge(table, temperature, self._rng)])
            return self._rooted.name(int(self._tree.roots[0]["move"][edge]), self._rooted.side)


class _Deadline:
    """When a run's time is up.

    Attributes:
        name: what to call the end: "seconds" or "clock".
        stretch: seconds by which it may be put off while the search is undecided (game clocks).
    """

    def __init__(self, limits: Limits, position: Position, began: float) -> None:
        self._began = began
        self._seconds = float("inf") if limits.seconds is None else limits.seconds
        self.name = "seconds"
        self.stretch = 0.0
        if limits.clock is None:
            return
        share = budget(limits.clock, get_game(position.game).playing.moves_to_come(position))
        if share.target < self._seconds:
            self.stretch = min(share.maximum, self._seconds) - share.target
            self._seconds = share.target
            self.name = "clock"

    def left(self, batch_seconds: float, stretched: bool = False) -> float:
        """Seconds until then, what is under way taken off."""
        seconds = self._seconds + (self.stretch if stretched else 0.0)
        return seconds - batch_seconds - (time.perf_counter() - self._began)


def parameters_of(evaluator: SearchEvaluator, preset: str | Parameters, overrides: Mapping[str, Number]) -> Parameters:
    """The parameters of a search by this evaluator; see `parameters_for`."""
    network = evaluator.network
    return parameters_for(preset, network.system, network.output_names, overrides)
