"""What a CUDA device makes of a network: the CPU's answers, its share of the device's convolutions, its search.

    python benchmarks/bench_cuda.py [--net FILE ...] [--precision f32,bf16,f16] [--batch 256] [--board 19] [--seconds 2]

A network is a file or a name of `keima.list_networks()`, whose weights are random then; b18c384nbt without any.

answers  the largest difference of a policy's probability, and of the value, from PyTorch's on the CPU in float32, over
         16 positions; and whether a position has the same bits alone, among others and a second time
share    operations of the convolutions (2 · H · W · in · out · k² a position) a second through `Evaluator.submit`,
         beside those of one 3×3 convolution of 256 to 256 channels alone: at least 50 % is asked for
search   evaluations a second of a search of one position, its batches full, beside the evaluator's own: at least 85 %.
         Random weights answer every position alike, which a search follows hundreds of moves deep; so it is told noise
         in the place of their answers, once those have come.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from bench_search import Free, evaluator_rate, start_position
from torch import nn

import keima
from keima.cli.bench import middle_game
from keima.inference.backend import TorchBackend
from keima.inference.device_backend import HALVES
from keima.search import Limits, Search
from keima.search.batches import BATCHES_IN_FLIGHT
from keima.systems.encoding import Array, Batch
from keima.systems.network import Network
from keima.training.run.throughput import REFERENCE, convolutions, seconds_of

ROUNDS = 3
COMPARED = 16


class Noise(Free):
    """An evaluator whose answers are noise that comes when another's would."""

    def __init__(self, evaluator: keima.Evaluator) -> None:
        super().__init__(evaluator.encoding.game, evaluator.encoding, evaluator.batch_size)
        self.device = evaluator.device
        self._evaluator = evaluator

    def submit(self, batch: Batch) -> Any:
        """The next rows of noise, after the evaluator's answers."""
        answer, noise = self._evaluator.submit(batch), super().submit(batch).result()
        return SimpleNamespace(result=lambda: (answer.result(), noise)[1])


def opened(name: str) -> Network:
    """A file's network, or a fresh one whose norms do something."""
    if Path(name).exists():
        return keima.load(name)
    torch.manual_seed(1)
    return keima.create(name)


def part(batch: Batch, rows: slice) -> Batch:
    """Some of a batch's rows."""
    chosen = {name: array[rows] for name, array in batch.inputs.items()}
    return Batch(chosen, {name: array[rows] for name, array in batch.context.items()})


def softmax(logits: Array) -> Array:
    """Over the last axis, in double precision."""
    odds = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    return odds / odds.sum(-1, keepdims=True)


def print_answers(network: Network, precisions: Sequence[str], batch: Batch, size: int) -> None:
    """How each precision's answers differ from the CPU's in float32."""
    wanted = network.decode(TorchBackend(network, "f32", 8).submit(batch.inputs).result(), batch.context)
    for precision in precisions:
        evaluator = keima.Evaluator(network, "torch", precision, size)
        found, again = evaluator.infer(batch), evaluator.infer(batch)
        alone = evaluator.infer(part(batch, slice(5, 6)))
        same = all(
            np.array_equal(getattr(found, name), getattr(again, name))
            and np.array_equal(getattr(found, name)[5:6], getattr(alone, name))
            for name in ("policy", "value")
        )
        before, after = softmax(wanted.policy), softmax(found.policy)
        policy, value = abs(before - after).max(), abs(wanted.value - found.value).max()
        first = (before.argmax(-1) == after.argmax(-1)).mean()
        bits = "the same bits alone and again" if same else "OTHER BITS alone or again"
        print(f"  {precision:5} policy within {policy:.1e}, first move {first:4.0%}, value within {value:.1e}; {bits}")


def convolution_rate(precision: str, batch: int, board: int, seconds: float) -> float:
    """Operations a second of the convolution that stands for the device's best, forward alone."""
    inputs, outputs, kernel = REFERENCE
    kind = HALVES.get(precision, torch.float32)
    layout: Any = {"device": "cuda", "dtype": kind, "memory_format": torch.channels_last}
    layer = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False).to(**layout)
    planes = torch.rand(batch, inputs, board, board).to(**layout)
    with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
        taken = seconds_of(lambda: layer(planes), torch.device("cuda"), seconds)
    return 2.0 * batch * board**2 * inputs * outputs * kernel**2 / taken


def grown_search(evaluator: Any, position: Any) -> Search:
    """A search whose tree is large enough for full batches."""
    search = Search(evaluator)
    search.set_position(position)
    search.run(Limits(visits=int(BATCHES_IN_FLIGHT * search.batch_size / search.parameters.batches.in_flight_share)))
    return search


def search_rate(search: Search, seconds: float) -> float:
    """Evaluations/s of a search that goes on."""
    start = time.perf_counter()
    result = search.run(Limits(seconds=seconds))
    return result.evaluations / (time.perf_counter() - start)


def measure(name: str, precisions: Sequence[str], batch: int, board: int, seconds: float) -> None:
    """One network's lines."""
    network = opened(name)
    game = network.encoding.game
    position: Any = start_position(game, board)
    encoded = network.encoding.encode([position] * batch)
    height, width = encoded.inputs["planes"].shape[2:]
    operations = sum(one.operations(1) / (2 if one.first else 3) for one in convolutions(network))
    operations *= height * width / (network.encoding.board[0] * network.encoding.board[1])
    print(f"{network.pedigree.name}, {width}×{height}, batches of {batch}, {operations / 1e9:.2f} GFLOP a position")
    print_answers(network, precisions, network.encoding.encode(middle_game(game, COMPARED)), min(batch, COMPARED))
    for precision in precisions:
        evaluator = keima.Evaluator(network, "torch", precision, batch)
        evaluator_rate(evaluator, encoded, 0.1)
        search = grown_search(evaluator if Path(name).exists() else Noise(evaluator), position)
        best = convolution_rate(precision, batch, height, seconds / 4)
        rounds = [(evaluator_rate(evaluator, encoded, seconds), search_rate(search, seconds)) for _ in range(ROUNDS)]
        alone, searched = median(rate for rate, _ in rounds), median(rate for _, rate in rounds)
        ratio = median(found / rate for rate, found in rounds)
        print(
            f"  {precision:5}{alone:12,.0f} evaluations/s, {alone * operations / 1e12:6.1f} TFLOP/s,"
            f" {alone * operations / best:4.0%} of {best / 1e12:.0f}; search {searched:12,.0f}, {ratio:4.0%}"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", nargs="+", default=["katago-b18c384nbt"])
    parser.add_argument("--precision", default="f32,bf16,f16")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--board", type=int, default=19, help="of Go")
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args(arguments)
    for name in given.net:
        measure(name, given.precision.split(","), given.batch, given.board, given.seconds)


if __name__ == "__main__":
    main()
