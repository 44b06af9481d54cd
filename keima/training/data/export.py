"""Games out of a store: as their game's own records, or as JSON lines with all that the store tells of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import numpy as np

from keima.errors import BadRequest
from keima.games.archive import FlatGames
from keima.games.game import GAMES
from keima.games.records import GameRecord
from keima.games.rows import Row
from keima.plain import Data
from keima.training.data.flat import reading
from keima.training.data.store import GameStore

More = Callable[[Row, Callable[[int, int], str]], Data]
"""What else a line of JSON tells of a row; the second argument names a move (ply, the kernels' code)."""


class Exported(NamedTuple):
    """A game of a store: its row, its record, and what names a move of one of its plies."""

    row: Row
    record: GameRecord
    name: Callable[[int, int], str]


def export(store: GameStore, numbers: Collection[int] = ()) -> Iterator[Exported]:
    """The games of a store, or those of these numbers (from 1, in the store's order; in self-play the games' own).

    Raises:
        BadStore: damaged data.
        BadRequest: a number that no game has.
    """
    wanted, counted = {*numbers}, 0
    for batch in store.batches(store.columns):
        with reading(store.path):
            flat = GAMES[store.game].archive.flat([batch])
            for g, row in enumerate(batch.to_pylist()):
                counted += 1
                number = row.get("number", counted)
                if numbers and number not in wanted:
                    continue
                wanted.discard(number)
                yield _exported(row, flat, g)
    if wanted:
        which = ", ".join(map(str, sorted(wanted)))
        raise BadRequest(f"no game of number {which}", source=str(store.path))


def _exported(row: Row, flat: FlatGames, g: int) -> Exported:
    game = GAMES[flat.game]
    count = int(flat.start[g + 1] - flat.start[g])
    turns = np.arange(count, dtype=np.int64)
    chosen = np.full(count, g, np.int64)
    first = flat.first_to_move(chosen, turns)
    start = game.archive.record(row, ()).final()
    sides = {start.to_play: game.kernels.side(start.record[0])}
    sides[game.letters[1 - game.letters.index(start.to_play)]] = game.kernels.other(sides[start.to_play])
    letters = [game.letters[int(not is_first)] for is_first in first.tolist()]

    def name(ply: int, code: int) -> str:
        return game.kernels.name(start, code, sides[letters[ply]])

    names = [name(ply, code) for ply, code in enumerate(flat.next_moves(chosen, turns).tolist())]
    return Exported(row, game.archive.record(row, tuple(zip(letters, names, strict=True))), name)


def to_json(exported: Exported, more: More | None = None) -> Data:
    """A game as JSON: `game`, `setup`, `moves` as [side, move], `result`, `players`, `date`, and what `more` tells."""
    row, record, name = exported
    found: Data = {"game": record.game, "setup": record.setup, "moves": [list(turn) for turn in record.turns]}
    found |= {"result": record.result, "players": dict(record.players), "date": record.date}
    return found | (more(row, name) if more is not None else {})
