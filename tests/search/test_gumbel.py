"""Gumbel AlphaZero, held to DeepMind's mctx number for number, and where it goes beyond it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keima.games import connect_four
from keima.search import Limits, Search, search, search_batch
from keima.search.gumbel import considered_visits, score_root
from keima.search.targets import draw_move, policy_target
from tests.search.fakes import Answer, Fake, PlainEncoding
from tests.search.hashed import hashed_answer

DATA = Path(__file__).parents[1] / "data" / "gumbel-mctx.npz"


class Columns(PlainEncoding):
    """Connect four's positions as they are; a policy of seven columns."""

    def shape(self, position: Any, symmetry: int = 0) -> tuple[int, int]:
        return (6, 7)

    def write_indices(self, moves: Any, counts: Any, symmetries: Any, batch: Any, indices: Any) -> None:
        indices[: len(moves)] = moves


def hashed(view: Any) -> Answer:
    """The network of the data."""
    logits, value = hashed_answer(int(view.record[0]["own"]), int(view.record[0]["other"]))
    return Answer(np.array(logits), value)


def evaluator(batch_size: int = 8) -> Fake:
    fake = Fake("connect_four", hashed, batch_size=batch_size)
    fake.encoding = Columns("connect_four")
    return fake


def searched(moves: str, visits: int, gumbel: Any = None, **numbers: Any) -> Search:
    """A search of the position after some moves; `gumbel` [7] in place of the root's noise."""
    one = Search(evaluator(), "gumbel", **numbers)
    one.set_position(connect_four.Position.start().play(*moves))
    one.run(Limits(visits=1))
    root = one.tree.roots[0]
    if gumbel is not None:
        root["noise"][: root["count"]] = gumbel[root["move"][: root["count"]]]
    one.run(Limits(visits=visits))
    return one


def by_column(tree: Any, each: Any) -> Any:
    """Numbers of the root's moves in the order of the columns."""
    found = np.zeros(7)
    root = tree.roots[0]
    found[root["move"][: len(each)]] = each
    return found


def visits_of(tree: Any) -> Any:
    children = tree.roots[0]["child"][: tree.roots[0]["count"]]
    return np.where(children >= 0, tree.nodes["visits"][children], 0)


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_searches_are_those_of_mctx(every: int) -> None:
    """Visits equal, the improved policy to 1e-5, the move, the root's value; mctx counts no visit of the root."""
    data = np.load(DATA)
    cases = [dict(zip(data.files, row, strict=True)) for row in zip(*(data[name] for name in data.files), strict=True)]
    assert len(cases) > 250
    for case in cases[::every]:
        one = searched(
            str(case["moves"]),
            int(case["simulations"]) + 1,
            case["gumbel"],
            gumbel_considered=int(case["considered"]),
            gumbel_value_scale=float(case["scale"]),
            gumbel_visit_offset=float(case["offset"]),
        )
        name = f"{case['moves']!r}, {case['considered']} of {case['simulations']}"
        assert by_column(one.tree, visits_of(one.tree)).tolist() == case["visits"].tolist(), name
        moves, weights = policy_target(one.tree)
        order = np.argsort(moves)
        assert moves[order].tolist() == list(range(7))
        np.testing.assert_allclose(weights[order], case["weights"], atol=1e-5, err_msg=name)
        assert draw_move(one.tree, 0.0, 0.0) == case["action"], name
        assert one.choose() == one.result().best == "abcdefg"[case["action"]], name
        assert one.result().utility == pytest.approx(case["value"], abs=1e-6)


