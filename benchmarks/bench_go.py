"""How fast the rules of Go are: random playouts, moves with and without the rules' memory, copying, first compilation.

    python benchmarks/bench_go.py [--size 19] [--seconds 2]

A playout fills the board with random legal moves, never a player's own one-point eye, until both pass.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.games.go import Position
from keima.games.go.board import (
    BOARD,
    EMPTY,
    MAX_POINTS,
    PASS_LOC,
    WALL,
    is_legal,
    loc_of,
    neighbour,
    opponent,
    play,
)
from keima.games.go.history import HISTORY, is_legal_move, is_over, legal_moves
from keima.games.go.moves import play_move
from keima.jit import njit


@njit
def is_own_eye(b: Any, loc: int, colour: int) -> bool:
    """Are all neighbours of an empty point `colour`'s, and at most one diagonal (none at the edge) the enemy's?"""
    stride = int(b.stride)
    for k in range(4):
        stone = b.stones[neighbour(loc, k, stride)]
        if stone != WALL and stone != colour:
            return False
    enemies = walls = 0
    for step in (-stride - 1, -stride + 1, stride - 1, stride + 1):
        if b.stones[loc + step] == WALL:
            walls = 1
        elif b.stones[loc + step] == opponent(colour):
            enemies += 1
    return enemies + walls < 2


@njit
def board_playout(b: Any, colour: int, limit: int) -> int:
    """Play a board out with stones, simple ko and suicide alone; how many moves it took."""
    points = np.empty(MAX_POINTS, np.int16)
    moves = passes = 0
    while passes < 2 and moves < limit:
        count = 0
        for y in range(b.ysize):
            start = loc_of(0, y, b.xsize)
            for loc in range(start, start + b.xsize):
                if b.stones[loc] == EMPTY:
                    points[count] = loc
                    count += 1
        chosen = PASS_LOC
        while count > 0 and chosen == PASS_LOC:
            i = np.random.randint(count)
            loc = int(points[i])
            if is_legal(b, loc, colour, False) and not is_own_eye(b, loc, colour):
                chosen = loc
            count -= 1
            points[i] = points[count]
        passes = passes + 1 if chosen == PASS_LOC else 0
        play(b, chosen, colour)
        colour = opponent(colour)
        moves += 1
    return moves


@njit
def game_playout(b: Any, h: Any, limit: int) -> int:
    """Play a game out under its full rules, all legal moves generated each turn; how many moves it took."""
    points = np.empty(MAX_POINTS, np.int16)
    moves = 0
    while not is_over(h) and moves < limit:
        colour = int(h.to_play)
        count = legal_moves(b, h, points) - 1
        chosen = PASS_LOC
        while count > 0 and chosen == PASS_LOC:
            i = np.random.randint(count)
            if not is_own_eye(b, int(points[i]), colour):
                chosen = int(points[i])
            count -= 1
            points[i] = points[count]
        play_move(b, h, chosen, colour)
        moves += 1
    return moves


@njit
def board_playouts(start: NDArray[Any], n: int) -> int:
    """N playouts of `start[0]`; all their moves."""
    work = np.empty_like(start)
    moves = 0
    for _ in range(n):
        work[0] = start[0]
        moves += board_playout(work[0], 1, 2000)
    return moves


@njit
def game_playouts(boards: NDArray[Any], histories: NDArray[Any], n: int) -> int:
    """N playouts of a position under its full rules; all their moves."""
    board, history = np.empty_like(boards), np.empty_like(histories)
    moves = 0
    for _ in range(n):
        board[0] = boards[0]
        history[0] = histories[0]
        moves += game_playout(board[0], history[0], 2000)
    return moves


@njit
def copies(boards: NDArray[Any], histories: NDArray[Any], n: int) -> int:
    """Copy one board and history N times, each copy looked at; N."""
    board, history = np.empty_like(boards), np.empty_like(histories)
    seen = 0
    for i in range(n):
        board[0] = boards[0]
        history[0] = histories[0]
        history[0].turns += i
        seen += 1 if history[0].turns >= 0 else 0
    return seen


@njit
def all_legal(b: Any, h: Any, n: int) -> int:
    """Ask N times for the legality of every point; how many questions."""
    points = np.empty(MAX_POINTS, np.int16)
    for _ in range(n):
        legal_moves(b, h, points)
    return n * int(b.xsize) * int(b.ysize)


def timed(work: Callable[[int], int], seconds: float) -> tuple[float, float]:
    """Run `work(n)` about that long; runs of work(1), and of the things it counts, a second of CPU (best of 5)."""
    work(1)  # compiles
    n, taken = 1, 0.0
    while taken < seconds / 20:
        n *= 2
        begin = time.process_time()
        work(n)
        taken = time.process_time() - begin
    n = max(1, int(n * seconds / 5 / taken))
    best = (0.0, 0.0)
    for _ in range(5):
        begin = time.process_time()
        things = work(n)
        taken = time.process_time() - begin
        best = max(best, (n / taken, things / taken))
    return best


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=19)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    size = options.size
    print(f"{size}x{size}; a board is {BOARD.itemsize} bytes, a history {HISTORY.itemsize}")
    begin = time.process_time()
    Position.start(size).play("A1").legal()
    print(f"first move and legal moves (compiled now or read from the cache): {time.process_time() - begin:.1f} s")
    start = Position.start(size)
    rate, moves = timed(lambda n: board_playouts(start.board.copy(), n), options.seconds)
    print(f"board alone:        {rate:8.0f} playouts/s, {1e9 / moves:6.0f} ns a move")
    for rules in ("chinese", "tromp-taylor", "aga", "japanese"):
        game = Position.start(size, rules)
        rate, moves = timed(lambda n, g=game: game_playouts(g.board.copy(), g.history.copy(), n), options.seconds)
        print(f"{rules:14s} game: {rate:8.0f} playouts/s, {1e9 / moves:6.0f} ns a move with all legal moves")
    middle = Position.start(size, "tromp-taylor")
    rng = np.random.default_rng(1)
    for _ in range(size * size // 3):
        middle = middle.play(str(rng.choice(middle.legal()[:-1])))
    b, h = middle.board.copy()[0], middle.history.copy()[0]
    rate, asked = timed(lambda n: all_legal(b, h, n), options.seconds)
    print(f"all legal moves:    {1e9 / rate:8.0f} ns a position, {1e9 / asked:6.1f} ns a point")
    rate, _ = timed(lambda n: copies(middle.board.copy(), middle.history.copy(), n), options.seconds)
    print(f"copy board+history: {1e9 / rate:8.0f} ns")
    is_legal_move(b, h, PASS_LOC, int(h["to_play"]))
    begin = time.process_time()
    for _ in range(2000):
        middle.play("pass")
    print(f"Position.play:      {(time.process_time() - begin) / 2000 * 1e6:8.1f} µs from Python")


if __name__ == "__main__":
    main()
