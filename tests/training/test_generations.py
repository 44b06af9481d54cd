"""Distillation on games between student and teacher: both play, the teacher answers, stops change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import keima
from keima.inference.evaluator import Evaluator
from keima.systems.registry import create
from keima.training.distill.teacher import EvaluatorPlayer, Generations
from keima.training.reinforce.games import play_games, read_played
from keima.training.reinforce.reinforce import TorchPlayer, autocast_of
from keima.training.run.loop import train
from keima.training.run.preflight import find_world
from keima.training.run.recipe import read_recipe
from tests.training.killing import train_killed, weights

pytestmark = pytest.mark.usefixtures("quick_training")

RECIPE = """
[network]
name = "alphago-policy"
filters = 8
layers = 2
board_size = 5

[teacher]
network = "{teacher}"

[selfplay]
games = 6
every = 3
komi = 0.5

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
TARGETS = frozenset({"policy"})


@pytest.fixture
def read(tmp_path: Path) -> Any:
    torch.manual_seed(5)
    teacher = create("alphago-zero", blocks=1, channels=8, board_size=5, value_hidden=8).eval()
    with torch.no_grad():
        teacher.policy_head.linear.weight.mul_(80)
    keima.save(teacher, tmp_path / "teacher.safetensors")
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.format(teacher=tmp_path / "teacher.safetensors"))
    return read_recipe(path)


def generations(read: Any, folder: Path, student: Any) -> Generations:
    teacher = Evaluator(keima.load(*read.teacher.network))
    return Generations(read, student, teacher, folder, find_world(read, {}), TARGETS)


def student() -> Any:
    torch.manual_seed(0)
    return create("alphago-policy", filters=8, layers=2, board_size=5)


def test_student_and_teacher_play_and_the_teacher_answers(read: Any, tmp_path: Path) -> None:
    network = student()
    made = generations(read, tmp_path / "games", network)
    batch = next(made)
    made.close()
    played = read_played(tmp_path / "games" / "generation-000000.npz", made._table)
    players = TorchPlayer(network, autocast_of(read, "cpu")), EvaluatorPlayer(made._teacher)
    again = play_games(players, made._table, np.arange(6), read.run.seed)
    assert np.array_equal(again.games.moves, played.games.moves)
    # the batch's positions are of those games, and its policy is the teacher's
    moves, start = played.games.moves, played.games.start
    assert len(batch) == 8
    for row, (game, ply) in enumerate(zip(batch.game.tolist(), batch.ply.tolist(), strict=True)):
        assert start[game] + ply < start[game + 1]
        assert (moves[start[game] + ply] < 1 << 15) == batch.first_to_move[row]
    np.testing.assert_allclose(batch.policy_soft.sum(axis=1), 1, atol=1e-5)
    assert batch.policy_soft.max() > 0.2  # a teacher of strong opinions, not the student


def test_a_new_generation_begins_every_so_many_steps(read: Any, tmp_path: Path) -> None:
    made = generations(read, tmp_path / "games", student())
    for _ in range(2 * 3 * 2 + 1):
        next(made)
    made.close()
    files = sorted(path.name for path in (tmp_path / "games").iterdir())
    assert files == [f"generation-{number:06d}.npz" for number in range(3)]


def test_going_back_forgets_the_games_after_it(read: Any, tmp_path: Path) -> None:
    made = generations(read, tmp_path / "games", student())
    batches = [next(made) for _ in range(13)]
    made.seek(8)  # within the second generation, whose games are kept; the third is yet to come
    files = sorted(path.name for path in (tmp_path / "games").iterdir())
    assert files == ["generation-000000.npz", "generation-000001.npz"]
    again = next(made)
    made.close()
    assert np.array_equal(again.planes, batches[8].planes)
    assert np.array_equal(again.policy_soft, batches[8].policy_soft)


def test_killed_and_started_again_the_weights_are_those_of_an_unbroken_run(
    read: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(read, tmp_path / "whole")
    train_killed(read, tmp_path / "killed", Generations, 10, monkeypatch)
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")


def test_the_student_comes_nearer(read: Any, tmp_path: Path) -> None:
    long = read_recipe(read.source, ["run.steps=60", "run.checkpoint_every=60"])
    train(long, tmp_path / "run")
    from keima.training.run.metrics import read_metrics

    losses = [line["policy"] for line in read_metrics(tmp_path / "run" / "metrics.jsonl")]
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) - 0.3