def halving(considered: int, budget: int) -> list[int]:
    """mctx, `get_sequence_of_considered_visits`, in its own words; longer than the budget."""
    if considered <= 1:
        return list(range(3 * budget + 8))
    rounds = int(np.ceil(np.log2(considered)))
    sequence: list[int] = []
    visits = [0] * considered
    left = considered
    while len(sequence) < 3 * budget + 8:
        for _ in range(max(1, int(budget / (rounds * left)))):
            sequence.extend(visits[:left])
            for i in range(left):
                visits[i] += 1
        left = max(2, left // 2)
    return sequence


@pytest.mark.parametrize("considered", [1, 2, 3, 4, 5, 7, 8, 16, 17, 100])
def test_halving_goes_as_in_mctx(considered: int) -> None:
    for budget in (0, 1, 2, 5, 16, 31, 64, 200, 777):
        wanted = halving(considered, budget)[: 2 * budget + 8]
        assert [considered_visits(considered, budget, done) for done in range(len(wanted))] == wanted


def test_leaves_under_way_follow_the_same_halving() -> None:
    """Four moves, then two, but for a few visits: descents that meet a leaf under way are given up and made later."""
    one = searched("dd", 65, gumbel_considered=4, in_flight_share=0.25, min_in_flight=4, gumbel_noise=0.0)
    np.testing.assert_allclose(sorted(visits_of(one.tree)), [0, 0, 0, 8, 8, 24, 24], atol=3)
    assert visits_of(one.tree).sum() == 64


def test_the_best_move_is_one_with_the_most_visits_and_the_greatest_score() -> None:
    for seed in range(10):
        one = searched("dcb", 33, seed=seed)
        tree, result = one.tree, one.result()
        scores, visits = score_root(tree.nodes, tree.roots[0], tree.record[0]), visits_of(tree)
        most = np.flatnonzero(visits == visits.max())
        best = most[np.argmax(scores[most])]
        assert result.best == result.moves[0].move == "abcdefg"[tree.roots[0]["move"][best]] == one.choose()
        assert [info.visits for info in result.moves] == sorted(visits[visits > 0].tolist(), reverse=True)


def test_noise_makes_games_differ_and_none_makes_them_repeat() -> None:
    position = connect_four.Position.start()
    found = {search(evaluator(), position, 17, "gumbel", seed=seed).best for seed in range(20)}
    assert len(found) > 1
    quiet = [search(evaluator(), position, 17, "gumbel", seed=seed, gumbel_noise=0.0) for seed in range(5)]
    assert len({tuple((info.move, info.visits) for info in result.moves) for result in quiet}) == 1


def test_a_first_visit_alone_draws_from_the_policy() -> None:
    """Without simulations argmax g + ln P is a draw from P (the Gumbel-max trick)."""
    position = connect_four.Position.start()
    results = [search(evaluator(), position, 1, "gumbel", seed=seed) for seed in range(600)]
    policy = results[0].policy
    for name, chance in policy.items():
        share = np.mean([result.best == name for result in results])
        assert share == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / 600) + 1e-3)


def test_a_tree_that_is_kept_halves_anew() -> None:
    """Visits of an earlier search are not those of this one; it makes its own, and chooses by them."""
    one = searched("", 101, gumbel_noise=0.0)
    one.set_position(connect_four.Position.start().play(one.result().best))
    kept = one.tree.visits
    assert kept > 10
    before = dict(zip(*kept_visits(one), strict=True))
    result = one.run(Limits(visits=kept + 32))
    gained = {info.move: info.visits - before.get(info.move, 0) for info in result.moves}
    assert sum(gained.values()) == 32
    assert gained[result.best] == max(gained.values())
    again = one.run(Limits(visits=kept + 64))
    assert again.visits == kept + 64


def kept_visits(one: Search) -> tuple[list[str], list[int]]:
    """Names and visits of the moves below the root of a tree that was kept."""
    nodes, names, visits = one.tree.nodes, [], []
    c = int(nodes["child"][0])
    while c >= 0:
        names.append("abcdefg"[nodes["move"][c]])
        visits.append(int(nodes["visits"][c]))
        c = int(nodes["sibling"][c])
    return names, visits


def test_only_the_moves_to_consider_take_part() -> None:
    one = Search(evaluator(), "gumbel")
    one.set_position(connect_four.Position.start())
    result = one.run(Limits(visits=40), allow_moves=["a", "g"])
    assert {info.move for info in result.moves} == {"a", "g"}
    moves, weights = policy_target(one.tree)
    assert sorted(moves.tolist()) == [0, 6]
    assert weights.sum() == pytest.approx(1)


def test_with_the_solver_a_win_is_seen_and_a_loss_left_alone() -> None:
    """Three in a row for the side to move; then three for the other, which only one move stops."""
    won = searched("abacad", 20, solve=True)
    assert won.tree.solved
    assert won.result().best == "a"
    assert draw_move(won.tree, 1.0, 0.999) == 0
    for seed in range(5):
        held = searched("abaca", 100, solve=True, seed=seed)
        assert held.result().best == "a"


def test_side_by_side_it_finds_what_it_finds_alone() -> None:
    positions = [connect_four.Position.start().play(*moves) for moves in ("", "d", "dd", "abc")]
    together = search_batch(evaluator(), positions, 33, "gumbel", gumbel_noise=0.0)
    for position, result in zip(positions, together, strict=True):
        alone = search(evaluator(), position, 33, "gumbel", gumbel_noise=0.0)
        assert [(info.move, info.visits) for info in result.moves] == [(info.move, info.visits) for info in alone.moves]
