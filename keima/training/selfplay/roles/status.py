"""What a role tells of itself, status/ROLE-NAME.json every few seconds; and all of a run at a glance."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field

from keima.errors import BadStore, KeimaError
from keima.plain import Data, Fields
from keima.training.run.loop import Watcher
from keima.training.run.objective import TOTAL
from keima.training.selfplay.networks import list_networks, read_object
from keima.training.selfplay.ratings import Elo, list_ratings, rate, read_rating
from keima.training.selfplay.recipe import LoopRecipe
from keima.training.selfplay.shards import FOLDER as GAMES
from keima.training.selfplay.store import Store

FOLDER = "status"
LOST_SECONDS = 60.0
"""Of silence, after which a role counts as gone."""
_LOCAL_SECONDS, _FAR_SECONDS = 2.0, 20.0
"""Between two heartbeats in a folder, and in a store where each costs a request."""
_PATIENCE = 5.0
"""Seconds a heartbeat is tried for: the next one says more."""
RATE_SECONDS = 60.0
"""Rates are those of so long."""
RATES = ("games_per_second", "moves_per_second", "evaluations_per_second", "known_per_second")
"""Names of a worker's, in its status and in `Overview`."""


class Status:
    """A role's heartbeat, written by a thread of its own: what it `set`, and the time."""

    def __init__(self, store: Store, role: str, name: str) -> None:
        self.name = f"{FOLDER}/{role}-{name}.json"
        self._store = Store(store.address, patience=_PATIENCE)
        self._fields: Data = {"role": role, "name": name, "doing": "starts"}
        self._guard = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="status", daemon=True)
        self._thread.start()

    def set(self, fields: Fields) -> None:
        """Tell these things from now on, beside what was told before under other names."""
        with self._guard:
            self._fields.update(fields)

    def doing(self, what: str) -> None:
        """Tell what it is doing, or waits for."""
        self.set({"doing": what})

    def close(self, last: str = "has ended") -> None:
        """Tell a last time."""
        self.doing(last)
        self._end.set()
        self._thread.join(2 * _PATIENCE)

    def _beat(self) -> None:
        seconds = _LOCAL_SECONDS if self._store.local is not None else _FAR_SECONDS
        ended = False
        while True:
            with self._guard:
                data = json.dumps({**self._fields, "time": time.time()})
            with suppress(KeimaError):  # nobody is told for a while
                self._store.write(self.name, data.encode() + b"\n")
            if ended:
                return
            ended = self._end.wait(seconds)


