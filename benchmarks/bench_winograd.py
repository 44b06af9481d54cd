"""What 3×3 convolutions as matrix products gain (`keima/inference/winograd.py`), float32 on the CPU.

    python benchmarks/bench_winograd.py NETWORK [--size 19] [--batch 32] [--threads 2]

Positions/s of batches, three under way, of two evaluators that take turns: one that writes its convolutions as
products, one that does not. Medians of rounds and of their ratios; the largest difference of their policies.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from statistics import median
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import keima
from keima.inference import winograd
from keima.systems.encoding import Batch


def opened(network: keima.Network, batch: Batch, threads: int | None, products: bool) -> keima.Evaluator:
    """An evaluator that has answered once, so that all is compiled."""
    evaluator = keima.Evaluator(network, "openvino", "f32", batch.size, threads)
    with mock.patch.object(winograd, "LARGEST", winograd.LARGEST if products else 0):
        evaluator.infer(batch)
    return evaluator


def speed(evaluator: keima.Evaluator, batch: Batch, seconds: float) -> float:
    began, done, waiting = time.perf_counter(), 0, []
    while time.perf_counter() - began < seconds:
        waiting.append(evaluator.submit(batch))
        if len(waiting) == 3:
            waiting.pop(0).result()
            done += batch.size
    return done / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net")
    parser.add_argument("--size", type=int, help="of the Go board")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=8)
    args = parser.parse_args()
    network = keima.load(args.net)
    game = keima.go if args.size else {"chess": keima.chess, "connect_four": keima.connect_four}[network.encoding.game]
    start = game.Position.start(args.size) if args.size else game.Position.start()
    rng, positions = np.random.default_rng(0), []
    for _ in range(args.batch):
        position = start
        for _ in range(8):
            position = position.play(str(rng.choice([move for move in position.legal() if move != "pass"])))
        positions.append(position)
    batch = network.encoding.encode(positions, [0] * args.batch)
    least = winograd.least_batch(network, network.encoding.shape(start))
    if least is None or least > args.batch:
        sys.exit(
            f"such an evaluator computes directly: it needs {least or 'other'} positions in a batch, not {args.batch}"
        )
    both = [opened(network, batch, args.threads, products) for products in (False, True)]
    rates = [[speed(each, batch, args.seconds) for each in both] for _ in range(args.rounds)]
    direct, products = (median(column) for column in zip(*rates, strict=True))
    ratios = sorted(right / left for left, right in rates)
    left, right = (each.infer(batch).policy for each in both)
    error = float(np.abs(left - right).max() / np.abs(left).max())
    print(f"{network.pedigree.name}, batches of {args.batch}: {direct:,.0f} positions/s, as products {products:,.0f},")
    print(f"  {median(ratios):.2f} times ({ratios[0]:.2f} to {ratios[-1]:.2f}); the policy differs by {error:.0e}")


if __name__ == "__main__":
    main()
