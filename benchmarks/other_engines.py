"""Other engines' speed with a network, where they are installed: the yardsticks of `bench_search.py`.

KataGo is driven by GTP, lc0 by UCI, each with all the threads it is given and a cache emptied before each search. Both
start from the position they are asked about, like our own search.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

KATAGO_CONFIG = """logDir = {folder}
logToStderr = false
logAllGTPCommunication = false
logSearchInfo = false
rules = chinese
ponderingEnabled = false
lagBuffer = 0
allowResignation = false
resignThreshold = -1
resignConsecTurns = 3
maxVisits = {visits}
numSearchThreads = {threads}
nnMaxBatchSize = 16
"""


def find_engine(command: str) -> str | None:
    """The program's path, if it is installed."""
    return shutil.which(command)


@contextmanager
def conversation(command: list[str]) -> Iterator[tuple[IO[str], IO[str]]]:
    """A program's standard input and output, as text."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the program has no pipes")
        try:
            yield process.stdin, process.stdout
        finally:
            process.kill()


def _gtp(streams: tuple[IO[str], IO[str]], command: str) -> None:
    """Say a command and read its answer, up to the empty line."""
    streams[0].write(command + "\n")
    streams[0].flush()
    for line in streams[1]:
        if line.startswith("?"):
            raise RuntimeError(f"{command}: {line.strip()}")
        if not line.strip():
            return
    raise RuntimeError(f"{command}: the program ended")


def katago_visits(command: str, network: str, moves: list[tuple[str, str]], size: int, visits: int) -> float:
    """KataGo's visits a second: the best number of threads (1, 2, 4, 8 a core), the better of two searches."""
    best = 0.0
    for threads in sorted({(os.cpu_count() or 1) * factor for factor in (1, 2, 4, 8)}):
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "gtp.cfg"
            config.write_text(KATAGO_CONFIG.format(folder=folder, visits=visits, threads=threads))
            with conversation([command, "gtp", "-model", network, "-config", str(config)]) as streams:
                _gtp(streams, f"boardsize {size}")
                for _ in range(2):
                    _gtp(streams, "clear_board")
                    _gtp(streams, "clear_cache")
                    for colour, vertex in moves:
                        _gtp(streams, f"play {colour} {vertex}")
                    start = time.perf_counter()
                    _gtp(streams, f"genmove {'BW'[len(moves) % 2]}")
                    best = max(best, visits / (time.perf_counter() - start))
    return best


def lc0_nodes(command: str, network: str, moves: list[str], nodes: int) -> float:
    """lc0's nodes a second on its CPU backend, as it reports them (`nps`); the best of three searches."""
    best = 0.0
    arguments = [command, f"--weights={network}", "--backend=blas", f"--threads={max(2, os.cpu_count() or 2)}"]
    with conversation(arguments) as (to_engine, from_engine):
        for _ in range(3):
            to_engine.write(f"ucinewgame\nposition startpos moves {' '.join(moves)}\ngo nodes {nodes}\n")
            to_engine.flush()
            rate = 0.0
            for line in from_engine:
                words = line.split()
                if "nps" in words:
                    rate = float(words[words.index("nps") + 1])
                if words[:1] == ["bestmove"]:
                    break
            best = max(best, rate)
    return best
