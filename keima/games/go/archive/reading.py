"""Go records into rows of a game store.

Two readers give the same rows. Collections are mostly plain: one line of play, each move a node. Those are scanned by a
kernel, and the root node alone goes through `keima.games.go.records`. Everything else (variations, stones set up in
mid-game, moves written in unusual ways, whatever looks broken) is read by `keima.games.go.records` whole. Either way
each move is played on a board: as there (and in KataGo), a move against the ko or suicide rules is a record's own
business, one on an occupied point or without liberties makes the game a broken one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRecord, KeimaError
from keima.games.go.archive.flat import POINT_BITS, WHITE_BIT
from keima.games.go.board import (
    BLACK,
    MAX_SIZE,
    PASS_LOC,
    WHITE,
    clear,
    is_legal_ignoring_ko,
    loc_of,
    new_boards,
    place,
    play,
)
from keima.games.go.records import GameRecord, parse_sgf
from keima.games.go.rules import Rules
from keima.games.go.sgf_text import decode_text
from keima.games.go.vertices import COLUMNS
from keima.games.rows import Row, game_key, iso_date
from keima.jit import Record, njit

NOT_PLAIN = -1
_SCAN_PASS = 0x7FFF
_OPEN, _CLOSE, _NODE, _LEFT, _RIGHT, _ESCAPE = (ord(c) for c in "();[]\\")
_A, _B, _L, _P, _W, _Z, _E = (ord(c) for c in "ABLPWZE")
_LOWER_A, _LOWER_S, _LOWER_T = ord("a"), ord("s"), ord("t")


@dataclass(frozen=True)
class PackedGame:
    """A game as the store keeps it; its record has moves only if the slow reader read it. They are packed, uint16."""

    record: GameRecord
    moves: NDArray[np.uint16]
    setup: NDArray[np.uint16]


@njit
def _is_space(c: int) -> bool:
    return c == 32 or (9 <= c <= 13)


@njit
def _value_end(text: NDArray[np.uint8], i: int) -> int:
    """The index after the `]` that closes the value opened at `i`; the text's length if none does."""
    i += 1
    while i < len(text):
        if text[i] == _ESCAPE:
            i += 2
        elif text[i] == _RIGHT:
            return i + 1
        else:
            i += 1
    return len(text)


@njit
def _scan_move(text: NDArray[np.uint8], begin: int, end: int) -> int:
    """A move's value `[xy]` as y · 32 + x, `_SCAN_PASS` for `[]` and `[tt]`, NOT_PLAIN for anything else."""
    if end - begin == 2:
        return _SCAN_PASS
    if end - begin != 4:
        return NOT_PLAIN
    x = int(text[begin + 1])
    y = int(text[begin + 2])
    if x == _LOWER_T and y == _LOWER_T:
        return _SCAN_PASS
    if x < _LOWER_A or x > _LOWER_S or y < _LOWER_A or y > _LOWER_S:
        return NOT_PLAIN
    return (y - _LOWER_A) * 32 + x - _LOWER_A


@njit
def _is_setup(text: NDArray[np.uint8], begin: int, end: int) -> bool:
    """Is the property AB, AW, AE or PL?"""
    if end - begin != 2:
        return False
    first, second = text[begin], text[begin + 1]
    return (first == _A and second in (_B, _W, _E)) or (first == _P and second == _L)


