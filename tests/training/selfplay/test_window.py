"""Windows: which games a generation learns from, and its batches."""

from __future__ import annotations

import json

import numpy as np
import pytest

import keima
from keima.errors import BadStore
from keima.games.game import GAMES
from keima.games.playing import Verdict
from keima.systems.katago.inputs import KataGoEncoding
from keima.systems.lc0.inputs import Lc0Encoding
from keima.training.data.batches import BatchMaker
from keima.training.selfplay import window as windows
from keima.training.selfplay.game import FAST, FULL, Ply, SelfplayGame
from keima.training.selfplay.recipe import WindowRecipe
from keima.training.selfplay.shards import parse_shard, shard_bytes, shard_games, write_shard
from keima.training.selfplay.store import Store
from keima.training.selfplay.window import WindowBatches, Windows, open_window, resign_threshold
from tests.training.selfplay.made import made_game
from tests.training.selfplay.runs import recipe


def silent(message):
    raise AssertionError(message)


def fulls(games):
    return sum(ply.kind == FULL for game in games for ply in game.plies)


def block(first, count=5, **options):
    return [made_game("connect_four", number, longest=42, **options) for number in range(first, first + count)]


def small(first=60, **window):
    return recipe(window={"first": first, "steps": 3, "reuse": 4.0, **window}, run={"steps": 9, "batch_size": 16})


def same(one, other):
    """Are two batches equal, everything in them?"""
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("policy", "value", "policy_soft", "game", "ply")]
    pairs += [(one.inputs[name], other.inputs[name]) for name in one.inputs]
    return all((left is None and right is None) or np.array_equal(left, right, equal_nan=True) for left, right in pairs)


# --- Which games ------------------------------------------------------------------------------------------------------


def test_katagos_formula():
    """Wu 2019, appendix C, with its c = 250,000, β = 0.4, α = 0.75; worked by hand."""
    window = WindowRecipe(first=250_000, growth=0.4, exponent=0.75)
    assert window.size(100_000) == 100_000
    assert window.size(250_000) == 250_000
    # 16 c: 16^0.75 = 8, so 1 + 0.4 · 7 / 0.75 = 4.7333…
    assert window.size(4_000_000) == 1_183_334
    # 81 c: 81^0.75 = 27, so 1 + 0.4 · 26 / 0.75 = 14.8666…
    assert window.size(20_250_000) == 3_716_667
    # 256 positions a step, 200 steps, each position learned 4 times: 12,800 more a generation
    assert [WindowRecipe(first=1000).needed(k, 256) for k in (1, 2, 11)] == [1000, 13_800, 129_000]


def test_grows_by_whole_blocks_and_no_more_than_needed(tmp_path):
    store, small_recipe = Store(tmp_path), small()
    blocks = [block(first) for first in range(0, 60, 5)]
    assert open_window(store, small_recipe, 1, silent) is None
    names, there = [], 0
    for number, games in enumerate(blocks):
        names.append(write_shard(store, games))
        there += fulls(games)
        enough = number + 1 if there >= 60 else None
        window = open_window(store, small_recipe, 1, silent)
        assert (window is None) == (enough is None)
        if window is not None:
            break
    for games in blocks[len(names) :]:
        write_shard(store, games)
    again = open_window(store, small_recipe, 1, silent)
    assert again.manifest == window.manifest == json.loads(store.read("windows/000001.json"))
    assert window.manifest["shards"] == names
    assert window.manifest["games"] == 5 * len(names)
    assert window.manifest["positions"] == there == sum(positions for _, positions in window.manifest["counts"])
    second = open_window(store, small_recipe, 2, silent)
    needed = small_recipe.window.needed(2, 16)
    assert second.manifest["positions"] >= needed > second.manifest["positions"] - second.manifest["counts"][-1][1]


