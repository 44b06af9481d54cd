"""Training batches: the planes and targets of the positions they say they hold, the same however they are asked."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import keima
from keima.errors import BadRequest
from keima.games.files import read_records
from keima.games.go.board import BLACK, WHITE, new_boards
from keima.games.go.history import HISTORY, begin, give_turn, is_playable
from keima.games.go.moves import play_many, play_move
from keima.games.go.vertices import symmetric_array
from keima.games.rows import rank_number
from keima.systems.alphago.inputs import AlphaGoEncoding
from keima.systems.alphago_zero.inputs import AlphaGoZeroEncoding, LeelaZeroEncoding
from keima.systems.katago.inputs import KataGoEncoding
from keima.systems.katago_guide.inputs import KataGoGuideEncoding
from keima.systems.lc0.inputs import Lc0Encoding
from keima.systems.lc0.network import Lc0Config, Lc0Network
from keima.systems.loss import loss_for
from keima.systems.targets import TrainingBatch
from keima.training.data.batches import Loader, PositionFilter
from tests.training.flat_games import ChessGame, Game, flat_of, flat_of_chess, random_chess, random_game

EVERYTHING = frozenset({"policy", "value", "score", "ownership", "moves_left"})
BASIC = frozenset({"policy", "value", "moves_left"})
SETUP = [("B", "C3"), ("B", "G7"), ("W", "E5")]
ENCODINGS = {
    "alphago": AlphaGoEncoding(pass_move=True),
    "alphago-value": AlphaGoEncoding(49),
    "alphago-zero": AlphaGoZeroEncoding(),
    "leela-zero": LeelaZeroEncoding(),
    "katago": KataGoEncoding(),
    "katago-guide": KataGoGuideEncoding(),
}
START_960 = "nqrkbbrn/pppppppp/8/8/8/8/PPPPPPPP/NQRKBBRN w GCgc - 0 1"
ENDGAME = "8/5k2/8/3R4/8/2K5/6p1/8 b - - 12 50"


@pytest.fixture(scope="module")
def go_games():
    """Games under many rules, with passes, moves out of turn and stones set up."""
    rules = ("chinese", "japanese", "aga", "tromp-taylor", "aga-button", "stone-scoring")
    games = [random_game(seed, rules=rules[seed % 6], passes=0.03 * (seed % 3)) for seed in range(9)]
    games += [random_game(seed, rules=rules[seed % 6], out_of_turn=0.1, setup=SETUP) for seed in range(20, 24)]
    return games


@pytest.fixture(scope="module")
def chess_games():
    games = [random_chess(seed) for seed in range(6)]
    return [*games, random_chess(7, fen=START_960, chess960=True), random_chess(8, fen=ENDGAME)]


def rows(loader, step):
    """(row, game, turn, symmetry) of each position of a batch."""
    return [(row, *one) for row, one in enumerate(zip(*(a.tolist() for a in loader.where(step)), strict=True))]


@pytest.mark.parametrize("name", ENCODINGS)
def test_planes_and_policy_are_those_of_inference(go_games, name):
    encoding = ENCODINGS[name]
    loader = Loader(flat_of(go_games), encoding, 48, seed=4)
    with loader:
        batch = loader.batch(3)
        seen = set()
        for row, game, turn, symmetry in rows(loader, 3):
            position = go_games[game].position(turn)
            expected = encoding.encode([position], symmetry).inputs
            assert np.array_equal(batch.planes[row], expected["planes"][0]), (game, turn, symmetry)
            if "globals" in batch.inputs:
                assert np.array_equal(batch.inputs["globals"][row], expected["globals"][0]), (game, turn, symmetry)
            legal = encoding.legal_moves(position, symmetry)
            played = go_games[game].moves[turn][1]
            wanted = dict(zip(legal.names, legal.indices.tolist(), strict=True)).get(played, -1)
            assert batch.policy[row] == wanted, (game, turn, symmetry)
            seen.add(symmetry)
        assert len(seen) == 8
        assert batch.planes.dtype == np.float32
        assert batch.policy.dtype == np.int64
        assert "mask" not in batch.inputs


def test_outcomes_are_the_side_to_moves(go_games):
    flat = flat_of(go_games)
    with Loader(flat, AlphaGoZeroEncoding(), 64, targets=EVERYTHING) as loader:
        batch = loader.batch(0)
        for row, game, turn, _ in rows(loader, 0):
            colour = go_games[game].moves[turn][0]
            sign = 1 if colour == "B" else -1
            assert batch.value[row] == sign * go_games[game].winner
            assert batch.score[row] == sign * go_games[game].score
            assert batch.moves_left[row] == len(go_games[game].moves) - turn
            assert batch.ply[row] == turn
            assert batch.game[row] == game
            assert batch.first_to_move[row] == (colour == "B")


def test_what_a_record_does_not_tell_is_missing():
    game = random_game(1)
    game.winner, game.score = -2, float("nan")
    with Loader(flat_of([game]), AlphaGoZeroEncoding(), 8, targets=EVERYTHING) as loader:
        batch = loader.batch(0)
    assert np.isnan(batch.value).all()
    assert np.isnan(batch.score).all()
    assert np.isnan(batch.ownership).all()
    with Loader(flat_of([game]), AlphaGoZeroEncoding(), 8, targets={"policy"}) as loader:
        batch = loader.batch(0)
    assert (batch.value, batch.score, batch.ownership, batch.moves_left) == (None,) * 4


def test_a_policy_without_a_pass_misses_passes_only():
    game = random_game(3, passes=0.5)
    with Loader(flat_of([game]), AlphaGoEncoding(), 40) as loader:
        batch = loader.batch(0)
    passed = np.array([vertex == "pass" for _, vertex in game.moves])
    assert passed.any()
    assert np.array_equal(batch.policy == -1, passed[batch.ply])


def alternating(vertices):
    """Black's and White's moves in turn."""
    return list(zip(itertools.cycle("BW"), vertices.split(), strict=False))


# Two walls face each other: Black owns columns A and B, White D and E, nobody C.
FINAL = Game(alternating("B5 D5 B4 D4 B3 D3 B2 D2 B1 D1 pass pass"), (5, 5), rules="tromp-taylor", komi=0.5)


def ownership_of(**changes):
    game = Game(**{**vars(FINAL), **changes})
    with Loader(flat_of([game]), KataGoEncoding(), 24, targets=EVERYTHING) as loader:
        batch = loader.batch(0)
        return game, batch, rows(loader, 0)


def test_ownership_is_the_final_boards_for_the_side_to_move_under_the_symmetry():
    game, batch, places = ownership_of(winner=-1)  # no score recorded, the winner as counted: 10 to 10, komi 0.5
    final = game.position(len(game.moves))
    black = np.where(final.owners() == BLACK, 1, np.where(final.owners() == WHITE, -1, 0))
    assert sorted(np.unique(black)) == [-1, 0, 1]
    for row, _, turn, symmetry in places:
        sign = 1 if game.moves[turn][0] == "B" else -1
        assert np.array_equal(batch.ownership[row], sign * symmetric_array(black, symmetry))


def test_a_recorded_score_that_the_board_does_not_have_leaves_pass_alive_points_only():
    _, batch, _ = ownership_of(winner=1, score=5.5)
    assert np.isnan(batch.ownership).all()
    _, batch, _ = ownership_of(winner=-1, score=-0.5)
    assert not np.isnan(batch.ownership).any()
    alive = alternating("A2 E5 B2 pass B1 pass C2 pass D1 pass D2 pass E2 pass pass pass")
    _, batch, places = ownership_of(moves=alive, winner=1, score=3.5)
    told = ~np.isnan(batch.ownership)
    expected = np.zeros((5, 5), bool)
    expected[3:] = True  # rows 1 and 2: a chain with the eyes A1, C1 and E1
    for row, _, _, symmetry in places:
        assert np.array_equal(told[row], symmetric_array(expected, symmetry))


def test_a_resigned_game_has_no_ownership():
    _, batch, _ = ownership_of(moves=FINAL.moves[:-2], winner=1)
    assert np.isnan(batch.ownership).all()


def test_boards_of_several_sizes_share_a_batch_by_masks():
    games = [random_game(s, size) for s, size in enumerate([(9, 9), (7, 7), (9, 5), (5, 9), (13, 13)])]
    encoding = KataGoEncoding()
    with Loader(flat_of(games), encoding, 64, targets=EVERYTHING) as loader:
        assert loader.board == (13, 13)
        batch = loader.batch(0)
        for row, game, turn, symmetry in rows(loader, 0):
            position = games[game].position(turn)
            height, width = encoding.shape(position, symmetry)
            expected = encoding.encode([position], symmetry).inputs
            assert np.array_equal(batch.planes[row, :, :height, :width], expected["planes"][0])
            assert np.array_equal(batch.inputs["globals"][row], expected["globals"][0])
            assert batch.inputs["mask"][row].sum() == height * width == batch.planes[row, 0].sum()
            assert not batch.planes[row, :, batch.inputs["mask"][row] == 0].any()
            legal = encoding.legal_moves(position, symmetry)
            index = int(legal.indices[legal.names.index(games[game].moves[turn][1])])
            assert batch.policy[row] == index // width * 13 + index % width
    assert batch.ownership.shape == (64, 13, 13)


def test_games_of_another_board_size_are_left_out_and_counted():
    games = [random_game(s, size) for s, size in enumerate([(9, 9), (9, 9), (7, 7)])]
    for encoding, kept in ((AlphaGoZeroEncoding(), 2), (AlphaGoEncoding(48, board_size=7), 1)):
        with Loader(flat_of(games), encoding, 4) as loader:
            assert loader.left_out == {"another board size": 3 - kept}
            assert loader.positions == 40 * kept
    with pytest.raises(BadRequest, match="another board size: 3"):
        Loader(flat_of(games), AlphaGoZeroEncoding(board_size=19), 4)


def test_a_rectangle_is_never_transposed():
    games = [random_game(1, (9, 5))]
    with Loader(flat_of(games), AlphaGoZeroEncoding(), 32) as loader:
        assert loader.batch(0).planes.shape == (32, 17, 5, 9)
        assert set(loader.where(0)[2].tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    "encoding", [Lc0Encoding(), Lc0Encoding("canonical-hectoplies"), Lc0Encoding("castling", "no")], ids=repr
)
def test_chess_planes_and_policy_are_those_of_inference(chess_games, encoding):
    with Loader(flat_of_chess(chess_games), encoding, 64, targets=BASIC) as loader:
        batch = loader.batch(1)
        for row, game, turn, symmetry in rows(loader, 1):
            assert symmetry == 0
            position = chess_games[game].position(turn)
            assert np.array_equal(batch.planes[row], encoding.encode([position]).inputs["planes"][0])
            legal = encoding.legal_moves(position)
            assert batch.policy[row] == legal.indices[legal.names.index(chess_games[game].moves[turn])]
            white = position.to_play == "w"
            assert batch.value[row] == (1 if white else -1) * chess_games[game].winner
            assert batch.first_to_move[row] == white


def test_evaluator_and_search_read_what_a_canonical_network_learned():
    """Its planes are turned: the king stands on file b. Trained in the board's frame, the search read another move."""
    torch.manual_seed(1)
    network = Lc0Network(Lc0Config(blocks=1, channels=16, se_channels=4, input_format="canonical"))
    game = ChessGame(["g2e2"], fen="7k/8/8/8/8/8/1K4R1/8 w - - 0 1")
    with Loader(flat_of_chess([game]), network.encoding, 8, targets=BASIC) as loader:
        batch = loader.batch(0).torch()
    loss = loss_for(network, {"value": 0})
    optimizer = torch.optim.Adam(network.parameters(), 0.01)
    network.train()
    for _ in range(60):
        optimizer.zero_grad()
        loss(network(**batch.inputs), batch).total.backward()
        optimizer.step()
    evaluator = keima.Evaluator(network.eval(), "torch")
    position = game.position(0)
    assert evaluator([position])[0].policy["g2e2"] > 0.9
    assert keima.search(evaluator, position, visits=20).best == "g2e2"


