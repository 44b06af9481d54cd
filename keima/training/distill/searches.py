"""Searches of a store's games: made here, kept as self-play keeps its own, and learned in place of moves and results.

A network's search teaches as in AlphaGo Zero (Silver et al. 2017): π is the share of visits, the value is the root's Q.
Another program is asked for its best moves; of those π is the softmax of their winning chances over a temperature, and
the value is what it says of the position. A forced win counts as a chance above 1, more the nearer it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keima.errors import BadRequest
from keima.games.game import GAMES
from keima.games.playing import Opinion, Opinions
from keima.games.position import Position
from keima.games.rows import Row
from keima.search import search_batch
from keima.search.batches import SearchEvaluator
from keima.training.data.export import Exported, export
from keima.training.data.flat import reading
from keima.training.data.sampling import random_numbers
from keima.training.data.store import GameStore, check_output, writing
from keima.training.selfplay.columns import COLUMNS
from keima.training.selfplay.game import FULL, OPENING, Ply, SelfplayGame
from keima.training.selfplay.shards import ShardGames, search_row, shard_games, shard_schema

_CHOICE = 21
"""A purpose of random numbers."""
_MATE_CHANCE = 0.1
"""What a mate in one counts above a chance of 1; in n, a n-th of it."""
_GROUPS = 16
"""Groups of games read for each searcher before any is waited for."""

Searched = tuple[float, Sequence[str], NDArray[np.float64]]
"""Q for the side to move in [−1, 1]; moves, and their weights in π."""
Searcher = Callable[[Sequence[Position]], Sequence[Searched | None]]
"""Searches positions of one game, in their order; None where there is nothing to search."""


def network_searcher(evaluator: SearchEvaluator, visits: int, preset: str = "auto") -> Searcher:
    """Searches with a network, all positions it is given side by side."""

    def search(positions: Sequence[Position]) -> list[Searched | None]:
        found = search_batch(evaluator, positions, visits, preset)
        return [
            (one.value, [move.move for move in one.moves], np.array([move.visits for move in one.moves], np.float64))
            for one in found
        ]

    return search


def program_searcher(program: Opinions, temperature: float) -> Searcher:
    """Asks another program, one position after another."""

    def search(positions: Sequence[Position]) -> list[Searched | None]:
        return [None if found is None else _searched(found, temperature) for found in program(positions)]

    return search


def _searched(opinion: Opinion, temperature: float) -> Searched | None:
    moves = [one for one in opinion.moves or (opinion,) if one.pv]
    if not moves:
        return None
    chances = np.array([_chance(one) for one in moves])
    return 2 * opinion.winrate - 1, [one.pv[0] for one in moves], np.exp((chances - chances.max()) / temperature)


def _chance(opinion: Opinion) -> float:
    return opinion.winrate + (_MATE_CHANCE / opinion.mate if opinion.mate else 0.0)


def search_games(
    store: GameStore,
    out: Path | str,
    searchers: Sequence[Searcher],
    *,
    share: float = 1.0,
    together: int = 1,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda games, positions: None,
) -> int:
    """Search positions of a store's games; write the games with what was found to a store, `*.parquet`.

    Args:
        searchers: each is asked in a thread of its own.
        share: of the positions, chosen by lot from the seed.
        together: games that a searcher is given at once.
        progress: is told games and positions, now and then.

    Returns:
        Positions searched.

    Raises:
        BadRequest: `out` is no `.parquet`, or what a searcher raises.
        BadStore: damaged games, or `out` cannot be written; nothing is changed then.
    """
    check_output(out)
    schema = shard_schema(store.game)
    done = positions = 0
    free = deque(searchers)

    def work(group: Sequence[tuple[int, Exported]]) -> list[tuple[Row, int]]:
        searcher = free.popleft()
        try:
            return _search_group(searcher, group, share, seed)
        finally:
            free.append(searcher)

    numbered = enumerate(export(store))
    with ThreadPoolExecutor(len(searchers)) as pool, writing(out, store.game, schema) as writer:
        while some := list(islice(numbered, together * len(searchers) * _GROUPS)):
            for found in pool.map(work, [some[k : k + together] for k in range(0, len(some), together)]):
                writer.write(pa.RecordBatch.from_pylist([row for row, _ in found], schema=schema))
                done, positions = done + len(found), positions + sum(count for _, count in found)
                progress(done, positions)
    return positions


def _search_group(
    searcher: Searcher, group: Sequence[tuple[int, Exported]], share: float, seed: int
) -> list[tuple[Row, int]]:
    """The rows of games, and how many positions of each were searched."""
    positions = [list(game.record.positions()) for _, game in group]
    chosen = []
    for (number, _), each in zip(group, positions, strict=True):
        lot = random_numbers(seed, _CHOICE, number << 16, len(each) - 1) >> np.uint64(11)
        chosen.append([ply for ply in np.flatnonzero(lot / float(1 << 53) < share).tolist() if not each[ply].is_over])
    asked = [each[ply] for each, plies in zip(positions, chosen, strict=True) for ply in plies]
    answers = iter(searcher(asked))
    rows = []
    for (number, game), each, plies in zip(group, positions, chosen, strict=True):
        found = dict(zip(plies, answers, strict=False))
        made = [_ply(each[k], name, found.get(k)) for k, (_, name) in enumerate(game.record.turns)]
        played = SelfplayGame(number, each[0], each[-1], made)
        rows.append((game.row | search_row(played, len(made)), sum(ply.kind == FULL for ply in made)))
    return rows


def _ply(position: Position, move: str, searched: Searched | None) -> Ply:
    """A move of a game with what a search said; moves that the game's kernels do not know are left out of π."""
    if searched is None:
        return Ply(move, OPENING)
    q, names, weights = searched
    codes = np.array([GAMES[position.game].kernels.code(position, name) for name in names], np.int64)
    kept = (codes >= 0) & (weights > 0)
    if not kept.any():
        return Ply(move, OPENING)
    chances = weights[kept] / weights[kept].sum()
    return Ply(move, FULL, float(q), 0, codes[kept].astype(np.int16), chances.astype(np.float32))


def searched_games(store: GameStore) -> ShardGames:
    """A store's games with what searches said of them.

    Raises:
        BadRequest: nothing was searched in them.
        BadStore: damaged data.
    """
    names = [name for name, _ in COLUMNS]
    if not {*names} <= {*store.columns}:
        raise BadRequest("holds no searches; `keima data search` makes them, and self-play", source=str(store.path))
    with reading(store.path):
        table = store.table([*store.schema.names, *names])
        found = shard_games(table.replace_schema_metadata({"keima.game": store.game}))
    if not found.positions:
        raise BadRequest("no position of it was searched", source=str(store.path))
    return found
