"""The chess kernel: one flat record a position, legal moves, making a move, repetitions, perft.

Two record types share the fields of a board, so the same kernels run on both. `BOARD` is a position alone (112 bytes;
what perft copies); `STATE` adds what a search and the encoders need of the game so far: keys of the positions that may
repeat, and the last eight positions. Copying either is one `memcpy`: `states[i] = states[j]`.

A position is kept **from the side to move**: its pieces start on ranks 1 and 2 and its pawns move up, files stay where
they are. Making a move turns the board around (one byte swap a bitboard), as in lc0 (`src/chess/board.h`), so moves,
policy indices and planes need no colour. `side` tells whose turn it is, and the square on the real board is
`square ^ (56 * side)`.

A move is a uint16: from (bits 0–5), to (bits 6–11), kind (bits 12–14). Castling is "king takes own rook", always.

Rules: FIDE Laws of Chess 2023. Two positions are the same (article 9.2.3) when pieces, side to move, castling rights
and the *legal* en passant capture agree; `hash` covers exactly these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keima.games.chess import attacks
from keima.games.chess.attacks import NOT_A, NOT_H, ONE, RANK_1, RANK_3, ZERO, bit, flip_ranks, lowest
from keima.jit import Record, Records, njit

PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(6)

QUIET = 0
"""Kind of a move that is nothing special (captures too); 1–4 promote to KNIGHT … QUEEN."""
CASTLING = 5
EN_PASSANT = 6

MAX_MOVES = 256
"""Room for the moves of one position; no position of legal material has more than 218."""
KEYS = 256
"""How many positions back a repetition is found: more than the 150 plies of the seventy-five-move rule."""
SLOTS = 8
"""Positions kept for encoders: the current one and seven before it."""

SLOT_OURS, SLOT_CASTLING, SLOT_EP, SLOT_RULE50, SLOT_REPETITIONS, SLOT_SIDE = range(6, 12)
"""Columns of a remembered position after its six piece bitboards; all uint64, from its own side to move."""
SLOT_WIDTH = 12

_BOARD_FIELDS = [
    ("pieces", np.uint64, (6,)),  # both sides' pieces, by type
    ("ours", np.uint64),  # pieces of the side to move
    ("theirs", np.uint64),
    ("castling", np.uint64),  # squares of the rooks that may still castle: rank 1 ours, rank 8 theirs
    ("ep", np.uint64),  # the square behind a pawn that just moved two, if one of ours attacks it (or the FEN says so)
    ("hash", np.uint64),  # Zobrist key of pieces, side, castling rights and legal en passant
    ("side", np.uint64),  # 0 white to move, 1 black
    ("ep_legal", np.int32),  # 1 where capturing on `ep` is legal
    ("rule50", np.int32),  # plies since the last capture or pawn move
    ("ply", np.int32),  # plies since the start of the game, as the FEN's move number tells
]

BOARD = np.dtype(_BOARD_FIELDS, align=True)
"""A position without its past."""

STATE = np.dtype(
    [
        ("keys", np.uint64, (KEYS,)),  # hashes since the last capture or pawn move, the n-th at index n % KEYS
        ("past", np.uint64, (SLOTS, SLOT_WIDTH)),  # the position `known` plies after the set-up, at index known % SLOTS
        ("repeats", np.uint64, (SLOTS, SLOT_WIDTH)),  # the n-th of the `repeated` positions, at index n % SLOTS
        *_BOARD_FIELDS,  # not first: Numba would take a STATE for a BOARD, and warn of it
        ("repetitions", np.int32),  # how often this position occurred before in the known game
        ("strict_repetitions", np.int32),  # the same, where `ep` must agree too: what lc0 counts
        ("known", np.int32),  # plies played since the position the game was set up with
        ("from_start", np.int32),  # 1 where that was the initial position of standard chess
        ("chain", np.int32),  # known positions since the last capture or pawn move, this one included
        ("chain_ep", np.int32),  # 1 where the first of those has an `ep` square
        ("repeated", np.int32),  # how many of those had occurred before (strictly)
    ],
    align=True,
)
"""A position with the part of the game that repetitions and encoders need. No padding: equal games, equal bytes."""


def _keys(count: int) -> NDArray[np.uint64]:
    """`count` fixed pseudo-random words (SplitMix64, Steele et al. 2014) from the seed "keima"."""
    words = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x6B65696D61)
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)


_ALL_KEYS = _keys(2 * 6 * 64 + 64 + 8 + 1)
PIECE_KEYS = _ALL_KEYS[:768].reshape(2, 6, 64)  # by colour (0 white), type, square of the real board
CASTLING_KEYS = _ALL_KEYS[768:832]  # by the rook's square of the real board
EP_KEYS = _ALL_KEYS[832:840]  # by file
SIDE_KEY = _ALL_KEYS[840]

_SIX, _SEVEN, _EIGHT, _NINE, _TWELVE, _SIXTEEN, _FIFTY_SIX, _SQUARE = (
    np.uint64(n) for n in (6, 7, 8, 9, 12, 16, 56, 63)
)
_C1, _D1, _F1, _G1 = np.uint64(2), np.uint64(3), np.uint64(5), np.uint64(6)
_KIND_CASTLING, _KIND_EN_PASSANT, _KIND_QUEEN = np.uint64(CASTLING), np.uint64(EN_PASSANT), np.uint64(QUEEN)


def new_states(count: int) -> Records:
    """`count` zeroed `STATE` records; fill them with `set_up` or by assignment."""
    return np.zeros(count, STATE)


@njit
def king_square(b: Record) -> np.uint64:
    """The square of the king of the side to move."""
    return lowest(b.pieces[KING] & b.ours)


@njit
def attackers(b: Record, square: np.uint64, occupied: np.uint64) -> np.uint64:
    """Enemy pieces that attack `square` when the pieces in the way are `occupied`."""
    here = bit(square)
    straight = b.pieces[ROOK] | b.pieces[QUEEN]
    slanted = b.pieces[BISHOP] | b.pieces[QUEEN]
    found = attacks.KNIGHT_ATTACKS[square] & b.pieces[KNIGHT]
    found |= attacks.KING_ATTACKS[square] & b.pieces[KING]
    found |= (((here & NOT_A) << _SEVEN) | ((here & NOT_H) << _NINE)) & b.pieces[PAWN]
    found |= attacks.rook_attacks(square, occupied) & straight
    found |= attacks.bishop_attacks(square, occupied) & slanted
    return np.uint64(found & b.theirs)


@njit
def in_check(b: Record) -> bool:
    """Whether the king of the side to move is attacked."""
    return bool(attackers(b, king_square(b), b.ours | b.theirs) != ZERO)


@njit
def attacked_squares(b: Record, occupied: np.uint64) -> np.uint64:
    """All squares the enemy attacks when the pieces in the way are `occupied`."""
    pawns = b.pieces[PAWN] & b.theirs
    found = ((pawns >> _SEVEN) & NOT_A) | ((pawns >> _NINE) & NOT_H)
    found |= attacks.KING_ATTACKS[lowest(b.pieces[KING] & b.theirs)]
    rest = b.pieces[KNIGHT] & b.theirs
    while rest:
        found |= attacks.KNIGHT_ATTACKS[lowest(rest)]
        rest &= rest - ONE
    rest = (b.pieces[ROOK] | b.pieces[QUEEN]) & b.theirs
    while rest:
        found |= attacks.rook_attacks(lowest(rest), occupied)
        rest &= rest - ONE
    rest = (b.pieces[BISHOP] | b.pieces[QUEEN]) & b.theirs
    while rest:
        found |= attacks.bishop_attacks(lowest(rest), occupied)
        rest &= rest - ONE
    return np.uint64(found)


@njit
def en_passant_is_legal(b: Record, source: np.uint64) -> bool:
    """Whether our pawn on `source` may capture on `ep`: its king must not stand in check once both pawns are gone."""
    target = lowest(b.ep)
    captured = bit(target - _EIGHT)
    occupied = ((b.ours | b.theirs) ^ bit(source) ^ captured) | b.ep
    return bool(attackers(b, king_square(b), occupied) & ~captured == ZERO)


@njit
def en_passant_sources(b: Record) -> np.uint64:
    """Our pawns that attack the `ep` square, legally or not; empty without one."""
    around = ((b.ep & NOT_A) >> _NINE) | ((b.ep & NOT_H) >> _SEVEN)
    return np.uint64(around & b.pieces[PAWN] & b.ours)


@njit
def castling_is_legal(b: Record, king: np.uint64, rook: np.uint64, danger: np.uint64) -> bool:
    """Whether the king, not in check, may castle with `rook`; `danger` is attacked with our king off the board."""
    king_to, rook_to = (_C1, _D1) if rook < king else (_G1, _F1)
    king_path = attacks.BETWEEN[king, king_to] | bit(king_to)
    rook_path = attacks.BETWEEN[rook, rook_to] | bit(rook_to)
    others = (b.ours | b.theirs) ^ bit(king) ^ bit(rook)
    if (king_path | rook_path) & others or king_path & danger:
        return False
    after = others | bit(rook_to)  # the rook may have shielded its king on the first rank
    return bool(attacks.rook_attacks(king_to, after) & (b.pieces[ROOK] | b.pieces[QUEEN]) & b.theirs & RANK_1 == ZERO)


@njit
def _add(moves: NDArray[np.uint16], count: int, source: np.uint64, targets: np.uint64) -> int:
    """Append the moves from `source` to every square of `targets`; returns the new count."""
    while targets:
        moves[count] = source | lowest(targets) << _SIX
        count += 1
        targets &= targets - ONE
    return count


@njit
def _add_pawns(moves: NDArray[np.uint16], count: int, targets: np.uint64, step: np.uint64) -> int:
    """Append the moves of pawns that came `step` squares to reach `targets`; on rank 8 the four promotions."""
    while targets:
        target = lowest(targets)
        move = (target - step) | target << _SIX
        if target >= _FIFTY_SIX:
            kind = _KIND_QUEEN
            while kind:
                moves[count] = move | kind << _TWELVE
                count += 1
                kind -= ONE
        else:
            moves[count] = move
            count += 1
        targets &= targets - ONE
    return count


@njit
def _pawn_moves(
    b: Record, moves: NDArray[np.uint16], count: int, king: np.uint64, pinned: np.uint64, mask: np.uint64
) -> int:
    """Append the legal pawn moves but en passant; they must end in `mask`, pinned pawns stay on their pin's line."""
    pawns = b.pieces[PAWN] & b.ours
    free, bound = pawns & ~pinned, pawns & pinned
    empty = ~(b.ours | b.theirs)
    single = ((free | (bound & attacks.LINES[attacks.VERTICAL, king])) << _EIGHT) & empty
    double = ((single & RANK_3) << _EIGHT) & empty & mask
    left = (((free | (bound & attacks.LINES[attacks.ANTIDIAGONAL, king])) & NOT_A) << _SEVEN) & b.theirs & mask
    right = (((free | (bound & attacks.LINES[attacks.DIAGONAL, king])) & NOT_H) << _NINE) & b.theirs & mask
    count = _add_pawns(moves, count, single & mask, _EIGHT)
    count = _add_pawns(moves, count, double, _SIXTEEN)
    count = _add_pawns(moves, count, left, _SEVEN)
    return _add_pawns(moves, count, right, _NINE)


