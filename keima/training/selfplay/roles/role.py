"""One role in this process: what `keima selfplay worker|learner|judge` runs, and the supervisor starts."""

from __future__ import annotations

import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from keima.errors import BadRequest
from keima.training.run.loop import Result, Watcher
from keima.training.selfplay.judge import judge
from keima.training.selfplay.learner import Turns, learn
from keima.training.selfplay.roles.processes import Stop, follow_parent, holder, take_lock
from keima.training.selfplay.roles.status import LearnerStatus, Status
from keima.training.selfplay.roles.worker import Say, Worker
from keima.training.selfplay.store import Store

WORKER, LEARNER, JUDGE = "worker", "learner", "judge"
WORKERS = "workers"
"""Folders of the roles on their machine: this one, and those named as the role."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MANY = 1000
_PATIENCE = 30.0
"""Seconds that a role waits for one of its name to be gone: its folder has room for one."""


def tell(message: str) -> None:
    """Print what a person should know, with the time, as a role's log has it."""
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {message}", file=sys.stderr, flush=True)


class Role:
    """What the roles have in common.

    Args:
        address: of the run's store.
        say: is told what a person should know.
        folder: on this machine, for what the role must keep; None: the store where it is a folder, else one in runs/.
        turns: take turns with the other roles on this machine.
        parent: the process that started this one, with which it ends; 0: none.
    """

    def __init__(self, address: str, say: Say, folder: Path | None = None, turns: bool = False, parent: int = 0):
        if parent:
            follow_parent(parent)
        self.say = say
        self.store = Store(address, on_wait=say)
        self.folder = folder or self.store.local or Path("runs") / self.store.address.rpartition("/")[2]
        self.turns = Turns(self.folder / "turns") if turns else None

    def work(self, name: str = "", threads: int | None = None) -> None:
        """Play as a worker; of a name that no other process here has, where none is given.

        Raises:
            BadRequest: a name that cannot be, or that another process here keeps.
            BadStore, KeimaError: as `Worker`.
        """
        stop = Stop()
        with _own(self.folder / WORKERS, name) as own:
            Worker(self.store, own, self.folder / WORKERS, stop, self.say, threads, self.turns).run()

    def learn(self, name: str = "") -> Result:
        """Learn, to the end of the run. Raises as `keima.training.selfplay.learner.learn`."""
        with _own(self.folder / LEARNER, name or LEARNER) as own:
            status = Status(self.store, LEARNER, own)
            try:
                return learn(self.store, self.folder / LEARNER, LearnerStatus(status, _Saying(self.say)), self.turns)
            finally:
                status.close()

    def judge(self, name: str = "") -> None:
        """Judge, to the end of the run. Raises as `keima.training.selfplay.judge.judge`."""
        stop = Stop()
        with _own(self.folder / JUDGE, name or JUDGE) as own:
            status = Status(self.store, JUDGE, own)
            try:
                judge(self.store, self.folder / JUDGE, status.set, stop, self.turns)
            finally:
                status.close()


class _Saying(Watcher):
    def __init__(self, say: Say) -> None:
        self._say = say

    def say(self, message: str) -> None:
        self._say(message)


@contextmanager
def _own(folder: Path, name: str) -> Iterator[str]:
    """A name that is this process's as long as the block runs: HOST-0, HOST-1, … where none is given."""
    if name and not _NAME.fullmatch(name):
        raise BadRequest(f"a role's name has letters, digits, '.', '_' and '-', not {name!r}")
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()).lstrip("._-")[:80] or "host"
    lock: IO[str] | None = None
    for each in [name] if name else [f"{host}-{number}" for number in range(_MANY)]:
        lock = take_lock(folder / f"{each}.lock", _PATIENCE if name else 0.0)
        if lock is not None:
            break
    if lock is None:
        raise BadRequest(f"{holder(folder / f'{name}.lock')} has this name; give another --name", source=name)
    with lock:
        yield each
