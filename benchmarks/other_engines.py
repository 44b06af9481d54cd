"""Other engines' speed with a network, where they are installed: the yardsticks of `bench_search.py`.

KataGo is driven by GTP, lc0 by UCI, a cache emptied before each search. Both start from the position they are asked
about, like our own search.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from keima.inference.backend import usable_cores

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


def find_engine(command: str) -> list[str] | None:
    """A command's words, its program's path first, if that is installed."""
    program, *options = shlex.split(command)
    path = shutil.which(program)
    return None if path is None else [path, *options]


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


@contextmanager
def katago_searches(
    command: list[str], network: str, moves: list[tuple[str, str]], size: int, visits: int
) -> Iterator[Callable[[], float]]:
    """A function that searches once with KataGo and gives its visits a second, with the best number of threads."""
    threads = [usable_cores() * factor for factor in (1, 2, 4, 8)]
    trials = {}
    for count in threads:
        with _katago(command, network, moves, size, visits, count) as search:
            trials[count] = search()
    with _katago(command, network, moves, size, visits, max(trials, key=trials.__getitem__)) as search:
        yield search


@contextmanager
def _katago(
    command: list[str], network: str, moves: list[tuple[str, str]], size: int, visits: int, threads: int
) -> Iterator[Callable[[], float]]:
    """The same with so many threads."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "gtp.cfg"
        config.write_text(KATAGO_CONFIG.format(folder=folder, visits=visits, threads=threads))
        with conversation([*command, "gtp", "-model", network, "-config", str(config)]) as streams:
            _gtp(streams, f"boardsize {size}")

            def search() -> float:
                _gtp(streams, "clear_board")
                _gtp(streams, "clear_cache")
                for colour, vertex in moves:
                    _gtp(streams, f"play {colour} {vertex}")
                start = time.perf_counter()
                _gtp(streams, f"genmove {'BW'[len(moves) % 2]}")
                return visits / (time.perf_counter() - start)

            yield search


@contextmanager
def lc0_searches(command: list[str], network: str, moves: list[str], nodes: int) -> Iterator[Callable[[], float]]:
    """A function that searches once with lc0 and gives its nodes a second, as it reports them (`nps`)."""
    with conversation([*command, f"--weights={network}"]) as (to_engine, from_engine):

        def search() -> float:
            to_engine.write(f"ucinewgame\nposition startpos moves {' '.join(moves)}\ngo nodes {nodes}\n")
            to_engine.flush()
            rate = 0.0
            for line in from_engine:
                words = line.split()
                if "nps" in words:
                    rate = float(words[words.index("nps") + 1])
                if words[:1] == ["bestmove"]:
                    return rate
            raise RuntimeError("lc0 ended")

        yield search
