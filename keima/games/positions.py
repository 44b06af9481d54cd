"""POSITIONS files: one JSON object a line, each a position of a game.

    {"id": 7, "game": "go", "xsize": 19, "ysize": 19, "rules": "chinese", "komi": 7.5,
     "handicap": ["D4"], "moves": [["B","Q16"],["W","pass"]], "to_play": "B", "symmetry": 0}
    {"id": 8, "game": "chess", "fen": null, "moves": ["e2e4","c7c5"]}

| field | meaning | default |
| --- | --- | --- |
| id | any JSON value, given back with the answer | the line's number |
| game | a name of `GAMES` | the game that alone has one of the line's fields, else the first |
| symmetry | 0 to 7, or "average" | the command's |

The other fields are the game's own (`Position.from_json` of each), and the network's options, which the network's
encoding reads (`PositionLine.options`). Further fields are left alone, so a line may carry notes of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import IO

from keima.errors import BadPosition, KeimaError
from keima.games.fields import kind, shown, wrong
from keima.games.game import GAMES
from keima.games.position import Position
from keima.games.streams import READ_ERRORS, open_stream

MAX_LINE = 4 << 20
"""A longer line is no position; refused before it is parsed."""
_READ = ("id", "game", "symmetry")


@dataclass(frozen=True)
class PositionLine:
    """One line of a POSITIONS file, read."""

    id: object  # what the answer is to be labelled with
    game: str  # a key of `GAMES`
    position: Position
    symmetry: int | str | None = None  # 0–7, "average", or None where the line leaves it to the command
    others: Mapping[str, object] = field(default_factory=dict)  # of the game, a network's options, notes; none null
    source: str | None = None  # the file the line stands in
    place: str | None = None  # where in that file ("line 3")


@dataclass(frozen=True)
class BadLine:
    """A line that describes no position: its id (or number) and what is wrong with it."""

    id: object
    error: KeimaError


def read_positions(path: str) -> Iterator[PositionLine | BadLine]:
    """The positions of a file, one a line; blank lines are skipped, gzip is unpacked, `-` is standard input.

    Raises:
        BadPosition: the file itself cannot be opened or unpacked.
    """
    name = "standard input" if path == "-" else path
    try:
        with open_stream(path) as stream:
            for number, line in enumerate(_lines(stream), 1):
                if line.strip():
                    yield _read_line(line, name, number)
    except READ_ERRORS as error:
        raise BadPosition(f"cannot be read: {getattr(error, 'strerror', None) or error}", source=name) from error


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    while line := stream.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            while rest := stream.readline(MAX_LINE):
                if rest.endswith(b"\n"):
                    break
        yield line


def _read_line(line: bytes, source: str, number: int) -> PositionLine | BadLine:
    """One line, with file and line number in its error if it is bad."""
    identity: object = number
    try:
        if len(line) > MAX_LINE:
            raise BadPosition(f"the line is longer than {MAX_LINE >> 20} MB")
        fields = parse_json(line)
        identity = fields.get("id", number)
        return replace(parse_position(fields, identity), source=source, place=f"line {number}")
    except KeimaError as error:
        return BadLine(identity, error.at(source=source, place=f"line {number}"))


def parse_json(line: bytes | str) -> dict[str, object]:
    """A line as a JSON object. Raises `BadPosition`: not UTF-8, not JSON, or no object."""
    try:
        text = line.decode("utf-8-sig") if isinstance(line, bytes) else line
        fields = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise BadPosition(f"not UTF-8: byte {error.start} is {error.object[error.start]:#04x}") from error
    except json.JSONDecodeError as error:
        raise BadPosition(f"not JSON: {error.msg}", place=f"column {error.colno}") from error
    except RecursionError as error:
        raise BadPosition("not JSON that a position could need: nested too deeply") from error
    except ValueError as error:
        raise BadPosition(f"not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise BadPosition(f"expected a JSON object, found {kind(fields)}")
    return fields


def parse_position(fields: Mapping[str, object], identity: object = None) -> PositionLine:
    """A position from a line's fields. Raises as `Position.from_json`."""
    name = fields["game"] if "game" in fields else _game_by_field(fields)
    if not isinstance(name, str) or name not in GAMES:
        *most, last = (json.dumps(known) for known in GAMES)
        raise wrong("game", f"{', '.join(most)} or {last}", shown(name))
    position = GAMES[name].from_json(fields)
    others = {key: value for key, value in fields.items() if key not in _READ and value is not None}
    return PositionLine(identity, name, position, _symmetry(fields), others)


def _game_by_field(fields: Mapping[str, object]) -> str:
    """The game that alone has one of these fields; the first of all where none has."""
    first, *others = GAMES
    return next((name for name in others if any(one in fields for one in GAMES[name].fields)), first)


def _symmetry(fields: Mapping[str, object]) -> int | str | None:
    symmetry = fields.get("symmetry")
    if symmetry is None or symmetry == "average":
        return None if symmetry is None else "average"
    if isinstance(symmetry, int) and not isinstance(symmetry, bool) and 0 <= symmetry <= 7:
        return symmetry
    raise wrong("symmetry", '0 to 7 or "average"', shown(symmetry))


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(f"{shown(text)} is too large a number")
    return number
