"""What saturates first when ever more workers play: a simulation of a run against an object store, with measured rates.

    python benchmarks/selfplay_cluster.py --measure RUN   rates of a run in a folder here, while it plays,
                                                          → benchmarks/selfplay_cluster.json
    python benchmarks/selfplay_cluster.py                 a table, and docs/images/selfplay-cluster.png

Simulated, second by second of the run's time, each request to the store by itself:

worker    claims a block (lists every 30 s, one look for each number that is taken, one write), plays it in
          block · positions / rate seconds, writes its shard and deletes its claim; looks every 15 s for a network
          (lists networks, two looks) and for whether to begin games (one list of networks, one of games); reads every
          new network and the newest window's manifest. While it talks to the store it does not play.
learner   lists games until there are enough (WindowRecipe.needed), reads the new shards one after another, decodes
          them, trains steps · batch / rate seconds, publishes.
store     a request takes its latency, a list its latency for each page of 1,000; requests beyond the limit a second
          wait in a queue. A file's bytes go at the rate of a node's network, and of the whole store's.

Positions a second that may be played at most are reuse⁻¹ of those learned: more workers than
learner / (reuse · worker) wait. Judging is left out.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import math
import tempfile
import time
from collections.abc import Generator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
MEASURED = HERE / "selfplay_cluster.json"
PICTURE = HERE.parent / "docs/images/selfplay-cluster.png"
RECIPE = HERE.parent / "recipes/selfplay/connect-four.toml"
WORKERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
POLL, LIST_EVERY, LEARNER_POLL = 15.0, 30.0, 1.0
"""Seconds, as in roles/worker.py, roles/claims.py and window.py."""


@dataclass(frozen=True)
class Rates:
    """What is measured (`measure`)."""

    evaluations: float  # a second, of one worker
    games: float  # a second, of one worker
    positions: float  # learned from, of a game
    shard_bytes: float  # of a game
    network_bytes: int
    decode: float  # seconds to read and check a shard from a folder
    learner: float  # positions learned a second
    write: float  # seconds a shard takes in a folder
    list: float  # seconds for a list of 10,000 names in a folder
    manifest: float  # bytes for each shard in a window's manifest


@dataclass(frozen=True)
class Limits:
    """An object store's and the network's. The defaults are what is published for S3, and common of others."""

    puts: float = 3500.0  # a second and prefix; Amazon S3, "best practices: optimizing performance"
    gets: float = 5500.0
    page: int = 1000  # names of a list
    page_seconds: float = 0.1
    seconds: float = 0.03  # until a request is answered
    node: float = 125e6  # bytes a second: 1 Gbit/s
    total: float = 12.5e9  # bytes a second of all nodes together: 100 Gbit/s


@dataclass(frozen=True)
class Run:
    """The recipe's numbers, and how far the run is when it is looked at."""

    steps: int
    batch: int
    reuse: float
    block: int
    shards: int = 0  # in the store before


# --- The simulation ---------------------------------------------------------------------------------------------------

Process = Generator[float, None, None]
"""Yields the time at which it goes on."""


@dataclass
class Store:
    """Requests wait in three queues: reads, writes, bytes."""

    limits: Limits
    now: float = 0.0
    free: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("get", "put", "bytes"), 0.0))
    used: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("get", "put", "bytes"), 0.0))

    def _queue(self, what: str, amount: float, rate: float) -> float:
        self.used[what] += amount
        self.free[what] = max(self.free[what], self.now) + amount / rate
        return self.free[what]

    def get(self, size: float = 0.0, requests: int = 1) -> float:
        """When requests, one after another, are answered."""
        done = self._queue("get", requests, self.limits.gets) + requests * self.limits.seconds
        return max(done, self._queue("bytes", size, self.limits.total)) + size / self.limits.node

    def put(self, size: float = 0.0) -> float:
        done = self._queue("put", 1, self.limits.puts) + self.limits.seconds
        return max(done, self._queue("bytes", size, self.limits.total)) + size / self.limits.node

    def list(self, names: int) -> float:
        pages = max(1, math.ceil(names / self.limits.page))
        return self._queue("get", pages, self.limits.gets) + pages * self.limits.page_seconds


