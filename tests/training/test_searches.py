"""Searches of a store's games: what is kept of them, what is learned from them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import keima
from keima.cli.main import app
from keima.errors import BadRequest
from keima.games.chess.position import Position
from keima.games.playing import Opinion
from keima.inference.evaluator import Evaluator
from keima.systems.registry import create
from keima.training.data.export import export, to_json
from keima.training.data.importing import import_games
from keima.training.data.store import GameStore, TestGames, split_store
from keima.training.distill.searches import Within, network_searcher, program_searcher, search_games, searched_games
from keima.training.run.loop import train
from keima.training.run.preflight import World
from keima.training.run.recipe import read_recipe
from keima.training.run.sources import open_games, open_teacher
from keima.training.selfplay.columns import describe_row

PGN = """[Event "a"]
[Result "0-1"]

1. f3 e5 2. g4 Qh4# 0-1

[Event "b"]
[Result "1/2-1/2"]

1. d4 d5 2. c4 e6 3. Nc3 Nf6 1/2-1/2
"""


@pytest.fixture
def store(tmp_path: Path) -> GameStore:
    (tmp_path / "games.pgn").write_text(PGN)
    import_games([tmp_path / "games.pgn"], tmp_path / "games.parquet", min_moves=1)
    return GameStore.open(tmp_path / "games.parquet")


class Oracle:
    """Says of every position that its first two legal moves, in the order of their names, win 60 and 50 %."""

    name = "oracle"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, positions):
        for position in positions:
            assert isinstance(position, Position)
            self.asked.append(position.fen())
            moves = sorted(position.legal())[:2]
            mate = Opinion(1.0, mate=1, pv=("d8h4",))
            found = [Opinion(chance, pv=(move,)) for chance, move in zip((0.6, 0.5), moves, strict=True)]
            if "d8h4" in position.legal():
                found = [mate, *found]
            yield Opinion(found[0].winrate, pv=found[0].pv, moves=tuple(found))

    def close(self) -> None:
        pass


def plies(store: GameStore) -> list[list[dict]]:
    return [to_json(game, describe_row)["plies"] for game in export(store)]


def test_what_a_program_says_is_kept_beside_the_moves(store, tmp_path):
    oracle, out = Oracle(), tmp_path / "searched.parquet"
    assert search_games(store, out, [program_searcher(oracle, 0.1)]) == len(oracle.asked) == 4 + 6
    assert oracle.asked[0] == keima.games.chess.Position.start().fen()
    found = plies(GameStore.open(out))
    share = math.exp(0) / (math.exp(0) + math.exp(-1))  # 0.1 of a chance apart, at a temperature of 0.1
    first = found[0][0]
    assert first["kind"] == "full"
    assert first["q"] == pytest.approx(0.2, abs=1e-4)  # 2 · 0.6 − 1
    assert first["policy"] == {"a2a3": pytest.approx(share, abs=1e-4), "a2a4": pytest.approx(1 - share, abs=1e-4)}
    mate = found[0][3]["policy"]
    assert mate["d8h4"] == pytest.approx(1 / (1 + math.exp(-5) + math.exp(-6)), abs=1e-4)  # 1.1 against 0.6 and 0.5
    before, after = list(export(store)), list(export(GameStore.open(out)))
    assert [game.record.turns for game in before] == [game.record.turns for game in after]


def test_a_share_is_drawn_by_lot_and_many_searchers_find_the_same(store, tmp_path):
    outs = [tmp_path / f"{k}.parquet" for k in range(3)]
    counts = [
        search_games(store, outs[0], [program_searcher(Oracle(), 0.1)], share=0.5, seed=1),
        search_games(store, outs[1], [program_searcher(Oracle(), 0.1) for _ in range(3)], share=0.5, seed=1),
        search_games(store, outs[2], [program_searcher(Oracle(), 0.1)], share=0.5, seed=2),
    ]
    assert 0 < counts[0] == counts[1] < 10
    assert outs[0].read_bytes() == outs[1].read_bytes()
    kinds = [[ply["kind"] for game in plies(GameStore.open(out)) for ply in game] for out in outs]
    assert kinds[0] != kinds[2]
    assert kinds[0].count("full") == counts[0]


def test_what_searches_found_stays_with_the_games_when_a_store_is_split(tmp_path):
    games = "".join(
        f"1. {file}{rank} {reply} 1-0\n\n" for file in "abcdefgh" for rank in "34" for reply in ("e5", "d5")
    )
    (tmp_path / "games.pgn").write_text(games)
    import_games([tmp_path / "games.pgn"], tmp_path / "games.parquet", min_moves=1)
    found = tmp_path / "searched.parquet"
    search_games(GameStore.open(tmp_path / "games.parquet"), found, [program_searcher(Oracle(), 0.1)])
    report = split_store(GameStore.open(found), tmp_path / "split", TestGames(fraction=0.5))
    assert report.train + report.test == 32
    halves = [GameStore.open(tmp_path / "split" / f"{name}.parquet") for name in ("train", "test")]
    assert sorted(map(str, plies(halves[0]) + plies(halves[1]))) == sorted(map(str, plies(GameStore.open(found))))


def test_a_networks_search_teaches_its_visits(store, tmp_path):
    torch.manual_seed(0)
    network = create("lc0-10x128", blocks=1, channels=8, se_channels=4).eval()
    evaluator = Evaluator(network, "torch")
    search_games(store, tmp_path / "out.parquet", [network_searcher(evaluator, 12)], together=2)
    positions = [position for game in export(store) for position in list(game.record.positions())[:-1]]
    results = keima.search_batch(evaluator, positions, 12)
    found = [ply for game in plies(GameStore.open(tmp_path / "out.parquet")) for ply in game]
    for ply, result in zip(found, results, strict=True):
        total = sum(move.visits for move in result.moves)
        wanted = {move.move: move.visits / total for move in result.moves}
        assert ply["policy"] == pytest.approx(wanted, abs=1e-4)
        assert ply["q"] == pytest.approx(result.value, abs=1e-4)


def test_a_network_searches_any_number_of_positions():
    """More than there is memory for at once: four long games of Go are."""
    torch.manual_seed(0)
    evaluator = Evaluator(create("connect-four", blocks=1, channels=8).eval(), "torch", batch_size=64)
    positions = [keima.connect_four.Position.start()] * 1100
    assert len(network_searcher(evaluator, 2)(positions)) == 1100
    assert [len(lines) for lines in Within(evaluator, visits=3, lines=9, even=1.0).draw(positions, 1)] == [2] * 1100


RECIPE = """
[network]
name = "lc0-10x128"
blocks = 1
channels = 8
se_channels = 4
[data]
train = "{store}"
test = "{store}"
searches = true
[optimizer]
kind = "adamw"
learning_rate = 0.02
[run]
steps = 60
batch_size = 10
evaluate_every = 60
device = "cpu"
"""


def test_training_learns_what_was_found_and_not_what_was_played(store, tmp_path):
    out = tmp_path / "searched.parquet"
    search_games(store, out, [program_searcher(Oracle(), 0.01)])
    games = searched_games(GameStore.open(out))
    assert games.positions == 10
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.format(store=out))
    train(read_recipe(recipe), tmp_path / "run")
    evaluator = Evaluator(keima.load(tmp_path / "run" / "network.pb.gz"), "torch")
    start = Position.start()
    (found,) = evaluator([start])
    assert max(found.policy, key=found.policy.get) == "a2a3"  # the oracle's first, which nobody played
    assert found.value == pytest.approx(0.2, abs=0.15)

    def score(*options: str) -> dict:
        command = ["data", "score", str(tmp_path / "run" / "network.pb.gz"), str(out), "--json", *options]
        return json.loads(CliRunner().invoke(app, command).output)

    guessed, played = score("--searches"), score()
    assert guessed["top1"] > 0.85 > 0.3 > played["top1"]
    assert guessed["value_mse"] < 0.1 < played["value_mse"]


def test_a_teacher_speaks_beside_searches(store, tmp_path):
    """Targets in the middle between those of the searches and the teacher's, position by position."""
    out, recipe, file = tmp_path / "searched.parquet", tmp_path / "recipe.toml", tmp_path / "teacher.pb.gz"
    search_games(store, out, [program_searcher(Oracle(), 0.1)])
    teacher = create("lc0-10x128", blocks=1, channels=8, se_channels=4).eval()
    keima.save(teacher, file)

    def batch(share: float):
        text = RECIPE.format(store=out)
        recipe.write_text(text + (f'[teacher]\nnetwork = "{file}"\nshare = {share}\n' if share else ""))
        read = read_recipe(recipe)
        with open_games(read, teacher, World("cpu", 1, 1), tmp_path, open_teacher(read, teacher)).train as loader:
            return next(loader), loader.where(0)

    (mixed, where), (searched, same), (taught, again) = batch(0.25), batch(0), batch(1)
    np.testing.assert_equal(where, same)
    np.testing.assert_equal(where, again)
    np.testing.assert_allclose(mixed.policy_soft, 0.75 * searched.policy_soft + 0.25 * taught.policy_soft, atol=1e-6)
    np.testing.assert_allclose(mixed.value, 0.75 * searched.value + 0.25 * taught.value, atol=1e-6)
    assert np.abs(searched.policy_soft - taught.policy_soft).max() > 0.3