@njit
def _piece_moves(
    b: Record, moves: NDArray[np.uint16], count: int, king: np.uint64, pinned: np.uint64, mask: np.uint64
) -> int:
    """Append the legal moves of knights, bishops, rooks and queens; they must end in `mask`."""
    occupied = b.ours | b.theirs
    rest = b.pieces[KNIGHT] & b.ours & ~pinned
    while rest:
        source = lowest(rest)
        count = _add(moves, count, source, attacks.KNIGHT_ATTACKS[source] & mask)
        rest &= rest - ONE
    straight = (b.pieces[ROOK] | b.pieces[QUEEN]) & b.ours
    slanted = (b.pieces[BISHOP] | b.pieces[QUEEN]) & b.ours
    rest = straight | slanted
    while rest:
        source = lowest(rest)
        here = rest & (~rest + ONE)
        targets = ZERO
        if here & straight:
            targets |= attacks.rook_attacks(source, occupied)
        if here & slanted:
            targets |= attacks.bishop_attacks(source, occupied)
        if here & pinned:
            targets &= attacks.THROUGH[king, source]
        count = _add(moves, count, source, targets & mask)
        rest ^= here
    return count


@njit
def _pins_and_checks(b: Record, king: np.uint64) -> tuple[np.uint64, np.uint64]:
    """(our pinned pieces, enemy pieces giving check)."""
    straight = attacks.rook_attacks(king, b.theirs) & (b.pieces[ROOK] | b.pieces[QUEEN])
    slanted = attacks.bishop_attacks(king, b.theirs) & (b.pieces[BISHOP] | b.pieces[QUEEN])
    snipers = (straight | slanted) & b.theirs
    here = bit(king)
    checkers = attacks.KNIGHT_ATTACKS[king] & b.pieces[KNIGHT] & b.theirs
    checkers |= (((here & NOT_A) << _SEVEN) | ((here & NOT_H) << _NINE)) & b.pieces[PAWN] & b.theirs
    pinned = ZERO
    while snipers:
        sniper = lowest(snipers)
        shield = attacks.BETWEEN[king, sniper] & b.ours
        if shield == ZERO:
            checkers |= bit(sniper)
        elif shield & (shield - ONE) == ZERO:
            pinned |= shield
        snipers &= snipers - ONE
    return pinned, checkers


