"""Is what a file says of the type that a configuration asks for?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

_MAX_FLOAT = 3e38
"""Beyond it, float32 has no numbers."""


def mistyped(value: object, hint: Any, place: str = "") -> str:
    """Where a value departs from a type hint ("blocks.0.channels"), with what stands there; empty if nowhere.

    Whole numbers must be below 2^31 in size, others finite and above 0, as epsilons and scales are.
    """
    found = f"{place or 'the whole'} is {repr(value)[:40]}"
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return ""
    if origin in (Union, UnionType):
        each = [mistyped(value, one, place) for one in inner]
        return "" if not all(each) else max(each, key=lambda where: where.partition(" is ")[0].count("."))
    if hint in (int, float):
        if isinstance(value, bool) or not isinstance(value, (int, hint)):
            return found
        return "" if (abs(value) < 2**31 if hint is int else 0 < value < _MAX_FLOAT) else found
    if hint in (str, bool, NoneType):
        return "" if isinstance(value, hint) else found
    if is_dataclass(hint) and isinstance(value, hint if isinstance(hint, type) else type(hint)):
        hints = get_type_hints(hint)
        parts = [(getattr(value, each.name), hints[each.name], each.name) for each in fields(hint)]
    elif origin is tuple and isinstance(value, tuple) and (inner[-1] is ... or len(inner) == len(value)):
        each_hint = inner[:1] * len(value) if inner[-1] is ... else inner
        parts = [(item, one, str(number)) for number, (item, one) in enumerate(zip(value, each_hint, strict=True))]
    elif origin is Sequence and isinstance(value, Sequence) and not isinstance(value, str):
        parts = [(item, inner[0], str(number)) for number, item in enumerate(value)]
    elif origin is Mapping and isinstance(value, Mapping):
        parts = [(item, inner[1], str(key)) for key, item in value.items()]
    else:
        return found
    deeper = (mistyped(item, one, f"{place}.{name}".lstrip(".")) for item, one, name in parts)
    return next((where for where in deeper if where), "")
