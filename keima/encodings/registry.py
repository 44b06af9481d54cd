"""The encodings by name, as `keima planes ENCODING` takes them."""

from __future__ import annotations

from importlib import import_module

from keima.encodings.encoding import Encoding
from keima.errors import BadRequest

# name → (module that owns it, class there)
_OWNERS = {
    "alphago": ("keima.encodings.alphago", "AlphaGoEncoding"),
    "alphago-zero": ("keima.encodings.alphago_zero", "AlphaGoZeroEncoding"),
    "leela-zero": ("keima.encodings.alphago_zero", "LeelaZeroEncoding"),
    "katago": ("keima.encodings.katago", "KataGoEncoding"),
    "katago-guide": ("keima.encodings.katago_guide", "KataGoGuideEncoding"),
    "lc0": ("keima.encodings.lc0", "Lc0Encoding"),
}


def list_encodings() -> list[str]:
    """Names of all encodings, in the family's order."""
    return list(_OWNERS)


def get_encoding(name: str) -> Encoding:
    """The encoding of that name, with its default options.

    Raises:
        BadRequest: no encoding has that name; the message lists those there are.
    """
    if name not in _OWNERS:
        raise BadRequest(f"unknown encoding {name!r}; choose one of {', '.join(_OWNERS)}")
    module, attribute = _OWNERS[name]
    encoding: Encoding = getattr(import_module(module), attribute)()
    return encoding
