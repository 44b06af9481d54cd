"""Lines of GTP: known commands with wild arguments, broken ones, noise. Each is answered, none with our own error."""

from __future__ import annotations

import atexit
import io
import os
import random
import re
import tempfile
from functools import cache

from keima.engines.gtp.commands import COMMANDS
from keima.engines.gtp.engine import Engine, Options
from keima.engines.gtp.words import clean_line
from tests.engines.gtp_fakes import FakeEvaluator, FakeSearch

_LINES = 8
_NAMES = [name for name in COMMANDS if name not in ("quit", "kata-benchmark")]
_WORDS = """
    b w black white pass resign a1 e5 t19 i9 z0 -1 0 1 2 7 9 19 20 3:4 361 1e9 nan inf 0.5 -7.5 6.5 true all average
    chinese japanese martian none byoyomi canadian fischer fischer-capped avoid allow ownership minmoves maxmoves
    interval rootInfo dead alive seki maxVisits maxTime cpuctExploration ko SIMPLE scoring TERRITORY é {} [] " ' =
    {"ko":"SIMPLE"} \\ / ? 99999999999999999999 C3,D4,E5 play genmove game.sgf ~ %s \udcff rank_5k humanSLProfile
    {"maxVisits":3,"maxTime":1e400} {"cpuctExploration":[[1]]} valueWeightExponent policyOptimism rootNoiseEnabled
    1e-320 1e308 -1e308 0x10 ١ 1_000 +5 --5 b,w aga chinese-ogs false -0 00 resignThreshold ponderingEnabled value_base
""".split()  # noqa: SIM905


def one(seed: int) -> None:
    """A few lines for one engine, and whether each was answered."""
    rng = random.Random(seed)
    lines = [line for line in (_line(rng) for _ in range(_LINES)) if not _quits(line)]
    out = io.BytesIO()
    evaluator = FakeEvaluator()
    engine = Engine(
        evaluator, lambda bound, overrides: FakeSearch(bound, 0.02), Options(rules="tromp-taylor"), COMMANDS
    )
    home = os.getcwd()
    os.chdir(_folder())  # printsgf writes files
    try:
        engine.run(io.BytesIO(b"\n".join([b"boardsize 5", *lines, b"77 protocol_version", b""])), out)
    finally:
        os.chdir(home)
    answers = out.getvalue().decode().split("\n\n")
    assert answers[-2:] == ["=77 2", ""], lines
    assert len(answers) - 3 == sum(bool(clean_line(line)) for line in lines), (lines, answers)
    assert all(answer[0] in "=?" for answer in answers[:-1]), (lines, answers)
    assert not any("internal error" in answer for answer in answers), (lines, answers)


def _quits(line: bytes) -> bool:
    return re.fullmatch(r"\d*\s*quit.*", clean_line(line)) is not None


def _line(rng: random.Random) -> bytes:
    """One line, perhaps with a number, a carriage return or a comment."""
    kind = rng.random()
    words = [rng.choice(_NAMES), *rng.choices(_WORDS, k=rng.randrange(5))]
    line = " ".join(words).encode("utf-8", "surrogateescape")
    if kind < 0.05:
        line = rng.randbytes(rng.randrange(1, 40))
    elif kind < 0.15:
        line = line[: rng.randrange(1, len(line) + 1)]
    elif kind < 0.25:
        at = rng.randrange(len(line))
        line = line[:at] + rng.randbytes(1) + line[at:]
    elif kind < 0.35:
        line = b"%d %b" % (rng.randrange(100), line)
    return line.replace(b"\n", b" ") + rng.choice([b"", b"", b"\r", b" # why"])


@cache
def _folder() -> str:
    """A folder for the files of `printsgf`, away when the program ends."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return folder.name
