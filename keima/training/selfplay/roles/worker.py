"""A worker: plays the games whose numbers it claims with the newest network, and writes them into the store as shards.

What it needs on its machine is a journal, `NAME.jsonl`, in which every move stands as soon as it is made; a worker of
the same name that is started again goes on with the same games.

It rests while the learner has its turn on the same cores, and begins no games that would be learned only after the
next generation: once the games in the store are enough for the generation after the one that is being trained. As long
as a learner that lives waits for games, it plays on whatever was counted.
"""

from __future__ import annotations

import errno
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from keima.errors import BadStore, KeimaError
from keima.inference.evaluator import Evaluator
from keima.plain import Data
from keima.training.selfplay.checks import DONE, read_run
from keima.training.selfplay.game import SelfplayGame
from keima.training.selfplay.journal import Journal
from keima.training.selfplay.learner import Turns
from keima.training.selfplay.networks import list_networks, read_network, read_object, read_published
from keima.training.selfplay.play import GROUPS, Player, Players
from keima.training.selfplay.ratings import best_network
from keima.training.selfplay.recipe import LoopRecipe
from keima.training.selfplay.roles.claims import Claims
from keima.training.selfplay.roles.processes import Stop
from keima.training.selfplay.roles.status import RATES, Meter, Status, read_statuses
from keima.training.selfplay.shards import FOLDER as GAMES
from keima.training.selfplay.shards import write_shard
from keima.training.selfplay.store import Store
from keima.training.selfplay.window import WINDOWS

