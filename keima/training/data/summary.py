"""What a game store holds, in numbers: for `keima data info` and for those who choose what to train on."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from keima.games.game import GAMES
from keima.games.rows import value_counts
from keima.plain import Data
from keima.training.data.files import StoreFiles


def summarise(store: StoreFiles) -> Data:
    """Counts over all games; each mapping from the most frequent down, dates and Elo in order.

    Returns:
        game, files, bytes, games, moves, moves_per_game (min, mean, median, max), results, dates (games a year, first,
        last), and what only stores of this game have: the game's `Archive.counts`.

    Raises:
        BadStore: damaged data.
    """
    game = GAMES[store.game]
    counts = game.archive.counts()
    lengths = np.zeros(0, np.int64)
    winners: Counter[Any] = Counter()
    dates: Counter[str] = Counter()
    for batch in store.batches(["moves", "winner", "date", *counts.columns]):
        sizes = np.bincount(pc.binary_length(batch.column("moves")).to_numpy(zero_copy_only=False) // 2)
        lengths = _sum(lengths, sizes)
        winners.update(value_counts(batch.column("winner")))
        dates.update(value_counts(batch.column("date")))
        counts.add(batch)
    results = {1: game.sides[0], -1: game.sides[1], 0: game.archive.drawn, None: "unknown"}
    return {
        "game": store.game,
        "files": len(store.files),
        "bytes": sum(file.stat().st_size for file in store.files),
        "games": len(store),
        "moves": int((lengths * np.arange(len(lengths))).sum()),
        "moves_per_game": _spread(lengths),
        "results": {name: winners[value] for value, name in results.items() if winners[value]},
        "dates": _describe_dates(dates),
        **counts.describe(),
    }


def _sum(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of two histograms of different length."""
    total = np.zeros(max(len(a), len(b)), np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total


def _spread(lengths: NDArray[np.int64]) -> dict[str, float]:
    """Least, mean, median and greatest number of moves, from a histogram."""
    games = int(lengths.sum())
    if not games:
        return {}
    present = np.flatnonzero(lengths)
    return {
        "min": int(present[0]),
        "mean": round(float((lengths * np.arange(len(lengths))).sum()) / games, 1),
        "median": int(np.searchsorted(np.cumsum(lengths), (games + 1) // 2)),
        "max": int(present[-1]),
    }


def _describe_dates(dates: Counter[str]) -> Data:
    """First and last ISO date, games a year; what is no ISO date is counted as "unknown"."""
    known = {date: count for date, count in dates.items() if date and date[:4].isdecimal() and date[4:5] in ("", "-")}
    years: Counter[str] = Counter()
    for date, count in known.items():
        years[date[:4]] += count
    unknown = sum(dates.values()) - sum(known.values())
    return {
        "first": min(known, default=""),
        "last": max(known, default=""),
        "years": dict(sorted(years.items())) | ({"unknown": unknown} if unknown else {}),
    }
