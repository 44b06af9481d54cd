"""A chess position with its game: FEN and UCI in and out, legal moves, endings, repetitions.

What is checked here at the edge (`from_fen`, `play`) the kernels in `board.py` may trust.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadPosition, IllegalMove
from keima.games import fields as read
from keima.games.chess import board
from keima.games.chess.kernels import insufficient_material
from keima.games.kernels import joined, moves_since
from keima.jit import Records
from keima.plain import Note

if TYPE_CHECKING:
    import chess

START_FEN = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"

_LETTERS = "pnbrqk"
_SQUARES = [file + rank for rank in "12345678" for file in "abcdefgh"]
_UCI = re.compile(r"([a-h][1-8])([a-h][1-8])([nbrq]?)")
_NAMES = [source + target for source in _SQUARES for target in _SQUARES]
_LONGEST_FEN = 200
_START_COUNTS = {"p": 8, "n": 2, "b": 2, "r": 2, "q": 1, "k": 1}


@dataclass(frozen=True)
class Outcome:
    """How a game ended.

    Attributes:
        reason: "checkmate", "stalemate", "insufficient material", "seventy-five moves", "fivefold repetition"; or,
            where a player has to claim it, "fifty moves", "threefold repetition".
        winner: "w", "b", or None for a draw.
    """

    reason: str
    winner: str | None = None

    @property
    def result(self) -> str:
        """The result as PGN writes it: "1-0", "0-1" or "1/2-1/2"."""
        return {"w": "1-0", "b": "0-1", None: "1/2-1/2"}[self.winner]


@dataclass(frozen=True)
class Position:
    """A position, immutable, with the moves that led to it; made by `start`, `from_fen`, `from_json` or `play`.

    Attributes:
        record: `board.STATE` [1], read-only; what encoders and the search read.
        start_fen: the position the game was set up with.
        moves: UCI moves played since, as this position names them (castling e1g1, or e1h1 in Chess960).
        chess960: whether castling is named king-takes-rook, and may start from any squares of the first rank.
    """

    record: Records = field(repr=False, compare=False)
    start_fen: str
    moves: tuple[str, ...] = ()
    chess960: bool = False
    game: ClassVar[str] = "chess"

    def __post_init__(self) -> None:
        self.record.setflags(write=False)

    @staticmethod
    def start() -> Position:
        """The initial position of standard chess."""
        return Position.from_fen(None)

    @staticmethod
    def from_fen(fen: str | None = None, moves: list[str] | tuple[str, ...] = (), chess960: bool = False) -> Position:
        """The position after `moves` from `fen`.

        Args:
            fen: four to six fields; None is the initial position. An en passant square is accepted after any move of
                two squares, as lc0 does. Castling rights: KQkq mean the outermost rook on that side (X-FEN), letters
                A–H a file (Shredder-FEN). Rights that do not fit the board are refused, not dropped.
            moves: UCI moves. Castling is understood as e1g1 and as king takes rook, in either kind of chess, wherever
                the two cannot be confused with an ordinary move.
            chess960: allows castling from other squares than e1, a1, h1 and names it king takes rook.

        Raises:
            BadPosition: the FEN is malformed or cannot occur in a game; the message says why.
            IllegalMove: a move is malformed or illegal; `place` is its number.
        """
        text = START_FEN if fen is None else fen
        return Position(_read_fen(text, chess960), text, (), chess960).play(*moves)

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> Position:
        """The position of a POSITIONS line: `fen` (default: the usual start), `moves` in UCI from there, `chess960`.

        Raises:
            BadPosition: a field is of the wrong kind or says what cannot be.
            IllegalMove: a move is malformed or illegal; `place` is its number.
        """
        fen = fields.get("fen")
        if not (fen is None or isinstance(fen, str)):
            raise read.wrong("fen", "a FEN or null", read.kind(fen))
        moves = read.strings(fields, "moves")
        try:
            position = cls.from_fen(fen, chess960=read.flag(fields, "chess960"))
        except BadPosition as error:
            raise error if error.place else error.at(place='field "fen"') from error
        return position.play(*moves)

    def to_json(self) -> dict[str, object]:
        """The fields `from_json` reads."""
        fields: dict[str, object] = {"game": "chess", "fen": self.start_fen, "moves": list(self.moves)}
        return {**fields, "chess960": True} if self.chess960 else fields

    def play(self, *moves: str) -> Position:
        """The position after these UCI moves. Raises IllegalMove, whose `place` counts from the set-up position."""
        if not moves:
            return self
        record = joined([self.record])
        wanted = np.array([uci_code(move) for move in moves], np.int32)
        played = board.play_moves(record[0], wanted, np.empty(board.MAX_MOVES, np.uint16))
        if played < len(moves):
            here = self.play(*moves[:played])
            facts = {"move": repr(moves[played]), "fen": here.fen(), "hint": here._hint(moves[played])}
            message = Note("{move} is not a legal move in {fen}{hint}", "error.move", **facts)
            raise IllegalMove(message, place=f"move {len(self.moves) + played + 1}")
        names = [self.name(move, (self._side + index) & 1) for index, move in enumerate(wanted.tolist())]
        return Position(record, self.start_fen, (*self.moves, *names), self.chess960)

    def _hint(self, move: str) -> str:
        """What was meant, where somebody wrote a move as people do."""
        try:
            meant = self.parse_san(move)
        except IllegalMove:
            return "" if _UCI.fullmatch(move) else "; moves are UCI, as e2e4, e7e8q"
        return f"; moves are UCI: {move} is {meant}"

    @cached_property
    def legal_codes(self) -> NDArray[np.uint16]:
        """The legal moves as the kernel writes them (uint16 [k], from the side to move; see `board`)."""
        moves = np.empty(board.MAX_MOVES, np.uint16)
        codes = moves[: board.legal_moves(self.record[0], moves)].copy()
        codes.setflags(write=False)
        return codes

    def legal(self) -> list[str]:
        """The legal moves in UCI, in the kernel's order."""
        return [self.name(code, self._side) for code in self.legal_codes.tolist()]

    def is_legal(self, move: str) -> bool:
        """Whether the UCI move may be played here."""
        return self.code(move) >= 0

    def code(self, move: str) -> int:
        """The kernel's code of a UCI move, −1 if it is not legal here."""
        wanted = uci_code(move)
        return int(board.find_move(self.record[0], wanted, np.empty(board.MAX_MOVES, np.uint16))) if wanted >= 0 else -1

    def moves_to(self, later: Position) -> list[str] | None:
        """The moves that lead from here to another position of the same game; None where none do."""
        same = (self.start_fen, self.chess960) == (later.start_fen, later.chess960)
        return moves_since(self, later) if same else None

    def name(self, code: int, side: int) -> str:
        """The UCI name of a kernel's move made by `side` (0 white, 1 black); castling as `chess960` says."""
        source, target, kind = code & 63, code >> 6 & 63, code >> 12
        if kind == board.CASTLING and not self.chess960:
            target = 2 if target < source else 6
        flip = 56 if side else 0
        name = _NAMES[(source ^ flip) * 64 + (target ^ flip)]
        return name + _LETTERS[kind] if board.QUIET < kind <= board.QUEEN else name

    @property
    def to_play(self) -> str:
        """ "w" or "b"."""
        return "wb"[self._side]

    @property
    def halfmove_clock(self) -> int:
        """Plies since the last capture or pawn move."""
        return int(self.record["rule50"][0])

    @property
    def fullmove_number(self) -> int:
        """The number of the current move: 1 at the start, one more after each move of Black."""
        return int(self.record["ply"][0]) // 2 + 1

    @property
    def repetitions(self) -> int:
        """How often this position occurred before in the game as known here; 2 at threefold repetition."""
        return int(self.record["repetitions"][0])

    @property
    def key(self) -> int:
        """The Zobrist key of pieces, side to move, castling rights and legal en passant (not of the history)."""
        return int(self.record["hash"][0])

    @property
    def in_check(self) -> bool:
        """Whether the side to move stands in check."""
        return bool(board.in_check(self.record[0]))

    @cached_property
    def outcome(self) -> Outcome | None:
        """How the game has ended without anyone claiming it, or None."""
        if not len(self.legal_codes):
            return Outcome("checkmate", "bw"[self._side]) if self.in_check else Outcome("stalemate")
        if insufficient_material(self.record[0]):
            return Outcome("insufficient material")
        if self.halfmove_clock >= 150:
            return Outcome("seventy-five moves")
        return Outcome("fivefold repetition") if self.repetitions >= 4 else None

    @property
    def claimable(self) -> Outcome | None:
        """The draw that may be claimed in this position: fifty moves or threefold repetition; lc0 stops there too."""
        if self.halfmove_clock >= 100 and len(self.legal_codes):
            return Outcome("fifty moves")
        return Outcome("threefold repetition") if self.repetitions >= 2 and len(self.legal_codes) else None

    @property
    def is_over(self) -> bool:
        """Whether the game has ended (`outcome`); a draw that would have to be claimed does not end it."""
        return self.outcome is not None

    @property
    def result(self) -> str | None:
        """A finished game's result as PGN writes it; None before the end."""
        return self.outcome.result if self.outcome else None

    def fen(self) -> str:
        """The position as a FEN of six fields; the en passant square only where capturing there is legal (X-FEN)."""
        rows = self.rows()
        placement = re.sub(r"\.+", lambda empty: str(len(empty[0])), "/".join(rows))
        ep = "-"
        if self.record["ep_legal"][0]:
            ep = _SQUARES[(int(self.record["ep"][0]).bit_length() - 1) ^ self._flip]
        return f"{placement} {self.to_play} {self._castling(rows)} {ep} {self.halfmove_clock} {self.fullmove_number}"

    def san(self, move: str) -> str:
        """The UCI move in standard notation ("Nf3", "O-O", "exd8=Q+"), by python-chess. Raises IllegalMove."""
        oracle, code = self._oracle(), self.code(move)
        if code < 0:
            raise IllegalMove(f"{move!r} is not a legal move in {self.fen()}")
        return oracle.san(oracle.parse_uci(self.name(code, self._side)))

    def parse_san(self, san: str) -> str:
        """The UCI name of a move in standard notation. Raises IllegalMove where none or several have that name."""
        oracle = self._oracle()
        try:
            return oracle.uci(oracle.parse_san(san))
        except ValueError as error:
            raise IllegalMove(f"{san!r} names no legal move in {self.fen()} ({error})") from None

    def __str__(self) -> str:
        """The board from White's side, with coordinates, and whose turn it is."""
        lines = [f"{8 - index} {' '.join(row)}" for index, row in enumerate(self.rows())]
        side = "White" if self.to_play == "w" else "Black"
        return "\n".join([*lines, "  a b c d e f g h", f"{side} to move, move {self.fullmove_number}"])

    def rows(self) -> list[str]:
        """Eight strings of eight characters, rank 8 first; "." is an empty square."""
        squares = ["."] * 64
        pieces, ours = self.record["pieces"][0].tolist(), int(self.record["ours"][0])
        for square in range(64):
            for letter, mask in zip(_LETTERS, pieces, strict=True):
                if mask >> square & 1:
                    white = bool(ours >> square & 1) == (self._side == 0)
                    squares[square ^ self._flip] = letter.upper() if white else letter
        return ["".join(squares[rank * 8 : rank * 8 + 8]) for rank in range(7, -1, -1)]

    @property
    def _side(self) -> int:
        return int(self.record["side"][0])

    @property
    def _flip(self) -> int:
        return 56 * self._side

    def _oracle(self) -> chess.Board:
        """This position for python-chess, without its history."""
        import chess

        return chess.Board(self.fen(), chess960=self.chess960)

    def _castling(self, rows: list[str]) -> str:
        """The third field of the FEN: KQkq, or a file's letter where another rook stands further out (X-FEN)."""
        rights, found = int(self.record["castling"][0]), ""
        for rank, row, king_letter, rook_letter in ((0, rows[7], "K", "R"), (7, rows[0], "k", "r")):
            files = [file for file in range(7, -1, -1) if rights >> ((rank * 8 + file) ^ self._flip) & 1]
            king = row.find(king_letter)
            for file in files:
                outside = row[:file] if file < king else row[file + 1 :]
                letter = "abcdefgh"[file] if rook_letter in outside else ("q" if file < king else "k")
                found += letter.upper() if rank == 0 else letter
        return found or "-"


