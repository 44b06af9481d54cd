"""Speed of the chess kernel and of Lc0's encoder on one core. Run: `python benchmarks/bench_chess.py`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from keima.games.chess import Position, board
from keima.games.chess.kernels import ONGOING, ending, perft
from keima.jit import njit
from keima.systems.lc0.inputs import INPUT_FORMATS, PLANES, Lc0Encoding, encode_lc0

POSITIONS = {
    "initial position": (None, 5),
    "Kiwipete": ("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", 4),
    "rook endgame": ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", 6),
}
REPEATS = 5


def best_seconds(work: Callable[[], Any]) -> float:
    """The shortest of several runs in seconds of CPU time, after one that compiles (everything here is one thread)."""
    work()
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


@njit
def _random_games(states: Any, root: Any, moves: Any, seed: int) -> int:
    """Fill `states` with the positions of random games from `root`; returns the number of moves made."""
    made = 0
    state = seed
    states[0] = root
    for n in range(1, len(states)):
        states[n] = states[n - 1]
        count = board.legal_moves(states[n], moves)
        if ending(states[n], count) != ONGOING:
            states[n] = root
            count = board.legal_moves(states[n], moves)
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        board.make(states[n], moves[(state >> 8) % count])
        made += 1
    return made


@njit
def _make_all(scratch: Any, states: Any, moves: Any, rounds: int) -> int:
    """Copy each state and make each of its legal moves on the copy: what expanding a tree does."""
    made = 0
    for _ in range(rounds):
        for n in range(len(states)):
            count = board.legal_moves(states[n], moves)
            for index in range(count):
                scratch[0] = states[n]
                board.make(scratch[0], moves[index])
                made += 1
    return made


def main() -> None:
    for name, (fen, depth) in POSITIONS.items():
        root = Position.from_fen(fen).record
        nodes = perft(root, depth)
        seconds = best_seconds(lambda root=root, depth=depth: perft(root, depth))  # type: ignore[misc]
        print(
            f"perft {name}, depth {depth}: {nodes:,} nodes, {nodes / seconds / 1e6:.1f} million nodes/s (bulk counting)"
        )

    states = board.new_states(256)
    moves = np.empty(board.MAX_MOVES, np.uint16)
    _random_games(states, Position.start().record[0], moves, 1)
    scratch = board.new_states(1)
    made = _make_all(scratch, states, moves, 20)
    seconds = best_seconds(lambda: _make_all(scratch, states, moves, 20))
    print(f"copy a state ({board.STATE.itemsize} bytes) and make a move: {made / seconds / 1e6:.2f} million/s")

    transforms = np.empty(len(states), np.int64)
    for size in (8, 256):
        planes = np.empty((size, PLANES, 8, 8), np.float32)
        for name, number in INPUT_FORMATS.items():
            rounds = 2048 // size

            def encode(number: int = number, size: int = size, rounds: int = rounds, planes: Any = planes) -> None:
                for n in range(rounds):
                    start = n * size % len(states)
                    encode_lc0(states[start : start + size], number, 1, planes, transforms[:size])

            seconds = best_seconds(encode)
            print(f"encode {name}, batches of {size}: {rounds * size / seconds:,.0f} positions/s")

    encoding = Lc0Encoding()
    for size in (8, 256):
        positions = [Position.start().play("e2e4", "e7e5", "g1f3", "b8c6")] * size
        seconds = best_seconds(lambda positions=positions: encoding.encode(positions))  # type: ignore[misc]
        print(f"Lc0Encoding.encode, batches of {size}, fresh arrays: {size / seconds:,.0f} positions/s")
    seconds = best_seconds(lambda: [encoding.legal_moves(position) for position in positions])
    print(f"Lc0Encoding.legal_moves: {len(positions) / seconds:,.0f} positions/s")
    for game in ([], ["g1f3", "g8f6", "f3g1", "f6g8"] * 20):
        seconds = best_seconds(lambda game=game: Position.from_fen(None, game))  # type: ignore[misc]
        print(f"Position.from_fen with {len(game)} moves: {seconds * 1e6:.0f} µs")


if __name__ == "__main__":
    main()
