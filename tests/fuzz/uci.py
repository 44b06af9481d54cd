"""Lines of UCI: known commands with wild words, and noise. After them the engine still answers `isready`."""

from __future__ import annotations

import random
import time

from keima.engines.uci.engine import UciEngine
from keima.engines.uci.options import OPTIONS, Values
from tests.engines.scripted import ScriptedEvaluator, ScriptedSearch

_LINES = 8
_COMMANDS = """
    uci isready ucinewgame stop ponderhit debug setoption position go go go position register
""".split()  # noqa: SIM905
_WORDS = """
    name value startpos fen moves e2e4 e7e5 g1f3 e7e8q a1a1 0000 e1g1 8/8/8/8/8/8/8/8 w b - KQkq 0 1 wtime btime winc
    binc movestogo depth nodes movetime mate infinite ponder searchmoves
    1 10 -5 0 1e9 99999999999999999999 ١ nan on off é
    rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR 7k/8/8/8/8/8/8/R3K3 Q \ud800 \x00 <empty> true false
""".split()  # noqa: SIM905


def one(seed: int) -> None:
    """A few lines for one engine; whether it is alive after them."""
    rng = random.Random(seed)
    told: list[str] = []
    engine = UciEngine(lambda values: ScriptedSearch(ScriptedEvaluator("lc0")), Values(), told.append)
    lines = [_line(rng) for _ in range(_LINES)]
    for line in lines:
        if "quit" not in line.split():
            assert engine.handle(line), lines
    engine.handle("stop")
    engine.handle("isready")
    assert told[-1] == "readyok" or "readyok" in told, lines
    engine.finish()
    engine.close()
    deadline = time.monotonic() + 5
    while engine._thread.running:
        assert time.monotonic() < deadline, ("the search goes on", lines)
        time.sleep(0.001)
    begun, ended = sum(line.startswith("bestmove") for line in told), sum(_goes(line) for line in lines)
    assert begun <= ended, (lines, told)
    assert not any("internal error" in line for line in told), (lines, told)
    assert not any("\n" in line for line in told), (lines, told)


def _goes(line: str) -> bool:
    return "go" in line.split()


def _line(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.05:
        return rng.randbytes(rng.randrange(1, 40)).decode("utf-8", "replace").replace("\n", " ")
    if kind < 0.3:
        option = rng.choice(OPTIONS)
        values = (*option.choices, str(option.least), str(option.most), *rng.choices(_WORDS, k=3))
        return f"setoption name {option.name} value {rng.choice(values)}"
    if kind < 0.5:
        moves = " ".join(rng.choices(["e2e4", "e7e5", "g1f3", "b8c6", "a1a1"], k=rng.randrange(4)))
        return f"position startpos moves {moves}"
    if kind < 0.7:
        return f"go {rng.choice(['nodes', 'movetime', 'depth', 'mate', 'wtime'])} {rng.choice(['1', '8', '0', '-1'])}"
    line = " ".join([rng.choice(_COMMANDS), *rng.choices(_WORDS, k=rng.randrange(8))])
    return line[: rng.randrange(1, len(line) + 1)] if kind < 0.8 else line
