"""Positions a second that each Go encoding of this family makes on one core: the kernels alone, and from positions.

    python benchmarks/bench_encodings.py

The goal for 17 and 18 planes is 100,000 positions/s. "kernel" encodes stacked records into planes already there, as
training and search do; "encode" starts from `Position` objects and makes new arrays, as the evaluator does.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import numpy as np

from keima.games.game import stack
from keima.games.go.position import Position
from keima.systems.alphago_zero.inputs import (
    AlphaGoZeroEncoding,
    LeelaZeroEncoding,
    encode_alphago_zero,
    encode_leela_zero,
)
from keima.systems.katago_guide.inputs import KataGoGuideEncoding, encode_katago_guide

GAMES, MOVES, REPEATS = 8, 160, 7


def positions() -> list[Position]:
    """Every position of a few random games on 19×19."""
    chooser = random.Random(1)
    found = []
    for _ in range(GAMES):
        position = Position.start(size=19)
        for _ in range(MOVES):
            position = position.play(chooser.choice(position.legal()[:-1]))
            found.append(position)
    return found


def best(work: Callable[[], object]) -> float:
    """Seconds of this thread in the quickest of several runs, after one to warm up."""
    work()
    times = []
    for _ in range(REPEATS):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return min(times)


def main() -> None:
    played = positions()
    records = stack(played)
    symmetries = np.arange(len(played)) % 8
    rows = np.empty((len(played), 22, 19, 19), np.float32)
    zero, leela = np.ascontiguousarray(rows[:, :17]), np.ascontiguousarray(rows[:, :18])
    cases = (
        (AlphaGoZeroEncoding(), lambda: encode_alphago_zero(records, symmetries, zero)),
        (LeelaZeroEncoding(), lambda: encode_leela_zero(records, symmetries, leela)),
        (KataGoGuideEncoding(), lambda: encode_katago_guide(records, symmetries, rows)),
    )
    print(f"{len(played)} positions of 19×19, one core, best of {REPEATS}")
    for encoding, kernel in cases:
        alone = len(played) / best(kernel)
        whole = len(played) / best(lambda encoding=encoding: encoding.encode(played, symmetries.tolist()))
        print(f"{encoding.name:13} {encoding.planes} planes   kernel {alone:10,.0f}/s   encode {whole:10,.0f}/s")


if __name__ == "__main__":
    main()
