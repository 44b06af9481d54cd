"""SGF: game records of Go, read and written through `sgfmill`.

What is read: the main line (the first variation everywhere) of FF[1]–FF[4] records with boards up to 19×19,
rectangles too; stones set up before the first move or later, handicap, komi, rules, result, players, ranks, date,
comments. Real files bend the standard, and where the meaning is plain it is taken and said in `GameRecord.notes`: komi
in hundredths (KM[650]) or in stones (KM[3.75]), handicap without its stones, rules under their server's name. Where the
meaning is not plain, the game is a `BadRecord`, and the games around it are still read.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import IO, ClassVar

from sgfmill import sgf_grammar

from keima.errors import BadRecord, IllegalMove, KeimaError
from keima.games.go.board import MAX_SIZE
from keima.games.go.position import Position
from keima.games.go.rules import NAMED_RULES, Rules
from keima.games.go.sgf_text import decode_text, mended, split_games
from keima.games.go.vertices import fixed_handicap, xy_to_vertex
from keima.games.records import PlayedGame
from keima.plain import Data, Note

DEFAULT_RULES = "chinese"
_COLOURS = {"B": "B", "W": "W", "1": "B", "2": "W", "BLACK": "B", "WHITE": "W"}
_RULES_NAMES = {
    **dict.fromkeys(("jp", "territory", "gor", "日本", "日本ルール"), "japanese"),
    **dict.fromkeys(("cn", "area", "中国", "中国规则", "中国ルール"), "chinese"),
    **dict.fromkeys(("kr", "韩国"), "korean"),
    "ing goe": "goe",
}
"""Names found in RU besides KataGo's."""
MOST_KOMI = 150
"""Points either way; more than that are hundredths (KM[650])."""
_PLAIN_KOMI = re.compile(r"[+-]?[0-9]*[.,]?[0-9]*")
_KOMI = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]{1,9}(?:\.[0-9]*)?|\.[0-9]+)?(?:\s*(?P<up>[1-3])/(?P<down>[24]))?"
    r"\s*(?P<unit>目|子|点|points?|pts?)?\s*(?P<half>半)?",
    re.IGNORECASE,
)
_NUMERALS = str.maketrans("零〇一二三四五六七八九", "00123456789")


@dataclass(frozen=True)
class Edit:
    """Stones put on or taken off the board in mid-game (AB, AW, AE), after so many moves."""

    after: int  # how many moves were made before
    stones: tuple[tuple[str, str], ...]  # (colour, vertex) of what changes; the colour "" takes a stone off
    to_play: str | None = None  # who moves next, if the record says so

    def apply(self, position: Position) -> Position:
        """The position with the stones changed: a game of its own, without the history before, as in KataGo.

        Raises:
            BadPosition: a chain would have no liberty.
        """
        board = {vertex: colour for colour, vertex in (*position.on_board(), *self.stones)}
        stones = [(colour, vertex) for vertex, colour in board.items() if colour]
        return position.set_up_anew(stones, self.to_play or position.to_play)


