"""Evaluations per second through keima, beside what OpenVINO alone gives for the same graph, batch and precision.

    python benchmarks/bench_evaluator.py NETWORK [--batch 8] [--precision f32] [--seconds 1.5] [--rounds 4]

Three ways, interleaved and repeated; the best round of each counts:

    OpenVINO alone   the converted graph with a static batch, its own `AsyncInferQueue`, performance hints LATENCY and
                     THROUGHPUT: nothing is encoded, nothing read
    batches          `Evaluator.submit` on encoded batches, two under way, decoded: what a search uses
    positions        `Evaluator.__call__` on positions: encoding, legal moves, renormalised policy by name
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

import openvino

import keima
from keima.inference.openvino_backend import convert


def random_positions(game: str, count: int) -> list[Any]:
    """Positions of random games, 30 plies in, the game's usual board."""
    rng = random.Random(1)
    positions: list[Any] = []
    while len(positions) < count:
        position = keima.chess.Position.start() if game == "chess" else keima.go.Position.start(size=19)
        for _ in range(30):
            moves = [move for move in position.legal() if move != "pass"]
            if not moves:
                break
            position = position.play(rng.choice(moves))
        else:
            positions.append(position)
    return positions


def openvino_alone(network: Any, batch: Any, precision: str, hint: str) -> Callable[[float], float]:
    """Positions/s of the graph itself, without anything around it."""
    model = convert(network, batch.inputs)
    config = {"PERFORMANCE_HINT": hint, "INFERENCE_PRECISION_HINT": precision}
    queue = openvino.AsyncInferQueue(openvino.Core().compile_model(model, "CPU", config), 4)
    inputs = [batch.inputs[name] for name in network.input_names]

    def run(seconds: float) -> float:
        start, done = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            queue.start_async(inputs, share_inputs=True)
            done += batch.size
        queue.wait_all()
        return done / (time.perf_counter() - start)

    return run


def batches(evaluator: keima.Evaluator, batch: Any) -> Callable[[float], float]:
    """Positions/s of encoded batches, two under way."""

    def run(seconds: float) -> float:
        start, done = time.perf_counter(), 0
        before = evaluator.submit(batch)
        while time.perf_counter() - start < seconds:
            after = evaluator.submit(batch)
            before.result()
            before, done = after, done + batch.size
        before.result()
        return (done + batch.size) / (time.perf_counter() - start)

    return run


def whole_positions(evaluator: keima.Evaluator, positions: list[Any]) -> Callable[[float], float]:
    """Positions/s of positions, answers by name."""

    def run(seconds: float) -> float:
        start, done = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            evaluator(positions)
            done += len(positions)
        return done / (time.perf_counter() - start)

    return run


def read_arguments(description: str | None, seconds: float, rounds: int) -> argparse.Namespace:
    """The command line: a network, the batch, the precision, how long and how often, which have these defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--rounds", type=int, default=rounds)
    return parser.parse_args()


def main() -> None:
    arguments = read_arguments(__doc__, seconds=1.5, rounds=4)
    network = keima.load(arguments.network)
    evaluator = keima.Evaluator(network, "openvino", arguments.precision, arguments.batch)
    positions = random_positions(network.encoding.game, 8 * arguments.batch)
    batch = network.encoding.encode(positions[: arguments.batch])
    runs = {
        "OpenVINO alone, LATENCY": openvino_alone(network, batch, arguments.precision, "LATENCY"),
        "OpenVINO alone, THROUGHPUT": openvino_alone(network, batch, arguments.precision, "THROUGHPUT"),
        "batches": batches(evaluator, batch),
        "positions": whole_positions(evaluator, positions),
    }
    best = dict.fromkeys(runs, 0.0)
    for _ in range(arguments.rounds):
        for name, run in runs.items():
            run(0.1)
            best[name] = max(best[name], run(arguments.seconds))
    alone = max(best["OpenVINO alone, LATENCY"], best["OpenVINO alone, THROUGHPUT"])
    print(f"{network.pedigree.name}, {arguments.precision}, batch {arguments.batch}")
    for name, speed in best.items():
        print(f"  {name:28}{speed:9,.0f} positions/s{speed / alone:8.2f} of OpenVINO's best")


if __name__ == "__main__":
    main()
