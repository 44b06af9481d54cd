"""SGF below the level of nodes: many games in one stream told apart, and bytes turned into text.

Real collections hold thousands of games, some broken. A game that is never closed must not swallow its neighbours,
so a new game is recognised by what only a root node starts with (`(;GM[`, `(;FF[`, `(;CA[`, `(;SZ[`).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

CHUNK = 1 << 20
MAX_GAME_BYTES = 16 << 20
"""A single game longer than this is reported as broken (the longest real ones are well under 1 MB)."""

_START = re.compile(rb"\(\s*;")
_ROOT = rb"\(\s*;\s*(?:GM|FF|CA|SZ)\s*\["
_NEW_GAME = re.compile(_ROOT)
_PLAIN_GAME = re.compile(rb"\(\s*;[^()\[]*(?:\[[^\\\](]*(?:\\.[^\\\](]*)*\][^()\[]*)*\)", re.DOTALL)
_TOKEN = re.compile(rb"\[(?P<value>[^\\\]]*(?:\\.[^\\\]]*)*)\]|(?P<paren>[()])|\[", re.DOTALL)
_ROOT_INSIDE = re.compile(_ROOT + rb"[^\[\]]*\Z")
_CHARSET = re.compile(rb"CA\s*\[\s*([-\w.:+ ]{1,40}?)\s*\]")

_ALIASES = {
    **dict.fromkeys(("gb2312", "gbk", "gb"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "ms932"), "cp932"),
    **dict.fromkeys(("euc-kr", "euc_kr", "ks_c_5601-1987"), "cp949"),
    "big5": "cp950",
    "iso-8859-1": "latin-1",
    "utf8": "utf-8",
}
_ASCII = bytes(range(32, 92)) + bytes(range(93, 127)) + b"\\x41\\u0041+AGE-xn--a\n"
"""What every encoding that SGF can be in reads as ASCII."""
_UNSAFE = ("gb18030", "cp932", "cp950")
"""Encodings whose second bytes may be `]` or `\\`: turned to UTF-8 before brackets are counted."""
_CANDIDATES = ("cp932", "gb18030", "cp949", "cp950")


@dataclass(frozen=True)
class RawGame:
    """The bytes of one game in a stream."""

    index: int  # 1 for the first game of its file
    line: int  # of the file, where it starts, from 1
    data: bytes  # from its `(` to its `)`
    problem: str = ""  # why these bytes cannot be a whole game


def split_games(stream: IO[bytes]) -> Iterator[RawGame]:
    """The games of an SGF stream one after another, read as they are asked for."""
    chunks = _utf8_chunks(stream)
    buffer, line, index, ended = b"", 1, 0, False
    while True:
        start = _START.search(buffer)
        span = _game_span(buffer, start.start(), ended) if start else None
        if span is None:
            if ended:
                return
            chunk = next(chunks, b"")
            ended = not chunk
            keep = 0 if start else max(0, buffer.rfind(b"("))
            line += buffer.count(b"\n", 0, keep)
            buffer = buffer[keep:] + chunk
            continue
        begin, end, problem = span
        index += 1
        line += buffer.count(b"\n", 0, begin)
        yield RawGame(index, line, buffer[begin:end], problem)
        line += buffer.count(b"\n", begin, end)
        buffer = buffer[end:]


def _game_span(buffer: bytes, begin: int, ended: bool) -> tuple[int, int, str] | None:
    """(begin, end, problem) of the game at `begin`; None if more bytes are needed to tell."""
    plain = _PLAIN_GAME.match(buffer, begin)
    if plain:
        return begin, plain.end(), ""
    depth, position = 0, begin
    for token in _TOKEN.finditer(buffer, begin):
        position = token.start()
        if token["paren"] == b"(":
            if depth and _NEW_GAME.match(buffer, position):
                return begin, position, "the game is not closed before the next one begins: a `)` is missing"
            depth += 1
        elif token["paren"] == b")":
            depth -= 1
            if depth == 0:
                return begin, token.end(), ""
        elif token["value"] is None:
            break  # a `[` that nothing closes
        elif b"(" in token["value"]:
            inside = _ROOT_INSIDE.search(token["value"])
            if inside:
                end = token.start("value") + inside.start()
                return begin, end, "a property value is not closed before the next game begins: a `]` is missing"
    if ended:
        return begin, *_end_of_broken(buffer, begin, position)
    if len(buffer) - begin > MAX_GAME_BYTES:
        return begin, len(buffer), f"the game is longer than {MAX_GAME_BYTES >> 20} MB"
    return None


def _end_of_broken(buffer: bytes, begin: int, position: int) -> tuple[int, str]:
    """(end, problem) of a game that the end of the file cut off, or that lost a bracket before others began."""
    next_game = _NEW_GAME.search(buffer, max(position, begin + 1))
    end = next_game.start() if next_game else len(buffer)
    what = "a property value" if buffer[position : position + 1] == b"[" else "the game"
    return end, f"{what} is not closed: the file ends (or the next game begins) inside it"


def mended(data: bytes) -> bytes:
    """A game that was cut off, closed after its last whole value; a property without one is left out."""
    depth, end = 0, 0
    for token in _TOKEN.finditer(data):
        if token["paren"]:
            depth += 1 if token["paren"] == b"(" else -1
        elif token["value"] is None:
            break
        end = token.end()
    whole = re.sub(rb"[(;\s]+\Z", b"", data[:end])
    return whole + b")" * (depth - data.count(b"(", len(whole), end))


def _utf8_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """The stream in chunks; turned into UTF-8 on the way where its encoding could hide a bracket in a letter."""
    first = stream.read(CHUNK)
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    else:
        encoding = guess_encoding(first, declared_charset(first))
    if encoding not in (*_UNSAFE, "utf-16"):
        yield first.removeprefix(codecs.BOM_UTF8)
        while chunk := stream.read(CHUNK):
            yield chunk
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    chunk = first
    while chunk:
        text = _CHARSET.sub(b"CA[UTF-8]", decoder.decode(chunk).encode("utf-8"))
        if text:
            yield text
        chunk = stream.read(CHUNK)
    yield decoder.decode(b"", final=True).encode("utf-8")


def declared_charset(data: bytes) -> str | None:
    """The Python codec of the first `CA` property; None if there is none, or it names no encoding SGF could be in.

    SGF's own signs are ASCII, so UTF-16, EBCDIC and Python's codecs that are no character sets (hex, rot13, idna,
    unicode_escape) cannot be what the file is written in.
    """
    found = _CHARSET.search(data)
    if not found:
        return None
    name = found[1].decode("ascii").lower()
    try:
        codec = codecs.lookup(_ALIASES.get(name, name)).name
        codec = "latin-1" if codec == "iso8859-1" else codec
        return codec if _ASCII.decode(codec) == _ASCII.decode("ascii") else None
    except (LookupError, UnicodeError):
        return None


def guess_encoding(data: bytes, declared: str | None = None) -> str:
    """The encoding of SGF bytes: UTF-8 if they are, else as declared, else the likeliest East Asian one, else Latin-1.

    The bytes may end inside a character. `declared`, the codec their `CA` names, is believed unless they contradict it;
    Latin-1, which SGF assumes where nothing is declared, fits any bytes, so it is believed last.
    """
    if _fits(data, "utf-8"):
        return "utf-8"
    if declared not in (None, "utf-8", "latin-1") and _fits(data, declared):
        return str(declared)
    scores = {name: _plausibility(data, name) for name in _CANDIDATES if _fits(data, name)}
    best = max(scores, key=lambda name: scores[name], default="latin-1")
    return best if scores.get(best, 0) > 0.6 else "latin-1"


def _fits(data: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeError:
        return False
    return True


def _plausibility(data: bytes, encoding: str) -> float:
    """How much of the non-ASCII text is kana, Hangul syllables or everyday ideographs when read in `encoding`."""
    text = [c for c in codecs.getincrementaldecoder(encoding)().decode(data) if ord(c) > 127]
    if not text:
        return 0.0
    kana = sum("\u3040" <= c <= "\u30ff" for c in text)
    hangul = sum("\uac00" <= c <= "\ud7a3" for c in text)
    punctuation = sum("\u3000" <= c <= "\u303f" or "\uff01" <= c <= "\uff5e" for c in text)
    everyday = sum("\u4e00" <= c <= "\u9fff" and _is_everyday(c) for c in text)
    return (kana + hangul + punctuation + everyday) / len(text)


def _is_everyday(character: str) -> bool:
    """Whether GB2312's first level or JIS's first level (the common characters of either) holds the ideograph."""
    try:
        if 0xB0 <= character.encode("gb2312")[0] <= 0xD7:
            return True
    except UnicodeEncodeError:
        pass
    try:
        return 0x88 <= character.encode("cp932")[0] <= 0x97
    except UnicodeEncodeError:
        return False


def decode_text(data: bytes) -> str:
    """A game's bytes as text, by `guess_encoding`; what does not fit is replaced, nothing raised."""
    encoding = guess_encoding(data, declared_charset(data))
    return data.decode(encoding, errors="replace")
