"""Lc0's inputs: 112 planes of 8 × 8, from the side to move, in all of its input formats.

Row 0 is the mover's first rank, column 0 is file a; a black mover sees the board with ranks turned around, files stay.
Planes of one position, newest first, t = 0 … 7 (the current position and seven before it, all seen by the side to move
*now*):

| plane       | meaning                                                                                           |
| ----------- | ------------------------------------------------------------------------------------------------- |
| 13 t + 0–5  | our pawns, knights, bishops, rooks, queens, king                                                  |
| 13 t + 6–11 | their pawns, knights, bishops, rooks, queens, king                                                |
| 13 t + 12   | ones where that position had occurred before in the game                                          |
| 104 – 107   | castling; classical: ones where we may castle queenside, kingside, they queenside, kingside;       |
|             | all other formats: 104 the rooks (both sides') that may castle queenside, 105 kingside, 106–107 0  |
| 108         | ones where Black is to move; canonical formats: the pawn capturable en passant, drawn on rank 8    |
| 109         | plies since the last capture or pawn move, as a number; from hectoplies on divided by 100          |
| 110         | zeros; armageddon formats: ones where Black is to move                                            |
| 111         | ones                                                                                              |

Worked values, initial position: plane 0 is row 1, plane 3 has [0, 0] and [0, 7], planes 104–107 and 111 are ones
(classical), planes 13–103 and 108–110 are zeros.

**Canonical formats** turn the board so that our king stands on files e–h; without pawns also on ranks 1–4, and not
above the diagonal h1–a8: `transform` bits 1 mirror files, 2 mirror ranks, 4 reflect in the diagonal h1–a8; 0 while
anyone may castle. Their history stops at a capture, a pawn move, a change of castling rights or an en passant position.
**V2** keeps of the past only positions that were themselves repetitions, however far back.

**History fill**, for positions before the one the game was set up with: "fen_only" (lc0's default) repeats that
position unless it is the initial one, "always" repeats it, "no" leaves zeros. Where an en passant capture is possible
the pawn's move is taken back in the repeated positions (and "no" adds that one): it is known to have been the last
move.

**Policy.** A canonical network's moves are numbered in the frame of its planes, turned by the same transform: so lc0's
search reads them (`src/neural/wrapper.cc`) and its training data hold them (`src/trainingdata/trainingdata.cc`), and so
do evaluator, search and training here. Only its Python bindings ask without the transform (`src/python/weights.h`),
which names other moves. At reflections in the diagonal moves are turned as the planes are; lc0 v0.33-dev's
`Transform(Square, …)` turns by 180° there, unlike v0.31 and its own planes.

Source: lc0 v0.33-dev, `src/neural/encoder.cc`, `src/chess/board.cc`, `src/chess/position.cc`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest
from keima.games.chess.attacks import ALL, ONE, RANK_1, RANK_8, ZERO, bit, flip_ranks, lowest
from keima.games.chess.board import (
    BISHOP,
    KING,
    KNIGHT,
    PAWN,
    QUEEN,
    ROOK,
    SLOT_CASTLING,
    SLOT_EP,
    SLOT_OURS,
    SLOT_REPETITIONS,
    SLOT_RULE50,
    SLOT_SIDE,
    SLOTS,
    king_square,
)
from keima.games.chess.position import Position
from keima.jit import Record, Records, njit
from keima.systems.encoding import Array, Batch, Encoding, LegalMoves
from keima.systems.lc0.file_schema import INPUTS
from keima.systems.lc0.moves import MOVES, policy_indices, transform_square

PLANES = 112

INPUT_FORMATS: dict[str, int] = {
    "classical": 1,
    "castling": 2,
    "canonical": 3,
    "canonical-hectoplies": 4,
    "canonical-hectoplies-armageddon": 132,
    "canonical-v2": 5,
    "canonical-v2-armageddon": 133,
}
"""Our names of lc0's input formats, and their numbers in its files (`NetworkFormat.InputFormat` in net.proto)."""

HISTORY_FILLS: dict[str, int] = {"no": 0, "fen_only": 1, "always": 2}
"""lc0's values of its option `--history-fill`."""

_CASTLING_ROOKS, _CANONICAL, _HECTOPLIES = 2, 3, 4  # from this format on castling is drawn as rooks, and so on
_V2, _V2_ARMAGEDDON, _HECTOPLIES_ARMAGEDDON = 5, 133, 132
_NO_FILL, _FEN_ONLY = 0, 1
_REPEATED, _POSITION_PLANES = 12, 13
_RIGHTS, _BLACK, _RULE50, _ARMAGEDDON, _ONES = 104, 108, 109, 110, 111

