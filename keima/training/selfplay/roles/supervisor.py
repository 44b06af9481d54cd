"""A run on this machine: its roles as processes, started again when they die, ended together.

The machine is divided by a rule (`divide`). Without a CUDA device one worker has all cores (one more for every eight of
them), and rests while the learner trains, so that neither's batches wait for the other's; a learner that is given fewer
threads than there are cores trains beside as many workers as cores, of one thread each: small networks gain little by a
second one. With a CUDA device, a worker is held up by its own Python, and there are as many workers as cores, less one
each for the learner and the judge.

Roles are forked from a process that has imported what they need and done nothing with it, so that one is back within a
second or two. Whatever is killed, that process and this one too, the same command goes on: the roles keep all that
matters in the run's store, and die with this process.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import NamedTuple

from keima.errors import BadRequest, BadStore, KeimaError
from keima.training.selfplay.checks import DONE, check_loop, write_run
from keima.training.selfplay.networks import list_networks
from keima.training.selfplay.recipe import LoopRecipe
from keima.training.selfplay.roles.forks import FORKS, begin
from keima.training.selfplay.roles.processes import Stop, follow_pipe, holder, take_lock
from keima.training.selfplay.roles.role import JUDGE, LEARNER, WORKER, Role, tell
from keima.training.selfplay.roles.status import Glances, Overview
from keima.training.selfplay.store import Store

LOGS = "logs"
LOCK = "supervisor.lock"
QUICK_SECONDS = 15.0
"""A process that lives no longer has died quickly; the next one is waited with, twice as long each time."""
QUICK_DEATHS = 5
"""So many in a row end the run."""
FAILING_SECONDS = 120.0
"""The same of one that ends with an error of its own."""
_END_SECONDS = 60.0
"""How long a role may take to end when it is asked to, until it is killed."""
_LOOK_SECONDS = 0.2
_TAIL_LINES = 6
_MOST_WORKERS = 32
_CORES = 8
"""That one worker can use, without a CUDA device."""
_NICE = 10
"""Of roles beside the learner, whose turn at a core comes first: it is one, and they are many."""


class RunWatcher:
    """Is told how a run goes; this one does not mind."""

    def show(self, overview: Overview) -> None:
        """How it stands, about once a second."""

    def say(self, message: str) -> None:
        """Something a person should know."""

    def end(self) -> None:
        """It is over, well or not."""


class Division(NamedTuple):
    """How a machine is divided."""

    workers: int  # processes
    threads: int | None  # of the CPU, for the network of each; None: as many as it likes
    turns: bool  # do the learner and the workers take turns on the cores?


def divide(cores: int, gpu: bool, workers: int | None = None, threads: int = 0) -> Division:
    """The machine's share for each role; `workers` where they are chosen, `threads` those of the learner (0: all)."""
    if gpu or 0 < threads < cores:
        return Division(workers or min(_MOST_WORKERS, max(1, cores - 2) if gpu else cores), 1, False)
    count = workers or max(1, cores // _CORES)
    return Division(count, max(1, cores // count), True)


def run(
    recipe: LoopRecipe,
    folder: str | os.PathLike[str],
    overrides: tuple[str, ...] = (),
    workers: int | None = None,
    watcher: RunWatcher | None = None,
) -> Path:
    """Run a recipe of self-play on this machine, or go on with it; the file of the last network.

    Args:
        recipe: of `keima.training.selfplay.recipe.read_loop`.
        folder: the run's store, made if missing.
        overrides: that the recipe was read with.
        workers: processes that play; None: by `divide`.
        watcher: is told how it goes.

    Raises:
        BadRequest: the recipe asks for what cannot be, the folder holds another recipe's run or another process runs
            it, or a role fails again and again: with the last lines of its log.
        BadStore: the folder cannot be written.
        KeyboardInterrupt: SIGINT or SIGTERM; the roles have ended, and the same command goes on.
    """
    import torch

    check_loop(recipe)
    path = Path(folder)
    store = Store(path)
    try:
        lock = take_lock(path / LOCK)
    except OSError as error:
        raise BadStore(f"cannot be written: {error.strerror or error}", source=str(path)) from error
    if lock is None:
        raise BadRequest(f"is being run by {holder(path / LOCK)}", source=str(path))
    with lock:
        write_run(store, recipe, overrides)
        gpu = torch.cuda.is_available() and recipe.training.run.device != "cpu"
        division = divide(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
                          gpu, workers, recipe.training.run.threads)  # fmt: skip
        begin()
        _Supervisor(store, recipe, path, division, watcher or RunWatcher()).run()
    newest = f"{list_networks(store)[-1]:06d}"
    files = sorted(each for each in (path / "networks").glob(f"{newest}.*") if each.suffix != ".json")
    return next((each for each in files if each.suffix != ".safetensors"), files[0])


@dataclass
class _Role:
    """A role's process, started again and again."""

    kind: str  # worker, learner, judge
    name: str
    log: Path
    process: ForkServerProcess | None = None
    started: float = 0.0
    deaths: int = 0  # quick ones in a row
    due: float = 0.0  # monotonic seconds when it may be started again
    over: bool = False


class _Supervisor:
    def __init__(self, store: Store, recipe: LoopRecipe, folder: Path, division: Division, watcher: RunWatcher) -> None:
        self.store, self.recipe, self.folder, self.watcher = store, recipe, folder, watcher
        self.division = division
        # who forks outlives this process as long as there are roles, so they watch it through a pipe
        self._pipe, self._held = FORKS.Pipe(duplex=False)
        names = [(WORKER, f"w{number}") for number in range(division.workers)] + [(LEARNER, LEARNER)]
        names += [(JUDGE, JUDGE)] if recipe.judge.games else []
        self.roles = [_Role(kind, name, folder / LOGS / f"{_title(kind, name)}.log") for kind, name in names]

    def run(self) -> None:
        """Until the learner has finished and the judge has judged, or it is asked to end."""
        stop = Stop()
        (self.folder / LOGS).mkdir(exist_ok=True)
        glances, shown = Glances(self.store, self.recipe), 0.0
        try:
            while not all(role.over for role in self.roles):
                for role in self.roles:
                    self._tend(role)
                if time.monotonic() - shown > 1.0:
                    self.watcher.show(glances.look())
                    shown = time.monotonic()
                if stop.wait(_LOOK_SECONDS):
                    raise KeyboardInterrupt
            self.watcher.show(glances.look())
        finally:
            self._end()
            self.watcher.end()

    def _tend(self, role: _Role) -> None:
        """Start a role's process, or see how it is."""
        now = time.monotonic()
        if role.process is None:
            if not role.over and now >= role.due:
                role.process, role.started = self._start(role), now
            return
        status = role.process.exitcode
        if status is None:
            return
        role.process = None
        if status == 0 and self.store.exists(DONE):
            role.over = True
            return
        quick = QUICK_SECONDS if status < 0 else FAILING_SECONDS
        role.deaths = role.deaths + 1 if now - role.started < quick else 1
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        title, tail = _title(role.kind, role.name), "".join(f"\n  {line}" for line in last_lines(role.log))
        if role.deaths >= QUICK_DEATHS:
            raise BadRequest(f"{title} {how}, the {QUICK_DEATHS}th time in a row:{tail}", source=str(role.log))
        wait = 2.0 ** (role.deaths - 2) if role.deaths > 1 else 0.0
        role.due = now + wait
        again = f"again in {wait:g} s" if wait else "again"
        self.watcher.say(f"{title} {how}, and is started {again}{tail if status > 0 else ''}")

    def _start(self, role: _Role) -> ForkServerProcess | None:
        """Fork a role's process; None where that cannot be just now."""
        words = (role.kind, role.name, str(self.folder), str(role.log), self.division, self._pipe)
        process = FORKS.Process(target=_run_role, args=words, name=role.name)
        try:
            process.start()
        except (OSError, EOFError):  # who forks was just killed
            return None
        return process

    def _end(self) -> None:
        """Ask all to end, kill who does not."""
        alive = [role.process for role in self.roles if role.process is not None and role.process.is_alive()]
        for process in alive:
            process.terminate()
        end = time.monotonic() + _END_SECONDS
        for process in alive:
            try:
                process.join(max(0.0, end - time.monotonic()))
            except KeyboardInterrupt:
                end = 0.0
            if process.is_alive():
                process.kill()
                process.join()


def _title(kind: str, name: str) -> str:
    return kind if kind == name else f"{kind}-{name}"


def _run_role(kind: str, name: str, folder: str, log: str, division: Division, supervisor: Connection) -> None:
    """What a role's process does, from its beginning to its end."""
    follow_pipe(supervisor)
    os.setpgrp()  # Ctrl-C reaches the supervisor alone, which ends them in order
    if kind != LEARNER and not division.turns:
        os.nice(_NICE)
    with open(log, "ab") as stream, open(os.devnull, "rb") as nothing:
        for target, source in ((0, nothing), (1, stream), (2, stream)):
            os.dup2(source.fileno(), target)
    try:
        role = Role(folder, tell, turns=division.turns, parent=os.getppid())
        if kind == WORKER:
            role.work(name, division.threads)
        elif kind == LEARNER:
            role.learn(name)
        else:
            role.judge(name)
    except KeimaError as error:
        tell(str(error))
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def last_lines(log: Path) -> list[str]:
    """The last lines of a role's log."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - 4096))
            return stream.read().decode("utf-8", "replace").strip().splitlines()[-_TAIL_LINES:]
    except OSError:
        return []