class Simulation:
    """A run of so many workers."""

    def __init__(self, rates: Rates, limits: Limits, run: Run, workers: int) -> None:
        self.rates, self.run, self.workers = rates, run, workers
        self.store = Store(limits)
        self.positions = self.counted = 0.0  # in the store; those the learner knows
        self.shards, self.network = run.shards, 0
        self.learned = 0  # generations that have begun
        self.taken = 0  # blocks: all below are claimed
        self.claims = 0
        self.spent = dict.fromkeys(("plays", "store", "waits", "reads", "trains", "starves"), 0.0)
        self.trains = False
        self.per_generation = run.steps * run.batch / run.reuse
        self._events: list[tuple[float, int, Process]] = []
        self._order = itertools.count()

    def simulate(self, seconds: float, warm: float) -> dict[str, float]:
        """What was done a second, after the warming up."""
        for each in (*(self.worker(k) for k in range(self.workers)), self.learner()):
            heapq.heappush(self._events, (0.0, next(self._order), each))
        before: tuple[float, dict[str, float], dict[str, float], int] | None = None
        while self._events[0][0] < seconds:
            now, _, process = heapq.heappop(self._events)
            if before is None and now >= warm:
                before = self.positions, dict(self.store.used), dict(self.spent), self.network
            self.store.now = now
            heapq.heappush(self._events, (max(now, next(process)), next(self._order), process))
        assert before is not None
        long = seconds - warm
        share = {name: (self.spent[name] - before[2][name]) / long for name in self.spent}
        limits = self.store.limits
        used = {name: (self.store.used[name] - before[1][name]) / long for name in before[1]}
        return {
            "workers": self.workers,
            "positions": (self.positions - before[0]) / long,
            "generations": 3600 * (self.network - before[3]) / long,
            **{name: share[name] / self.workers for name in ("plays", "store", "waits")},
            **{name: share[name] for name in ("reads", "trains", "starves")},
            "gets": used["get"] / limits.gets,
            "puts": used["put"] / limits.puts,
            "bytes": used["bytes"] / limits.total,
        }

    def _spend(self, what: str, until: float) -> float:
        self.spent[what] += max(0.0, until - self.store.now)
        return until

    def worker(self, number: int) -> Process:
        """One worker."""
        rates, block = self.rates, self.run.block
        long = block / rates.games
        looked = listed = -math.inf
        known, following, network, manifest = 0, 0, -1, 0
        yield number * long / self.workers  # they do not all begin at once
        while True:
            if self.store.now - looked > POLL:
                looked = self.store.now
                yield self._spend("store", self.store.get(requests=2))
                yield self._spend("store", self.store.list(3 * self.network))
                if network < self.network:
                    network = self.network
                    yield self._spend("store", self.store.get(rates.network_bytes, 2))
                yield self._spend("store", self.store.list(3 * self.network))
                yield self._spend("store", self.store.list(self.shards))
                if manifest < self.learned:
                    manifest = self.learned
                    yield self._spend("store", self.store.get(rates.manifest * self.shards))
                while self.trains and self.positions > (self.learned + 1) * self.per_generation:
                    yield self._spend("waits", self.store.now + POLL)
            if self.store.now - listed > LIST_EVERY:
                listed = self.store.now
                known = self.taken
                yield self._spend("store", self.store.list(self.claims))
                yield self._spend("store", self.store.list(self.shards))
            following = max(following, known)
            missed = max(0, self.taken - following)  # claimed by others since
            if missed:
                yield self._spend("store", self.store.get(requests=missed))
            self.taken += 1
            self.claims += 1
            following = self.taken
            yield self._spend("store", self.store.get())
            yield self._spend("store", self.store.put())
            end = self.store.now + long
            while end - self.store.now > POLL:  # a long block: it looks for networks meanwhile
                yield self._spend("plays", self.store.now + POLL)
                looked = began = self.store.now
                yield self._spend("store", self.store.get(requests=2))
                yield self._spend("store", self.store.list(3 * self.network))
                if network < self.network:
                    network = self.network
                    yield self._spend("store", self.store.get(rates.network_bytes, 2))
                end += self.store.now - began
            yield self._spend("plays", end)
            yield self._spend("store", self.store.put(rates.shard_bytes * block))
            self.positions += rates.positions * block
            self.shards += 1
            yield self._spend("store", self.store.get())
            yield self._spend("store", self.store.put())
            self.claims -= 1

    def learner(self) -> Process:
        """The learner."""
        per_shard = self.rates.positions * self.run.block
        while True:
            needed = (self.learned + 1) * self.per_generation
            yield self._spend("reads", self.store.list(self.shards))
            while self.positions < needed:
                yield self._spend("starves", self.store.now + LEARNER_POLL)
                yield self._spend("reads", self.store.list(self.shards))
            while self.counted < needed:
                self.counted += per_shard
                yield self._spend("reads", self.store.get(self.rates.shard_bytes * self.run.block) + self.rates.decode)
            yield self._spend("reads", self.store.put(self.rates.manifest * self.shards))
            self.learned += 1
            self.trains = True
            yield self._spend("trains", self.store.now + self.run.steps * self.run.batch / self.rates.learner)
            self.trains = False
            yield self._spend("reads", self.store.put(self.rates.network_bytes))
            yield self._spend("reads", self.store.put())
            self.network += 1


