"""One position of a Go game: board, side to move, rules, komi, and the history that rules and encodings need.

    >>> position = Position.start(size=9, rules="japanese").play("E5", "C3", "pass")
    >>> position.to_play, position.komi, position.is_legal("C3")
    ('W', 6.5, False)

Positions never change: `play` returns a new one. Legality, handicap and scoring are KataGo's (`history`); how a game
is set up, and what happens when a side moves out of turn, follows its GTP and analysis engines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadPosition, IllegalMove
from keima.games import fields as read
from keima.games.go import history as rules_of
from keima.games.go.board import (
    BLACK,
    BOARD,
    EMPTY,
    MAX_POINTS,
    PASS_LOC,
    WHITE,
    is_legal_ignoring_ko,
    new_boards,
    place,
)
from keima.games.go.history import HISTORY
from keima.games.go.moves import play_move
from keima.games.go.rules import Rules, check_komi
from keima.games.go.vertices import COLUMNS, board_locs, loc_to_vertex, vertex_table, vertex_to_loc, xy_to_vertex
from keima.plain import Data, Fields, Note

RECORD = np.dtype([("board", BOARD), ("history", HISTORY)], align=True)
"""A position for kernels."""

_COLOURS = {"B": BLACK, "W": WHITE}
_LETTERS = {BLACK: "B", WHITE: "W", EMPTY: ""}
_SYMBOLS = ".XO"


@dataclass(frozen=True, eq=False)
class Position:
    """A position; made by `start`, `play`, `from_moves` or `from_json`."""

    rules: Rules
    komi: float  # points White gets; handicap and button points are not in it
    setup: tuple[tuple[str, str], ...]  # the stones the game started with, as ("B", "D4") pairs
    moves: tuple[tuple[str, str], ...]  # since then, as ("B", "Q16") pairs; a pass is ("B", "pass")
    record: NDArray[Any]  # RECORD [1], what kernels and encoders read; read-only
    game: ClassVar[str] = "go"

    @classmethod
    def start(
        cls,
        size: int | tuple[int, int] = 19,
        rules: str | Fields | Rules = "chinese",
        komi: float | None = None,
        handicap: Iterable[str] = (),
        *,
        black: Iterable[str] = (),
        white: Iterable[str] = (),
        to_play: str | None = None,
        encore: bool = False,
        handicap_stones: int | None = None,
    ) -> Position:
        """The beginning of a game.

        Args:
            size: columns and rows, or (xsize, ysize).
            rules: a name ("chinese", "japanese", "aga", ...), KataGo's JSON or shorthand, or `Rules`.
            komi: points for White, a multiple of 0.5; None for the usual komi of the rules.
            handicap, black, white: vertices of Black's handicap stones, and of other stones set up.
            to_play: "B" or "W"; None: White where only black stones are set up, else Black.
            encore: two passes start the phases KataGo plays out (territory rules); else players agree on dead stones.
            handicap_stones: how many count; None: those set up without white ones, Black's moves before White's first.

        Raises:
            BadPosition: a board, komi, rules or setup that cannot be.
        """
        xsize, ysize = _sides(size)
        parsed, usual_komi = Rules.parse_with_komi(rules)
        komi = usual_komi if komi is None else check_komi(komi)
        record = np.zeros(1, RECORD)
        boards, histories = record["board"], record["history"]
        boards[:] = new_boards(1, xsize, ysize)
        setup = _set_up(boards[0], [("B", v) for v in (*handicap, *black)] + [("W", v) for v in white])
        rules_of.write_rules(histories[0], np.array(parsed.numbers(), np.int32), komi, encore)
        first = WHITE if setup and all(colour == "B" for colour, _ in setup) else BLACK
        rules_of.begin(boards[0], histories[0], _colour(to_play) if to_play else first, 0)
        if handicap_stones is not None:
            if handicap_stones < 0:
                raise BadPosition(f"handicap of {handicap_stones} stones: must not be negative")
            histories[0]["handicap_override"] = handicap_stones
            histories[0]["white_handicap_bonus"] = rules_of.handicap_bonus(histories[0])
        return cls(parsed, komi, setup, (), _frozen(record))

    @classmethod
    def from_moves(
        cls,
        moves: Iterable[Sequence[str]] = (),
        size: int | tuple[int, int] = 19,
        rules: str | Fields | Rules = "chinese",
        komi: float | None = None,
        handicap: Iterable[str] = (),
        initial_stones: Iterable[Sequence[str]] = (),
        to_play: str | None = None,
        *,
        encore: bool = False,
        handicap_stones: int | None = None,
    ) -> Position:
        """The position after a record's moves, played as by `play_as`.

        Args:
            moves: (colour, vertex) pairs; a side may move twice in a row.
            size, rules, komi, handicap, encore, handicap_stones: as in `start`.
            initial_stones: (colour, vertex) pairs of stones set up.
            to_play: the side to move at the end; None: the other side than moved last.

        Raises:
            BadPosition: a board, komi, rules or setup that cannot be, or a colour that is none.
            IllegalMove: a move that cannot be made; its number is in `place`.
        """
        moves = [_pair(move) for move in moves]
        stones = [_pair(stone) for stone in initial_stones]
        black, white = ([vertex for colour, vertex in stones if colour == each] for each in "BW")
        first = moves[0][0] if stones and moves else None
        more: Data = {"encore": encore, "handicap_stones": handicap_stones}
        start = cls.start(size, rules, komi, handicap, black=black, white=white, to_play=first, **more)
        position = start.play_all(moves)
        return position if to_play is None else position.with_to_play(to_play)

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> Position:
        """The position of a POSITIONS line.

        | field | meaning | default |
        | --- | --- | --- |
        | xsize, ysize | columns and rows, 2 to 19 | 19 (ysize: xsize) |
        | rules | KataGo's names or its JSON object | "chinese" |
        | komi | points for White | the usual komi of the rules |
        | handicap | vertices of Black's handicap stones | none |
        | initialStones | [colour, vertex] pairs of other stones set up | none |
        | moves | [colour, vertex] pairs | none |
        | to_play | "B" or "W" | the other side of the last move |
        | encore | whether two passes begin KataGo's encore (territory rules) | false |

        Raises:
            BadPosition: a field is of the wrong kind or says what cannot be.
            IllegalMove: a move that cannot be made; its number is in `place`.
        """
        xsize = read.whole(fields, "xsize", 19)
        rules = fields.get("rules", "chinese")
        if not isinstance(rules, (str, dict)):
            raise read.wrong("rules", "a name or an object", read.kind(rules))
        return cls.from_moves(
            moves=_read_pairs(fields, "moves"),
            size=(xsize, read.whole(fields, "ysize", xsize)),
            rules=rules,
            komi=read.number(fields, "komi"),
            handicap=read.strings(fields, "handicap"),
            initial_stones=_read_pairs(fields, "initialStones"),
            to_play=None if fields.get("to_play") is None else _read_colour(fields["to_play"], "to_play"),
            encore=read.flag(fields, "encore"),
        )

    def to_json(self) -> dict[str, object]:
        """The fields `from_json` reads."""
        fields: Data = {"game": "go", "xsize": self.xsize, "ysize": self.ysize}
        fields |= {"rules": self.rules.to_json(), "komi": self.komi}
        if self.setup and all(colour == "B" for colour, _ in self.setup):
            fields["handicap"] = [vertex for _, vertex in self.setup]
        elif self.setup:
            fields["initialStones"] = [list(stone) for stone in self.setup]
        fields["moves"] = [list(move) for move in self.moves]
        fields["to_play"] = self.to_play
        if not self.history[0]["prevent_encore"]:
            fields["encore"] = True
        return fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Position) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        return (self.xsize, self.ysize, self.rules, self.komi, self.setup, self.moves, self.history.tobytes())

    @property
    def board(self) -> NDArray[Any]:
        """BOARD [1], a view of the record."""
        return self.record["board"]

    @property
    def history(self) -> NDArray[Any]:
        """HISTORY [1], a view of the record."""
        return self.record["history"]

    @property
    def xsize(self) -> int:
        """Columns."""
        return int(self.board[0]["xsize"])

    @property
    def ysize(self) -> int:
        """Rows."""
        return int(self.board[0]["ysize"])

    @property
    def to_play(self) -> str:
        """ "B" or "W"."""
        return _LETTERS[int(self.history[0]["to_play"])]

    @property
    def stones(self) -> NDArray[np.int8]:
        """EMPTY, BLACK or WHITE on each point, int8 [ysize, xsize]; row 0 is the top."""
        return np.asarray(self.board[0]["stones"][board_locs(self.xsize, self.ysize)])

    def on_board(self) -> list[tuple[str, str]]:
        """The stones as (colour, vertex) pairs, row by row from the top."""
        points = np.ndenumerate(self.stones)
        return [(_LETTERS[int(stone)], xy_to_vertex(x, y, self.ysize)) for (y, x), stone in points if stone]

    @property
    def captures(self) -> dict[str, int]:
        """Stones taken off the board, by their colour."""
        taken = self.board[0]["captures"]
        return {"B": int(taken[BLACK]), "W": int(taken[WHITE])}

    def play(self, *vertices: str) -> Position:
        """The position after these moves, the sides in turn; "pass" passes.

        Raises:
            IllegalMove: a move the rules forbid, or one after the end; says which and why.
        """
        colour = int(self.history[0]["to_play"])
        turns = [(colour if i % 2 == 0 else 3 - colour, vertex) for i, vertex in enumerate(vertices)]
        return self._play_all(turns, strict=True)

    def play_as(self, colour: str, vertex: str, *, strict: bool = False) -> Position:
        """The position after a move as a game record may hold it.

        Out of turn, the history begins anew. Unless `strict`, moves against the ko rules, suicide of a chain where the
        rules forbid it, and moves after the end are made too. All as in KataGo.

        Raises:
            BadPosition: a colour other than "B" and "W".
            IllegalMove: no such point, an occupied one, a stone without liberty; with `strict`, what the rules forbid.
        """
        return self._play_all([(_colour(colour), vertex)], strict)

    def play_all(self, moves: Iterable[Sequence[str]]) -> Position:
        """The position after the (colour, vertex) moves of a record, each as by `play_as`; raises as that."""
        return self._play_all([(_colour(colour), vertex) for colour, vertex in map(_pair, moves)], strict=False)

    def with_to_play(self, colour: str) -> Position:
        """This position with that side to move; if it was not its turn, without the history, as in KataGo."""
        if _colour(colour) == self.history[0]["to_play"]:
            return self
        record = _copied(self.record)
        rules_of.give_turn(record["board"][0], record["history"][0], _colour(colour))
        return self._followed_by((), record)

    def set_up_anew(self, stones: Iterable[tuple[str, str]], to_play: str, rules: Rules | None = None) -> Position:
        """A game of its own on a board of this size and komi that begins with these (colour, vertex) stones.

        Raises:
            BadPosition: a chain would have no liberty.
        """
        size = (self.xsize, self.ysize)
        return Position.from_moves((), size, rules or self.rules, self.komi, initial_stones=stones, to_play=to_play)

    def _play_all(self, turns: Sequence[tuple[int, str]], strict: bool) -> Position:
        record = _copied(self.record)
        b, h = record["board"][0], record["history"][0]
        xsize, ysize = self.xsize, self.ysize
        played: list[tuple[str, str]] = []
        for colour, vertex in turns:
            where = f"move {len(self.moves) + len(played) + 1} ({_LETTERS[colour]} {vertex})"
            try:
                loc = vertex_to_loc(vertex, xsize, ysize)
            except IllegalMove as error:
                raise error.at(place=where) from None
            if strict and rules_of.is_over(h):
                raise IllegalMove(Note("the game is over", "error.over"), place=where)
            if colour != h["to_play"]:
                rules_of.give_turn(b, h, colour)
            if not (rules_of.is_legal_move if strict else rules_of.is_playable)(b, h, loc, colour):
                _refuse(b, h, loc, colour, where)
            play_move(b, h, loc, colour)
            played.append((_LETTERS[colour], loc_to_vertex(loc, xsize, ysize)))
        return self._followed_by(tuple(played), record)

    def _followed_by(self, moves: tuple[tuple[str, str], ...], record: NDArray[Any]) -> Position:
        return Position(self.rules, self.komi, self.setup, self.moves + moves, _frozen(record))

    def legal(self) -> list[str]:
        """The moves the rules allow the side to move, row by row from the top, "pass" last; after the end too."""
        moves = np.empty(MAX_POINTS, np.int16)
        count = rules_of.legal_moves(self.board[0], self.history[0], moves)
        table = vertex_table(self.xsize, self.ysize)
        return [table[loc] for loc in moves[:count].tolist()]

    def is_legal(self, vertex: str) -> bool:
        """Do the rules allow the side to move this move? False also for what names no point of the board."""
        try:
            loc = vertex_to_loc(vertex, self.xsize, self.ysize)
        except IllegalMove:
            return False
        return bool(rules_of.is_legal_move(self.board[0], self.history[0], loc, int(self.history[0]["to_play"])))

    @property
    def is_over(self) -> bool:
        """Have passes, or endless repetition, ended the game?"""
        return bool(rules_of.is_over(self.history[0]))

    @property
    def is_no_result(self) -> bool:
        """Has a position occurred three times under rules where that ends the game without result?"""
        return bool(self.history[0]["no_result"])

    def score(self) -> float:
        """White's points minus Black's, komi included, if the game ended here.

        Stones are dead only inside the other side's pass-alive territory.
        """
        return float(rules_of.score_now(self.board[0], self.history[0], np.empty(MAX_POINTS, np.int8)))

    def score_to_play(self) -> float:
        """The same for the side to move."""
        return self.score() if self.to_play == "W" else -self.score()

    def owners(self) -> NDArray[np.int8]:
        """Whose each point is in that score: EMPTY, BLACK or WHITE, int8 [ysize, xsize]."""
        area = np.empty(MAX_POINTS, np.int8)
        rules_of.count_area(self.board[0], self.history[0], area)
        return area[board_locs(self.xsize, self.ysize)]

    @property
    def result(self) -> str | None:
        """A finished game's result as SGF writes it ("B+3.5", "0" a draw, "Void" no result); None before the end."""
        if not self.is_over:
            return None
        if self.is_no_result:
            return "Void"
        return result_of(self.score())

    def __str__(self) -> str:
        """The board as text: X black, O white, the last move in parentheses."""
        stones, last = self.stones, int(self.history[0]["recent_loc"][0])
        locs = board_locs(self.xsize, self.ysize)
        lines = ["   " + " ".join(COLUMNS[: self.xsize])]
        for y in range(self.ysize):
            row = "".join(f" {_SYMBOLS[stone]}" for stone in stones[y])
            if last in locs[y]:
                x = int(np.flatnonzero(locs[y] == last)[0])
                row = f"{row[: 2 * x]}({row[2 * x + 1]}){row[2 * x + 3 :]}"
            lines.append(f"{self.ysize - y:2d}{row}".rstrip())
        turn = "Black" if self.to_play == "B" else "White"
        lines.append(f"{turn} to play, {len(self.moves)} moves made, {self.rules.name} rules, komi {self.komi:g}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Position {self.xsize}x{self.ysize} after {len(self.moves)} moves, {self.to_play} to play>"


def result_of(score: float) -> str:
    """White's points minus Black's as SGF writes them: "B+3.5", "0" for a draw."""
    return "0" if score == 0 else f"{'W' if score > 0 else 'B'}+{abs(score):g}"


def _copied(records: NDArray[Any]) -> NDArray[Any]:
    """A writable copy. By bytes: NumPy copies a record field by field, ten times slower."""
    return records.view(np.uint8).copy().view(records.dtype)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _sides(size: int | tuple[int, int]) -> tuple[int, int]:
    sides = (size, size) if isinstance(size, int) else size
    if not (isinstance(sides, (tuple, list)) and len(sides) == 2 and all(type(side) is int for side in sides)):
        raise BadPosition(f"board size {size!r}: one or two whole numbers are needed")
    return sides[0], sides[1]


def _is_pair(found: object) -> bool:
    return isinstance(found, (list, tuple)) and len(found) == 2 and all(isinstance(part, str) for part in found)


def _pair(move: Sequence[str]) -> tuple[str, str]:
    """A move or stone of a record, its colour as "B" or "W"."""
    if not _is_pair(move):
        raise BadPosition(f'expected a pair like ["B", "Q16"], found {move!r}'[:120])
    return _LETTERS[_colour(move[0])], move[1]


def _read_pairs(fields: read.Fields, name: str) -> list[tuple[str, str]]:
    """The (colour, vertex) pairs of a field."""
    pairs = []
    for number, pair in enumerate(cast(list[tuple[str, str]], read.items(fields, name)), 1):
        if not _is_pair(pair):
            raise read.wrong(name, 'a pair like ["B", "Q16"]', read.shown(pair), number)
        pairs.append((_read_colour(pair[0], name, number), pair[1]))
    return pairs


def _read_colour(written: object, name: str, item: int | None = None) -> str:
    """ "B" or "W" of a field."""
    if not isinstance(written, str) or written.upper() not in ("B", "W", "BLACK", "WHITE"):
        raise read.wrong(name, '"B" or "W"', read.shown(written), item)
    return written[0].upper()


def _colour(letter: str) -> int:
    """BLACK or WHITE for "B" or "W" (or "black", "white", in any case)."""
    text = letter.strip().upper() if isinstance(letter, str) else ""
    if text not in ("B", "W", "BLACK", "WHITE"):
        raise BadPosition(f'a colour must be "B" or "W", found {letter!r}')
    return _COLOURS[text[0]]


def _set_up(b: Any, stones: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Put stones on an empty board; the pairs with their vertices in GTP's spelling."""
    xsize, ysize = int(b["xsize"]), int(b["ysize"])
    setup = []
    for colour, vertex in stones:
        try:
            loc = vertex_to_loc(vertex, xsize, ysize)
        except (IllegalMove, AttributeError):
            raise BadPosition(f"setup stone {vertex!r}: no point of a {xsize}x{ysize} board") from None
        if loc == PASS_LOC or b["stones"][loc] != EMPTY:
            raise BadPosition(f"setup stone {vertex}: {'a pass' if loc == PASS_LOC else 'there is one already'}")
        place(b, loc, _COLOURS[colour])
        setup.append((colour, loc_to_vertex(loc, xsize, ysize)))
    for colour, vertex in setup:
        if b["liberties"][b["head"][vertex_to_loc(vertex, xsize, ysize)]] == 0:
            raise BadPosition(f"setup stone {colour} {vertex}: its chain has no liberty")
    return tuple(setup)


def _refuse(b: Any, h: Any, loc: int, colour: int, where: str) -> NoReturn:
    """Raise the reason why a move is illegal."""
    if b["stones"][loc] != EMPTY:
        side = "black" if b["stones"][loc] == BLACK else "white"
        reason = Note("occupied by a {side} stone", "error.occupied", side=Note(side, f"side.{side}"))
    elif not is_legal_ignoring_ko(b, loc, colour, bool(h["suicide"])):
        reason = Note("suicide: the stone would have no liberty", "error.suicide")
    elif loc == b["ko"]:
        reason = Note("ko: it would retake at once", "error.ko")
    elif h["encore_phase"] > 0:
        reason = Note("ko: already taken once in this position of the encore", "error.encore")
    else:
        reason = Note("superko: it would repeat an earlier position", "error.superko")
    raise IllegalMove(reason, place=where)
