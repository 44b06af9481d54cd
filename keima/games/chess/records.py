"""Chess games as PGN: many a file, plain, gzipped or zipped; comments, variations, NAGs, clocks; broken games reported.

python-chess parses and writes the text; every main line is then played through our own kernel. A game that breaks the
rules is not half-read: its place in the stream is taken by a `BadRecord` that says which game, which line, and why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import accumulate, count
from typing import IO, ClassVar, TextIO, cast

import chess
import chess.pgn

from keima.errors import BadPosition, BadRecord, IllegalMove, KeimaError
from keima.games.chess.position import Position
from keima.games.records import PlayedGame
from keima.plain import Note

RESULTS = ("1-0", "0-1", "1/2-1/2", "*")
LONGEST_LINE = 1 << 24
"""Bytes of a line read at once."""
DEEPEST_VARIATION = 64
"""Variations inside variations are kept to this depth; deeper ones are left out with a warning."""


@dataclass(frozen=True)
class PlayedMove:
    """One move of a game and what was written about it."""

    uci: str  # castling e1g1, in Chess960 king takes rook
    san: str
    comment: str = ""  # commands like [%clk 0:01:00] included
    comment_before: str = ""  # before the first move of a variation
    nags: tuple[int, ...] = ()  # numeric annotation glyphs, ascending (1 good, 2 mistake, 4 blunder, ...)
    clock: float | None = None  # seconds left on the mover's clock after the move, from [%clk]
    variations: tuple[tuple[PlayedMove, ...], ...] = ()  # lines that begin with another move in this one's place


@dataclass(frozen=True)
class GameRecord:
    """One game of chess as a record tells it."""

    game: ClassVar[str] = "chess"

    start: Position
    line: tuple[PlayedMove, ...] = ()  # the main line, with comments and variations
    headers: Mapping[str, str] = field(default_factory=dict)  # the tags, in the file's order
    result: str = "*"  # one of `RESULTS`
    comment: str = ""  # before the first move
    source: str = ""  # the file
    index: int = 1  # the game's number in it, from 1
    first_line: int = 1  # from 1
    notes: tuple[str, ...] = ()  # what was left out because it made no sense: broken variations

    @property
    def moves(self) -> tuple[str, ...]:
        """The main line in UCI."""
        return tuple(move.uci for move in self.line)

    @property
    def turns(self) -> tuple[tuple[str, str], ...]:
        """("w" or "b", move) of the main line."""
        sides = "wb" if self.start.to_play == "w" else "bw"
        return tuple((sides[number % 2], move) for number, move in enumerate(self.moves))

    @property
    def setup(self) -> dict[str, object]:
        """The start, as JSON."""
        return {"fen": self.start.fen(), "chess960": bool(self.start.chess960)}

    @property
    def facts(self) -> dict[str, object]:
        """The date with dashes; no result where it is unknown."""
        return {"date": self.date.replace(".", "-"), "result": "" if self.result == "*" else self.result}

    @property
    def players(self) -> dict[str, str]:
        """Names by side; "" where unknown."""
        return {"w": self._tag("White"), "b": self._tag("Black")}

    @property
    def ranks(self) -> dict[str, str]:
        """Elo by side; "" where unknown."""
        return {"w": self._tag("WhiteElo"), "b": self._tag("BlackElo")}

    @property
    def event(self) -> str:
        """The event, and the round where one is given."""
        return ", ".join(filter(None, (self._tag("Event"), self._tag("Round"))))

    @property
    def date(self) -> str:
        """The date as written ("1972.07.11"), "" where unknown."""
        return self._tag("Date").replace(".??", "").replace("????", "")

    @property
    def comments(self) -> dict[int, str]:
        """Comments by the number of plies played before them: 0 before the first move."""
        texts = {0: self.comment, **{number: move.comment for number, move in enumerate(self.line, 1)}}
        return {number: text for number, text in texts.items() if text}

    @property
    def clocks(self) -> dict[int, float]:
        """From [%clk]: seconds left on the mover's clock, by the number of the ply."""
        return {number: move.clock for number, move in enumerate(self.line, 1) if move.clock is not None}

    @property
    def increment(self) -> float | None:
        """From a TimeControl such as "180+2" or "600"; None for others, whose clocks jump."""
        found = re.fullmatch(r"\d+(?:\+(\d+(?:\.\d+)?))?", self._tag("TimeControl"))
        return float(found[1] or 0) if found else None

    def positions(self) -> Iterator[Position]:
        """The position before the first move, then the one after each move."""
        return accumulate(self.moves, Position.play, initial=self.start)

    def final(self) -> Position:
        """The position after the last move."""
        return self.start.play(*self.moves)

    @staticmethod
    def of(position: Position, headers: Mapping[str, str] | None = None, result: str | None = None) -> GameRecord:
        """The game that led to `position`, for writing; the result is the position's outcome unless given."""
        start = Position.from_fen(position.start_fen, chess960=position.chess960)
        board = chess.Board(position.start_fen, chess960=position.chess960)
        line = [PlayedMove(uci, board.san_and_push(board.parse_uci(uci))) for uci in position.moves]
        ended = position.outcome.result if position.outcome else "*"
        return GameRecord(start, tuple(line), dict(headers or {}), ended if result is None else result)

    def _tag(self, name: str) -> str:
        value = self.headers.get(name, "")
        return "" if value in ("?", "-") else value


