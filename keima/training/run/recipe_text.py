"""TOML that remembers where each key stands, so that an error can name the line.

The standard parser gives values without places. Here a file that it accepts is cut into statements (the fewest whole
lines that are TOML by themselves), and each key is given its statement's first line.

    >>> parse("[run]\\nsteps = 10\\n").lines
    {'run': 1, 'run.steps': 2}
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from keima.plain import Data, Fields

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Document:
    """A parsed file.

    Attributes:
        values: what the TOML says.
        lines: dotted key ("run.steps", and "run" for the table's own head) → line it stands on, from 1.
    """

    values: Data
    lines: dict[str, int]


class BadToml(ValueError):
    """Text that is not TOML; `line` from 1, or None where the parser does not say."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str) -> Document:
    """Parse TOML and find each key's line.

    Raises:
        BadToml: it is not TOML.
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, line = _place(str(error), text)
        raise BadToml(message, line) from error
    return Document(values, dict(_keys(text)))


def parse_value(text: str) -> Any:
    """A TOML value, or the text itself where it is none: `--set data.train=games.parquet` needs no quotes."""
    try:
        values = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return values["value"] if set(values) == {"value"} else text


def _place(message: str, text: str) -> tuple[str, int | None]:
    """The parser's "... (at line 3, column 4)" as message and line."""
    said, _, place = message.partition(" (at ")
    if place.startswith("end of document"):
        return said, max(1, len(text.splitlines()))
    number = place.removeprefix("line ").split(",")[0]
    return (said, int(number)) if number.isdecimal() else (message, None)


def _keys(text: str) -> Iterator[tuple[str, int]]:
    """Dotted keys with their lines, in the order of the file."""
    lines = text.splitlines()
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


# --- Writing ----------------------------------------------------------------------------------------------------------


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
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)
