"""Monte Carlo tree search over an evaluator: one position at a time, kept from move to move.

search = Search(evaluator)                      # the preset of the network's system
search.set_position(position)
result = search.run(Limits(visits=800))
move = search.choose()
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from keima.errors import BadRequest
from keima.search.clock import budget
from keima.search.limits import Limits
from keima.search.pipeline import Pipeline, Planted, leaves_wanted
from keima.search.planting import Wanted, leaves_for, plant_roots, rollout_weights, with_or_without_value
from keima.search.presets import CHOOSE_BY_LCB, Parameters, find_preset
from keima.search.report import Ownership, RootAnswer, choose_edge, make_result, root_table
from keima.search.result import SearchResult
from keima.search.storage import Tree
from keima.search.tree import FRESH, OPEN, UTILITY_MEAN, VISITS

DEFAULT_MEMORY = 1 << 30


class Search:
    """A search that lasts: it keeps its tree from one run to the next and from move to move.

    Single-threaded towards its tree and seeded, it repeats exactly: the same calls give the same tree, whatever the
    machine's speed, unless a limit of time or `stop` ends a run. Batches are submitted while earlier ones are computed;
    leaves under way carry virtual loss. How many may be under way grows with the visits made
    (`Parameters.in_flight_share`), so that a search of few visits is not spoilt by guesses.

    Args:
        evaluator: `Evaluator`, or anything with its `network`, `batch_size` and `submit`.
        preset: "auto" (the network's own system), "alphago", "alphago-zero", "katago", "lc0", or `Parameters`.
        batch_size: most leaves evaluated together; None: the evaluator's.
        seed: of everything random.
        memory: bytes the tree may take; a search that reaches them ends with `stopped_by` "memory".
        rollout_policy: plays leaves out where the preset wants that (AlphaGo); a `RolloutPolicy`, None: one that knows
            no pattern.
        overrides: parameters in place of the preset's, by name.

    Raises:
        BadRequest: an unknown preset or parameter, or a number out of range.
    """

    def __init__(
        self,
        evaluator: Any,
        preset: str | Parameters = "auto",
        *,
        batch_size: int | None = None,
        seed: int = 0,
        memory: int = DEFAULT_MEMORY,
        rollout_policy: Any = None,
        **overrides: float,
    ) -> None:
        self.evaluator = evaluator
        self.parameters = with_or_without_value(
            find_preset(preset, evaluator.network.system, overrides), evaluator.network
        )
        self.batch_size = int(evaluator.batch_size if batch_size is None else batch_size)
        if self.batch_size < 1:
            raise BadRequest(f"batch_size must be at least 1, not {self.batch_size}")
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._weights = rollout_weights(self.parameters, rollout_policy)
        self._tree = Tree(self.parameters, memory)
        self._lock = threading.Lock()
        self._busy = threading.Lock()
        self._stop = threading.Event()
        self._position: Any = None
        self._pipeline: Pipeline | None = None
        self._planted: Planted | None = None
        self._answer: RootAnswer | None = None
        self._request: Any = None
        self._profile: str | None = None
        self._ownership: Ownership | None = None
        self._began = time.perf_counter()
        self._seconds = 0.0
        self._stopped_by = "running"

    @property
    def position(self) -> Any:
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
        pipeline, _ = self._ready()
        return str(pipeline.leaves.name(code, side))

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
        self._request = None
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

    def set_position(self, position: Any) -> None:
        """Search this position from now on; what was found of it before is kept where it continues the old one.

        Raises:
            UnsupportedPosition: the network cannot take it.
            BadRequest: a run is under way.
        """
        self.evaluator.network.encoding.check(position)
        with self._not_running(), self._lock:
            self._stop.clear()
            if not self._keeps(position):
                self._forget()
            self._position = position
            self._pipeline = self._pipeline_for(position)
            leaves = self._pipeline.leaves
            self._planted = Planted(self._tree, leaves.root_of(position), leaves.side(position))
            self._seconds = 0.0

    def _keeps(self, position: Any) -> bool:
        """Move the root along to `position` if the tree has it; False if it does not."""
        old = self._position
        if old is None or self._tree.is_fresh or self._pipeline is None:
            return False
        names = moves_between(old, position)
        if names is None:
            return False
        if not names:
            return True
        leaves, node, at = self._pipeline.leaves, 0, old
        for name in names:
            node = self._tree.child(node, leaves.code(name, at))
            if node < 0:
                return False
            at = at.play(name)
        nodes = self._tree.nodes
        if nodes["state"][node] == FRESH or (nodes["state"][node] != OPEN and nodes["child"][node] < 0):
            return False
        self._tree.reroot(node)
        nodes["state"][0] = OPEN
        self._answer = None
        self._request = None
        self._ownership = None
        return True

    def _pipeline_for(self, position: Any) -> Pipeline:
        """The pipeline for this kind of position, the old one if it fits."""
        old = self._pipeline
        if old is not None and old.leaves.fits(position):
            return old
        leaves = leaves_for(self.evaluator.network.encoding, position, max(self.batch_size, 8))
        if self._weights is not None:
            leaves.use_playouts(self._weights, self._rng.integers(1, 2**63, 1, np.uint64))
        return Pipeline(self.evaluator, leaves, self.parameters, self.batch_size, self._rng)

    def _ready(self) -> tuple[Pipeline, Planted]:
        """The pipeline and the tree with its root; there is a position.

        Raises:
            BadRequest: there is none.
        """
        if self._pipeline is None or self._planted is None or self._position is None:
            raise BadRequest("set_position first")
        return self._pipeline, self._planted

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
        profile: str | None = None,
    ) -> SearchResult:
        """Search until a limit is reached or `stop` is called.

        Args:
            limits: what ends the run.
            on_update: called from this thread about every `update_seconds` with the result so far.
            update_seconds: see there.
            allow_moves: consider only these moves at the root.
            avoid_moves: do not consider these.
            ownership: average the network's ownership over the positions evaluated.
            profile: which human to imitate (KataGo's human networks).

        Raises:
            BadRequest: no position set, a run already under way, a move that is not legal here, no move left to
                consider, ownership of a network that has none.
        """
        pipeline, _ = self._ready()
        with self._not_running():
            self._began = time.perf_counter()
            self._stopped_by = "running"
            self._tree.start_counting()
            try:
                self._prepare(allow_moves, avoid_moves, ownership, profile)
                self._stopped_by = self._loop(limits, on_update, update_seconds)
            finally:
                if not pipeline.is_empty:
                    with self._lock:
                        pipeline.abandon()
                self._stop.clear()
                self._seconds = time.perf_counter() - self._began
        return self.result()

    def _prepare(
        self, allow: Collection[str] | None, avoid: Collection[str] | None, ownership: bool, profile: str | None
    ) -> None:
        """Evaluate the root and set up its moves, unless that is done."""
        pipeline, planted = self._ready()
        wanted = Wanted(frozenset(allow) if allow is not None else None, frozenset(avoid or ()))
        request = (wanted, profile)
        if profile != self._profile:
            with self._lock:
                self._forget()
            self._profile = profile
        fresh_ownership = ownership and self._ownership is None
        if request == self._request and not fresh_ownership:
            return
        if fresh_ownership:
            self._ownership = Ownership()
        planted.ownership = self._ownership
        pipeline.leaves.profile = profile
        (self._answer,) = plant_roots(
            pipeline, [planted], [self._position], self.parameters, self._rng, wanted, self._lock
        )
        self._request = request

    def _loop(self, limits: Limits, on_update: Callable[[SearchResult], None] | None, update_seconds: float) -> str:
        """Gather and add batches until something ends it; what did."""
        (pipeline, planted), tree = self._ready(), self._tree
        deadline = _Deadline(limits, self._position, self._began)
        next_update = self._began + update_seconds
        while True:
            reason = self._reason(limits, deadline)
            if reason:
                return self._land(reason)
            quota = (limits.visits or 1 << 60) - tree.visits - planted.pending
            found = made = 0
            if pipeline.has_room and quota > 0:
                with self._lock:
                    has_memory = tree.reserve(self.batch_size)
                    if has_memory:
                        wanted = leaves_wanted(planted, self.batch_size)
                        found, made = pipeline.start([(planted, wanted, quota)])
                if not has_memory:
                    return self._land("memory")
            if not found or not pipeline.has_room:
                if not pipeline.is_empty:
                    if not pipeline.finish(self._stop, self._lock):
                        return "stopped"
                elif not made:
                    return "solved"
            if on_update is not None and time.perf_counter() >= next_update:
                on_update(self.result())
                next_update = time.perf_counter() + update_seconds

    def _land(self, reason: str) -> str:
        """End the run; what is under way is waited for, unless it was stopped."""
        pipeline, _ = self._ready()
        while reason != "stopped" and not pipeline.is_empty:
            if not pipeline.finish(self._stop, self._lock):
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
        pipeline, _ = self._ready()
        left = deadline.left(pipeline.seconds_a_batch)
        if left <= 0 and deadline.stretch and self._is_unsettled():
            left = deadline.left(pipeline.seconds_a_batch, stretched=True)
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
        if self.parameters.choice != CHOOSE_BY_LCB:
            return True
        table = root_table(tree)
        return bool(np.argmax(table.value) == np.argmax(table.rows[:, VISITS]))

    def result(self) -> SearchResult:
        """The tree as it stands; while a run is under way from any thread.

        Raises:
            BadRequest: no position set.
        """
        pipeline, _ = self._ready()
        with self._lock:
            running = self._stopped_by == "running"
            seconds = time.perf_counter() - self._began if running else self._seconds
            return make_result(
                self._tree,
                self._position,
                pipeline.leaves,
                self._answer,
                self._ownership,
                seconds,
                self._stopped_by,
            )

    def choose(self, temperature: float = 0.0) -> str:
        """The move to play: the best by the preset's rule, or with a temperature drawn with odds N^(1/temperature).

        Returns:
            The move, or "" where there is none.

        Raises:
            BadRequest: nothing was searched, or a temperature below 0.
        """
        if temperature < 0:
            raise BadRequest(f"temperature must be at least 0, not {temperature}")
        if self._answer is None or self._pipeline is None:
            raise BadRequest("run the search first")
        with self._lock:
            table = root_table(self._tree)
            if not len(table.edges):
                return make_result(self._tree, None, self._pipeline.leaves, self._answer, None, 0.0, "").best
            edge = int(table.edges[choose_edge(table, temperature, self._rng)])
            side = int(self._tree.nodes["side"][0])
            return str(self._pipeline.leaves.name(int(self._tree.roots[0]["move"][edge]), side))


class _Deadline:
    """When a run's time is up.

    Attributes:
        name: what to call the end: "seconds" or "clock".
        stretch: seconds by which it may be put off while the search is undecided (game clocks).
    """

    def __init__(self, limits: Limits, position: Any, began: float) -> None:
        self._began = began
        self._seconds = float("inf") if limits.seconds is None else limits.seconds
        self.name = "seconds"
        self.stretch = 0.0
        if limits.clock is None:
            return
        is_go = hasattr(position, "xsize")
        area = position.xsize * position.ysize if is_go else 64
        share = budget(limits.clock, "go" if is_go else "chess", len(position.moves), area)
        if share.target < self._seconds:
            self.stretch = min(share.maximum, self._seconds) - share.target
            self._seconds = share.target
            self.name = "clock"

    def left(self, batch_seconds: float, stretched: bool = False) -> float:
        """Seconds until then, what is under way taken off."""
        seconds = self._seconds + (self.stretch if stretched else 0.0)
        return seconds - batch_seconds - (time.perf_counter() - self._began)


def moves_between(old: Any, new: Any) -> list[str] | None:
    """The moves that lead from one position to another of the same game, the sides in turn; None where none do."""
    if type(old) is not type(new):
        return None
    is_go = hasattr(old, "xsize")
    known = len(old.moves)
    if new.moves[:known] != old.moves:
        return None
    if not is_go:
        same = (old.start_fen, old.chess960) == (new.start_fen, new.chess960)
        return list(new.moves[known:]) if same else None
    if (old.xsize, old.ysize, old.rules, old.komi, old.setup) != (new.xsize, new.ysize, new.rules, new.komi, new.setup):
        return None
    names = [vertex for _, vertex in new.moves[known:]]
    colours = [colour for colour, _ in new.moves[known:]]
    wanted = [old.to_play if k % 2 == 0 else "BW"[old.to_play == "B"] for k in range(len(names) + 1)]
    if colours != wanted[:-1] or new.to_play != wanted[-1]:
        return None
    turns = int(new.history[0]["turns"]) - int(old.history[0]["turns"])
    return names if turns == len(names) else None
