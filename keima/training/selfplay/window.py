"""What a generation of the network learns from: the newest games of a run, by a manifest written before it begins.

Which games count follows from the shards that the manifest names alone: they are taken in the order of their names,
that is of their blocks, until `WindowRecipe.needed` positions are there; a game that is in two of them counts in the
first. A position is a ply with a full search. Of the games that count, the newest by number whose positions fill
`WindowRecipe.size` are the window. So a network's weights follow from the games, the seed and the manifests.

A block that is missing while later ones are there is waited for a while (`HOLE_SECONDS` of a generation's waiting),
then passed over; when it comes it counts for the next generation.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keima.errors import BadStore
from keima.plain import Data
from keima.systems.network import Network
from keima.systems.targets import ArrayBatch
from keima.training.data.batches import Loader
from keima.training.data.sampling import key_of
from keima.training.run.preflight import World
from keima.training.selfplay.recipe import LoopRecipe
from keima.training.selfplay.shards import FOLDER, ShardGames, block_of, full_counts, read_shard, shard_games
from keima.training.selfplay.store import Store, StoreLost

WINDOWS = "windows"
HOLE_SECONDS = 30.0
"""How long a generation waits for a missing block while there are later ones."""
POLL_SECONDS, TELL_SECONDS = 1.0, 60.0
"""Between two looks for games, and between two messages that it waits for them."""
_READERS = 8

Say = Callable[[str], None]
Ints = NDArray[np.int64]
Order = tuple[int, int, str]


@dataclass(frozen=True, eq=False)
class Window:
    """What a generation learns from.

    Attributes:
        manifest: as it is kept: generation; shards, their names, and `counts`, the games and positions each has;
            games and positions in all; window_games and window_positions of those in the window, first_number its
            oldest game.
        games: those of the window, by number.
    """

    generation: int
    manifest: Data
    games: ShardGames

    @property
    def positions(self) -> int:
        """Positions of the window."""
        return self.games.positions

    def resign_threshold(self, allowed: float) -> float | None:
        """See `resign_threshold`; of the window's games that were played out."""
        return resign_threshold(self.games, allowed)


class _Shard(NamedTuple):
    """A shard that was read."""

    table: pa.Table
    numbers: NDArray[np.int64]
    full: NDArray[np.int64]  # positions of each game


