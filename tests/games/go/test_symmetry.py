"""The eight symmetries form the group of the square, and a game turned is the same game."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.games.go import Position
from keima.games.go.vertices import SYMMETRIES, inverse, symmetric_array, xy_to_vertex

ALL = range(SYMMETRIES)
CORNERS = {0: "ab/cd", 1: "cd/ab", 2: "ba/dc", 3: "dc/ba", 4: "ac/bd", 5: "ca/db", 6: "bd/ac", 7: "db/ca"}


@pytest.mark.parametrize("symmetry", ALL)
def test_each_symmetry_by_sight(symmetry: int) -> None:
    """1 flips the rows, 2 the columns, 4 then transposes."""
    square = np.array([list("ab"), list("cd")])
    assert "/".join("".join(row) for row in symmetric_array(square, symmetry)) == CORNERS[symmetry]


@pytest.mark.parametrize("symmetry", ALL)
def test_the_inverse_undoes_it(symmetry: int) -> None:
    board = np.arange(2 * 3 * 5).reshape(2, 3, 5)
    turned = symmetric_array(board, symmetry)
    assert turned.shape == (2, 5, 3) if symmetry & 4 else (2, 3, 5)
    assert np.array_equal(symmetric_array(turned, inverse(symmetry)), board)


def names(xsize: int, ysize: int) -> np.ndarray:
    return np.array([[xy_to_vertex(x, y, ysize) for x in range(xsize)] for y in range(ysize)])


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
    before = symmetric_array(names(xsize, ysize), symmetry)
    turned = Position.start(before.shape[::-1], rules)
    to = {"pass": "pass"} | dict(zip(before.flat, names(*before.shape[::-1]).flat, strict=True))
    for _ in range(30):
        if game.is_over:
            break
        vertex = rng.choice(game.legal())
        game = game.play(vertex)
        turned = turned.play(to[vertex])
        assert np.array_equal(symmetric_array(game.stones, symmetry), turned.stones)
        assert np.array_equal(symmetric_array(game.owners(), symmetry), turned.owners())
        assert {to[v] for v in game.legal()} == set(turned.legal())
        assert game.score() == turned.score()
