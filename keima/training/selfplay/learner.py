"""The learner: one training run over the windows of ever more games, whose network is published every generation.

    networks/      what it publishes (`keima.training.selfplay.networks`); generation 0 is the fresh network
    learner/       metrics.jsonl; where its own folder is not in the store, the last checkpoint too, so that a learner
                   on another machine goes on from there
    done.json      it has finished

It is a run of `keima.training.run.loop`: killed at any moment it goes on from its last checkpoint, and what it
publishes is what it would have published undisturbed, to the last bit. What is published already stays as it is.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from keima.errors import BadRequest, BadStore
from keima.plain import Fields
from keima.systems.network import Network
from keima.training.run.checkpoint import CHECKPOINTS, list_checkpoints
from keima.training.run.loop import Result, Watcher, train
from keima.training.run.metrics import FILE
from keima.training.run.preflight import World
from keima.training.run.recipe import Recipe
from keima.training.run.sources import Sources, open_loss
from keima.training.selfplay.checks import DONE, read_run
from keima.training.selfplay.networks import publish, read_object
from keima.training.selfplay.ratings import METRICS, draw_curve
from keima.training.selfplay.recipe import LoopRecipe
from keima.training.selfplay.store import Store
from keima.training.selfplay.window import WindowBatches, open_window

FOLDER = "learner"
NEWEST = f"{FOLDER}/newest.json"
_LEAF = re.compile(r"[a-z][a-z0-9-]*(\.[a-z]+)?")
"""Names of a checkpoint's folder and files."""
POLL_SECONDS = 0.05
"""Between two looks whether the learner rests."""
_DRAW_SECONDS = 20.0
"""At least between two pictures of the run, but for the last: one takes half a second."""


def learn(store: Store, folder: Path, watcher: Watcher | None = None, turns: Turns | None = None) -> Result:
    """Learn from the games of a run as they come, to the recipe's last step; go on from the last checkpoint.

    Args:
        store: of the run, whose recipe is there.
        folder: on this machine, for checkpoints and metrics.
        watcher: is told how it goes.
        turns: of this machine, where workers share its cores.

    Raises:
        BadStore: the store is lost, or a game, window or network in it is damaged.
        BadRequest, KeyboardInterrupt: as `keima.training.run.loop.train`.
    """
    recipe = read_run(store)
    told = watcher or Watcher()
    receive_checkpoint(store, folder)

    def open_sources(training: Recipe, network: Network, world: World) -> Sources:
        loss = open_loss(training, network)
        batches = WindowBatches(store, recipe, network, loss.targets, told.say, world=world)
        own = turns if world.rank == 0 else None
        return Sources(batches, None, loss, cycle=_Generations(store, recipe, folder, batches, told, own))

    try:
        result = train(recipe.training, folder, told, open_sources)
    finally:
        if turns is not None:
            turns.rest()
    done = {"step": result.step, "generation": recipe.generations}
    store.write_new(DONE, json.dumps(done).encode() + b"\n")
    return result