def test_holds_the_newest_games(tmp_path):
    store, wide = Store(tmp_path), small(first=20, reuse=0.1, growth=0.1)
    blocks = [block(first) for first in range(0, 200, 5)]
    for games in blocks:
        write_shard(store, games)
    window = open_window(store, wide, 2, silent)
    games = {game.number: game for games in blocks for game in games}
    numbers = window.games.number.tolist()
    last = numbers[-1]
    assert numbers == list(range(numbers[0], last + 1))
    size = wide.window.size(window.manifest["positions"])
    assert size < window.manifest["positions"]
    assert fulls(games[number] for number in numbers) == window.positions == window.manifest["window_positions"] >= size
    assert fulls(games[number] for number in numbers[1:]) < size
    assert window.manifest["positions"] == fulls(games[number] for number in range(last + 1))
    assert (window.manifest["first_number"], window.manifest["window_games"]) == (numbers[0], len(numbers))
    rows, turns = window.games.full()
    chosen = [games[numbers[row]].plies[turn].kind for row, turn in zip(rows, turns, strict=True)]
    assert chosen == [FULL] * window.positions


def test_a_game_sent_twice_counts_once(tmp_path):
    once, twice = Store(tmp_path / "1"), Store(tmp_path / "2")
    for first in range(0, 40, 5):
        for store in (once, twice):
            write_shard(store, block(first))
        write_shard(twice, block(first + 2, 3))
        write_shard(twice, block(first + 1, 4))
    one, two = (Windows(store, small(), silent).open(1) for store in (once, twice))
    assert len(two.manifest["shards"]) > len(one.manifest["shards"])
    for key in ("games", "positions", "window_games", "window_positions", "first_number"):
        assert one.manifest[key] == two.manifest[key]
    assert one.games.number.tolist() == two.games.number.tolist()
    assert np.array_equal(one.games.values, two.games.values)
    batches = [WindowBatches(store, small(), network(), {"policy"}, silent) for store in (once, twice)]
    assert all(same(next(batches[0]), next(batches[1])) for _ in range(3))
    for each in batches:
        each.close()


def test_of_two_games_of_a_number_the_first_name_counts(tmp_path):
    store, several = Store(tmp_path), []
    for seed in range(4):
        games = block(0, 20, seed=seed)
        several.append((write_shard(store, games), games))
    name, games = min(several)
    window = open_window(store, small(), 1, silent)
    assert window.manifest["positions"] == fulls(games) >= 60
    assert window.manifest["shards"] == [name]


def test_damaged_shards_are_left_out_and_named_once(tmp_path):
    store, said = Store(tmp_path), []
    bad = write_shard(store, block(0, 20))
    data = store.read(bad)
    store.write(bad, data[:-50])
    store.write("games/00000000-00000019-0123456789abcdef.parquet", data)
    store.write("games/notes.txt", b"")
    found = Windows(store, small(), said.append)
    assert found.open(1) is None
    assert found.open(1) is None
    good = write_shard(store, block(20, 20))
    window = found.open(1)
    assert window.manifest["shards"] == [good]
    assert window.games.number.tolist() == sorted(game.number for game in block(20, 20))[-len(window.games.number) :]
    assert len(said) == 3
    for name in (bad, "0123456789abcdef", "notes.txt"):
        assert sum(name in message for message in said) == 1
    store.write(good, store.read(good)[:-1])  # one that a manifest names has to be there
    with pytest.raises(BadStore, match=good):
        open_window(store, small(), 1, said.append)


def test_missing_blocks_are_waited_for_and_passed_over(tmp_path):
    store = Store(tmp_path)
    first = write_shard(store, block(0))
    later = [write_shard(store, block(number)) for number in range(10, 30, 5)]
    assert Windows(store, small(reuse=0.5), silent).open(1, holes=False) is None
    window = Windows(store, small(reuse=0.5), silent).open(1)
    assert window.manifest["shards"] == [first, *later][: len(window.manifest["shards"])]
    late = write_shard(store, block(5))
    for number in range(30, 60, 5):
        write_shard(store, block(number))
    second = Windows(store, small(reuse=0.5), silent).open(2, holes=False)
    assert late in second.manifest["shards"]
    assert second.manifest["shards"] == sorted(second.manifest["shards"])
    assert {*window.manifest["shards"]} < {*second.manifest["shards"]}