def format_pgn(record: GameRecord) -> str:
    """The game as PGN text, with comments, variations, NAGs and the tags its start needs. Raises IllegalMove.

    What a comment cannot hold is changed: a `}` makes its braces parentheses, blanks at its ends go, and a line of it
    that looks like another game's first tag is indented. A tag is one line.
    """
    game = chess.pgn.Game()
    for name, value in record.headers.items():
        game.headers[name] = re.sub(r'[\\"]', r"\\\g<0>", re.sub(r"[\r\n]+", " ", value))
    start = chess.Board(record.start.fen(), chess960=record.start.chess960)
    game.setup(start)
    game.headers["Result"] = record.result if record.result in RESULTS else "*"
    game.comment = _writable(record.comment)
    try:
        _write_line(game, record.line, start.copy())
    except ValueError as error:
        raise IllegalMove(str(error), source=record.source or None) from None
    return game.accept(chess.pgn.StringExporter(columns=80)) + "\n\n"


class _Pgn:
    name = "PGN"
    write = staticmethod(format_pgn)

    def read(self, stream: IO[bytes], source: str = "") -> Iterator[GameRecord | BadRecord]:
        """The games of a stream; every main line has been played."""
        lines = _Lines(stream)
        for index in count(1):
            lines.begin_game()
            builder = _Builder(lines)
            game = chess.pgn.read_game(cast(TextIO, lines), Visitor=lambda builder=builder: builder)  # type: ignore[misc]
            if game is None:
                if index == 1:
                    yield BadRecord("holds no PGN game", source=source or None)
                return
            try:
                yield _record(game, builder, source, index)
            except BadRecord as error:
                yield error

    def of_game(self, played: PlayedGame) -> GameRecord:
        assert isinstance(played.position, Position)
        headers = {
            "Event": played.event,
            "Site": "?",
            "Date": played.date.replace("-", "."),
            "Round": str(played.number),
        }
        headers |= {"White": played.names[0], "Black": played.names[1], "Result": played.result}
        headers |= {"Opening": played.opening, "Termination": played.reason}
        record = GameRecord.of(played.position, headers, played.result)
        return replace(record, comment="\n".join(played.notes))


RECORDS = _Pgn()


def read_pgn_text(text: str, source: str = "") -> Iterator[GameRecord | BadRecord]:
    """The games of a PGN text; yields as `RECORDS.read`."""
    return RECORDS.read(BytesIO(text.encode("utf-8", "replace")), source)


