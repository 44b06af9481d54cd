"""Monte Carlo tree search over an evaluator: a position, kept from move to move, or many whose trees share batches.

search = Search(evaluator)                      # the preset of the network's system
search.set_position(position)
result = search.run(Limits(visits=800))
move = search.choose()
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from keima.errors import BadRequest, KeimaError
from keima.games.game import get_game
from keima.games.position import Position
from keima.search.batches import BatchesInFlight, SearchEvaluator, Share, share_of
from keima.search.limits import Budget, Limits, budget
from keima.search.report import RootTable, SearchResult, choose, make_result, mean
from keima.search.root import Considered, prepare_roots
from keima.search.tree import Ownership, Tree
from keima.systems.parameters import Choice, Number, Parameters
from keima.systems.playouts import PlayoutPolicy
from keima.systems.presets import parameters_for

DEFAULT_MEMORY = 1 << 30
DEFAULT_VISITS = 800
"""Of a search that is given neither visits nor seconds."""


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

    Attributes:
        position: the root; None before `set_position`.
        tree: open to look at between runs.

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
        self.batch_size = _batch_size(evaluator, batch_size)
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._policy = rollout_policy
        self.tree = Tree(self.parameters, memory)
        self._lock = threading.Lock()
        self._busy = threading.Lock()
        self._stop = threading.Event()
        self.position: Position | None = None
        self._batches: BatchesInFlight | None = None
        self._considered: Considered | None = None
        self._began = time.perf_counter()
        self._seconds = 0.0
        self._stopped_by = "running"

    def move_name(self, code: int, side: int) -> str:
        """What a move of the tree is called, made by `side` as nodes hold it ("Q16"); `BadRequest` without position."""
        self._ready()
        return self.tree.name(code, side)

    def clear(self) -> None:
        """Forget the tree and the position, and start the random numbers anew."""
        with self._not_running(), self._lock:
            self.tree.reset()
            self.position = None
            self._rng = np.random.default_rng(self._seed)

    @contextmanager
    def _not_running(self) -> Iterator[None]:
        """A stretch in which no other run is under way; raises `BadRequest` where one is."""
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
            self.tree.set_position(position)
            self.position = position
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
            self.tree.reset()
            self._batches = None
            position = self.position
        if position is not None:
            self.set_position(position)

    def _ready(self) -> BatchesInFlight:
        """The batches in flight; raises `BadRequest` where there is no position."""
        if self._batches is None or self.position is None:
            raise BadRequest("set_position first")
        return self._batches

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
            allow_moves, avoid_moves: consider only these moves at the root, or all but these.
            ownership: average the network's ownership over the positions evaluated.

        Raises:
            BadRequest: no position set, a run already under way, a move that is not legal here, no move left to
                consider, ownership of a network that has none.
        """
        batches = self._ready()
        with self._not_running():
            self._began = time.perf_counter()
            self._stopped_by = "running"
            self.tree.start_counting()
            try:
                self._prepare(allow_moves, avoid_moves, ownership)
                with self._lock:
                    self.tree.plan(limits.visits or self.tree.visits + DEFAULT_VISITS)
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
        tree = self.tree
        considered = Considered(frozenset(allow) if allow is not None else None, frozenset(avoid or ()))
        fresh_ownership = ownership and tree.ownership is None
        if tree.answer is not None and considered == self._considered and not fresh_ownership:
            return
        if fresh_ownership:
            tree.ownership = Ownership()
        prepare_roots(self._ready(), [tree], self._rng, considered, self._lock)
        self._considered = considered

    def _loop(self, limits: Limits, on_update: Callable[[SearchResult], None] | None, update_seconds: float) -> str:
        """Gather and add batches until something ends it; what did."""
        batches, tree = self._ready(), self.tree
        time_up, share = _deadline(limits, tree.position)
        next_update = self._began + update_seconds
        while not (reason := self._reason(limits, share, time_up)):
            quota = (limits.visits or 1 << 60) - tree.visits - tree.pending
            found = made = 0
            if batches.has_room and quota > 0:
                with self._lock:
                    if tree.reserve(self.batch_size):
                        found, made = batches.start([Share(tree, share_of(tree, self.batch_size), quota)])
                    else:
                        reason = "memory"
                        break
            if not found or not batches.has_room:
                if not batches.is_empty:
                    if not batches.finish(self._stop, self._lock):
                        return "stopped"
                elif not made:
                    return "solved"
            if on_update is not None and time.perf_counter() >= next_update:
                on_update(self.result())
                next_update = time.perf_counter() + update_seconds
        while reason != "stopped" and not batches.is_empty:  # what is under way is waited for
            if not batches.finish(self._stop, self._lock):
                break
        return reason

    def _reason(self, limits: Limits, share: Budget, time_up: str) -> str:
        """What ends the run now, or ""; seconds count as spent when the batch under way will be over."""
        tree = self.tree
        if self._stop.is_set():
            return "stopped"
        if limits.visits is not None and tree.visits >= limits.visits:
            return "visits"
        if tree.roots["count"][0] == 0 or tree.solved:
            return "solved"
        spent = self._ready().seconds_a_batch + time.perf_counter() - self._began
        left = share.target - spent
        if left <= 0 and share.maximum > share.target and self._is_unsettled():
            left = share.maximum - spent
        if left <= 0:
            return time_up
        if limits.early_stop and self._cannot_change(limits, left):
            return "early"
        return ""

    def _is_unsettled(self) -> bool:
        """Is another move thought better than the one with the most visits?"""
        nodes = RootTable(self.tree).nodes
        if not len(nodes):
            return False
        visits = nodes["visits"]
        often = visits >= 0.3 * visits.max()
        return bool(np.argmin(np.where(often, mean(nodes, "utility"), np.inf)) != np.argmax(visits))

    def _cannot_change(self, limits: Limits, seconds_left: float) -> bool:
        """Would the same move be played whatever the visits that remain find?"""
        tree = self.tree
        remaining = float("inf") if limits.visits is None else limits.visits - tree.visits
        spent = time.perf_counter() - self._began
        if seconds_left < float("inf") and spent > 0.05:
            rate = int(tree.heads["descents"][0]) / spent
            remaining = min(remaining, rate * seconds_left * 1.2)
        root = tree.roots[0]
        children = root["child"][: int(root["count"])][root["allowed"][: int(root["count"])] == 1]
        if len(children) == 1:
            return True
        if self.parameters.final_choice.choice == Choice.GUMBEL:
            return False
        each = np.sort(tree.nodes["visits"][children[children >= 0]])
        if remaining == float("inf") or not len(each):
            return False
        second = int(each[-2]) if len(each) > 1 else 0
        if int(each[-1]) - second <= remaining:
            return False
        if self.parameters.final_choice.choice != Choice.LCB:
            return True
        table = RootTable(tree)
        return bool(np.argmax(table.value) == np.argmax(table.nodes["visits"]))

    def result(self) -> SearchResult:
        """The tree as it stands; while a run is under way from any thread. `BadRequest` without a position."""
        self._ready()
        with self._lock:
            running = self._stopped_by == "running"
            seconds = time.perf_counter() - self._began if running else self._seconds
            return make_result(self.tree, seconds, self._stopped_by)

    def choose(self, temperature: float = 0.0) -> str:
        """The move to play: the best by the preset's rule, or with a temperature drawn with odds N^(1/temperature).

        "" where there is none.

        Raises:
            BadRequest: nothing was searched, or a temperature below 0.
        """
        if temperature < 0:
            raise BadRequest(f"temperature must be at least 0, not {temperature}")
        if self.tree.answer is None:
            raise BadRequest("run the search first")
        with self._lock:
            return choose(self.tree, temperature, self._rng)


