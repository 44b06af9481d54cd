"""What the search costs: visits/s beside the evaluator's own speed, its own time a visit, the memory of a big tree.

python benchmarks/bench_search.py [--go NETWORK] [--chess NETWORK] [--connect_four NETWORK] [--size 19] [--batch 16]
    [--precision bf16,int8,f32] [--visits 2000] [--million] [--katago COMMAND ...] [--lc0 COMMAND ...]

ratio    evaluations/s of a search against `Evaluator.submit` on encoded batches of the same size, two under way;
         medians of interleaved rounds. Several precisions, and KataGo or lc0 where they are installed (or named, with
         options), have a turn in every round, a search of equally many visits from an empty tree: what is told of two
         of them is the median of the rounds' ratios.
own cost CPU time a visit with a network that costs nothing: its answers lie ready, only the tree works; then with
         the encoding of every leaf as well. Aimed at: 40 µs Go, 15 µs chess, without encoding.
memory   bytes and seconds of a tree of a million visits (`--million`). Aimed at: 1 GiB.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np
from other_engines import find_engine, katago_searches, lc0_searches

import keima
from keima.cli.common import open_network
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


VISITS = {"go": 2_000, "chess": 10_000, "connect_four": 20_000}
"""Of a search whose time is taken. How many visits an evaluation answers depends on them."""
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


def start_position(game: str, size: int = 19) -> Any:
    """The usual start, a few moves in."""
    if game == "chess":
        return keima.chess.Position.from_fen(None, moves=["e2e4", "c7c5", "g1f3"])
    if game == "connect_four":
        return keima.connect_four.Position.start().play("d", "d")
    moves = ("Q16", "D4", "C16") if size == 19 else ("E5", "C4", "G6")
    return keima.go.Position.start(size=size).play(*moves)


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


def search_rates(evaluator: Any, position: Any, visits: int) -> tuple[float, float]:
    """(evaluations/s, visits/s) of a search from its first visit on."""
    search = Search(evaluator)
    search.set_position(position)
    start = time.perf_counter()
    result = search.run(Limits(visits=visits))
    spent = time.perf_counter() - start
    return result.evaluations / spent, result.visits / spent


def others(stack: ExitStack, game: str, commands: list[str], path: str, position: Any, visits: int) -> dict[str, Any]:
    """Searches of the other engines that are installed, by their commands."""
    found = {}
    for command in commands:
        program = find_engine(command)
        if program is None:
            print(f"{command} is not installed: no comparison")
            continue
        if game == "go":
            opened = katago_searches(program, path, list(position.moves), position.xsize, visits)
        else:
            opened = lc0_searches(program, path, list(position.moves), visits)
        name = " ".join([Path(program[0]).name, *program[1:]])
        found[name] = stack.enter_context(opened)
    return found


def compare(game: str, path: str, commands: list[str], arguments: argparse.Namespace) -> None:
    """The search's speed in each precision beside the evaluator's, and beside the other engines'."""
    network = open_network(path)
    position, batch = start_position(game, arguments.size), arguments.batch
    wanted = arguments.visits or VISITS[game]
    encoded = network.encoding.encode([position] * batch)
    evaluators = {
        precision: keima.Evaluator(network, arguments.backend, precision, batch)
        for precision in arguments.precision.split(",")
    }
    for evaluator in evaluators.values():
        evaluator_rate(evaluator, encoded, 0.2)
        search_rates(evaluator, position, 8 * batch)
    alone: dict[str, list[float]] = {name: [] for name in evaluators}
    evaluations: dict[str, list[float]] = {name: [] for name in evaluators}
    visits: dict[str, list[float]] = {name: [] for name in evaluators}
    with ExitStack() as stack:
        rivals = others(stack, game, commands, path, position, wanted)
        visits.update({name: [] for name in rivals})
        for _ in range(arguments.rounds):
            for name, evaluator in evaluators.items():
                alone[name].append(evaluator_rate(evaluator, encoded, arguments.seconds))
                found, made = search_rates(evaluator, position, wanted)
                evaluations[name].append(found)
                visits[name].append(made)
            for name, search in rivals.items():
                visits[name].append(search())
    height, width = encoded.inputs["planes"].shape[2:]
    print(f"{game}: {network.pedigree.name}, {width}×{height}, batches of {batch}")
    for name in evaluators:
        ratio = median(found / rate for found, rate in zip(evaluations[name], alone[name], strict=True))
        print(f"  {name}: evaluator alone {median(alone[name]):,.0f} evaluations/s")
        print(f"    search {median(evaluations[name]):,.0f} evaluations/s, ratio {ratio:.2f}")
    for name, rates in visits.items():
        print(f"  {name}: {median(rates):,.0f} visits/s ({min(rates):,.0f} to {max(rates):,.0f})")
        for other in (other for other in visits if other != name and name in evaluators):
            times = [ours / theirs for ours, theirs in zip(rates, visits[other], strict=True)]
            print(f"    {median(times):.2f} times {other} ({min(times):.2f} to {max(times):.2f})")


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
    parser.add_argument("--connect_four", help="a connect four network's file")
    parser.add_argument("--size", type=int, default=19, help="of the Go board")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--precision", default="bf16", help="one, or several with commas between")
    parser.add_argument("--backend", default="openvino", help="openvino, torch")
    parser.add_argument("--seconds", type=float, default=2.0, help="of the evaluator alone")
    parser.add_argument("--visits", type=int, help="of every search")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cost", action=argparse.BooleanOptionalAction, default=True, help="the search's own cost")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--katago", nargs="*", default=["katago"], help="KataGo's programs, with options")
    parser.add_argument("--lc0", nargs="*", default=["lc0"], help="lc0's programs, with options")
    arguments = parser.parse_args()
    if arguments.cost:
        for game, encoding, aim in (("go", KataGoEncoding(), 40), ("chess", Lc0Encoding(), 15)):
            bare = own_cost(game, BARE[game], 8_000, 64)
            whole = own_cost(game, encoding, 8_000, 64)
            print(f"{game}: {bare:.1f} µs a visit without encoding (aim {aim}), {whole:.1f} µs with it")
    for game, commands in (("go", arguments.katago), ("chess", arguments.lc0), ("connect_four", [])):
        if path := getattr(arguments, game):
            compare(game, path, commands, arguments)
    if arguments.million:
        for game in ("go", "chess"):
            print_million(game)


if __name__ == "__main__":
    main()
