"""Plain data: what JSON, TOML and keyword arguments hold by name; checked where it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

Data = dict[str, Any]
Fields = Mapping[str, Any]


class Note(str):
    """An English text that a page can word in another language: it knows the key of the page's text, and its values.

    Attributes:
        key: of the text in the page's text files; the English one there is `template`.
        values: what fills its {places}; one that is a `Note` is worded too.
    """

    key: str
    values: Fields

    def __new__(cls, template: str, key: str = "", **values: object) -> Self:
        """Text and values as words: `Note("only the first {count} nodes are read", "note.most", count=100)`."""
        text = super().__new__(cls, template.format(**values) if values else template)
        text.key = key
        text.values = {name: value if isinstance(value, Note) else str(value) for name, value in values.items()}
        return text


def told_words(name: str, words: str) -> Data:
    """The fields that tell a text: its English by that name, and `worded` where a page can word it."""
    return {name: str(words)} | ({"worded": told(words)} if isinstance(words, Note) else {})


def told(text: object) -> object:
    """A `Note` as JSON that keeps its key and values; anything else as it is."""
    if not isinstance(text, Note):
        return text
    return {"text": str(text), "key": text.key, "values": {name: told(value) for name, value in text.values.items()}}
