"""The eight symmetries form the group of the square, and a game turned is the same game."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.games.go import Position
from keima.games.go.vertices import (
    SYMMETRIES,
    compose,
    inverse,
    symmetric_array,
    symmetric_point,
    symmetric_size,
    symmetric_vertex,
)

ALL = range(SYMMETRIES)
CORNERS = {0: "ab/cd", 1: "cd/ab", 2: "ba/dc", 3: "dc/ba", 4: "ac/bd", 5: "ca/db", 6: "bd/ac", 7: "db/ca"}


@pytest.mark.parametrize("symmetry", ALL)
def test_each_symmetry_by_sight(symmetry: int) -> None:
    """1 flips the rows, 2 the columns, 4 then transposes."""
    square = np.array([list("ab"), list("cd")])
    assert "/".join("".join(row) for row in symmetric_array(square, symmetry)) == CORNERS[symmetry]


@pytest.mark.parametrize("first", ALL)
@pytest.mark.parametrize("then", ALL)
def test_composing_is_doing_one_after_the_other(first: int, then: int) -> None:
    board = np.arange(3 * 5).reshape(3, 5)
    both = symmetric_array(symmetric_array(board, first), then)
    assert np.array_equal(both, symmetric_array(board, compose(first, then)))
    assert compose(first, inverse(first)) == 0


@given(st.sampled_from(ALL), st.integers(2, 19), st.integers(2, 19), st.data())
def test_points_move_as_arrays_do(symmetry: int, xsize: int, ysize: int, data: st.DataObject) -> None:
    x, y = data.draw(st.integers(0, xsize - 1)), data.draw(st.integers(0, ysize - 1))
    board = np.zeros((2, ysize, xsize), np.int8)
    board[:, y, x] = 1
    new_x, new_y = symmetric_point(x, y, xsize, ysize, symmetry)
    turned = symmetric_array(board, symmetry)
    assert turned.shape[:0:-1] == symmetric_size(xsize, ysize, symmetry)
    assert turned[0, new_y, new_x] == turned[1, new_y, new_x] == 1
    back = symmetric_point(new_x, new_y, *symmetric_size(xsize, ysize, symmetry), inverse(symmetry))
    assert back == (x, y)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(ALL),
    st.integers(2, 7),
    st.integers(2, 7),
    st.sampled_from(["tromp-taylor", "japanese"]),
    st.integers(),
)
def test_a_game_turned_is_the_same_game(symmetry: int, xsize: int, ysize: int, rules: str, seed: int) -> None:
    """Stones, legal moves and score of a random game commute with every symmetry, on rectangles too."""
    rng = random.Random(seed)
    game = Position.start((xsize, ysize), rules)
    turned = Position.start(symmetric_size(xsize, ysize, symmetry), rules)
    for _ in range(30):
        if game.is_over:
            break
        vertex = rng.choice(game.legal())
        game = game.play(vertex)
        turned = turned.play(symmetric_vertex(vertex, xsize, ysize, symmetry))
        assert np.array_equal(symmetric_array(game.stones, symmetry), turned.stones)
        assert np.array_equal(symmetric_array(game.owners(), symmetry), turned.owners())
        assert {symmetric_vertex(v, xsize, ysize, symmetry) for v in game.legal()} == set(turned.legal())
        assert game.score() == turned.score()