def uci_code(move: str) -> int:
    """A UCI move as `board.find_move` wants it: from | to << 6 | promotion << 12 on the real board; -1 if malformed."""
    match = _UCI.fullmatch(move) if isinstance(move, str) else None
    if match is None:
        return -1
    source, target, promotion = match.groups()
    return _SQUARES.index(source) | _SQUARES.index(target) << 6 | (_LETTERS.index(promotion) if promotion else 0) << 12


def _refuse(fen: str, reason: str) -> BadPosition:
    return BadPosition(f"{reason} (FEN {fen!r})")


def _read_fen(fen: str, chess960: bool) -> Records:
    if len(fen) > _LONGEST_FEN:
        raise _refuse(fen[:40] + "…", f"a FEN has at most {_LONGEST_FEN} characters, not {len(fen)}")
    fields = fen.split()
    if not 4 <= len(fields) <= 6:
        raise _refuse(fen, f"a FEN has 4 to 6 fields (board, side, castling, en passant, clocks), not {len(fields)}")
    placement, side, castling, ep = fields[:4]
    if side not in ("w", "b"):
        raise _refuse(fen, f"the side to move is 'w' or 'b', not {side!r}")
    squares = _read_placement(fen, placement)
    _check_material(fen, squares)
    rooks = _read_castling(fen, squares, castling, chess960)
    target = _read_en_passant(fen, squares, ep, side)
    rule50 = _read_number(fen, fields[4] if len(fields) > 4 else "0", "half-move clock")
    number = max(1, _read_number(fen, fields[5] if len(fields) > 5 else "1", "move number"))
    state = board.new_states(1)
    record, flip = state[0], 56 * (side == "b")
    masks = dict.fromkeys(_LETTERS + _LETTERS.upper(), 0)
    for square, letter in squares.items():
        masks[letter] |= 1 << (square ^ flip)
    white, black = (sum(masks[letter] for letter in letters) for letters in (_LETTERS.upper(), _LETTERS))
    record["pieces"] = [masks[letter] + masks[letter.upper()] for letter in _LETTERS]
    record["ours"], record["theirs"] = (white, black) if side == "w" else (black, white)
    record["castling"] = sum(1 << (rook ^ flip) for rook in rooks)
    record["ep"] = 0 if target is None else 1 << (target ^ flip)
    record["side"] = side == "b"
    record["rule50"] = rule50
    record["ply"] = 2 * (number - 1) + (side == "b")
    if board.opponent_in_check(record):
        raise _refuse(fen, f"{'Black' if side == 'w' else 'White'}, not to move, stands in check")
    board.set_up(record, int(fields[:4] == START_FEN.split()[:4]))
    return state


