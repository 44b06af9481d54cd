"""A game that can only end one way is seen to: every point pass-alive (Benson)."""

import pytest

import keima
from keima.games.game import get_game

WALLS = ["C1", "C2", "C3", "C4", "C5", "B3", "D3", "A3", "E3", "B1", "A2", "B5", "A4", "D1", "E2", "D5", "E4"]


def walled(komi: float, rules: str = "tromp-taylor") -> keima.go.Position:
    position = keima.go.Position.start(5, rules, komi)
    for vertex in WALLS:
        position = position.play(vertex, "pass")
    return position


@pytest.mark.parametrize(("komi", "result"), [(5.5, "B+19.5"), (30.0, "W+5"), (25.0, "0")])
def test_a_board_of_single_eyes_is_counted(komi: float, result: str):
    verdict = get_game("go").playing.certain(walled(komi))
    assert verdict is not None
    assert verdict.result == result


def test_corners_of_four_points_are_not_pass_alive_yet():
    position = keima.go.Position.start(5, "tromp-taylor", 5.5)
    for vertex in WALLS[:9]:
        position = position.play(vertex, "pass")
    assert get_game("go").playing.certain(position) is None


def test_by_territory_rules_nothing_is_said():
    assert get_game("go").playing.certain(walled(5.5, "japanese")) is None