def first_limit(row: dict[str, float]) -> str:
    """What holds a run back most."""
    if row["trains"] > 0.8:
        return "learner trains"
    if row["trains"] + row["reads"] > 0.9:
        return "learner reads shards"
    if max(row[name] for name in ("gets", "puts", "bytes")) > 0.9:
        return "store: " + max(("gets", "puts", "bytes"), key=lambda name: row[name])
    return "workers wait for the store" if row["store"] > 0.2 else "workers play"


# --- What is measured -------------------------------------------------------------------------------------------------


def measure(folder: Path) -> Rates:
    """The rates of a run that is being played in this folder on this machine."""
    from keima.training.selfplay.networks import list_networks
    from keima.training.selfplay.shards import full_counts, read_shard
    from keima.training.selfplay.store import Store as Kept

    store = Kept(folder)
    workers = [json.loads(path.read_text()) for path in (folder / "status").glob("worker-*.json")]
    names = store.list("games")[-100:]
    began = time.perf_counter()
    tables = [read_shard(store, name) for name in names]
    decode = (time.perf_counter() - began) / len(names)
    games = sum(len(table) for table in tables)
    size = sum(len(store.read(name)) for name in names)
    lines = [json.loads(line) for line in (folder / "learner/metrics.jsonl").read_text().splitlines()]
    window = sorted((folder / "windows").iterdir())[-1].read_text()
    newest = list_networks(store)[-1]
    with tempfile.TemporaryDirectory() as scratch:
        other, data = Kept(scratch), store.read(names[0])
        began = time.perf_counter()
        for number in range(100):
            other.write(f"games/{number}", data)
        write = (time.perf_counter() - began) / 100
        (Path(scratch) / "many").mkdir()
        for number in range(10_000):
            (Path(scratch) / "many" / f"{number:08d}.json").touch()
        began = time.perf_counter()
        other.list("many")
        listing = time.perf_counter() - began
    return Rates(
        evaluations=max(each.get("evaluations_per_second", 0.0) for each in workers),
        games=max(each.get("games_per_second", 0.0) for each in workers),
        positions=sum(int(full_counts(table).sum()) for table in tables) / games,
        shard_bytes=size / games,
        network_bytes=len(store.read(f"networks/{newest:06d}.safetensors")),
        decode=decode,
        learner=max(line["positions_per_second"] for line in lines if "positions_per_second" in line),
        write=write,
        list=listing,
        manifest=len(window) / len(json.loads(window)["shards"]),
    )


# --- Told -------------------------------------------------------------------------------------------------------------


def table(rows: list[dict[str, float]]) -> str:
    """The rows, as Markdown."""
    lines = ["| workers | positions/s | generations/h | worker: plays | store | waits "
             "| learner: trains | reads | starves | GET | PUT | bytes | limit |", "|" + "---|" * 13]  # fmt: skip
    for row in rows:
        cells = [f"{row['workers']:,.0f}", f"{row['positions']:,.0f}", f"{row['generations']:,.1f}"]
        names = ("plays", "store", "waits", "trains", "reads", "starves", "gets", "puts", "bytes")
        cells += [f"{100 * row[name]:.0f} %" for name in names]
        lines.append(f"| {' | '.join([*cells, first_limit(row)])} |")
    return "\n".join(lines)


