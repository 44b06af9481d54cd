"""Shards: what is written comes back, the same games make the same file, and what is damaged is refused."""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keima.errors import BadStore
from keima.games.game import GAMES
from keima.training.data.store import GameStore
from keima.training.selfplay.columns import PACKED, ShardCounts
from keima.training.selfplay.game import FULL, OPENING, SelfplayGame
from keima.training.selfplay.shards import (
    fixed_point,
    full_counts,
    parse_shard,
    read_shard,
    shard_bytes,
    shard_games,
    write_shard,
)
from keima.training.selfplay.store import Store
from tests.training.selfplay.made import made_game


def shard_of(game, numbers, **options):
    return [made_game(game, number, start=number, **options) for number in numbers]


@pytest.mark.parametrize("game", GAMES)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 5))
@example(seed=509, count=1)  # a game of Go without a move
@settings(max_examples=15, deadline=None)
def test_round_trip(game, seed, count):
    """Every ply of every game, by the game's own names of moves and its own rules."""
    games = shard_of(game, range(3, 3 + count), seed=seed)
    table = parse_shard(shard_bytes(games), 3, 2 + count)
    assert table.column("source").to_pylist() == [f"selfplay#{each.number}" for each in games]
    assert table.column("result").to_pylist() == [each.verdict.result for each in games]
    assert table.column("reason").to_pylist() == [each.verdict.reason for each in games]
    found, kernels, letters = shard_games(table), GAMES[game].kernels, GAMES[game].letters
    assert found.number.tolist() == [each.number for each in games]
    assert found.played_out.tolist() == [each.played_out for each in games]
    assert full_counts(table).tolist() == [sum(ply.kind == FULL for ply in each.plies) for each in games]
    for row, each in enumerate(games):
        assert found.games.start[row + 1] - found.games.start[row] == len(each.plies)
        assert found.games.winner[row] == {None: 0, 0: 1, 1: -1}[each.verdict.winner]
        position = each.start
        for turn, ply in enumerate(each.plies):
            at, here = found.games.start[row] + turn, (np.array([row]), np.array([turn]))
            record = np.zeros(1, kernels.dtype)
            found.games.replay(*here, record)
            side = kernels.side(record[0])
            assert found.games.first_to_move(*here)[0] == (letters.index(position.to_play) == 0)
            assert kernels.name(position, int(found.games.next_moves(*here)[0]), side) == ply.move
            assert (found.kinds[at], found.networks[at]) == (ply.kind, ply.network)
            assert found.q[at] == pytest.approx(ply.value, abs=0.51 / 32767, nan_ok=True)
            moves, counts, weights = found.policies.of(*here)
            assert counts[0] == len(ply.moves)
            assert moves[0, : counts[0]].tolist() == ply.moves.tolist()
            assert weights[0, : counts[0]] == pytest.approx(ply.weights, abs=1 / 65535)
            position = position.play(ply.move)
        assert found.policies.of(np.array([row]), np.array([len(each.plies)]))[1] == [0]


@settings(deadline=None)
@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=400).filter(lambda found: sum(found) > 1e-3))
def test_fixed_point(weights):
    """Whole numbers that sum to 65535, each less than one off."""
    given_weights = np.array(weights, np.float32)
    fixed = fixed_point(given_weights)
    assert fixed.sum() == 65535
    exact = given_weights.astype(np.float64) / given_weights.astype(np.float64).sum() * 65535
    assert (np.abs(fixed - exact) < 1 + 1e-6).all()
    assert (fixed >= 0).all()


@pytest.mark.parametrize("game", GAMES)
@given(seed=st.integers(0, 10**6), trace=st.floats(0.01, 1.0))
@settings(max_examples=15, deadline=None)
def test_returns(game, seed, trace):
    """G = (1 − λ) Q + λ G of the next ply, the result after the last, each as the first side sees it."""
    games = shard_of(game, range(4), seed=seed)
    found = shard_games(parse_shard(shard_bytes(games)))
    returns = found.returns(trace)
    for row, each in enumerate(games):
        wanted = {None: 0.0, 0: 1.0, 1: -1.0}[each.verdict.winner]
        sides, position = [], each.start
        for ply in each.plies:
            sides.append(1 if GAMES[game].letters.index(position.to_play) == 0 else -1)
            position = position.play(ply.move)
        for turn in reversed(range(len(each.plies))):
            if not np.isnan(each.plies[turn].value):
                wanted = (1 - trace) * sides[turn] * each.plies[turn].value + trace * wanted
            assert returns[found.games.start[row] + turn] == pytest.approx(wanted, abs=1e-4)
        if trace == 1.0:
            assert set(returns[found.games.start[row] : found.games.start[row + 1]]) <= {wanted}


def test_moves_before_the_plies_are_openings():
    """A start that has moves itself: its record begins with them."""
    game = made_game("connect_four", 1, longest=9, seed=4)
    whole, k = game.plies, 3
    assert len(whole) > k
    start = game.start.play(*(ply.move for ply in whole[:k]))
    found = shard_games(parse_shard(shard_bytes([SelfplayGame(1, start, game.position, whole[k:], game.verdict)])))
    assert found.kinds.tolist() == [OPENING] * k + [ply.kind for ply in whole[k:]]


@pytest.mark.parametrize("game", GAMES)
def test_same_games_same_file(tmp_path, game):
    store = Store(tmp_path)
    name = write_shard(store, shard_of(game, range(40, 44)))
    data = store.read(name)
    assert name == f"games/00000040-00000043-{sha256(data).hexdigest()[:16]}.parquet"
    assert write_shard(store, shard_of(game, (43, 41, 40, 42))) == name
    assert store.list("games") == [name]
    assert write_shard(store, shard_of(game, range(40, 44), seed=1)) != name


