"""The rules of chess, held to python-chess: legal moves, check, the board, and FEN there and back."""

from __future__ import annotations

import random

import chess

from keima.games.chess import Position

STARTS = (
    chess.STARTING_FEN,
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
    "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
    "8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1",
    "4k3/8/8/8/8/8/8/4K2R w K - 96 80",
)


def one(seed: int) -> None:
    """A game of random legal moves."""
    rng = random.Random(f"rules of chess {seed}")
    board = chess.Board(rng.choice(STARTS))
    fen, moves = board.fen(en_passant="fen"), []
    position = Position.from_fen(fen)
    for _ in range(rng.randrange(1, 60)):
        expected = {move.uci() for move in board.legal_moves}
        assert set(position.legal()) == expected, (seed, board.fen(), set(position.legal()) ^ expected)
        assert position.in_check == board.is_check(), (seed, board.fen())
        assert Position.from_fen(position.fen()).fen() == position.fen()
        assert position.fen().split()[0] == board.fen().split()[0]
        if not expected:
            assert position.is_over
            return
        # quiet games go on long enough to repeat; captures and promotions are what rules are about
        loud = [m for m in board.legal_moves if board.is_capture(m) or m.promotion or board.is_castling(m)]
        move = rng.choice(sorted(loud if loud and rng.random() < 0.4 else board.legal_moves, key=str))
        if position.is_over:
            return
        board.push(move)
        moves.append(move.uci())
        position = position.play(move.uci())
    assert Position.from_fen(fen, moves).fen() == position.fen()
