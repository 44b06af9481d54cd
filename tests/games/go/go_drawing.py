"""Boards drawn in text, and the rules of Go in plain Python, slow and obvious: what the kernels are held to."""

from __future__ import annotations

from typing import Any

import numpy as np

from keima.games.go import Position
from keima.games.go.board import BLACK, EMPTY, WHITE
from keima.games.go.vertices import xy_to_vertex

Grid = tuple[tuple[int, ...], ...]
SYMBOLS = {".": EMPTY, "X": BLACK, "O": WHITE}

TRIPLE_KO = """
    . X O .
    X O . O
    . X O .
    . X O .
    X . X O
    . X O .
    . X O .
    X O . O
    . X O .
"""
TRIPLE_KO_ROUND = ("C8", "B5", "C2", "B8", "C5", "B2")
"""Six moves that lead back to the position, each legal under simple ko."""


def grid_of(drawing: str) -> Grid:
    """A drawing of ., X and O as rows of colours."""
    return tuple(
        tuple(SYMBOLS[symbol] for symbol in row.replace(" ", "")) for row in drawing.split("\n") if row.strip()
    )


def drawn(position: Position) -> str:
    """A position as a drawing, rows joined by newlines."""
    return "\n".join("".join(".XO"[stone] for stone in row) for row in position.stones)


def stripped(drawing: str) -> str:
    """A drawing without indentation and empty lines, to compare with `drawn`."""
    return "\n".join(row.replace(" ", "") for row in drawing.split("\n") if row.strip())


def position_of(drawing: str, to_play: str = "B", rules: Any = "tromp-taylor", **options: Any) -> Position:
    """A position set up from a drawing."""
    grid = grid_of(drawing)
    ysize, xsize = len(grid), len(grid[0])
    stones: dict[int, list[str]] = {BLACK: [], WHITE: []}
    for y, row in enumerate(grid):
        for x, colour in enumerate(row):
            if colour != EMPTY:
                stones[colour].append(xy_to_vertex(x, y, ysize))
    return Position.start((xsize, ysize), rules, black=stones[BLACK], white=stones[WHITE], to_play=to_play, **options)


def stones_grid(position: Position) -> Grid:
    """The stones of a position as rows of colours."""
    return tuple(tuple(row) for row in np.asarray(position.stones).tolist())


def beside(x: int, y: int, grid: Grid) -> list[tuple[int, int]]:
    """The points next to a point."""
    around = [(x, y - 1), (x - 1, y), (x + 1, y), (x, y + 1)]
    return [(i, j) for i, j in around if 0 <= j < len(grid) and 0 <= i < len(grid[0])]


def chain_at(x: int, y: int, grid: Grid) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """The stones and the liberties of the chain on a point, by flooding."""
    stones, liberties, edge = {(x, y)}, set(), [(x, y)]
    while edge:
        i, j = edge.pop()
        for near in beside(i, j, grid):
            colour = grid[near[1]][near[0]]
            if colour == EMPTY:
                liberties.add(near)
            elif colour == grid[y][x] and near not in stones:
                stones.add(near)
                edge.append(near)
    return stones, liberties


def with_stones(grid: Grid, points: set[tuple[int, int]], colour: int) -> Grid:
    """The grid with these points set to a colour."""
    return tuple(
        tuple(colour if (x, y) in points else stone for x, stone in enumerate(row)) for y, row in enumerate(grid)
    )


def played(grid: Grid, x: int, y: int, colour: int) -> Grid:
    """The grid after a move: enemy chains without liberties go first, then the own one."""
    grid = with_stones(grid, {(x, y)}, colour)
    for near in beside(x, y, grid):
        if grid[near[1]][near[0]] == 3 - colour:
            stones, liberties = chain_at(*near, grid)
            if not liberties:
                grid = with_stones(grid, stones, EMPTY)
    stones, liberties = chain_at(x, y, grid)
    return grid if liberties else with_stones(grid, stones, EMPTY)


def is_plainly_legal(grid: Grid, x: int, y: int, colour: int, suicide: bool, before: Grid | None) -> bool:
    """Legal by stones, suicide and simple ko; `before` is the grid before the last move.

    Simple ko: a move that takes one stone may not bring back the grid from before the last move.
    """
    if grid[y][x] != EMPTY:
        return False
    after = played(grid, x, y, colour)
    if after[y][x] == EMPTY and (not suicide or after == grid):
        return False
    taken = sum(row.count(3 - colour) for row in grid) - sum(row.count(3 - colour) for row in after)
    return not (taken == 1 and after == before)
