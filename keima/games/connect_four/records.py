"""Games of connect four as plain text, `.c4`: tags, then the columns played and the result, like PGN.

    [First "Ada"]
    [Second "keima"]
    [Date "2026-01-31"]
    [Result "1-0"]

    d d c {a trap} c e f b 1-0

A file holds any number of games, each ending with its result: 1-0, 0-1, 1/2-1/2, or * where it is unknown. A tag's
value is a JSON string; unknown tags are kept. Moves may stand together ("ddc") and be numbered ("1. d d"). A comment
stands in braces after its move, with a backslash before a brace or backslash of its own. UTF-8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import IO, ClassVar

from keima.errors import BadRecord
from keima.games.connect_four import GAME
from keima.games.connect_four.position import Position
from keima.games.records import GameRecord as AnyRecord
from keima.games.records import PlayedGame

RESULTS = ("1-0", "0-1", "1/2-1/2", "*")
LARGEST_GAME = 1 << 20
"""Bytes; a longer one is refused."""

_TAG = re.compile(r'\[([A-Za-z]\w*)\s+("(?:[^"\\]|\\.)*")\s*\]\s*')
_TOKEN = re.compile(r"\{(?P<comment>(?:[^{}\\]|\\.)*)\}|(?P<word>[^\s{}]+)|(?P<space>\s+)", re.S)
_COLUMNS = re.compile(r"[a-g]+")
_NUMBER = re.compile(r"\d+\.+")
_ESCAPED = re.compile(r"\\(.)", re.S)


@dataclass(frozen=True)
class GameRecord:
    """One game of connect four as a record tells it: columns, and comments by the number of moves played before them.

    `tags` leave out `Result`; `source`, `index`, `first_line` are the file, and where the game stands in it, from 1.
    """

    moves: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    result: str = "*"
    comments: Mapping[int, str] = field(default_factory=dict)
    source: str = ""
    index: int = 1
    first_line: int = 1
    game: ClassVar[str] = GAME.name
    notes: ClassVar[tuple[str, ...]] = ()
    setup: ClassVar[dict[str, object]] = {}
    facts: ClassVar[dict[str, object]] = {}
    clocks: ClassVar[dict[int, float]] = {}
    increment: ClassVar[None] = None

    @property
    def turns(self) -> tuple[tuple[str, str], ...]:
        """(side, column) of each move."""
        return tuple((GAME.letters[number & 1], move) for number, move in enumerate(self.moves))

    @property
    def players(self) -> dict[str, str]:
        """By side, "1" and "2"; "" where unknown."""
        return self._both("First", "Second")

    @property
    def ranks(self) -> dict[str, str]:
        """Likewise."""
        return self._both("FirstRank", "SecondRank")

    @property
    def date(self) -> str:
        """As written."""
        return self.tags.get("Date", "")

    @property
    def event(self) -> str:
        """As written, with the round where one is given."""
        return ", ".join(filter(None, (self.tags.get("Event"), self.tags.get("Round"))))

    def positions(self) -> Iterator[Position]:
        """The empty board, then the position after each move. Raises `IllegalMove`."""
        return accumulate(self.moves, Position.play, initial=Position.start())

    def final(self) -> Position:
        """The position after the last move. Raises `IllegalMove`."""
        return Position.start().play(*self.moves)

    def _both(self, *names: str) -> dict[str, str]:
        return {letter: self.tags.get(name, "") for letter, name in zip(GAME.letters, names, strict=True)}


class _C4:
    name = "C4"

    def read(self, stream: IO[bytes], source: str = "") -> Iterator[GameRecord | BadRecord]:
        for index, (first_line, data) in enumerate(split_games(stream), 1):
            try:
                yield parse_game(data, source, index, first_line)
            except BadRecord as error:
                place = f"game {index}, {error.place}"
                yield BadRecord(error.message, source=source, place=place).with_partial(error.partial)

    def write(self, record: AnyRecord) -> str:
        """The record as text. Raises `IllegalMove` where it cannot be played."""
        if not isinstance(record, GameRecord):
            raise BadRecord(f"a record of {record.game} cannot be written as {self.name}")
        record.final()
        result = record.result if record.result in RESULTS else "*"
        tags = {**record.tags, "Result": result}
        head = [f"[{name} {json.dumps(value, ensure_ascii=False)}]\n" for name, value in tags.items()]
        words = [_comment(record.comments.get(0))]
        for number, move in enumerate(record.moves, 1):
            words += [move, _comment(record.comments.get(number))]
        return "".join(head) + "\n" + " ".join(filter(None, [*words, result])) + "\n"

    def of_game(self, played: PlayedGame) -> GameRecord:
        names = ("Event", "Round", "Date", "First", "Second", "Opening")
        texts = (played.event, str(played.number or ""), played.date, *played.names, played.opening)
        moves = tuple(str(move) for move in played.position.moves)
        told = "; ".join(filter(None, (played.reason, *played.notes)))
        tags = {name: text for name, text in zip(names, texts, strict=True) if text}
        return GameRecord(moves, tags, played.result, {len(moves): told} if told else {})


def _comment(text: str | None) -> str:
    return "{" + re.sub(r"([{}\\])", r"\\\1", text) + "}" if text else ""


def split_games(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """(first line, bytes) of each game: the tags of the next one begin on a line after moves, outside of comments."""
    lines: list[bytes] = []
    first, number, size = 1, 0, 0
    begins, moves, open_comment = True, False, False
    while line := stream.readline(LARGEST_GAME):
        number += begins
        begins = line.endswith(b"\n")
        tag = not open_comment and line.lstrip().startswith(b"[")
        if tag and moves:
            yield first, b"".join(lines)
            lines, moves, size = [], False, 0
        if not lines:
            if not line.strip(b"\xef\xbb\xbf \t\r\n"):
                continue
            first = number
        if not tag:
            moves = moves or bool(line.strip())
            for brace in re.findall(rb"\\.|[{}]", line):
                open_comment = brace == b"{" if len(brace) == 1 else open_comment
        size += len(line)
        if size <= 2 * LARGEST_GAME:  # of a game that is refused, no more is kept
            lines.append(line)
    if lines:
        yield first, b"".join(lines)


def parse_game(data: bytes, source: str, index: int, first_line: int) -> GameRecord:
    """One game. Raises `BadRecord` whose place is the line."""
    if len(data) > LARGEST_GAME:
        raise BadRecord(f"a game of more than {LARGEST_GAME >> 20} MB", place=f"line {first_line}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise BadRecord(f"not UTF-8: {data[error.start]:#04x}", place=f"line {line}") from error
    tags: dict[str, str] = {}
    at = len(text) - len(text.lstrip())
    while match := _TAG.match(text, at):
        try:
            tags[match[1]] = str(json.loads(match[2], strict=False)).encode("utf-8", "replace").decode()
        except ValueError as error:
            message = f"{match[2]:.60} is no JSON string: {error}"
            raise BadRecord(message, place=_line(text, at, first_line)) from error
        at = match.end()
    tagged = tags.pop("Result", "*")
    moves: list[str] = []
    comments: dict[int, str] = {}
    result = ""
    while at < len(text):
        token = _TOKEN.match(text, at)
        word = token["word"] if token else text[at : at + 20]
        if token is None or (word is not None and result):
            raise BadRecord(f"{word!r:.60} is out of place", place=_line(text, at, first_line))
        if token["comment"] is not None:
            comment = _ESCAPED.sub(r"\1", token["comment"])
            comments[len(moves)] = f"{comments[len(moves)]} {comment}" if len(moves) in comments else comment
        elif word in RESULTS:
            result = word
        elif word is not None and _COLUMNS.fullmatch(word):
            moves += word
        elif word is not None and not _NUMBER.fullmatch(word):
            message = f"{word!r:.60} is neither a column a–g nor a result"
            partial = GameRecord(tuple(moves), tags, tagged, comments, source, index, first_line)
            raise BadRecord(message, place=_line(text, at, first_line)).with_partial(partial)
        at = token.end()
    result = result or (tagged if tagged in RESULTS else "*")
    return GameRecord(tuple(moves), tags, result, comments, source, index, first_line)


def _line(text: str, at: int, first_line: int) -> str:
    return f"line {first_line + text.count(chr(10), 0, at)}"


RECORDS = _C4()
