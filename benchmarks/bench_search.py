"""What the search costs: visits/s beside the evaluator's own speed, its own time a visit, the memory of a big tree.

python benchmarks/bench_search.py [--go NETWORK] [--chess NETWORK] [--batch 16] [--precision bf16] [--backend torch]
    [--million] [--katago katago] [--lc0 lc0]

ratio    visits/s of a search against `Evaluator.submit` on encoded batches of the same size, two under way; rounds
         interleaved, the best of each counts. Evaluations taken from equal positions are left out of the visits.
         Where KataGo or lc0 is installed (or named), its own visits/s with the same network on the same CPU follow.
own cost CPU time a visit with a network that costs nothing: its answers lie ready, only the tree works; then with
         the encoding of every leaf as well. Aimed at: 40 µs Go, 15 µs chess, without encoding.
memory   bytes and seconds of a tree of a million visits (`--million`). Aimed at: 1 GiB.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from other_engines import find_engine, katago_visits, lc0_nodes

import keima
from keima.search import Limits, Search
from keima.systems.encoding import Batch
from keima.systems.katago.inputs import KataGoEncoding
from keima.systems.lc0.inputs import Lc0Encoding
from keima.systems.network import Heads


class NoGoEncoding(KataGoEncoding):
    """An encoding that writes no planes."""

    def write(self, records: Any, symmetries: Any, batch: Batch) -> None:
        """Nothing."""


class NoChessEncoding(Lc0Encoding):
    """The same for chess."""

    def write(self, records: Any, symmetries: Any, batch: Batch) -> None:
        """Nothing but the transform that policy indices need."""
        batch.context["transform"][:] = 0


BARE = {"go": NoGoEncoding(), "chess": NoChessEncoding()}


class Free:
    """An evaluator whose answers cost nothing: rows of prepared noise."""

    def __init__(self, game: str, encoding: Any, batch_size: int) -> None:
        self.batch_size = batch_size
        self.encoding = encoding
        outputs = ("policy", "value", "lead")
        self.network = SimpleNamespace(system="katago" if game == "go" else "lc0", output_names=outputs)
        rng = np.random.default_rng(1)
        moves = 362 if game == "go" else 1858
        self._policy = rng.normal(0, 2.0, (4096, moves)).astype(np.float32)
        self._value = np.tanh(rng.normal(0, 0.4, 4096)).astype(np.float32)
        self._zeros = np.zeros(4096, np.float32)
        self._draws = rng.uniform(0.3, 0.6, 4096).astype(np.float32)
        self._lead = (10 * self._value).astype(np.float32)
        self._spread = np.full(4096, 12.0, np.float32)
        self._game = game
        self._next = 0

    def submit(self, batch: Batch) -> Any:
        """The next rows."""
        n = batch.size
        if self._next + n > len(self._policy):
            self._next = 0
        rows = slice(self._next, self._next + n)
        self._next += n
        heads = Heads(policy=self._policy[rows], value=self._value[rows])
        if self._game == "go":
            extra = {"score_mean": self._lead[rows], "score_stdev": self._spread[rows]}
            heads = Heads(policy=self._policy[rows], value=self._value[rows], lead=self._lead[rows], extra=extra)
        return SimpleNamespace(result=lambda: heads)


def start_position(game: str) -> Any:
    """The usual start, a few moves in."""
    if game == "chess":
        return keima.chess.Position.from_fen(None, moves=["e2e4", "c7c5", "g1f3"])
    return keima.go.Position.start(size=19).play("Q16", "D4", "C16")


def own_cost(game: str, encoding: Any, visits: int, batch: int) -> float:
    """Microseconds of CPU a visit, best of three searches."""
    best = float("inf")
    for seed in range(3):
        search = Search(Free(game, encoding, batch), seed=seed)
        search.set_position(start_position(game))
        search.run(Limits(visits=64))
        start, before = time.thread_time(), search.result().visits
        result = search.run(Limits(visits=visits))
        best = min(best, (time.thread_time() - start) / (result.visits - before) * 1e6)
    return best


def evaluator_rate(evaluator: Any, batch: Batch, seconds: float) -> float:
    """Positions/s of encoded batches, two under way."""
    start, done = time.perf_counter(), 0
    before = evaluator.submit(batch)
    while time.perf_counter() - start < seconds:
        after = evaluator.submit(batch)
        before.result()
        before, done = after, done + batch.size
    before.result()
    return (done + batch.size) / (time.perf_counter() - start)


def search_rates(evaluator: Any, position: Any, seconds: float) -> tuple[float, float]:
    """(evaluations/s, visits/s) of a search that has grown past its first batches."""
    search = Search(evaluator)
    search.set_position(position)
    search.run(Limits(visits=26 * evaluator.batch_size))
    before = search.result().visits
    start = time.perf_counter()
    result = search.run(Limits(seconds=seconds))
    spent = time.perf_counter() - start
    return result.evaluations / spent, (result.visits - before) / spent


def print_ratio(name: str, path: str, backend: str, batch: int, precision: str, seconds: float, rounds: int) -> float:
    """The search's speed beside the evaluator's; its visits/s."""
    network = keima.load(path)
    evaluator = keima.Evaluator(network, backend, precision, batch)
    position = start_position(network.encoding.game)
    encoded = network.encoding.encode([position] * batch)
    evaluator_rate(evaluator, encoded, 0.2)
    search_rates(evaluator, position, 0.2)
    alone, with_tree, visits, ratios = 0.0, 0.0, 0.0, []
    for _ in range(rounds):
        rate = evaluator_rate(evaluator, encoded, seconds)
        found, made = search_rates(evaluator, position, seconds)
        ratios.append(found / rate)
        alone, with_tree, visits = max(alone, rate), max(with_tree, found), max(visits, made)
    print(f"{name}: {network.pedigree.name}, {precision}, batches of {batch}")
    print(f"  evaluator alone {alone:8,.0f} evaluations/s")
    print(f"  search          {with_tree:8,.0f} evaluations/s, {visits:,.0f} visits/s")
    print(f"  ratio           {with_tree / alone:8.2f} (best rounds; median round {sorted(ratios)[rounds // 2]:.2f})")
    return visits


def print_other(name: str, command: str, path: str, visits: float) -> None:
    """The other engine's speed, if it is installed, and ours beside it."""
    program = find_engine(command)
    if program is None:
        print(f"  {command} is not installed: no comparison")
        return
    position = start_position(name)
    if name == "go":
        other = katago_visits(program, path, list(position.moves), position.xsize, 1000)
    else:
        other = lc0_nodes(program, path, list(position.moves), 5000)
    print(f"  {Path(program).name:15} {other:8,.0f} visits/s; keima makes {visits / other:.2f} times as many")


