"""How fast game records become a store, and a store flat arrays; the memory it takes.

python benchmarks/bench_import.py tygem-2010-06.sgf.gz [games.pgn ...]
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from keima.training.data.importing import ImportReport, import_games
from keima.training.data.store import GameStore


def main() -> None:
    for path in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "games.parquet"
            import_games([path], store)  # compiles the kernels, where that has not been done
            for workers in (1, 2):
                tell(path, workers, import_games([path], store, workers=workers))
            started = time.perf_counter()
            games = GameStore.open(store).flat()
            print(f"  flat arrays of {len(games):,} games: {time.perf_counter() - started:.2f} s")
    print(f"most memory held: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def tell(path: str, workers: int, report: ImportReport) -> None:
    read = report.games + report.duplicates + report.short + len(report.broken)
    print(f"{path}, {workers} workers: {read:,} games in {report.seconds:.2f} s, {read / report.seconds:,.0f} a second")


if __name__ == "__main__":
    main()