@dataclass
class Windows:
    """The windows of a store, one after another; what was read stays in memory as long as it is needed."""

    store: Store
    recipe: LoopRecipe
    say: Say
    positions: int = 0  # those that count, as far as the last look went
    _read: dict[str, _Shard] = field(default_factory=dict)
    _counts: dict[str, tuple[int, int]] = field(default_factory=dict)  # games and positions of shards
    _bad: set[str] = field(default_factory=set)

    def open(self, generation: int, holes: bool = True) -> Window | None:
        """The window of a generation 1, 2, …; None while there are not enough positions.

        Where a manifest is there it says which; else one is written. `holes`: missing blocks are passed over.

        Raises:
            BadStore: a shard of the manifest is missing or damaged, or the manifest is.
        """
        name = f"{WINDOWS}/{generation:06d}.json"
        manifest = self._manifest(name)
        if manifest is None:
            manifest = self._plan(generation, holes)
            if manifest is None:
                return None
            if not self.store.write_new(name, json.dumps(manifest, indent=1).encode()):
                manifest = self._manifest(name) or manifest
        return Window(generation, manifest, self._load(manifest))

    # --- Which games --------------------------------------------------------------------------------------------------

    def _manifest(self, name: str) -> Data | None:
        if not self.store.exists(name):
            return None
        try:
            found: Data = json.loads(self.store.read(name))
            for shard, (games, positions) in zip(found["shards"], found["counts"], strict=True):
                block_of(shard)
                self._counts.setdefault(shard, (int(games), int(positions)))
            found |= {key: int(found[key]) for key in ("positions", "first_number")}
        except (ValueError, KeyError, TypeError) as error:
            raise BadStore(f"is no manifest of a window: {error!r}", source=f"{self.store.address}/{name}") from error
        return found

    def _plan(self, generation: int, holes: bool) -> Data | None:
        """The manifest of a new window; None while there are not enough positions."""
        needed = self.recipe.window.needed(generation, self.recipe.training.run.batch_size)
        before = self._manifest(f"{WINDOWS}/{generation - 1:06d}.json") if generation > 1 else None
        taken: list[str] = list(before["shards"]) if before else []
        self.positions = before["positions"] if before else 0
        blocks = {block_of(name) for name in taken}
        following = max((last for _, last in blocks), default=-1) + 1  # holes before it were passed over
        fresh = {name for name in self.store.list(FOLDER) if self._is_shard(name)} - {*taken}
        for name in sorted(fresh, key=_order):
            if self.positions >= needed:
                break
            first, last = block = block_of(name)
            if first > following and not holes:
                return None
            following = max(following, last + 1)
            if not self._is_sound(name):
                continue
            taken.append(name)
            if any(first <= others[1] and others[0] <= last for others in blocks):
                self.positions = sum(positions for _, positions in self._tally(taken).values())
            else:
                self.positions += self._own(name)[1]
            blocks.add(block)
        return self._describe(generation, taken) if self.positions >= needed else None

    def _describe(self, generation: int, names: list[str]) -> Data:
        """The manifest of a window over these shards."""
        names = sorted(names, key=_order)
        tally = self._tally(names)
        positions = sum(count for _, count in tally.values())
        numbers, full = self._newest(names, self.recipe.window.size(positions))
        return {
            "generation": generation,
            "games": sum(count for count, _ in tally.values()),
            "positions": positions,
            "window_games": len(numbers),
            "window_positions": int(full.sum()),
            "first_number": int(numbers[0]),
            "last_number": int(numbers[-1]),
            "shards": names,
            "counts": [list(counts) for counts in tally.values()],
        }

    def _newest(self, names: Sequence[str], size: int) -> tuple[Ints, Ints]:
        """The newest games whose positions are so many: their numbers, rising, and how many positions each has."""
        found: dict[int, tuple[Order, int]] = {}
        total = 0
        left = sorted(names, key=lambda name: block_of(name)[1])
        while left:
            name = left.pop()
            shard, order = self._shard(name), _order(name)
            for number, full in zip(shard.numbers.tolist(), shard.full.tolist(), strict=True):
                before = found.get(number)
                if before is None or order < before[0]:
                    found[number] = order, full
                    total += full - (before[1] if before else 0)
            bound = block_of(left[-1])[1] if left else -1  # of games above it all is known
            if total >= size and sum(full for number, (_, full) in found.items() if number > bound) >= size:
                break
        numbers = np.array(sorted(found), np.int64)
        full_of = np.array([found[number][1] for number in numbers.tolist()], np.int64)
        first = len(numbers) - 1 - int(np.searchsorted(np.cumsum(full_of[::-1]), size))
        return numbers[max(0, first) :], full_of[max(0, first) :]

    def _tally(self, names: Collection[str]) -> dict[str, tuple[int, int]]:
        """Games and positions that each of these shards adds to those before it, in their order."""
        found: dict[str, tuple[int, int]] = {}
        group: list[str] = []  # shards whose blocks overlap
        reach = -1
        for name in (*sorted(names, key=_order), None):
            if name is not None and block_of(name)[0] <= reach:
                group.append(name)
                reach = max(reach, block_of(name)[1])
                continue
            if len(group) == 1:
                found[group[0]] = self._own(group[0])
            else:
                seen = np.zeros(0, np.int64)
                for each in group:
                    shard = self._shard(each)
                    new = ~np.isin(shard.numbers, seen)
                    found[each] = int(new.sum()), int(shard.full[new].sum())
                    seen = np.union1d(seen, shard.numbers)
            if name is not None:
                group, reach = [name], block_of(name)[1]
        return found

    def _own(self, name: str) -> tuple[int, int]:
        """Games and positions of a shard whose block no other one's meets."""
        if name not in self._counts:
            shard = self._shard(name)
            self._counts[name] = len(shard.numbers), int(shard.full.sum())
        return self._counts[name]

    # --- Reading ------------------------------------------------------------------------------------------------------

    def _is_shard(self, name: str) -> bool:
        try:
            block_of(name)
        except BadStore as error:
            self._leave_out(name, error)
            return False
        return True

    def _is_sound(self, name: str) -> bool:
        """Can the shard be read? One that is damaged is left out."""
        if name not in self._bad:
            try:
                self._shard(name)
            except StoreLost:
                raise
            except BadStore as error:
                self._leave_out(name, error)
        return name not in self._bad

    def _leave_out(self, name: str, error: BadStore) -> None:
        if name not in self._bad:
            self._bad.add(name)
            self.say(f"left out: {error}")

    def _shard(self, name: str) -> _Shard:
        if name not in self._read:
            table = read_shard(self.store, name)
            self._read[name] = _Shard(table, table.column("number").to_numpy(), full_counts(table))
        return self._read[name]

    def _load(self, manifest: Data) -> ShardGames:
        """The games of a window."""
        first = manifest["first_number"]
        names = [name for name in sorted(manifest["shards"], key=_order) if block_of(name)[1] >= first]
        with ThreadPoolExecutor(_READERS, thread_name_prefix="keima-shards") as pool:
            shards = list(pool.map(self._shard, names))
        self._read = {name: shard for name, shard in self._read.items() if block_of(name)[1] >= first}
        numbers = np.concatenate([shard.numbers for shard in shards])
        chosen = np.unique(numbers, return_index=True)[1]  # the first of each number
        chosen = chosen[numbers[chosen] >= first]
        table = pa.concat_tables([shard.table for shard in shards])
        return shard_games(table if np.array_equal(chosen, np.arange(len(numbers))) else table.take(chosen))


