"""How well a network plays connect four, by the perfect solver.

    python benchmarks/connect_four_strength.py NET                       policy, and with 100 visits, on 1,000 positions
    python benchmarks/connect_four_strength.py NET --perfect             as first player with 400 visits, too
    python benchmarks/connect_four_strength.py --make POSITIONS.npz      the positions themselves, anew (half an hour)

The 1,000 positions are after 6 to 39 random discs, at least two moves left, and are kept with the value of every move
(`connect_four_positions.npz`). A move is optimal that keeps the value of the game: win, draw or loss.

--perfect plays the first player, whose opening move wins, against every line of the second player's first two moves (49
games), and from 8 discs on against the solver's slowest loss. One JSON line.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

import keima
from benchmarks.connect_four_solver import Solver
from keima.games.connect_four.kernels import NAMES
from keima.games.connect_four.position import Position
from keima.search.search import search_batch

POSITIONS = Path(__file__).with_name("connect_four_positions.npz")


def make(path: Path) -> None:
    """Draw the positions and solve them, those with many discs first."""
    rng, solver = np.random.default_rng(2026), Solver()
    moves, values = [], []
    for ply in np.sort(rng.integers(6, 40, 1000))[::-1].tolist():
        while True:
            position = Position.start()
            while len(position.moves) < ply and not position.is_over:
                position = position.play(str(rng.choice(position.legal())))
            if not position.is_over and len(position.legal()) > 1:
                break
        row = np.full(7, -9, np.int8)
        for move, score in solver.scores(position).items():
            row[NAMES.index(move)] = np.sign(score)
        moves.append("".join(position.moves))
        values.append(row)
    np.savez_compressed(path, moves=np.array(moves), values=np.array(values))


@functools.cache
def stored() -> tuple[list[Position], list[set[str]]]:
    """The positions, and the optimal moves of each."""
    with np.load(POSITIONS, allow_pickle=False) as data:
        lines, values = data["moves"].tolist(), data["values"]
    return [Position.start().play(*line) for line in lines], [
        {NAMES[c] for c in range(7) if row[c] == row.max()} for row in values
    ]


def optimal_by_policy(evaluator: keima.Evaluator) -> NDArray[np.bool_]:
    """Of each position: is the policy's first move, averaged over the two reflections, optimal?"""
    positions, best = stored()
    answers = evaluator(positions, symmetry="average")
    return np.array([max(a.policy, key=a.policy.__getitem__) in good for a, good in zip(answers, best, strict=True)])


def measure(evaluator: keima.Evaluator, visits: int, preset: str) -> dict[str, float]:
    """Shares of optimal moves: of the policy's first move, and of a search's."""
    positions, best = stored()
    hard = [len(good) < len(position.legal()) for good, position in zip(best, positions, strict=True)]
    options = {"gumbel_noise": 0.0} if preset == "gumbel" else {}
    found = search_batch(evaluator, positions, visits, preset, **options)
    searched = np.array([result.best in good for result, good in zip(found, best, strict=True)])
    shares = {"positions": len(positions), "with_a_choice": int(sum(hard))}
    for name, right in (("policy", optimal_by_policy(evaluator)), (f"visits_{visits}", searched)):
        shares |= {name: float(right.mean()), f"{name}_with_a_choice": float(right[hard].mean())}
    return shares


def against_perfect(evaluator: keima.Evaluator, visits: int, preset: str) -> dict[str, int]:
    """Games as first player, against all replies of the first two moves and the solver's slowest loss from there."""
    solver, tally = Solver(), {"won": 0, "drawn": 0, "lost": 0}
    options = {"gumbel_noise": 0.0} if preset == "gumbel" else {}
    for line in product(NAMES, repeat=2):
        position, replies = Position.start(), list(line)
        while not position.is_over:
            if position.to_play == "1":
                move = keima.search(evaluator, position, visits, preset, **options).best
            elif replies:
                move = replies.pop(0)
                if not position.is_legal(move):
                    move = position.legal()[0]
            elif len(position.moves) < 8:
                answer = evaluator([position])[0]
                move = max(answer.policy, key=answer.policy.__getitem__)
            else:
                scores = solver.scores(position)
                move = max(scores, key=scores.__getitem__)
            position = position.play(move)
        tally[{"1": "won", "2": "lost", None: "drawn"}[position.winner]] += 1
        print("".join(position.moves), position.result, file=sys.stderr, flush=True)
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net", nargs="?")
    parser.add_argument("--visits", type=int, default=100)
    parser.add_argument("--preset", default="auto")
    parser.add_argument("--perfect", action="store_true")
    parser.add_argument("--make", type=Path)
    args = parser.parse_args()
    if args.make:
        make(args.make)
        return
    evaluator = keima.Evaluator(keima.load(args.net), batch_size=64)
    began = time.perf_counter()
    found: dict[str, object] = dict(measure(evaluator, args.visits, args.preset))
    if args.perfect:
        found["perfect"] = against_perfect(evaluator, 400, args.preset)
    print(json.dumps({"net": args.net, "seconds": round(time.perf_counter() - began), **found}))


if __name__ == "__main__":
    main()
