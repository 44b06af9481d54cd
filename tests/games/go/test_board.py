"""The board kernels against drawn boards, and against flooding every chain anew after every move of random games."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import BadPosition
from keima.games.go import board as go
from keima.games.go.board import BLACK, EMPTY, NULL_LOC, PASS_LOC, WHITE
from keima.games.go.vertices import board_locs, vertex_to_loc
from tests.games.go.go_drawing import Grid, chain_at, is_plainly_legal, played, position_of


def at(drawing: str, vertex: str) -> tuple[Any, int]:
    """A writable board record of a drawing, and a point of it."""
    position = position_of(drawing)
    return position.board.copy()[0], vertex_to_loc(vertex, position.xsize, position.ysize)


def check_against_flood(b: Any, grid: Grid) -> None:
    """Stones, chains, sizes and liberties of a board record are what flooding the grid says."""
    ysize, xsize = len(grid), len(grid[0])
    locs = board_locs(xsize, ysize)
    assert b["stones"][locs].tolist() == [list(row) for row in grid]
    for y in range(ysize):
        for x in range(xsize):
            if grid[y][x] == EMPTY:
                continue
            stones, liberties = chain_at(x, y, grid)
            members = {int(locs[j, i]) for i, j in stones}
            head = int(b["head"][locs[y, x]])
            assert head in members
            assert b["size"][head] == len(stones)
            assert b["liberties"][head] == len(liberties)
            ring, loc = {head}, int(b["next"][head])
            while loc != head:
                assert loc not in ring
                ring.add(loc)
                loc = int(b["next"][loc])
            assert ring == members


def hash_anew(b: Any) -> int:
    key = int(go.size_hash(int(b["xsize"]), int(b["ysize"])))
    for loc in np.flatnonzero(np.isin(b["stones"], (BLACK, WHITE))):
        key ^= int(go.stone_hash(int(loc), int(b["stones"][loc])))
    return key


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 9), st.integers(2, 9), st.booleans(), st.integers(0, 2**32))
def test_random_games_equal_flooding_anew(xsize: int, ysize: int, suicide: bool, seed: int) -> None:
    """Chains, liberties, ko, hash and legality of every point after every move, on every shape of board."""
    rng = random.Random(seed)
    b = go.new_boards(1, xsize, ysize)[0]
    locs = board_locs(xsize, ysize)
    grid: Grid = ((EMPTY,) * xsize,) * ysize
    before, colour, taken = None, BLACK, [0, 0, 0]
    for _ in range(40):
        legal = []
        for y in range(ysize):
            for x in range(xsize):
                expected = is_plainly_legal(grid, x, y, colour, suicide, before)
                assert go.is_legal(b, int(locs[y, x]), colour, suicide) == expected
                if expected:
                    legal.append((x, y))
        if not legal:
            break
        x, y = rng.choice(legal)
        after = played(grid, x, y, colour)
        loc = int(locs[y, x])
        liberties = len(chain_at(x, y, after)[1]) if after[y][x] else 0
        assert go.liberties_after(b, loc, colour, 400) == liberties
        assert go.liberties_after(b, loc, colour, 2) == min(liberties, 2)
        fallen = [
            sum(row.count(c) for row in grid) + (c == colour) - sum(row.count(c) for row in after) for c in (1, 2)
        ]
        assert go.captures_of(b, loc, colour) == fallen[2 - colour]
        assert go.is_suicide(b, loc, colour) == (after[y][x] == EMPTY)
        hash_after = go.hash_after(b, loc, colour)
        go.play(b, loc, colour)
        taken = [0, taken[1] + fallen[0], taken[2] + fallen[1]]
        assert int(b["hash"]) == int(hash_after) == hash_anew(b)
        assert b["captures"].tolist() == taken
        check_against_flood(b, after)
        before, grid, colour = grid, after, 3 - colour


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 19), st.integers(2, 19), st.integers(0, 2**32))
def test_setting_up_stone_by_stone_equals_flooding(xsize: int, ysize: int, seed: int) -> None:
    """`place` in any order and flooding agree, chains without liberties included."""
    rng = np.random.default_rng(seed)
    grid = rng.choice(3, size=(ysize, xsize), p=[0.3, 0.4, 0.3])
    locs = board_locs(xsize, ysize)
    b = go.new_boards(1, xsize, ysize)[0]
    for i in rng.permutation(grid.size):
        if grid.flat[i] != EMPTY:
            go.place(b, int(locs.flat[i]), int(grid.flat[i]))
    flat: Grid = tuple(map(tuple, grid.tolist()))
    check_against_flood(b, flat)
    assert int(b["hash"]) == hash_anew(b)


def test_points_are_numbered_row_by_row_inside_a_wall() -> None:
    assert go.loc_of(3, 2, 19) == 64
    b = go.new_boards(1, 2, 3)[0]
    assert b["stones"][: 3 * 5].reshape(5, 3).tolist() == [[3, 3, 3], [3, 0, 0], [3, 0, 0], [3, 0, 0], [3, 3, 3]]


@pytest.mark.parametrize(("xsize", "ysize"), [(1, 9), (9, 1), (20, 9), (9, 20), (0, 0), (-3, 5)])
def test_a_board_of_impossible_size_is_refused(xsize: int, ysize: int) -> None:
    with pytest.raises(BadPosition, match="2 to 19"):
        go.new_boards(1, xsize, ysize)


def test_a_ko_bans_retaking_until_another_move() -> None:
    b, loc = at(".XO.\nXO.O\n.XO.\n....", "C3")
    go.play(b, loc, BLACK)
    assert b["stones"][vertex_to_loc("B3", 4, 4)] == EMPTY
    assert b["ko"] == vertex_to_loc("B3", 4, 4)
    assert not go.is_legal(b, int(b["ko"]), WHITE, True)
    assert go.is_legal_ignoring_ko(b, int(b["ko"]), WHITE, True)
    go.play(b, PASS_LOC, WHITE)
    assert b["ko"] == NULL_LOC


def test_taking_one_stone_with_a_chain_is_no_ko() -> None:
    b, loc = at("OX.\n.X.\n...", "A2")
    go.play(b, loc, BLACK)
    assert b["captures"].tolist() == [0, 0, 1]
    assert b["ko"] == NULL_LOC


@pytest.mark.parametrize(
    ("drawing", "vertex", "expected"),
    [
        (".XO.\nXO.O\n.XO.\n....", "C3", "B3"),  # a ko
        ("OX.\n.OX\nOX.", "A2", ""),  # three chains in atari
        ("OX.\n.X.\n...", "A2", ""),  # a friend beside it
        ("OX.\nOX.\n.O.\nO..", "A2", ""),  # two stones in atari
        (".O.\nO..\n...", "A3", ""),  # none in atari
        ("OX.\n.X.\n...", "A3", ""),  # no empty point
    ],
)
def test_the_shape_of_a_ko(drawing: str, vertex: str, expected: str) -> None:
    b, loc = at(drawing, vertex)
    wanted = vertex_to_loc(expected, int(b["xsize"]), int(b["ysize"])) if expected else NULL_LOC
    assert go.ko_capture(b, loc, BLACK) == wanted


def test_suicide_of_one_stone_is_never_legal_of_more_by_the_rules() -> None:
    b, loc = at(".O.\nO..\n...", "A3")
    assert go.is_suicide(b, loc, BLACK)
    assert not go.is_legal(b, loc, BLACK, True)
    b, loc = at(".XO\nOO.\n...", "A3")
    assert go.is_legal(b, loc, BLACK, True)
    assert not go.is_legal(b, loc, BLACK, False)
    go.play(b, loc, BLACK)
    assert b["stones"][board_locs(3, 3)].tolist() == [[0, 0, 2], [2, 2, 0], [0, 0, 0]]
    assert b["captures"].tolist() == [0, 2, 0]


def test_equal_stones_hash_equal_and_sizes_differ() -> None:
    shapes = [(x, y) for x in range(2, 20) for y in range(2, 20)]
    hashes = {int(go.new_boards(1, x, y)[0]["hash"]) for x, y in shapes}
    assert len(hashes) == len(shapes)
    stones = {int(go.stone_hash(loc, colour)) for loc in range(go.MAX_POINTS) for colour in (BLACK, WHITE)}
    marks = {int(go.ko_mark_hash(loc)) for loc in range(go.MAX_POINTS)} | {int(go.player_hash(c)) for c in (1, 2)}
    assert len(stones | marks) == 3 * go.MAX_POINTS + 2
