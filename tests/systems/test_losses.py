"""Losses: each against the formula written out in NumPy, missing targets, weights, and a network that learns."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import keima
from keima.errors import BadRequest
from keima.systems.katago.loss import VALUE as KATAGO_VALUE
from keima.systems.lc0.network import Lc0Config, Lc0Network
from keima.systems.loss import loss_for
from keima.systems.network import softmax
from keima.systems.targets import TARGETS, TrainingBatch
from keima.training.data.batches import Loader
from tests.systems.katago.katago_tiny import tiny
from tests.training.flat_games import flat_of, flat_of_chess, random_chess, random_game

N, SIZE = 6, 5
A = SIZE * SIZE + 1
NAN = float("nan")


@pytest.fixture(autouse=True)
def one_thread():
    """Networks this small wait for threads more than they compute."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def tensors(**arrays):
    return SimpleNamespace(**{k: torch.tensor(v, dtype=torch.float32, requires_grad=True) for k, v in arrays.items()})


def a_batch(seed=0, actions=A, **changes):
    """Random targets, some of each missing."""
    chance = np.random.default_rng(seed)
    fields = {
        "inputs": {"planes": np.zeros((N, 1, SIZE, SIZE), np.float32)},
        "policy": np.where(chance.random(N) < 0.3, -1, chance.integers(0, actions, N)),
        "value": chance.choice([-1, 0, 1, NAN], N).astype(np.float32),
        "score": np.where(chance.random(N) < 0.3, NAN, chance.normal(0, 15, N)).astype(np.float32),
        "ownership": chance.choice([-1, 0, 1, NAN], (N, SIZE, SIZE)).astype(np.float32),
        "moves_left": np.where(chance.random(N) < 0.3, NAN, chance.integers(1, 200, N)).astype(np.float32),
        **changes,
    }
    return TrainingBatch(**fields)


def policy_loss():
    return loss_for(keima.create("alphago-policy", filters=2, layers=1))


def nothing_known(actions=A):
    nans = np.full(N, NAN, np.float32)
    return a_batch(
        actions=actions,
        policy=np.full(N, -1),
        value=nans,
        score=nans,
        ownership=np.full((N, SIZE, SIZE), NAN, np.float32),
        moves_left=nans,
    )


# --- The formulas, position by position -------------------------------------------------------------------------------


def mean(losses):
    """The mean over the positions that have a target (the others are None)."""
    known = [loss for loss in losses if loss is not None]
    return float(np.mean(known)) if known else 0.0


def entropy_of(logits, index):
    if not 0 <= index < len(logits):
        return None
    return -np.log(softmax(logits.astype(np.float64))[index])


def known_or_none(target, formula):
    return None if np.isnan(target) else formula(float(target))


def huber(difference, delta):
    size = abs(difference)
    return size**2 / 2 if size <= delta else delta * (size - delta / 2)


