"""Who plays which games: numbers are claimed in blocks, claims/00000340.json for one worker.

A claim is renewed as long as its worker lives; one that is older than `STALE_SECONDS` may be taken over. Claims only
save work: a game that two workers play counts once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

from keima.errors import BadStore
from keima.training.selfplay.networks import read_object
from keima.training.selfplay.shards import FOLDER as GAMES
from keima.training.selfplay.store import Store

FOLDER = "claims"
STALE_SECONDS = 600.0
"""Of the clocks of all machines, which should agree to a minute."""
_LIST_SECONDS = 30.0
"""Between two lists of a store that is not a folder, where each costs many requests."""


class Claims:
    """The blocks of one worker.

    Args:
        store: of the run.
        name: the worker's.
        size: games of a block.

    Attributes:
        mine: first numbers of the blocks it plays → when each was claimed or renewed, Unix seconds.
    """

    def __init__(self, store: Store, name: str, size: int) -> None:
        self.store, self.name, self.size = store, name, size
        self.mine: dict[int, float] = {}
        self._done: set[int] = set()
        self._taken: set[int] = set()
        self._seen: dict[int, float] = {}  # claims of others → monotonic seconds from when on one may look at them
        self._next = 0
        self._listed = float("-inf")

    def resume(self, numbers: Iterable[int]) -> tuple[set[int], set[int]]:
        """Take up what this worker played before; `numbers` are those of the games it still has.

        Returns:
            First numbers of the blocks it goes on with; those of `numbers` that are no longer its own to play: others
            have played them, or are at it.
        """
        self._list()
        blocks = {number - number % self.size for number in numbers}
        if self.store.local is not None:  # blocks it had claimed and not begun
            blocks |= {first for first in self._taken if self._claim(first)[0] == self.name}
        for first in sorted(blocks):
            worker, renewed = self._claim(first) if first in self._taken else (self.name, 0.0)
            if first not in self._done and (worker == self.name or time.time() - renewed > STALE_SECONDS):
                self._write(first)
        return {*self.mine}, {number for number in numbers if number - number % self.size not in self.mine}

    def take(self) -> int:
        """Claim the first block that nobody plays or has played; its first number."""
        if self.store.local is not None or time.monotonic() - self._listed > _LIST_SECONDS:
            self._list()
        for first in sorted(self._stale()):
            self._write(first)
            return first
        while True:
            first, self._next = self._next, self._next + self.size
            if first in self._done or first in self._taken:
                continue
            self._taken.add(first)
            if self.store.write_new(_name(first), self._claimed()):
                self.mine[first] = time.time()
                return first

    def renew(self) -> None:
        """Renew the claims that have become a third of what makes them stale."""
        for first, renewed in self.mine.items():
            if time.time() - renewed > STALE_SECONDS / 3:
                self._write(first)

    def release(self, first: int) -> None:
        """The block is played, and its games are in the store."""
        del self.mine[first]
        self._done.add(first)
        self.store.delete(_name(first))

    def _write(self, first: int) -> None:
        self.store.write(_name(first), self._claimed())
        self.mine[first] = time.time()
        self._taken.add(first)

    def _claimed(self) -> bytes:
        return json.dumps({"worker": self.name, "time": time.time()}).encode() + b"\n"

    def _claim(self, first: int) -> tuple[str, float]:
        """Worker and time of a claim; nobody's, long ago, where it is gone or cannot be read."""
        try:
            fields = read_object(self.store, _name(first))
            return str(fields["worker"]), float(fields["time"])
        except (BadStore, KeyError, TypeError, ValueError):
            return "", 0.0

    def _list(self) -> None:
        self._listed = time.monotonic()
        taken = (name.removeprefix(f"{FOLDER}/").removesuffix(".json") for name in self.store.list(FOLDER))
        self._taken = {int(number) for number in taken if number.isdecimal()}
        # after the claims: a block whose claim goes between the two is there as a shard
        firsts = (name.removeprefix(f"{GAMES}/").partition("-")[0] for name in self.store.list(GAMES))
        self._done |= {int(first) - int(first) % self.size for first in firsts if first.isdecimal()}
        self._next = 0
        now = time.monotonic()
        others = self._taken - {*self.mine}
        self._seen = {first: self._seen.get(first, now + STALE_SECONDS) for first in others}

    def _stale(self) -> list[int]:
        """Claims of others that were there for long and are not renewed."""
        found = []
        for first, due in self._seen.items():
            if time.monotonic() < due:
                continue
            age = time.time() - self._claim(first)[1]
            if first in self._done:
                self.store.delete(_name(first))
            elif age > STALE_SECONDS:
                found.append(first)
            self._seen[first] = time.monotonic() + STALE_SECONDS - min(max(age, 0.0), STALE_SECONDS)
        return found


def _name(first: int) -> str:
    return f"{FOLDER}/{first:08d}.json"
