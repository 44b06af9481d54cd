"""The rules of Go on small boards, held to plain Python: stones after each move, legal moves, all ko rules but Spight.

The plain side knows grids only: chains by flooding, and superko by the list of all grids there have been.
"""

from __future__ import annotations

import random

from keima.games.go import Position
from tests.games.go.go_drawing import EMPTY, Grid, is_plainly_legal, played, stones_grid

SIDES = "BW"


def one(seed: int) -> None:
    """A game of random legal moves."""
    rng = random.Random(f"rules of go {seed}")
    width, height = rng.randrange(2, 6), rng.randrange(2, 6)
    ko, suicide = rng.choice(("SIMPLE", "POSITIONAL", "SITUATIONAL")), rng.random() < 0.5
    rules = {"ko": ko, "scoring": "AREA", "tax": "NONE", "suicide": suicide, "hasButton": False}
    position = Position.start(size=(width, height), rules=rules, komi=0.5)
    grid = stones_grid(position)
    before: Grid | None = None
    seen = [(grid, 1)]
    for _ in range(rng.randrange(4, 40)):
        if position.is_over:
            return
        colour = SIDES.index(position.to_play) + 1
        legal = {}
        for y in range(height):
            for x in range(width):
                if ko == "SIMPLE":
                    allowed = is_plainly_legal(grid, x, y, colour, suicide, before)
                else:
                    allowed = is_plainly_legal(grid, x, y, colour, suicide, None)
                    if allowed:
                        after = played(grid, x, y, colour)
                        allowed = not any(
                            stones == after and (ko == "POSITIONAL" or side == 3 - colour) for stones, side in seen
                        )
                if allowed:
                    legal[_name(x, y, height)] = (x, y)
        found = set(position.legal()) - {"pass"}
        assert found == set(legal), (seed, rules, position.to_json(), found ^ set(legal))
        assert "pass" in position.legal()
        if legal and rng.random() < 0.95:
            name = rng.choice(sorted(legal))
            before, grid = grid, played(grid, *legal[name], colour)
        else:
            name, before = "pass", None
        position = position.play(name)
        assert stones_grid(position) == grid, (seed, position.to_json())
        seen.append((grid, 3 - colour))
    assert any(point == EMPTY for row in grid for point in row)


def _name(x: int, y: int, height: int) -> str:
    return f"{'ABCDEFGHJ'[x]}{height - y}"
