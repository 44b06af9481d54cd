"""Training positions a second by encoding, on so many threads, from a game store or from random games made here.

    python benchmarks/bench_loading.py [--store train.parquet] [--threads 2] [--seconds 5] [--only alphago ...]

Goals on two cores: 48 planes ≥ 8,000/s, 17 planes ≥ 40,000/s; half of it a core-second, on a machine that is shared.
Every position is replayed from its game's first move, encoded under a random symmetry, and has its targets; "with
ownership" replays each game to its end too. Also printed: how much of a core's time goes into the order of positions
(the Feistel permutation), and the most memory the process has held.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np

from keima.games.archive import FlatGames
from keima.games.chess.archive import ChessGames
from keima.games.chess.position import Position as ChessPosition
from keima.games.go.archive.flat import WHITE_BIT, GoGames
from keima.games.go.position import Position
from keima.games.go.rules import Rules
from keima.games.go.vertices import vertex_to_xy
from keima.systems.alphago.inputs import AlphaGoEncoding
from keima.systems.alphago.rollout import RolloutPolicy
from keima.systems.system import get_encoding
from keima.training.data.batches import Loader
from keima.training.data.sampling import stream
from keima.training.data.store import GameStore

BATCH = 256
GAMES, MOVES, CHESS_MOVES = 12, 220, 80
CASES = ("alphago", "alphago-value", "alphago-zero", "leela-zero", "katago", "katago-guide", "lc0")


def random_go() -> FlatGames:
    """Games by the rollout policy's uniform choice among moves that fill no eye."""
    chance, policy = np.random.default_rng(1), RolloutPolicy()
    packed = np.empty((GAMES, MOVES), np.uint16)
    for game in range(GAMES):
        position = Position.start(19)
        for move in range(MOVES):
            names = list(policy.probabilities(position))
            vertex = names[chance.integers(len(names))]
            xy = vertex_to_xy(vertex, 19, 19)
            point = 361 if xy is None else xy[1] * 19 + xy[0]
            packed[game, move] = point | (WHITE_BIT if position.to_play == "W" else 0)
            position = position.play(vertex)
    return GoGames(
        moves=packed.reshape(-1),
        start=np.arange(GAMES + 1, dtype=np.int64) * MOVES,
        winner=np.ones(GAMES, np.int8),
        key=np.arange(GAMES, dtype=np.uint64),
        setup=np.zeros(0, np.uint16),
        setup_start=np.zeros(GAMES + 1, np.int64),
        to_play_first=np.zeros(GAMES, np.uint8),
        xsize=np.full(GAMES, 19, np.uint8),
        ysize=np.full(GAMES, 19, np.uint8),
        rules_index=np.zeros(GAMES, np.uint16),
        rules=(Rules.parse("chinese"),),
        komi=np.full(GAMES, 7.5, np.float32),
        handicap=np.zeros(GAMES, np.uint8),
        score=np.full(GAMES, 3.5, np.float32),
        black_rank=np.zeros(GAMES, np.uint16),
        white_rank=np.zeros(GAMES, np.uint16),
        ranks=("",),
    )


def random_chess() -> FlatGames:
    """Games of random legal moves."""
    chance = np.random.default_rng(2)
    games: list[list[int]] = []
    for _ in range(GAMES):
        position, codes = ChessPosition.start(), []
        while len(codes) < CHESS_MOVES and len(position.legal_codes):
            choice = int(chance.integers(len(position.legal_codes)))
            codes.append(int(position.legal_codes[choice]))
            position = position.play(position.legal()[choice])
        games.append(codes)
    return ChessGames(
        moves=np.array([code for codes in games for code in codes], np.uint16),
        start=np.concatenate([[0], np.cumsum([len(codes) for codes in games])]).astype(np.int64),
        winner=np.zeros(len(games), np.int8),
        key=np.arange(len(games), dtype=np.uint64),
        start_fen=np.full(len(games), -1, np.int32),
        start_fens=(),
        chess960=np.zeros(len(games), np.bool_),
        white_elo=np.full(len(games), -1, np.int16),
        black_elo=np.full(len(games), -1, np.int16),
    )


def rates(loader: Loader, seconds: float) -> tuple[float, float]:
    """Positions a second, and a second of processor time: what one core makes, whoever else the machine works for."""
    for _ in range(20):  # compiled, and the queue at its usual length
        next(loader)
    batches = 0
    start, busy = time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        next(loader)
        batches += 1
    made = batches * loader.batch_size
    return made / (time.perf_counter() - start), made / (time.process_time() - busy)


def memory() -> float:
    """The most memory this process has held, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="a game store; random games without")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES)
    options = parser.parse_args()
    flat: Any = GameStore.open(options.store).flat() if options.store else None
    for name in options.only:
        encoding = AlphaGoEncoding(49) if name == "alphago-value" else get_encoding(name)
        if options.store and flat.game != encoding.game:
            continue
        games = flat or (random_go() if encoding.game == "go" else random_chess())
        for ownership in (False, True) if name.startswith("katago") else (False,):
            targets = {"policy", "value", *(("score", "ownership") if ownership else ())}
            with Loader(games, encoding, BATCH, seed=1, workers=options.threads, targets=targets) as loader:
                wall, core = rates(loader, options.seconds)
                start = time.perf_counter()
                for step in range(100):
                    stream(step * BATCH, BATCH, loader.positions, 1)
                order = (time.perf_counter() - start) / 100 * core / BATCH
            what = f"{name}{' with ownership' if ownership else ''}, {encoding.planes} planes"
            print(
                f"{what:38} {wall:9,.0f} positions/s on {options.threads} threads   {core:9,.0f} a core-second   "
                f"order {order:.1%}   memory {memory():,.0f} MiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
