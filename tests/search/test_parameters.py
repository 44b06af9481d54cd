"""The numbers of searches: groups, presets, overrides by name; a draw's worth; options of encodings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import keima
from keima.errors import BadRequest
from keima.games import chess, go
from keima.search import PRESETS, Limits, Parameters, Search
from keima.systems.parameters import RECORD, Choice
from keima.systems.presets import find_preset, parameter_names
from keima.systems.system import SYSTEMS
from tests.search.fakes import Answer, Fake


def test_names_are_unique_over_the_groups() -> None:
    names = parameter_names()
    assert len(names) == len(set(names)) == 52
    assert set(names) - set(RECORD.names or ()) == {"policy_optimism", "root_policy_optimism"}


def test_presets_stand_with_their_systems() -> None:
    assert list(PRESETS) == ["alphago", "alphago-zero", "katago", "lc0", "gumbel"]
    assert SYSTEMS["leela-zero"].preset is SYSTEMS["comparison"].preset is PRESETS["alphago-zero"]
    assert SYSTEMS["katago-guide"].preset is PRESETS["katago"]
    assert find_preset("auto", "leela-zero", {}) == PRESETS["alphago-zero"]
    assert find_preset("auto", "alphago-rollout", {}) == PRESETS["alphago"]  # where it stands in for the policy network


def test_a_system_without_a_preset_says_so() -> None:
    with pytest.raises(BadRequest, match="no search preset; choose one of alphago, alphago-zero, katago, lc0, gumbel"):
        find_preset("auto", "mine", {})
    assert find_preset("katago", "mine", {}) == PRESETS["katago"]


def test_numbers_keep_their_kinds() -> None:
    """Texts of command lines come as floats."""
    changed = Parameters().changed(solve=0.0, edge_cap=30.0, choice=1.0, cpuct=2)
    assert changed.solver.solve is False
    assert (changed.priors.edge_cap, type(changed.priors.edge_cap)) == (30, int)
    assert changed.final_choice.choice is Choice.LCB
    assert changed["cpuct"] == 2
    assert float(changed.record()["choice"][0]) == 1.0
    optimistic = PRESETS["katago"].changed(policy_optimism=0.5, root_policy_optimism=0.1)
    assert optimistic.leaf_options == {"policy_optimism": 0.5}
    assert optimistic.root_options == {"policy_optimism": 0.1}


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("solve", 0.5),
        ("edge_cap", 1.5),
        ("edge_cap", 0),
        ("choice", 4),
        ("cpuct", math.nan),
        ("cpuct", "1"),
        ("cpuct", True),
        ("root_noise", 1.1),
        ("policy_temperature", 0),
        ("expansion_visits", 0),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(name: str, number: Any) -> None:
    with pytest.raises(BadRequest, match=name):
        Parameters().changed(**{name: number})


@pytest.mark.parametrize(("side", "worth"), [("w", 0.5), ("b", -0.5)])
def test_a_draw_has_its_worth_for_white(side: str, worth: float) -> None:
    """Lc0's DrawScore 0.5 where all is drawn: 0.5 for White, −0.5 for Black, at the root and at every move."""

    def answer(view: Any) -> Answer:
        return Answer(np.zeros(1858, np.float32), value=0.0, draw=1.0)

    for solve in (0.0, 1.0):
        search = Search(Fake("chess", answer), draw_score=0.5, solve=solve)
        search.set_position(chess.Position.from_fen(f"7r/8/3k4/8/8/3K4/8/R7 {side} - - 0 1"))
        result = search.run(Limits(visits=300))
        assert result.utility == pytest.approx(worth)
        assert {round(info.utility, 6) for info in result.moves} == {worth}
        assert result.draw == pytest.approx(1.0)


def test_options_go_to_the_encoding_that_takes_them(reference: Any) -> None:
    """KataGo's optimism inside the tree and at the root; a search asked for others finds other priors."""
    network = keima.load(reference / "nets" / "katago-random-nbt-v12.bin.gz")
    evaluator = keima.Evaluator(network, "torch")
    position = go.Position.start(9)
    policies = []
    for optimism in (0.0, 1.0):
        search = Search(evaluator, root_policy_optimism=optimism)
        search.set_position(position)
        found = search.run(Limits(visits=1)).policy
        wanted = evaluator.bind(policy_optimism=optimism)([position], symmetry="average")[0].policy
        assert found.keys() == wanted.keys()
        policies.append(found)
    assert policies[0] != policies[1]


def test_a_human_network_is_searched_once_its_profile_is_bound(reference: Any) -> None:
    evaluator = keima.Evaluator(keima.load(reference / "nets" / "katago-random-meta.bin.gz"), "torch")
    position = go.Position.start(9)
    with pytest.raises(BadRequest, match="profile"):
        keima.search(evaluator, position, visits=4)
    strong, weak = (keima.search(evaluator.bind(profile=rank), position, visits=20) for rank in ("rank_9d", "rank_20k"))
    assert strong.visits == weak.visits == 20
    assert strong.policy != weak.policy


def test_another_binding_forgets_what_the_first_found(reference: Any) -> None:
    evaluator = keima.Evaluator(keima.load(reference / "nets" / "katago-random-meta.bin.gz"), "torch")
    search = Search(evaluator.bind(profile="rank_9d"))
    search.set_position(go.Position.start(9))
    first = search.run(Limits(visits=10))
    search.set_evaluator(evaluator.bind(profile="rank_20k"))
    assert search.tree.is_fresh
    assert search.run(Limits(visits=10)).policy != first.policy