def decode_line(line: bytes) -> str:
    """UTF-8, else Latin-1."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


class _Lines:
    """A text stream over bytes that counts lines; UTF-8, and Latin-1 for lines that are not.

    A game ends where the first tag of another one begins, if no empty line has ended it before. Only a comment reads on
    past an empty line; where that meets such a tag, or the end of the file, the comment was never closed. Comments
    `; …` come in braces, since python-chess passes over them as they are.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.line = 0
        self.held = b""
        self.begin_game()

    def begin_game(self) -> None:
        self.first = 0
        self.in_moves = False
        self.after_blank = False
        self.unclosed = ""
        self.ended = False
        self.in_braces = False

    def readline(self) -> str:
        data, self.held = self.held or self.stream.readline(LONGEST_LINE), b""
        if not data:
            self.ended = True
            return ""
        if self.in_moves and data.startswith(b"[Event "):
            self.held, self.unclosed = data, "; it runs into the next game" if self.after_blank else ""
            return ""
        self.line += 1
        self.after_blank = data.isspace()
        if not self.after_blank:
            self.first = self.first or self.line
            self.in_moves |= not data.removeprefix(b"\xef\xbb\xbf").startswith((b"[", b"%", b";"))
        line = decode_line(data)
        hidden = line.startswith("%") and not self.in_braces
        return self._braced(line) if self.in_moves and not hidden else line

    def _braced(self, line: str) -> str:
        for sign in re.finditer("[{};]", line):
            if sign[0] != ";":
                self.in_braces = sign[0] == "{"
            elif not self.in_braces:
                remark = line[sign.end() :].strip().replace("}", ")")
                return f"{line[: sign.start()]}{{{remark}}}\n"
        return line


class _Builder(chess.pgn.GameBuilder[chess.pgn.Game]):
    """python-chess's game builder that tells errors of the main line from those of variations.

    A broken line is cut where it breaks. It is passed over here and not by `read_game`, which in python-chess 1.11
    leaves a broken variation's board on its stack, so that the main line would go on from there.
    """

    def __init__(self, lines: _Lines) -> None:
        super().__init__()
        self.lines = lines
        self.broken: tuple[int, str] | None = None
        self.notes: list[str] = []
        self.tagged = False
        self.written = "*"  # the result after the moves
        self.move = chess.Move.null()
        self.cut_at = 0  # the depth of the line that is being passed over, 1 for the main line, or 0

    def visit_header(self, tagname: str, tagvalue: str) -> None:
        self.tagged = True
        super().visit_header(tagname, re.sub(r'\\([\\"])', r"\1", tagvalue))

    def visit_result(self, result: str) -> None:
        self.written = result
        super().visit_result(result)

    def begin_parse_san(self, board: chess.Board, san: str) -> chess.pgn.SkipType | None:
        """Find the move, or pass over it: a null move, an illegal one, and all that follow it in the same line."""
        if self.cut_at:
            return chess.pgn.SKIP
        try:
            self.move = _real_move(board, san)
        except ValueError as error:
            self.handle_error(error)
            self.cut_at = len(self.variation_stack)
            return chess.pgn.SKIP
        return None

    def parse_san(self, board: chess.Board, san: str) -> chess.Move:
        return self.move

    def begin_variation(self) -> chess.pgn.SkipType | None:  # type: ignore[override]
        if not self.cut_at:
            return super().begin_variation()
        self.variation_stack.append(self.variation_stack[-1])
        return chess.pgn.SKIP

    def end_variation(self) -> None:
        self.starting_comment = ""  # a comment on no move goes with its variation
        if self.cut_at == len(self.variation_stack):
            self.cut_at = 0
        super().end_variation()
        self.in_variation = True

    def visit_comment(self, comment: str) -> None:
        if self.lines.ended:  # looking for the comment's end
            self.lines.unclosed = "; it runs to the end of the file"
        text = comment.strip()
        if text and not self.cut_at:
            super().visit_comment(text)

    def visit_nag(self, nag: int) -> None:
        if not self.cut_at:
            super().visit_nag(nag)

    def handle_error(self, error: Exception) -> None:
        if len(self.variation_stack) > 1:
            words = "a variation is cut short on line {line}: {error}"
            self.notes.append(Note(words, "note.variation", line=self.lines.line, error=error))
        elif self.broken is None:
            self.broken = (self.lines.line, str(error))


def _real_move(board: chess.Board, san: str) -> chess.Move:
    """Raises ValueError where no legal move has that name, or it is a null move."""
    move = board.parse_san(san)
    if not move:
        raise ValueError(f"{san!r} is a null move")
    return move


