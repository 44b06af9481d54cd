"""Game stores, damaged: bytes, columns, rows. Opened, counted, replayed and divided, or refused, whatever is in them.

Rows that no import writes (moves that cannot be made) are replayed too: what comes of them is not looked at, but a
kernel may not hang or leave its arrays.
"""

from __future__ import annotations

import atexit
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from keima.errors import KeimaError
from keima.games.game import GAMES
from keima.plain import Data
from keima.training.data.importing import import_games
from keima.training.data.store import GameStore, TestGames, split_store

RECORDS = {
    "go.sgf": "(;SZ[5]KM[6.5]RU[Japanese]HA[2]AB[bb][dd]RE[W+2.5]DT[2010-06-01]PB[a]BR[2d];W[cc];B[dc];W[cd];B[];W[])\n"
    "(;SZ[9:7]RU[Chinese]RE[B+R];B[ee];W[ef];B[df];W[cd];B[fe];W[de];B[ff];W[];B[ce])\n"
    "(;SZ[3]RU[tromp-taylor]RE[0];B[aa];B[bb];W[ab];B[ca];W[ba];B[aa])\n(;SZ[19]RE[Void];B[pd];W[dp];B[pp];W[dd])\n",
    "chess.pgn": '[White "A"]\n[WhiteElo "1500"]\n[Result "1-0"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. O-O b5 1-0\n\n'
    '[FEN "4k3/P7/8/8/8/8/4P3/4K2R w K - 0 1"]\n[Date "2020.01.??"]\n\n1. O-O Kd7 2. a8=Q Ke7 *\n\n'
    '[Variant "Chess960"]\n[FEN "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9"]\n\n'
    "9. Qa2 O-O 1/2-1/2\n\n1. f3 e5 2. g4 Qh4# 0-1\n",
    "connect_four.c4": '[First "a"]\n[Date "2026-01-31"]\n\nd d c e b a 1-0\n\n[First "b"]\n\nddddddccccccab *\n\n'
    '[First "c"]\n\na 0-1\n\n',
}
_SECONDS = 5.0
"""Of the processor's time; stores of a few games take milliseconds."""
_TEXTS = (
    *("", "x", "é" * 50, "\0", "3d", "chinese", '{"ko":"SIMPLE"}', '{"komi":5}', "2010-13", "[" * 3000),
    *("8/8/8/8/8/8/8/8 w - - 0 1", "4k3/8/8/8/8/8/8/4K3 b - - 0 1"),
)
_ODD: dict[str, Callable[[random.Random], Any]] = {
    "binary": lambda rng: rng.randbytes(rng.choice((0, 1, 2, 3, 8, 60, 700))),
    "string": lambda rng: rng.choice(_TEXTS),
    "float": lambda rng: rng.choice((0.0, -0.5, 0.3, 1e30, float("nan"), float("inf"), 400.5)),
    "bool": lambda rng: rng.random() < 0.5,
    "uint8": lambda rng: rng.choice((0, 1, 2, 3, 5, 9, 19, 20, 255)),
    "int8": lambda rng: rng.choice((0, 1, -1, 2, -2, 127, -128)),
    "int16": lambda rng: rng.choice((0, -1, 3000, 32767, -32768)),
    "uint64": lambda rng: rng.choice((0, 1, 2**63, 2**64 - 1)),
}
_TYPES = (pa.string(), pa.binary(), pa.int8(), pa.uint8(), pa.int64(), pa.float64(), pa.bool_(), pa.list_(pa.int8()))


@cache
def folder() -> Path:
    """Where everything is written, away when the program ends; on the memory disk where there is one."""
    memory = Path("/dev/shm")
    made = tempfile.TemporaryDirectory(prefix="keima-fuzz-", dir=memory if memory.is_dir() else None)
    atexit.register(made.cleanup)
    return Path(made.name)


@cache
def corpus() -> list[tuple[str, list[Data], bytes]]:
    """Of each game its name, rows as an import makes them, and the store's bytes."""
    found = []
    for name, text in RECORDS.items():
        path, out = folder() / name, folder() / "source.parquet"
        path.write_text(text, encoding="utf-8")
        import_games([path], out, min_moves=0, workers=1)
        store = GameStore.open(out)
        _replay(store)  # compiles the kernels
        found.append((store.game, store.table().to_pylist(), out.read_bytes()))
    return found