@njit
def legal_moves(b: Record, moves: NDArray[np.uint16]) -> int:
    """Write the legal moves of a BOARD or STATE into `moves` (uint16 [MAX_MOVES]); returns how many."""
    king = king_square(b)
    pinned, checkers = _pins_and_checks(b, king)
    danger = attacked_squares(b, (b.ours | b.theirs) ^ bit(king))
    count = _add(moves, 0, king, attacks.KING_ATTACKS[king] & ~b.ours & ~danger)
    mask = ~b.ours
    if checkers:
        if checkers & (checkers - ONE):
            return count
        mask = attacks.BETWEEN[king, lowest(checkers)] | checkers
    else:
        rest = b.castling & RANK_1
        while rest:
            rook = lowest(rest)
            if castling_is_legal(b, king, rook, danger):
                moves[count] = king | rook << _SIX | _KIND_CASTLING << _TWELVE
                count += 1
            rest &= rest - ONE
    count = _pawn_moves(b, moves, count, king, pinned, mask)
    if b.ep_legal:
        rest = en_passant_sources(b)
        while rest:
            source = lowest(rest)
            if en_passant_is_legal(b, source):
                moves[count] = source | lowest(b.ep) << _SIX | _KIND_EN_PASSANT << _TWELVE
                count += 1
            rest &= rest - ONE
    return _piece_moves(b, moves, count, king, pinned, mask)


