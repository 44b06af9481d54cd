"""What a game store holds, in numbers: for `keima data info` and for those who choose what to train on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from keima.training.schema import pa, pc

if TYPE_CHECKING:
    from keima.training.store import GameStore

_WINNERS = {
    "go": {1: "black", -1: "white", 0: "drawn or no result", None: "unknown"},
    "chess": {1: "white", -1: "black", 0: "drawn", None: "unknown"},
}
_ELO_STEP = 200


def summarise(store: GameStore) -> dict[str, Any]:
    """Counts over all games; each mapping from the most frequent down, dates and Elo in order.

    Returns:
        game, files, bytes, games, moves, moves_per_game (min, mean, median, max), results, dates (games a year, first,
        last); Go: sizes, rules, komi, handicap, ranks (players, not games), scored; chess: elo (players by steps of
        200), starts (usual, other, chess960).

    Raises:
        BadStore: damaged data.
    """
    counts = _GoCounts() if store.game == "go" else _ChessCounts()
    lengths = np.zeros(0, np.int64)
    winners: Counter[Any] = Counter()
    dates: Counter[str] = Counter()
    for batch in store.batches(["moves", "winner", "date", *counts.columns]):
        sizes = np.bincount(pc.binary_length(batch.column("moves")).to_numpy(zero_copy_only=False) // 2)
        lengths = _sum(lengths, sizes)
        winners.update(_count(batch.column("winner")))
        dates.update(_count(batch.column("date")))
        counts.add(batch)
    return {
        "game": store.game,
        "files": len(store.files),
        "bytes": sum(file.stat().st_size for file in store.files),
        "games": len(store),
        "moves": int((lengths * np.arange(len(lengths))).sum()),
        "moves_per_game": _spread(lengths),
        "results": {name: winners[value] for value, name in _WINNERS[store.game].items() if winners[value]},
        "dates": _describe_dates(dates),
        **counts.describe(),
    }


class _GoCounts:
    columns = ("xsize", "ysize", "rules", "komi", "handicap", "score", "black_rank", "white_rank")

    def __init__(self) -> None:
        self.sizes: Counter[str] = Counter()
        self.rules: Counter[str] = Counter()
        self.komi: Counter[float] = Counter()
        self.handicap: Counter[int] = Counter()
        self.ranks: Counter[str] = Counter()
        self.scored = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Count a batch of rows."""
        code = batch.column("xsize").to_numpy().astype(np.int64) * 256 + batch.column("ysize").to_numpy()
        for size, count in zip(*np.unique(code, return_counts=True), strict=True):
            self.sizes[f"{size >> 8}x{size & 255}"] += int(count)
        self.rules.update(_count(batch.column("rules")))
        self.komi.update(_count(batch.column("komi")))
        self.handicap.update(_count(batch.column("handicap")))
        for name in ("black_rank", "white_rank"):
            self.ranks.update(_count(batch.column(name)))
        self.scored += batch.num_rows - batch.column("score").null_count

    def describe(self) -> dict[str, Any]:
        """The counts as JSON."""
        return {
            "sizes": _ordered(self.sizes),
            "rules": _ordered(self.rules),
            "komi": {f"{komi:g}": count for komi, count in self.komi.most_common()},
            "handicap": {str(stones): count for stones, count in sorted(self.handicap.items())},
            "ranks": _ordered(self.ranks),
            "scored": self.scored,
        }


class _ChessCounts:
    columns = ("start_fen", "chess960", "white_elo", "black_elo")

    def __init__(self) -> None:
        self.elo: Counter[int | None] = Counter()
        self.starts: Counter[str] = Counter()

    def add(self, batch: pa.RecordBatch) -> None:
        """Count a batch of rows."""
        for name in ("white_elo", "black_elo"):
            for elo, count in _count(batch.column(name)).items():
                self.elo[None if elo is None else elo // _ELO_STEP * _ELO_STEP] += count
        others = batch.num_rows - batch.column("start_fen").null_count
        chess960 = int(pc.sum(batch.column("chess960")).as_py() or 0)
        self.starts.update({"usual": batch.num_rows - others, "other": others - chess960, "chess960": chess960})

    def describe(self) -> dict[str, Any]:
        """The counts as JSON."""
        known = sorted((elo, count) for elo, count in self.elo.items() if elo is not None)
        elo = {f"{low}-{low + _ELO_STEP - 1}": count for low, count in known}
        return {
            "elo": elo | ({"unknown": self.elo[None]} if self.elo[None] else {}),
            "starts": {name: count for name, count in self.starts.items() if count},
        }


def _count(column: pa.Array) -> dict[Any, int]:
    """How often each value stands in a column."""
    return {item["values"]: item["counts"] for item in pc.value_counts(column).to_pylist()}


def _ordered(counter: Counter[str]) -> dict[str, int]:
    """From the most frequent down; an empty text is "unknown"."""
    return {name or "unknown": count for name, count in counter.most_common()}


def _sum(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The sum of two histograms of different length."""
    total = np.zeros(max(len(a), len(b)), np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total


def _spread(lengths: np.ndarray[Any, Any]) -> dict[str, float]:
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


def _describe_dates(dates: Counter[str]) -> dict[str, Any]:
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