def _record(game: chess.pgn.Game, builder: _Builder, source: str, index: int) -> GameRecord:
    """Our record of a parsed game. Raises BadRecord where it breaks the rules or cannot be played here."""
    first_line = builder.lines.first

    def bad(message: str, line: int = first_line) -> BadRecord:
        return BadRecord(message, source=source or None, place=f"game {index} (line {line})")

    try:
        start = _start(game.headers, builder.notes)
    except ValueError as error:  # an unknown variant, or BadPosition
        raise bad(str(error)) from None
    if not (game.variations or builder.tagged or builder.broken or builder.lines.unclosed):
        raise bad("holds neither tags nor moves")
    notes = builder.notes
    moves = _read_line(game.variations[0], game.board(), notes, 0) if game.variations else ()
    result = result_of(game.headers.get("Result", "*"), builder.written)
    record = GameRecord(start, moves, dict(game.headers), result, game.comment, source, index, first_line, tuple(notes))
    if builder.broken is not None:
        line, message = builder.broken
        raise bad(message, line).with_partial(record)
    if builder.lines.unclosed:
        problem = bad(f"a comment {{… is never closed{builder.lines.unclosed}", builder.lines.line)
        raise problem.with_partial(record)
    try:
        start.play(*record.moves)
    except KeimaError as error:
        raise bad(str(error)) from None
    return record


def result_of(tag: str, written: str) -> str:
    """The result that a game's tag tells; where that tells none, the one written after the moves."""
    return tag if tag in RESULTS and tag != "*" else written


def _start(headers: chess.pgn.Headers, notes: list[str]) -> Position:
    """The position the game begins with; Chess960 by its tag, or where the FEN's castling rights need it.

    Castling rights and en passant squares that cannot be are left out, with a note.
    """
    if headers.variant() is not chess.Board:
        raise BadPosition(f"the variant {headers.get('Variant')!r} is neither standard chess nor Chess960")
    fen = headers.get("FEN")
    chess960 = headers.is_chess960()
    if fen is not None and not chess960:
        with suppress(ValueError):
            chess960 = chess.Board(fen, chess960=True).has_chess960_castling_rights()
    try:
        return Position.from_fen(fen, chess960=chess960)
    except BadPosition:
        with suppress(ValueError):
            board = chess.Board(fen or chess.STARTING_FEN, chess960=chess960)
            board.castling_rights = board.clean_castling_rights()
            start = Position.from_fen(board.fen(), chess960=chess960)
            words = "castling rights or an en passant square that cannot be are left out: {fen}"
            notes.append(Note(words, "note.fen", fen=start.fen()))
            return start
        raise


def _read_line(first: chess.pgn.ChildNode, board: chess.Board, notes: list[str], depth: int) -> tuple[PlayedMove, ...]:
    """The line of moves that begins with `first`, played on `board`, with the variations beside each of its moves."""
    line = []
    node: chess.pgn.ChildNode | None = first
    while node is not None:
        others = node.parent.variations[1:] if node is node.parent.variations[0] else []
        if others and depth >= DEEPEST_VARIATION:
            notes.append(Note("variations more than {most} deep are left out", "note.deep", most=DEEPEST_VARIATION))
            others = []
        line.append(
            PlayedMove(
                uci=board.uci(node.move),
                san=board.san(node.move),
                comment=node.comment,
                comment_before=node.starting_comment,
                nags=tuple(sorted(node.nags)),
                clock=node.clock(),
                variations=tuple(_read_line(other, board.copy(stack=False), notes, depth + 1) for other in others),
            )
        )
        board.push(node.move)
        node = node.variations[0] if node.variations else None
    return tuple(line)


def _write_line(parent: chess.pgn.GameNode, moves: Iterable[PlayedMove], board: chess.Board) -> None:
    """Append a line of moves, and the variations beside them, below `parent`, where `board` stands."""
    for played in moves:
        nodes = []
        for index, line in enumerate(((played,), *played.variations)):
            first, begins_game = line[0], not index and isinstance(parent, chess.pgn.Game)
            before = "" if begins_game else _writable(first.comment_before)
            move, comment = board.parse_uci(first.uci), _writable(first.comment)
            node = parent.add_variation(move, comment=comment, starting_comment=before, nags=first.nags)
            nodes.append(node)
            if index:
                below = board.copy(stack=False)
                below.push(node.move)
                _write_line(node, line[1:], below)
        parent = nodes[0]
        board.push(parent.move)


def _writable(comment: str) -> str:
    """A comment as PGN can hold it, see `format_pgn`."""
    if "}" in comment:
        comment = comment.replace("{", "(").replace("}", ")")
    return comment.replace("\n[Event ", "\n [Event ")
