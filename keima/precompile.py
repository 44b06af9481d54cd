"""Compiling ahead: `python -m keima.precompile`, which an installation runs.

Every game is played and every encoding searched for a moment, so that the machine code of their kernels lies in
`keima.jit.store.READY`, for every processor of this kind, before anyone waits for it. Several processes share the work.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from keima.games.game import get_game
from keima.games.position import Position
from keima.games.records import PlayedGame
from keima.jit import store
from keima.places import on_notice
from keima.search.forest import Forest, new_cache
from keima.search.limits import Limits
from keima.search.root import set_root
from keima.search.search import Search
from keima.search.targets import draw_move, policy_target, root_value
from keima.systems.encoding import Batch, Encoding
from keima.systems.parameters import Parameters
from keima.systems.system import SYSTEMS, System

if TYPE_CHECKING:
    from keima.systems.network import Heads

VISITS = 40
MOST_INDICES = 20_000
"""Above every policy's size."""


@dataclass
class _Answer:
    """What no network said: 0 for everything. It stands for `Heads`, which would import PyTorch."""

    n: int
    ownership: Any = None

    def __post_init__(self) -> None:
        self.policy = np.zeros((self.n, MOST_INDICES), np.float32)
        self.wdl = np.full((self.n, 3), 1 / 3, np.float32)
        self.value = self.lead = self.moves_left = np.zeros(self.n, np.float32)
        self.extra: dict[str, Any] = {}

    def result(self) -> Heads:
        return self  # type: ignore[return-value]


@dataclass
class _Evaluator:
    """An evaluator without a network."""

    system: str
    encoding: Encoding
    batch_size = 8
    output_names = ("policy", "wdl", "value", "lead", "moves_left")

    @property
    def network(self) -> _Evaluator:
        return self

    def submit(self, batch: Batch) -> _Answer:
        return _Answer(batch.size)


def works() -> Iterator[tuple[System, str]]:
    """Every system with each of its encodings."""
    return ((system, name) for system in SYSTEMS.values() for name in system.encodings)


def work(system: System, name: str) -> None:
    """Play, encode, where the system has a search, search, and replay the record."""
    encoding = system.encodings[name]
    search = None if system.preset is None else Search(_Evaluator(system.name, encoding))
    position = get_game(encoding.game).from_json({})
    for _ in range(3):
        encoding.encode([position])
        encoding.legal_moves(position)
        if search is not None:
            search.set_position(position)
            search.run(Limits(visits=VISITS))
            policy_target(search.tree)
            root_value(search.tree)
            draw_move(search.tree, 1.0, 0.5)
            grow(encoding, search.parameters, position)
        move = position.legal()[0]
        if position.is_legal(move) and not position.is_over and position.result is None:
            position = position.play(move)
    played = PlayedGame(position, ("", ""), "", "", 1, "", "", "2000-01-01")
    list(get_game(encoding.game).records.of_game(played).positions())  # a record's moves are looked at less strictly


def grow(encoding: Encoding, parameters: Parameters, position: Position) -> None:
    """Search as self-play does, whose trees stand side by side."""
    forest = Forest(position, parameters, VISITS, 1, new_cache(MOST_INDICES, 1 << 20))
    forest.begin(0, position, parameters, VISITS, 0)
    for _ in range(4):
        count = forest.gather(np.ones(1, np.bool_), np.zeros(1, np.int64))
        leaves, policy, answers = (
            forest.batch.leaves,
            np.zeros((1, MOST_INDICES), np.float32),
            np.zeros((1, 6), np.float32),
        )
        forest.expand(policy, answers)
        if count and len(forest.fresh()):
            moves = leaves.moves[0, : leaves.counts[0]]
            set_root(forest.trees[0], moves, policy[:, : len(moves)], answers[0], np.random.default_rng(0))


def main(arguments: list[str]) -> int:
    """With an argument "K/N" every N-th piece of work from the K-th on; without, all of it in so many processes."""
    if arguments:
        on_notice(lambda _: None)
        part, of = map(int, arguments[0].split("/"))
        for system, name in list(works())[part::of]:
            work(system, name)
        return 0
    level = store.ready_level()
    if level is None:
        print("no kernels are compiled ahead for this kind of processor", file=sys.stderr)
        return 0
    began = time.monotonic()
    count = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 4)
    print(f"compiling kernels into {store.READY}, about {180 // count} s ...", file=sys.stderr, flush=True)
    target = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(store.READY)}
    command = [sys.executable, "-m", "keima.precompile"]
    parts = [subprocess.Popen([*command, f"{k}/{count}"], env={**os.environ, **target}) for k in range(count)]
    failed = sum(part.wait() != 0 for part in parts)
    print(f"compiled in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
