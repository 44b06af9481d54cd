"""Ladders: drawings with known answers, and a plain minimax over every line on small random boards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from keima.games.go import Position
from keima.games.go.board import BLACK, EMPTY, MAX_POINTS, NULL_LOC, WHITE, new_boards, place
from keima.games.go.ladders import change_stones, find_ladders, new_scratch
from keima.games.go.vertices import loc_to_vertex
from tests.games.go.go_drawing import Grid, beside, chain_at, grid_of, played, position_of, stones_grid

Point = tuple[int, int]
SCRATCH = new_scratch()


def vertices(position: Position, locs: np.ndarray) -> set[str]:
    return {loc_to_vertex(int(loc), position.xsize, position.ysize) for loc in locs}


def ladders(position: Position, attacker: int = EMPTY) -> tuple[set[str], set[str]]:
    laddered, moves = np.zeros((2, MAX_POINTS), np.int8)
    find_ladders(position.board[0], attacker, laddered, moves, SCRATCH)
    return vertices(position, np.flatnonzero(laddered)), vertices(position, np.flatnonzero(moves))


# --- drawings ---------------------------------------------------------------------------------------------------------

LADDER = """
    . . . . . . . . .
    . . O O . . . . .
    . O X . . . . . .
    . . O . . . . . .
    . . . . . . . . .
    . . . . . . . . .
    . . . . . . . . .
    . . . . . . . . .
    . . . . . . . . .
"""
BROKEN_LADDER = """
    . . . . . . . . .
    . . O O . . . . .
    . O X . . . . . .
    . . O . . . . . .
    . . . . . . . . .
    . . . . . . . . .
    . . . . . . X . .
    . . . . . . . . .
    . . . . . . . . .
"""


def test_a_ladder_runs_to_the_edge() -> None:
    position = position_of(LADDER, to_play="B")
    assert ladders(position) == ({"C7"}, set())


def test_a_breaker_on_the_path_saves_the_chain() -> None:
    position = position_of(BROKEN_LADDER, to_play="B")
    assert ladders(position) == (set(), set())


def test_a_chain_of_two_liberties_is_caught_from_one_side() -> None:
    position = position_of(
        """
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . O . . . .
        . O X . . . .
        . O . . . . .
        . . . . . . .
        """
    )
    assert ladders(position, WHITE) == ({"C3"}, {"D3"})
    assert ladders(position, BLACK) == ({"C3"}, set())


def test_capturing_a_hunter_in_atari_is_an_escape() -> None:
    position = position_of(
        """
        . O . . .
        O X . . .
        X O O . .
        X X . . .
        . . . . .
        """
    )
    assert "B4" not in ladders(position)[0]


def test_a_chain_with_three_liberties_is_never_in_a_ladder() -> None:
    position = position_of(". . . .\n. X . .\n. O . .\n. . . .")
    assert ladders(position, WHITE) == (set(), set())


def test_reading_leaves_the_board_alone() -> None:
    position = position_of(LADDER, to_play="B")
    before = position.board.tobytes()
    ladders(position, WHITE)
    assert position.board.tobytes() == before


# --- every line, in plain Python --------------------------------------------------------------------------------------


@dataclass
class Reader:
    """KataGo's rules of reading, without any of its shortcuts."""

    target: Point
    weighs_another_move: bool = False
    """KataGo has weighed some other capture as if it were the extension: then its answer is not the definition's."""
    nodes: int = 0

    def is_caught(self, grid: Grid, defends: bool, ko: Point | None) -> bool:
        self.nodes += 1
        assume(self.nodes < 3000)
        x, y = self.target
        colour = grid[y][x]
        _, liberties = chain_at(x, y, grid)
        if defends:
            if len(liberties) >= 2 or ko is not None:
                return False
            return all(self.is_caught(after, False, ko) for after, ko in self.answers(grid, liberties))
        if len(liberties) != 2:
            return len(liberties) < 2
        if self.is_double_ko_death(grid, liberties):
            return True
        return any(self.is_caught(after, True, ko) for after, ko in self.moves(grid, liberties, 3 - colour, ko))

    def answers(self, grid: Grid, liberties: set[Point]) -> list[tuple[Grid, Point | None]]:
        captures = self.captures(grid)
        if liberties & captures and len(captures) > 1:
            self.weighs_another_move = True
        x, y = self.target
        return self.moves(grid, liberties | captures, grid[y][x], None)

    def captures(self, grid: Grid) -> set[Point]:
        """The last liberties of the neighbours in atari."""
        stones, _ = chain_at(*self.target, grid)
        colour = grid[self.target[1]][self.target[0]]
        found = set()
        for stone in stones:
            for i, j in beside(*stone, grid):
                if grid[j][i] == 3 - colour:
                    _, liberties = chain_at(i, j, grid)
                    if len(liberties) == 1:
                        found |= liberties
        return found

    @staticmethod
    def moves(grid: Grid, points: set[Point], colour: int, ko: Point | None) -> list[tuple[Grid, Point | None]]:
        """The boards after the legal moves among these, each with the simple ko point it leaves."""
        result = []
        for x, y in points:
            after = played(grid, x, y, colour)
            if (x, y) == ko or after[y][x] == EMPTY:
                continue
            taken = [(i, j) for j, row in enumerate(grid) for i, s in enumerate(row) if s == 3 - colour != after[j][i]]
            stones, liberties = chain_at(x, y, after)
            is_ko = len(taken) == 1 and len(stones) == 1 and len(liberties) == 1
            result.append((after, taken[0] if is_ko else None))
        return result

    def is_double_ko_death(self, grid: Grid, liberties: set[Point]) -> bool:
        colour = grid[self.target[1]][self.target[0]]

        def is_mouth(point: Point) -> bool:
            around = [(i, j) for i, j in beside(*point, grid)]
            in_atari = [p for p in around if len(chain_at(*p, grid)[1]) == 1 and grid[p[1]][p[0]] == colour]
            return (
                all(grid[j][i] == colour for i, j in around)
                and len(in_atari) == 1
                and len(chain_at(*in_atari[0], grid)[0]) == 1
            )

        def gains(point: Point) -> bool:
            return len(chain_at(*point, played(grid, *point, colour))[1]) > 2

        return all(is_mouth(p) and not gains(p) for p in liberties) and not self.captures(grid)


