"""Whose points they are, by definition, in plain Python: what the kernels of `keima.games.go.area` are held to."""

from __future__ import annotations

from keima.games.go.board import BLACK, EMPTY, WHITE
from tests.games.go.go_drawing import Grid, beside, chain_at

Point = tuple[int, int]


def regions_without(grid: Grid, colour: int) -> list[set[Point]]:
    """The maximal connected sets of points that hold no stone of `colour`."""
    left = {(x, y) for y, row in enumerate(grid) for x, stone in enumerate(row) if stone != colour}
    regions = []
    while left:
        region, edge = set(), [min(left)]
        while edge:
            point = edge.pop()
            if point in left:
                left.remove(point)
                region.add(point)
                edge += [near for near in beside(*point, grid) if near in left]
        regions.append(region)
    return regions


def chains_of(grid: Grid, colour: int) -> list[tuple[frozenset[Point], frozenset[Point]]]:
    """The chains of a colour: their stones and their liberties."""
    chains = set()
    for y, row in enumerate(grid):
        for x, stone in enumerate(row):
            if stone == colour:
                stones, liberties = chain_at(x, y, grid)
                chains.add((frozenset(stones), frozenset(liberties)))
    return sorted(chains, key=lambda chain: min(chain[0]))


def touches(point: Point, stones: frozenset[Point] | set[Point], grid: Grid) -> bool:
    return any(near in stones for near in beside(*point, grid))


def pass_alive(grid: Grid, colour: int, suicide: bool) -> tuple[set[Point], list[set[Point]]]:
    """Benson, from the definition: the stones that live, and the regions that touch living stones only."""
    chains, regions = [c[0] for c in chains_of(grid, colour)], regions_without(grid, colour)

    def is_vital(region: set[Point], chain: frozenset[Point]) -> bool:
        must_touch = [p for p in region if suicide or grid[p[1]][p[0]] == EMPTY]
        return all(touches(point, chain, grid) for point in must_touch)

    while True:
        living = [c for c in chains if sum(is_vital(r, c) for r in regions) >= 2]
        stones = {point for chain in living for point in chain}
        enclosed = [
            region
            for region in regions
            if all(n in stones for p in region for n in beside(*p, grid) if grid[n[1]][n[0]] == colour)
        ]
        if living == chains and enclosed == regions:
            return stones, enclosed
        chains, regions = living, enclosed


def plain_area(grid: Grid, stones: bool, safe: bool, unsafe: bool, suicide: bool) -> Grid:
    """What `calculate_area` should say."""
    owner: dict[Point, int] = {}
    for colour in (BLACK, WHITE):
        has_stones = any(colour in row for row in grid)
        for region in regions_without(grid, colour):
            if unsafe and has_stones and all(grid[y][x] == EMPTY for x, y in region):
                owner.update(dict.fromkeys(region, colour))
    for colour in (BLACK, WHITE):
        if not any(colour in row for row in grid):
            continue
        living, enclosed = pass_alive(grid, colour, suicide)
        owner.update(dict.fromkeys(living, colour))
        for region in enclosed:
            inner = sum(not touches(p, living, grid) for p in region)
            if inner <= 1 or (safe and all(grid[y][x] == EMPTY for x, y in region)):
                owner.update(dict.fromkeys(region, colour))
    return tuple(
        tuple(owner.get((x, y), stone if stones else EMPTY) for x, stone in enumerate(row))
        for y, row in enumerate(grid)
    )


def plain_life(grid: Grid, keep_territories: bool, keep_stones: bool, suicide: bool = False) -> tuple[Grid, int]:
    """What `independent_life_area` should say."""
    area = plain_area(grid, True, True, True, suicide)
    result = {}
    count = 0
    seen: set[Point] = set()
    for y, row in enumerate(area):
        for x, owner in enumerate(row):
            if owner == EMPTY or (x, y) in seen:
                continue
            group, _ = chain_at(x, y, area)
            seen |= group
            in_seki = any(
                (grid[j][i] == owner and len(chain_at(i, j, grid)[1]) == 1)
                or any(grid[q][p] == EMPTY and area[q][p] == EMPTY for p, q in beside(i, j, grid))
                for i, j in group
            )
            if not in_seki:
                count += 1 if owner == WHITE else -1
            for i, j in group:
                kept = keep_stones if grid[j][i] == owner else keep_territories
                if kept or not in_seki:
                    result[i, j] = owner
    shown = tuple(tuple(result.get((x, y), EMPTY) for x in range(len(grid[0]))) for y in range(len(grid)))
    return shown, count
