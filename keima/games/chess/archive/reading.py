"""PGN into rows of a game store.

As with Go, two readers give the same rows. A plain game (tags, then one line of moves in standard notation from the
usual start or a FEN, with comments, glyphs and variations between them) is read by a kernel that finds each move among
the legal ones; variations are passed over. Any other game, and any that looks broken, is read by
`keima.games.chess.records`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import IO

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadPosition, BadRecord
from keima.games.chess import board
from keima.games.chess.position import START_FEN, Position, uci_code
from keima.games.chess.records import RESULTS, GameRecord, decode_line, read_pgn_text, result_of
from keima.games.kernels import joined
from keima.games.rows import Row, game_key, iso_date
from keima.jit import Record, njit

NOT_PLAIN = -1
_WINNERS = {"1-0": 1, "0-1": -1, "1/2-1/2": 0}
_MAX_ELO = 9999
_OPEN, _CLOSE, _BRACE, _BRACE_END, _SEMICOLON, _DOLLAR, _DOT, _DASH = (ord(c) for c in "(){};$.-")
_PLUS, _HASH, _BANG, _ASK, _EQUALS, _X, _O = (ord(c) for c in "+#!?=xO")
_A, _H, _0, _1, _8, _9 = (ord(c) for c in "ah0189")
_PIECE_OF = np.array([max(0, "PNBRQK".find(chr(c))) for c in range(256)])
"""The piece type of a letter NBRQK; PAWN for all else."""


@njit
def _is_digit(c: int) -> bool:
    return _0 <= c <= _9


@njit
def _is_space(c: int) -> bool:
    return c == 32 or (9 <= c <= 13)


@njit
def _comment_end(text: NDArray[np.uint8], i: int) -> int:
    """The index after the `}` that closes the comment opened at `i`; beyond the text if none does."""
    while i < len(text) and text[i] != _BRACE_END:
        i += 1
    return i + 1


@njit
def _variation_end(text: NDArray[np.uint8], i: int) -> int:
    """The index after the `)` that closes the variation opened at `i`; beyond the text if none does."""
    depth = 0
    while i < len(text):
        c = text[i]
        if c == _BRACE:
            i = _comment_end(text, i)
            continue
        if c == _SEMICOLON:
            return len(text) + 1
        depth += (c == _OPEN) - (c == _CLOSE)
        i += 1
        if depth == 0:
            return i
    return len(text) + 1


@njit
def _castling_move(count: int, legal: NDArray[np.uint16], name: NDArray[np.uint8]) -> int:
    """The legal castling move called O-O or O-O-O, or NOT_PLAIN."""
    if len(name) not in (3, 5):
        return NOT_PLAIN
    for i in range(len(name)):
        if name[i] != (_DASH if i & 1 else _O):
            return NOT_PLAIN
    for index in range(count):
        move = int(legal[index])
        if move >> 12 == board.CASTLING and ((move >> 6 & 63) < (move & 63)) == (len(name) == 5):
            return move
    return NOT_PLAIN


@njit
def _find_san(b: Record, text: NDArray[np.uint8], begin: int, end: int, legal: NDArray[np.uint16]) -> int:
    """The one legal move of position `b` that standard notation `text[begin:end]` names, or NOT_PLAIN."""
    count = board.legal_moves(b, legal)
    while end > begin and text[end - 1] in (_PLUS, _HASH, _BANG, _ASK):
        end -= 1
    if text[begin] == _O:
        return _castling_move(count, legal, text[begin:end])
    piece = _PIECE_OF[text[begin]]
    i = begin + (piece != board.PAWN)
    promotion = 0
    if end - i >= 4 and text[end - 2] == _EQUALS:
        promotion = _PIECE_OF[text[end - 1]]
        if piece != board.PAWN or promotion == board.PAWN or promotion == board.KING:
            return NOT_PLAIN
        end -= 2
    if end - i < 2:
        return NOT_PLAIN
    file = int(text[end - 2]) - _A
    rank = int(text[end - 1]) - _1
    if file < 0 or file > 7 or rank < 0 or rank > 7:
        return NOT_PLAIN
    end -= 2
    if end > i and text[end - 1] == _X:
        end -= 1
    from_file = -1
    from_rank = -1
    if i < end and _A <= text[i] <= _H:
        from_file = int(text[i]) - _A
        i += 1
    if i < end and _1 <= text[i] <= _8:
        from_rank = int(text[i]) - _1
        i += 1
    if i != end:
        return NOT_PLAIN
    if piece == board.PAWN and from_file < 0:
        from_file = file
    flip = 7 if b.side else 0
    if from_rank >= 0:
        from_rank ^= flip
    return _match(b, count, legal, piece, (rank ^ flip) * 8 + file, promotion, from_file, from_rank)


@njit
def _match(
    b: Record, count: int, legal: NDArray[np.uint16], piece: int, target: int, promotion: int, file: int, rank: int
) -> int:
    """The one legal move of a piece to a square, from that file and rank where they are not −1; else NOT_PLAIN."""
    found = NOT_PLAIN
    for index in range(count):
        move = int(legal[index])
        kind = move >> 12
        source = move & 63
        if move >> 6 & 63 != target or kind == board.CASTLING:
            continue
        if (kind if kind <= board.QUEEN else 0) != promotion:
            continue
        if (file >= 0 and source & 7 != file) or (rank >= 0 and source >> 3 != rank):
            continue
        if board.piece_at(b, np.uint64(source)) != piece:
            continue
        if found != NOT_PLAIN:
            return NOT_PLAIN
        found = move
    return found


@njit
def _skip(text: NDArray[np.uint8], i: int, count: int) -> int:
    """The index of the next move, number or result; beyond the text if what stands between them is not plain."""
    n = len(text)
    while i < n:
        c = text[i]
        if _is_space(c):
            i += 1
        elif c == _BRACE:
            i = _comment_end(text, i)
        elif c == _OPEN:
            i = _variation_end(text, i) if count else n + 1
        elif c == _DOLLAR:
            i += 1
            while i < n and _is_digit(text[i]):
                i += 1
        else:
            break
    return i


@njit
def _token_end(text: NDArray[np.uint8], i: int) -> int:
    """The index after the move or number that begins at `i`."""
    while i < len(text) and not _is_space(text[i]):
        c = text[i]
        if c in (_BRACE, _BRACE_END, _OPEN, _CLOSE, _DOLLAR, _DOT, _SEMICOLON):
            break
        i += 1
    return i


@njit
def _number_end(text: NDArray[np.uint8], begin: int, end: int) -> int:
    """The index after a move number and its dots; beyond the text if it is none."""
    for k in range(begin, end):
        if not _is_digit(text[k]):
            return len(text) + 1
    if end >= len(text) or text[end] != _DOT:
        return len(text) + 1
    while end < len(text) and text[end] == _DOT:
        end += 1
    return end


@njit
def read_moves(b: Record, text: NDArray[np.uint8], moves: NDArray[np.uint16], legal: NDArray[np.uint16]) -> int:
    """Read a plain movetext [n] without its result, and make its moves on `b` (a BOARD or STATE).

    The kernel's codes are written into `moves` (room for n // 2); `legal` [MAX_MOVES] is working space. Returns how
    many there are, or NOT_PLAIN.
    """
    count = 0
    i = _skip(text, 0, count)
    while i < len(text):
        end = _token_end(text, i)
        if _is_digit(text[i]):
            i = _number_end(text, i, end)
        else:
            move = _find_san(b, text, i, end, legal) if end > i else NOT_PLAIN
            if move == NOT_PLAIN:
                return NOT_PLAIN
            moves[count] = move
            count += 1
            board.make_board(b, np.uint16(move))  # type: ignore[arg-type]
            i = end
        i = _skip(text, i, count)
    return count if i == len(text) else NOT_PLAIN


class ChessReader:
    """Reads games one after another, and keeps what reading them shares; see `ChessArchive`."""

    def __init__(self, fast: bool = True) -> None:
        self.fast = fast
        self._start = Position.start()
        self._state = board.new_states(1)
        self._legal = np.empty(board.MAX_MOVES, np.uint16)

    def read(self, text: bytes) -> Iterator[Row | BadRecord]:
        """The rows of the games in a piece of PGN that holds one, or, where it is not plain, perhaps more or none."""
        row = self._read_plain(text) if self.fast else None
        if row is not None:
            yield row
            return
        for record in read_pgn_text(_decode(text)):
            yield record if isinstance(record, BadRecord) else self._row_of(record)

    def _read_plain(self, text: bytes) -> Row | None:
        """The row if the game is plain and sound; None leaves it, and its errors, to the other reader."""
        head = _HEAD.match(text)
        moved = text.rstrip()
        written = next((result for result in RESULTS if moved.endswith(result.encode())), None)
        if head is None or written is None or _NOT_PLAIN_MOVES.search(text, head.end()):
            return None
        last = len(moved) - len(written)
        if last < head.end() or text[last - 1] not in b" \t\n\v\f\r)}.":
            return None
        tags = {name.decode("ascii"): _decode(value) for name, value in _TAG.findall(head[0])}
        start = self._plain_start(tags)
        if start is None:
            return None
        moves = np.empty(len(text) // 2 + 1, np.uint16)
        self._state.view(np.uint8)[:] = start.record.view(np.uint8)
        count = read_moves(self._state[0], np.frombuffer(text, np.uint8)[head.end() : last], moves, self._legal)
        if count == NOT_PLAIN:
            return None
        return row_of(tags, moves[:count], start, result_of(tags.get("Result", "*"), written))

    def _plain_start(self, tags: Mapping[str, str]) -> Position | None:
        """Where the game begins; None for Chess960 and other variants, and for a FEN that is bent or impossible."""
        fen = tags.get("FEN")
        if "Variant" in tags or (fen is not None and _PLAIN_FEN.fullmatch(fen) is None):
            return None
        try:
            return self._start if fen is None else Position.from_fen(fen)
        except BadPosition:
            return None

    def _row_of(self, record: GameRecord) -> Row:
        """The row of a game that the other reader read."""
        state = joined([record.start.record])
        codes = np.array([uci_code(move) for move in record.moves], np.int32)
        board.play_moves(state[0], codes, self._legal)
        return row_of(record.headers, codes.astype(np.uint16), record.start, record.result)


_HEAD = re.compile(rb'(?:\[[A-Za-z0-9_]+ +"[^"\\\n\r]*"\][ \t]*\r?\n)+(?:[ \t]*\r?\n)*(?!\[)')
_TAG = re.compile(rb'\[([A-Za-z0-9_]+) +"([^"]*)"\]')
_NOT_PLAIN_MOVES = re.compile(rb"\n(?:[ \t]*\r?\n\s*\S|%)|\A%")
"""An empty line, which ends a game, or a line that PGN hides."""
_PLAIN_FEN = re.compile(r"[1-8KQRBNPkqrbnp/]+ [wb] (?:-|K?Q?k?q?) (?:-|[a-h][36]) [0-9]{1,4} [0-9]{1,4}")


def _decode(text: bytes) -> str:
    """UTF-8, and Latin-1 for lines that are not."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(decode_line(line) for line in text.splitlines(keepends=True))


