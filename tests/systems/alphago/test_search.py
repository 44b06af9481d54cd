"""AlphaGo's search: playouts, late expansion, and the mixing of playouts with a value network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import keima
from keima.errors import BadRequest, UnsupportedNetwork
from keima.games import chess, go
from keima.search import PRESETS, Limits, Search
from keima.search.tree import OPEN
from keima.systems.alphago.network import AlphaGoPolicyNetwork, AlphaGoValueNetwork
from keima.systems.alphago.rollout_network import RolloutSoftmax
from tests.search.fakes import Answer, Fake

WON = """
    X X X X X
    X . X . X
    X X X X X
    . O O . O
    . O . O .
"""


def position_of(text: str, **options: Any) -> go.Position:
    """A position from a drawing, X Black and O White."""
    rows = [line.split() for line in text.strip().splitlines()]
    stones: dict[str, list[str]] = {"X": [], "O": [], ".": []}
    for y, row in enumerate(rows):
        for x, symbol in enumerate(row):
            stones[symbol].append(f"{'ABCDEFGHJ'[x]}{len(rows) - y}")
    return go.Position.start(len(rows), black=stones["X"], white=stones["O"], **options)


def policy_only() -> Fake:
    """A network that knows only that every move is alike."""

    def answer(view: Any) -> Answer:
        return Answer(np.zeros(26, np.float32))

    fake = Fake("go", answer, system="alphago")
    fake.network.output_names = ("policy",)
    return fake


def test_playouts_alone_know_who_wins() -> None:
    for side, sign in (("B", 1), ("W", -1)):
        search = Search(policy_only(), seed=1)
        search.set_position(position_of(WON, komi=0.5, to_play=side))
        result = search.run(Limits(visits=300))
        assert sign * result.value > 0.5
        assert search.parameters.playouts.rollout_weight == 1.0


def test_a_leaf_is_expanded_at_forty_visits() -> None:
    """n_thr = 40: until then a leaf is played out, and the network is not asked."""
    fake = policy_only()
    search = Search(fake)
    search.set_position(go.Position.start(5))
    search.run(Limits(visits=2000))
    nodes = search.tree.nodes[1 : int(search.tree.heads["nodes"][0])]
    opened = nodes["state"] == OPEN
    assert opened.any()
    assert (nodes["own"][opened] == 40).all()
    assert fake.asked == 1 + np.count_nonzero(opened)
    assert not nodes["pending"].any()


def test_seeded_playouts_repeat() -> None:
    def run(seed: int) -> list[tuple[str, int]]:
        search = Search(policy_only(), seed=seed)
        search.set_position(go.Position.start(5))
        return [(info.move, info.visits) for info in search.run(Limits(visits=300)).moves]

    assert run(1) == run(1)
    assert run(1) != run(2)


@pytest.mark.parametrize("weight", [0.25, 1.0])
def test_value_and_playout_are_mixed(weight: float) -> None:
    """Every leaf is worth (1 − λ) v + λ z, with v = 0.4 and z = ±1 for the side to move."""

    def answer(view: Any) -> Answer:
        return Answer(np.zeros(26, np.float32), value=0.4)

    search = Search(Fake("go", answer, system="alphago"), rollout_weight=weight)
    search.set_position(go.Position.start(5, komi=0.5))
    search.run(Limits(visits=100))
    nodes = search.tree.nodes[: int(search.tree.heads["nodes"][0])]
    found = {round(float(v), 5) for v in nodes["raw_value"][nodes["state"] == OPEN]}
    assert found <= {round((1 - weight) * 0.4 + weight * z, 5) for z in (-1, 1)}


def small_policy() -> AlphaGoPolicyNetwork:
    return AlphaGoPolicyNetwork(filters=4, layers=2, board_size=9)


def small_value(board_size: int = 9) -> AlphaGoValueNetwork:
    return AlphaGoValueNetwork(filters=4, layers=2, hidden=4, board_size=board_size)


def linear_policy() -> RolloutSoftmax:
    """The rollout policy as a network, whose neighbours of the last move weigh more."""
    linear = RolloutSoftmax(8, 8)
    linear.load_state_dict({**linear.state_dict(), "neighbour": torch.tensor([2.0, 1.0])})
    return linear


@pytest.mark.parametrize("backend", ["torch", "openvino"])
@pytest.mark.parametrize("make", [small_policy, linear_policy])
def test_a_policy_and_a_value_network_are_one(make: Any, backend: str) -> None:
    """Each position has the policy that the one gives alone, and the value that the other gives alone."""
    policy, value = make(), small_value()
    both = keima.Evaluator(policy.with_value(value), backend)
    positions = [go.Position.start(9).play("E5"), go.Position.start(9).play("E5", "D5", "D4")]
    moves, values = keima.Evaluator(policy, "torch")(positions), keima.Evaluator(value, "torch")(positions)
    for found, by_policy, by_value in zip(both(positions), moves, values, strict=True):
        assert found.policy == pytest.approx(by_policy.policy, abs=1e-5)
        assert found.value == pytest.approx(by_value.value, abs=1e-5)
        assert found.value != 0
    search = Search(both, rollout_weight=0.5)
    search.set_position(positions[1])
    assert search.run(Limits(visits=40)).visits == 40


def test_networks_that_do_not_pair_are_refused() -> None:
    for policy, value, words in (
        (small_policy(), small_policy(), "no value network"),
        (small_policy(), small_value(5), "9 points a side, its value network for 5"),
        (small_value(), small_value(), "takes no value network"),
    ):
        with pytest.raises(UnsupportedNetwork, match=words):
            policy.with_value(value)


def with_value(**options: Any) -> Search:
    def answer(view: Any) -> Answer:
        return Answer(np.zeros(26, np.float32), value=0.4)

    search = Search(Fake("go", answer, system="alphago"), **options)
    search.set_position(go.Position.start(5, komi=0.5))
    return search


def test_expansion_visits_that_were_asked_for_hold() -> None:
    """A preset's follow the network; asked for by name, leaves wait so long, playouts telling their worth."""
    search = with_value(expansion_visits=5)
    search.run(Limits(visits=400))
    nodes = search.tree.nodes[1 : int(search.tree.heads["nodes"][0])]
    opened = nodes["state"] == OPEN
    assert opened.any()
    assert (nodes["own"][opened] == 5).all()
    assert with_value().parameters.playouts.expansion_visits == 1
    assert with_value(preset=PRESETS["alphago"].changed(expansion_visits=7)).parameters["expansion_visits"] == 7


