"""POSITIONS files: one JSON object a line, each a position of Go or chess.

    {"id": 7, "game": "go", "xsize": 19, "ysize": 19, "rules": "chinese", "komi": 7.5,
     "handicap": ["D4"], "moves": [["B","Q16"],["W","pass"]], "to_play": "B", "symmetry": 0}
    {"id": 8, "game": "chess", "fen": null, "moves": ["e2e4","c7c5"]}

| field | games | meaning | default |
| --- | --- | --- | --- |
| id | both | any JSON value, given back with the answer | the line's number |
| game | both | "go" or "chess" | "go", or "chess" if the line has a `fen` |
| moves | both | Go: [colour, vertex] pairs; chess: UCI | none |
| xsize, ysize | Go | columns and rows, 2 to 19 | 19 (ysize: xsize) |
| rules | Go | KataGo's names or its JSON object | "chinese" |
| komi | Go | points for White | the usual komi of the rules |
| handicap | Go | vertices of Black's handicap stones | none |
| initialStones | Go | [colour, vertex] pairs of other stones set up | none |
| to_play | Go | "B" or "W" | the other side of the last move |
| encore | Go | whether two passes begin KataGo's encore (territory rules) | false |
| fen | chess | the position `moves` start from | the usual start |
| chess960 | chess | read castling as in Chess960 | false |
| symmetry | both | 0 to 7, or "average" | the command's |
| profile, policy_optimism | Go | for KataGo networks that take them | none, 0 |

Further fields are left alone, so a line may carry notes of its own.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from keima.errors import BadPosition, KeimaError
from keima.games.files import READ_ERRORS, open_stream

_COLOURS = {"B": "B", "W": "W", "BLACK": "B", "WHITE": "W"}
MAX_LINE = 4 << 20
"""A longer line is no position; refused before it is parsed."""


@dataclass(frozen=True)
class PositionLine:
    """One line of a POSITIONS file, read.

    Attributes:
        id: what the answer is to be labelled with.
        game: "go" or "chess".
        position: a `keima.games.go.position.Position` or a `keima.games.chess.position.Position`.
        symmetry: 0–7, "average", or None where the line leaves it to the command.
        options: what else the network may take, by name ("profile", "policy_optimism").
        source: the file the line stands in; None if it was not read from one.
        place: where in that file ("line 3").
    """

    id: Any
    game: str
    position: Any
    symmetry: int | str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None
    place: str | None = None


@dataclass(frozen=True)
class BadLine:
    """A line that describes no position: its id (or number) and what is wrong with it."""

    id: Any
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


def _lines(stream: Any) -> Iterator[bytes]:
    reader = stream if hasattr(stream, "readline") else io.BufferedReader(stream)
    while line := reader.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            while rest := reader.readline(MAX_LINE):
                if rest.endswith(b"\n"):
                    break
        yield line


def _read_line(line: bytes, source: str, number: int) -> PositionLine | BadLine:
    """One line, with file and line number in its error if it is bad."""
    identity: Any = number
    try:
        if len(line) > MAX_LINE:
            raise BadPosition(f"the line is longer than {MAX_LINE >> 20} MB")
        fields = parse_json(line)
        identity = fields.get("id", number)
        return replace(parse_position(fields, identity), source=source, place=f"line {number}")
    except KeimaError as error:
        return BadLine(identity, error.at(source=source, place=f"line {number}"))


def parse_json(line: bytes | str) -> dict[str, Any]:
    """A line as a JSON object.

    Raises:
        BadPosition: not UTF-8, not JSON, or no object.
    """
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
        raise BadPosition(f"expected a JSON object, found {_kind(fields)}")
    return fields


def parse_position(fields: Mapping[str, Any], identity: Any = None) -> PositionLine:
    """A position from a line's fields.

    Raises:
        BadPosition: a field is missing, of the wrong kind or out of range; the message names it.
        IllegalMove: a move breaks the rules; the message names its number.
    """
    game = fields.get("game", "chess" if "fen" in fields else "go")
    if game == "go":
        position = _go_position(fields)
    elif game == "chess":
        position = _chess_position(fields)
    else:
        raise BadPosition(f'expected "go" or "chess", found {_shown(game)}', place='field "game"')
    return PositionLine(identity, game, position, _symmetry(fields), _options(fields))


def _go_position(fields: Mapping[str, Any]) -> Any:
    from keima.games.go.position import Position

    xsize = _integer(fields, "xsize", 19)
    rules = fields.get("rules", "chinese")
    if not isinstance(rules, (str, dict)):
        raise BadPosition(f"expected a name or an object, found {_kind(rules)}", place='field "rules"')
    return Position.from_moves(
        moves=_go_pairs(fields, "moves"),
        size=(xsize, _integer(fields, "ysize", xsize)),
        rules=rules,
        komi=None if fields.get("komi") is None else _number(fields, "komi", 0.0),
        handicap=_strings(fields, "handicap"),
        initial_stones=_go_pairs(fields, "initialStones"),
        to_play=_colour(fields, "to_play"),
        encore=_flag(fields, "encore"),
    )


def _go_pairs(fields: Mapping[str, Any], name: str) -> list[tuple[str, str]]:
    """The (colour, vertex) pairs of a field."""
    pairs = []
    for number, pair in enumerate(_list(fields, name), 1):
        place = f'field "{name}": item {number}'
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
            raise BadPosition(f'expected a pair like ["B", "Q16"], found {_shown(pair)}', place=place)
        colour = _COLOURS.get(pair[0].upper())
        if colour is None:
            raise BadPosition(f'expected "B" or "W", found {_shown(pair[0])}', place=place)
        pairs.append((colour, pair[1]))
    return pairs


def _chess_position(fields: Mapping[str, Any]) -> Any:
    from keima.games.chess.position import Position

    fen = fields.get("fen")
    if not (fen is None or isinstance(fen, str)):
        raise BadPosition(f"expected a FEN or null, found {_kind(fen)}", place='field "fen"')
    moves = _strings(fields, "moves")
    try:
        position = Position.from_fen(fen, chess960=_flag(fields, "chess960"))
    except KeimaError as error:
        raise error.at(place='field "fen"') from error
    return position.play(*moves)


def _symmetry(fields: Mapping[str, Any]) -> int | str | None:
    symmetry = fields.get("symmetry")
    if symmetry is None or symmetry == "average" or (_is_integer(symmetry) and 0 <= symmetry <= 7):
        return symmetry
    raise BadPosition(f'expected 0 to 7 or "average", found {_shown(symmetry)}', place='field "symmetry"')


def _options(fields: Mapping[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if fields.get("profile") is not None:
        if not isinstance(fields["profile"], str):
            raise BadPosition(f"expected a profile's name, found {_kind(fields['profile'])}", place='field "profile"')
        options["profile"] = fields["profile"]
    if fields.get("policy_optimism") is not None:
        options["policy_optimism"] = _number(fields, "policy_optimism", 0.0)
    return options


def _integer(fields: Mapping[str, Any], name: str, default: int) -> int:
    number = fields.get(name, default)
    if not _is_integer(number):
        raise BadPosition(f"expected a whole number, found {_shown(number)}", place=f'field "{name}"')
    return int(number)


def _number(fields: Mapping[str, Any], name: str, default: float) -> float:
    number = fields.get(name, default)
    if isinstance(number, bool) or not isinstance(number, (int, float)) or abs(number) > 1e6:
        raise BadPosition(f"expected a number, found {_shown(number)}", place=f'field "{name}"')
    return float(number)


def _is_integer(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _list(fields: Mapping[str, Any], name: str) -> list[Any]:
    items = fields.get(name)
    if items is None:
        return []
    if not isinstance(items, list):
        raise BadPosition(f"expected a list, found {_kind(items)}", place=f'field "{name}"')
    return items


def _strings(fields: Mapping[str, Any], name: str) -> list[str]:
    items = _list(fields, name)
    for number, item in enumerate(items, 1):
        if not isinstance(item, str):
            raise BadPosition(f"expected a string, found {_shown(item)}", place=f'field "{name}": item {number}')
    return items


def _flag(fields: Mapping[str, Any], name: str) -> bool:
    flag = fields.get(name, False)
    if not isinstance(flag, bool):
        raise BadPosition(f"expected true or false, found {_shown(flag)}", place=f'field "{name}"')
    return flag


def _colour(fields: Mapping[str, Any], name: str) -> str | None:
    written = fields.get(name)
    if written is None:
        return None
    colour = _COLOURS.get(written.upper()) if isinstance(written, str) else None
    if colour is None:
        raise BadPosition(f'expected "B" or "W", found {_shown(written)}', place=f'field "{name}"')
    return colour


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(f"{_shown(text)} is too large a number")
    return number


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _shown(value: Any) -> str:
    """The value as JSON, cut to a length that fits a message."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