def _order(name: str) -> Order:
    """Shards stand in this order: by block, then by name."""
    return *block_of(name), name


def open_window(store: Store, recipe: LoopRecipe, generation: int, say: Say) -> Window | None:
    """The window of a generation 1, 2, …; None while there are not enough positions. See `Windows.open`."""
    return Windows(store, recipe, say).open(generation)


# --- Batches ----------------------------------------------------------------------------------------------------------


class WindowBatches:
    """The batches of a run's generations, each from its window, for `keima.training.run.loop.Trainer`.

    Batch s is of generation s // (steps · accumulate) + 1, and a function of its window, the seed and s: each position
    of a window comes once before any comes twice.

    Args:
        targets: that the loss needs.
        say: is told what is waited for, and what is left out.
        stopped: asked while games are waited for; True ends the waiting with KeyboardInterrupt.
        world: which process of how many this is.

    Attributes:
        positions: those before anything is learned: the same all through a run.
        window: that of the generation at hand.
    """

    def __init__(
        self,
        store: Store,
        recipe: LoopRecipe,
        network: Network,
        targets: Collection[str],
        say: Say,
        stopped: Callable[[], bool] = lambda: False,
        world: World | None = None,
    ) -> None:
        self.positions = recipe.window.first
        self.window: Window | None = None
        self.stopped = stopped
        self._windows = Windows(store, recipe, say)
        self._recipe, self._network, self._targets, self._say = recipe, network, frozenset(targets), say
        self._world = world or World("cpu", 1, 1)
        self._length = recipe.window.steps * recipe.training.run.accumulate
        self._next = 0
        self._batches: Loader | None = None

    def seek(self, step: int) -> None:
        """Let batch number `step` come next."""
        self.close()
        self._next = step

    def close(self) -> None:
        """Stop the threads of the generation at hand."""
        if self._batches is not None:
            self._batches.close()
        self._batches, self.window = None, None

    def __iter__(self) -> Iterator[ArrayBatch]:
        return self

    def prepare(self) -> None:
        """Wait for the games of the generation whose batch comes next; raises KeyboardInterrupt if `stopped`."""
        before, within = divmod(self._next, self._length)
        if self._batches is None or self.window is None or self.window.generation != before + 1:
            self.close()
            self.window = self._wait(before + 1)
            self._batches = self._open(self.window)
            self._batches.seek(within)

    def __next__(self) -> ArrayBatch:
        """The next batch; the first one of a generation waits for its games as `prepare` does."""
        self.prepare()
        assert self._batches is not None
        batch = next(self._batches)
        self._next += 1
        return batch

    def _open(self, window: Window) -> Loader:
        """The batches of a window, its left-out games told."""
        training, games = self._recipe.training, window.games
        loader = Loader(
            games.games,
            self._network.encoding,
            training.run.batch_size // (training.run.accumulate * self._world.size),
            seed=int(key_of(training.run.seed, window.generation)) >> 1,
            symmetries=training.data.symmetries,
            workers=training.data.workers,
            targets=self._targets,
            rank=self._world.rank,
            world_size=self._world.size,
            gpu=self._world.device == "cuda",
            **games.targets(self._recipe.window.value_lambda),
        )
        for reason, count in loader.left_out.items():
            self._say(f"generation {window.generation}: {count:,} games left out ({reason})")
        return loader

    def _wait(self, generation: int) -> Window:
        began = told = time.monotonic()
        waited = False
        while True:
            window = self._windows.open(generation, holes=time.monotonic() - began >= HOLE_SECONDS)
            if window is not None:
                return window
            if not waited or time.monotonic() - told >= TELL_SECONDS:
                run = self._recipe.training.run
                needed = self._recipe.window.needed(generation, run.batch_size)
                there = self._windows.positions
                self._say(f"generation {generation} waits for games: {there:,} of {needed:,} positions")
                waited, told = True, time.monotonic()
            if self.stopped():
                raise KeyboardInterrupt
            time.sleep(POLL_SECONDS)