def _read_placement(fen: str, placement: str) -> dict[int, str]:
    """Square → piece letter from the first field of a FEN."""
    squares: dict[int, str] = {}
    ranks = placement.split("/")
    if len(ranks) != 8:
        raise _refuse(fen, f"the board has 8 ranks, not {len(ranks)}")
    for rank, text in zip(range(7, -1, -1), ranks, strict=True):
        row = re.sub("[1-8]", lambda digit: " " * int(digit[0]), text)
        for character in row:
            if character not in " pnbrqkPNBRQK":
                raise _refuse(fen, f"{character!r} is no piece (rank {rank + 1})")
        if len(row) != 8:
            raise _refuse(fen, f"rank {rank + 1} ({text!r}) does not describe 8 squares")
        squares |= {rank * 8 + file: letter for file, letter in enumerate(row) if letter != " "}
    return squares


def _check_material(fen: str, squares: dict[int, str]) -> None:
    pieces = "".join(squares.values())
    for name, case in (("White", str.upper), ("Black", str.lower)):
        counts = {letter: pieces.count(case(letter)) for letter in _LETTERS}
        if counts["k"] != 1:
            raise _refuse(fen, f"{name} has {counts['k'] or 'no'} king{'s' * (counts['k'] > 1)}")
        if counts["p"] > 8:
            raise _refuse(fen, f"{name} has {counts['p']} pawns")
        promoted = sum(max(0, counts[letter] - _START_COUNTS[letter]) for letter in "nbrq")
        if promoted > 8 - counts["p"]:
            raise _refuse(fen, f"{name} has {promoted} promoted pieces beside {counts['p']} pawns")
    for square, letter in squares.items():
        if letter in "pP" and square // 8 in (0, 7):
            raise _refuse(fen, f"there is a pawn on {_SQUARES[square]}, its first or last rank")


