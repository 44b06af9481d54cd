"""Shards of self-play, damaged: bytes, columns, rows. Refused with what is wrong, or every position of them is made.

Moves that can be played are made into positions; others, which the SHA-256 in a shard's name keeps out, are replayed.
"""

from __future__ import annotations

import random
from contextlib import suppress
from functools import cache

import numpy as np
import pyarrow as pa

import keima
from keima.errors import BadStore, KeimaError
from keima.games.game import GAMES
from keima.plain import Data
from keima.systems.encoding import Encoding
from keima.training.data.batches import BatchMaker
from keima.training.selfplay.columns import PACKED
from keima.training.selfplay.shards import parse_shard, shard_bytes, shard_games, shard_schema
from tests.fuzz import store
from tests.training.selfplay.made import made_game

NETWORKS = {
    "go": ("katago", {"blocks": 1, "channels": 8}),
    "chess": ("lc0", {"blocks": 1, "channels": 8}),
    "connect_four": ("connect-four", {"blocks": 1, "channels": 8}),
}


@cache
def corpus() -> list[tuple[str, list[Data], bytes]]:
    """Of each game its name, its shard's rows, and the shard."""
    found = []
    for name in GAMES:
        data = shard_bytes([made_game(name, number, start=number, most=5) for number in range(6)])
        found.append((name, parse_shard(data).to_pylist(), data))
    return found


@cache
def encoding(game: str) -> Encoding:
    """One for the game."""
    name, sizes = NETWORKS[game]
    return keima.create(name, **sizes).encoding


def one(seed: int) -> None:
    """One damaged shard, refused or learned from."""
    rng = random.Random(f"shards {seed}")
    game, rows, data = rng.choice(corpus())
    change = rng.choice((store._other_bytes, _other_rows, _other_rows, _other_numbers, _other_numbers, _other_schema))
    try:
        table = parse_shard(change(rng, game, rows, data))
    except BadStore:
        return
    with suppress(KeimaError):  # a start that cannot be, which a game's arrays find out
        _learn(rng, rows, table)


def _learn(rng: random.Random, rows: list[Data], table: pa.Table) -> None:
    """Replay the positions of full searches, and make a batch of them where the moves are legal."""
    found = shard_games(table)
    chosen, turns = found.full()
    found.games.replay(chosen, turns, np.zeros(len(chosen), GAMES[found.games.game].kernels.dtype))
    known = {bytes(row["moves"]) for row in rows}
    if len(chosen) and {*table.column("moves").to_pylist()} <= known and not _changes_start(table, rows):
        maker = BatchMaker(found.games, encoding(found.games.game), {"policy", "value", "reply"}, found.policies)
        kept = maker.fits[chosen]
        symmetries = np.array([rng.choice(maker.symmetries.tolist()) for _ in range(int(kept.sum()))], np.int64)
        if kept.any():
            soft = maker.make(chosen[kept], turns[kept], symmetries).policy_soft
            assert soft is not None
            assert (soft >= 0).all()
            assert (soft.sum(axis=1) <= 1.001).all()


def _changes_start(table: pa.Table, rows: list[Data]) -> bool:
    """Do games begin otherwise than those of the corpus with the same moves?"""
    before = {row["moves"]: row for row in rows}
    own = [name for name in ("setup", "to_play_first", "xsize", "ysize", "rules", "start_fen") if name in rows[0]]
    return any(row[name] != before[row["moves"]][name] for row in table.to_pylist() for name in own)


def _written(rows: list[Data], game: str) -> bytes:
    return store._written(pa.Table.from_pylist(rows, schema=shard_schema(game)))


def _other_rows(rng: random.Random, game: str, rows: list[Data], data: bytes) -> bytes:
    """Values that no worker writes, in any column."""
    rows = [dict(rng.choice(rows)) for _ in range(rng.choice((0, 1, 3, 9)))]
    for number, row in enumerate(rows):
        row["number"] = number
        for _ in range(rng.choice((0, 1, 1, 3))):
            field = rng.choice(list(shard_schema(game)))
            kind = str(field.type)
            odd = rng.choice((0, -1, 2**40)) if kind == "int64" else store._ODD[kind](rng)
            row[field.name] = None if rng.random() < 0.1 else odd
    return _written(rows, game)


def _other_numbers(rng: random.Random, game: str, rows: list[Data], data: bytes) -> bytes:
    """A few of the packed numbers changed, the columns as long as they were."""
    rows = [dict(row) for row in rows]
    for _ in range(rng.randrange(1, 4)):
        row, name = rng.choice(rows), rng.choice([*PACKED, "moves"])
        numbers = np.frombuffer(row[name], PACKED.get(name, "<u2")).copy()
        if len(numbers):
            low, high = np.iinfo(numbers.dtype).min, np.iinfo(numbers.dtype).max
            numbers[rng.randrange(len(numbers))] = rng.choice((0, 1, low, high, rng.randint(low, high)))
            row[name] = numbers.tobytes()
    return _written(rows, game)


def _other_schema(rng: random.Random, game: str, rows: list[Data], data: bytes) -> bytes:
    """Columns of another type, or none."""
    table = pa.Table.from_pylist(rows, schema=shard_schema(game))
    at = rng.randrange(table.num_columns)
    if rng.random() < 0.5:
        return store._written(table.remove_column(at))
    return store._written(table.set_column(at, table.column_names[at], pa.nulls(len(table), rng.choice(store._TYPES))))
