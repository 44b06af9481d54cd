"""AlphaGo's 48 planes and rollouts on one core: positions a second and microseconds a move.

Goals: ≥ 10,000 positions/s with ladders; ≤ 2 µs a move, whole 19×19 playouts included.
"""

from __future__ import annotations

import time

import numpy as np

from keima.games.game import stack
from keima.games.go import Position
from keima.systems.alphago.inputs import encode_alphago
from keima.systems.alphago.rollout import RolloutPolicy

POSITIONS = 2000
REPEATS = 5


def middle_games(count: int) -> list[Position]:
    """Positions 60 to 200 moves into random games that avoid eyes (the rollout policy's own moves)."""
    rng = np.random.default_rng(1)
    policy = RolloutPolicy()
    positions: list[Position] = []
    while len(positions) < count:
        position = Position.start(19)
        for move in range(200):
            moves = policy.probabilities(position)
            position = position.play(list(moves)[rng.integers(len(moves))])
            if move >= 60 and move % 10 == 0:
                positions.append(position)
    return positions[:count]


def main() -> None:
    positions = middle_games(100)
    records = stack(positions * (POSITIONS // len(positions)))
    planes = np.zeros((POSITIONS, 48, 19, 19), np.float32)
    symmetries = np.zeros(POSITIONS, np.int64)
    encode_alphago(records[:1], symmetries[:1], planes[:1])
    best = min(_seconds(lambda: encode_alphago(records, symmetries, planes)) for _ in range(REPEATS))
    print(f"48 planes, random middle games: {POSITIONS / best:,.0f} positions/s (goal 10,000)")

    rng = np.random.default_rng(2)
    policy = RolloutPolicy(
        patterns={int(code): float(rng.normal()) for code in rng.integers(0, 1 << 24, 69_338)},
        responses={int(key): float(rng.normal()) for key in rng.integers(0, 1 << 40, 32_207)},
        neighbour=rng.normal(size=8).astype(np.float32),
        save_atari=2.0,
    )
    start = Position.start(19)
    policy.play_out(start, games=2)
    for _ in range(REPEATS):
        begin = time.perf_counter()
        played = policy.play_out(start, games=300, seed=1)
        seconds = time.perf_counter() - begin
        rate = seconds / played.moves * 1e6
        print(f"playouts: {rate:.2f} µs a move (goal 2), {played.moves_per_game:.0f} moves a game")


def _seconds(work: object) -> float:
    begin = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