_EIGHT, _SIXTEEN = np.uint64(8), np.uint64(16)
_HALF_FILES = np.uint64(0x0F0F_0F0F_0F0F_0F0F)  # files a–d
_UPPER_HALF = np.uint64(0xFFFF_FFFF_0000_0000)  # ranks 5–8
_ABOVE_DIAGONAL = np.uint64(0xE0C0_8000)  # of the squares e1–h4: above the diagonal h1–e4
_ON_DIAGONAL = np.uint64(0x1020_4080)

_S1, _S2, _S4, _S7 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(7)
_M1, _M2, _M4 = (np.uint64(mask) for mask in (0x5555_5555_5555_5555, 0x3333_3333_3333_3333, 0x0F0F_0F0F_0F0F_0F0F))
_D7, _D14, _D28 = np.uint64(9), np.uint64(18), np.uint64(36)
_T1, _T2, _T4 = (np.uint64(mask) for mask in (0x0055_0055_0055_0055, 0x0000_3333_0000_3333, 0x0000_0000_0F0F_0F0F))


@njit
def _mirror_files(word: np.uint64) -> np.uint64:
    """The bitboard with files a and h, b and g, ... exchanged."""
    word = ((word >> _S1) & _M1) | ((word & _M1) << _S1)
    word = ((word >> _S2) & _M2) | ((word & _M2) << _S2)
    return ((word >> _S4) & _M4) | ((word & _M4) << _S4)


@njit
def _swap_along(word: np.uint64, mask: np.uint64, shift: np.uint64) -> np.uint64:
    """Exchange the bits of `mask` with those `shift` above them."""
    changed = (word ^ (word >> shift)) & mask
    return word ^ changed ^ (changed << shift)


@njit
def _reflect(word: np.uint64) -> np.uint64:
    """The bitboard reflected in the diagonal h1–a8: a1 and h8 change places."""
    return _swap_along(_swap_along(_swap_along(word, _T1, _D7), _T2, _D14), _T4, _D28)


@njit
def turn(word: np.uint64, transform: int) -> np.uint64:
    """A bitboard under the canonical transform (bits: 1 mirror files, 2 mirror ranks, 4 reflect in h1–a8)."""
    if transform & 1:
        word = _mirror_files(word)
    if transform & 2:
        word = flip_ranks(word)
    if transform & 4:
        word = _reflect(word)
    return word


@njit
def _smaller_reflected(word: np.uint64, transform: int) -> int:
    """-1, 0 or 1: the bitboard, mirrored by `transform`, is smaller than, equal to or larger than its reflection."""
    straight = turn(word, transform)
    reflected = _reflect(straight)
    if straight < reflected:
        return -1
    return 1 if straight > reflected else 0


@njit
def choose_transform(s: Record) -> int:
    """The canonical transform of a BOARD or STATE: bits 1 mirror files, 2 mirror ranks, 4 reflect in h1–a8."""
    if s.castling:
        return 0
    transform = 0
    king = bit(king_square(s))
    if king & _HALF_FILES:
        transform |= 1
    if s.pieces[PAWN]:
        return transform
    if king & _UPPER_HALF:
        transform |= 2
    king = turn(king, transform)
    if king & _ABOVE_DIAGONAL:
        return transform | 4
    if king & _ON_DIAGONAL:
        order = _smaller_reflected(s.ours | s.theirs, transform)
        if order == 0:
            order = _smaller_reflected(s.ours, transform)
        for piece in (KING, QUEEN, ROOK, KNIGHT, BISHOP):
            if order == 0:
                order = _smaller_reflected(s.pieces[piece], transform)
        if order > 0:
            return transform | 4
    return transform


@njit
def _write_position(
    masks: NDArray[np.uint64], base: int, slot: NDArray[np.uint64], flipped: bool, undo: np.uint64
) -> None:
    """Write one remembered position at plane `base`; `undo` holds the squares where their pawns are changed."""
    ours = slot[SLOT_OURS]
    for piece in range(6):
        both = slot[piece]
        mine, other = both & ours, both & ~ours
        if piece == PAWN:
            other ^= undo
        if flipped:
            mine, other = flip_ranks(other), flip_ranks(mine)
        masks[base + piece] = mine
        masks[base + 6 + piece] = other
    if slot[SLOT_REPETITIONS]:
        masks[base + _REPEATED] = ALL


