"""The evaluator gives the answers one can work out by hand, the same ones however it is asked."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import BadRequest, UnsupportedPosition
from keima.inference.evaluation import Evaluation
from keima.inference.evaluator import Evaluator
from keima.systems.network import Network, Pedigree
from tests.inference.fakes import Grid, GridEncoding, GridNetwork, grid, random_grid, turn

BACKENDS = ("torch", "openvino")


@pytest.fixture(params=BACKENDS)
def evaluator(request: pytest.FixtureRequest) -> Evaluator:
    return Evaluator(GridNetwork(), backend=request.param, threads=1)


def same(a: Evaluation, b: Evaluation) -> bool:
    """Equal to the last bit."""
    left, right = a.to_json(), b.to_json()
    left.pop("ownership"), right.pop("ownership")
    assert a.ownership is not None
    assert b.ownership is not None
    return left == right and a.ownership.tobytes() == b.ownership.tobytes()


def by_hand(position: Grid) -> dict[str, Any]:
    numbers = position.array.astype(np.float64)
    legal = {f"{y},{x}": number for (y, x), number in np.ndenumerate(numbers) if number}
    legal["pass"] = numbers.mean()
    total = sum(np.exp(logit) for logit in legal.values())
    return {
        "policy": {move: np.exp(logit) / total for move, logit in legal.items()},
        "logits": legal,
        "value": np.tanh(numbers.mean()),
        "ownership": np.tanh(numbers),
    }


@pytest.mark.parametrize("symmetry", [*range(8), "average"])
def test_answers_are_those_worked_out_by_hand(evaluator: Evaluator, symmetry: int | str) -> None:
    position = grid((1, 0, -2), (0.5, 3, 0))
    answer = evaluator([position], symmetry=symmetry)[0]
    truth = by_hand(position)
    assert answer.policy == pytest.approx(truth["policy"], abs=1e-6)
    assert sum(answer.policy.values()) == pytest.approx(1, abs=1e-12)
    assert answer.value == pytest.approx(truth["value"], abs=1e-6)
    assert answer.win == pytest.approx((1 + truth["value"]) / 2, abs=1e-6)
    assert answer.draw == 0
    assert answer.loss == pytest.approx((1 - truth["value"]) / 2, abs=1e-6)
    assert answer.lead == 0
    assert answer.moves_left is None
    assert answer.best == "1,1"
    np.testing.assert_allclose(answer.ownership, truth["ownership"], atol=1e-6)
    if symmetry != "average":
        assert answer.logits == pytest.approx(truth["logits"], abs=1e-6)
    else:
        assert answer.logits == pytest.approx({move: np.log(p) for move, p in truth["policy"].items()}, abs=1e-6)


@pytest.mark.parametrize("symmetry", [3, "average"])
def test_a_temperature_sharpens_or_flattens_the_policy_alone(evaluator: Evaluator, symmetry: int | str) -> None:
    position = grid((1, 0, -2), (0.5, 3, 0))
    plain = evaluator([position], symmetry=symmetry)[0]
    for temperature in (0.25, 1.0, 4.0, 1e-4):
        answer = evaluator([position], symmetry=symmetry, temperature=temperature)[0]
        powers = {move: np.float64(p) ** (1 / temperature) for move, p in plain.policy.items()}
        total = sum(powers.values()) or 1.0
        if temperature == 1e-4:
            powers, total = {move: float(move == "1,1") for move in powers}, 1.0
        assert answer.policy == pytest.approx({move: power / total for move, power in powers.items()}, abs=1e-6)
        assert sum(answer.policy.values()) == pytest.approx(1, abs=1e-12)
        assert (answer.logits, answer.value, answer.best) == (plain.logits, plain.value, plain.best)


@pytest.mark.parametrize("temperature", [0, -1, float("nan"), float("inf")])
def test_a_temperature_is_above_zero(temperature: float) -> None:
    with pytest.raises(BadRequest, match="above 0"):
        Evaluation({}, {}).at_temperature(temperature)


class OneSided(GridNetwork):
    """Looks at the upper left corner of its planes, so that each symmetry gives its own answer."""

    def forward(self, planes: Any, globals: Any) -> Any:
        output = super().forward(planes, globals)
        return type(output)(
            output.policy * planes[:, 0, :1, 0], planes[:, 0, 0, 0].tanh(), output.lead, output.ownership
        )


def test_average_is_the_mean_of_probabilities_values_and_ownership() -> None:
    position = grid((1, 2, -2), (0.5, 3, 0))
    evaluator = Evaluator(OneSided(), backend="torch", threads=1)
    each = [evaluator([position], symmetry=symmetry)[0] for symmetry in range(8)]
    assert len({answer.value for answer in each}) == 4  # the four corners
    mean = evaluator([position], symmetry="average")[0]
    for move in each[0].policy:
        assert mean.policy[move] == pytest.approx(np.mean([answer.policy[move] for answer in each]), abs=1e-12)
    values = np.array([answer.value for answer in each])
    assert mean.value == pytest.approx(values.mean(), abs=1e-12)
    # E[score²] averages; the variance of the mean of eight answers is E[score²] − E[score]²
    assert mean.extra["score_mean"] == pytest.approx(10 * values.mean(), abs=1e-6)
    assert mean.extra["score_stdev"] == pytest.approx(np.sqrt(9 + 100 * values.var()), abs=1e-6)


def test_each_position_may_have_its_own_symmetry_and_options(evaluator: Evaluator) -> None:
    positions = [random_grid(2, 3, seed) for seed in range(4)]
    together = evaluator(positions, symmetry=[0, "average", 7, 5], shift=[0.0, 0.25, 0.5, 1.0])
    assert [answer.lead for answer in together] == [0.0, 0.25, 0.5, 1.0]
    for position, answer in zip(positions, together, strict=True):
        assert answer.value == pytest.approx(by_hand(position)["value"], abs=1e-6)


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=12),
    batch_size=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_answers_come_in_the_order_of_the_positions(sizes: list[tuple[int, int]], batch_size: int, seed: int) -> None:
    positions = [random_grid(height, width, seed + i) for i, (height, width) in enumerate(sizes)]
    answers = Evaluator(GridNetwork(), backend="torch", batch_size=batch_size, threads=1)(positions, symmetry=4)
    for position, answer in zip(positions, answers, strict=True):
        assert answer.policy == pytest.approx(by_hand(position)["policy"], abs=1e-5)
        np.testing.assert_allclose(answer.ownership, by_hand(position)["ownership"], atol=1e-5)


def test_an_answer_does_not_depend_on_what_else_is_asked(evaluator: Evaluator) -> None:
    positions = [random_grid(3, 3, seed) for seed in range(11)] + [random_grid(2, 4, seed) for seed in range(7)]
    alone = [evaluator([position])[0] for position in positions]
    together = evaluator(positions)
    backwards = evaluator(positions[::-1])[::-1]
    for a, b, c in zip(alone, together, backwards, strict=True):
        assert same(a, b)
        assert same(a, c)


def test_threads_may_ask_at_once(evaluator: Evaluator) -> None:
    positions = [random_grid(3, 3, seed) for seed in range(40)]
    alone = evaluator(positions)
    results: dict[int, list[Evaluation]] = {}

    def ask(worker: int) -> None:
        results[worker] = [evaluator([position])[0] for position in positions]

    workers = [threading.Thread(target=ask, args=(worker,)) for worker in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for worker in range(4):
        assert all(same(a, b) for a, b in zip(alone, results[worker], strict=True))


def test_many_batches_may_be_under_way(evaluator: Evaluator) -> None:
    groups = [[random_grid(3, 3, 10 * group + i) for i in range(group + 1)] for group in range(9)]
    encoding = GridEncoding()
    handles = [evaluator.submit(encoding.encode(group)) for group in groups]
    for group, handle in reversed(list(zip(groups, handles, strict=True))):
        heads = handle.result()
        assert heads.policy.shape == (len(group), 10)
        truth = [by_hand(position)["value"] for position in group]
        np.testing.assert_allclose(heads.value, truth, atol=1e-6)
        np.testing.assert_array_equal(handle.result().value, heads.value)


def test_infer_leaves_heads_in_the_planes_orientation(evaluator: Evaluator) -> None:
    position = random_grid(2, 3, 0)
    batch = GridEncoding().encode([position], symmetries=6)
    heads = evaluator.infer(batch)
    np.testing.assert_allclose(heads.ownership[0], np.tanh(turn(position.array, 6)), atol=1e-6)


def test_inputs_that_are_not_the_networks_are_refused(evaluator: Evaluator) -> None:
    batch = GridEncoding().encode([random_grid(2, 3, 0)])
    masked = {**batch.inputs, "mask": np.ones((1, 2, 3), np.bool_)}
    for inputs, words in ((masked, "planes, globals, mask"), ({}, "nothing")):
        with pytest.raises(BadRequest, match=f"the network takes planes, globals; the batch has {words}"):
            evaluator.submit(replace(batch, inputs=inputs))


def test_inputs_may_be_overwritten_after_submit(evaluator: Evaluator) -> None:
    batch = GridEncoding().encode([random_grid(3, 3, seed) for seed in range(3)])
    before = evaluator.infer(batch)
    handle = evaluator.submit(batch)
    batch.inputs["planes"][:] = 0
    np.testing.assert_array_equal(handle.result().policy, before.policy)


def test_training_on_does_not_change_an_evaluator(evaluator: Evaluator) -> None:
    network = GridNetwork()
    evaluator = Evaluator(network, backend=evaluator.backend, threads=1)
    network.tower[1].weight.data[0, 0] = 100.0
    position = random_grid(3, 3, 1)
    assert evaluator([position])[0].value == pytest.approx(by_hand(position)["value"], abs=1e-6)


def test_nothing_asked_nothing_answered(evaluator: Evaluator) -> None:
    assert evaluator([]) == []


def test_backends_by_name() -> None:
    assert Evaluator(GridNetwork(), backend="torch").backend == "torch"
    automatic = Evaluator(GridNetwork())
    assert automatic.backend == ("torch" if automatic.device == "cuda" else "openvino")
    assert automatic.precision == "f32"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"backend": "tensorflow"}, "choose one of auto, torch, openvino"),
        ({"precision": "int4"}, "choose one of auto, f32, bf16, f16, int8"),
        ({"precision": "int8"}, "keima compress quantize makes them"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"threads": 0}, "threads must be at least 1"),
    ],
)
def test_unknown_options_are_refused_by_name(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        Evaluator(GridNetwork(), **arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"symmetry": 8}, "choose 0 to 7, or 'average'"),
        ({"symmetry": True}, "unknown symmetry True"),
        ({"symmetry": "all"}, "unknown symmetry 'all'"),
        ({"symmetry": [0, 1]}, "1 positions need 1 values"),
        ({"profile": "rank_5k"}, "no option 'profile'; it takes shift"),
        ({"shift": [0.5, 0.5]}, "shift: 1 positions need 1 values"),
    ],
)
def test_unknown_requests_are_refused_by_name(arguments: dict[str, Any], says: str) -> None:
    evaluator = Evaluator(GridNetwork(), backend="torch")
    with pytest.raises(BadRequest, match=says):
        evaluator([random_grid(2, 2, 0)], **arguments)


def test_options_that_ask_for_nothing_are_taken_by_every_network(evaluator: Evaluator) -> None:
    position = random_grid(2, 2, 0)
    assert evaluator([position], profile=None, policy_optimism=[0.0])[0].to_json() == evaluator([position])[0].to_json()


def test_bound_options_stay_with_the_evaluator_and_cost_no_second_network(evaluator: Evaluator) -> None:
    position = random_grid(2, 2, 0)
    bound = evaluator.bind(shift=0.5)
    assert bound.network is evaluator.network
    assert bound._backend is evaluator._backend
    assert [each([position])[0].lead for each in (bound, evaluator, bound.bind(shift=0.25))] == [0.5, 0.0, 0.25]
    assert bound([position, position], shift=[None, 1.0])[1].lead == 1.0  # a call's options go before bound ones
    assert bound([position], shift=[None])[0].lead == 0.5
    assert bound.infer(bound.encoding.encode([position])).lead[0] == 0.5
    with pytest.raises(BadRequest, match="no option 'profile'"):
        evaluator.bind(profile="rank_5k")


def test_a_position_of_another_game_is_named() -> None:
    evaluator = Evaluator(GridNetwork(), backend="torch")
    with pytest.raises(UnsupportedPosition, match="position 1: takes grids, not str"):
        evaluator([random_grid(2, 2, 0), "e4"])


def test_a_position_without_legal_moves_has_an_empty_policy() -> None:
    class NoMoves(GridEncoding):
        def legal_moves(self, position: Grid, symmetry: int = 0) -> Any:
            return type(super().legal_moves(position))(np.empty(0, np.int64), [])

    network: Network = GridNetwork()
    network.encoding = NoMoves()
    network.pedigree = Pedigree("no moves")
    answer = Evaluator(network, backend="torch")([grid((1, 2))])[0]
    assert answer.policy == {}
    assert answer.value == pytest.approx(np.tanh(1.5), abs=1e-6)
