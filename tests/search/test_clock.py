"""Shares of the game clock."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import BadRequest
from keima.games import chess, connect_four, go
from keima.games.game import GAMES
from keima.search import Clock
from keima.search.limits import budget

TIMES = st.floats(0, 10_000)


@settings(max_examples=200, deadline=None)
@given(TIMES, st.floats(0, 60), st.floats(0, 60), st.integers(0, 10), st.integers(1, 25), st.floats(1, 400))
def test_time_is_never_overdrawn(
    main: float, increment: float, period: float, periods: int, moves: int, to_come: float
) -> None:
    found = budget(Clock(main, increment, period, periods, moves), to_come)
    assert 0 <= found.target <= found.maximum
    assert found.maximum <= main + (period / moves if periods else 0.0)


def test_a_whole_game_fits_into_its_main_time() -> None:
    """Using each move's target, 150 moves of a 19×19 game leave time over."""
    left, position, points = (
        600.0,
        go.Position.start(19),
        [f"{x}{y}" for y in range(1, 17) for x in "ABCDEFGHJKLMNOPQRST"],
    )
    for move in range(150):
        left -= budget(Clock(left), to_come(position)).target
        position = position.play(*points[2 * move : 2 * move + 2])
    assert left > 0


def to_come(position: Any) -> float:
    return GAMES[position.game].playing.moves_to_come(position)


def test_every_game_expects_some_moves() -> None:
    for position in (go.Position.start(9), chess.Position.start(), connect_four.Position.start()):
        assert 3 < to_come(position) < 100


def test_byo_yomi_is_used_up_but_for_a_margin() -> None:
    found = budget(Clock(0, period=10, periods=3), 60)
    assert 9 <= found.target < 10
    canadian = budget(Clock(0, period=100, periods=1, period_moves=20), 60)
    assert 4.5 <= canadian.target < 5


def test_moves_to_go_share_the_time() -> None:
    assert budget(Clock(100, moves_to_go=10), 37).target == pytest.approx(10, rel=0.05)
    assert budget(Clock(100, moves_to_go=1), 37).target == pytest.approx(100, rel=0.05)


def test_an_increment_is_spent() -> None:
    slow, fast = (budget(Clock(60, increment=seconds), 40).target for seconds in (0, 2))
    assert fast - slow == pytest.approx(1.7, abs=0.1)


def test_clocks_that_cannot_be() -> None:
    with pytest.raises(BadRequest):
        Clock(-1)
    with pytest.raises(BadRequest):
        Clock(1, periods=-1)