def one(seed: int) -> None:
    """One damaged store, read in every way there is."""
    rng = random.Random(f"store {seed}")
    place = folder() / "damaged"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    kinds = (_other_bytes, _other_rows, _other_rows, _other_schema)
    for number in range(1 if rng.random() < 0.9 else 2):
        game, rows, data = rng.choice(corpus())
        (place / f"{number}.parquet").write_bytes(rng.choice(kinds)(rng, game, rows, data))
    began = time.process_time()
    try:
        store = GameStore.open(place if rng.random() < 0.5 else place / "0.parquet")
    except KeimaError:
        return
    for read in (store.info, store.table, lambda: _replay(store), lambda: _split(rng, store)):
        with suppress(KeimaError):
            read()
    assert time.process_time() - began < _SECONDS, "too slow"


def _other_bytes(rng: random.Random, game: str, rows: list[Data], data: bytes) -> bytes:
    """Bytes changed, cut, repeated."""
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0 | 1:
                data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
            case 2:
                data = data[:at] + data[at + rng.randrange(1, 9) :]
            case 3:
                data = data[:at] + data[max(0, at - rng.randrange(1, 40)) :]
            case _:
                data = data[:at]
    return data


def _other_rows(rng: random.Random, game: str, rows: list[Data], data: bytes) -> bytes:
    """Values that no import writes."""
    schema = GAMES[game].archive.schema
    rows = [dict(rng.choice(rows)) for _ in range(rng.choice((0, 1, 3, 3, 9)))]
    for row in rows:
        for _ in range(rng.choice((0, 0, 1, 1, 3))):
            field = rng.choice(list(schema))
            if rng.random() < 0.15:
                row[field.name] = None
            elif rng.random() < 0.4 and row["moves"]:
                row["moves"] = _other_moves(rng, row["moves"])
            else:
                row[field.name] = _ODD[str(field.type)](rng)
    return _written(pa.Table.from_pylist(rows, schema=schema))


def _other_moves(rng: random.Random, moves: bytes) -> bytes:
    """Packed moves in another order, another length, or with one that is another."""
    codes = np.frombuffer(moves[: len(moves) // 2 * 2], "<u2").tolist()
    match rng.randrange(4):
        case 0:
            rng.shuffle(codes)
        case 1:
            codes *= rng.randrange(4)
        case 2:
            codes.insert(rng.randrange(len(codes) + 1), rng.randrange(1 << rng.choice((3, 5, 9, 12, 16))))
        case _:
            codes = [code ^ 1 << rng.randrange(16) if rng.random() < 0.2 else code for code in codes]
    return np.array(codes, "<u2").tobytes()


def _other_schema(rng: random.Random, game: str, rows: list[Data], data: bytes) -> bytes:
    """Columns of another type or order, absent, twice; another game's name, another version."""
    table = pa.Table.from_pylist(rows, schema=GAMES[game].archive.schema)
    at = rng.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    match rng.randrange(6):
        case 0:
            table = table.remove_column(at)
        case 1:
            table = table.set_column(at, name, pa.nulls(len(table), rng.choice(_TYPES)))
        case 2:
            table = table.append_column(name, column)
        case 3:
            table = table.select(rng.sample(table.column_names, table.num_columns))
        case 4:
            table = table.set_column(at, name, column.dictionary_encode())
        case _:
            facts = {"keima.store": rng.choice(("1", "2", "", "x")), "keima.game": rng.choice((*GAMES, "shogi", "\0"))}
            table = table.replace_schema_metadata(facts)
    return _written(table)


def _written(table: pa.Table) -> bytes:
    stream = pa.BufferOutputStream()
    pq.write_table(table, stream)
    return bytes(stream.getvalue())


def _split(rng: random.Random, store: GameStore) -> None:
    choice = {"fraction": 0.5}, {"date": "2010"}, {"source": "go*"}
    split_store(store, folder() / "damaged" / "split", TestGames(**rng.choice(choice)))


def _replay(store: GameStore) -> None:
    """Every position of every game, and what the games tell."""
    games = store.flat()
    assert len(games) == len(store)
    everything = np.arange(len(games))
    sizes = np.diff(games.start)
    chosen = np.repeat(everything, sizes)
    turns = np.arange(len(chosen)) - np.repeat(games.start[:-1], sizes)
    kernels = GAMES[games.game].kernels
    for which, made in ((chosen, turns), (everything, sizes)):
        games.replay(which, made, np.zeros(len(which), kernels.dtype))
    games.next_moves(chosen, turns)
    games.first_to_move(chosen, turns)
    for tell in (games.kinds, games.lower_rank, games.lower_rating):
        tell()
    if "score" in games.tells:
        games.final_lead(chosen)
    if "ownership" in games.tells:
        ownership = np.zeros((len(chosen), 19, 19), np.float32)
        games.fill_ownership(chosen, turns, np.arange(len(chosen)) % 8, ownership)
        assert np.isin(ownership[~np.isnan(ownership)], (-1, 0, 1)).all()
