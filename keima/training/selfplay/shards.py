"""Finished games in a store.

A shard is a game store (`keima.training.data.store`) with the columns of `keima.training.selfplay.columns`. Its name
says which games it may hold and the beginning of its SHA-256, so that one that was damaged is known; its bytes follow
from its games (and from the version of Arrow that writes them).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import keima
from keima.errors import BadStore, KeimaError
from keima.games.archive import FlatGames
from keima.games.game import GAMES, Game
from keima.games.records import PlayedGame
from keima.games.rows import UNKNOWN_WINNER, Chunk, Row, numbers
from keima.plain import Data
from keima.training.data.batches import Policies
from keima.training.data.store import check_schema
from keima.training.selfplay.columns import COLUMNS, FORMAT, PACKED, SEARCHED, UNSEARCHED, WHOLE, sizes_of, unpacked
from keima.training.selfplay.game import FULL, OPENING, Ply, SelfplayGame
from keima.training.selfplay.store import Store

FOLDER = "games"
_NAME = re.compile(rf"{FOLDER}/(\d{{8,18}})-(\d{{8,18}})-([0-9a-f]{{16}})\.parquet")


def shard_schema(game: str) -> pa.Schema:
    """The columns of a shard of a game, with its metadata."""
    schema = GAMES[game].archive.schema
    own = {"keima.selfplay": FORMAT, "keima.version": keima.__version__}
    return pa.schema([*schema, *COLUMNS], metadata={**schema.metadata, **own})


# --- Writing ----------------------------------------------------------------------------------------------------------


def write_shard(store: Store, games: Sequence[SelfplayGame]) -> str:
    """Write finished games, one of each number, as a shard; its name.

    Raises:
        BadStore: no games, a game without an end or that its records cannot hold; as `Store.write`.
    """
    ordered = sorted(games, key=lambda game: game.number)
    data = shard_bytes(ordered)
    name = f"{FOLDER}/{ordered[0].number:08d}-{ordered[-1].number:08d}-{sha256(data).hexdigest()[:16]}.parquet"
    store.write(name, data)
    return name


def shard_bytes(games: Sequence[SelfplayGame]) -> bytes:
    """The file of these games, in their order."""
    if not games or len({game.number for game in games}) < len(games):
        raise BadStore("a shard holds games, one of each number")
    schema = shard_schema(games[0].position.game)
    rows = [{**row, **search_row(game, len(row["moves"]) // 2)} for game, row in zip(games, _rows(games), strict=True)]
    stream = pa.BufferOutputStream()
    table = pa.Table.from_pylist(rows, schema=schema)
    few = [field.name for field in schema if field.type == pa.string() and field.name != "source"]
    pq.write_table(table, stream, compression="zstd", use_dictionary=few)
    return bytes(stream.getvalue())


def _rows(games: Sequence[SelfplayGame]) -> list[Row]:
    """The games as rows of their store: written as records, and read as an import reads them."""
    game = GAMES[games[0].position.game]
    text = "\n".join(game.records.write(game.records.of_game(_played(each, game))) for each in games)
    pieces = list(game.archive.pieces(BytesIO(text.encode()), 0))
    size = game.archive.chunk_games
    read = [game.archive.read(Chunk(pieces[k : k + size]), None, 0) for k in range(0, len(pieces), size)]
    rows: list[Row] = [row for part in read for row in part.batch.to_pylist()]
    if len(rows) != len(games):
        broken = next((one for part in read for one in part.broken), None)
        reason = broken.reason if broken else f"{len(rows)} games are read back"
        raise BadStore(f"games {games[0].number} to {games[-1].number} cannot be kept: {reason}")
    for row, each in zip(rows, games, strict=True):
        row["source"] = f"selfplay#{each.number}"
    return rows


def _played(each: SelfplayGame, game: Game) -> PlayedGame:
    """The game as its record tells it: the players are the networks that made each side's last moves; no date."""
    if each.verdict is None:
        raise BadStore(f"game {each.number} has not ended")
    first = game.letters.index(each.start.to_play)
    last = [0, 0]
    for turn, ply in enumerate(each.plies):
        last[(first + turn) % 2] = ply.network
    if len(each.plies) == 1:
        last = [each.plies[0].network] * 2
    names = (f"network {last[0]}", f"network {last[1]}")
    verdict = each.verdict
    return PlayedGame(each.position, names, verdict.result, "self-play", each.number, "", verdict.reason, "")


