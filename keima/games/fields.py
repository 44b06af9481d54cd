"""Fields of JSON objects read strictly: what is of the wrong kind is refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping

from keima.errors import BadPosition

Fields = Mapping[str, object]


def whole(fields: Fields, name: str, default: int) -> int:
    """A whole number. Raises `BadPosition`, as all of these."""
    number = fields.get(name, default)
    if not isinstance(number, int) or isinstance(number, bool):
        raise wrong(name, "a whole number", shown(number))
    return number


def number(fields: Fields, name: str) -> float | None:
    """A number of reasonable size; None where the field is absent or null."""
    found = fields.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, (int, float)) or abs(found) > 1e6:
        raise wrong(name, "a number", shown(found))
    return float(found)


def flag(fields: Fields, name: str) -> bool:
    """True or false; a field left out is false."""
    found = fields.get(name, False)
    if not isinstance(found, bool):
        raise wrong(name, "true or false", shown(found))
    return found


def items(fields: Fields, name: str) -> list[object]:
    """A list; empty where the field is absent or null."""
    found = fields.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise wrong(name, "a list", kind(found))
    return found


def strings(fields: Fields, name: str) -> list[str]:
    """A list of strings."""
    found = []
    for index, item in enumerate(items(fields, name), 1):
        if not isinstance(item, str):
            raise wrong(name, "a string", shown(item), index)
        found.append(item)
    return found


def wrong(name: str, expected: str, found: str, item: int | None = None) -> BadPosition:
    """The error of a field, or of an item of it, counted from 1."""
    place = f'field "{name}"' + (f": item {item}" if item else "")
    return BadPosition(f"expected {expected}, found {found}", place=place)


def kind(value: object) -> str:
    """What sort of JSON value it is, in words."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def shown(value: object) -> str:
    """The value as JSON, cut to a length that fits a message."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (RecursionError, TypeError, ValueError):  # nested too deeply, no JSON, a number too long to be written
        return f"{kind(value)} that cannot be shown"
    return text if len(text) <= 60 else text[:57] + "..."