def _deadline(limits: Limits, position: Position) -> tuple[str, Budget]:
    """What to call the end when the time is up, and the time there is."""
    seconds = float("inf") if limits.seconds is None else limits.seconds
    if limits.clock is not None:
        share = budget(limits.clock, get_game(position.game).playing.moves_to_come(position))
        if share.target < seconds:
            return "clock", Budget(share.target, min(share.maximum, seconds))
    return "seconds", Budget(seconds, seconds)


def parameters_of(evaluator: SearchEvaluator, preset: str | Parameters, overrides: Mapping[str, Number]) -> Parameters:
    """The parameters of a search by this evaluator; see `parameters_for`."""
    network = evaluator.network
    return parameters_for(preset, network.system, network.output_names, overrides)


def _batch_size(evaluator: SearchEvaluator, wanted: int | None) -> int:
    size = int(evaluator.batch_size if wanted is None else wanted)
    if size < 1:
        raise BadRequest(f"batch_size must be at least 1, not {size}")
    return size


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
        evaluator: see `Search`, for `preset` and `options` too.
        position: of the network's game.
        visits: of the root; None: 800, or without end where `seconds` is given.
        seconds: ends the search even if the visits are not made.
        ownership: average the network's ownership over the positions evaluated.

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
        evaluator: see `Search`, for `preset`, `batch_size`, `seed` and `overrides` too.
        positions: of the network's game, of any sizes.
        visits: of each root.
        memory: bytes all trees may take together.

    Returns:
        The results in the positions' order; `seconds` is each group's, of one board size.

    Raises:
        UnsupportedPosition: the network cannot take a position.
        BadRequest: an unknown preset or parameter, visits below 1, too little memory for so many trees.
    """
    parameters = parameters_of(evaluator, preset, overrides)
    size = _batch_size(evaluator, batch_size)
    return [make_result(*each) for each in search_trees(evaluator, positions, visits, parameters, size, seed, memory)]


class SearchedTree(NamedTuple):
    """A tree of a search that is over."""

    tree: Tree
    seconds: float
    stopped_by: str


def search_trees(
    evaluator: SearchEvaluator,
    positions: Sequence[Position],
    visits: int,
    parameters: Parameters,
    size: int,
    seed: int = 0,
    memory: int = DEFAULT_MEMORY,
) -> list[SearchedTree]:
    """`search_batch` in batches of `size`, for whoever wants all of the trees, not what they say of their roots."""
    if visits < 1:
        raise BadRequest(f"visits must be at least 1, not {visits}")
    for index, position in enumerate(positions):
        try:
            evaluator.encoding.check(position)
        except KeimaError as error:
            raise error.at(place=f"position {index}") from None
    rng = np.random.default_rng(seed)
    found: dict[int, SearchedTree] = {}
    waiting = list(range(len(positions)))
    while waiting:
        batches = BatchesInFlight(evaluator, positions[waiting[0]], parameters, size, rng)
        group = [k for k in waiting if batches.fits(positions[k])]
        waiting = [k for k in waiting if k not in set(group)]
        trees = [Tree(parameters, memory // len(positions)) for _ in group]
        for k, tree in zip(group, trees, strict=True):
            tree.set_position(positions[k])
        prepare_roots(batches, trees, rng, Considered(), nullcontext())
        for tree in trees:
            tree.plan(visits)
        found.update(zip(group, _SideBySide(batches, trees).run(visits), strict=True))
    return [found[k] for k in range(len(positions))]


class _SideBySide:
    """Trees on positions of one board, searched in turns."""

    def __init__(self, batches: BatchesInFlight, trees: list[Tree]) -> None:
        self._batches = batches
        self.trees = trees
        self._ended = [""] * len(trees)
        self._next = 0

    def run(self, visits: int) -> list[SearchedTree]:
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
        return [SearchedTree(tree, seconds, why or "solved") for tree, why in zip(self.trees, self._ended, strict=True)]

    def _shares(self, visits: int) -> list[Share]:
        """What each tree not done yet may add to the next batch, beginning where the last one left off."""
        size, count = self._batches.batch_size, len(self.trees)
        for k, tree in enumerate(self.trees):
            self._ended[k] = self._ended[k] or self._ends(tree, visits)
        going = [k % count for k in range(self._next, self._next + count) if not self._ended[k % count]]
        shares: list[Share] = []
        room = size
        for k in going:
            tree = self.trees[k]
            leaves = min(share_of(tree, size), -(-size // len(going)))
            quota = visits - tree.visits - tree.pending
            if leaves > 0 and quota > 0 and room > 0:
                shares.append(Share(tree, leaves, quota))
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
