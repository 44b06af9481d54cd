"""Self-play of connect four: moves, evaluations and games a second, and beside them pgx + mctx in the same run.

    python benchmarks/bench_selfplay.py                                  ours, and the share of the evaluator's own rate
    python benchmarks/bench_selfplay.py --other PYTHON_WITH_PGX_AND_MCTX  taking turns with `selfplay_pgx.py`

Same network (4 blocks of 48 filters, random weights), Gumbel AlphaZero with 32 simulations on both sides. Games a
second are moves a second over the length of a game, for games that all began together end together at first; the length
is that of our games on both sides.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import keima
from keima.training.selfplay.play import Player, Players
from keima.training.selfplay.recipe import build_loop

SIZES = {"blocks": 4, "channels": 48}


def recipe(side_by_side: int, visits: int):
    sections = {
        "network": {"name": "connect-four", **SIZES},
        "search": {"preset": "gumbel", "visits": visits + 1},
        "games": {"side_by_side": side_by_side, "opening_plies": 6.0},
        "optimizer": {"learning_rate": 0.01},
        "run": {"steps": 1, "batch_size": 1},
    }
    return build_loop(sections, {}, "bench", "")


def own_rate(evaluator: keima.Evaluator, size: int, seconds: float) -> float:
    """Evaluations a second at that batch size, batches under way as in self-play."""
    batch = evaluator.encoding.room(size, (6, 7))
    batch.inputs["planes"][:] = np.random.default_rng(0).random(batch.inputs["planes"].shape)
    began, done, waiting = time.perf_counter(), 0, []
    while time.perf_counter() - began < seconds:
        waiting.append(evaluator.submit(batch))
        if len(waiting) > 2:
            waiting.pop(0).result()
            done += size
    return done / (time.perf_counter() - began)


def rates(players: Players, seconds: float) -> tuple[dict[str, float], list[int]]:
    """What is done in a second (`known`: evaluations kept from before, beside those made); the lengths of games."""
    counters = ("evaluations", "known", "moves", "games")
    began, before, lengths = time.perf_counter(), [getattr(players, name) for name in counters], []
    while time.perf_counter() - began < seconds:
        lengths += [len(game.plies) for game in players.step()]
    spent = time.perf_counter() - began
    return {
        f"{name}_per_second": (getattr(players, name) - then) / spent
        for name, then in zip(counters, before, strict=True)
    }, lengths


def ours(side_by_side: int, visits: int, seconds: float) -> dict[str, float]:
    loop = recipe(side_by_side, visits)
    evaluator = keima.Evaluator(keima.create("connect-four", **SIZES), batch_size=side_by_side // 2)
    counter = itertools.count()
    players = Players(loop, [Player(evaluator, 0)], lambda: next(counter))
    lengths: list[int] = []
    while len(lengths) < side_by_side:  # past the first games, which all began together
        lengths += [len(game.plies) for game in players.step()]
    best = own_rate(evaluator, side_by_side // 2, seconds / 3)
    found, more = rates(players, seconds)
    found |= {"evaluator_alone": best, "share_of_evaluator": found["evaluations_per_second"] / best}
    return {**found, "mean_length": float(np.mean(lengths + more))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visits", type=int, default=32)
    parser.add_argument("--games", type=int, default=256, help="side by side")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--other", help="a Python with pgx and mctx")
    args = parser.parse_args()
    for _ in range(args.rounds):
        mine = ours(args.games, args.visits, args.seconds)
        print(json.dumps({"keima": mine}), flush=True)
        if args.other:
            script = Path(__file__).with_name("selfplay_pgx.py")
            options = ["--visits", str(args.visits), "--games", "128", "--seconds", str(int(3 * args.seconds))]
            sizes = [text for name, size in SIZES.items() for text in (f"--{name}", str(size))]
            answer = subprocess.run([args.other, script, *options, *sizes], capture_output=True, text=True, check=True)
            theirs = json.loads(answer.stdout.splitlines()[-1])
            theirs["games_per_second"] = theirs["moves_per_second"] / mine["mean_length"]
            print(json.dumps({"pgx + mctx": theirs, "ratio": mine["games_per_second"] / theirs["games_per_second"]}),
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