def softplus(x):
    return np.log1p(np.exp(x))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def check(found, expected, weights):
    assert set(found.named) == set(expected)
    for name, value in expected.items():
        assert found.named[name].dtype == torch.float32
        assert found.named[name].item() == pytest.approx(value, rel=1e-4, abs=1e-6), name
    total = sum(weights[name] * value for name, value in expected.items())
    assert found.total.item() == pytest.approx(total, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_alphago_policy_and_value(seed):
    batch, chance = a_batch(seed), np.random.default_rng(100 + seed)
    logits, value = chance.normal(0, 3, (N, A)), np.tanh(chance.normal(size=N))
    policy = mean(entropy_of(row, index) for row, index in zip(logits, batch.policy, strict=True))
    squared = mean(known_or_none(z, lambda z, v=v: (z - v) ** 2) for v, z in zip(value, batch.value, strict=True))
    given = batch.torch()
    of_policy = loss_for(keima.create("alphago-policy", filters=2, layers=1))
    check(of_policy(tensors(policy=logits), given), {"policy": policy}, {"policy": 1})
    of_value = loss_for(keima.create("alphago-value", filters=2, layers=1))
    check(of_value(tensors(value=value), given), {"value": squared}, {"value": 1})
    both = loss_for(keima.create("alphago-zero", blocks=0, channels=2))
    outputs = tensors(policy=logits, value=value)
    check(both(outputs, given), {"policy": policy, "value": squared}, {"policy": 1, "value": 1})
    check(
        policy_loss()(tensors(policy=logits), given),
        {"policy": policy},
        {"policy": 1},
    )


def test_a_pass_is_missing_where_the_policy_has_none():
    batch = a_batch(policy=np.array([A - 1, 3, A - 1, -1, 0, A - 1])).torch()
    loss = loss_for(keima.create("alphago-policy", filters=2, layers=1))
    found = loss(tensors(policy=np.random.default_rng(1).normal(size=(N, A - 1))), batch)
    assert found.present["policy"] == 2


@pytest.mark.parametrize("seed", range(4))
def test_the_four_heads_of_the_guide(seed):
    batch, chance = a_batch(seed), np.random.default_rng(200 + seed)
    logits, value = chance.normal(0, 3, (N, A)), np.tanh(chance.normal(size=N))
    score, own = chance.normal(0, 20, N), np.tanh(chance.normal(size=(N, SIZE, SIZE)))
    expected = {
        "policy": mean(entropy_of(row, index) for row, index in zip(logits, batch.policy, strict=True)),
        "value": mean(known_or_none(z, lambda z, v=v: (z - v) ** 2) for v, z in zip(value, batch.value, strict=True)),
        "score": mean(
            known_or_none(s, lambda s, x=x: huber(x - s, 12)) for x, s in zip(score, batch.score, strict=True)
        ),
        "ownership": mean(np.nanmean((own[i] - batch.ownership[i]) ** 2) for i in range(N)),
    }
    loss = loss_for(keima.create("katago-guide", blocks=0, channels=2))
    weights = {"policy": 1, "value": 1, "score": 0.002, "ownership": 0.15}
    check(loss(tensors(policy=logits, value=value, score=score, ownership=own), batch.torch()), expected, weights)
    assert loss.targets == {"policy", "value", "score", "ownership"}


@pytest.mark.parametrize(("seed", "name"), list(enumerate(["v8-residual", "v11-nested", "v14-nested", "v16-residual"])))
def test_katago(seed, name):
    network = tiny(name)
    times = network.config.multipliers
    chance = np.random.default_rng(300 + seed)
    mask = np.ones((N, SIZE, SIZE), np.float32)
    mask[0, 3:] = 0
    batch = a_batch(seed, inputs={"planes": np.zeros((N, 1, SIZE, SIZE), np.float32), "mask": mask})
    policy = chance.normal(0, 3, (N, network.config.policy.outputs, A))
    value, raw = chance.normal(size=(N, 3)), chance.normal(size=(N, network.config.scores))
    own = chance.normal(size=(N, SIZE, SIZE))
    centre, spread = raw[:, 0] * times.score_mean, softplus(raw[:, 1]) * times.score_stdev
    expected = dict.fromkeys(("policy", "value", "score", "stdev", "lead", "ownership"))
    expected["policy"] = mean(entropy_of(policy[i, 0], batch.policy[i]) for i in range(N))
    wins = np.log(softmax(value))
    expected["value"] = mean(
        known_or_none(batch.value[i], lambda z, i=i: -((1 + z) / 2 * wins[i, 0] + (1 - z) / 2 * wins[i, 1]))
        for i in range(N)
    )
    for name, formula in {
        "score": lambda s, i: huber(centre[i] - s, 12),
        "stdev": lambda s, i: huber(spread[i] - abs(s - centre[i]) * np.sqrt(np.pi / 2), 10),
        "lead": lambda s, i: huber(raw[i, 2] * times.lead - s, 8),
    }.items():
        expected[name] = mean(known_or_none(batch.score[i], lambda s, i=i, f=formula: f(s, i)) for i in range(N))
    chances = sigmoid(2 * own)
    targets = np.where(mask > 0, (1 + batch.ownership) / 2, NAN)
    points = -(targets * np.log(chances) + (1 - targets) * np.log(1 - chances))
    expected["ownership"] = mean(np.nanmean(points[i]) for i in range(N))
    weights = {"policy": 1, "value": KATAGO_VALUE, "score": 0.0015, "stdev": 0.001, "lead": 0.006, "ownership": 1.5}
    if network.config.version >= 12:
        weights.update(policy=0.93, optimistic=0.2)
        losses = []
        for i in range(N):
            plain = entropy_of(policy[i, 1], batch.policy[i])
            z, s = batch.value[i], batch.score[i]
            if plain is None or np.isnan(z):
                losses.append(None)
                continue
            excess = 0 if np.isnan(s) else sigmoid(3 * ((s - centre[i]) / np.sqrt(spread[i] ** 2 + 0.25) - 1.5))
            losses.append(plain * min(1, ((1 + z) / 2) ** 2 + excess))
        expected["optimistic"] = mean(losses)
    outputs = tensors(policy=policy, value=value, score=raw, ownership=own)
    check(loss_for(network)(outputs, batch.torch()), expected, weights)


@pytest.mark.parametrize(("seed", "kind"), [(0, "wdl"), (1, "classical")])
def test_lc0(seed, kind):
    network = Lc0Network(Lc0Config(blocks=1, channels=4, se_channels=0, value=kind))
    batch, chance = a_batch(seed, 1858), np.random.default_rng(400 + seed)
    logits, plies = chance.normal(0, 3, (N, 1858)), chance.normal(60, 30, N)
    value = chance.normal(size=(N, 3 if kind == "wdl" else 1))
    outcomes = {1: 0, 0: 1, -1: 2}

    def of_value(z, i):
        if kind == "wdl":
            return entropy_of(value[i], outcomes[int(z)])
        return (np.tanh(value[i, 0]) - z) ** 2

    expected = {
        "policy": mean(entropy_of(row, index) for row, index in zip(logits, batch.policy, strict=True)),
        "value": mean(known_or_none(batch.value[i], lambda z, i=i: of_value(z, i)) for i in range(N)),
        "moves_left": mean(
            known_or_none(batch.moves_left[i], lambda m, i=i: huber((plies[i] - m) / 20, 0.5)) for i in range(N)
        ),
    }
    outputs = tensors(policy=logits, value=value, moves_left=plies)
    check(loss_for(network)(outputs, batch.torch()), expected, dict.fromkeys(expected, 1))


def test_leela_zeros_version_2_files_value_is_blacks():
    network = keima.create("leela-zero", blocks=0, channels=2, value_for_black=True)
    black = np.arange(N) % 2 == 0
    value = np.linspace(-0.9, 0.9, N)
    batch = a_batch(value=np.ones(N, np.float32), first_to_move=black).torch()
    found = loss_for(network, {"policy": 0})(tensors(policy=np.zeros((N, A)), value=value), batch)
    expected = np.mean((1 - np.where(black, value, -value)) ** 2)
    assert found.total.item() == pytest.approx(expected, rel=1e-5)


def test_a_soft_policy_takes_the_moves_place():
    soft = np.zeros((N, A), np.float32)
    soft[0, [1, 2]] = 0.25, 0.75
    logits = np.random.default_rng(5).normal(size=(N, A))
    found = loss_for(keima.create("alphago-policy", filters=2, layers=1))(
        tensors(policy=logits), a_batch(policy_soft=soft).torch()
    )
    expected = 0.25 * entropy_of(logits[0], 1) + 0.75 * entropy_of(logits[0], 2)
    assert found.named["policy"].item() == pytest.approx(expected, rel=1e-5)
    assert found.present["policy"] == 1


# --- Missing targets, parts of a batch, precision ---------------------------------------------------------------------

NETWORKS = {
    "alphago-policy": lambda: keima.create("alphago-policy", filters=4, layers=1, board_size=SIZE),
    "alphago-value": lambda: keima.create("alphago-value", filters=4, layers=1, board_size=SIZE),
    "alphago-zero": lambda: keima.create("alphago-zero", blocks=1, channels=4, board_size=SIZE),
    "leela-zero": lambda: keima.create("leela-zero", blocks=1, channels=4, board_size=SIZE),
    "katago-guide": lambda: keima.create("katago-guide", blocks=1, channels=4, board_size=SIZE),
    "katago-8": lambda: tiny("v8-residual").train(),
    "katago-16": lambda: tiny("v16-residual").train(),
    "lc0": lambda: Lc0Network(Lc0Config(blocks=1, channels=4, se_channels=2)),
}


def loader_for(network, targets=TARGETS - {"reply"}, count=16):
    """A loader of a few random games for this network."""
    if network.encoding.game == "chess":
        flat = flat_of_chess([random_chess(seed) for seed in range(3)])
        return Loader(flat, network.encoding, count, targets=targets - {"score", "ownership"})
    flat = flat_of([random_game(seed, (SIZE, SIZE), passes=0.05) for seed in range(3)])
    return Loader(flat, network.encoding, count, targets=targets)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_system_learns_and_no_targets_give_no_gradient(name):
    torch.manual_seed(1)
    network = NETWORKS[name]()
    loss = loss_for(network)
    with loader_for(network, loss.targets) as loader:
        batch = loader.batch(0).torch()
    outputs = network(**batch.inputs)
    loss(outputs, batch).total.backward()
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    assert any(gradient.abs().sum() > 0 for gradient in gradients)
    for emptied in (
        {"policy": torch.full((16,), -1), **_nans(batch)},
        dict.fromkeys(("policy", "value", "score", "ownership", "moves_left")),
    ):
        network.zero_grad()
        fields = {**{k: getattr(batch, k) for k in batch.__dataclass_fields__}, **emptied}
        found = loss(network(**batch.inputs), TrainingBatch(**fields))
        assert found.total == 0
        assert all(count == 0 for count in found.present.values())
        found.total.backward()
        for parameter in network.parameters():
            assert parameter.grad is None or (parameter.grad == 0).all()


def _nans(batch):
    names = ("value", "score", "ownership", "moves_left")
    return {name: torch.full_like(t, NAN) for name in names if (t := getattr(batch, name)) is not None}


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_the_mean_of_parts_is_the_large_batchs_however_targets_are_spread(seed):
    network = keima.create("katago-guide", blocks=0, channels=2)
    chance = np.random.default_rng(seed)
    batch = a_batch(seed).torch()
    outputs = tensors(
        policy=chance.normal(size=(N, A)),
        value=chance.normal(size=N),
        score=chance.normal(0, 20, N),
        ownership=chance.normal(size=(N, SIZE, SIZE)),
    )
    loss = loss_for(network)
    whole = loss(outputs, batch)
    cut = int(chance.integers(1, N))
    parts = []
    for rows in (slice(0, cut), slice(cut, N)):
        fields = {k: v[rows] for k, v in vars(batch).items() if isinstance(v, torch.Tensor)}
        inputs = {"planes": batch.planes[rows]}
        parts.append(
            (SimpleNamespace(**{k: v[rows] for k, v in vars(outputs).items()}), TrainingBatch(inputs, **fields))
        )
    counts = [torch.stack(list(loss(*part).present.values())) for part in parts]
    shared = [loss(*part, share=lambda _: sum(counts) / 2) for part in parts]
    assert (sum(part.total for part in shared) / 2).item() == pytest.approx(whole.total.item(), rel=1e-5, abs=1e-6)


def test_half_precision_outputs_are_lost_in_float32():
    network = keima.create("alphago-zero", blocks=0, channels=2)
    logits = torch.full((N, A), 60.0, dtype=torch.bfloat16)
    outputs = SimpleNamespace(policy=logits, value=torch.zeros(N, dtype=torch.bfloat16))
    found = loss_for(network)(outputs, a_batch(policy=np.arange(N)).torch())
    assert found.total.dtype == torch.float32
    assert found.named["policy"].item() == pytest.approx(np.log(A), rel=1e-6)


def test_extreme_logits_stay_finite():
    logits = np.zeros((N, A))
    logits[:, 0] = 5000
    found = loss_for(keima.create("alphago-policy", filters=2, layers=1))(
        tensors(policy=logits), a_batch(policy=np.full(N, 3)).torch()
    )
    assert found.named["policy"].item() == pytest.approx(5000)


# --- L2, weights ------------------------------------------------------------------------------------------------------


def test_l2_in_the_loss_is_twice_as_much_weight_decay_in_sgd():
    """Three steps with momentum, from the same weights: c‖θ‖² explicit, or 2c in the optimiser."""
    torch.manual_seed(3)
    first = NETWORKS["alphago-zero"]()
    with loader_for(first) as loader:
        batches = [loader.batch(step).torch() for step in range(3)]
    start = {name: tensor.clone() for name, tensor in first.state_dict().items()}
    results = []
    c = 0.05
    for explicit in (True, False):
        network = NETWORKS["alphago-zero"]()
        network.load_state_dict(start)
        loss = loss_for(network, l2=c if explicit else 0.0)
        decay = 0.0 if explicit else 2 * c
        optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=decay)
        for batch in batches:
            optimizer.zero_grad()
            found = loss(network(**batch.inputs), batch)
            found.total.backward()
            optimizer.step()
        results.append(network.state_dict())
        if explicit:
            assert found.named["l2"].item() > 0
    for name, tensor in results[0].items():
        assert torch.allclose(tensor.float(), results[1][name].float(), rtol=1e-5, atol=1e-6), name