@njit
def piece_at(b: Record, square: np.uint64) -> int:
    """The type of the piece on `square`, or -1 for an empty square."""
    here = bit(square)
    for piece in range(6):
        if b.pieces[piece] & here:
            return piece
    return -1


@njit
def _turn_around(b: Record) -> None:
    """Hand the move to the other side: exchange the sides and mirror the ranks."""
    for piece in range(6):
        b.pieces[piece] = flip_ranks(b.pieces[piece])
    ours = b.ours
    b.ours = flip_ranks(b.theirs)
    b.theirs = flip_ranks(ours)
    b.castling = flip_ranks(b.castling)
    b.ep = flip_ranks(b.ep)
    b.side ^= ONE


@njit
def _set_en_passant(b: Record) -> None:
    """Work out whether capturing on `ep` is legal, and put it into the hash if so."""
    b.ep_legal = 0
    rest = en_passant_sources(b)
    while rest:
        if en_passant_is_legal(b, lowest(rest)):
            b.ep_legal = 1
        rest &= rest - ONE
    if b.ep_legal:
        b.hash ^= EP_KEYS[lowest(b.ep) & _SEVEN]


@njit
def _castle(b: Record, king: np.uint64, rook: np.uint64) -> None:
    """Put king and rook where castling takes them (bitboards and hash)."""
    king_to, rook_to = (_C1, _D1) if rook < king else (_G1, _F1)
    flip = b.side * _FIFTY_SIX
    b.pieces[KING] ^= bit(king) ^ bit(king_to)
    b.pieces[ROOK] ^= bit(rook) ^ bit(rook_to)
    b.ours ^= bit(king) ^ bit(king_to) ^ bit(rook) ^ bit(rook_to)
    b.hash ^= PIECE_KEYS[b.side, KING, king ^ flip] ^ PIECE_KEYS[b.side, KING, king_to ^ flip]
    b.hash ^= PIECE_KEYS[b.side, ROOK, rook ^ flip] ^ PIECE_KEYS[b.side, ROOK, rook_to ^ flip]


