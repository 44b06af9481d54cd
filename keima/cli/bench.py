"""`keima bench`: how fast this machine encodes and evaluates with a network, beside what OpenVINO alone would give."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from typer import Context, Option

from keima.cli import common
from keima.errors import BadRequest

if TYPE_CHECKING:
    from keima.games.position import Position
    from keima.inference.evaluator import Evaluator
    from keima.systems.encoding import Batch
    from keima.systems.network import Network

EXAMPLES = """Examples:

\b
  keima bench --net kata1-b6c96.bin.gz
  keima bench --net maia-1900.pb.gz --batch 8 --precision bf16
  keima bench train recipes/alphago-policy.toml

"batches" are encoded positions through keima's evaluator, "positions" the whole way from position to named answer; the
share is of the best of OpenVINO's own two modes on the same graph, batch and precision. The best of several rounds
counts, taken in turns, so that a busy machine slows all of them alike.
"""

Run = Callable[[float], float]
"""Runs for about so many seconds; positions per second."""

WARM_UP = 0.1


def bench(
    context: Context,
    net: Annotated[str | None, Option(metavar="NET", help="Network file (required).")] = None,
    batch: Annotated[list[int] | None, Option(min=1, help="Batch sizes; 1, 8 and 16 if not given.")] = None,
    precision: Annotated[list[str] | None, Option(help="f32, bf16; both if not given.")] = None,
    seconds: Annotated[float, Option(min=0.01, help="Length of one round of one measurement.")] = 1.0,
    rounds: Annotated[int, Option(min=1, help="Rounds; the best one counts.")] = 3,
) -> None:
    """Measure encoding and evaluation, beside what OpenVINO alone gives for the same graph."""
    if context.invoked_subcommand is not None:
        return
    if net is None:
        raise BadRequest("name the network to measure with: --net FILE")
    network = common.open_network(net)
    positions = middle_game(network.encoding.game, 64)
    print(f"{network.pedigree.name} ({network.system})")
    encoded = best_of({"encode": repeated(network.encoding.encode, positions)}, seconds, rounds)["encode"]
    print(f"  encoding, one core{encoded:19,.0f} positions/s\n")
    print(f"  {'precision':10}{'batch':>6}{'OpenVINO alone':>18}{'batches':>18}{'positions':>18}   (positions/s)")
    for kind in precision or ["f32", "bf16"]:
        for size in batch or [1, 8, 16]:
            _print_row(network, positions, kind, size, seconds, rounds)


def _print_row(
    network: Network, positions: list[Position], precision: str, batch: int, seconds: float, rounds: int
) -> None:
    try:
        evaluator = common.open_evaluator(network, "openvino", precision, batch)
    except BadRequest as error:
        print(f"  {precision:10}{batch:>6}  not measured: {error.message}")
        return
    encoded = network.encoding.encode(positions[:batch])
    best = best_of(
        {
            "latency": openvino_alone(network, encoded, precision, "LATENCY"),
            "throughput": openvino_alone(network, encoded, precision, "THROUGHPUT"),
            "batches": batches(evaluator, encoded),
            "positions": repeated(evaluator, positions),
        },
        seconds,
        rounds,
    )
    alone = max(best["latency"], best["throughput"])
    shares = "".join(f"{best[name]:10,.0f} ({best[name] / alone:4.0%})" for name in ("batches", "positions"))
    print(f"  {precision:10}{batch:>6}{alone:>18,.0f}  {shares}")


def middle_game(game: str, count: int) -> list[Position]:
    """Positions 30 plies into random games, on the game's usual board; the same ones every time."""
    from keima.games.game import GAMES

    choose = random.Random(1)
    positions: list[Position] = []
    while len(positions) < count:
        position = GAMES[game].playing.start()
        for _ in range(30):
            moves = [move for move in position.legal() if move != "pass"]
            if not moves:
                break
            position = position.play(choose.choice(moves))
        else:
            positions.append(position)
    return positions


def best_of(runs: dict[str, Run], seconds: float, rounds: int) -> dict[str, float]:
    """Each run's best speed over several rounds, taken in turns."""
    best = dict.fromkeys(runs, 0.0)
    for _ in range(rounds):
        for name, run in runs.items():
            run(WARM_UP)
            best[name] = max(best[name], run(seconds))
    return best


def repeated(step: Callable[[list[Position]], object], positions: list[Position]) -> Run:
    """Positions/s of a step that takes all of these positions."""

    def run(seconds: float) -> float:
        start, done = time.perf_counter(), 0
        while (passed := time.perf_counter() - start) < seconds or not done:
            step(positions)
            done += len(positions)
        return done / passed if passed else 0.0

    return run


def batches(evaluator: Evaluator, encoded: Batch) -> Run:
    """Positions/s of encoded batches, two under way."""

    def run(seconds: float) -> float:
        start, done = time.perf_counter(), 0
        before = evaluator.submit(encoded)
        while time.perf_counter() - start < seconds:
            after = evaluator.submit(encoded)
            before.result()
            before, done = after, done + encoded.size
        before.result()
        return (done + encoded.size) / (time.perf_counter() - start)

    return run


def openvino_alone(network: Network, encoded: Batch, precision: str, hint: str) -> Run:
    """Positions/s of the graph itself on OpenVINO's own request queue, with nothing around it."""
    from keima.inference.offline import openvino
    from keima.inference.openvino_backend import convert

    config = {"PERFORMANCE_HINT": hint, "INFERENCE_PRECISION_HINT": precision}
    compiled = openvino.Core().compile_model(convert(network, encoded.inputs), "CPU", config)
    queue = openvino.AsyncInferQueue(compiled, 4)
    inputs = [encoded.inputs[name] for name in network.input_names]

    def run(seconds: float) -> float:
        start, done = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            queue.start_async(inputs, share_inputs=True)
            done += encoded.size
        queue.wait_all()
        return done / (time.perf_counter() - start)

    return run