def row_of(tags: Mapping[str, str], moves: NDArray[np.uint16], start: Position, result: str) -> Row:
    """A game as a row of the store."""
    usual = not start.chess960 and (start.start_fen == START_FEN or start.fen() == START_FEN)
    start_fen = None if usual else start.start_fen

    def tag(name: str) -> str:
        value = tags.get(name, "").strip()
        return "" if value in ("?", "-") else value

    def elo(name: str) -> int | None:
        value = tag(name)
        return int(value) if value.isdecimal() and 0 < int(value[:5]) <= _MAX_ELO else None

    packed = moves.astype("<u2").tobytes()
    date = iso_date(tag("Date"))
    return {
        "moves": packed,
        "start_fen": start_fen,
        "chess960": start.chess960,
        "winner": _WINNERS.get(result),
        "result": result,
        "black": tag("Black"),
        "white": tag("White"),
        "white_elo": elo("WhiteElo"),
        "black_elo": elo("BlackElo"),
        "date": date if any(c.isdecimal() for c in date) else "",
        "event": ", ".join(filter(None, (tag("Event"), tag("Round")))),
        "source": "",
        "key": game_key((start_fen or "").encode() + bytes([start.chess960]), packed),
    }


def split_pgn(stream: IO[bytes], size: int) -> Iterator[tuple[int, bytes]]:
    """PGN in pieces of about `size` bytes that end between games: (line the piece begins on, its bytes).

    A piece ends where an `[Event ` tag follows moves, as `keima.games.chess.records` tells games apart.
    """
    line, buffer = 1, b""
    while data := stream.read(size):
        buffer += data
        cut = next(game_starts(buffer, backwards=True), 0)
        if cut:
            yield line, buffer[:cut]
            line += buffer.count(b"\n", 0, cut)
            buffer = buffer[cut:]
    if buffer.strip():
        yield line, buffer


def game_starts(text: bytes, backwards: bool = False) -> Iterator[int]:
    """Where games begin for certain: at an `[Event ` tag after a line that is no tag; from the end if `backwards`."""
    position = len(text) if backwards else 0
    while True:
        found = text.rfind(b"\n[Event ", 0, position) if backwards else text.find(b"\n[Event ", position)
        if found < 0:
            return
        position = found if backwards else found + 1
        end = found
        while end > 0 and text[end - 1] in b" \t\r\n":
            end -= 1
        if end and text[text.rfind(b"\n", 0, end) + 1] != ord("["):
            yield found + 1
