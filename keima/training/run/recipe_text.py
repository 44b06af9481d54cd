"""TOML that remembers where each key stands, so that an error can name the line.

The standard parser gives values without places. Here a file that it accepts is cut into statements (the fewest whole
lines that are TOML by themselves), and each key is given its statement's first line.

    >>> dict(key_lines("[run]\\nsteps = 10\\n"))
    {'run': 1, 'run.steps': 2}
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keima.errors import BadRequest
from keima.plain import Data, Fields

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_toml(path: str | os.PathLike[str], what: str) -> tuple[Data, dict[str, str], str]:
    """A TOML file's values, the place of each key (by "run.steps", and "run" for the table's head: "line 3"), its text.

    Raises:
        BadRequest: it cannot be read, or is not TOML; the message says of `what` ("the recipe").
    """
    source = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadRequest(f"cannot read {what}: {error.strerror or error}", source=source) from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"cannot read {what}: it is not UTF-8 text", source=source) from error
    return (*parse_toml(text, source, what), text)


def parse_toml(text: str, source: str, what: str) -> tuple[Data, dict[str, str]]:
    """Values and places of the text of a TOML file, as `read_toml`."""
    try:
        values = tomllib.loads(text)
        places = {key: f"line {line}" for key, line in key_lines(text)}
    except tomllib.TOMLDecodeError as error:
        message, place = _place(str(error), text)
        raise BadRequest(f"not TOML: {message}", source=source, place=place) from error
    except (ValueError, RecursionError) as error:  # limits of Python's
        message = "it is nested too deeply" if isinstance(error, RecursionError) else "a number has too many digits"
        raise BadRequest(f"cannot read {what}: {message}", source=source) from error
    return values, places


def parse_value(text: str) -> Any:
    """A TOML value, or the text itself where it is none: `--set data.train=games.parquet` needs no quotes."""
    try:
        values = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return values["value"] if set(values) == {"value"} else text


def _place(message: str, text: str) -> tuple[str, str | None]:
    """The parser's "... (at line 3, column 4)" as message and line."""
    said, _, place = message.partition(" (at ")
    if place.startswith("end of document"):
        lines = text.removesuffix("\n").split("\n")
        return said, f"line {len(lines)}"
    line = place.split(",")[0]
    return (said, line) if line.removeprefix("line ").isdecimal() else (message, None)


def key_lines(text: str) -> Iterator[tuple[str, int]]:
    """The dotted keys of TOML with the line each stands on, from 1, in the order of the file."""
    lines = text.split("\n")  # other ends of lines are none in TOML
    table, first = "", 0
    while first < len(lines):
        last, statement = _statement(lines, first)
        if lines[first].lstrip().startswith("["):
            *outer, table = _dotted(statement)
            yield from ((key, first + 1) for key in (*outer, table))
        else:
            for key in _dotted(statement):
                yield f"{table}.{key}" if table else key, first + 1
        first = last


def _statement(lines: list[str], first: int) -> tuple[int, Data]:
    """The statement that begins on line `first`, and the index of the line after it."""
    for last in range(first + 1, len(lines) + 1):
        try:
            return last, tomllib.loads("\n".join(lines[first:last]))
        except tomllib.TOMLDecodeError:
            continue
    return len(lines), {}


def _dotted(values: Data) -> Iterator[str]:
    """The dotted keys of a statement, the deepest last; tables on the way to a value are not keys themselves."""
    for key, value in values.items():
        yield key
        if isinstance(value, dict):
            yield from (f"{key}.{inner}" for inner in _dotted(value))


def toml_lines(values: Mapping[str, Fields]) -> Iterator[str]:
    """Tables of plain values as the lines of a TOML file."""
    for section, table in values.items():
        if isinstance(table, dict):
            yield from ("", f"[{section}]")
            yield from (f"{_key(key)} = {_toml(value)}" for key, value in table.items())
    yield ""


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)
