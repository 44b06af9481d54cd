"""Lines of POSITIONS files, mutated: read or refused; what is read says itself as JSON and is read back equal."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from keima.errors import KeimaError
from keima.games.game import GAMES
from keima.games.positions import parse_json, parse_position

LINES: tuple[dict[str, object], ...] = (
    {"id": 7, "game": "go", "xsize": 9, "ysize": 7, "rules": "japanese", "komi": 6.5, "handicap": ["C3"],
     "moves": [["W", "D4"], ["B", "pass"]], "to_play": "W", "symmetry": 3, "profile": "rank_5k"},
    {"xsize": 5, "rules": {"ko": "SITUATIONAL", "scoring": "TERRITORY"}, "initialStones": [["B", "A1"]],
     "encore": True},
    {"id": "x", "game": "chess", "fen": None, "moves": ["e2e4", "c7c5"], "chess960": False},
    {"fen": "4k3/8/8/8/8/8/4P3/4K2R w K - 0 1", "moves": ["e1g1"]},
    {"game": "connect_four", "moves": ["d", "d", "c"], "policy_optimism": 0.2},
)  # fmt: skip
VALUES: tuple[Callable[[], object], ...] = tuple(
    (lambda value=value: value)  # type: ignore[misc]
    for value in (
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        19,
        20,
        3.5,
        7.25,
        1e300,
        10**400,
        -(10**30),
        "",
        "x",
        "B",
        "W",
        "white",
        "pass",
        "A1",
        "Z9",
        "T19",
        "e2e4",
        "e7e8q",
        "average",
        "japanese",
        "go",
        "chess",
        "\ud800",
        "\u0000",
        "é" * 300,
        [],
        {},
        [["B", "A1"]],
        [["B", "A1"], ["W", "A1"]],
        [["b", "a1"], ["B", "B2"]],
        ["d"] * 7,
        ["e2e4"],
        [[]],
        [None],
        [["B"]],
        {"ko": "NEVER"},
        {"ko": 3},
        {"scoring": "AREA", "tax": "ALL"},
        "8/8/8/8/8/8/8/8 w - - 0 1",
        "k7/8/K7/8/8/8/8/8 b",
    )
)


def one(seed: int) -> None:
    """One input."""
    rng = random.Random(f"positions {seed}")
    fields = dict(rng.choice(LINES))
    names = [*{name for line in LINES for name in line}, "nothing"]
    for _ in range(rng.randrange(4)):
        name = rng.choice(names)
        if rng.randrange(4) == 0:
            fields.pop(name, None)
        else:
            fields[name] = rng.choice(VALUES)()
    line = json.dumps(fields)
    if rng.randrange(4) == 0:
        at = rng.randrange(len(line))
        line = (
            line[:at]
            + rng.choice(["", "[", "]", "{", "}", '"', ",", "1", "-", "[" * 3000, "9" * 5000, "NaN", "\\"])
            + line[at:]
        )
    data = line.encode("utf-8", "replace")
    if rng.randrange(8) == 0:
        at = rng.randrange(len(data))
        data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    try:
        read = parse_position(parse_json(data))
    except KeimaError:
        return
    position = read.position
    again = GAMES[read.game].from_json(json.loads(json.dumps(position.to_json())))
    assert again.to_json() == position.to_json()
    assert again.record.tobytes() == position.record.tobytes()