def test_broken_manifest(tmp_path):
    store = Store(tmp_path)
    for data in (b"{", b"{}", b"[]", b'{"shards": ["x"], "counts": [[1, 1]]}'):
        store.write("windows/000001.json", data)
        with pytest.raises(BadStore, match=r"windows/000001\.json|no name of a shard"):
            open_window(store, small(), 1, silent)


# --- Batches ----------------------------------------------------------------------------------------------------------


def network():
    return keima.create("connect-four", blocks=1, channels=4, value_hidden=4)


@pytest.fixture
def filled(tmp_path):
    store = Store(tmp_path)
    for first in range(0, 100, 5):
        write_shard(store, block(first))
    return store


def test_batches_follow_from_the_manifests(filled):
    """Anywhere in the run, begun again or not, whatever has come since."""
    batches = WindowBatches(filled, small(), network(), {"policy", "value"}, silent)
    found = [next(batches) for _ in range(9)]
    batches.close()
    write_shard(filled, block(100))
    write_shard(filled, block(2, 40, seed=9))
    again = WindowBatches(filled, small(), network(), {"policy", "value"}, silent)
    for step in (4, 8, 0, 1, 2, 3, 7):
        again.seek(step)
        assert same(next(again), found[step])
    assert again.window.generation == 3
    again.close()
    assert again.positions == 60


@pytest.mark.parametrize("trace", [1.0, 0.5])
def test_the_value_learns_returns(filled, trace):
    """For the side to move; with λ = 1 they are the results."""
    batches = WindowBatches(filled, recipe(window={"first": 60, "value_lambda": trace}), network(), {"value"}, silent)
    batch = next(batches)
    games = batches.window.games
    batches.close()
    returns = games.returns(trace)[games.games.start[batch.game] + batch.ply]
    assert batch.value == pytest.approx(np.where(batch.first_to_move, returns, -returns), abs=1e-6)
    results = np.where(batch.first_to_move, 1, -1) * games.games.winner[batch.game]
    assert (batch.value == results).all() == (trace == 1.0)


def test_parts_of_a_step_and_every_position_once(filled):
    """`accumulate` parts belong to one step; no position of a window comes twice before all have come."""
    parts = recipe(window={"first": 60, "steps": 3}, run={"steps": 9, "batch_size": 16, "accumulate": 2})
    batches = WindowBatches(filled, parts, network(), {"policy"}, silent)
    seen = []
    for step in range(6):
        batch = next(batches)
        assert len(batch) == 8
        assert batches.window.generation == 1
        seen += zip(batch.game.tolist(), batch.ply.tolist(), strict=True)
        assert batches._next == step + 1
    next(batches)
    assert batches.window.generation == 2
    assert len(set(seen)) == 48 <= 60
    batches.close()


def test_two_processes_share_a_batch(filled):
    from keima.training.run.preflight import World

    whole = WindowBatches(filled, small(), network(), {"policy", "value"}, silent)
    halves = [WindowBatches(filled, small(), network(), {"policy", "value"}, silent, world=World("cpu", 2, 1, rank))
              for rank in range(2)]  # fmt: skip
    for _ in range(4):
        batch, parts = next(whole), [next(half) for half in halves]
        assert np.array_equal(batch.planes, np.concatenate([part.planes for part in parts]))
    for each in (whole, *halves):
        each.close()