@dataclass(frozen=True)
class GameRecord:
    """One game of Go as a record tells it."""

    xsize: int
    ysize: int
    rules: Rules
    komi: float  # points White gets for moving second
    handicap: tuple[str, ...] = ()  # vertices of Black's handicap stones, on the board before the first move
    black_setup: tuple[str, ...] = ()  # other stones on the board before the first move (problems, teaching games)
    white_setup: tuple[str, ...] = ()
    to_play: str = "B"  # "B" or "W", who moves first
    moves: tuple[tuple[str, str], ...] = ()  # (colour, vertex) of the main line; "Q16" or "pass"
    edits: tuple[Edit, ...] = ()  # changes of the board in mid-game, in order; most games have none
    result: str = ""  # as written: "B+3.5", "W+Resign", "0", "Void", "" if unknown
    players: Mapping[str, str] = field(default_factory=dict)  # by colour, "B" and "W"; "" if unknown
    ranks: Mapping[str, str] = field(default_factory=dict)  # likewise
    date: str = ""  # as written, as `event`
    event: str = ""
    comments: Mapping[int, str] = field(default_factory=dict)  # by move number; 0 is before the first move
    clocks: Mapping[int, float] = field(default_factory=dict)  # seconds left after each move, from BL and WL
    source: str = ""
    index: int = 1  # which game of the source, from 1
    notes: tuple[str, ...] = ()  # what was taken from a bent record, and how, in words

    game: ClassVar[str] = "go"
    increment: ClassVar[None] = None  # in byo-yomi clocks jump

    @property
    def turns(self) -> tuple[tuple[str, str], ...]:
        """`moves`."""
        return self.moves

    @property
    def setup(self) -> dict[str, object]:
        """Board, rules, komi and stones, as JSON."""
        facts: dict[str, object] = {
            "xsize": self.xsize,
            "ysize": self.ysize,
            "rules": self.rules.to_json(),
            "komi": self.komi,
            "handicap": list(self.handicap),
            "setup": {"black": list(self.black_setup), "white": list(self.white_setup)},
        }
        if self.edits:
            facts["edits"] = [[edit.after, [list(stone) for stone in edit.stones]] for edit in self.edits]
        return facts

    @property
    def facts(self) -> dict[str, object]:
        """The rules in words."""
        return {"rules_name": Note("{name} rules", "fact.rules", name=self.rules.words)}

    def start(self) -> Position:
        """The position before the first move. Raises `BadRecord`: stones set up cannot stand on the board."""
        try:
            stones: Data = {"handicap": self.handicap, "black": self.black_setup, "white": self.white_setup}
            return Position.start((self.xsize, self.ysize), self.rules, self.komi, **stones, to_play=self.to_play)
        except KeimaError as error:
            raise BadRecord(error.message, source=self._where(), place="setup stones") from error

    def positions(self) -> Iterator[Position]:
        """As `keima.games.records.GameRecord.positions`; after an edit of the board, where one follows a move."""
        position = self._edited(self.start(), 0)
        yield position
        for number, (colour, vertex) in enumerate(self.moves, 1):
            try:
                position = position.play_as(colour, vertex)
            except KeimaError as error:
                place = f"move {number} ({colour} {vertex})"
                raise IllegalMove(error.message, source=self._where(), place=place) from error
            position = self._edited(position, number)
            yield position

    def _edited(self, position: Position, number: int) -> Position:
        for edit in self.edits:
            if edit.after == number:
                try:
                    position = edit.apply(position)
                except KeimaError as error:
                    raise BadRecord(error.message, source=self._where(), place=f"after move {number}") from error
        return position

    def final(self) -> Position:
        """The position after the last move, as quickly as that goes. Raises as `positions`."""
        if self.edits:
            *_, position = self.positions()
            return position
        black = (*self.handicap, *self.black_setup)
        stones = [*(("B", vertex) for vertex in black), *(("W", vertex) for vertex in self.white_setup)]
        size = (self.xsize, self.ysize)
        try:
            to_play = None if self.moves else self.to_play
            return Position.from_moves(self.moves, size, self.rules, self.komi, (), stones, to_play)
        except KeimaError as error:
            raise IllegalMove(error.message, source=self._where(), place=error.place) from error

    def _where(self) -> str | None:
        return f"{self.source}: game {self.index}" if self.source and self.index > 1 else self.source or None


class Sgf:
    """RECORDS of Go."""

    name = "SGF"

    def read(
        self, stream: IO[bytes], source: str = "", *, rules: str | None = None
    ) -> Iterator[GameRecord | BadRecord]:
        """The games of a stream, as `RecordFormat.read`; moves are not played. `rules`: as `parse_sgf`."""
        found = 0
        for raw in split_games(stream):
            found = raw.index
            place = f"game {raw.index} (line {raw.line})"
            try:
                record = parse_sgf(
                    mended(raw.data) if raw.problem else raw.data, rules=rules, source=source, index=raw.index
                )
                if raw.problem:
                    raise BadRecord(raw.problem).with_partial(record)
            except BadRecord as error:
                inner = ": ".join(part for part in (place, error.place) if part)
                message = raw.problem or error.message
                yield BadRecord(message, source=source or None, place=inner).with_partial(error.partial)
            else:
                yield record
        if not found:
            yield BadRecord("holds no SGF game: nothing begins with `(;`", source=source or None)

    def write(self, record: GameRecord) -> str:
        """The record as SGF (FF[4], UTF-8)."""
        return write_sgf(record)

    def of_game(self, played: PlayedGame) -> GameRecord:
        """The record of a game that was played here."""
        position = played.position
        assert isinstance(position, Position)
        black = tuple(vertex for colour, vertex in position.setup if colour == "B")
        white = tuple(vertex for colour, vertex in position.setup if colour == "W")
        to_play = position.moves[0][0] if position.moves else position.to_play
        handicap, black = (black, ()) if not white and to_play == "W" else ((), black)
        event = f"{played.event}, game {played.number}"
        comments = {0: f"{event}, {played.opening}"}
        last = len(position.moves)
        end = "\n".join((f"{played.result}: {played.reason}", *played.notes))
        comments[last] = "\n".join(filter(None, (comments.get(last), end)))
        return GameRecord(
            xsize=position.xsize,
            ysize=position.ysize,
            rules=position.rules,
            komi=position.komi,
            handicap=handicap,
            black_setup=black,
            white_setup=white,
            to_play=to_play,
            moves=position.moves,
            result=played.result,
            players=dict(zip("BW", played.names, strict=True)),
            date=played.date,
            event=event,
            comments=comments,
        )