def costs(rows: list[dict[str, float]], options: argparse.Namespace, rates: Rates, games: int) -> str:
    """What a million positions learned from cost, by the prices given; an interruption loses half a game a slot."""
    lost = games / rates.games / 2 / (3600 * options.spot_hours)
    lines = ["| | workers | an hour | positions/s | a million positions |", "|---|---|---|---|---|"]
    for name, count, price, share in (("one box", 2, 0.0, 1.0), ("cluster", 200, options.worker_price, 1.0),
                                      ("spot machines", 200, options.spot_price, 1 - lost)):  # fmt: skip
        row = next(row for row in rows if row["workers"] == count)
        hour, speed = options.learner_price + count * price, share * row["positions"]
        speed = min(speed, row["generations"] / 3600 * options.per_generation)
        lines.append(f"| {name} | {count} | {hour:.2f} | {speed:,.0f} | {hour / speed / 3600 * 1e6:,.2f} |")
    return "\n".join(lines)


def draw(cases: dict[str, list[dict[str, float]]], path: Path) -> None:
    """Positions a second by workers, and what workers and learner do."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(1, len(cases) + 1, figsize=(4.5 * len(cases) + 4.5, 4.5))
    axes = list(grid)
    for name, rows in cases.items():
        axes[0].loglog([row["workers"] for row in rows], [row["positions"] for row in rows], marker="o", label=name)
    axes[0].set(xlabel="workers", ylabel="positions a second", title="played")
    axes[0].legend(fontsize="x-small")
    for axis, (name, rows) in zip(axes[1:], cases.items(), strict=True):
        for what, label in (("plays", "a worker plays"), ("store", "a worker waits for the store"),
                            ("trains", "the learner trains"), ("reads", "the learner reads"),
                            ("gets", "GETs of the limit"), ("puts", "PUTs of the limit")):  # fmt: skip
            axis.semilogx([row["workers"] for row in rows], [row[what] for row in rows], marker=".", label=label)
        axis.set(xlabel="workers", ylabel="share", ylim=(-0.03, 1.03))
        axis.set_title(name, fontsize="small")
        axis.legend(fontsize="x-small")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100, metadata={"Software": None})
    pyplot.close(figure)


def main() -> None:
    from keima.training.selfplay.recipe import read_loop

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", type=Path, metavar="RUN", help="a run in a folder here, while it plays")
    parser.add_argument(
        "--learner", type=float, default=100.0, help="times the measured learner: an example of a GPU's"
    )
    parser.add_argument("--shards", type=int, default=100_000, help="in the store of the long run")
    parser.add_argument("--simulated", type=float, default=900.0, help="seconds; a third of them to warm up")
    parser.add_argument("--learner-price", type=float, default=2.0, help="of the learner's machine, an hour: example")
    parser.add_argument("--worker-price", type=float, default=0.1, help="of a worker's two cores, an hour; an example")
    parser.add_argument("--spot-price", type=float, default=0.03, help="the same as a spot machine; an example")
    parser.add_argument("--spot-hours", type=float, default=2.0, help="that it lives on average; an example")
    options = parser.parse_args()
    if options.measure:
        MEASURED.write_text(json.dumps(asdict(measure(options.measure)), indent=1) + "\n")
    rates = Rates(**json.loads(MEASURED.read_text()))
    loop = read_loop(RECIPE)
    run = Run(loop.window.steps, loop.training.run.batch_size, loop.window.reuse, loop.games.block)
    fast = replace(rates, learner=options.learner * rates.learner)
    long, large = replace(run, shards=options.shards), 8
    wide = replace(run, block=large * run.block, steps=10 * run.steps, shards=options.shards // large)
    cases = {
        "the recipe, measured": (rates, run),
        f"learner × {options.learner:g}": (fast, run),
        f"learner × {options.learner:g}, {long.shards:,} shards": (fast, long),
        f"the same games as {wide.shards:,} shards of {wide.block}, window.steps {wide.steps}": (fast, wide),
    }
    print(json.dumps(asdict(rates)))
    found: dict[str, list[dict[str, float]]] = {}
    for name, (measured, each) in cases.items():
        most = measured.learner / (each.reuse * measured.games * measured.positions)
        rows = [Simulation(measured, Limits(), each, count).simulate(options.simulated, options.simulated / 3)
                for count in WORKERS]  # fmt: skip
        found[name] = rows
        print(f"\n{name}: the learner keeps up with {most:,.1f} workers\n\n{table(rows)}")
    options.per_generation = wide.steps * wide.batch / wide.reuse
    print(f"\n{costs(rows, options, rates, loop.games.side_by_side)}")
    draw(found, PICTURE)


if __name__ == "__main__":
    main()