def test_is_a_game_store(tmp_path):
    store = Store(tmp_path)
    games = shard_of("go", range(6))
    write_shard(store, games[:3])
    write_shard(store, games[3:])
    write_shard(store, games[2:4])
    opened = GameStore.open(tmp_path / "games")
    assert len(opened) == 8
    assert "number" not in opened.info()
    info = opened.info(ShardCounts)
    kinds = [ply.kind for game in (*games, games[2], games[3]) for ply in game.plies]
    assert info["searches"] == {"full": kinds.count(2), "fast": kinds.count(1), "none": kinds.count(0)}
    assert info["duplicates"] == 2
    assert info["numbers"] == {"first": 0, "last": 5}
    assert sum(info["ends"].values()) == 8
    assert opened.table(["number"]).column(0).to_pylist() == [0, 1, 2, 2, 3, 3, 4, 5]
    write_shard(store, shard_of("go", range(6), seed=1))  # another run's, with the same numbers
    assert GameStore.open(tmp_path / "games").info(ShardCounts)["duplicates"] == 2
    plain = made_store(tmp_path, opened)
    assert "searches" not in plain.info(ShardCounts)


def made_store(tmp_path, opened):
    """The same games without what self-play adds."""
    path = tmp_path / "plain.parquet"
    pq.write_table(opened.table().replace_schema_metadata(opened.schema.metadata), path)
    return GameStore.open(path)


def test_refused_games():
    game = made_game("connect_four", 1)
    with pytest.raises(BadStore, match="one of each number"):
        shard_bytes([game, game])
    with pytest.raises(BadStore, match="one of each number"):
        shard_bytes([])
    game.verdict = None
    with pytest.raises(BadStore, match="game 1 has not ended"):
        shard_bytes([game])


# --- Damage -----------------------------------------------------------------------------------------------------------


def kept(store, data, first=0, last=9):
    """The bytes under a name that is theirs."""
    name = f"games/{first:08d}-{last:08d}-{sha256(data).hexdigest()[:16]}.parquet"
    store.write(name, data)
    return name


def changed(data, change=lambda rows: None, facts=None):
    """The file with other rows or other metadata."""
    table = pq.read_table(BytesIO(data))
    rows = table.to_pylist()
    change(rows)
    schema = table.schema.with_metadata({**table.schema.metadata, **(facts or {})})
    stream = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), stream)
    return bytes(stream.getvalue())


@pytest.fixture(scope="module")
def sound():
    return shard_bytes(shard_of("connect_four", range(10), longest=42))


def test_half_a_file_and_a_flipped_bit(tmp_path, sound):
    store = Store(tmp_path)
    name = kept(store, sound)
    assert read_shard(store, name).num_rows == 10
    for data in (sound[: len(sound) // 2], sound[:100] + bytes([sound[100] ^ 1]) + sound[101:], b""):
        store.write(name, data)
        with pytest.raises(BadStore, match=rf"{name}: is damaged: its SHA-256"):
            read_shard(store, name)
        with pytest.raises(BadStore, match="cannot be read"):
            read_shard(store, kept(store, data[:-9]))


def test_other_versions(tmp_path, sound):
    store = Store(tmp_path)
    for facts, message in (
        ({b"keima.selfplay": b"2"}, "of format '2'; this keima reads format 1"),
        ({b"keima.store": b"9"}, "version '9'"),
        ({b"keima.game": b"shogi"}, "'shogi'"),
    ):
        name = kept(store, changed(sound, facts=facts))
        with pytest.raises(BadStore, match=f"{name}: .*{message}"):
            read_shard(store, name)
    plain = pq.read_table(BytesIO(sound)).replace_schema_metadata({})
    stream = pa.BufferOutputStream()
    pq.write_table(plain, stream)
    with pytest.raises(BadStore, match="no shard of self-play"):
        read_shard(store, kept(store, bytes(stream.getvalue())))
    with pytest.raises(BadStore, match="no name of a shard"):
        read_shard(store, "games/x.parquet")


def shorter(name):
    def change(rows):
        row = next(row for row in rows if row[name])
        row[name] = row[name][: -np.dtype(PACKED[name]).itemsize]

    return change


def other(name, dtype, value):
    def change(rows):
        row = next(row for row in rows if row[name])
        row[name] = np.array([value], dtype).tobytes() + row[name][np.dtype(dtype).itemsize :]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *((shorter(name), "one number a ply") for name in ("kinds", "values", "networks")),
        *((shorter(name), "as pi_counts says") for name in ("pi_moves", "pi_weights")),
        (lambda rows: rows[0].update(number=10), "other numbers"),
        (lambda rows: rows[0].update(number=1), "one twice"),
        (lambda rows: rows[0].update(reason=None), "null"),
        (lambda rows: rows[0].update(kinds=None), "kinds must not be null"),
        (other("kinds", np.uint8, 3), "a kind that there is not"),
        (lambda rows: [row.update(kinds=bytes(len(row["kinds"]))) for row in rows], "where no full search was"),
        (other("pi_moves", "<i2", 7), "a move that cannot be"),
        (other("pi_moves", "<i2", -1), "a move that cannot be"),
        (other("moves", "<u2", 7), "no column"),
        (other("pi_weights", "<u2", 0), "sum to 65535"),
    ],
)
def test_rows_that_cannot_be(tmp_path, sound, change, message):
    store = Store(tmp_path)
    name = kept(store, changed(sound, change))
    with pytest.raises(BadStore, match=message) as caught:
        read_shard(store, name)
    assert name in str(caught.value)
