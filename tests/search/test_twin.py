"""The compiled search against a plain one: the same moves get the same visits and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from keima.games import chess, go
from keima.search import Limits, Search
from keima.search.backup import student_cdf
from keima.search.expand import score_value
from keima.systems.presets import PRESETS
from tests.search.fakes import Answer, Fake, random_answer
from tests.search.twin import Node, Twin, squashed

ONE_BY_ONE = {"in_flight_share": 0.0, "min_in_flight": 1, "edge_cap": 400}


def compare(position: Any, answer: Any, preset: str, visits: int, center: float = 0.0, **overrides: float) -> None:
    parameters = PRESETS[preset].changed(**{"solve": False, "twofold_draws": False, **ONE_BY_ONE, **overrides})
    game = "go" if hasattr(position, "xsize") else "chess"
    search = Search(Fake(game, answer), parameters)
    search.set_position(position)
    result = search.run(Limits(visits=visits))
    root = Twin(position, answer, parameters, center).run(visits)
    assert {info.move: info.visits for info in result.moves} == {m: c.visits for m, c in root.children.items()}
    for info in result.moves:
        child = root.children[info.move]
        assert info.value == pytest.approx(-child.value / child.visits, abs=1e-6)
        assert info.utility == pytest.approx(-child.utility / child.visits, abs=1e-6)
    assert result.value == pytest.approx(root.value / root.visits, abs=1e-6)
    compare_below(search, 0, root)


def compare_below(search: Search, node: int, twin: Node) -> None:
    """Every node of the tree has the visits of its twin."""
    nodes = search.tree.nodes
    assert nodes["visits"][node] == twin.visits
    children = {}
    c = int(nodes["child"][node])
    while c >= 0:
        children[int(nodes["visits"][c])] = children.get(int(nodes["visits"][c]), 0) + 1
        c = int(nodes["sibling"][c])
    wanted: dict[int, int] = {}
    for child in twin.children.values():
        wanted[child.visits] = wanted.get(child.visits, 0) + 1
    assert children == wanted


def test_alphago_zero_on_a_small_board() -> None:
    position = go.Position.start(5, komi=2.5).play("C3")
    compare(position, random_answer(26), "alphago-zero", 300)


def test_katago_with_scores_on_a_small_board() -> None:
    """First-play urgency, growing c_puct, the spread of utilities, both score utilities about their centres."""
    position = go.Position.start(4, komi=1.5).play("B2")
    answer = random_answer(17, score=True)
    expected = float(np.float32(answer(position).score))
    cap = PRESETS["katago"].utility.dynamic_scale * 4
    center = min(max(0.8 * expected, expected - cap), expected + cap)
    compare(position, answer, "katago", 300, center)


def test_lc0_with_moves_left() -> None:
    """c_puct with a logarithm, first-play urgency, policy temperature, and a liking for quick wins."""
    position = chess.Position.from_fen("6k1/5ppp/8/8/8/8/5PPP/3QR1K1 w - - 0 1")

    def answer(view: Any) -> Answer:
        found = random_answer(1858, left=True)(view)
        winning = 0.93 + 0.06 * found.value
        found.value = winning if view.record[0]["side"] == 0 else -winning
        return found

    compare(position, answer, "lc0", 300)


@pytest.mark.parametrize(
    "fen", ["8/8/8/8/8/5k2/8/5K1R w - - 0 1", "8/8/8/8/8/5k2/8/5K1R b - - 0 1", "7k/8/8/8/8/8/1p6/7K b - - 0 1"]
)
@pytest.mark.parametrize("draw_score", [-0.5, 0.3])
def test_draws_have_their_worth_for_white(fen: str, draw_score: float) -> None:
    """A draw is worth so much to White and as much less to Black, at every depth and whoever begins."""

    def answer(view: Any) -> Answer:
        found = random_answer(1858)(view)
        found.draw = 0.4 + 5 * found.draw
        found.value *= 1 - found.draw
        return found

    compare(chess.Position.from_fen(fen), answer, "lc0", 300, draw_score=draw_score)


def test_shared_evaluations_respect_superko() -> None:
    """On 2×3 points positional superko bans moves everywhere; the plain search asks the rules at every node.

    Evaluations are shared between positions with the same stones. Were the legal moves shared without regard to what
    superko bans, the two searches would part.
    """
    position = go.Position.start((3, 2), rules="tromp-taylor", komi=0.5)
    answer = random_answer(7, spread=0.3)
    parameters = PRESETS["katago"].changed(**ONE_BY_ONE)
    search = Search(Fake("go", answer), parameters)
    search.set_position(position)
    search.run(Limits(visits=800))
    assert search.tree.heads["hits"][0] > 50
    compare(position, answer, "katago", 800)


def test_shared_evaluations_in_chess() -> None:
    position = chess.Position.from_fen("8/8/8/8/8/5k2/8/5K1R w - - 0 1")
    search = Search(Fake("chess", random_answer(1858)), "lc0")
    search.set_position(position)
    search.run(Limits(visits=400))
    assert search.tree.heads["hits"][0] > 20
    compare(position, random_answer(1858), "lc0", 400)


def test_ends_of_games_have_their_exact_worth() -> None:
    """Two passes end the game: with a bias for passing, many visits end there."""

    def answer(view: Any) -> Answer:
        found = random_answer(10)(view)
        found.logits[9] += 3
        return found

    position = go.Position.start(3, komi=3.5).play("B2", "A1")
    compare(position, answer, "alphago-zero", 200)


@pytest.mark.parametrize(
    ("mean", "stdev", "center", "scale"),
    [
        (0.0, 5.0, 3.0, 6.0),
        (12.0, 20.0, -4.0, 14.25),
        (-60.0, 1.0, 0.0, 38.0),
        (3.0, 0.0, 1.0, 5.0),
        (2.0, 9.0, 4.0, 3.0),
    ],
)
def test_score_utility_is_the_expectation_of_an_arctangent(
    mean: float, stdev: float, center: float, scale: float
) -> None:
    assert score_value(mean, stdev, center, scale) == pytest.approx(squashed(mean, stdev, center, scale), abs=2e-4)


@pytest.mark.parametrize(
    ("z", "probability"), [(0.0, 0.5), (0.765, 0.75), (1.638, 0.90), (3.182, 0.975), (-5.841, 0.005)]
)
def test_students_distribution_at_the_points_of_its_table(z: float, probability: float) -> None:
    assert student_cdf(z) == pytest.approx(probability, abs=2e-4)


def test_a_bad_move_counts_less_than_its_visits() -> None:
    """Two moves searched alike, one a blunder: KataGo's average lies nearer to the good one's value."""
    position = go.Position.start(3, komi=0.5)
    answer = random_answer(10, score=False)
    means = {}
    for name in ("plain", "favouring"):
        overrides = {"value_weight_exponent": 0.0, "noise_prune_scale": 0.0} if name == "plain" else {}
        search = Search(Fake("go", answer), PRESETS["katago"].changed(**ONE_BY_ONE, **overrides))
        search.set_position(position)
        result = search.run(Limits(visits=200))
        means[name] = result.utility
        best = max(info.utility for info in result.moves if info.visits > 20)
        assert means[name] < best
    assert means["favouring"] > means["plain"]
