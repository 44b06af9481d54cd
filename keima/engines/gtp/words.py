"""The words of GTP: lines cleaned, numbers, colours and times read strictly, answers written."""

from __future__ import annotations

import re

from keima.errors import KeimaError

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_INT = re.compile(r"[+-]?[0-9]{1,12}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


class Refusal(KeimaError):
    """A command that is answered with `?`: the message is what follows."""


def clean_line(raw: bytes) -> str:
    """A line as GTP 2 § 3.1 prepares it: control characters and the comment dropped, tabs turned into spaces."""
    text = _CONTROL.sub("", raw.decode("utf-8", "replace"))
    return text.split("#", 1)[0].replace("\t", " ").strip()


def answer(good: bool, number: int | None, text: str) -> str:
    """A whole answer, its empty line at the end included; empty lines inside the text are left out.

    A text that begins with a line's end begins on a line of its own (drawn boards).
    """
    lines = [line.rstrip() for line in re.split(r"\r\n|\r|\n", text)]
    body = "\n".join(line for line in lines if line)
    head = f"{'=' if good else '?'}{'' if number is None else number}"
    between = "" if not body else "\n" if text.startswith("\n") else " "
    return f"{head}{between}{body}\n\n"


def expect(words: list[str], least: int, most: int, usage: str) -> None:
    """Refuse another number of arguments than that."""
    if not least <= len(words) <= most:
        raise Refusal(f"usage: {usage}")


def read_int(word: str, name: str, least: int, most: int) -> int:
    """A whole number in that range. Raises Refusal: it is none, or out of range."""
    if not _INT.fullmatch(word):
        raise Refusal(f"{name} must be a whole number, not {word[:40]!r}")
    if not least <= int(word) <= most:
        raise Refusal(f"{name} must be from {least} to {most}, not {word}")
    return int(word)


def read_number(word: str, name: str, least: float, most: float) -> float:
    """A finite number in that range. Raises Refusal: it is none, or out of range."""
    if not _NUMBER.fullmatch(word):
        raise Refusal(f"{name} must be a number, not {word[:40]!r}")
    if not least <= float(word) <= most:
        raise Refusal(f"{name} must be from {least:g} to {most:g}, not {word}")
    return float(word)


def read_colour(word: str) -> str:
    """Black or White, as "B" or "W". Raises Refusal: neither."""
    if word.lower() not in ("b", "w", "black", "white"):
        raise Refusal(f"colour must be b, black, w or white, not {word[:40]!r}")
    return word[0].upper()


def read_bool(word: str, name: str) -> bool:
    """True or false. Raises Refusal: neither."""
    if word.lower() not in _TRUE + _FALSE:
        raise Refusal(f"{name} must be true or false, not {word[:40]!r}")
    return word.lower() in _TRUE
