"""The networks a server offers: listed by name, loaded in the background, measured; what is too large says so first."""

from __future__ import annotations

import threading
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from keima.errors import BadRequest, KeimaError
from keima.games.game import GAMES
from keima.games.position import Position
from keima.plain import Data, Note, told_words
from keima.systems.files.defaults import DEFAULT_NETWORKS, find_network
from keima.web.pool import Ask, SearchPool

if TYPE_CHECKING:
    from keima.inference.evaluation import Evaluation
    from keima.inference.evaluator import Evaluator
    from keima.systems.network import Network

SLOW = 5.0
"""Visits a second below which a network is too large to be used unasked."""
_MEASURED_VISITS = 48
_PATIENCE = 3.0
"""Seconds that what nobody asked for waits while somebody searches."""
_BREATH = 0.3
"""Seconds it waits for a page to begin its game, once a network has become ready."""
_SLOW_IMPORTS = "keima.systems.registry", "keima.inference.openvino_backend"
"""What a first network needs, imported ahead of it."""


@dataclass(eq=False)
class Offered:
    """One network of the list."""

    name: str
    path: str
    state: str = "listed"
    message: str = ""
    game: str = ""
    network: Network | None = None
    pool: SearchPool | None = None
    speed: float | None = None  # visits a second
    measured: bool = False
    too_large: bool = False
    gives: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    sizes: tuple[int, int] | None = None
    anyway: bool = False  # to be loaded however slow
    own: bool = False  # comes with keima
    options: Data = field(default_factory=dict)  # backend, precision, batch_size, threads of `Evaluator`
    lock: threading.Lock = field(default_factory=threading.Lock)  # of `judge`
    reviewing: threading.Lock = field(default_factory=threading.Lock)  # of `reviewer`

    @property
    def area(self) -> int:
        """Points of the largest board it plays."""
        return (self.sizes or (0, 0))[1] ** 2 or 64

    @property
    def usual_profile(self) -> str | None:
        """Of its human profiles the one to use where none is named: the strongest; None where it takes none."""
        return self.profiles[-1] if self.profiles else None

    @cached_property
    def parameters(self) -> int:
        """How many numbers it has learned."""
        return 0 if self.network is None else sum(each.numel() for each in self.network.parameters())

    def to_json(self) -> Data:
        """NETWORK of docs/web.md."""
        found: Data = {"name": self.name, "game": self.game, "state": self.state, "too_large": self.too_large}
        found |= {"profiles": list(self.profiles), "gives": list(self.gives), "measured": self.measured}
        if self.message:
            found |= told_words("message", self.message)
        if self.speed is not None:
            found["visits_per_second"] = round(self.speed, 1)
        if self.sizes is not None:
            found["sizes"] = list(self.sizes)
        if self.network is not None:
            pedigree = self.network.pedigree
            told = ("name", "format", "sha256", "licence")
            found |= {
                "system": self.network.system,
                "parameters": self.parameters,
                "architecture": f"{type(self.network).__name__}, {self.parameters:,} parameters",
                "pedigree": {**pedigree.details, **{name: getattr(pedigree, name) for name in told}},
            }
            found["pedigree"]["origin"] = Path(pedigree.origin).name
        return found

    def open_evaluator(self) -> Evaluator:
        """A new evaluator of it, with the options it is offered with."""
        from keima.inference.evaluator import Evaluator

        assert self.network is not None
        return Evaluator(self.network, **self.options)

    @cached_property
    def judge(self) -> Evaluator:
        """An evaluator beside the pool's own, for single evaluations; use it under `lock`."""
        return self.open_evaluator()

    @cached_property
    def reviewer(self) -> Evaluator:
        """An evaluator for reviews; use it under `reviewing`."""
        return self.open_evaluator()

    def evaluate(self, position: Position, profile: str | None = None) -> Evaluation:
        """What the network alone says. Raises KeimaError: it cannot take the position or the profile."""
        with self.lock:
            judge = self.judge.bind(profile=profile) if profile else self.judge
            return judge([position])[0]