@njit
def _move_piece(b: Record, source: np.uint64, target: np.uint64, kind: np.uint64) -> int:
    """Move one piece, capturing and promoting; returns the type of piece that moved, or PAWN for any capture."""
    flip = b.side * _FIFTY_SIX
    other = b.side ^ ONE
    moved = piece_at(b, source)
    result = moved
    victim = target - _EIGHT if kind == _KIND_EN_PASSANT else target
    if b.theirs & bit(victim):
        captured = piece_at(b, victim)
        b.pieces[captured] ^= bit(victim)
        b.theirs ^= bit(victim)
        b.hash ^= PIECE_KEYS[other, captured, victim ^ flip]
        result = PAWN
    placed = moved
    if kind != ZERO and kind <= _KIND_QUEEN:
        placed = np.int64(kind)  # type: ignore[assignment]  # `int` to readers
    b.pieces[moved] ^= bit(source)
    b.pieces[placed] ^= bit(target)
    b.ours ^= bit(source) | bit(target)
    b.hash ^= PIECE_KEYS[b.side, moved, source ^ flip] ^ PIECE_KEYS[b.side, placed, target ^ flip]
    return result


@njit
def make_board(b: Record, move: int) -> None:
    """Make a legal move on a BOARD (or the board part of a STATE) and hand the turn over."""
    source = np.uint64(move) & _SQUARE
    target = (np.uint64(move) >> _SIX) & _SQUARE
    kind = np.uint64(move) >> _TWELVE
    flip = b.side * _FIFTY_SIX
    if b.ep_legal:
        b.hash ^= EP_KEYS[lowest(b.ep) & _SEVEN]
    b.ep = ZERO
    b.ep_legal = 0
    b.hash ^= SIDE_KEY
    b.rule50 += 1
    b.ply += 1
    lost = b.castling & (bit(source) | bit(target))
    if b.pieces[KING] & bit(source):
        lost |= b.castling & RANK_1
    b.castling ^= lost
    while lost:
        b.hash ^= CASTLING_KEYS[lowest(lost) ^ flip]
        lost &= lost - ONE
    if kind == _KIND_CASTLING:
        _castle(b, source, target)
    elif _move_piece(b, source, target, kind) == PAWN:
        b.rule50 = 0
        if target == source + _SIXTEEN and b.pieces[PAWN] & bit(target):
            beside = ((bit(target) & NOT_H) << ONE) | ((bit(target) & NOT_A) >> ONE)
            if beside & b.theirs & b.pieces[PAWN]:
                b.ep = bit(source + _EIGHT)
    _turn_around(b)
    if b.ep:
        _set_en_passant(b)


@njit
def _remember(slots: NDArray[np.uint64], index: int, s: Record) -> None:
    """Store the position of `s` in one of the slots."""
    for piece in range(6):
        slots[index, piece] = s.pieces[piece]
    slots[index, SLOT_OURS] = s.ours
    slots[index, SLOT_CASTLING] = s.castling
    slots[index, SLOT_EP] = s.ep
    slots[index, SLOT_RULE50] = np.uint64(s.rule50)
    slots[index, SLOT_REPETITIONS] = np.uint64(s.strict_repetitions)
    slots[index, SLOT_SIDE] = s.side


