"""The learner: what it publishes, when it waits, and that being killed changes nothing."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import torch

import keima
from keima.inference.evaluator import Evaluator
from keima.training.selfplay.checks import write_run
from keima.training.selfplay.learner import learn
from keima.training.selfplay.networks import list_networks, read_network, read_published
from keima.training.selfplay.play import Player, Players
from keima.training.selfplay.recipe import LoopRecipe, read_loop
from keima.training.selfplay.shards import write_shard
from keima.training.selfplay.store import Store

RECIPE = """
[network]
name = "connect-four"
blocks = 1
channels = 8
value_hidden = 8

[search]
visits = 8
root_noise = 0.25

[games]
side_by_side = 32
block = 8
temperature_plies = 12

[window]
steps = 4
reuse = 4.0
first = 60

[judge]
games = 4

[optimizer]
learning_rate = 0.05
momentum = 0.9

[run]
steps = 10
batch_size = 16
ema = 0.9
threads = 1
seed = 3
log_every = 2
checkpoint_every = 3
"""


def recipe_of(folder: Path, *overrides: str) -> LoopRecipe:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "recipe.toml"
    path.write_text(RECIPE)
    return read_loop(path, overrides)


@pytest.fixture(scope="module")
def shards(tmp_path_factory) -> Path:
    """A folder with games enough for the whole recipe, played by a fresh network."""
    folder = tmp_path_factory.mktemp("games")
    recipe, store = recipe_of(folder), Store(folder)
    torch.manual_seed(1)
    evaluator = Evaluator(keima.create("connect-four", **recipe.training.network.sizes), batch_size=16, threads=1)
    counter = itertools.count()
    numbers = itertools.takewhile(lambda number: number < 24, counter)
    players = Players(recipe, [Player(evaluator, 0)], lambda: next(numbers, None))
    games = []
    while not players.idle:
        games += players.step()
    games.sort(key=lambda game: game.number)
    for first in range(0, 24, 8):
        write_shard(store, games[first : first + 8])
    return folder


def run_of(folder: Path, shards: Path, *overrides: str, blocks: int = 3) -> Store:
    """A run's store with the first blocks of the games."""
    store = Store(folder)
    write_run(store, recipe_of(folder.parent, *overrides), overrides)
    for path in sorted((shards / "games").glob("*.parquet"))[:blocks]:
        store.write(f"games/{path.name}", path.read_bytes())
    return store


def networks(store: Store) -> dict[str, bytes]:
    """The networks' files."""
    return {name: store.read(name) for name in store.list("networks") if name.endswith(".safetensors")}


def test_every_generation_is_published_and_the_averages_are(tmp_path, shards):
    store = run_of(tmp_path / "run", shards)
    result = learn(store, tmp_path / "run" / "learner")
    assert result.step == 10
    assert list_networks(store) == [0, 1, 2, 3]
    assert [read_published(store, k).step for k in range(4)] == [0, 4, 8, 10]
    fresh, first = (read_network(store, k).state_dict() for k in (0, 1))
    torch.manual_seed(3)
    created = keima.create("connect-four", blocks=1, channels=8, value_hidden=8).state_dict()
    assert all(torch.equal(created[name], fresh[name]) for name in created)
    average = keima.load(tmp_path / "run" / "learner" / "checkpoints" / "step-000000010" / "average.safetensors")
    last = read_network(store, 3).state_dict()
    assert all(torch.equal(tensor, last[name]) for name, tensor in average.state_dict().items())
    statistics = [name for name in first if name.endswith("running_mean")]
    assert statistics
    assert not any(torch.equal(fresh[name], first[name]) for name in statistics)
    assert json.loads(store.read("done.json")) == {"step": 10, "generation": 3}
    lines = [json.loads(line) for line in (tmp_path / "run" / "learner" / "metrics.jsonl").read_text().splitlines()]
    assert [(line["step"], line["generation"]) for line in lines] == [(2, 1), (4, 1), (6, 2), (8, 2), (10, 3)]
    windows = [json.loads(store.read(name)) for name in store.list("windows")]
    assert [line["window"] for line in lines] == [windows[line["generation"] - 1]["window_positions"] for line in lines]
    assert store.read("curve.png").startswith(b"\x89PNG")