def test_waiting_is_told_and_can_be_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(windows, "POLL_SECONDS", 0.01)
    store, said = Store(tmp_path), []
    write_shard(store, block(0))
    looks = iter(range(3))
    stopped = lambda: next(looks, None) is None  # noqa: E731
    batches = WindowBatches(store, small(), network(), {"policy"}, said.append, stopped)
    with pytest.raises(KeyboardInterrupt):
        batches.prepare()
    assert said == [f"generation 1 waits for games: {fulls(block(0))} of 60 positions"]
    write_shard(store, block(5, 30))
    batches.stopped = lambda: False
    batches.prepare()
    assert batches.window.generation == 1
    batches.close()


# --- What a position teaches ------------------------------------------------------------------------------------------


def turned(board, symmetry):
    """A board [H, W] under a symmetry, by NumPy alone."""
    board = board[::-1] if symmetry & 1 else board
    board = board[:, ::-1] if symmetry & 2 else board
    return board.T if symmetry & 4 else board


def drawn(game, turn, shape):
    """π of a ply on the board [H, W], and of the pass, by the names of its moves."""
    board, passed = np.zeros(shape), 0.0
    if turn >= len(game.plies) or game.plies[turn].kind != FULL:
        return board, passed
    position = game.start.play(*(ply.move for ply in game.plies[:turn]))
    kernels = GAMES["go"].kernels
    side = kernels.side(position.record[0])
    for code, weight in zip(game.plies[turn].moves.tolist(), game.plies[turn].weights.tolist(), strict=True):
        name = kernels.name(position, code, side)
        if name == "pass":
            passed = weight
        else:
            board[shape[0] - int(name[1:]), "ABCDEFGHJ".index(name[0])] = weight
    return board, passed


@pytest.mark.parametrize("starts", [(0,), (0, 1, 2)], ids=["one size", "several sizes"])
@pytest.mark.parametrize("symmetry", range(8))
def test_policies_turn_with_the_board(starts, symmetry):
    """π and the reply's π of games of Go, masked boards among them, as an independent turn of the board has them."""
    games = [made_game("go", number, start=starts[number % len(starts)], most=30) for number in range(12)]
    found = shard_games(parse_shard(shard_bytes(games)))
    maker = BatchMaker(found.games, KataGoEncoding(), {"policy", "value", "reply"}, found.policies)
    chosen = np.repeat(np.arange(len(games)), np.diff(found.games.start))
    turns = np.concatenate([np.arange(len(game.plies)) for game in games])
    batch = maker.make(chosen, turns, np.full(len(chosen), symmetry))
    height, width = batch.planes.shape[2:]
    for row, (number, turn) in enumerate(zip(chosen.tolist(), turns.tolist(), strict=True)):
        game = games[number]
        shape = game.start.ysize, game.start.xsize
        for soft, at in ((batch.policy_soft, turn), (batch.reply_soft, turn + 1)):
            board, passed = drawn(game, at, shape)
            board = turned(board, symmetry)
            expected = np.zeros((height, width))
            expected[: board.shape[0], : board.shape[1]] = board
            assert soft[row, :-1].reshape(height, width) == pytest.approx(expected, abs=2e-5)
            assert soft[row, -1] == pytest.approx(passed, abs=2e-5)
        to_play = "BW".index(game.start.play(*(ply.move for ply in game.plies[:turn])).to_play)
        assert batch.value[row] == {None: 0, to_play: 1, 1 - to_play: -1}[game.verdict.winner]
        if game.plies[turn].kind == FULL:
            assert batch.policy_soft[row].sum() == pytest.approx(1, abs=1e-6)
            assert batch.policy_soft[row, batch.policy[row]] > 0  # the move played is one of π here


@pytest.mark.parametrize("symmetry", [0, 2])
def test_policies_of_connect_four(symmetry):
    games = block(0, 8)
    found = shard_games(parse_shard(shard_bytes(games)))
    maker = BatchMaker(found.games, network().encoding, {"policy", "reply"}, found.policies)
    rows, turns = found.full()
    batch = maker.make(rows, turns, np.full(len(rows), symmetry))
    assert batch.policy_soft.shape == (len(rows), 7)
    for row, (game, turn) in enumerate(zip(rows, turns, strict=True)):
        expected = np.zeros(7)
        ply = games[game].plies[turn]
        expected[ply.moves] = ply.weights
        assert batch.policy_soft[row] == pytest.approx(expected[::-1] if symmetry else expected, abs=2e-5)
        plies = games[game].plies[turn + 1 : turn + 2]
        assert (batch.reply_soft[row].sum() > 0) == (bool(plies) and plies[0].kind == FULL)