def test_numbers_of_playouts_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadRequest, match="rollout_weight can only be 1"):
        Search(policy_only(), rollout_weight=0.5)
    with pytest.raises(BadRequest, match="rollout_weight can only be 1"):
        Search(policy_only(), PRESETS["alphago"].changed(rollout_weight=0.25))
    assert Search(policy_only(), rollout_weight=1.0).parameters.playouts.rollout_weight == 1.0
    with pytest.raises(BadRequest, match="set rollout_weight too"):
        with_value(preset="katago", expansion_visits=40)


def test_a_network_without_a_value_needs_playouts() -> None:
    """Its search would have Q = 0 everywhere."""
    for options in ({"preset": "katago"}, {"rollout_weight": 0.0}):
        with pytest.raises(UnsupportedNetwork, match="without a value"):
            Search(policy_only(), **options)
    value_only = Fake("go", lambda view: Answer(np.zeros(26, np.float32)), system="alphago")
    value_only.network.output_names = ("value",)
    with pytest.raises(UnsupportedNetwork, match="without a policy"):
        Search(value_only)


def test_games_without_playouts_say_so() -> None:
    search = Search(Fake("chess", lambda view: Answer(np.zeros(1858, np.float32))), "alphago")
    with pytest.raises(BadRequest, match="no system plays out"):
        search.set_position(chess.Position.start())
