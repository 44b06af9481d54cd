"""Games that policies played, as a game store: for boards and styles of which there are no records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keima.inference.evaluator import Evaluator
from keima.training.rows import game_key
from keima.training.schema import GO_SCHEMA, pa
from keima.training.selfplay import EvaluatorPlayer, Played, Table, check_player, play_games
from keima.training.store import check_output, writing

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
    """Play games and write them to a store; the first player has Black in every other one.

    Args:
        evaluators: of the two players, who may be the same.
        table: size, rules, komi, temperature.
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
    moves = 0
    with writing(out, "go") as writer:
        for first in range(0, games, _TOGETHER):
            numbers = np.arange(first, min(first + _TOGETHER, games), dtype=np.int64)
            played = play_games(players, table, numbers, seed, symmetries)
            rows = list(_rows(played, table, numbers.tolist(), names))
            writer.write(pa.RecordBatch.from_pylist(rows, schema=GO_SCHEMA))
            moves += len(played.games.moves)
            progress(len(numbers) + first)
    return moves


def _rows(played: Played, table: Table, numbers: list[int], names: tuple[str, str]) -> Iterator[dict[str, Any]]:
    """The store's rows."""
    games = played.games
    for row, number in enumerate(numbers):
        moves = games.moves[games.start[row] : games.start[row + 1]].astype("<u2").tobytes()
        lead, black = float(games.score[row]), 0 if played.first_black[row] else 1
        yield {
            "moves": moves,
            "setup": b"",
            "to_play_first": 0,
            "xsize": table.size,
            "ysize": table.size,
            "rules": table.rules.name,
            "komi": table.komi,
            "handicap": 0,
            "winner": int(games.winner[row]),
            "result": f"{'B' if lead > 0 else 'W'}+{abs(lead):g}" if lead else "0",
            "black": names[black],
            "white": names[1 - black],
            "score": lead,
            "black_rank": "",
            "white_rank": "",
            "date": "",
            "source": f"played#{number + 1}",
            "key": game_key(bytes((table.size, table.size)), moves),
        }