@njit
def _write_past(s: Record, canonical: bool, history_fill: int, masks: NDArray[np.uint64]) -> None:
    """Write the current position and up to seven before it."""
    for age in range(SLOTS):
        index = s.known - age
        slot = s.past[max(index, 0) & (SLOTS - 1)]
        flipped = slot[SLOT_SIDE] != s.side
        ep = slot[SLOT_EP]
        if canonical:
            rights = flip_ranks(slot[SLOT_CASTLING]) if flipped else slot[SLOT_CASTLING]
            if rights != s.castling or (age > 0 and ep != ZERO):
                return
        undo = ZERO
        if index < 0:
            if history_fill == _NO_FILL and (index < -1 or ep == ZERO):
                return
            if history_fill == _FEN_ONLY and s.from_start:
                return
            undo = (ep << _EIGHT) | (ep >> _EIGHT)
        _write_position(masks, _POSITION_PLANES * age, slot, flipped, undo)
        if canonical and slot[SLOT_RULE50] == ZERO:
            return


@njit
def _write_repeats(s: Record, masks: NDArray[np.uint64]) -> None:
    """Write the current position and, of those before it, the latest that were repetitions (format V2)."""
    _write_position(masks, 0, s.past[s.known & (SLOTS - 1)], False, ZERO)
    index = s.repeated - 1
    if s.strict_repetitions:
        index -= 1
    oldest = max(0, s.repeated - SLOTS)
    for age in range(1, SLOTS):
        if index < oldest:
            return
        slot = s.repeats[index & (SLOTS - 1)]
        flipped = slot[SLOT_SIDE] != s.side
        rights = flip_ranks(slot[SLOT_CASTLING]) if flipped else slot[SLOT_CASTLING]
        if rights != s.castling:
            return
        _write_position(masks, _POSITION_PLANES * age, slot, flipped, ZERO)
        index -= 1


@njit
def _write_rights(s: Record, input_format: int, masks: NDArray[np.uint64]) -> None:
    """Write the four castling planes."""
    our_left = s.castling & RANK_1 & (bit(king_square(s)) - ONE)
    our_right = s.castling & RANK_1 & ~our_left
    their_left = s.castling & RANK_8 & (bit(lowest(s.pieces[KING] & s.theirs)) - ONE)
    their_right = s.castling & RANK_8 & ~their_left
    if input_format >= _CASTLING_ROOKS:
        masks[_RIGHTS] = our_left | their_left
        masks[_RIGHTS + 1] = our_right | their_right
        return
    for plane, right in enumerate((our_left, our_right, their_left, their_right)):
        if right:
            masks[_RIGHTS + plane] = ALL


@njit
def position_masks(s: Record, input_format: int, history_fill: int, masks: NDArray[np.uint64]) -> int:
    """Write a STATE's planes as bitboards, uint64 [112], all but 109 (`rule50_value`); their canonical transform or 0.

    Format and fill are values of `INPUT_FORMATS` and `HISTORY_FILLS`.
    """
    masks[:] = ZERO
    canonical = input_format >= _CANONICAL
    if input_format in (_V2, _V2_ARMAGEDDON):
        _write_repeats(s, masks)
    else:
        _write_past(s, canonical, history_fill, masks)
    _write_rights(s, input_format, masks)
    masks[_ONES] = ALL
    if s.side and input_format in (_HECTOPLIES_ARMAGEDDON, _V2_ARMAGEDDON):
        masks[_ARMAGEDDON] = ALL
    if not canonical:
        if s.side:
            masks[_BLACK] = ALL
        return 0
    masks[_BLACK] = s.ep << _SIXTEEN
    transform = choose_transform(s)
    if transform:
        for plane in range(_RULE50):
            masks[plane] = turn(masks[plane], transform)
    return transform


@njit
def rule50_value(s: Record, input_format: int) -> np.float32:
    """The number that fills plane 109 (float32)."""
    plies = np.float32(s.rule50)
    return plies / np.float32(100) if input_format >= _HECTOPLIES else plies