RECORDS = Sgf()


def parse_sgf(data: bytes | str, *, rules: str | None = None, source: str = "", index: int = 1) -> GameRecord:
    """Read the first game in `data`.

    Args:
        data: SGF; bytes in any encoding (its CA property, else a guess), or text.
        rules: KataGo's name of those to assume where the record names none or unknown ones; None: `DEFAULT_RULES`.
        source, index: kept in the record.

    Raises:
        BadRecord: not SGF, not Go, a board over 19, a move or stone off the board, stones that cannot stand on it;
            its `partial` is the game before a move off the board.
    """
    text = data if isinstance(data, str) else decode_text(data)
    try:
        tree = sgf_grammar.parse_sgf_game(text.encode("utf-8", "replace"))
    except ValueError as error:
        raise BadRecord(f"not well-formed SGF: {error}", source=source or None) from error
    try:
        return _Reader(rules).read(list(sgf_grammar.main_sequence_iter(tree)), source, index)
    except KeimaError as error:
        partial = error.partial if isinstance(error, BadRecord) else None
        raise BadRecord(error.message, source=source or None, place=error.place).with_partial(partial) from error


Properties = Mapping[str, Sequence[bytes]]


class _Reader:
    """Turns the main line's property maps into a `GameRecord`; collects notes."""

    def __init__(self, rules: str | None) -> None:
        self.assumed_rules = rules or DEFAULT_RULES
        self.notes: list[str] = []

    def read(self, nodes: Sequence[Properties], source: str, index: int) -> GameRecord:
        root = nodes[0]
        if "GM" in root and _text(root, "GM").strip() not in ("1", ""):
            raise BadRecord(f"GM[{_text(root, 'GM')}] is not Go; Go is GM[1]", place="root node")
        xsize, ysize = _size(root)
        points = _vertices(xsize, ysize)
        line = _walk(nodes, points)
        moves, to_play = line.moves, line.to_play
        stones = _setup_stones([node for number, node in line.setups if number == 0], points)
        handicap, black, white = self._handicap(root, stones, moves, (xsize, ysize))
        rules = self._rules(root)
        if to_play is None:
            to_play = moves[0][0] if moves else ("W" if handicap else "B")
        record = GameRecord(
            xsize=xsize,
            ysize=ysize,
            rules=rules,
            komi=self._komi(root, rules, max(_declared_handicap(root), len(handicap))),
            handicap=handicap,
            black_setup=black,
            white_setup=white,
            to_play=to_play,
            moves=tuple(moves),
            result=_text(root, "RE"),
            players={"B": _text(root, "PB").strip(), "W": _text(root, "PW").strip()},
            ranks={"B": _text(root, "BR").strip(), "W": _text(root, "WR").strip()},
            date=_text(root, "DT"),
            event=event_of({name: _text(root, name) for name in ("EV", "RO", "GN")}),
            comments=line.comments,
            clocks=line.clocks,
            source=source,
            index=index,
        )
        later = [(number, node) for number, node in line.setups if number]
        edits = _edits(record, later, points) if later else ()
        record = replace(record, edits=edits, notes=tuple(self.notes))
        if line.problem is not None:
            raise line.problem.with_partial(record)
        return record

    def _rules(self, root: Properties) -> Rules:
        written = _text(root, "RU").strip()
        name = re.sub(r"\s+rules?$", "", written, flags=re.IGNORECASE)
        try:
            if name:
                return Rules.parse(_RULES_NAMES.get(name.lower(), name))
            assumed = Rules.parse(self.assumed_rules)
            self.notes.append(Note("the record names no rules; {rules} assumed", "note.norules", rules=assumed.words))
        except KeimaError:
            assumed = Rules.parse(self.assumed_rules)
            words = "unknown rules RU[{written}]; {rules} assumed"
            self.notes.append(Note(words, "note.rules", written=written, rules=assumed.words))
        return assumed

    def _komi(self, root: Properties, rules: Rules, handicap: int) -> float:
        written = _text(root, "KM").strip()
        default = 0.5 if handicap >= 2 else rules.default_komi
        komi = _read_komi(written)
        if komi is None:
            if written:
                words = "unreadable komi KM[{written}]; {komi} assumed"
                self.notes.append(Note(words, "note.komi.unreadable", written=written, komi=default))
            else:
                self.notes.append(Note("no komi in the record; {komi} assumed", "note.komi.missing", komi=default))
            return default
        meant = komi / 100 if abs(komi) > MOST_KOMI and komi % 5 == 0 else komi
        if abs(meant * 4) % 2 == 1:  # 3.75 stones, as China counts, are 7.5 points
            meant *= 2
        if not (abs(meant) <= MOST_KOMI and (meant * 2).is_integer()):
            words = "komi KM[{written}] is no whole or half number; {komi} assumed"
            self.notes.append(Note(words, "note.komi.odd", written=written, komi=default))
            return default
        if meant != komi or not _PLAIN_KOMI.fullmatch(written):
            self.notes.append(Note("komi KM[{written}] read as {komi}", "note.komi.read", written=written, komi=meant))
        return meant

    def _handicap(
        self, root: Properties, stones: Mapping[str, str], moves: Sequence[tuple[str, str]], size: tuple[int, int]
    ) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """(handicap, black setup, white setup) of the stones on the board before the first move."""
        black = tuple(vertex for vertex, colour in stones.items() if colour == "B")
        white = tuple(vertex for vertex, colour in stones.items() if colour == "W")
        count = _declared_handicap(root)
        if white or (black and count != len(black) and (moves[:1] and moves[0][0] == "B")):
            return (), black, white
        if not black and count >= 2 and moves and moves[0][0] == "W":
            black = fixed_handicap(count, size)
            if black:
                words = "HA[{count}] without its stones; the usual points assumed"
                self.notes.append(Note(words, "note.handicap.missing", count=count))
        if black and count and count != len(black):
            words = "HA[{count}] but {stones} handicap stones; the stones are believed"
            self.notes.append(Note(words, "note.handicap.other", count=count, stones=len(black)))
        return black, (), ()


