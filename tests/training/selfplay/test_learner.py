"""The learner: what it publishes, when it waits, and that being killed changes nothing."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import keima
from keima.errors import BadRequest, BadStore
from keima.inference.evaluator import Evaluator
from keima.systems.files.load import save
from keima.training.run.loop import Trainer, Watcher
from keima.training.selfplay.checks import check_loop, read_run, write_run
from keima.training.selfplay.learner import NEWEST, Turns, learn
from keima.training.selfplay.networks import list_networks, publish, read_network, read_published
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


def test_a_finished_run_can_be_made_longer(tmp_path, shards):
    store = run_of(tmp_path / "run", shards)
    learn(store, tmp_path / "run" / "learner")
    before = networks(store)
    longer = ("run.steps=14", "window.reuse=9", "judge.games=0")
    with pytest.raises(BadRequest, match=r"window\.reuse: is 9"):
        write_run(store, recipe_of(tmp_path, *longer), longer)
    assert store.exists("done.json")
    longer = ("run.steps=14", "schedule.minimum=0.5", "judge.games=0")
    write_run(store, recipe_of(tmp_path, *longer), longer)
    assert not store.exists("done.json")
    assert (read_run(store).training.run.steps, read_run(store).judge.games) == (14, 0)
    assert learn(store, tmp_path / "run" / "learner").step == 14
    after = networks(store)
    assert list_networks(store) == [0, 1, 2, 3, 4]
    assert {name: after[name] for name in before} == before
    write_run(store, recipe_of(tmp_path, *longer), longer)
    assert json.loads(store.read("done.json")) == {"step": 14, "generation": 4}


def start(folder: Path) -> subprocess.Popen[bytes]:
    """A learner as a process of its own."""
    code = "import sys; from pathlib import Path; from keima.training.selfplay.store import Store;"
    code += "from keima.training.selfplay.learner import learn;"
    code += "learn(Store(sys.argv[1]), Path(sys.argv[1]) / 'learner')"
    return subprocess.Popen([sys.executable, "-c", code, str(folder)], stderr=subprocess.DEVNULL)


@pytest.mark.slow
def test_killed_at_any_moment_it_publishes_the_same_to_the_last_bit(tmp_path, shards):
    steps = ("run.steps=24", "run.log_every=1", "window.reuse=16")
    whole, broken = (run_of(tmp_path / name / "run", shards, *steps) for name in ("whole", "broken"))
    learn(whole, tmp_path / "whole" / "run" / "learner")
    seen: dict[str, bytes] = {}
    kills = 0
    target = 6
    while not broken.exists("done.json"):
        process = start(tmp_path / "broken" / "run")
        metrics = tmp_path / "broken" / "run" / "learner" / "metrics.jsonl"
        while process.poll() is None and (not metrics.exists() or metrics.read_text().count("\n") < target):
            time.sleep(0.002)
        if process.poll() is None and target < 24:
            time.sleep(0.013 * (kills % 3))
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
        assert {name: data for name, data in networks(broken).items() if name in seen} == seen
        seen = networks(broken)
        target += 10
    assert kills == 2
    assert networks(broken) == networks(whole)
    assert list_networks(broken) == list_networks(whole) == list(range(7))


@pytest.mark.parametrize("number", [2, 5])
def test_killed_while_it_publishes(number, tmp_path, shards, monkeypatch, undisturbed):
    """Killed as SIGKILL does it, before one of the writes of its networks: weights, then what makes them valid."""
    store = run_of(tmp_path / "run", shards)
    writes = itertools.count()

    class Killed(BaseException):
        pass

    def killed(method):
        def write(self, name, data):
            if name.startswith("networks/") and next(writes) == number:
                raise Killed
            return method(self, name, data)

        return write

    with monkeypatch.context() as patch:
        patch.setattr(Store, "write", killed(Store.write))
        patch.setattr(Store, "write_new", killed(Store.write_new))
        patch.setattr(Trainer, "_rescue", lambda *_: None)
        with pytest.raises(Killed):
            learn(store, tmp_path / "run" / "learner")
    assert list_networks(store) == list(range(number // 2))
    learn(store, tmp_path / "run" / "learner")
    assert networks(store) == undisturbed


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, shards) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("undisturbed")
    store = run_of(folder / "run", shards)
    learn(store, folder / "run" / "learner")
    return networks(store)


def test_what_is_published_stays_as_it_is(tmp_path):
    store = Store(tmp_path)
    network = keima.create("connect-four", blocks=1, channels=8, value_hidden=8)
    first = publish(store, 3, network, 12, lambda: 0.9)
    assert first == read_published(store, 3)
    assert (first.step, first.resign) == (12, 0.9)
    other = keima.create("connect-four", blocks=1, channels=8, value_hidden=8)
    assert publish(store, 3, other, 12, lambda: None) is None
    assert read_published(store, 3) == first
    kept = read_network(store, 3).state_dict()
    assert all(torch.equal(tensor, kept[name]) for name, tensor in network.state_dict().items())
    data = bytearray(store.read("networks/000003.safetensors"))
    data[-1] ^= 1
    store.write("networks/000003.safetensors", bytes(data))
    with pytest.raises(BadStore, match="SHA-256"):
        read_network(store, 3)


def test_a_published_format_is_written_beside_it(tmp_path):
    store = Store(tmp_path)
    publish(store, 0, keima.create("leela-zero", blocks=1, channels=8), 0, lambda: None)
    assert store.list("networks") == ["networks/000000.json", "networks/000000.safetensors", "networks/000000.txt.gz"]


def test_it_goes_on_on_another_machine(tmp_path, shards, undisturbed):
    """The store is elsewhere, and the first machine is lost after generation 1, with its checkpoints."""
    store = Store(f"memory://{tmp_path.name}")
    write_run(store, recipe_of(tmp_path))
    for path in sorted((shards / "games").glob("*.parquet")):
        store.write(f"games/{path.name}", path.read_bytes())

    class Lost(Watcher):
        def advance(self, step, line):
            if step == 6:
                raise RuntimeError("the machine is lost")

    with pytest.raises(RuntimeError):
        learn(store, tmp_path / "first", Lost())
    assert list_networks(store) == [0, 1]
    assert json.loads(store.read(NEWEST))["step"] == 4
    told = Told()
    learn(store, tmp_path / "second", told)
    assert "going on after step 4 of 10" in told.said
    assert networks(store) == undisturbed


class Told(Watcher):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


def test_it_waits_for_games_and_leaves_the_cores_meanwhile(tmp_path, shards):
    """With too few games it rests, and a signal to stop is heard; its turn ends once step 4, a generation's last, is
    published."""
    recipe_games = ("window.first=60", "window.reuse=0.05")
    store = run_of(tmp_path / "run", shards, *recipe_games)
    turns = Turns(tmp_path / "turn")
    workers = Turns(tmp_path / "turn")
    states: list[tuple[int, bool]] = []

    class Watching(Told):
        def advance(self, step, line):
            states.append((step, workers.free()))

        def say(self, message):
            super().say(message)
            if "waits for games" in message:
                states.append((-1, workers.free()))
                heard = signal.getsignal(signal.SIGTERM)
                assert callable(heard)
                heard(signal.SIGTERM, None)

    watcher = Watching()
    with pytest.raises(KeyboardInterrupt):
        learn(store, tmp_path / "run" / "learner", watcher, turns)
    assert states == [(1, False), (2, False), (3, False), (4, True), (-1, True)]
    assert workers.free()
    assert any("step 4 is kept" in message for message in watcher.said)


def test_turns_end_with_the_process(tmp_path):
    code = "import sys, time; from pathlib import Path; from keima.training.selfplay.learner import Turns;"
    code += "turns = Turns(Path(sys.argv[1])); turns.take(); print('taken', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "turn")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"taken\n"
    turns = Turns(tmp_path / "turn")
    assert not turns.free()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    turns.wait()
    assert turns.free()


# --- Checks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("network.blocks=-1", "network.blocks"),
        ("loss.ownership=1.0", "no term 'ownership'"),
        ("search.preset=nosuch", "search.preset: unknown preset"),
        ("search.cpuckt=1.0", "search.cpuckt: unknown search parameter"),
        ("search.root_noise=2.0", "search.root_noise: search parameter root_noise must be from 0 to 1"),
        ("games.size=[9]", "games.size: connect four has no choice of size"),
        ("games.komi=[7.5]", "games.komi: connect four has no choice of komi"),
        ("games.komi_stdev=1.0", "games.komi_stdev"),
        ("games.rules=chinese", "games.rules: connect four has no choice of rules"),
        ("judge.opponents=['nosuch.bin.gz']", "judge.opponents"),
        ("judge.elo0=40.0", "judge.elo0: must be below elo1, 35"),
        ("run.batch_size=16", ""),
    ],
)
def test_what_cannot_be_is_said_before_any_work(override, message, tmp_path):
    recipe = recipe_of(tmp_path, override)
    if not message:
        assert check_loop(recipe).encoding.game == "connect_four"
        return
    with pytest.raises(BadRequest) as caught:
        check_loop(recipe)
    assert message in caught.value.message
    assert caught.value.source == str(tmp_path / "recipe.toml")
    assert caught.value.place == f"--set {override.partition('=')[0]}"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("games.size=[9, 13]", "games.size"),
        ("games.size=[40]", "games.size"),
        ("games.rules=nosuch", "games.rules"),
        ("games.komi=[1000.0]", "games.komi"),
    ],
)
def test_boards_that_the_network_does_not_take(override, message, tmp_path):
    (tmp_path / "go.toml").write_text(RECIPE.replace('"connect-four"', '"alphago-zero"\nboard_size = 9'))
    with pytest.raises(BadRequest, match=message) as caught:
        check_loop(read_loop(tmp_path / "go.toml", [override]))
    assert caught.value.place == f"--set {override.partition('=')[0]}"


def test_an_opponent_plays_the_same_game(tmp_path):
    path = tmp_path / "go.safetensors"
    save(keima.create("alphago-zero", blocks=1, channels=4, board_size=9), path)
    with pytest.raises(BadRequest, match="plays go; the run's networks play connect_four"):
        check_loop(recipe_of(tmp_path, f"judge.opponents=['{path}']"))


def test_a_run_keeps_its_recipe(tmp_path):
    store = Store(tmp_path / "run")
    recipe = recipe_of(tmp_path, "run.seed=7")
    write_run(store, recipe, ["run.seed=7"])
    write_run(store, recipe, ["run.seed=7"])
    kept = read_run(store)
    assert (kept.training.run.seed, kept.search, kept.window) == (7, recipe.search, recipe.window)
    with pytest.raises(BadRequest, match=r"search\.visits: is 9; the run in .* was begun with 8") as caught:
        write_run(store, recipe_of(tmp_path, "run.seed=7", "search.visits=9"))
    assert caught.value.place == "--set search.visits"
    store.write("run.json", b"[1]")
    with pytest.raises(BadStore, match="list where an object"):
        read_run(store)