class Meter:
    """Rates of counters over the last `RATE_SECONDS`; resting is not counted in `active`."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, float, tuple[int, ...]]] = deque()
        self._active = 0.0

    def worked(self, seconds: float) -> None:
        """So long was worked."""
        self._active += seconds

    def rates(self, *counters: int) -> tuple[list[float], float]:
        """How fast these counters rise, per second; the share of the time that was worked."""
        now = time.monotonic()
        self._marks.append((now, self._active, counters))
        while len(self._marks) > 2 and self._marks[1][0] < now - RATE_SECONDS:
            self._marks.popleft()
        then, active, before = self._marks[0]
        seconds = max(now - then, 1e-9)
        return [(n - m) / seconds for n, m in zip(counters, before, strict=True)], (self._active - active) / seconds


class LearnerStatus(Watcher):
    """Hands what a training run tells on to its status, and to `say` what a person should know."""

    def __init__(self, status: Status, say: Watcher) -> None:
        self._status, self._say = status, say
        self._told = 0.0

    def begin(self, step: int, total: int) -> None:
        """See `Watcher`."""
        self._status.set({"step": step, "steps": total})

    def advance(self, step: int, line: Fields | None) -> None:
        """See `Watcher`."""
        if line is not None or time.monotonic() - self._told > 1.0:
            self._told = time.monotonic()
            self._status.set({"doing": "trains", "step": step, **({"line": dict(line)} if line is not None else {})})

    def say(self, message: str) -> None:
        """See `Watcher`."""
        self._status.doing(message)
        self._say.say(message)


# --- All of a run -----------------------------------------------------------------------------------------------------


@dataclass
class Overview:
    """A run at a glance; rates are of the last minute, all workers together."""

    generation: int = 0  # of the newest network
    generations: int = 0
    step: int = 0
    steps: int = 0
    games: int = 0  # in the store
    games_per_second: float = 0.0
    moves_per_second: float = 0.0
    evaluations_per_second: float = 0.0
    known_per_second: float = 0.0  # beside these: evaluations that were made before, and kept
    share: float = 0.0  # of the evaluators' own rate, while they play
    window: int = 0  # positions
    losses: dict[str, float] = field(default_factory=dict)
    elo: Elo | None = None
    rated: int = 0  # the newest generation that has an Elo
    roles: list[Data] = field(default_factory=list)  # the status of those that live
    seconds_left: float | None = None


class Glances:
    """Looks at a run again and again."""

    def __init__(self, store: Store, recipe: LoopRecipe) -> None:
        self._store = Store(store.address, patience=_PATIENCE)
        self._recipe = recipe
        self._steps: deque[tuple[float, int]] = deque()
        self._ratings: list[int] = []
        self._overview = Overview(generations=recipe.generations, steps=recipe.training.run.total_steps)

    def look(self) -> Overview:
        """The run as it stands; as it stood, where the store cannot be read just now."""
        seen = self._overview
        with suppress(KeimaError):
            self._look(seen)
        return seen

    def _look(self, seen: Overview) -> None:
        store = self._store
        networks = list_networks(store)
        seen.generation = networks[-1] if networks else 0
        seen.games = len(store.list(GAMES)) * self._recipe.games.block
        seen.roles = read_statuses(store)
        workers = [each for each in seen.roles if each["role"] == "worker"]
        for name in RATES:
            setattr(seen, name, sum(float(each.get(name, 0.0)) for each in workers))
        shares = [each["share"] for each in workers if each.get("share") is not None]
        seen.share = sum(shares) / len(shares) if shares else 0.0
        for each in seen.roles:
            if each["role"] == "learner":
                seen.step = int(each.get("step", seen.step))
                line = each.get("line", {})
                seen.window = int(line.get("window", seen.window))
                if TOTAL in line:
                    names = (name for name in line if name not in _NO_LOSSES)
                    seen.losses = {name: float(line[name]) for name in names if isinstance(line[name], float)}
        self._rate(seen)
        self._estimate(seen)

    def _rate(self, seen: Overview) -> None:
        rated = list_ratings(self._store)
        if rated != self._ratings:
            found = rate([read_rating(self._store, generation) for generation in rated])
            newest = [generation for generation in rated if generation in found]
            if newest:
                seen.rated, seen.elo = newest[-1], found[newest[-1]]
            self._ratings = rated

    def _estimate(self, seen: Overview) -> None:
        """Seconds left, by the pace of the last generations of this sitting."""
        done = min(seen.generation * self._recipe.window.steps, seen.steps)
        if not self._steps or done > self._steps[-1][1]:
            self._steps.append((time.monotonic(), done))
        if len(self._steps) > 10:
            self._steps.popleft()
        (then, before), (last, after) = self._steps[0], self._steps[-1]
        pace = (last - then) / (after - before) if after > before else None
        seen.seconds_left = pace * (seen.steps - after) if pace is not None else None


_NO_LOSSES = {"step", "positions", "learning_rate", "positions_per_second", "generation", "window", "games_played"}


def read_statuses(store: Store) -> list[Data]:
    """What the roles that are heard of tell, by name."""
    found = []
    for name in store.list(FOLDER):
        try:
            fields = read_object(store, name)
        except BadStore:
            continue  # being written, or damaged
        if time.time() - float(fields.get("time", 0.0)) < LOST_SECONDS:
            found.append(fields)
    return found