def event_of(texts: Mapping[str, str]) -> str:
    """The event with its round, else the game's name."""
    return ", ".join(filter(None, (texts.get("EV"), texts.get("RO")))) or texts.get("GN", "")


def _declared_handicap(root: Properties) -> int:
    declared = _text(root, "HA").strip()
    return int(declared) if re.fullmatch(r"[0-9]{1,3}", declared) else 0


def _read_komi(text: str) -> float | None:
    """Points in a number, fraction or East Asian words: "6,5", "7½", "3 3/4子", "六目半"; None for anything else."""
    for sign, fraction in (("½", " 1/2"), ("¼", " 1/4"), ("¾", " 3/4"), (",", ".")):
        text = text.replace(sign, fraction)
    text = unicodedata.normalize("NFKC", text).translate(_NUMERALS).strip()
    found = _KOMI.fullmatch(text)
    if not found or not (found["whole"] or found["up"]):
        return None
    komi = float(found["whole"] or 0) + (int(found["up"]) / int(found["down"]) if found["up"] else 0.0)
    komi += 0.5 if found["half"] else 0.0
    return (-komi if found["sign"] == "-" else komi) * (2 if found["unit"] == "子" else 1)


def _size(root: Properties) -> tuple[int, int]:
    """(xsize, ysize) of the SZ property; 19 where there is none."""
    written = _text(root, "SZ").strip() or "19"
    match = re.fullmatch(r"([0-9]{1,4})(?:\s*[:xX]\s*([0-9]{1,4}))?", written)
    if not match:
        raise BadRecord(f"unreadable board size SZ[{written}]", place="root node")
    xsize, ysize = int(match[1]), int(match[2] or match[1])
    if not (2 <= xsize <= MAX_SIZE and 2 <= ysize <= MAX_SIZE):
        raise BadRecord(f"a board of {xsize}×{ysize}: sizes from 2×2 to 19×19 are supported", place="root node")
    return xsize, ysize