def search_row(game: SelfplayGame, moves: int) -> Row:
    """What self-play adds to a row of so many moves; those before the game's own are openings."""
    plies = [Ply("", OPENING)] * (moves - len(game.plies)) + game.plies
    if len(plies) != moves:
        raise BadStore(f"game {game.number} has {len(game.plies)} plies, its record {moves} moves")
    values = np.array([ply.value for ply in plies], np.float64)
    known = ~np.isnan(values)
    fixed = np.full(moves, UNSEARCHED, np.int64)
    fixed[known] = np.rint(values[known].clip(-1, 1) * SEARCHED)
    policies = [_kept(ply) for ply in plies]
    columns: dict[str, Any] = {
        "kinds": [ply.kind for ply in plies],
        "values": fixed,
        "networks": [ply.network for ply in plies],
        "pi_counts": [len(kept) for kept, _ in policies],
        "pi_moves": np.concatenate([np.zeros(0, np.int64), *(kept for kept, _ in policies)]),
        "pi_weights": np.concatenate([np.zeros(0, np.int64), *(weights for _, weights in policies)]),
    }
    packed = {name: np.asarray(column, PACKED[name]).tobytes() for name, column in columns.items()}
    reason = game.verdict.reason if game.verdict is not None else ""
    return {"number": game.number, **packed, "played_out": game.played_out, "reason": reason}


def _kept(ply: Ply) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A ply's π as it is kept: moves, and their weights as whole numbers that sum to `WHOLE`; none are 0."""
    if ply.kind != FULL or not len(ply.moves):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    weights = fixed_point(ply.weights)
    there = weights > 0
    return ply.moves[there].astype(np.int64), weights[there]


def fixed_point(weights: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Weights [k], not negative and not all 0, in steps of 1/65535 that sum to 1; each off by less than a step.

    What rounding down leaves goes to the largest remainders, the earlier ones where they are equal.
    """
    exact = weights.astype(np.float64)
    exact *= WHOLE / exact.sum()
    floor = np.floor(exact)
    found = floor.astype(np.int64)
    left = WHOLE - int(found.sum())
    found[np.argsort(floor - exact, kind="stable")[:left]] += 1
    return found


# --- Reading ----------------------------------------------------------------------------------------------------------


def block_of(name: str) -> tuple[int, int]:
    """First and last number that a shard of this name may hold. Raises BadStore for a name of no shard."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise BadStore("is no name of a shard", source=name)
    return int(match[1]), int(match[2])


def read_shard(store: Store, name: str) -> pa.Table:
    """The rows of a shard, checked.

    Raises:
        BadStore: it is missing, damaged (its SHA-256 is not the one of its name), of another format, or holds rows that
            cannot be; the message names it.
    """
    first, last = block_of(name)
    data = store.read(name)  # a store that is lost says so itself
    try:
        if sha256(data).hexdigest()[:16] != name[-24:-8]:
            raise BadStore("is damaged: its SHA-256 is not the one of its name")
        return parse_shard(data, first, last)
    except KeimaError as error:
        raise BadStore(error.message, source=f"{store.address}/{name}", place=error.place) from error


def parse_shard(data: bytes, first: int = 0, last: int = 1 << 62) -> pa.Table:
    """The rows of a shard's bytes, whose numbers lie between two, checked; moves are trusted, as those of any store.

    Raises:
        BadStore: see `read_shard`.
    """
    try:
        table = pq.read_table(BytesIO(data))
        facts = table.schema.metadata or {}
        version = facts.get(b"keima.selfplay", b"").decode("utf-8", "replace")
        if version != FORMAT:
            found = f"of format {version!r}" if version else "no shard of self-play"
            raise BadStore(f"is {found}; this keima reads format {FORMAT}")
        schema = check_schema(table.schema, [pa.field(*column) for column in COLUMNS])
        table = table.select(schema.names).cast(schema)
        table.validate(full=True)
        for batch in table.to_batches():
            _check(batch, first, last)
            GAMES[game_of(table)].archive.columns().add(batch)
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        raise BadStore(f"cannot be read: {str(error).splitlines()[0] if str(error) else error!r}") from error
    return table


def game_of(table: pa.Table) -> str:
    """The name of a shard's game."""
    found: str = table.schema.metadata[b"keima.game"].decode()
    return found


def _check(batch: pa.RecordBatch, first: int, last: int) -> None:
    """Refuse rows that no worker writes."""
    plies = sizes_of(batch, "moves", 2)
    number = numbers(batch, "number", np.int64)
    if ((number < first) | (number > last)).any() or len(np.unique(number)) < len(number):
        raise BadStore("holds games of other numbers than its name says, or one twice")
    if batch.column("played_out").null_count or batch.column("reason").null_count:
        raise BadStore("played_out and reason must not be null")
    columns = {name: unpacked(batch.column(name), kind) for name, kind in PACKED.items()}
    for name in ("kinds", "values", "networks", "pi_counts"):
        if (sizes_of(batch, name, np.dtype(PACKED[name]).itemsize) != plies).any():
            raise BadStore(f"{name} must hold one number a ply")
    counts = columns["pi_counts"].astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(counts)])
    there = ends[np.concatenate([[0], np.cumsum(plies)])]
    for name in ("pi_moves", "pi_weights"):
        if (sizes_of(batch, name, 2) != np.diff(there)).any():
            raise BadStore(f"{name} must hold as many numbers as pi_counts says")
    kinds, moves = columns["kinds"], columns["pi_moves"]
    if (kinds > FULL).any() or (counts[kinds != FULL] > 0).any():
        raise BadStore("a kind that there is not, or a policy to learn where no full search was")
    if ((moves < 0) | (moves >= GAMES[batch.schema.metadata[b"keima.game"].decode()].archive.codes)).any():
        raise BadStore("a move that cannot be in pi_moves")
    sums = np.diff(np.concatenate([[0], np.cumsum(columns["pi_weights"].astype(np.int64))])[ends])
    if (sums[counts > 0] != WHOLE).any():
        raise BadStore(f"weights of a policy that do not sum to {WHOLE}")