@njit
def _count_repetitions(s: Record) -> None:
    """Set `repetitions` and `strict_repetitions` from the keys since the last capture or pawn move."""
    last = s.chain - 1
    found = 0
    first_matches = 0
    for index in range(last - 4, max(-1, last - KEYS), -2):
        if s.keys[index & (KEYS - 1)] == s.hash:
            found += 1
            if index == 0:
                first_matches = 1
    s.repetitions = found
    s.strict_repetitions = found - (first_matches & s.chain_ep)


@njit
def _enter_history(s: Record) -> None:
    """Record the position just reached: its key, its repetitions, its slot."""
    if s.rule50 == 0:
        s.chain = 0
        s.repeated = 0
    s.keys[s.chain & (KEYS - 1)] = s.hash
    s.chain += 1
    if s.chain == 1:
        s.chain_ep = 1 if s.ep else 0
    _count_repetitions(s)
    _remember(s.past, s.known & (SLOTS - 1), s)
    if s.strict_repetitions:
        _remember(s.repeats, s.repeated & (SLOTS - 1), s)
        s.repeated += 1


@njit
def make(s: Record, move: int) -> None:
    """Make a legal move on a STATE: board, counters, repetitions and history."""
    make_board(s, move)
    s.known += 1
    _enter_history(s)


@njit
def set_up(s: Record, from_start: int) -> None:
    """Finish a STATE whose pieces, castling, ep, side, rule50 and ply are filled in: hash, legal ep, empty history."""
    flip = s.side * _FIFTY_SIX
    s.hash = SIDE_KEY if s.side else ZERO
    for piece in range(6):
        rest = s.pieces[piece]
        while rest:
            square = lowest(rest)
            colour = s.side if s.ours & bit(square) else s.side ^ ONE
            s.hash ^= PIECE_KEYS[colour, piece, square ^ flip]
            rest &= rest - ONE
    rest = s.castling
    while rest:
        s.hash ^= CASTLING_KEYS[lowest(rest) ^ flip]
        rest &= rest - ONE
    s.ep_legal = 0
    if s.ep:
        _set_en_passant(s)
    s.known = 0
    s.from_start = from_start
    s.chain = 0
    s.repeated = 0
    _enter_history(s)


@njit
def opponent_in_check(b: Record) -> bool:
    """Whether the side *not* to move stands in check, which no game can reach."""
    _turn_around(b)
    found = in_check(b)
    _turn_around(b)
    return found


@njit
def find_move(b: Record, wanted: int, moves: NDArray[np.uint16]) -> int:
    """The legal move that a UCI move names, or -1.

    `wanted` is from | to << 6 | promotion << 12 on the real board (promotion: 0 or KNIGHT … QUEEN). Castling is found
    under both its names, king takes rook and king to its new square; where that square is also an ordinary king move
    (Chess960), the ordinary move is meant. `moves` is working space, uint16 [MAX_MOVES].
    """
    if b.side:
        wanted ^= 56 | 56 << 6
    castling = -1
    for index in range(legal_moves(b, moves)):
        move: int = np.int64(moves[index])  # type: ignore[assignment]  # `int` to readers
        kind = move >> 12
        if move & 0xFFF == wanted & 0xFFF and (kind if kind <= QUEEN else 0) == wanted >> 12:
            return move
        if kind == CASTLING and move & 63 == wanted & 63:
            king_to = 2 if (move >> 6) & 63 < move & 63 else 6
            if wanted >> 6 == king_to:
                castling = move
    return castling


@njit
def play_moves(s: Record, wanted: NDArray[np.int32], moves: NDArray[np.uint16]) -> int:
    """Make the UCI moves `wanted` (see `find_move`) on a STATE, each replaced by the kernel's; how many were legal."""
    for index in range(len(wanted)):
        move = find_move(s, wanted[index], moves)
        if move < 0:
            return index
        wanted[index] = move
        make(s, move)
    return len(wanted)


@njit
def copy_board(b: Record, s: Record) -> None:
    """Copy the board part of a STATE into a BOARD."""
    for piece in range(6):
        b.pieces[piece] = s.pieces[piece]
    b.ours = s.ours
    b.theirs = s.theirs
    b.castling = s.castling
    b.ep = s.ep
    b.hash = s.hash
    b.side = s.side
    b.ep_legal = s.ep_legal
    b.rule50 = s.rule50
    b.ply = s.ply