Setup = tuple[int, Properties]


@dataclass
class _Line:
    """What stands in the nodes of the main line, up to one that makes no sense."""

    moves: list[tuple[str, str]] = field(default_factory=list)
    comments: dict[int, str] = field(default_factory=dict)  # by move number
    clocks: dict[int, float] = field(default_factory=dict)  # likewise
    setups: list[Setup] = field(default_factory=list)  # setup nodes with the number of moves before them
    to_play: str | None = None  # who PL says begins
    problem: BadRecord | None = None


def _walk(nodes: Sequence[Properties], points: Mapping[bytes, str]) -> _Line:
    """The main line as far as it can be read."""
    line = _Line()
    for node in nodes:
        if "AB" in node or "AW" in node or "AE" in node:
            line.setups.append((len(line.moves), node))
        if "PL" in node and not line.moves:
            line.to_play = _COLOURS.get(_text(node, "PL").strip().upper(), line.to_play)
        played = [colour for colour in ("B", "W") if colour in node]
        if len(played) == 2:
            message = "both Black and White move in one node"
            line.problem = BadRecord(message, place=f"after move {len(line.moves)}")
            return line
        if played:
            raw = node[played[0]][0].strip()
            vertex = points.get(raw) or points.get(raw.lower())
            if vertex is None:
                message = f"[{raw.decode('utf-8', 'replace')}] is no point of this board"
                line.problem = BadRecord(message, place=f"move {len(line.moves) + 1} ({played[0]})")
                return line
            line.moves.append((played[0], vertex))
            with suppress(ValueError):
                seconds = float(_text(node, f"{played[0]}L") or "none")
                line.clocks |= {len(line.moves): seconds} if math.isfinite(seconds) else {}
        number = len(line.moves)
        if "C" in node:
            joined = "\n".join(filter(None, (line.comments.get(number), _text(node, "C", lines=True).strip())))
            if joined:
                line.comments[number] = joined
    return line


def _setup_stones(nodes: Sequence[Properties], points: Mapping[bytes, str]) -> dict[str, str]:
    """The stones that AB, AW and AE of these nodes leave on an empty board: vertex → colour."""
    stones: dict[str, str] = {}
    for node in nodes:
        for name, colour in (("AB", "B"), ("AW", "W"), ("AE", None)):
            for vertex in _point_list(node.get(name, ()), points, name):
                stones.pop(vertex, None)
                if colour:
                    stones[vertex] = colour
    return stones


def _point_list(values: Sequence[bytes], points: Mapping[bytes, str], name: str) -> Iterator[str]:
    """The vertices of a list of points, FF[4] rectangles ("aa:cc") unfolded."""
    for value in values:
        corner, _, opposite = value.strip().lower().partition(b":")
        first, last = points.get(corner), points.get(opposite or corner)
        if first in (None, "pass") or last in (None, "pass"):
            raise BadRecord(f"{name}[{value.decode('utf-8', 'replace')}] is no point of this board", place="setup")
        opposite = opposite or corner
        for y in range(min(corner[1], opposite[1]), max(corner[1], opposite[1]) + 1):
            for x in range(min(corner[0], opposite[0]), max(corner[0], opposite[0]) + 1):
                yield points[bytes((x, y))]


def _edits(record: GameRecord, setups: Sequence[Setup], points: Mapping[bytes, str]) -> tuple[Edit, ...]:
    """What setup in mid-game changes on the board; where it states what stands there already, nothing."""
    edits: list[Edit] = []
    position, made = record.start(), 0
    for number, node in setups:
        position = position.play_all(record.moves[made:number])
        made = number
        if changed := changes_of(node, points, position):
            edits.append(Edit(number, changed, _COLOURS.get(_text(node, "PL").strip().upper())))
            position = edits[-1].apply(position)
    return tuple(edits)


