"""What a searched root teaches: visits, visits that were not forced, proven moves; the move that is played."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from keima.games import chess, connect_four, go
from keima.search import Limits, Search
from keima.search.targets import draw_move, policy_target, root_value
from keima.systems.parameters import Choice
from tests.search.fakes import Fake, random_answer
from tests.search.test_gumbel import evaluator
from tests.search.twin import Twin

SCORED = 82  # logits of a 9×9 board


def go_search(visits: int, **numbers: Any) -> Search:
    one = Search(Fake("go", random_answer(SCORED, 2.0), batch_size=1), "alphago-zero", **numbers)
    one.set_position(go.Position.start(9))
    one.run(Limits(visits=visits))
    return one


def root_moves(tree: Any) -> list[tuple[int, float, int, float]]:
    """(code, P, visits, Q for the side to move) of every visited root move."""
    root, found = tree.roots[0], []
    for e in range(int(root["count"])):
        c = int(root["child"][e])
        if c >= 0 and tree.nodes["visits"][c]:
            node = tree.nodes[c]
            found.append(
                (
                    int(root["move"][e]),
                    float(node["prior"]),
                    int(node["visits"]),
                    -float(node["utility"]) / int(node["visits"]),
                )
            )
    return found


def target(tree: Any) -> dict[int, float]:
    moves, weights = policy_target(tree)
    assert moves.dtype == np.int16
    assert weights.dtype == np.float32
    assert weights.sum() == pytest.approx(1, abs=1e-6)
    assert (weights > 0).all()
    assert len(set(moves.tolist())) == len(moves)
    return dict(zip(moves.tolist(), weights.tolist(), strict=True))


def test_visits_are_taught() -> None:
    one = go_search(200)
    found = root_moves(one.tree)
    total = sum(visits for _, _, visits, _ in found)
    assert total == 199
    assert target(one.tree) == pytest.approx({move: visits / total for move, _, visits, _ in found})


def pruned(tree: Any, k: float) -> dict[int, float]:
    """arXiv:1902.10565, §3.2, one playout at a time."""
    p, found = tree.parameters, root_moves(tree)
    total = sum(visits for _, _, visits, _ in found)
    c = p.puct.cpuct + p.puct.cpuct_factor * math.log((total + p.puct.cpuct_base) / p.puct.cpuct_base)

    def value(q: float, prior: float, visits: int) -> float:
        return q + c * math.sqrt(total) * prior / (1 + visits)

    most = max(visits for _, _, visits, _ in found)
    best = next(each for each in found if each[2] == most)
    limit = value(best[3], best[1], best[2])
    left = {}
    for move, prior, visits, q in found:
        kept, spare = visits, int(math.sqrt(k * prior * total))
        while move != best[0] and spare and kept and value(q, prior, kept - 1) < limit:
            kept, spare = kept - 1, spare - 1
        left[move] = 0 if kept <= 1 and kept < visits else kept
    total = sum(left.values())
    return {move: visits / total for move, visits in left.items() if visits}


@pytest.mark.parametrize("k", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("visits", [2, 30, 300, 1000])
def test_forced_visits_are_made_and_not_taught(visits: int, k: float) -> None:
    one = go_search(visits, forced_playouts=k, root_noise=0.25, seed=visits, in_flight_share=0.0)
    total = visits - 1
    for _, prior, made, _ in root_moves(one.tree):
        assert made >= math.sqrt(k * prior * total) - 1
    assert target(one.tree) == pytest.approx(pruned(one.tree, k), abs=1e-6)


def test_pruning_takes_away_what_plain_search_would_not_have_spent() -> None:
    """The pruned policy is sharper than the visits, never a move more, and its best move stays the best."""
    one = go_search(400, forced_playouts=2.0, root_noise=0.25, in_flight_share=0.0)
    found = {move: visits / 399 for move, _, visits, _ in root_moves(one.tree)}
    taught = target(one.tree)
    assert taught.keys() < found.keys()
    best = max(found, key=found.__getitem__)
    assert max(taught, key=taught.__getitem__) == best
    assert taught[best] > found[best]


class ForcedTwin(Twin):
    """The plain second search, with forced playouts."""

    def descend(self, node: Any) -> Any:
        total = sum(child.visits for child in node.children.values())
        if node is self.root:
            for move in sorted(node.children, key=lambda move: -node.edges[move]):
                child = node.children[move]
                if child.visits < math.sqrt(self.p.forced_playouts * child.prior * total):
                    return child
        return super().descend(node)


def test_forced_playouts_are_those_of_the_twin() -> None:
    answer = random_answer(SCORED, 2.0)
    numbers = {"forced_playouts": 2.0, "in_flight_share": 0.0, "edge_cap": 400}
    one = go_search(150, **numbers)
    root = ForcedTwin(go.Position.start(9), answer, one.parameters).run(150)
    found = {one.tree.name(move, one.tree.side): visits for move, _, visits, _ in root_moves(one.tree)}
    assert found == {move: child.visits for move, child in root.children.items() if child.visits}
    plain = {one.move: one.visits for one in go_search(150, **{**numbers, "forced_playouts": 0.0}).result().moves}
    assert found != plain


def test_a_proven_root_teaches_what_keeps_its_result() -> None:
    """Of a win the moves that win; of a loss all that were visited."""
    for preset in ("gumbel", "lc0"):
        won = Search(evaluator(), preset, solve=True)
        won.set_position(connect_four.Position.start().play(*"abacad"))
        won.run(Limits(visits=1000))
        assert won.tree.solved
        assert target(won.tree) == {0: 1.0}
        assert draw_move(won.tree, 0.0, 0.0) == draw_move(won.tree, 1.0, 0.99) == 0
    lost = Search(evaluator(), "lc0", solve=True)
    lost.set_position(connect_four.Position.start().play(*"cadae"))  # b and f both make four
    lost.run(Limits(visits=400))
    assert lost.tree.solved
    assert lost.tree.nodes["lower"][0] == -1
    assert len(target(lost.tree)) == 7
    mate = Search(Fake("chess", random_answer(1858)), "lc0")
    mate.set_position(chess.Position.from_fen("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1"))
    mate.run(Limits(visits=100))
    assert [mate.tree.name(move, mate.tree.side) for move in target(mate.tree)] == ["a1a8"]


@pytest.mark.parametrize("visits", [2, 9, 30, 200])
@pytest.mark.parametrize("seed", range(5))
def test_with_gumbel_the_value_taught_is_that_of_the_policy_taught(visits: int, seed: int) -> None:
    one = Search(Fake("go", random_answer(SCORED, 2.0), batch_size=1), "gumbel", seed=seed, gumbel_considered=12)
    one.set_position(go.Position.start(9))
    one.run(Limits(visits=visits))
    taught, root, found = target(one.tree), one.tree.nodes[0], root_moves(one.tree)
    (_, prior, count, q) = (np.array(column) for column in zip(*found, strict=True))
    by_policy = (prior * q).sum() / prior.sum()
    mixed = (float(root["raw_value"]) + count.sum() * by_policy) / (1 + count.sum())
    known = {move: value for move, _, _, value in found}
    value = sum(weight * known.get(move, mixed) for move, weight in taught.items())
    assert root_value(one.tree) == pytest.approx(value, abs=1e-5)
    before = (prior * q).sum() + (1 - prior.sum()) * mixed
    assert root_value(one.tree) >= before - 1e-5  # the policy is improved


def test_without_gumbel_the_value_taught_is_the_mean_of_the_visits_and_a_proven_one_its_result() -> None:
    one = go_search(50)
    assert root_value(one.tree) == pytest.approx(one.result().value, abs=1e-6)
    for preset in ("gumbel", "lc0"):
        won = Search(evaluator(), preset, solve=True)
        won.set_position(connect_four.Position.start().play(*"abacad"))
        won.run(Limits(visits=1000))
        assert root_value(won.tree) == 1.0


def test_a_root_without_visits_below_it_teaches_its_policy() -> None:
    one = go_search(1)
    policy = one.result().policy
    taught = {one.tree.name(move, one.tree.side): weight for move, weight in target(one.tree).items()}
    assert taught == pytest.approx(policy, abs=1e-6)
    assert one.tree.name(draw_move(one.tree, 0.0, 0.0), one.tree.side) == max(policy, key=policy.__getitem__)


@pytest.mark.parametrize("preset", ["alphago-zero", "katago", "lc0", "gumbel"])
def test_without_temperature_the_presets_choice_is_played(preset: str) -> None:
    for seed in range(8):
        one = Search(Fake("go", random_answer(SCORED, 2.0)), preset, seed=seed)
        one.set_position(go.Position.start(9))
        best = one.run(Limits(visits=20 + 10 * seed)).best
        assert one.tree.name(draw_move(one.tree, 0.0, 0.7), one.tree.side) == best


@pytest.mark.parametrize("choice", list(Choice)[:3])
def test_a_proof_weighs_more_than_visits(choice: Choice) -> None:
    """Whatever the rule, a move that wins by force is played, and one that loses is not while there is another."""
    rng, won_by_few = np.random.default_rng(4), 0
    for seed in range(60):
        position = connect_four.Position.start()
        while len(position.moves) < 16 and not position.is_over:
            position = position.play(str(rng.choice(position.legal())))
        if position.is_over:
            continue
        one = Search(evaluator(), "alphago-zero", solve=True, choice=int(choice), seed=seed)
        one.set_position(position)
        result = one.run(Limits(visits=8 + seed % 30))
        mates = {info.move: info.mate or 0 for info in result.moves}
        wins = {move for move, mate in mates.items() if mate > 0}
        if wins:
            assert result.best in wins
            won_by_few += max(result.moves, key=lambda info: info.visits).move not in wins
        elif any(mate >= 0 for mate in mates.values()):
            assert mates[result.best] >= 0
        assert one.tree.solved or one.tree.name(draw_move(one.tree, 0.0, 0.5), one.tree.side) == result.best
    assert won_by_few


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.3])
def test_moves_are_drawn_with_odds_of_their_visits(temperature: float) -> None:
    """Chances spread evenly from 0 to 1 give every move its share."""
    tree = go_search(200).tree
    odds = {move: visits ** (1 / temperature) for move, _, visits, _ in root_moves(tree)}
    total, draws = sum(odds.values()), 5000
    drawn = Counter(draw_move(tree, temperature, (k + 0.5) / draws) for k in range(draws))
    for move, each in odds.items():
        assert drawn[move] / draws == pytest.approx(each / total, abs=1.5 / draws)
    assert draw_move(tree, temperature, 0.0) in odds
    assert draw_move(tree, temperature, np.nextafter(1, 0)) in odds


def test_only_moves_to_consider_are_taught_and_drawn() -> None:
    one = Search(Fake("go", random_answer(SCORED)), "alphago-zero")
    one.set_position(go.Position.start(9))
    one.run(Limits(visits=60))
    one.run(Limits(visits=120), allow_moves=["A1", "C3", "pass"])
    names = {one.tree.name(move, one.tree.side) for move in target(one.tree)}
    assert names <= {"A1", "C3", "pass"}
    assert one.tree.name(draw_move(one.tree, 2.0, 0.99), one.tree.side) in names
