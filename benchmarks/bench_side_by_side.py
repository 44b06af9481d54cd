"""Evaluators of one thread side by side: as many as there are cores, in one process and in several.

    python benchmarks/bench_side_by_side.py NETWORK [--batch 8] [--precision f32] [--seconds 3] [--rounds 3]

Prints the positions/s of one alone, and of each of several at once as a share of it. A core of its own for each gives
1.00, less what the processor slows when all its cores are busy; two on one core give 0.50.
"""

from __future__ import annotations

import argparse
import multiprocessing
import threading
import time
from typing import Any, Protocol

import keima
from keima.cli.bench import middle_game
from keima.inference.backend import usable_cores


class Barrier(Protocol):
    """Of threads or of processes."""

    def wait(self) -> int: ...


def work(arguments: argparse.Namespace, barrier: Barrier, speeds: Any, index: int) -> None:
    """One evaluator: opens, waits for the others, runs; its positions/s of each round to `speeds[index]`, the best."""
    network = keima.load(arguments.network)
    evaluator = keima.Evaluator(network, "openvino", arguments.precision, arguments.batch, threads=1)
    batch = network.encoding.encode(middle_game(network.encoding.game, arguments.batch))
    evaluator.infer(batch)
    for _ in range(arguments.rounds):
        barrier.wait()
        done, start = 0, time.perf_counter()
        while time.perf_counter() - start < arguments.seconds:
            evaluator.infer(batch)
            done += batch.size
        speeds[index] = max(speeds[index], done / (time.perf_counter() - start))


def side_by_side(arguments: argparse.Namespace, count: int, processes: bool) -> list[float]:
    """The best round of each of `count` evaluators that run at once, positions/s."""
    context = multiprocessing.get_context("spawn")
    speeds: Any = context.Array("d", count) if processes else [0.0] * count
    barrier: Any = context.Barrier(count) if processes else threading.Barrier(count)
    kind: Any = context.Process if processes else threading.Thread
    workers = [kind(target=work, args=(arguments, barrier, speeds, index)) for index in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return list(speeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    cores = usable_cores()
    (alone,) = side_by_side(arguments, 1, processes=False)
    print(f"alone{alone:22,.0f} positions/s")
    for where, processes in (("in one process", False), ("in several", True)):
        speeds = side_by_side(arguments, cores, processes)
        print(f"{cores} {where:15}", " ".join(f"{speed:9,.0f} ({speed / alone:.2f})" for speed in speeds), flush=True)


if __name__ == "__main__":
    main()