def changes_of(node: Properties, points: Mapping[bytes, str], position: Position) -> tuple[tuple[str, str], ...]:
    """What AB, AW and AE of a node change of a board: (colour, vertex), the colour "" takes off. Raises `BadRecord`."""
    before = {vertex: colour for colour, vertex in position.on_board()}
    wanted = dict.fromkeys(_point_list(node.get("AE", ()), points, "AE"), "")
    for name, colour in (("AB", "B"), ("AW", "W")):
        added = dict.fromkeys(_point_list(node.get(name, ()), points, name), colour)
        wanted = {vertex: was for vertex, was in wanted.items() if vertex not in added} | added
    return tuple((colour, vertex) for vertex, colour in wanted.items() if before.get(vertex, "") != colour)


@lru_cache(maxsize=32)
def _vertices(xsize: int, ysize: int) -> dict[bytes, str]:
    """SGF point → GTP vertex on this board; the empty value and `tt` are passes (FF[3] writes `tt` up to 19×19)."""
    table = {b"": "pass", b"tt": "pass"}
    for y in range(ysize):
        for x in range(xsize):
            table[bytes((97 + x, 97 + y))] = xy_to_vertex(x, y, ysize)
    return table


def _text(properties: Properties, name: str, lines: bool = False) -> str:
    """A property's first value with escapes resolved; "" if it is absent."""
    values = properties.get(name)
    if not values:
        return ""
    unescape = sgf_grammar.text_value if lines else sgf_grammar.simpletext_value
    text: str = unescape(values[0]).decode("utf-8", "replace")
    return text


def write_sgf(record: GameRecord) -> str:
    """The record as SGF (FF[4], UTF-8); `parse_sgf` reads it back equal but for source and notes."""
    root: dict[str, list[bytes]] = {"FF": [b"4"], "GM": [b"1"], "CA": [b"UTF-8"], "AP": [b"keima"]}
    square = record.xsize == record.ysize
    facts = {
        "SZ": str(record.xsize) if square else f"{record.xsize}:{record.ysize}",
        "KM": f"{record.komi:g}",
        "RU": _rules_name(record.rules),
        "HA": str(len(record.handicap)) if record.handicap else "",
        "PB": record.players.get("B", ""),
        "PW": record.players.get("W", ""),
        "BR": record.ranks.get("B", ""),
        "WR": record.ranks.get("W", ""),
        "DT": record.date,
        "EV": record.event,
        "RE": record.result,
        "PL": record.to_play,
        "C": record.comments.get(0, ""),
    }
    for name, value in facts.items():
        if value:
            root[name] = [_escaped(value)]
    to_point = {vertex: point for point, vertex in _vertices(record.xsize, record.ysize).items()} | {"pass": b""}
    black = (*record.handicap, *record.black_setup)
    for name, vertices in (("AB", black), ("AW", record.white_setup)):
        if vertices:
            root[name] = [to_point[vertex] for vertex in vertices]
    tree = sgf_grammar.Coarse_game_tree()
    tree.sequence.append(root)
    for number, (colour, vertex) in enumerate(record.moves, 1):
        node = {colour: [to_point[vertex]]}
        if number in record.clocks:
            node[f"{colour}L"] = [f"{record.clocks[number]:g}".encode()]
        if number in record.comments:
            node["C"] = [_escaped(record.comments[number])]
        tree.sequence.append(node)
        tree.sequence.extend(_edit_node(edit, to_point) for edit in record.edits if edit.after == number)
    text: str = sgf_grammar.serialise_game_tree(tree).decode("utf-8")
    return text


def _escaped(text: str) -> bytes:
    """A text value; one that speaks of SGF does not look as if a new game began in it."""
    escaped: bytes = sgf_grammar.escape_text(text.encode("utf-8", "replace"))
    return re.sub(rb"\((\s*);", rb"(\1\\;", escaped)


def _edit_node(edit: Edit, to_point: Mapping[str, bytes]) -> dict[str, list[bytes]]:
    node: dict[str, list[bytes]] = {}
    for name, wanted in (("AB", "B"), ("AW", "W"), ("AE", "")):
        vertices = [to_point[vertex] for colour, vertex in edit.stones if colour == wanted]
        if vertices:
            node[name] = vertices
    return node | ({"PL": [edit.to_play.encode()]} if edit.to_play else {})


def _rules_name(rules: Rules) -> str:
    """The rules' common name where they have one, else KataGo's JSON."""
    if rules in NAMED_RULES.values():
        return {"aga": "AGA", "new-zealand": "NZ", "ing": "GOE"}.get(rules.name, rules.name.capitalize())
    return json.dumps(rules.to_json())
