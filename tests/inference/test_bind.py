"""Options bound to an evaluator go with it wherever it is asked: evaluation, average, search, activations."""

from __future__ import annotations

import numpy as np
import pytest

import keima
from keima.errors import BadRequest
from keima.games.go.position import Position
from keima.inference.activations import activations
from tests.systems.katago.katago_tiny import tiny

POSITION = Position.start(5).play("C3")


@pytest.fixture(scope="module")
def human() -> keima.Evaluator:
    return keima.Evaluator(tiny("v15-metadata"), backend="torch", threads=1)


def test_a_human_network_asks_for_a_profile(human: keima.Evaluator) -> None:
    for ask in (
        lambda: human([POSITION]),
        lambda: keima.search(human, POSITION, visits=2),
        lambda: activations(human.network, POSITION, "conv"),
    ):
        with pytest.raises(BadRequest, match=r"needs a profile.*bind\(profile=\"rank_5k\"\).*proyear_1995"):
            ask()


def test_a_bound_profile_is_asked_everywhere(human: keima.Evaluator) -> None:
    weak, strong = human.bind(profile="rank_20k"), human.bind(profile="rank_9d")
    answers = [evaluator([POSITION])[0] for evaluator in (weak, strong)]
    assert answers[0].policy != answers[1].policy
    both = human([POSITION, POSITION], profile=["rank_20k", "rank_9d"])
    assert [one.to_json() for one in both] == [one.to_json() for one in answers]
    assert weak([POSITION], profile="rank_9d")[0].to_json() == answers[1].to_json()
    for evaluator, answer in zip((weak, strong), answers, strict=True):
        result = keima.search(evaluator, POSITION, visits=1)
        assert result.value == pytest.approx(answer.value, abs=0.2)  # one symmetry or another
    shown = [activations(human.network, POSITION, "tip", profile=profile) for profile in ("rank_20k", "rank_9d")]
    assert not np.array_equal(*shown)


@pytest.mark.parametrize("value", [["rank_5k"], {"rank": 5}, [[]]])
def test_values_of_any_kind_are_refused_with_words(human: keima.Evaluator, value: object) -> None:
    for name in ("profile", "policy_optimism"):
        with pytest.raises(BadRequest, match=r"rank_5k|is a number from 0 to 1"):
            human([POSITION, POSITION], **{"profile": "rank_9d", name: [value, value]})


def test_policy_optimism_is_mixed_in_where_a_network_has_it() -> None:
    evaluator = keima.Evaluator(tiny("v14-nested"), backend="torch", threads=1)
    plain, half, whole = (
        evaluator.bind(policy_optimism=share)([POSITION])[0].logits["C4"] for share in (None, 0.5, 1.0)
    )
    assert plain == evaluator([POSITION])[0].logits["C4"] != whole
    assert half == pytest.approx((plain + whole) / 2, abs=1e-5)
    with pytest.raises(BadRequest, match="no human profiles"):
        evaluator.bind(profile="rank_5k")


def test_other_systems_say_that_they_take_none() -> None:
    network = keima.create("alphago-zero", blocks=1, channels=4, board_size=5, value_hidden=4).eval()
    with pytest.raises(BadRequest, match="no option 'policy_optimism'; it takes none"):
        keima.Evaluator(network, backend="torch")([POSITION], policy_optimism=0.2)