# --- One stream, however it is asked ----------------------------------------------------------------------------------


def same(one: TrainingBatch, other: TrainingBatch) -> bool:
    fields = [{**vars(each), **each.inputs, **each.context} for each in (one, other)]
    assert fields[0].keys() == fields[1].keys()
    pairs = [(fields[0][name], fields[1][name]) for name in fields[0].keys() - {"inputs", "context"}]
    return all((a is None and b is None) or np.array_equal(a, b, equal_nan=True) for a, b in pairs)


@pytest.fixture(scope="module")
def flat(go_games):
    return flat_of(go_games)


def test_a_batch_depends_on_seed_and_number_alone(flat):
    encoding = KataGoGuideEncoding()
    with Loader(flat, encoding, 24, seed=5, workers=1) as one, Loader(flat, encoding, 24, seed=5, workers=3) as other:
        streamed = list(itertools.islice(one, 40))
        assert one.step == 40
        for step in (39, 0, 17):
            assert same(streamed[step], other.batch(step))
        other.seek(30)
        assert all(same(a, b) for a, b in zip(streamed[30:], other, strict=False))
        other.seek(2)
        assert same(next(other), streamed[2])
    with Loader(flat, encoding, 24, seed=6) as different:
        assert not same(different.batch(0), streamed[0])


