"""REINFORCE: the gradient is the paper's, written out game by game; the policy comes to win; stops change nothing."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import keima
from keima.errors import BadRequest
from keima.games.go.position import Position
from keima.systems.registry import create
from keima.training.reinforce.games import play_games, set_table
from keima.training.reinforce.reinforce import (
    PolicyGradient,
    Pool,
    ReinforceBatches,
    TorchPlayer,
    mean_of_others,
    moves_of_first,
    outcomes,
)
from keima.training.run.loop import train
from keima.training.run.metrics import read_metrics
from keima.training.run.objective import TrainingStep, Whole
from keima.training.run.preflight import World, check_room, pool_size
from keima.training.run.recipe import SelfplayRecipe, read_recipe
from tests.training.killing import train_killed, weights
from tests.training.test_selfplay import names, sensible

pytestmark = pytest.mark.usefixtures("quick_training")

WORLD = World("cpu", local=1, machines=1)
RECIPE = """
[network]
name = "alphago-policy"
filters = 8
layers = 2
board_size = 5

[selfplay]
komi = 0.5

[reinforce]
pool_every = 3

[optimizer]
kind = "adamw"
learning_rate = 0.01

[run]
steps = 8
batch_size = 16
accumulate = 2
checkpoint_every = 2
log_every = 1
device = "cpu"
threads = 1
"""


def recipe(folder: Path, *overrides: str, text: str = RECIPE) -> Any:
    path = folder / "reinforce.toml"
    path.write_text(text)
    return read_recipe(path, overrides)


def policy(seed: int = 0, **sizes: Any) -> Any:
    torch.manual_seed(seed)
    return create("alphago-policy", **{"filters": 8, "layers": 2, "board_size": 5, **sizes})


def written_out(network: Any, played: Any, temperature: float) -> torch.Tensor:
    """1/n Σ_games Σ_t z_t log p(a_t | s_t), move by move through positions, as the paper has it."""
    total = torch.zeros(())
    for game in range(len(played.games)):
        position = Position.start(5, "chinese-kgs", 0.5)
        own = "B" if played.first_black[game] else "W"
        z = float(played.games.winner[game]) * (1 if own == "B" else -1)
        symmetry = int(played.symmetry[game])
        for colour, vertex in names(played.games, game):
            free = sorted(sensible(position))
            if network.config["pass_logit"]:
                free.append("pass")
            if colour == own and len(free) > 1:
                planes = torch.from_numpy(network.encoding.encode([position], symmetry).inputs["planes"])
                legal = network.encoding.legal_moves(position, symmetry)
                places = dict(zip(legal.names, legal.indices.tolist(), strict=True))
                logits = network(planes).policy[0] / temperature
                among = torch.log_softmax(logits[[places[v] for v in free]], 0)
                total = total + z * among[free.index(vertex)]
            position = position.play(vertex)
    return total / len(played.games)


@pytest.mark.parametrize(("with_pass", "temperature"), [(False, 1.0), (True, 1.5)])
def test_the_gradient_is_that_of_the_paper(tmp_path: Path, with_pass: bool, temperature: float) -> None:
    network = policy(pass_logit=with_pass)
    read = recipe(tmp_path, 'reinforce.baseline="none"', "run.accumulate=1", f"selfplay.temperature={temperature}")
    batches = ReinforceBatches(read, network, tmp_path / "pool", WORLD)
    batch = next(batches)
    played = batches._played
    objective = TrainingStep(network, PolicyGradient(network, temperature))
    terms = objective(Whole(batch.torch()))
    terms["loss"].backward()
    found = {name: parameter.grad.clone() for name, parameter in network.named_parameters()}
    network.zero_grad()
    expected = -written_out(network, played, temperature)
    expected.backward()
    assert terms["loss"].item() == pytest.approx(expected.item(), rel=1e-4)
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, rtol=1e-3, atol=1e-5)
    assert terms["won"].item() == pytest.approx((outcomes(played).mean() + 1) / 2)


def test_each_part_of_a_step_holds_its_games(tmp_path: Path) -> None:
    network = policy()
    whole = ReinforceBatches(recipe(tmp_path, "run.accumulate=1"), network, tmp_path / "a", WORLD)
    parts = ReinforceBatches(recipe(tmp_path, "run.accumulate=4"), network, tmp_path / "b", WORLD)
    one, four = next(whole), [next(parts) for _ in range(4)]
    for name in ("planes", "policy", "advantage", "allowed", "outcome"):
        assert np.array_equal(getattr(one, name), np.concatenate([getattr(part, name) for part in four]))
    assert len(one.outcome) == 16


def test_two_processes_play_the_games_of_one(tmp_path: Path) -> None:
    read, network = recipe(tmp_path, "run.accumulate=1", 'reinforce.baseline="none"'), policy()
    one = next(ReinforceBatches(read, network, tmp_path / "a", WORLD))
    two = [next(ReinforceBatches(read, network, tmp_path / "b", World("cpu", 2, 1, rank))) for rank in (0, 1)]
    for name in ("planes", "policy", "advantage", "outcome"):
        assert np.array_equal(getattr(one, name), np.concatenate([getattr(part, name) for part in two]))


def test_moves_and_outcomes_are_the_first_players() -> None:
    network = policy()
    table = set_table(SelfplayRecipe(komi=0.5), network)
    player = TorchPlayer(network, nullcontext)
    played = play_games((player, player), table, np.arange(6), seed=0)
    rows, turns = moves_of_first(played, np.array([1, 4]))
    for game, colour in ((1, "W"), (4, "B")):
        mine = [turn for turn, (side, _) in enumerate(names(played.games, game)) if side == colour]
        assert turns[rows == game].tolist() == mine
        assert outcomes(played)[game] == played.games.winner[game] * (1 if colour == "B" else -1)
    assert set(rows.tolist()) == {1, 4}


def test_the_mean_of_the_others_leaves_the_game_itself_out() -> None:
    outcome = np.array([1.0, -1, 1, 1, -1, 0])
    black = np.array([True, True, True, False, False, False])
    expected = [0, 1, 0, -0.5, 0.5, 0]
    assert mean_of_others(outcome, black).tolist() == expected
    assert mean_of_others(np.ones(1), np.array([True])).tolist() == [0]


def test_a_value_network_as_baseline(tmp_path: Path) -> None:
    torch.manual_seed(4)
    judge = create("alphago-value", filters=4, layers=2, hidden=8, board_size=5)
    judge.eval()
    keima.save(judge, tmp_path / "value.safetensors")
    overrides = ("run.accumulate=1", f"reinforce.baseline={str(tmp_path / 'value.safetensors')!r}")
    network = policy()
    batches = ReinforceBatches(recipe(tmp_path, *overrides), network, tmp_path / "pool", WORLD)
    plain = ReinforceBatches(
        recipe(tmp_path, "run.accumulate=1", 'reinforce.baseline="none"'), network, tmp_path / "other", WORLD
    )
    with_value, without = next(batches), next(plain)
    values = without.advantage - with_value.advantage
    games = batches._played.games
    rows, turns = moves_of_first(batches._played, np.arange(16))
    row = 0
    for game, turn in zip(rows.tolist(), turns.tolist(), strict=True):
        position = Position.start(5, "chinese-kgs", 0.5)
        for _, vertex in names(games, game)[:turn]:
            position = position.play(vertex)
        if len(sensible(position)) > 1:
            planes = judge.encoding.encode([position], int(batches._played.symmetry[game])).inputs["planes"]
            with torch.no_grad():
                assert values[row] == pytest.approx(judge(torch.from_numpy(planes)).value.item(), abs=2e-5)
            row += 1
    assert row == len(values)


def test_the_pool_grows_and_gives_back_past_selves(tmp_path: Path) -> None:
    network = policy()
    pool = Pool(tmp_path / "pool", network, 3, writes=True)
    states = {}
    for step in range(8):
        with torch.no_grad():
            network.point_bias += 1
        states[step] = copy.deepcopy(network.state_dict())
        pool.take_in(step)
    assert sorted(path.name for path in (tmp_path / "pool").iterdir()) == [
        f"step-{step:09d}.safetensors" for step in (0, 3, 6)
    ]
    other = policy(1)
    again = Pool(tmp_path / "pool", network, 3, writes=True)
    again.take_in(7)
    for each in (pool, again):
        assert [each.put_on(other, 7, chance) for chance in range(4)] == [0, 3, 6, 0]
        assert each.put_on(other, 5, 1) == 3
        assert torch.equal(other.point_bias, states[3]["point_bias"])
    (tmp_path / "pool" / "step-000000003.safetensors").unlink()
    with pytest.raises(BadRequest, match=r"a past self is lost: .*step-000000003"):
        Pool(tmp_path / "pool", network, 3, writes=True).take_in(7)


@pytest.mark.parametrize("at", [3, 6])
def test_killed_and_started_again_the_weights_are_those_of_an_unbroken_run(
    tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = recipe(tmp_path)
    train(read, tmp_path / "whole")
    train_killed(read, tmp_path / "killed", ReinforceBatches, 2 * at + 1, monkeypatch)
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    lines = [read_metrics(tmp_path / name / "metrics.jsonl") for name in ("whole", "killed")]
    assert [line["won"] for line in lines[0]] == [line["won"] for line in lines[1]]
    assert [line["games"] for line in lines[0]] == [16 * step for step in range(1, 9)]
    assert 0 <= lines[0][0]["entropy"] <= np.log(25)


def test_past_selves_need_room_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = recipe(tmp_path)  # 8 steps, one kept every 3
    assert pool_size(read) == 3
    train(read, tmp_path / "run")
    assert len(list((tmp_path / "run" / "pool").iterdir())) == 3
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with pytest.raises(BadRequest, match=r"checkpoints of .* MB, past selves of .* MB, a reserve and the result want"):
        check_room(read, tmp_path / "other", policy())


def test_it_comes_to_beat_what_it_began_as(tmp_path: Path) -> None:
    text = RECIPE.replace("pool_every = 3", "pool_every = 20")
    read = recipe(tmp_path, "run.steps=60", "run.batch_size=64", "run.checkpoint_every=60", text=text)
    done = train(read, tmp_path / "run")
    parent = keima.load(tmp_path / "run" / "pool" / "step-000000000.safetensors")
    players = tuple(TorchPlayer(network.eval(), nullcontext) for network in (keima.load(done.network), parent))
    table = set_table(SelfplayRecipe(komi=0.5), parent)
    played = play_games(players, table, np.arange(400), seed=99)
    assert (outcomes(played) > 0).mean() > 0.65  # a standard deviation is 0.025


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (['data.train="games.parquet"'], r"data\.train: and \[reinforce\] exclude each other"),
        (['teacher.network="x.bin.gz"'], r"\[teacher\] exclude each other"),
        (["loss.policy=2"], r"loss: \[reinforce\] has one term"),
        (["selfplay.size=9"], r"selfplay\.size: the network is for 5×5"),
        (['selfplay.rules="japanese"'], r"selfplay\.rules: .*counted by area"),
        (['reinforce.baseline="nothing.safetensors"'], r"reinforce\.baseline: .*nothing\.safetensors"),
        (["reinforce.pool_every=0"], r"reinforce\.pool_every: should be more than 0"),
        (["reinforce.pool=1"], r"reinforce\.pool: unknown key; \[reinforce\] has pool_every, baseline"),
    ],
)
def test_recipes_that_cannot_be_are_refused(tmp_path: Path, overrides: list[str], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        train(recipe(tmp_path, *overrides), tmp_path / "run")


def test_networks_that_cannot_play_are_refused(tmp_path: Path) -> None:
    value = 'name = "alphago-value"\nfilters = 8\nlayers = 2\nhidden = 4\nboard_size = 5'
    text = RECIPE.replace('name = "alphago-policy"\nfilters = 8\nlayers = 2\nboard_size = 5', value)
    with pytest.raises(BadRequest, match="games are played by networks with a policy of their own"):
        train(recipe(tmp_path, text=text), tmp_path / "run")


def test_another_pool_is_another_run(tmp_path: Path) -> None:
    train(recipe(tmp_path, "run.steps=2"), tmp_path / "run")
    with pytest.raises(BadRequest, match=r"reinforce\.pool_every: is 4; the run in .* was begun with 3"):
        train(recipe(tmp_path, "reinforce.pool_every=4"), tmp_path / "run")


def test_a_recipe_needs_games_from_somewhere(tmp_path: Path) -> None:
    start, end = RECIPE.index("[selfplay]"), RECIPE.index("[optimizer]")
    with pytest.raises(BadRequest, match=r"data\.train: is missing"):
        recipe(tmp_path, text=RECIPE[:start] + RECIPE[end:])
    with pytest.raises(BadRequest, match=r"selfplay: needs a \[teacher\] or \[reinforce\]"):
        recipe(tmp_path, text=RECIPE.replace("[reinforce]\npool_every = 3\n", ""))