def _read_castling(fen: str, squares: dict[int, str], text: str, chess960: bool) -> list[int]:
    """The squares of the rooks that may castle."""
    if text == "-":
        return []
    found: list[int] = []
    for letter in text:
        king_letter, rook_letter, rank = ("K", "R", 0) if letter.isupper() else ("k", "r", 7)
        king = next(square for square, piece in squares.items() if piece == king_letter)
        rooks = [square for square, piece in sorted(squares.items()) if piece == rook_letter and square // 8 == rank]
        if letter in "Kk":
            rooks = [rook for rook in rooks if rook > king][-1:]
        elif letter in "Qq":
            rooks = [rook for rook in rooks if rook < king][:1]
        elif letter.lower() in "abcdefgh":
            rooks = [rook for rook in rooks if rook % 8 == "abcdefgh".index(letter.lower())]
        else:
            raise _refuse(fen, f"{letter!r} is no castling right (KQkq, or files A–H, a–h)")
        if not rooks or king // 8 != rank:
            raise _refuse(fen, f"castling right {letter!r} without king and rook on their first rank")
        standard = king % 8 == 4 and rooks[0] % 8 in (0, 7)
        if not standard and not chess960:
            elsewhere = "needs Chess960 (chess960=True): king or rook stand elsewhere"
            raise _refuse(fen, f"castling right {letter!r} {elsewhere}")
        found += rooks
    sides = {(rook // 8, rook > next(s for s, p in squares.items() if p == "kK"[rook < 8])) for rook in found}
    if len(sides) < len(text):
        raise _refuse(fen, f"castling rights {text!r} name one side twice")
    return found


def _read_en_passant(fen: str, squares: dict[int, str], text: str, side: str) -> int | None:
    """The square a pawn has just passed over, or None."""
    if text == "-":
        return None
    if text not in _SQUARES:
        raise _refuse(fen, f"{text!r} is no en passant square")
    target = _SQUARES.index(text)
    rank, towards, pawn = (5, -8, "p") if side == "w" else (2, 8, "P")
    if target // 8 != rank:
        raise _refuse(fen, f"the en passant square {text} is not on rank {rank + 1}")
    if squares.get(target + towards) != pawn or target in squares or target - towards in squares:
        raise _refuse(fen, f"no pawn can have just moved two squares over {text}")
    return target


def _read_number(fen: str, text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise _refuse(fen, f"the {what} is a whole number, not {text!r}")
    return int(text)