def test_weights_can_be_changed_and_terms_switched_off():
    network = keima.create("alphago-zero", blocks=0, channels=2)
    outputs = tensors(policy=np.zeros((N, A)), value=np.zeros(N))
    batch = a_batch(policy=np.zeros(N, np.int64), value=np.ones(N, np.float32)).torch()
    found = loss_for(network, {"value": 0.01})(outputs, batch)
    assert found.total.item() == pytest.approx(np.log(A) + 0.01)
    only = loss_for(network, {"value": 0})
    assert only.targets == {"policy"}
    assert list(only(outputs, batch).named) == ["policy"]


@pytest.mark.parametrize(
    ("weights", "words"),
    [({"mood": 1.0}, "no term 'mood'; its terms are policy, value"), ({"value": NAN}, "must be a number")],
)
def test_weights_that_cannot_be(weights, words):
    with pytest.raises(BadRequest, match=words):
        loss_for(keima.create("alphago-zero", blocks=0, channels=2), weights)
    with pytest.raises(BadRequest, match="weight 0"):
        loss_for(keima.create("alphago-policy", filters=2, layers=1), {"policy": 0})
    with pytest.raises(BadRequest, match="no loss for 'checkers'"):
        loss_for(SimpleNamespace(system="checkers"))


@pytest.mark.parametrize("name", ["alphago-zero", "katago-16", "lc0"])
def test_a_tiny_network_learns_a_batch_by_heart(name):
    torch.manual_seed(0)
    wider = {
        "alphago-zero": lambda: keima.create("alphago-zero", blocks=1, channels=16, board_size=SIZE),
        "lc0": lambda: Lc0Network(Lc0Config(blocks=1, channels=16, se_channels=4)),
    }
    network = wider.get(name, NETWORKS[name])()
    loss = loss_for(network)
    with loader_for(network, loss.targets) as loader:
        batch = loader.batch(0).torch()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    first = None
    for _ in range(80):
        optimizer.zero_grad()
        found = loss(network(**batch.inputs), batch)
        first = first or found
        found.total.backward()
        optimizer.step()
    assert found.named["policy"] < 0.25 * first.named["policy"]
    assert found.named["value"] < 0.5 * first.named["value"]