@njit
def scan(text: NDArray[np.uint8], moves: NDArray[np.uint16], root_end: NDArray[np.int64]) -> int:
    """How many moves a plain game has: one line of nodes, none but the root with setup, at most one move a node.

    Args:
        text: SGF from `(` to `)`, uint8 [n].
        moves: written: y · 32 + x or `_SCAN_PASS`, WHITE_BIT for White; uint16, room for n // 3 moves.
        root_end: written: where the root node ends; int64 [1].
    """
    n = len(text)
    i = 1
    node = -1
    count = 0
    moved = False
    while i < n:
        c = text[i]
        if _is_space(c):
            i += 1
            continue
        if c in (_CLOSE, _NODE):
            if node == 0:
                root_end[0] = i
            if c == _CLOSE:
                return count if node >= 0 else NOT_PLAIN
            node += 1
            moved = False
            i += 1
            continue
        begin = i
        while i < n and _A <= text[i] <= _Z:
            i += 1
        end = i
        while i < n and _is_space(text[i]):
            i += 1
        if node < 0 or begin == end or end - begin > 64 or i >= n or text[i] != _LEFT:
            return NOT_PLAIN
        is_move = end - begin == 1 and (text[begin] == _B or text[begin] == _W)
        if (is_move and (node == 0 or moved)) or (node > 0 and _is_setup(text, begin, end)):
            return NOT_PLAIN
        values = 0
        while i < n and text[i] == _LEFT:
            value = i
            i = _value_end(text, i)
            values += 1
            if is_move:
                code = _scan_move(text, value, i)
                if code == NOT_PLAIN or values > 1:
                    return NOT_PLAIN
                moves[count] = code | WHITE_BIT if text[begin] == _W else code
                count += 1
                moved = True
            while i < n and _is_space(text[i]):
                i += 1
    return NOT_PLAIN


