"""Searches of a store's games: made here, kept as self-play keeps its own, and learned in place of moves and results.

A network's search teaches as in AlphaGo Zero (Silver et al. 2017): π is the share of visits, the value is the root's Q.
Another program is asked for its best moves; of those π is the softmax of their winning chances over a temperature, and
the value is what it says of the position. A forced win counts as a chance above 1, more the nearer it is.

What a search must tell apart are positions a few moves from one another, most of them after a mistake, which games do
not show: `Within` has those of a network's own trees searched in their place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

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
from keima.search.report import lines_within
from keima.search.search import parameters_of, search_trees
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
_SIDE_BY_SIDE = 128
"""Most trees grown at once: they share the memory of a search."""
_GROUPS = 16
"""Groups of games read for each searcher before any is waited for."""

Searched = tuple[float, Sequence[str], NDArray[np.float64]]
"""Q for the side to move in [−1, 1]; moves, and their weights in π."""
Searcher = Callable[[Sequence[Position]], Sequence[Searched | None]]
"""Searches positions of one game, in their order; None where there is nothing to search."""


def network_searcher(evaluator: SearchEvaluator, visits: int, preset: str = "auto") -> Searcher:
    """Searches with a network, positions side by side."""

    def search(positions: Sequence[Position]) -> list[Searched | None]:
        found = [one for some in _parts(positions) for one in search_batch(evaluator, some, visits, preset)]
        return [
            (one.value, [move.move for move in one.moves], np.array([move.visits for move in one.moves], np.float64))
            for one in found
        ]

    return search


def _parts(positions: Sequence[Position]) -> list[Sequence[Position]]:
    return [positions[k : k + _SIDE_BY_SIDE] for k in range(0, len(positions), _SIDE_BY_SIDE)]


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


@dataclass(frozen=True)
class Within:
    """The trees whose positions are searched in place of a game's.

    Args:
        evaluator: of the network that searches from the game's positions.
        visits: of each of those searches.
        lines: positions drawn from a tree.
        even: from a root whose Q is further from 0 nothing is drawn.
    """

    evaluator: SearchEvaluator
    visits: int = 100
    lines: int = 24
    even: float = 0.8

    def draw(self, positions: Sequence[Position], seed: int) -> list[list[tuple[str, ...]]]:
        """Moves from each position to those of its tree."""
        rng = np.random.default_rng(seed)
        parameters, size = parameters_of(self.evaluator, "auto", {}), self.evaluator.batch_size
        lines = []
        for some in _parts(positions):
            for tree, _, _ in search_trees(self.evaluator, some, self.visits, parameters, size, seed):
                root = tree.nodes[0]
                even = abs(root["value"]) <= self.even * root["visits"]
                lines.append(lines_within(tree, self.lines, rng) if even else [])
        return lines


def search_games(
    store: GameStore,
    out: Path | str,
    searchers: Sequence[Searcher],
    *,
    share: float = 1.0,
    together: int = 1,
    seed: int = 0,
    within: Within | None = None,
    progress: Callable[[int, int], None] = lambda games, positions: None,
) -> int:
    """Search positions of a store's games; write the games with what was found to a store, `*.parquet`.

    With `within` it is positions of trees that begin at the games' positions. Each becomes a game: the moves to it, and
    the best one found there; it has no result, and the key of the game it left, so that a split keeps them together.
    Its source is that game's, "@" and the number of moves before the tree.

    Args:
        searchers: each is asked in a thread of its own.
        share: of the positions, chosen by lot from the seed.
        together: games that a searcher is given at once.
        within: None: the games' own positions.
        progress: is told games and positions, now and then.

    Returns:
        Positions searched.

    Raises:
        BadRequest: `out` is no `.parquet`, or what a searcher raises.
        BadStore: damaged games, or `out` cannot be written; nothing is changed then.
    """
    check_output(out)
    schema = shard_schema(store.game)
    done = rows = positions = 0
    free = deque(searchers)

    def work(group: Sequence[tuple[int, Exported]]) -> list[tuple[Row, int]]:
        searcher = free.popleft()
        try:
            chosen = [_Chosen(game, _by_lot(game, number, share, seed)) for number, game in group]
            if within is None:
                return _search_group(searcher, chosen)
            return _search_within(searcher, chosen, within, seed + group[0][0])
        finally:
            free.append(searcher)

    numbered = enumerate(export(store))
    with ThreadPoolExecutor(len(searchers)) as pool, writing(out, store.game, schema) as writer:
        while some := list(islice(numbered, together * len(searchers) * _GROUPS)):
            groups = [some[k : k + together] for k in range(0, len(some), together)]
            for group, found in zip(groups, pool.map(work, groups), strict=True):
                made = [row | {"number": rows + k} for k, (row, _) in enumerate(found)]
                writer.write(pa.RecordBatch.from_pylist(made, schema=schema))
                done, rows, positions = done + len(group), rows + len(made), positions + sum(n for _, n in found)
                progress(done, positions)
    return positions


class _Chosen(NamedTuple):
    """A game, and the plies of it that the lot fell on."""

    game: Exported
    plies: Sequence[int]


def _by_lot(game: Exported, number: int, share: float, seed: int) -> list[int]:
    lot = random_numbers(seed, _CHOICE, number << 16, len(game.record.turns)) >> np.uint64(11)
    plies: list[int] = np.flatnonzero(lot / float(1 << 53) < share).tolist()
    return plies


def _search_group(searcher: Searcher, group: Sequence[_Chosen]) -> list[tuple[Row, int]]:
    """The rows of games, and how many positions of each were searched."""
    positions = [list(game.record.positions()) for game, _ in group]
    chosen = [
        [ply for ply in plies if not each[ply].is_over] for (_, plies), each in zip(group, positions, strict=True)
    ]
    answers = iter(searcher([each[ply] for each, plies in zip(positions, chosen, strict=True) for ply in plies]))
    rows = []
    for (game, _), plies, each in zip(group, chosen, positions, strict=True):
        found = dict(zip(plies, answers, strict=False))
        made = [_ply(each[k], name, found.get(k)) for k, (_, name) in enumerate(game.record.turns)]
        played = SelfplayGame(0, each[0], each[-1], made)
        rows.append((game.row | search_row(played, len(made)), sum(ply.kind == FULL for ply in made)))
    return rows


def _search_within(searcher: Searcher, group: Sequence[_Chosen], within: Within, seed: int) -> list[tuple[Row, int]]:
    """The rows of positions in the trees of games' positions."""
    roots = [
        (game.row, ply, position)
        for game, plies in group
        for ply, position in enumerate(game.record.positions())
        if ply in plies and not position.is_over
    ]
    trees = within.draw([root for _, _, root in roots], seed)
    drawn = [(*root, line) for root, lines in zip(roots, trees, strict=True) for line in lines]
    there = [root.play(*line) for _, _, root, line in drawn]
    rows = []
    for (row, ply, root, line), position, found in zip(drawn, there, searcher(there), strict=True):
        last = _ply(position, found[1][int(np.argmax(found[2]))], found) if found is not None else None
        if last is not None and last.kind == FULL:
            moves = row["moves"][: 2 * ply] + _packed(root, (*line, last.move))
            unknown = {name: None for name in ("winner", "score") if name in row}
            own = {"moves": moves, "result": "", "source": f"{row['source']}@{ply}"}
            played = SelfplayGame(0, position, position, [last])
            rows.append((row | unknown | own | search_row(played, len(moves) // 2), 1))
    return rows


def _packed(position: Position, line: Sequence[str]) -> bytes:
    """Moves from a position as a store has them."""
    game = GAMES[position.game]
    here, packed = np.zeros(1, np.int64), np.zeros((len(line), 1), np.uint16)
    for each, move in zip(packed, line, strict=True):
        code = np.array([game.kernels.code(position, move)], np.int16)
        game.archive.policy_games.play(position.record.copy(), here, code, each)
        position = position.play(move)
    return packed.astype("<u2").tobytes()


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
