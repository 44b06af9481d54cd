"""What 3×3 convolutions as matrix products gain (`keima/inference/winograd.py`), float32 on the CPU.

    python benchmarks/bench_winograd.py NETWORK [--size 19] [--batch 32] [--threads 2]

Positions/s of batches, two under way, of two evaluators that take turns: one that writes its convolutions as products,
one that does not. Medians of rounds and of their ratios; the largest difference of their policies.
"""

from __future__ import annotations

import argparse
import sys
from statistics import median
from unittest import mock

import numpy as np

import keima
from keima.cli.bench import batches, middle_game
from keima.inference import winograd
from keima.inference.openvino_backend import by_products
from keima.systems.encoding import Batch


def opened(network: keima.Network, batch: Batch, threads: int | None, products: bool) -> keima.Evaluator:
    """An evaluator that has answered once, so that all is compiled."""
    evaluator = keima.Evaluator(network, "openvino", "f32", batch.size, threads)
    with mock.patch.object(winograd, "LARGEST", winograd.LARGEST if products else 0):
        evaluator.infer(batch)
    return evaluator


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
    batch = network.encoding.encode(middle_game(network.encoding.game, args.batch, args.size))
    if not by_products(network, "f32", batch.inputs["planes"].shape[2:], args.batch):
        sys.exit(f"such an evaluator, of batches of {args.batch}, computes directly")
    both = [opened(network, batch, args.threads, products) for products in (False, True)]
    runs = [batches(evaluator, batch) for evaluator in both]
    rates = [[run(args.seconds) for run in runs] for _ in range(args.rounds)]
    direct, products = (median(column) for column in zip(*rates, strict=True))
    ratios = sorted(right / left for left, right in rates)
    left, right = (each.infer(batch).policy for each in both)
    error = float(np.abs(left - right).max() / np.abs(left).max())
    print(f"{network.pedigree.name}, batches of {args.batch}: {direct:,.0f} positions/s, as products {products:,.0f},")
    print(f"  {median(ratios):.2f} times ({ratios[0]:.2f} to {ratios[-1]:.2f}); the policy differs by {error:.0e}")


if __name__ == "__main__":
    main()
