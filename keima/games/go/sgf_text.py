"""SGF below the level of nodes: many games in one stream told apart, and bytes turned into text.

Real collections hold thousands of games, some broken. A game that is never closed must not swallow its neighbours,
so a new game is recognised by what only a root node starts with (`(;GM[`, `(;FF[`, `(;CA[`, `(;SZ[`).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
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
_CANDIDATES = ("cp932", "gb18030", "cp949", "cp950", "euc_jp")
_JAPANESE = ("cp932", "euc_jp")
_EVERYDAY = {
    "cp932": ("cp932", 0x88, 0x97),
    "euc_jp": ("cp932", 0x88, 0x97),
    "gb18030": ("gb2312", 0xB0, 0xD7),
    "cp949": ("euc_kr", 0xB0, 0xC8),
    "cp950": ("big5", 0xA4, 0xC6),
}
"""By encoding: the country's standard, and the first bytes there of its common characters (its first level; in Korea
the syllables of KS X 1001)."""
_JA = (
    "黒白勝負半目中押持碁囲棋局第期戦名人本因坊聖王座天元十段級初九八七六五四三二杯決予選挑手合院日京東大阪関西県市平成昭和年月"
    "の田山川木林小高藤原井上下村石野島崎佐加渡辺伊吉橋谷松本正光秀和英一雄郎夫彦樹治敬武宏明康吾直紀昌久之"
)
_ZH = (
    "黑白胜负半目中盘和棋围局第届杯赛决名人天元业余段级初九八七六五四三二一世界锦标联甲战挑院中国北京上海网手"
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范方石姚"
    "明国文华建平志伟东海永军民荣小大晓云龙飞宇浩睿俊杰"
)
_TW = (
    "黑白勝負半目中盤和棋圍局第屆盃賽決名人天元業餘段級初九八七六五四三二一世界聯甲戰挑院中國台灣北網手"
    "王李張劉陳楊趙黃周吳徐孫胡朱高林何郭馬羅梁宋鄭謝韓唐馮于董蕭程曹袁鄧許傅沈曾彭呂蘇盧蔣蔡賈丁魏薛葉余潘杜戴夏鍾汪田任姜范方石姚"
    "明國文華建平志偉東海永軍民榮小大雲龍宇浩俊傑賢銘宏德"
)
_KO = (
    "흑백승집반불계국제회배전결도기원단급초아마대한바둑리그왕위명인무부예선본수서울타이젬년월일"
    "김이박최정강조윤장임한오신권황안송류홍고문양손허유남심노하곽성차주우구민진나지엄채천방공현함변염여추소석"
    "영호철준훈상희종경용환창동규태재식욱섭미은연"
)
_COMMON = {"cp932": set(_JA), "euc_jp": set(_JA), "gb18030": set(_ZH), "cp950": set(_TW), "cp949": set(_KO)}
"""Letters of results, titles, ranks and common names, as Go records hold them."""


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
    """The stream in pieces; games turned into UTF-8 where their encoding could hide a bracket in a letter."""
    held = stream.read(CHUNK)
    if held.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
        while held:
            yield _CHARSET.sub(b"CA[UTF-8]", decoder.decode(held).encode("utf-8"))
            held = stream.read(CHUNK)
        yield decoder.decode(b"", final=True).encode("utf-8")
        return
    held = held.removeprefix(codecs.BOM_UTF8)
    while held:
        chunk = stream.read(CHUNK)
        whole = _last_border(held) if chunk else len(held)
        if whole:
            yield _with_brackets_apart(held[:whole])
        held = held[whole:] + chunk


def _last_border(data: bytes) -> int:
    """Where the last game begins; of one that is too long, where its last line does."""
    begin = max((game.start() for game in _NEW_GAME.finditer(data)), default=0)
    return begin or (data.rfind(b"\n") + 1 if len(data) > MAX_GAME_BYTES else 0)


def _with_brackets_apart(data: bytes) -> bytes:
    """Whole games, each in UTF-8 if its encoding is unsafe; those that name none go by what all such ones look like."""
    if _fits(data, "utf-8"):
        return data
    borders = [0, *(game.start() for game in _NEW_GAME.finditer(data) if game.start()), len(data)]
    games = [data[begin:end] for begin, end in pairwise(borders)]
    declared = [declared_charset(game) for game in games]
    others = b"".join(game for game, named in zip(games, declared, strict=True) if named is None)
    usual = None if _fits(others, "utf-8") else guess_encoding(others)
    for k, (game, named) in enumerate(zip(games, declared, strict=True)):
        encoding = guess_encoding(game, named or usual)
        if encoding in _UNSAFE:
            games[k] = _CHARSET.sub(b"CA[UTF-8]", game.decode(encoding, "replace").encode("utf-8"))
    return b"".join(games)


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
    Latin-1, which SGF assumes where nothing is declared, fits any bytes, so it is believed last. A broken letter or two
    among many does not keep a text from being UTF-8.
    """
    text = codecs.getincrementaldecoder("utf-8")(errors="replace").decode(data)
    broken = text.count("\ufffd") - data.count("\ufffd".encode())
    if not broken:
        return "utf-8"
    letters = sum(not character.isascii() for character in text) - broken
    if letters >= broken * (1 if declared == "utf-8" else 8):
        return "utf-8"
    if declared not in (None, "utf-8", "latin-1") and _fits(data, declared):
        return str(declared)
    scores = {name: _plausibility(data, name) for name in _CANDIDATES if _fits(data, name)}
    best = max(scores, key=lambda name: scores[name], default="latin-1")
    return best if scores.get(best, 0) > 0.5 else "latin-1"


def _fits(data: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeError:
        return False
    return True


def _plausibility(data: bytes, encoding: str) -> float:
    """How much the non-ASCII text looks like a Go record's when read in `encoding`: from −1 to 3, on average.

    What fits several encodings byte by byte differs in its letters: a Korean name read as Chinese is of rare
    ideographs, a Japanese one read as Korean of syllables that no Korean writes.
    """
    text = [c for c in codecs.getincrementaldecoder(encoding)().decode(data) if ord(c) > 127]
    common = _COMMON[encoding]
    weights = [3.0 if c in common else _weight(c, encoding) for c in text]
    return sum(weights) / len(weights) if weights else 0.0


def _weight(character: str, encoding: str) -> float:
    """1 for kana, punctuation and what the encoding's country writes every day, −1 for what hardly anyone writes."""
    if "\u3000" <= character <= "\u303f" or "\uff01" <= character <= "\uff5e":
        return 1.0
    if "\u3040" <= character <= "\u30ff":
        return 1.0 if encoding in _JAPANESE else -1.0
    standard, first, last = _EVERYDAY[encoding]
    try:
        written = character.encode(standard)
    except UnicodeEncodeError:
        return -1.0
    return 1.0 if len(written) == 2 and first <= written[0] <= last else -0.5


def decode_text(data: bytes) -> str:
    """A game's bytes as text, by `guess_encoding`; what does not fit is replaced, nothing raised."""
    encoding = guess_encoding(data, declared_charset(data))
    return data.decode(encoding, errors="replace")