class _Generations:
    """What goes on beside the run's steps: see `keima.training.run.sources.Cycle`."""

    def __init__(
        self,
        store: Store,
        recipe: LoopRecipe,
        folder: Path,
        batches: WindowBatches,
        watcher: Watcher,
        turns: Turns | None,
    ) -> None:
        self.every = recipe.window.steps
        self._store, self._recipe, self._folder = store, recipe, folder
        self._batches, self._watcher, self._turns = batches, watcher, turns
        self._drawn = -math.inf

    def begin(self, step: int, stopped: Callable[[], bool]) -> None:
        """Wait for the generation's games, and then for this machine's cores."""
        self._batches.stopped = stopped
        self._batches.prepare()
        if self._turns is not None:
            self._turns.take()

    def end(self, step: int, network: Network) -> None:
        """Publish a generation's network and what belongs to it, as far as that was not done before."""
        generation = -(-step // self.every)

        def resign() -> float | None:
            if not generation or not self._recipe.games.resign:
                return None
            window = self._batches.window
            if window is None or window.generation != generation:
                window = open_window(self._store, self._recipe, generation, self._watcher.say)
            return None if window is None else window.resign_threshold(self._recipe.games.resign)

        published = publish(self._store, generation, network, step, resign)
        if self._turns is not None:
            self._turns.rest()
        if step:
            send_checkpoint(self._store, self._folder, step)
        if published is not None:
            self._watcher.say(f"generation {generation} of {self._recipe.generations} is published")
            send_metrics(self._store, self._folder / FILE)
            now = time.monotonic()
            if now - self._drawn > _DRAW_SECONDS or generation == self._recipe.generations:
                draw_curve(self._store)
                self._drawn = now

    def figures(self) -> Fields:
        """Of a line of metrics.jsonl: the generation, its window's positions, the games played when it began."""
        window = self._batches.window
        if window is None:
            return {}
        manifest = window.manifest
        facts = {"window": manifest["window_positions"], "games_played": manifest["games"]}
        return {"generation": window.generation, **facts}


# --- Its checkpoint and metrics in the store --------------------------------------------------------------------------


def send_metrics(store: Store, path: Path) -> None:
    """Copy metrics.jsonl into the store, unless it is there."""
    if path.exists() and (store.local is None or (store.local / METRICS).resolve() != path.resolve()):
        store.write(METRICS, path.read_bytes())


def send_checkpoint(store: Store, folder: Path, step: int) -> None:
    """Copy the checkpoint of a step into the store, in place of an older one, unless its folder is in the store."""
    if store.local is not None and store.local.resolve() in folder.resolve().parents:
        return
    before = _kept_checkpoint(store)
    own = dict(list_checkpoints(folder / CHECKPOINTS)).get(step)
    if before[0] >= step or own is None:
        return
    files = sorted(path.name for path in own.iterdir())
    for name in files:
        store.write(f"{FOLDER}/{step}-{name}", (own / name).read_bytes())
    newest = {"step": step, "folder": own.name, "files": files}
    store.write(NEWEST, json.dumps(newest).encode() + b"\n")
    for name in before[2]:
        store.delete(f"{FOLDER}/{before[0]}-{name}")


def receive_checkpoint(store: Store, folder: Path) -> None:
    """Copy the store's checkpoint into a learner's folder, where it is newer than all there."""
    step, name, files = _kept_checkpoint(store)
    there = [-1, *(step for step, _ in list_checkpoints(folder / CHECKPOINTS))]
    if there[-1] >= step:
        return
    target = folder / CHECKPOINTS / name
    building = target.with_name(f".{name}.{os.getpid()}")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    for file in files:
        (building / file).write_bytes(store.read(f"{FOLDER}/{step}-{file}"))
    building.rename(target)
    if not (metrics := folder / FILE).exists() and store.exists(METRICS):
        metrics.write_bytes(store.read(METRICS))


def _kept_checkpoint(store: Store) -> tuple[int, str, list[str]]:
    """Step, folder and files of the store's checkpoint; step −1 where there is none. Raises BadStore."""
    if not store.exists(NEWEST):
        return -1, "", []
    fields = read_object(store, NEWEST)
    step, name, files = fields.get("step"), fields.get("folder"), fields.get("files")
    plain = isinstance(files, list) and all(isinstance(each, str) and _LEAF.fullmatch(each) for each in (name, *files))
    if not isinstance(step, int) or not isinstance(name, str) or not isinstance(files, list) or not plain:
        raise BadStore("does not say which checkpoint is kept", source=f"{store.address}/{NEWEST}")
    return step, name, files


# --- Taking turns -----------------------------------------------------------------------------------------------------


class Turns:
    """Learner and workers of one machine take turns on its cores: workers rest while the learner trains.

    It is a lock of the operating system on a file, which a process that dies gives back.

    Args:
        path: the file, in a folder of this machine; made if need be.

    Raises:
        BadRequest: this system has no such locks.
    """

    def __init__(self, path: Path) -> None:
        try:
            import fcntl
        except ImportError as error:
            raise BadRequest("turns need file locks of a Unix system") from error
        self._lock, self._exclusive = fcntl.flock, fcntl.LOCK_EX
        self._shared, self._unlock = fcntl.LOCK_SH | fcntl.LOCK_NB, fcntl.LOCK_UN
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def __del__(self) -> None:
        os.close(self._file)

    def take(self) -> None:
        """The learner's turn begins."""
        self._lock(self._file, self._exclusive)

    def rest(self) -> None:
        """The learner's turn ends, if it was."""
        self._lock(self._file, self._unlock)

    def free(self) -> bool:
        """May others work just now?"""
        try:
            self._lock(self._file, self._shared)
        except BlockingIOError:
            return False
        self._lock(self._file, self._unlock)
        return True

    def wait(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """A worker waits, between two batches, until the learner rests or `stopped` is true."""
        while not self.free() and not stopped():
            time.sleep(POLL_SECONDS)