def test_values_are_learned_where_the_result_is_unknown(tmp_path):
    """Such a game has no result to fall back on, and every Q of it is a target all the same."""
    (tmp_path / "games.pgn").write_text(PGN.replace("0-1", "*").replace("1/2-1/2", "*"))
    import_games([tmp_path / "games.pgn"], tmp_path / "games.parquet", min_moves=1)
    search_games(
        GameStore.open(tmp_path / "games.parquet"), tmp_path / "out.parquet", [program_searcher(Oracle(), 0.1)]
    )
    games = searched_games(GameStore.open(tmp_path / "out.parquet"))
    first = np.array([0, 1, 0, 1] + [0, 1] * 3)
    wanted = np.where(first == 0, 0.2, -0.2)  # 60 % for the side to move, seen from White
    wanted[[3, 9]] = -1.0  # where Qh4 is legal, which the oracle takes for mate
    assert games.targets(0.0)["policies"].values == pytest.approx(wanted, abs=1e-4)


def test_positions_of_trees_are_searched_in_place_of_the_games(store, tmp_path):
    torch.manual_seed(0)
    network = create("lc0-10x128", blocks=1, channels=8, se_channels=4).eval()
    oracle, outs = Oracle(), [tmp_path / f"{k}.parquet" for k in range(2)]
    within = Within(Evaluator(network, "torch"), visits=12, lines=5, even=1.0)
    count = search_games(store, outs[0], [program_searcher(oracle, 0.1)], within=within, together=2)
    played = [[move for _, move in game.record.turns] for game in export(store)]
    roots = [line[:ply] for line in played for ply in range(len(line)) if line[ply] != "d8h4"]
    found = GameStore.open(outs[0])
    assert len(found) == count == len(oracle.asked) == 9 * 5, "a mate in one is all that its tree looks at"
    asked = []
    for number, (game, seen) in enumerate(zip(export(found), plies(found), strict=True)):
        moves = [move for _, move in game.record.turns]
        assert game.row["number"] == number
        assert game.record.result == "*"
        ply = len(roots[number // 5])
        assert moves[:ply] == roots[number // 5]
        assert game.row["source"].endswith(f"@{ply}")
        assert len(moves) >= ply + 2, "to a position of the tree, and the best move there"
        assert [ply["kind"] for ply in seen] == ["opening"] * (len(moves) - 1) + ["full"]
        before = list(game.record.positions())[-2]
        assert moves[-1] == max(seen[-1]["policy"], key=seen[-1]["policy"].get)
        asked.append(before.fen())
    assert asked == oracle.asked
    assert {game.row["key"] for game in export(found)} == {game.row["key"] for game in export(store)}
    assert searched_games(found).positions == 45
    again = [program_searcher(Oracle(), 0.1) for _ in range(3)]
    search_games(store, outs[1], again, within=within, together=2)
    assert outs[0].read_bytes() == outs[1].read_bytes()
    keima.save(network, tmp_path / "net.pb.gz")
    options = ["--visits", "4", "--within-visits", "6", "--lines", "2", "--even", "1", "--backend", "torch"]
    files = [str(tmp_path / name) for name in ("games.parquet", "net.pb.gz", "out.parquet")]
    told = CliRunner().invoke(app, ["data", "search", *files[:2], "-o", files[2], "--within", files[1], *options])
    assert "2 games, 18 positions searched" in told.output
    none = Within(within.evaluator, even=0.0, visits=12)
    assert search_games(store, outs[1], [program_searcher(Oracle(), 0.1)], within=none) == 0


@pytest.mark.parametrize(
    ("file", "text", "system"),
    [
        ("a.sgf", "(;GM[1]SZ[7]KM[9]HA[2]AB[bb][ff]RE[W+3.5];W[cc];B[dd];W[tt];B[ee])", "katago-b6c96"),
        ("a.c4", "ddcb 1-0\n", "connect-four"),
    ],
)
def test_trees_of_every_game_are_kept_as_its_store_has_moves(tmp_path, file, text, system):
    (tmp_path / file).write_text(text)
    import_games([tmp_path / file], tmp_path / "games.parquet", min_moves=1)
    torch.manual_seed(0)
    evaluator = Evaluator(create(system, blocks=2, channels=16).eval(), "torch")
    search, asked, answers = network_searcher(evaluator, 8), [], []

    def searcher(positions):
        asked.extend(positions)
        answers.extend(search(positions))
        return answers[-len(positions) :]

    store, out = GameStore.open(tmp_path / "games.parquet"), tmp_path / "out.parquet"
    search_games(store, out, [searcher], within=Within(evaluator, visits=20, lines=9, even=1.0))
    assert len(asked) == 4 * 9
    for game, seen, position, (q, moves, _) in zip(
        export(GameStore.open(out)), plies(GameStore.open(out)), asked, answers, strict=True
    ):
        assert list(game.record.positions())[-2].to_json() == position.to_json()
        assert seen[-1]["q"] == pytest.approx(q, abs=1e-4)
        assert game.record.turns[-1][1] in moves
        assert game.row.get("score") is None


def test_what_cannot_be_is_refused(store, tmp_path):
    with pytest.raises(BadRequest, match=r"games\.parquet: holds no searches"):
        searched_games(store)
    search_games(store, tmp_path / "none.parquet", [program_searcher(Oracle(), 0.1)], share=0.0)
    with pytest.raises(BadRequest, match="no position of it was searched"):
        searched_games(GameStore.open(tmp_path / "none.parquet"))
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.format(store="x.parquet").replace("searches = true", "searches = true\nlast_ply = 9"))
    with pytest.raises(BadRequest, match=r"data\.last_ply: does not go with data\.searches"):
        read_recipe(recipe)
    run = CliRunner().invoke
    missing = run(app, ["data", "search", str(store.path), "uci:no-such-program", "-o", str(tmp_path / "o.parquet")])
    assert missing.exit_code == 2
    assert "no-such-program: no such program" in missing.output
    assert not (tmp_path / "o.parquet").exists()