def plain_verdict(grid: Grid, target: Point) -> tuple[bool, set[Point], bool]:
    """Caught or not, the ataris that work, and whether KataGo may see it otherwise."""
    colour = grid[target[1]][target[0]]
    _, liberties = chain_at(*target, grid)
    reader = Reader(target)
    if len(liberties) == 1:
        return reader.is_caught(grid, True, None), set(), reader.weighs_another_move
    moves = set()
    for point in liberties:
        for after, _ in reader.moves(grid, {point}, 3 - colour, None):  # every ko works for the defender at the start
            if len(chain_at(*target, after)[1]) == 1 and reader.is_caught(after, True, None):
                moves.add(point)
    return bool(moves), moves, reader.weighs_another_move


@st.composite
def small_boards(draw: st.DrawFn) -> Position:
    xsize, ysize = draw(st.integers(3, 6)), draw(st.integers(3, 6))
    symbols = draw(st.sampled_from([".XO", "..XO", ".XXO"]))
    rows = draw(st.lists(st.text(symbols, min_size=xsize, max_size=xsize), min_size=ysize, max_size=ysize))
    grid = grid_of("\n".join(rows))
    for y in range(ysize):
        for x in range(xsize):
            assume(grid[y][x] == EMPTY or chain_at(x, y, grid)[1])
    return position_of("\n".join(rows))


@settings(max_examples=150, deadline=None)
@given(small_boards())
def test_every_verdict_is_that_of_reading_every_line(position: Position) -> None:
    grid = stones_grid(position)
    laddered = {attacker: ladders(position, attacker) for attacker in (BLACK, WHITE)}
    caught_at, moves_of = set(), {BLACK: set(), WHITE: set()}
    for y, row in enumerate(grid):
        for x, colour in enumerate(row):
            if colour == EMPTY or len(chain_at(x, y, grid)[1]) > 2:
                continue
            caught, moves, unsure = plain_verdict(grid, (x, y))
            assume(not unsure)
            name = f"{'ABCDEFG'[x]}{position.ysize - y}"
            if caught:
                caught_at.add(name)
            moves_of[3 - colour] |= {f"{'ABCDEFG'[i]}{position.ysize - j}" for i, j in moves}
    for attacker in (BLACK, WHITE):
        assert laddered[attacker] == (caught_at, moves_of[attacker])


# --- boards a few moves apart -----------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(small_boards(), st.data())
def test_changed_stones_give_the_same_chains_as_a_fresh_board(position: Position, data: st.DataObject) -> None:
    other = position
    for _ in range(data.draw(st.integers(0, 3))):
        if not other.is_over:
            other = other.play(data.draw(st.sampled_from(other.legal())))
    changed, fresh = position.board.copy(), new_boards(1, position.xsize, position.ysize)
    change_stones(changed[0], other.board[0]["stones"])
    stones = other.board[0]["stones"]
    for loc in np.flatnonzero(np.isin(stones, (BLACK, WHITE))):
        place(fresh[0], int(loc), int(stones[loc]))
    for loc in np.flatnonzero(np.isin(stones, (BLACK, WHITE))):
        ring, heads = [], {}
        for name, board in (("changed", changed[0]), ("fresh", fresh[0])):
            head, stones, stone = board["head"][loc], {int(loc)}, int(board["next"][loc])
            while stone != loc:
                stones.add(stone)
                stone = int(board["next"][stone])
            ring.append(stones)
            heads[name] = (board["size"][head], board["liberties"][head], int(head) in stones)
        assert ring[0] == ring[1]
        assert heads["changed"] == heads["fresh"]
    assert changed[0]["stones"].tobytes() == fresh[0]["stones"].tobytes()
    assert np.array_equal(changed[0]["head"] == NULL_LOC, fresh[0]["head"] == NULL_LOC)


def test_no_change_is_no_work() -> None:
    position = position_of(LADDER)
    board = position.board.copy()
    change_stones(board[0], position.board[0]["stones"])
    assert all(np.array_equal(board[name], position.board[name]) for name in board.dtype.names)


@pytest.mark.parametrize("size", [2, 3])
def test_tiny_boards_end(size: int) -> None:
    position = Position.start(size).play("A1", "B1")
    assert ladders(position, BLACK)[0] <= {"A1", "B1"}
    assert position.board[0]["ko"] == NULL_LOC