def print_million(game: str) -> None:
    """Memory of a million visits."""
    search = Search(Free(game, BARE[game], 64), memory=1 << 30)
    search.set_position(start_position(game))
    start = time.perf_counter()
    result = search.run(Limits(visits=1_000_000))
    spent = time.perf_counter() - start
    size = search.tree.bytes / (1 << 20)
    print(f"{game}: {result.visits:,} visits, {size:,.0f} MiB, {spent:,.0f} s, ended by {result.stopped_by}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--go", help="a Go network's file")
    parser.add_argument("--chess", help="a chess network's file")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--backend", default="openvino", help="openvino, torch")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--katago", default="katago", help="KataGo's program")
    parser.add_argument("--lc0", default="lc0", help="lc0's program")
    arguments = parser.parse_args()
    for game, encoding, aim in (("go", KataGoEncoding(), 40), ("chess", Lc0Encoding(), 15)):
        bare = own_cost(game, BARE[game], 8_000, 64)
        whole = own_cost(game, encoding, 8_000, 64)
        print(f"{game}: {bare:.1f} µs a visit without encoding (aim {aim}), {whole:.1f} µs with it")
    for name, path, other in (
        ("go", arguments.go, arguments.katago),
        ("chess", arguments.chess, arguments.lc0),
    ):
        if path:
            rates = (arguments.backend, arguments.batch, arguments.precision, arguments.seconds, arguments.rounds)
            print_other(name, other, path, print_ratio(name, path, *rates))
    if arguments.million:
        for game in ("go", "chess"):
            print_million(game)


if __name__ == "__main__":
    main()
