"""Grades by chances and by points, accuracy as Lichess computes it."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from keima.games.game import GAMES
from keima.review.grading import accuracy, game_accuracy, grades_of, severity, thresholds

GO, CHESS = GAMES["go"].playing, GAMES["chess"].playing


@pytest.mark.parametrize(
    ("winrate", "points", "name"),
    [
        (0.004, 23.0, "blunder"),  # a game long decided
        (0.01, 7.7, "mistake"),
        (0.0, 3.0, "inaccuracy"),
        (0.0, 2.9, "good"),
        (0.25, 0.4, "blunder"),  # half a point that decides the game
        (-0.03, -5.0, "good"),
    ],
)
def test_the_worse_of_both_grades_counts(winrate: float, points: float, name: str) -> None:
    found = grades_of({"winrate_loss": winrate, "points_loss": points}, GO)
    assert found["grade"] == name


def test_a_game_without_points_is_graded_by_chances_alone() -> None:
    assert grades_of({"winrate_loss": 0.11}, CHESS) == {"grade": "mistake"}
    assert [list(entry) for entry in thresholds(CHESS)] == [["name", "winrate"]] * 3
    assert [entry["points"] for entry in thresholds(GO)] == [12, 6, 3]


def test_the_severest_by_either_measure_comes_first() -> None:
    losses = [{"winrate_loss": 0.1, "points_loss": 1.0}, {"winrate_loss": 0.0, "points_loss": 9.0}]
    assert [severity(move, GO) for move in losses] == [0.5, 0.75]


@pytest.mark.parametrize(("lost", "expected"), [(0, 100), (0.05, 80.8), (0.1, 64.6), (0.2, 41.0), (0.4, 15.9), (1, 0)])
def test_a_moves_accuracy(lost: float, expected: float) -> None:
    """Lichess's curve was fitted through 75, 60, 42, 20 and 0; what it gives there, and one more."""
    assert accuracy(1.0, 1.0 - lost) == pytest.approx(expected, abs=0.06)


def lichess(chances: list[float], first: str) -> dict[str, float]:
    """`AccuracyPercent.gameAccuracy` of lila, written a second time and otherwise, by lists of windows."""
    percent = [100 * chance for chance in chances]
    size = max(2, min(8, (len(percent) - 1) // 10))
    windows = [percent[:size]] * (min(size, len(percent)) - 2)
    windows += [percent[start : start + size] for start in range(len(percent) - size + 1)]
    sides = ["white", "black"] if first == "white" else ["black", "white"]
    entries: dict[str, list[tuple[float, float]]] = {"white": [], "black": []}
    for ply, (window, before, after) in enumerate(zip(windows, percent, percent[1:], strict=False)):
        mean = sum(window) / len(window)
        weight = max(0.5, min(12.0, (sum((x - mean) ** 2 for x in window) / len(window)) ** 0.5))
        side = sides[ply % 2]
        mine = (before, after) if side == "white" else (100 - before, 100 - after)
        entries[side].append((accuracy(mine[0] / 100, mine[1] / 100), weight))
    found = {}
    for side, values in entries.items():
        weighted = sum(value * weight for value, weight in values) / sum(weight for _, weight in values)
        found[side] = (weighted + len(values) / sum(1 / max(1.0, value) for value, _ in values)) / 2
    return found


@pytest.mark.parametrize("count", [2, 3, 12, 47, 130])
def test_a_games_accuracy_weighs_moves_by_the_swings_around_them(count: int) -> None:
    import random

    rng = random.Random(count)
    chances = [0.5]
    for _ in range(count):
        chances.append(min(1.0, max(0.0, chances[-1] + rng.gauss(0, 0.08))))
    moves = []
    for ply, (before, after) in enumerate(pairwise(chances)):
        white = ply % 2 == 0
        value = accuracy(before, after) if white else accuracy(1 - before, 1 - after)
        moves.append(("white" if white else "black", value))
    for side, expected in lichess(chances, "white").items():
        assert game_accuracy(chances, moves, side) == pytest.approx(expected, abs=1e-9)
    assert game_accuracy([0.5], [], "white") is None


def test_clocks_tell_what_a_move_took() -> None:
    from keima.games.chess.records import read_pgn_text
    from keima.review.games import open_game

    text = '[TimeControl "180+2"]\n\n1. e4 {[%clk 0:03:00]} e5 {[%clk 0:02:58.5]} 2. Nf3 {[%clk 0:02:50]} Nc6 *\n'
    (record,) = read_pgn_text(text)
    assert open_game(record).times == [{"clock": 180.0}, {"clock": 178.5}, {"clock": 170.0, "spent": 12.0}, {}]


def test_go_clocks_are_told_but_not_taken_apart() -> None:
    from io import BytesIO

    from keima.games.go.records import RECORDS, write_sgf
    from keima.review.games import open_game

    (record,) = RECORDS.read(BytesIO(b"(;SZ[5]RU[Chinese]KM[7];B[cc]BL[59.5];W[bb]WL[30];B[dd]BL[30]OB[3])"))
    assert not isinstance(record, Exception)
    assert open_game(record).times == [{"clock": 59.5}, {"clock": 30.0}, {"clock": 30.0}]
    assert "BL[59.5]" in write_sgf(record)


def as_network(**facts: Any) -> Any:
    return SimpleNamespace(system=facts.pop("system"), pedigree=SimpleNamespace(**facts))


def test_what_is_known_against_a_judge() -> None:
    from keima.systems.files.defaults import DEFAULT_NETWORKS, judging_facts

    small = judging_facts(as_network(system="lc0", sha256=DEFAULT_NETWORKS["chess"].sha256))
    assert "second opinion" in str(small["caution"])
    assert judging_facts(as_network(system="lc0", sha256="00")) == {}
    assert judging_facts(as_network(system="katago", sha256="00")) == {"boards": (7, 19)}
