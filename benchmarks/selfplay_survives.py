"""Nothing lost: a run of self-play whose processes are killed at random, beside one that is left alone.

python benchmarks/selfplay_survives.py [--recipe recipes/selfplay/connect-four.toml] [--minutes 20] [--every 20]
    [--folder runs/survives] [--seed 1] [--set KEY=VALUE] [--at-once]
    [--roles worker,learner,judge]

kill -9   every so many seconds of one process at random: a worker, the learner, the judge, or `keima selfplay` itself,
          which is then started again by the same command; of some of these alone with --roles
lost      games that were in the store at any moment and are not at the end; and numbers that a generation's games
          should have had and that are in no shard
doubled   games that a window counts twice; beside it how many were sent twice, which costs work and nothing else
weights   every network that was published against those of a learner that was never disturbed, on the same games
speed     games, positions and generations of the killed run against those of one of the same length left alone, and
          that one against another of its kind (--repeat), which is what chance does; with --at-once the two at the
          same time, each on a half of the processors, so that what else a machine does falls on both
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from keima.training.selfplay.networks import list_networks, read_published
from keima.training.selfplay.shards import FOLDER as GAMES
from keima.training.selfplay.shards import read_shard
from keima.training.selfplay.store import Store
from keima.training.selfplay.window import WINDOWS

SUPERVISOR = "keima selfplay"


@dataclass
class Reckoning:
    """What became of a run."""

    games: int = 0  # numbers in the store
    sent_twice: int = 0
    counted_twice: int = 0
    lost_shards: list[str] = field(default_factory=list)
    holes: int = 0  # numbers that no shard has, below the last one a generation learned from
    positions: int = 0
    generations: int = 0


class Run:
    """`keima selfplay` on a folder, killed and started again."""

    def __init__(self, arguments: Sequence[str], folder: Path, processors: Sequence[int] = ()) -> None:
        self.folder = folder
        self._processors = set(processors) or os.sched_getaffinity(0)
        self._command = [sys.executable, "-m", "keima", "selfplay", *arguments, "-o", str(folder), "--quiet"]
        self.seen: set[str] = set()  # all shards that ever were there
        self.killed: Counter[str] = Counter()
        self.start()

    def start(self) -> None:
        """Start it, or start it again."""
        log = self.folder.with_suffix(".log")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stream:
            self.process = subprocess.Popen(self._command, stdout=stream, stderr=stream)
        os.sched_setaffinity(self.process.pid, self._processors)

    def look(self) -> None:
        """Remember what is reported."""
        self.seen |= set(Store(self.folder).list(GAMES))

    def roles(self) -> dict[int, str]:
        """The processes there are, and what each is."""
        found = {self.process.pid: SUPERVISOR} if self.process.poll() is None else {}
        for lock in self.folder.glob("*/*.lock"):
            words = lock.read_text().split()
            if words and Path(f"/proc/{words[0]}").exists():
                found[int(words[0])] = lock.parent.name.removesuffix("s")
        return found

    def kill(self, rng: random.Random, *chosen: str) -> str:
        """Kill one of them, of some roles if they are named; which."""
        self.look()
        roles = self.roles()
        found = sorted(pid for pid, role in roles.items() if not chosen or role in chosen)
        if not found:
            return "nobody: there was none"
        pid = rng.choice(found)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return "nobody: it had just ended"
        self.killed[roles[pid]] += 1
        if pid == self.process.pid:
            self.process.wait()
            self.start()
        return roles[pid]

    def end(self) -> None:
        """Ask it to end, and wait."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(120)
        self.look()


def reckon(folder: Path, seen: set[str]) -> Reckoning:
    """Count a run's games, against all the shards that were ever seen in it."""
    store, found = Store(folder), Reckoning()
    names = store.list(GAMES)
    found.lost_shards = sorted(seen - {*names})
    numbers = {name: read_shard(store, name).column("number").to_pylist() for name in names}
    every = Counter(number for name in names for number in numbers[name])
    found.games, found.sent_twice = len(every), every.total() - len(every)
    windows = store.list(WINDOWS)
    for name in windows:
        manifest = json.loads(store.read(name))
        counted = {number for shard in manifest["shards"] for number in numbers.get(shard, ())}
        found.counted_twice = max(found.counted_twice, manifest["games"] - len(counted))
    if windows:
        found.holes = len(set(range(manifest["last_number"] + 1)) - {*every})
        found.positions = manifest["positions"]
    found.generations = len(list_networks(store)) - 1
    return found