def test_an_epoch_holds_every_position_once_and_the_next_in_another_order(flat):
    with Loader(flat, AlphaGoZeroEncoding(), 10) as loader:
        epochs = loader.positions
        assert loader.steps_per_epoch == -(-epochs // 10)
        assert epochs == len(flat.moves)
        found = [pair for step in range(2 * epochs // 10) for pair in zip(*loader.where(step)[:2], strict=True)]
        assert len(set(found[:epochs])) == epochs
        assert len(set(found[epochs : 2 * epochs])) == len(found[epochs : 2 * epochs])
        assert found[:200] != found[epochs : epochs + 200]


def test_ranks_together_see_the_batch_of_one_process(flat):
    encoding = AlphaGoZeroEncoding()
    with Loader(flat, encoding, 30, seed=2, targets=EVERYTHING) as whole:
        parts = [Loader(flat, encoding, 10, seed=2, targets=EVERYTHING, rank=r, world_size=3) for r in range(3)]
        for step in (0, 7, 60):
            big, small = whole.batch(step), [part.batch(step) for part in parts]
            for name in ("planes", "policy", "value", "score", "ownership", "moves_left", "game", "ply"):
                joined = np.concatenate([getattr(batch, name) for batch in small])
                assert np.array_equal(joined, getattr(big, name), equal_nan=True)
        assert parts[0].steps_per_epoch == whole.steps_per_epoch
        for part in parts:
            part.close()


def test_no_symmetries_when_not_wanted(flat):
    with Loader(flat, AlphaGoZeroEncoding(), 64, symmetries=False) as loader:
        assert not loader.where(0)[2].any()


def test_tensors(flat):
    import torch

    with Loader(flat, KataGoEncoding(), 4) as loader:
        batch = loader.batch(0)
    tensors = batch.torch("cpu")
    assert len(tensors) == len(batch) == 4
    assert tensors.planes.dtype == torch.float32
    assert tensors.policy.dtype == torch.int64
    assert tensors.score is None
    assert list(tensors.inputs) == ["planes", "globals"]
    assert np.array_equal(tensors.planes.numpy(), batch.planes)


def test_batches_for_a_gpu_are_pinned_and_taught_on_the_threads(flat, monkeypatch):
    pinned = []

    def pin(tensor):
        pinned.append(tensor.clone())  # memory of its own, as a device's driver gives it
        return pinned[-1]

    def teach(batch):
        taught.append(threading.current_thread())
        return replace(batch, value=batch.value + 1)

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    for gpu in (False, True):
        taught = []
        with Loader(flat, KataGoEncoding(), 4, gpu=gpu, teach=teach) as loader:
            plain = replace(loader._maker.make(*loader.where(0)), context={})
            batch = next(loader)
        assert same(replace(batch, context={}, value=batch.value - 1), plain)
        assert (threading.main_thread() in taught) == (not gpu)
        assert bool(pinned) == gpu
    assert all(any(np.shares_memory(array, one.numpy()) for one in pinned) for array in batch.inputs.values())


# --- Which positions --------------------------------------------------------------------------------------------------


def test_plies(flat):
    wanted = PositionFilter(first_ply=5, last_ply=9)
    with Loader(flat, AlphaGoZeroEncoding(), 65, positions=wanted) as loader:
        assert loader.positions == 5 * len(flat)
        assert set(loader.batch(0).ply.tolist()) == {5, 6, 7, 8, 9}
    with pytest.raises(BadRequest, match="too short: 13"):
        Loader(flat, AlphaGoZeroEncoding(), 1, positions=PositionFilter(first_ply=40))


def test_one_position_of_each_game_and_another_one_each_epoch(flat):
    with Loader(flat, AlphaGoZeroEncoding(), len(flat), positions=PositionFilter(3, 30, one_per_game=True)) as loader:
        assert loader.positions == len(flat)
        plies = []
        for step in range(20):
            games, turns, _ = loader.where(step)
            assert sorted(games) == list(range(len(flat)))
            plies.append(turns[np.argsort(games)])
    assert np.min(plies) == 3
    assert np.max(plies) == 30
    assert all(len(set(column)) > 5 for column in np.transpose(plies))


def test_ranks_ratings_and_winners():
    games = [random_game(s) for s in range(4)]
    for game, ranks in zip(games, [("9d", "1p"), ("6d", "5d"), ("7d", ""), ("6 dan", "7D")], strict=True):
        game.ranks = ranks
    games[0].winner = -2
    with Loader(flat_of(games), AlphaGoZeroEncoding(), 4, positions=PositionFilter(lowest_rank="6d")) as loader:
        assert loader.left_out == {"a player below 6d": 2}
        assert set(loader.batch(0).game.tolist()) <= {0, 3}
    with Loader(flat_of(games), AlphaGoZeroEncoding(), 4, positions=PositionFilter(known_winner=True)) as loader:
        assert loader.left_out == {"winner unknown": 1}
    chess = [ChessGame(["e2e4"], elo=elo) for elo in ((1500, 1600), (1400, 2000), (-1, 1800))]
    with Loader(flat_of_chess(chess), Lc0Encoding(), 1, positions=PositionFilter(lowest_rating=1500)) as loader:
        assert loader.positions == 1
    for kind, wanted in ((chess, PositionFilter(lowest_rank="1d")), (games, PositionFilter(lowest_rating=1))):
        flat, encoding = (flat_of_chess(kind), Lc0Encoding()) if kind is chess else (flat_of(kind), KataGoEncoding())
        with pytest.raises(BadRequest, match="have no ra"):
            Loader(flat, encoding, 1, positions=wanted)


def test_the_order_of_ranks():
    ranks = ["30k", "2 kyu", "1k", "1d", "9 dan", "1p", "9p"]
    assert sorted(ranks, key=rank_number) == ranks
    assert np.isnan(rank_number("strong"))


def test_rules_no_katago_network_knows_are_left_out():
    games = [random_game(1), random_game(2, rules="koSPIGHTscoreAREAtaxNONEsui0")]
    with Loader(flat_of(games), KataGoEncoding(), 4) as loader:
        assert loader.left_out == {"rules the network does not know": 1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch_size": 0}, "at least 1"),
        ({"workers": 0}, "at least 1"),
        ({"rank": 2, "world_size": 2}, "rank 2 of 2"),
        ({"targets": {"policy", "mood"}}, "unknown target mood"),
        ({"encoding": Lc0Encoding()}, "for chess, the games are of go"),
        ({"encoding": KataGoEncoding(metadata=True)}, "takes a profile"),
    ],
)
def test_arguments_that_cannot_be(flat, change, words):
    arguments = {"encoding": AlphaGoZeroEncoding(), "batch_size": 4, **change}
    with pytest.raises(BadRequest, match=words):
        Loader(flat, **arguments)


def test_filters_that_cannot_be():
    for wanted, words in (({"first_ply": -1}, "ply from -1"), ({"lowest_rank": "king"}, "no rank")):
        with pytest.raises(BadRequest, match=words):
            PositionFilter(**wanted)
    with pytest.raises(BadRequest, match="chess have no ownership"):
        Loader(flat_of_chess([ChessGame(["e2e4"])]), Lc0Encoding(), 1, targets={"ownership"})
    with pytest.raises(BadRequest, match="store is empty"):
        Loader(flat_of([]), AlphaGoZeroEncoding(), 1)


# --- Threads ----------------------------------------------------------------------------------------------------------


def test_a_batch_that_failed_is_the_next_one_again(flat, monkeypatch):
    with Loader(flat, AlphaGoZeroEncoding(), 8, workers=1) as loader:
        plain = [loader.batch(step) for step in range(4)]
        make, calls = loader.batch, itertools.count()

        def fail_once(step):
            if next(calls) == 2:
                raise MemoryError("no room")
            return make(step)

        monkeypatch.setattr(loader, "batch", fail_once)
        assert same(next(loader), plain[0])
        assert same(next(loader), plain[1])
        with pytest.raises(MemoryError):
            next(loader)
        assert loader.step == 2
        assert same(next(loader), plain[2])
        assert same(next(loader), plain[3])


def test_a_closed_loader_says_so(flat):
    loader = Loader(flat, AlphaGoZeroEncoding(), 8)
    next(loader)
    loader.close()
    loader.close()
    with pytest.raises(BadRequest, match="closed"):
        next(loader)
    with pytest.raises(BadRequest, match="step -1"):
        loader.seek(-1)


# --- Replay -----------------------------------------------------------------------------------------------------------


def one_history(rules, size):
    game = Game([], size, rules=rules)
    position = game.position(0)
    boards, histories = new_boards(1, *size), np.zeros(1, HISTORY)
    histories[:] = position.history
    begin(boards[0], histories[0], BLACK, 0)
    return boards, histories


@given(
    st.sampled_from(
        ["chinese", "japanese", "tromp-taylor", "aga-button", "stone-scoring", "koSPIGHTscoreAREAtaxNONEsui1"]
    ),
    st.sampled_from([(3, 3), (2, 4), (5, 5), (9, 9)]),
    st.randoms(use_true_random=False),
    st.sampled_from([0.0, 0.02, 0.2]),
)
@settings(max_examples=80, deadline=None)
def test_many_moves_at_once_are_the_same_as_one_by_one(rules, size, chance, odd):
    """Tiny boards repeat positions soon: bans, triple repetition, moves after the end. Compared field by field."""
    boards, histories = one_history(rules, size)
    b, h = boards[0], histories[0]
    start = boards.copy(), histories.copy()
    points = [(x + 1) + (y + 1) * (size[0] + 1) for y in range(size[1]) for x in range(size[0])]
    locs, colours = [], []
    for _ in range(chance.randrange(90)):
        if chance.random() < odd:
            give_turn(b, h, 3 - int(h["to_play"]))
        colour = int(h["to_play"])
        playable = [loc for loc in points if is_playable(b, h, loc, colour)]
        loc = chance.choice(playable) if playable and chance.random() >= odd else 1
        locs.append(loc)
        colours.append(colour)
        play_move(b, h, loc, colour)
    many_boards, many_histories = start
    play_many(
        many_boards[0], many_histories[0], np.array([*locs, 0], np.int16), np.array([*colours, 0], np.int8), len(locs)
    )
    for many, one in ((many_boards, boards), (many_histories, histories)):
        for name in one.dtype.names:
            assert np.array_equal(many[name], one[name]), name


@pytest.mark.reference
def test_positions_of_a_month_of_real_games(reference):
    records = [r for r in itertools.islice(read_records([reference / "data/go/tygem-2010-06.sgf.gz"]), 30) if r.moves]
    games = [
        Game(
            list(record.moves),
            (record.xsize, record.ysize),
            [("B", v) for v in (*record.handicap, *record.black_setup)] + [("W", v) for v in record.white_setup],
            record.to_play,
            record.rules,
            record.komi,
        )
        for record in records
    ]
    encoding = KataGoEncoding()
    with Loader(flat_of(games), encoding, 40) as loader:
        batch = loader.batch(0)
        for row, game, turn, symmetry in rows(loader, 0):
            position = next(itertools.islice(records[game].positions(), turn, None))
            expected = encoding.encode([position], symmetry).inputs
            assert np.array_equal(batch.planes[row], expected["planes"][0])
            assert np.array_equal(batch.inputs["globals"][row], expected["globals"][0])