@njit
def replay(b: Record, moves: NDArray[np.uint16], setup: NDArray[np.uint16], xsize: int, ysize: int) -> int:
    """Play scanned moves on board `b`, and pack them in place as the store does; how many could be played."""
    clear(b, xsize, ysize)
    for stone in setup:
        point = int(stone) & POINT_BITS
        place(b, loc_of(point % xsize, point // xsize, xsize), WHITE if stone & WHITE_BIT else BLACK)
    for i in range(len(moves)):
        colour = WHITE if moves[i] & WHITE_BIT else BLACK
        point = int(moves[i]) & POINT_BITS
        packed = xsize * ysize
        loc = PASS_LOC
        if point != _SCAN_PASS:
            x = point % 32
            y = point // 32
            if x >= xsize or y >= ysize:
                return i
            loc = loc_of(x, y, xsize)
            packed = y * xsize + x
        if not is_legal_ignoring_ko(b, loc, colour, True):
            return i
        play(b, loc, colour)
        moves[i] = packed | WHITE_BIT if colour == WHITE else packed
    return len(moves)


class GoReader:
    """Reads games one after another, by these rules where a record names none that are known; `fast`: uses `scan`."""

    def __init__(self, rules: str | None = None, fast: bool = True) -> None:
        self.rules = rules
        self.fast = fast
        self._board = new_boards(1, MAX_SIZE, MAX_SIZE)
        self._root_end = np.zeros(1, np.int64)

    def read(self, text: bytes) -> PackedGame:
        """A game's SGF, from `(` to `)`.

        Raises:
            BadRecord, IllegalMove: it cannot be read or played; `place` says where in it.
        """
        data = text if text.isascii() else decode_text(text).encode("utf-8", "replace")
        return (self._read_plain(data) if self.fast else None) or self._read_any(data)

    def _read_plain(self, data: bytes) -> PackedGame | None:
        """The game if it is plain and sound; None leaves it, and its errors, to the other reader."""
        text = np.frombuffer(data, np.uint8)
        moves = np.empty(len(text) // 3 + 1, np.uint16)
        count = scan(text, moves, self._root_end)
        if count == NOT_PLAIN:
            return None
        moves = moves[:count].copy()
        first = (b";W[]" if moves[0] & WHITE_BIT else b";B[]") if count else b""
        try:
            record = parse_sgf((data[: self._root_end[0]] + first + b")").decode("utf-8"), rules=self.rules)
            setup = _packed_setup(record)
            if len(setup):
                record.start()
        except KeimaError:
            return None
        if self._play(record, moves, setup) < count:
            return None
        return PackedGame(record, moves, setup)

    def _read_any(self, data: bytes) -> PackedGame:
        record = parse_sgf(data.decode("utf-8"), rules=self.rules)
        if record.edits:
            after = f"after move {record.edits[0].after}"
            raise BadRecord("stones set up in mid-game; what follows is no sequel of the moves", place=after)
        setup = _packed_setup(record)
        if len(setup):
            record.start()
        points = _scan_codes(record.xsize, record.ysize)
        codes = [points[vertex] | (WHITE_BIT if colour == "W" else 0) for colour, vertex in record.moves]
        moves = np.array(codes, np.uint16)
        played = self._play(record, moves, setup)
        if played < len(moves):
            record.final()  # tells why
            raise BadRecord("cannot be played", place=f"move {played + 1}")
        return PackedGame(record, moves, setup)

    def _play(self, record: GameRecord, moves: NDArray[np.uint16], setup: NDArray[np.uint16]) -> int:
        return int(replay(self._board[0], moves, setup, record.xsize, record.ysize))


@lru_cache(maxsize=64)
def _scan_codes(xsize: int, ysize: int) -> dict[str, int]:
    """GTP vertex → the code `scan` gives it."""
    points = {f"{COLUMNS[x]}{ysize - y}": y * 32 + x for y in range(ysize) for x in range(xsize)}
    return points | {"pass": _SCAN_PASS}


def _packed_setup(record: GameRecord) -> NDArray[np.uint16]:
    """The stones on the board before the first move, packed."""
    codes = _scan_codes(record.xsize, record.ysize)
    stones = [codes[vertex] for vertex in (*record.handicap, *record.black_setup, *record.white_setup)]
    packed = np.array([code // 32 * record.xsize + code % 32 for code in stones], np.uint16)
    packed[len(stones) - len(record.white_setup) :] |= WHITE_BIT
    return packed


_RESULT = re.compile(
    r"(?P<who>B|W|BLACK|WHITE)\s*\+\s*(?P<points>\d{1,4}(?:[.,]\d+)?)?\s*(?P<rest>.*)", re.IGNORECASE | re.DOTALL
)
_RESULT_EAST = re.compile(r"(黑|黒|白)[^负負敗黑黒白]*[胜勝]")
"""How Chinese and Japanese records say who won, by whatever."""
_EVEN = {"0", "DRAW", "JIGO"}
_POINT_WORDS = {"", "points", "point", "moku", "目", "점", "pts"}


def read_result(text: str) -> tuple[int | None, float | None]:
    """(winner, score) of an SGF result: +1 Black, −1 White, 0 drawn or no result; Black's lead in points.

    None where it is not known; a resignation, a forfeit or a loss on time has no score.

        >>> read_result("W+3.5"), read_result("B+R"), read_result("Jigo"), read_result("Void"), read_result("?")
        ((-1, -3.5), (1, None), (0, 0.0), (0, None), (None, None))
    """
    text = text.strip()
    match = _RESULT.fullmatch(text)
    if match:
        winner = 1 if match["who"][0] in "Bb" else -1
        if match["points"] is None or match["rest"].strip().lower() not in _POINT_WORDS:
            return winner, None
        return winner, winner * float(match["points"].replace(",", "."))
    if match := _RESULT_EAST.match(text):
        return (-1 if match[1] == "白" else 1), None
    if text.upper() in _EVEN:
        return 0, 0.0
    return (0, None) if text.upper() == "VOID" else (None, None)


@lru_cache(maxsize=1024)
def _rules_name(rules: Rules) -> str:
    return rules.name


def go_row(game: PackedGame) -> Row:
    """A game as a row of the store."""
    record = game.record
    moves, setup = game.moves.astype("<u2").tobytes(), game.setup.astype("<u2").tobytes()
    winner, score = read_result(record.result)
    first = game.moves[0] >= WHITE_BIT if len(game.moves) else record.to_play == "W"
    stones = np.sort(game.setup).astype("<u2").tobytes()
    return {
        "moves": moves,
        "setup": setup,
        "to_play_first": int(first),
        "xsize": record.xsize,
        "ysize": record.ysize,
        "rules": _rules_name(record.rules),
        "komi": record.komi,
        "handicap": min(len(record.handicap), 255),
        "winner": winner,
        "result": record.result.strip(),
        "black": record.players.get("B", ""),
        "white": record.players.get("W", ""),
        "score": score,
        "black_rank": record.ranks.get("B", ""),
        "white_rank": record.ranks.get("W", ""),
        "date": iso_date(record.date),
        "source": "",
        "key": game_key(bytes((record.xsize, record.ysize)) + stones, moves),
    }
