"""The rules of chess, held to python-chess: random games (legal moves, check, every ending, FEN) and mutated FENs."""

from __future__ import annotations

import random
from collections import Counter

import chess

from keima.errors import BadPosition, IllegalMove
from keima.games.chess import Position

STARTS = (
    chess.STARTING_FEN,
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
    "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
    "8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1",
    "4k3/8/8/8/8/8/8/4K2R w K - 96 80",
    "8/8/4k3/8/8/2B1K3/8/6b1 w - - 140 100",
    "7k/8/8/8/8/8/8/KN5n b - - 0 1",
)
_TOKENS = (
    *"KQkqABHabh-wb/12345678PNBRQKpnbrqk ",
    "e3",
    "d6",
    "w",
    "b",
    "KQkq",
    "8",
    "99",
    "100",
    "150",
    "1e3",
    "é",
    "٣",
)
_WAYS = {
    "checkmate": chess.Termination.CHECKMATE,
    "stalemate": chess.Termination.STALEMATE,
    "insufficient material": chess.Termination.INSUFFICIENT_MATERIAL,
    "seventy-five moves": chess.Termination.SEVENTYFIVE_MOVES,
    "fivefold repetition": chess.Termination.FIVEFOLD_REPETITION,
}
_UNLIKELY = chess.STATUS_TOO_MANY_CHECKERS | chess.STATUS_IMPOSSIBLE_CHECK
"""What python-chess calls invalid and keima takes: no game leads there, but the rules are clear."""


def one(seed: int) -> None:
    """A game of random legal moves, or a mutated FEN."""
    rng = random.Random(f"rules of chess {seed}")
    if seed % 2:
        _read_fen(_mutated(rng))
    else:
        _play(rng)


def _play(rng: random.Random) -> None:
    """A game to its end, or some way to it."""
    chess960 = rng.random() < 0.2
    board = chess.Board.from_chess960_pos(rng.randrange(960)) if chess960 else chess.Board(rng.choice(STARTS))
    fen = board.fen(en_passant="fen")
    position = Position.from_fen(fen, chess960=chess960)
    shuffling = rng.random() < 0.3  # pieces to and fro: positions repeat
    seen: Counter[object] = Counter()
    for _ in range(rng.randrange(1, 60)):
        seen[board._transposition_key()] += 1
        what = (fen, position.moves)
        moves = _same_position(position, board)
        assert position.repetitions == seen[board._transposition_key()] - 1, what
        outcome = board.outcome()
        assert (position.outcome and _WAYS[position.outcome.reason]) == (outcome and outcome.termination), what
        assert position.result == (outcome.result() if outcome else None), what
        repeated = seen[board._transposition_key()] >= 3
        claimable = bool(moves) and (board.halfmove_clock >= 100 or repeated)
        assert (position.claimable is not None) == claimable, what
        if outcome:
            break
        move = _chosen(rng, board, sorted(moves), shuffling)
        board.push_uci(move)
        position = position.play(move)
    assert Position.from_fen(fen, position.moves, chess960).fen() == position.fen()
    _refuses(rng, position, board)


def _same_position(position: Position, board: chess.Board) -> list[str]:
    """The legal moves, after everything was compared."""
    moves = [move.uci() for move in board.legal_moves]
    what = (position.to_json(), board.fen())
    assert len(position.legal()) == len(moves), what
    assert set(position.legal()) == set(moves), (what, set(position.legal()) ^ set(moves))
    assert position.in_check == board.is_check(), what
    fen = position.fen()
    written = board.fen(en_passant="legal").split()
    assert fen.split() == written, (what, fen)
    again = Position.from_fen(fen, chess960=position.chess960)
    assert (again.fen(), again.key) == (fen, position.key), what
    return moves


def _chosen(rng: random.Random, board: chess.Board, moves: list[str], shuffling: bool) -> str:
    """Quiet games go on long enough to repeat; captures and promotions are what rules are about."""
    if shuffling and len(board.move_stack) >= 2 and rng.random() < 0.8:
        last = board.move_stack[-2]
        back = chess.Move(last.to_square, last.from_square).uci()
        if back in moves:
            return back
    if shuffling or rng.random() < 0.6:
        return rng.choice(moves)
    loud = [move for move in moves if len(move) == 5 or _is_loud(board, chess.Move.from_uci(move))]
    return rng.choice(loud or moves)


def _is_loud(board: chess.Board, move: chess.Move) -> bool:
    return board.is_capture(move) or board.is_castling(move) or board.gives_check(move)


def _refuses(rng: random.Random, position: Position, board: chess.Board) -> None:
    """A random move is legal here and there, or in neither."""
    move = chess.Move(rng.randrange(64), rng.randrange(64), rng.choice((None, None, 2, 5)))
    if move.from_square == move.to_square:
        return
    if board.piece_type_at(move.from_square) == chess.KING:  # castling has two names
        return
    legal = board.is_legal(move)
    assert position.is_legal(move.uci()) == legal, (position.to_json(), move)
    try:
        position.play(move.uci())
    except IllegalMove:
        assert not legal
    else:
        assert legal


def _mutated(rng: random.Random) -> str:
    """A FEN with some changes: tokens anywhere, fields exchanged, pieces moved about."""
    board = chess.Board(rng.choice(STARTS))
    for _ in range(rng.randrange(12)):
        moves = list(board.legal_moves)
        if moves:
            board.push(rng.choice(moves))
    if rng.random() < 0.5:
        for _ in range(rng.randrange(1, 6)):
            board.set_piece_at(
                rng.randrange(64), rng.choice((None, chess.Piece(rng.randrange(1, 7), rng.random() < 0.5)))
            )
    fields = board.fen(en_passant="fen").split()
    for _ in range(rng.randrange(4)):
        field = rng.randrange(len(fields))
        at = rng.randrange(len(fields[field]) + 1)
        match rng.randrange(4):
            case 0:
                fields[field] = rng.choice(_TOKENS)
            case 1:
                fields[field] = fields[field][:at] + rng.choice(_TOKENS) + fields[field][at:]
            case 2:
                fields[field] = fields[field][:at] + fields[field][at + 1 :] or "-"
            case _:
                fields[field] = chess.Board(rng.choice(STARTS)).fen().split()[min(field, 5)]
    return " ".join(fields)


def _read_fen(fen: str) -> None:
    """What keima takes, python-chess takes, and they agree about it; what it refuses is refused with a reason."""
    for chess960 in (False, True):
        try:
            board: chess.Board | None = chess.Board(fen, chess960=chess960)
        except ValueError:
            board = None
        try:
            position = Position.from_fen(fen, chess960=chess960)
        except BadPosition:
            if board is not None and _must_be_taken(board, fen):
                raise
            continue
        assert board is not None, fen
        assert not board.status() & ~_UNLIKELY, (fen, board.status())
        _same_position(position, board)


def _must_be_taken(board: chess.Board, fen: str) -> bool:
    """Whether nothing speaks against it: valid, written as python-chess writes it, as many promotions as pawns gone."""
    if board.status() or board.fen(en_passant="fen") != fen:
        return False
    for colour in chess.COLORS:
        usual = {chess.QUEEN: 1, chess.ROOK: 2, chess.BISHOP: 2, chess.KNIGHT: 2}
        promoted = sum(max(0, len(board.pieces(kind, colour)) - count) for kind, count in usual.items())
        if promoted > 8 - len(board.pieces(chess.PAWN, colour)):
            return False
    return True