def full_counts(table: pa.Table) -> NDArray[np.int64]:
    """How many full searches each game of a shard has."""
    found = [np.zeros(0, np.int64)]
    for batch in table.to_batches():
        full = np.concatenate([[0], np.cumsum(unpacked(batch.column("kinds"), np.uint8) == FULL)])
        ends = np.concatenate([[0], np.cumsum(sizes_of(batch, "kinds", 1))])
        found.append(np.diff(full[ends]))
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class ShardGames:
    """The games of shards as arrays; of all plies end to end what stands beside `games.moves`."""

    games: FlatGames
    number: NDArray[np.int64]  # [G]
    played_out: NDArray[np.bool_]  # [G]
    kinds: NDArray[np.uint8]  # [total]
    values: NDArray[np.int16]  # [total], fixed point
    networks: NDArray[np.int32]  # [total]
    policies: Policies

    @property
    def positions(self) -> int:
        """Plies with a full search."""
        return int((self.kinds == FULL).sum())

    @cached_property
    def q(self) -> NDArray[np.float32]:
        """Q of the root for the side to move, float32 [total]; NaN where nothing was searched."""
        found: NDArray[np.float32] = self.values.astype(np.float32) / np.float32(SEARCHED)
        found[self.values == UNSEARCHED] = np.nan
        return found

    def returns(self, trace: float) -> NDArray[np.float32]:
        """The TD(λ) return of each ply for the first side, float32 [total]: (1 − λ) Q + λ · the next ply's return.

        After the last ply it is the result, where that is known; a ply without a search has the next one's. Sutton and
        Barto, chapter 12.
        """
        flat = self.games
        winner = np.where(flat.winner == UNKNOWN_WINNER, np.nan, flat.winner)
        lengths = np.diff(flat.start)
        games = np.repeat(np.arange(len(self.number)), lengths)
        turns = np.arange(len(games)) - flat.start[games]
        q = np.where(flat.first_to_move(games, turns), self.q, -self.q)
        found, later = np.empty(len(q), np.float32), winner.astype(np.float32)
        for back in range(1, int(lengths.max(initial=0)) + 1):
            some = np.flatnonzero(lengths >= back)
            plies = flat.start[some + 1] - back
            mixed = np.where(np.isnan(later[some]), q[plies], (1 - trace) * q[plies] + trace * later[some])
            later[some] = found[plies] = np.where(np.isnan(q[plies]), later[some], mixed)
        return found

    def targets(self, trace: float) -> Data:
        """What a `Loader` takes to learn from the full searches: `positions`, and `policies` with `returns`."""
        return {"positions": self.full(), "policies": replace(self.policies, values=self.returns(trace))}

    def full(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Games and turns of the plies with a full search, int64 [n] each."""
        plies = np.flatnonzero(self.kinds == FULL)
        rows = np.searchsorted(self.games.start, plies, side="right") - 1
        return rows, plies - self.games.start[rows]


def shard_games(table: pa.Table) -> ShardGames:
    """Rows of shards as arrays."""
    batches = table.to_batches()
    flat = GAMES[game_of(table)].archive.flat(batches)
    parts: dict[str, list[NDArray[Any]]] = {name: [np.zeros(0, kind)] for name, kind in PACKED.items()}
    for batch in batches:
        for name, kind in PACKED.items():
            parts[name].append(unpacked(batch.column(name), kind))
    packed = {name: np.concatenate(found) for name, found in parts.items()}
    start = np.concatenate([[0], np.cumsum(packed.pop("pi_counts"), dtype=np.int64)])
    policies = Policies(flat.start, start, packed.pop("pi_moves"), packed.pop("pi_weights"), WHOLE)
    number, played_out = (table.column(name).to_numpy() for name in ("number", "played_out"))
    return ShardGames(flat, number, played_out.astype(np.bool_), policies=policies, **packed)
