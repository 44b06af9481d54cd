"""Pass-alive areas and life without seki, held to drawings, to the definition, and to play-out by brute force."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.games.go import Position
from keima.games.go.area import calculate_area, independent_life_area
from keima.games.go.board import BLACK, EMPTY, MAX_POINTS, WHITE
from keima.games.go.vertices import board_locs
from tests.games.go.go_drawing import Grid, drawn, grid_of, played, position_of, stones_grid
from tests.games.go.plain_area import Point, chains_of, plain_area, plain_life


def area_of(
    position: Position, stones: bool = False, safe: bool = False, unsafe: bool = False, suicide: bool = False
) -> Grid:
    result = np.empty(MAX_POINTS, np.int8)
    calculate_area(position.board[0], result, stones, safe, unsafe, suicide)
    return tuple(map(tuple, result[board_locs(position.xsize, position.ysize)].tolist()))


def life_of(position: Position, keep_territories: bool, keep_stones: bool) -> tuple[Grid, int]:
    result = np.empty(MAX_POINTS, np.int8)
    count = independent_life_area(position.board[0], result, keep_territories, keep_stones, False)
    return tuple(map(tuple, result[board_locs(position.xsize, position.ysize)].tolist())), count


# --- drawings ---------------------------------------------------------------------------------------------------------

TWO_EYES = """
    . X . X O .
    X X X X O .
    O O O O O .
    . . . . . .
