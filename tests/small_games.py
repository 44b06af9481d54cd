"""Small games of Go to train on."""

from __future__ import annotations

import random


def small_games(count: int) -> str:
    """SGF: games of 12 random moves on 5×5, no two stones side by side, won in turn."""
    choose = random.Random(3)
    records = []
    for number in range(count):
        points = [x + y for x in "abcde" for y in "abcde" if (ord(x) + ord(y)) % 2]
        choose.shuffle(points)
        moves = "".join(f";{'BW'[ply % 2]}[{point}]" for ply, point in enumerate(points))
        records.append(f"(;GM[1]SZ[5]KM[7.5]RU[Chinese]RE[{'BW'[number % 2]}+2.5]{moves})")
    return "\n".join(records)