# --- Resigning --------------------------------------------------------------------------------------------------------


def resign_threshold(games: ShardGames, allowed: float) -> float | None:
    """The t in [0, 1] at which resigning as soon as Q < −t is wrong in at most that share of the games that end so.

    Measured on the games that were played out, of which as many must end so that one wrong one is allowed; the t that
    ends most of them. Wrong is where the side that would have resigned did not lose. None: no t is known to do.
    Silver et al. 2017 (AlphaGo Zero), Methods, "Self-play": v_resign, chosen so that less than 5 % are wrong.
    """
    if not allowed > 0:
        return None
    flat = games.games
    events: list[tuple[float, int, bool]] = []  # Q below everything before it, game, is resigning there wrong?
    for game in np.flatnonzero(games.played_out).tolist():
        q = games.q[flat.start[game] : flat.start[game + 1]]
        plies = np.flatnonzero(~np.isnan(q))
        least = np.minimum.accumulate(q[plies])
        plies = plies[np.concatenate([[True], least[1:] < least[:-1]])[: len(plies)] & (least < 0)]
        sides = np.where(flat.first_to_move(np.full(len(plies), game), plies), 1, -1)
        won_or_drawn = sides * int(flat.winner[game]) >= 0
        events += zip(q[plies].tolist(), [game] * len(plies), won_or_drawn.tolist(), strict=True)
    events.sort()
    found = None
    resigns: dict[int, bool] = {}  # games that end where Q is below the next event's
    wrongs = 0
    for at, (q_of, game, wrong) in enumerate(events):
        wrongs += wrong - resigns.get(game, False)
        resigns[game] = wrong
        following = events[at + 1][0] if at + 1 < len(events) else 0.0
        if following > q_of and wrongs <= allowed * len(resigns) and allowed * len(resigns) >= 1:
            found = max(0.0, -following)
    return found
