"""KataGo's V7 inputs on one core: positions a second of real 19×19 middle games, and what ladders and areas take of it.

    python benchmarks/bench_katago_encoding.py [FILE.sgf.gz] [--positions 1000]

Goal: ≥ 20,000 positions/s from stacked records, as the search encodes, ladders of three boards each included. Without a
file it reads `data/go/tygem-2010-06.sgf.gz` of the reference data.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keima.errors import IllegalMove
from keima.games.game import stack
from keima.games.go import Position
from keima.games.go.area import calculate_area
from keima.games.go.board import BOARD, EMPTY, MAX_POINTS
from keima.games.go.ladders import change_stones, find_ladders, new_scratch
from keima.games.go.vertices import xy_to_vertex
from keima.jit import Records, njit
from keima.systems.katago.inputs import KataGoEncoding, encode_katago

REFERENCE = Path(os.environ.get("KEIMA_REFERENCE", Path(__file__).resolve().parents[2] / "shared"))
FIRST_MOVE, LAST_MOVE = 60, 220
REPEATS = 7


def games(path: Path) -> Iterator[list[tuple[str, str]]]:
    """The moves of each game of an SGF file without setup stones; quick and rough."""
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        for game in file.read(8_000_000).split("(;")[1:-1]:
            moves = re.findall(r";\s*([BW])\[([a-s])([a-s])\]", game)
            if "AB[" not in game and len(moves) > FIRST_MOVE:
                yield [(c, xy_to_vertex(ord(x) - ord("a"), ord(y) - ord("a"), 19)) for c, x, y in moves]


def middle_games(path: Path, count: int) -> list[Position]:
    """One position from each game, FIRST_MOVE to LAST_MOVE moves in."""
    chooser = random.Random(1)
    positions: list[Position] = []
    for moves in games(path):
        length = chooser.randint(FIRST_MOVE, min(LAST_MOVE, len(moves)))
        try:
            positions.append(Position.from_moves(moves[:length], 19, "japanese" if len(positions) % 2 else "chinese"))
        except IllegalMove:
            continue
        if len(positions) == count:
            return positions
    raise SystemExit(f"{path} has {len(positions)} games of {FIRST_MOVE} moves, {count} are wanted: use --positions")


@njit
def read_ladders(records: Records, marks: NDArray[np.int8]) -> None:
    """What `encode_katago` reads: the ladders of each position's last three boards."""
    scratch = new_scratch()
    past = np.empty(1, BOARD)
    for i in range(len(records)):
        find_ladders(records[i].board, records[i].history.to_play, marks[0], marks[1], scratch)
        past[0] = records[i].board
        for ago in range(1, 3):
            change_stones(past[0], records[i].history.recent_stones[ago])
            find_ladders(past[0], EMPTY, marks[0], marks[1], scratch)


@njit
def find_areas(records: Records, area: NDArray[np.int8]) -> None:
    """The areas of each position under area rules."""
    for i in range(len(records)):
        calculate_area(records[i].board, area, True, True, True, False)


def best(work: Callable[[], object]) -> float:
    """Seconds of this thread in the quickest of several runs, after one to warm up."""
    work()
    seconds = []
    for _ in range(REPEATS):
        begin = time.thread_time()
        work()
        seconds.append(time.thread_time() - begin)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=REFERENCE / "data" / "go" / "tygem-2010-06.sgf.gz")
    parser.add_argument("--positions", type=int, default=1000)
    options = parser.parse_args()
    positions = middle_games(options.file, options.positions)
    n = len(positions)
    records = stack(positions)
    symmetries = np.arange(n) % 8
    planes, globals_ = np.empty((n, 22, 19, 19), np.float32), np.empty((n, 19), np.float32)
    marks, area = np.zeros((2, MAX_POINTS), np.int8), np.empty(MAX_POINTS, np.int8)

    kernel = best(lambda: encode_katago(records, symmetries, planes, globals_, False))
    ladders = best(lambda: read_ladders(records, marks))
    areas = best(lambda: find_areas(records, area))
    encoding = KataGoEncoding()
    whole = best(lambda: encoding.encode(positions, symmetries.tolist()))
    print(f"{n} positions of 19×19, moves {FIRST_MOVE} to {LAST_MOVE}, one core, best of {REPEATS}")
    print(f"kernel   {n / kernel:8,.0f} positions/s  ({kernel / n * 1e6:.1f} µs each; goal 20,000/s)")
    print(f"ladders  {ladders / n * 1e6:8.1f} µs for three boards, {ladders / kernel:.0%} of the kernel")
    print(f"area     {areas / n * 1e6:8.1f} µs under area rules, {areas / kernel:.0%}")
    print(f"encode   {n / whole:8,.0f} positions/s from Position objects")


if __name__ == "__main__":
    main()