def test_policies_of_chess():
    """By the index that the encoding's own table of legal moves gives each name."""
    games = [made_game("chess", number, longest=60, most=25) for number in range(3)]
    found = shard_games(parse_shard(shard_bytes(games)))
    encoding, kernels = Lc0Encoding(), GAMES["chess"].kernels
    rows, turns = found.full()
    batch = BatchMaker(found.games, encoding, {"policy"}, found.policies).make(rows, turns, np.zeros(len(rows), int))
    for row, (game, turn) in enumerate(zip(rows, turns, strict=True)):
        position = games[game].start.play(*(ply.move for ply in games[game].plies[:turn]))
        legal = encoding.legal_moves(position)
        index = dict(zip(legal.names, legal.indices, strict=True))
        ply, expected = games[game].plies[turn], np.zeros(1858)
        side = kernels.side(position.record[0])
        expected[[index[kernels.name(position, code, side)] for code in ply.moves.tolist()]] = ply.weights
        assert batch.policy_soft[row] == pytest.approx(expected, abs=2e-5)


# --- Resigning --------------------------------------------------------------------------------------------------------


def with_values(number, values, winner, played_out=True):
    """A game of connect four in which these Q were seen, the first side's first; it is won by that side."""
    moves = ("a", "b") * 3
    start = GAMES["connect_four"].playing.start()
    plies = [Ply(move, FAST, value) for move, value in zip(moves, values, strict=False)]
    position = start.play(*(ply.move for ply in plies))
    verdict = Verdict(winner, ("1-0", "0-1")[winner], "so")
    return SelfplayGame(number, start, position, plies, verdict, played_out)


def brute_force(games, allowed):
    """The same by trying every threshold."""
    best = None
    for t in np.arange(1000, -1, -1) / 1000:
        ends = []
        for game in games:
            for turn, ply in enumerate(game.plies):
                if game.played_out and ply.value < -t:
                    ends.append(game.verdict.winner == turn % 2)
                    break
        if len(ends) * allowed >= 1 and sum(ends) <= allowed * len(ends):
            best = t
    return best


def test_resign_threshold_by_brute_force():
    rng = np.random.default_rng(5)
    met = 0
    for case in range(12):
        games = []
        for number in range(40):
            winner = int(rng.integers(2))
            drift = np.where(np.arange(6) % 2 == winner, 0.15, -0.15) * np.arange(6)
            values = np.round((drift + rng.normal(0, 0.3, 6)).clip(-1, 1), 2) + 0.0005
            games.append(with_values(number, values.clip(-1, 1).tolist(), winner, bool(rng.random() < 0.8)))
        allowed = float(rng.choice([0.05, 0.1, 0.2, 0.3]))
        found = resign_threshold(shard_games(parse_shard(shard_bytes(games))), allowed)
        expected = brute_force(games, allowed)
        assert (found is None) == (expected is None), case
        if found is not None:
            assert found == pytest.approx(expected, abs=0.0021)
            met += 1
    assert met > 3


def test_nobody_resigns_on_too_few_games():
    games = [with_values(number, [-0.9], 1) for number in range(19)]
    found = shard_games(parse_shard(shard_bytes(games)))
    assert resign_threshold(found, 0.05) is None
    games.append(with_values(19, [-0.9], 1))
    found = shard_games(parse_shard(shard_bytes(games)))
    assert resign_threshold(found, 0.05) == 0.0
    assert resign_threshold(found, 0.0) is None