class Networks:
    """The list.

    Args:
        paths: of networks named by the user, the first for each game is the one to begin with.
        options: of `Evaluator`: backend, precision, batch_size, threads.
        tell: is told of a network whose state has changed, on any thread.
    """

    def __init__(self, paths: Sequence[str] = (), options: Data | None = None, own: bool = True) -> None:
        self.tell: Callable[[Offered], None] = lambda offered: None
        self._options = dict(options or {})
        self._loader = ThreadPoolExecutor(1, "networks")
        self._queue: list[tuple[Offered, bool]] = []  # what is to be loaded, and whether it was asked for
        self._offered: dict[str, Offered] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._ready_at = -_BREATH  # when the last network became ready
        for path in paths:
            self.add(path)
        named = {one.path for one in self._offered.values()}
        for game, known in DEFAULT_NETWORKS.items() if own else ():
            try:
                path = find_network(game)
            except KeimaError:
                continue
            if path not in named:
                self._enter(Offered(known.name, path, game=game, own=True))

    def add(self, path: str) -> Offered:
        """List a network file. Raises BadRequest: there is no such file."""
        found = find_network(path)
        if not Path(found).is_file():
            raise BadRequest(Note("no such network file", "error.nofile"), source=path)
        for one in self._offered.values():
            if one.path == found:
                return one
        name, number = Path(found).name, 1
        while name in self._offered:
            number += 1
            name = f"{Path(found).name} ({number})"
        return self._enter(Offered(name, found))

    def _enter(self, offered: Offered) -> Offered:
        offered.options = self._options
        self._offered[offered.name] = offered
        return offered

    def __iter__(self) -> Iterator[Offered]:
        """All of them, as they were listed."""
        return iter(list(self._offered.values()))

    def get(self, name: str) -> Offered:
        """The network of that name. Raises BadRequest: there is none."""
        if name not in self._offered:
            raise BadRequest(Note("no network is called {name}", "error.unnamed", name=name[:80] or "?"))
        return self._offered[name]

    def ready(self, name: str) -> Offered:
        """The network of that name, loaded. Raises BadRequest: it is not (yet); its loading begins."""
        found = self.get(name)
        if found.state == "ready":
            return found
        if found.state == "failed" or found.too_large:
            raise BadRequest(found.message, source=name)
        self.open(found)
        raise BadRequest(Note("{name} is still being loaded; wait for it", "error.loading", name=name))

    def first(self, game: str, ready: bool = True) -> Offered | None:
        """The network to begin with in a game; None without one."""
        return next((one for one in self if one.game == game and (one.state == "ready" or not ready)), None)

    def open(self, offered: Offered, asked: bool = True) -> None:
        """Begin to load it, before others if `asked`, unless that was done; `tell` says when it is ready or failed."""
        with self._lock:
            if offered.state == "ready" or (offered.state == "loading" and (offered, False) not in self._queue):
                return
            waiting = offered.state == "loading"
            if waiting and not asked:
                return
            self._queue = [one for one in self._queue if one[0] is not offered]
            self._queue.insert(0 if asked else len(self._queue), (offered, asked))
            offered.state, offered.message = "loading", ""
        self.tell(offered)
        if not waiting:
            self._loader.submit(self._load)

    def open_all(self) -> None:
        """Begin to load all of the list, in its order."""
        for one in self:
            self.open(one, asked=False)

    def close(self) -> None:
        """End all searches."""
        self._closed = True
        self._loader.shutdown(wait=False, cancel_futures=True)
        for one in self:
            if one.pool is not None:
                one.pool.close()

    def _load(self) -> None:
        """Load the next of the queue: chosen after the slow imports, so that who asks during them comes first."""
        for module in _SLOW_IMPORTS:
            import_module(module)
        with self._lock:
            offered, asked = self._queue.pop(0)
        if not asked:
            self._let_search()
        try:
            self._prepare(offered)
        except KeimaError as error:
            offered.state, offered.message = "failed", error.words
        except Exception as error:
            offered.state, offered.message = "failed", f"{type(error).__name__}: {error}"
        if offered.state == "ready":
            self._ready_at = time.monotonic()
        self.tell(offered)
        if offered.state == "ready" and "value" in offered.gives:
            with suppress(RuntimeError):  # it is being closed
                self._loader.submit(self._measure, offered)

    def _let_search(self) -> None:
        """Wait while somebody searches, or may be about to, but not for long."""
        end = time.monotonic() + _PATIENCE
        while (now := time.monotonic()) < end:
            if now > self._ready_at + _BREATH and not any(one.pool and one.pool.searching for one in self):
                return
            time.sleep(0.05)

    def _prepare(self, offered: Offered) -> None:
        from keima.systems.files.load import load

        if offered.network is None:
            offered.network = load(offered.path)
            offered.game = offered.network.encoding.game
            offered.sizes = _sizes(offered.network)
        offered.speed = self._estimate(offered)
        offered.too_large = offered.speed < SLOW and not offered.own
        if offered.too_large and not offered.anyway:
            offered.state = "listed"
            slow = "about {speed} visits a second on this machine, too few to play with; it loads if asked"
            offered.message = Note(slow, "error.slow", speed=f"{offered.speed:.1f}")
            return
        offered.profiles = tuple(offered.network.encoding.choices.get("profile", ()))
        evaluation = offered.evaluate(_start(offered), offered.usual_profile)
        names = ("value", "lead", "ownership", "moves_left")
        offered.gives = tuple(name for name in names if getattr(evaluation, name) is not None)
        offered.pool = SearchPool(offered.open_evaluator())
        offered.state = "ready"

    def _measure(self, offered: Offered) -> None:
        """Visits a second, when nobody searches."""
        assert offered.pool is not None
        position, profile = _start(offered), offered.usual_profile
        for visits in (8, _MEASURED_VISITS):  # the first time other things are made ready too
            self._let_search()
            began = time.perf_counter()
            running = offered.pool.start(Ask(position, visits=visits, profile=profile))
            while not running.done.wait(0.2):
                if self._closed:
                    return
        if not offered.pool.searching:
            offered.speed = visits / max(time.perf_counter() - began, 1e-6)
            offered.measured = True
            self.tell(offered)

    def _estimate(self, offered: Offered) -> float:
        """Visits a second, by its numbers and points, at the rate of a measured network or of a matrix product."""
        known = next((one for one in self if one.measured and one.speed and one.network is not None), None)
        if known is not None and known.speed is not None:
            rate = known.speed * known.parameters * known.area
        else:
            rate = 0.3 * _products()
        return rate / max(1.0, float(offered.parameters * offered.area))


def _start(offered: Offered) -> Position:
    """The usual start of its game, on the largest board it plays."""
    setup: Data = {} if offered.sizes is None else {"size": offered.sizes[1]}
    found: Position = GAMES[offered.game].editing.start(setup)
    return found


def _sizes(network: Network) -> tuple[int, int] | None:
    """The least and the largest square board it takes, where its game has a choice."""
    editing = GAMES[network.encoding.game].editing
    size = next((choice for choice in editing.choices if choice.name == "size"), None)
    if size is None:
        return None
    fits = []
    for side in range(int(size.least or 1), int(size.most or 1) + 1):
        try:
            network.encoding.check(editing.start({"size": side}))
        except KeimaError:
            continue
        fits.append(side)
    return (fits[0], fits[-1]) if fits else None


def _products() -> float:
    """Multiplications a second of this machine, float32 matrices; at its quickest, it may stand still for a moment."""
    matrix = np.ones((512, 512), np.float32)
    return 512**3 / max(min(timeit.repeat(lambda: matrix @ matrix, number=1, repeat=8)), 1e-6)