"""


def test_a_chain_with_two_eyes_is_alive_with_its_eyes_and_nothing_else_is() -> None:
    assert area_of(position_of(TWO_EYES)) == grid_of(
        """
        X X X X . .
        X X X X . .
        . . . . . .
        . . . . . .
        """
    )


def test_one_eye_of_two_points_is_not_enough() -> None:
    position = position_of(
        """
        . . X O .
        X X X O .
        O O O O .
        """
    )
    assert all(owner == EMPTY for row in area_of(position) for owner in row)


def test_two_chains_live_together_around_shared_eyes() -> None:
    # neither chain has two eyes that are its own, each has both
    position = position_of(
        """
        . X . X X
        X . X X O
        X X O O O
        O O O . .
        """
    )
    assert area_of(position)[0] == (BLACK,) * 5


def test_a_dead_stone_in_an_eye_belongs_to_the_living() -> None:
    position = position_of(
        """
        O X . X O
        . X X X O
        X X O O O
        O O O . .
        """
    )
    assert area_of(position)[0][0] == BLACK
    # with suicide legal White could fill the corner with two stones: the eye's stone must touch the chain too, and does
    assert area_of(position, suicide=True)[0][0] == BLACK


def test_suicide_turns_an_eye_with_a_stone_out_of_reach_into_none() -> None:
    # the corner stone touches no black stone: a white stone may come back there for ever once suicide is legal
    position = position_of(
        """
        O . X . X O
        . X X X X O
        X X O O O O
        O O O . . .
        """
    )
    assert area_of(position)[0][0] == BLACK
    assert area_of(position, suicide=True)[0][0] == EMPTY


def test_big_territories_are_marked_as_asked() -> None:
    alive = position_of(
        """
        . X . X . . .
        X X X X . . .
        X X X X . . .
        X X X X X X X
        O O O O O O O
        . . . . . . .
        """
    )
    assert area_of(alive)[0][6] == EMPTY
    assert area_of(alive, safe=True)[0][6] == BLACK
    not_alive = position_of(
        """
        . . X .
        . . X .
        . . X .
        """
    )
    assert area_of(not_alive, safe=True)[0][3] == EMPTY
    assert area_of(not_alive, unsafe=True)[0] == (BLACK, BLACK, EMPTY, BLACK)
    assert area_of(not_alive, unsafe=True, stones=True)[0] == (BLACK, BLACK, BLACK, BLACK)


def test_unsafe_territory_yields_to_pass_alive_territory() -> None:
    # KataGo's own example: the corner touches white stones only, but those are dead inside Black's area
    position = position_of(
        """
        . O X . X . X
        O X X X X X X
        X X . . . . .
        """
    )
    assert area_of(position, stones=True, safe=True, unsafe=True)[0] == (BLACK,) * 7


def test_an_empty_board_belongs_to_nobody() -> None:
    assert all(o == EMPTY for row in area_of(Position.start(5), True, True, True) for o in row)


def test_areas_that_touch_dame_live_in_seki() -> None:
    position = position_of(
        """
        X . O X .
        X . O X X
        X . O O O
        """
    )
    _, count = life_of(position, False, False)
    assert count == 0
    area, _ = life_of(position, False, True)
    assert area == grid_of(drawn(position))  # stones are kept although all of them touch dame or share their area
    area, _ = life_of(position, True, False)
    assert area == grid_of("....X\n.....\n.....")


def test_group_tax_counts_living_areas() -> None:
    position = position_of(
        """
        . X X O .
        X X O O O
        . X O . O
        X X O O O
        """
    )
    area, white_minus_black = life_of(position, False, False)
    assert white_minus_black == 0
    assert area == ((BLACK,) * 3 + (WHITE,) * 2, (BLACK,) * 2 + (WHITE,) * 3, (BLACK,) * 2 + (WHITE,) * 3,
                    (BLACK,) * 2 + (WHITE,) * 3)  # fmt: skip
    divided = position_of(
        """
        . X O . O
        X X O O .
        X X O O O
        . X X X X
        X . X . X
        """
    )
    assert life_of(divided, False, False)[1] == 0


# --- held to the definition, in plain Python --------------------------------------------------------------------------


@st.composite
def boards(draw: st.DrawFn, sides: tuple[int, int] = (2, 7)) -> Position:
    """A board of drawn points; crowded, so that there is life and death on it."""
    xsize, ysize = draw(st.integers(*sides)), draw(st.integers(*sides))
    symbols = draw(st.sampled_from([".XO", ".XXO", "..XXXXO", ".XXXX"]))
    rows = draw(
        st.lists(st.text(symbols, min_size=xsize, max_size=xsize), min_size=ysize, max_size=ysize).map("\n".join)
    )
    grid = grid_of(rows)
    for colour in (BLACK, WHITE):  # stones without liberties cannot stand: free them
        for stones, liberties in chains_of(grid, colour):
            if not liberties:
                x, y = min(stones)
                grid = tuple(
                    tuple(EMPTY if (i, j) == (x, y) else s for i, s in enumerate(r)) for j, r in enumerate(grid)
                )
    return position_of("\n".join("".join(".XO"[s] for s in row) for row in grid))


@settings(max_examples=300, deadline=None)
@given(boards(), st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_areas_are_those_of_the_definition(
    position: Position, stones: bool, safe: bool, unsafe: bool, suicide: bool
) -> None:
    expected = plain_area(stones_grid(position), stones, safe, unsafe, suicide)
    assert area_of(position, stones, safe, unsafe, suicide) == expected


@settings(max_examples=200, deadline=None)
@given(boards(), st.booleans(), st.booleans())
def test_independent_life_is_that_of_the_definition(position: Position, territories: bool, stones: bool) -> None:
    assert life_of(position, territories, stones) == plain_life(stones_grid(position), territories, stones)


# --- what it means ----------------------------------------------------------------------------------------------------


def can_be_captured(grid: Grid, stone: Point, limit: int = 20000) -> bool:
    """Can the enemy alone, moving again and again, take the stone? No suicide; all orders are tried."""
    colour = grid[stone[1]][stone[0]]
    seen, edge = {grid}, [grid]
    while edge:
        board = edge.pop()
        for y, row in enumerate(board):
            for x, point in enumerate(row):
                if point == EMPTY:
                    after = played(board, x, y, 3 - colour)
                    if after[stone[1]][stone[0]] != colour:
                        return True
                    if after[y][x] != EMPTY and after not in seen:
                        seen.add(after)
                        edge.append(after)
        assert len(seen) < limit, "board too large for brute force"
    return False


@settings(max_examples=60, deadline=None)
@given(boards(sides=(2, 4)))
def test_alive_means_that_no_run_of_enemy_moves_captures_it(position: Position) -> None:
    grid = stones_grid(position)
    area = area_of(position)
    for colour in (BLACK, WHITE):
        for stones, _ in chains_of(grid, colour):
            x, y = min(stones)
            assert (area[y][x] == colour) == (not can_be_captured(grid, (x, y)))