def weights(folder: Path) -> list[str]:
    """SHA-256 of every network of a run, the oldest first."""
    store = Store(folder)
    return [read_published(store, generation).sha256 for generation in list_networks(store)]


def learn_again(folder: Path, target: Path, patience: float = 3600.0) -> list[str]:
    """The networks that an undisturbed learner makes of a run's games, as many as the run has."""
    wanted = len(weights(folder))
    target.mkdir(parents=True)
    shutil.copy(folder / "run.json", target)
    for name in (GAMES, WINDOWS):
        if (folder / name).is_dir():
            shutil.copytree(folder / name, target / name)
    command = [sys.executable, "-m", "keima", "selfplay", "learner", "--store", str(target)]
    with target.with_suffix(".log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    end = time.monotonic() + patience
    while process.poll() is None and len(weights(target)) < wanted and time.monotonic() < end:
        time.sleep(0.5)
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait(120)
    return weights(target)[:wanted]


def disturb(
    run: Run,
    seconds: float,
    every: float,
    rng: random.Random,
    tell: Callable[[str], None] = lambda _: None,
    roles: Sequence[str] = (),
) -> None:
    """Kill a process of the run at random every so many seconds, for so long (0 < `every`)."""
    end = time.monotonic() + seconds
    due = time.monotonic() + every
    while time.monotonic() < end and run.process.poll() is None:
        time.sleep(min(1.0, every / 4))
        if time.monotonic() >= due:
            due += every
            tell(f"killed: {run.kill(rng, *roles)}")
    run.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipe", default="recipes/selfplay/connect-four.toml")
    parser.add_argument("--set", action="append", default=["run.steps=1000000"], dest="settings")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--every", type=float, default=20.0, help="seconds")
    parser.add_argument("--folder", type=Path, default=Path("runs/survives"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", action="store_true", help="one more run left alone")
    parser.add_argument("--roles", default="", help="of which one is killed; else of all, keima selfplay too")
    parser.add_argument(
        "--at-once", action="store_true", help="the runs at the same time, on a share of the processors each"
    )
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    arguments = [options.recipe, *(word for setting in options.settings for word in ("--set", setting))]
    names = ["killed", "alone", *(["again"] if options.repeat else [])]
    processors = sorted(os.sched_getaffinity(0))
    rng = random.Random(options.seed)

    def say(text: str) -> None:
        print(f"{time.strftime('%T')} {text}", flush=True)

    def measure(place: int) -> Reckoning:
        name, folder = names[place], options.folder / names[place]
        run = Run(arguments, folder, processors[place :: len(names)] if options.at_once else ())
        every = options.every if name == "killed" else float("inf")
        disturb(run, 60 * options.minutes, every, rng, say, options.roles.split(",") if options.roles else ())
        found = reckon(folder, run.seen)
        print(name, dict(run.killed), found, flush=True)
        return found

    with ThreadPoolExecutor(len(names) if options.at_once else 1) as pool:
        results = dict(zip(names, pool.map(measure, range(len(names))), strict=True))
    killed, alone = results["killed"], results["alone"]
    made, again = weights(options.folder / "killed"), learn_again(options.folder / "killed", options.folder / "learner")
    print(f"lost {len(killed.lost_shards)} shards, {killed.holes} numbers; counted twice {killed.counted_twice}")
    print(f"networks {len(made)}, the same as of an undisturbed learner: {made == again}")
    for what in ("games", "positions", "generations"):
        share = getattr(killed, what) / max(1, getattr(alone, what))
        chance = (
            f"; chance alone {getattr(results['again'], what) / getattr(alone, what):.1%}" if options.repeat else ""
        )
        print(f"{what}: {share:.1%} of a run left alone{chance}")


if __name__ == "__main__":
    main()
