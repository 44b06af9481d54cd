"""Recipes written as TOML, from the plain values they were read as."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any


def toml_lines(values: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
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