@njit
def encode_lc0(
    states: Records, input_format: int, history_fill: int, planes: NDArray[np.float32], transforms: NDArray[np.int64]
) -> None:
    """Encode N STATE records.

    Args:
        states: [N] records of `keima.games.chess.board.STATE`.
        input_format, history_fill: values of `INPUT_FORMATS` and `HISTORY_FILLS`.
        planes: float32 [N, 112, 8, 8], C-contiguous, written.
        transforms: int64 [N], written: the canonical transform of each position's planes.
    """
    masks = np.empty(PLANES, np.uint64)
    for n in range(len(states)):
        transforms[n] = position_masks(states[n], input_format, history_fill, masks)
        row = planes[n].reshape(PLANES * 64)
        row[:] = np.float32(0)
        for plane in range(PLANES):
            mask = masks[plane]
            start = plane * 64
            if mask == ALL:
                row[start : start + 64] = np.float32(1)
            else:
                while mask:
                    row[start + int(lowest(mask))] = np.float32(1)
                    mask &= mask - ONE
        row[_RULE50 * 64 : _RULE50 * 64 + 64] = rule50_value(states[n], input_format)


@njit
def _write_indices(moves: Array, counts: Array, transforms: Array, indices: Array) -> None:
    for k in range(len(counts)):
        policy_indices(moves[k], counts[k], transforms[k], indices[k])


class Lc0Encoding(Encoding):
    """Lc0's 112 planes and 1858 moves. The context has `transform` int64 [N], the canonical transform of each.

    Args:
        input_format: one of `INPUT_FORMATS`, or lc0's number or name of it (1, "INPUT_CLASSICAL_112_PLANE").
        history_fill: "fen_only", "always" or "no"; see the head of this file.

    Raises:
        BadRequest: an unknown name.
    """

    name = "lc0"
    game = "chess"
    planes = PLANES
    board = (8, 8)

    def __init__(self, input_format: str | int = "classical", history_fill: str = "fen_only") -> None:
        wanted = f"INPUT_{str(input_format).removeprefix('INPUT_').upper()}"
        names = [n for n, number in INPUT_FORMATS.items() if input_format in (n, number) or wanted == INPUTS[number]]
        if not names:
            raise BadRequest(f"unknown Lc0 input format {input_format!r}; choose one of {', '.join(INPUT_FORMATS)}")
        if history_fill not in HISTORY_FILLS:
            raise BadRequest(f"unknown history fill {history_fill!r}; choose one of {', '.join(HISTORY_FILLS)}")
        self.input_format, self.history_fill = names[0], history_fill
        self.policy_frame = "planes" if INPUT_FORMATS[self.input_format] >= _CANONICAL else "board"

    def __repr__(self) -> str:
        return f"Lc0Encoding({self.input_format!r}, {self.history_fill!r})"

    def shape(self, position: Any, symmetry: int = 0) -> tuple[int, int]:
        """(8, 8)."""
        return self.board

    def room(self, n: int, shape: tuple[int, int]) -> Batch:
        """A batch to be written."""
        return Batch(super().room(n, shape).inputs, {"transform": np.empty(n, np.int64)})

    def write(self, records: Records, symmetries: NDArray[np.int64], batch: Batch) -> None:
        """Write the planes and their transforms."""
        number, fill = INPUT_FORMATS[self.input_format], HISTORY_FILLS[self.history_fill]
        encode_lc0(records, number, fill, batch.inputs["planes"], batch.context["transform"])

    def policy_size(self, shape: tuple[int, int]) -> int:
        """1858."""
        return MOVES

    def write_indices(self, moves: Array, counts: Array, symmetries: Array, batch: Batch, indices: Array) -> None:
        """Write the policy index of every move, in the planes' frame."""
        _write_indices(moves, counts, batch.context["transform"], indices)

    def transform(self, position: Position) -> int:
        """The canonical transform of the position's planes: 0–7, always 0 in formats without."""
        return int(choose_transform(position.record[0])) if INPUT_FORMATS[self.input_format] >= _CANONICAL else 0

    def legal_moves(self, position: Any, symmetry: int = 0) -> LegalMoves:
        """The legal moves: policy indices in the planes' frame, UCI names on the real board."""
        codes = position.legal_codes
        indices = np.empty(len(codes), np.int64)
        policy_indices(codes, len(codes), self.transform(position), indices)
        return LegalMoves(indices, position.legal())

    def restore(self, points: Array, position: Any, symmetry: int) -> Array:
        """Turn a per-square output [8, 8] of the planes back to the real board: row 0 is rank 1, column 0 file a."""
        transform = self.transform(position)
        flip = 56 if position.to_play == "b" else 0
        flat = np.asarray(points).reshape(64)
        return np.array([flat[transform_square(square ^ flip, transform)] for square in range(64)]).reshape(8, 8)


ENCODINGS = {"lc0": Lc0Encoding()}
