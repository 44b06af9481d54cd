"""Games that policies played, as a game store: for boards and styles of which there are no records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from keima.games.game import GAMES
from keima.inference.evaluator import Evaluator
from keima.training.data.store import check_output, writing
from keima.training.reinforce.games import EvaluatorPlayer, Table, check_player, play_games

_TOGETHER = 256
"""Games played side by side."""

Progress = Callable[[int], None]
"""Is told how many games have been played."""


def play_store(
    evaluators: tuple[Evaluator, Evaluator],
    table: Table,
    games: int,
    out: Path | str,
    *,
    seed: int = 0,
    symmetries: bool = True,
    progress: Progress = lambda _: None,
) -> int:
    """Play games and write them to a store; the first player moves first in every other one.

    Args:
        evaluators: of the two players, who may be the same.
        table: where games begin, the temperature.
        games: how many.
        out: the store, `*.parquet`; replaced if it exists.
        seed: everything random follows from it.
        symmetries: each game is seen in an orientation of its own.
        progress: is told now and then.

    Returns:
        Moves played.

    Raises:
        BadRequest: `out` is no `.parquet` or in no folder, or a network that cannot play so.
        BadStore: it cannot be written; nothing is changed then.
    """
    check_output(out)
    for evaluator in evaluators:
        check_player(evaluator.network)
    players = EvaluatorPlayer(evaluators[0]), EvaluatorPlayer(evaluators[1])
    names = (evaluators[0].network.pedigree.name, evaluators[1].network.pedigree.name)
    moves, game = 0, table.begin.game
    with writing(out, game) as writer:
        for first in range(0, games, _TOGETHER):
            numbers = np.arange(first, min(first + _TOGETHER, games), dtype=np.int64)
            played = play_games(players, table, numbers, seed, symmetries)
            firsts = [names[int(not leads)] for leads in played.first_black]
            seconds = [names[int(leads)] for leads in played.first_black]
            rows = list(table.rules.rows(played.games, firsts, seconds, first))
            writer.write(pa.RecordBatch.from_pylist(rows, schema=GAMES[game].archive.schema))
            moves += len(played.games.moves)
            progress(len(numbers) + first)
    return moves