POLL_SECONDS, FAR_POLL_SECONDS = 2.0, 15.0
"""Between two looks for a newer network, the end, and whether to begin games; in a folder, and in another store."""
_REST_SECONDS = 0.02
"""Between two looks whether the learner rests."""
_MEASURE_SECONDS = 0.4
_MEASURE_EVERY = 60.0
"""Seconds at least between two, each of a new network: other things this machine does make a single one too low."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_LONGEST_WAIT = 60.0
_RECENT = 20
"""Shards whose size says how many positions the next ones have."""

Say = Callable[[str], None]


@dataclass
class _Block:
    """Games of a block that have ended."""

    games: dict[int, SelfplayGame] = field(default_factory=dict)


class Worker:
    """Plays until the learner has finished or `stop` is true. Use `run`.

    Args:
        store: of the run, whose recipe is there.
        name: its own among all workers of the run.
        folder: on this machine, for the journal.
        threads: of the CPU, for the network; None: all cores.
        turns: of this machine, where a learner is on it too and shares its cores.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        folder: Path,
        stop: Stop,
        say: Say,
        threads: int | None = None,
        turns: Turns | None = None,
    ) -> None:
        self.store, self.name, self.stop, self.say = store, name, stop, say
        self.recipe: LoopRecipe = read_run(store)
        self._own_rate = known_rate(store, name)
        self._measured = time.monotonic() if self._own_rate else -math.inf  # its `own_rate`
        self.status = Status(store, "worker", name)
        store.on_wait = self._wait_for_store
        self._path = folder / f"{name}.jsonl"
        self._threads, self._turns = threads, turns
        self._poll = POLL_SECONDS if store.local is not None else FAR_POLL_SECONDS
        self._pace = Pace(store, self.recipe)
        self._meter = Meter()
        self._generation = -1

    def run(self) -> None:
        """Play; a full disk is waited for.

        Raises:
            BadStore: the store is lost, or what it holds is damaged.
        """
        wait = 1.0
        try:
            while True:
                try:
                    return self._play()
                except (BadStore, OSError) as error:
                    if getattr(error.__cause__ or error, "errno", None) not in _FULL:
                        raise
                    message = f"waits for room on the disk: {error}"
                self.say(message)
                self.status.doing(message)
                if self.stop.wait(wait):
                    return None
                wait = min(2 * wait, _LONGEST_WAIT)
        finally:
            self.status.set({**dict.fromkeys(RATES, 0.0), "share": None})
            self.status.close()

    def _play(self) -> None:
        generation = self._first_network()
        if generation is None:
            return
        player = self._open(generation)
        journal = Journal(self._path)
        try:
            self._resume(journal)
            players = Players(self.recipe, [player], self._next_number, journal)
            looked = time.monotonic()
            while not self.stop():
                if time.monotonic() - looked > self._poll:
                    if self.store.exists(DONE):
                        return
                    self._look(players)
                    looked = time.monotonic()
                if self._turns is not None and not self._turns.free():
                    self.stop.wait(_REST_SECONDS)
                    continue
                began = time.monotonic()
                ended = players.step()
                self._meter.worked(time.monotonic() - began)
                for game in ended:
                    self._keep(game, journal)
                if players.idle:
                    self.stop.wait(_REST_SECONDS)
        finally:
            journal.close()

    def _wait_for_store(self, message: str) -> None:
        """Tell why it waits; and end where it was asked to."""
        self.say(message)
        self.status.doing(message)
        if self.stop():
            raise KeyboardInterrupt

    # --- Networks -----------------------------------------------------------------------------------------------------

    def _first_network(self) -> int | None:
        """The generation that plays, once there is one; None where the run ends before."""
        self.status.doing("waits for a network")
        while not self.stop() and not self.store.exists(DONE):
            generation = best_network(self.store, self.recipe)
            if generation is not None:
                return generation
            self.stop.wait(min(self._poll, 1.0))
        return None

    def _open(self, generation: int) -> Player:
        """A generation's network as a player. Now and then what its evaluator does is measured; the highest counts."""
        network = read_network(self.store, generation)
        games = self.recipe.games
        batch = max(1, games.side_by_side // (GROUPS * max(1, len(games.size))))
        evaluator = Evaluator(network, "auto", self.recipe.search.precision, batch, self._threads)
        now = time.monotonic()
        if now - self._measured > _MEASURE_EVERY and (self._turns is None or self._turns.free()):
            self._own_rate, self._measured = max(self._own_rate, own_rate(evaluator, self.recipe)), now
        self._generation = generation
        return Player(evaluator, generation, read_published(self.store, generation).resign)

    def _look(self, players: Players) -> None:
        """Change to a newer network; renew claims; tell how it goes."""
        newest = best_network(self.store, self.recipe)
        if newest is not None and newest != self._generation:
            try:
                player = self._open(newest)
                players.set_network(player.evaluator, player.generation, player.resign)
            except KeimaError as error:
                self._generation = newest  # the next one will do
                self.say(f"goes on with the network it has: {error}")
        self.claims.renew()
        rates, active = self._meter.rates(players.games, players.moves, players.evaluations, players.known)
        told: Data = {"doing": "plays", "network": self._generation, "under_way": players.under_way}
        told |= {"games": players.games, "moves": players.moves, "evaluations": players.evaluations}
        told |= dict(zip(RATES, rates, strict=True))
        most = self._own_rate * active
        told |= {"own_rate": self._own_rate, "share": rates[2] / most if most else None}
        if self._turns is not None and not self._turns.free():
            told["doing"] = "rests while the learner trains"
        elif self._pace.ahead:
            told["doing"] = self._pace.reason
        self.status.set(told)

    # --- Games --------------------------------------------------------------------------------------------------------

    def _resume(self, journal: Journal) -> None:
        """Take up the blocks that were under way, and drop what others have played."""
        size = self.recipe.games.block
        self.claims = Claims(self.store, self.name, size)
        blocks, lost = self.claims.resume(list(journal.games))
        journal.forget(lost)
        self._blocks = {first: _Block() for first in blocks}
        numbers = (number for first in sorted(blocks) for number in range(first, first + size))
        self._left = deque(number for number in numbers if number not in journal.games)

    def _next_number(self) -> int | None:
        if not self._left:
            if not self._pace.may_begin():
                return None
            first = self.claims.take()
            self._blocks[first] = _Block()
            self._left.extend(range(first, first + self.recipe.games.block))
        return self._left.popleft()

    def _keep(self, game: SelfplayGame, journal: Journal) -> None:
        """A game has ended; with the last one of its block, write the shard."""
        first = game.number - game.number % self.recipe.games.block
        games = self._blocks[first].games
        games[game.number] = game
        if len(games) == self.recipe.games.block:
            write_shard(self.store, list(games.values()))
            journal.forget(games)
            self.claims.release(first)
            del self._blocks[first]


class Pace:
    """When a worker should begin no further games: see this file's head.

    Attributes:
        ahead: it should begin none.
        reason: why, in words.
    """

    def __init__(self, store: Store, recipe: LoopRecipe) -> None:
        self._store, self._recipe = store, recipe
        self._poll = POLL_SECONDS if store.local is not None else FAR_POLL_SECONDS
        self._looked = float("-inf")
        self._manifest: Data | None = None
        self.ahead, self.reason = False, ""

    def may_begin(self) -> bool:
        """May games begin now?"""
        if time.monotonic() - self._looked > self._poll:
            self.ahead = self._is_ahead()
            self._looked = time.monotonic()
        return not self.ahead

    def _is_ahead(self) -> bool:
        networks = list_networks(self._store)
        newest = networks[-1] if networks else 0
        if newest >= self._recipe.generations:
            self.reason = "waits for the end: the last network is there"
            return True
        manifest = self._window(newest + 1) or (self._window(newest) if newest else None)
        trains = manifest is not None and manifest["generation"] == newest + 1
        if trains and newest + 1 == self._recipe.generations:
            self.reason = "waits for the end: the last network is being trained"
            return True
        if manifest is None:
            return False
        counts = manifest["counts"][-_RECENT:]
        fresh = len(self._store.list(GAMES)) - len(manifest["shards"])
        played = manifest["positions"] + fresh * sum(positions for _, positions in counts) / max(1, len(counts))
        enough = self._recipe.window.needed(newest + 2, self._recipe.training.run.batch_size)
        self.reason = f"waits for network {newest + 1}: there are games enough for the one after it"
        return bool(played >= enough and (trains or not self._learner_lives()))

    def _window(self, generation: int) -> Data | None:
        """The manifest of a generation's window, where there is one."""
        if self._manifest is None or self._manifest["generation"] != generation:
            name = f"{WINDOWS}/{generation:06d}.json"
            if not self._store.exists(name):
                return None
            self._manifest = read_object(self._store, name)
        return self._manifest

    def _learner_lives(self) -> bool:
        return any(each["role"] == "learner" for each in read_statuses(self._store))


def known_rate(store: Store, name: str) -> float:
    """What a worker of this name measured, if it was at work just now; else 0."""
    found = (each for each in read_statuses(store) if (each["role"], each["name"]) == ("worker", name))
    return next((float(each.get("own_rate", 0.0)) for each in found), 0.0)


def own_rate(evaluator: Evaluator, recipe: LoopRecipe) -> float:
    """Evaluations a second of an evaluator with nothing else to do: full batches, three under way."""
    from keima.training.selfplay.checks import starts

    start = starts(recipe, evaluator.network)[0]
    batch = evaluator.encoding.encode([start] * evaluator.batch_size, [0] * evaluator.batch_size)
    evaluator.infer(batch)
    under_way = deque(evaluator.submit(batch) for _ in range(3))
    began, done = time.perf_counter(), 0
    while (seconds := time.perf_counter() - began) < _MEASURE_SECONDS:
        under_way.popleft().result()
        done += evaluator.batch_size
        under_way.append(evaluator.submit(batch))
    for each in under_way:
        each.result()
    return done / seconds
