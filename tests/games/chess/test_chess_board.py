"""The chess kernel against published perft counts, python-chess, and attacks walked square by square."""

from __future__ import annotations

import random
from itertools import pairwise

import chess
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.games.chess import Position, attacks, board
from keima.games.chess import kernels as ending_of
from keima.games.chess.kernels import perft
from keima.jit import njit

START = chess.STARTING_FEN
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
POSITION_3 = "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1"
POSITION_4 = "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1"
POSITION_4_MIRRORED = "r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 0 1"
POSITION_5 = "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8"
POSITION_6 = "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10"

# https://www.chessprogramming.org/Perft_Results
COUNTS = {
    START: (20, 400, 8902, 197281, 4865609, 119060324),
    KIWIPETE: (48, 2039, 97862, 4085603, 193690690),
    POSITION_3: (14, 191, 2812, 43238, 674624),
    POSITION_4: (6, 264, 9467, 422333, 15833292),
    POSITION_4_MIRRORED: (6, 264, 9467, 422333, 15833292),
    POSITION_5: (44, 1486, 62379, 2103487, 89941194),
    POSITION_6: (46, 2079, 89890, 3894594, 164075551),
}
# https://www.chessprogramming.org/Chess960_Perft_Results
COUNTS_960 = {
    "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9": (21, 528, 12189, 326672, 8146062),
    "2nnrbkr/p1qppppp/8/1ppb4/6PP/3PP3/PPP2P2/BQNNRBKR w HEhe - 1 9": (21, 807, 18002, 667366, 16253601),
    "b1q1rrkb/pppppppp/3nn3/8/P7/1PPP4/4PPPP/BQNNRKRB w GE - 1 9": (20, 479, 10471, 273318, 6417013),
}
QUICK = 10_000_000


def counts(table: dict[str, tuple[int, ...]], slow: bool) -> list[tuple[str, int, int]]:
    rows = [(fen, depth, count) for fen, found in table.items() for depth, count in enumerate(found, 1)]
    return [row for row in rows if (row[2] > QUICK) == slow]


@pytest.mark.parametrize(("fen", "depth", "count"), counts(COUNTS, slow=False))
def test_perft_equals_the_published_counts(fen: str, depth: int, count: int) -> None:
    assert perft(Position.from_fen(fen).record, depth) == count


@pytest.mark.slow
@pytest.mark.parametrize(("fen", "depth", "count"), counts(COUNTS, slow=True))
def test_perft_equals_the_published_counts_deep_down(fen: str, depth: int, count: int) -> None:
    assert perft(Position.from_fen(fen).record, depth) == count


@pytest.mark.parametrize(("fen", "depth", "count"), counts(COUNTS_960, slow=False))
def test_perft_equals_the_published_chess960_counts(fen: str, depth: int, count: int) -> None:
    assert perft(Position.from_fen(fen, chess960=True).record, depth) == count


def test_perft_of_nothing_is_one_and_leaves_the_position_alone() -> None:
    position = Position.from_fen(KIWIPETE)
    before = position.record.tobytes()
    assert perft(position.record, 0) == 1
    perft(position.record, 3)
    assert position.record.tobytes() == before


@njit
def _sliders(squares: object, occupied: object, rooks: object, bishops: object) -> None:
    for n in range(len(squares)):  # type: ignore[arg-type]
        rooks[n] = attacks.rook_attacks(squares[n], occupied[n])  # type: ignore[index]
        bishops[n] = attacks.bishop_attacks(squares[n], occupied[n])  # type: ignore[index]


def test_sliding_attacks_equal_python_chess_on_random_occupancies() -> None:
    generator = np.random.default_rng(5)
    squares = generator.integers(0, 64, 4000).astype(np.uint64)
    density = generator.integers(0, 2**64, (3, 4000), np.uint64)
    occupied = np.concatenate([density[0, :1000], density[0, 1000:2000] & density[1, 1000:2000], density[2, 2000:]])
    occupied[3000:] = occupied[3000:] & density[0, 3000:] & density[1, 3000:]
    rooks, bishops = np.zeros(4000, np.uint64), np.zeros(4000, np.uint64)
    _sliders(squares, occupied, rooks, bishops)
    for square, word, rook, bishop in zip(
        squares.tolist(), occupied.tolist(), rooks.tolist(), bishops.tolist(), strict=True
    ):
        straight = (
            chess.BB_RANK_ATTACKS[square][chess.BB_RANK_MASKS[square] & word]
            | chess.BB_FILE_ATTACKS[square][chess.BB_FILE_MASKS[square] & word]
        )
        assert rook == straight
        assert bishop == chess.BB_DIAG_ATTACKS[square][chess.BB_DIAG_MASKS[square] & word]


def repetitions(oracle: chess.Board) -> int:
    count = 1
    while oracle.is_repetition(count + 1):
        count += 1
    return count - 1


def play_beside_python_chess(oracle: chess.Board, seed: int, plies: int) -> None:
    """Play random moves on both, comparing everything the rules define after each."""
    chance = random.Random(seed)
    position = Position.from_fen(oracle.fen(), chess960=oracle.chess960)
    for _ in range(plies):
        moves = [oracle.uci(move, chess960=oracle.chess960) for move in oracle.legal_moves]
        assert sorted(position.legal()) == sorted(moves)
        assert position.fen() == oracle.fen()
        assert position.in_check == oracle.is_check()
        assert position.repetitions == repetitions(oracle)
        assert ending_of.insufficient_material(position.record[0]) == oracle.is_insufficient_material()
        assert position.is_over == (oracle.outcome() is not None)
        if not moves:
            return
        back = oracle.move_stack[-2] if len(oracle.move_stack) > 1 else None
        undo = oracle.uci(chess.Move(back.to_square, back.from_square)) if back and not back.promotion else ""
        move = undo if undo in moves and chance.random() < 0.4 else chance.choice(moves)
        oracle.push_uci(move)
        position = position.play(move)
        again = Position.from_fen(position.fen(), chess960=oracle.chess960)
        assert again.key == position.key, "the hash kept move by move is the one computed afresh"


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32))
def test_random_games_agree_with_python_chess(seed: int) -> None:
    play_beside_python_chess(chess.Board(), seed, 120)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 959), st.integers(0, 2**32))
def test_random_chess960_games_agree_with_python_chess(number: int, seed: int) -> None:
    play_beside_python_chess(chess.Board.from_chess960_pos(number), seed, 80)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([KIWIPETE, POSITION_3, POSITION_4, POSITION_5, "8/P6k/8/8/8/8/p6K/8 w - - 0 1"]), st.integers(0))
def test_random_games_from_odd_positions_agree_with_python_chess(fen: str, seed: int) -> None:
    play_beside_python_chess(chess.Board(fen), seed, 60)


@pytest.mark.parametrize(
    ("fen", "allowed"),
    [
        ("8/8/8/K2pP2r/8/8/8/7k w - d6 0 1", False),  # both pawns leave the fifth rank and open it
        ("8/8/8/3pP3/8/8/8/K6k w - d6 0 1", True),
        ("8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1", False),
        ("4k3/8/8/3pP3/2K5/8/8/8 w - d6 0 1", True),  # takes the pawn that gives check
        ("4r2k/8/8/3pP3/8/8/4K3/8 w - d6 0 1", False),  # pinned on the file
    ],
)
def test_en_passant_that_opens_a_line_to_the_king(fen: str, allowed: bool) -> None:
    captures = [move for move in Position.from_fen(fen).legal() if move in ("e5d6", "e4d3")]
    assert bool(captures) is allowed


@pytest.mark.parametrize(("fen", "allowed"), [
    ("4k3/8/8/8/8/8/8/qRK5 w B - 0 1", False),  # the rook on b1 shields its king from a1, and would leave for d1
    ("4k3/8/8/8/8/8/q7/1RK5 w B - 0 1", True),
    ("4k3/8/8/8/8/8/8/1RK4q w B - 0 1", False),  # in check
    ("4k3/8/8/8/8/8/3q4/R4K2 w A - 0 1", False),  # the king passes e1 and d1
])  # fmt: skip
def test_castling_past_attacks_in_chess960(fen: str, allowed: bool) -> None:
    castling = {"c1b1", "f1a1"} & set(Position.from_fen(fen, chess960=True).legal())
    assert bool(castling) is allowed


@njit
def _make_on_a_copy(states: object, move: int) -> None:
    states[1] = states[0]  # type: ignore[index]
    board.make(states[1], move)  # type: ignore[index]


def test_a_state_copied_by_assignment_is_independent() -> None:
    states = np.concatenate([Position.start().record, board.new_states(1)])
    before = states[0].tobytes()
    _make_on_a_copy(states, 12 | 28 << 6)
    assert states[0].tobytes() == before
    played = Position.start().play("e2e4").record
    assert states[1].tobytes() == played[0].tobytes()


def test_a_state_has_no_padding() -> None:
    assert board.STATE.fields is not None
    assert sum(field[0].itemsize for field in board.STATE.fields.values()) == board.STATE.itemsize


def test_the_search_stops_where_lc0_stops() -> None:
    def ending(position: Position) -> int:
        return int(ending_of.ending(position.record[0], len(position.legal_codes)))

    dance = ["g1f3", "g8f6", "f3g1", "f6g8"]
    assert ending(Position.start()) == ending_of.ONGOING
    assert ending(Position.from_fen(None, dance)) == ending_of.ONGOING
    assert ending(Position.from_fen(None, dance * 2)) == ending_of.THREEFOLD
    assert ending(Position.from_fen("7k/5Q2/6K1/8/8/8/8/8 w - - 99 60", ["f7f1"])) == ending_of.FIFTY_MOVES
    assert ending(Position.from_fen("7k/5Q2/6K1/8/8/8/8/8 w - - 99 60", ["f7g7"])) == ending_of.CHECKMATE
    assert ending(Position.from_fen("7k/5Q2/6K1/8/8/8/8/8 b - - 0 60")) == ending_of.STALEMATE
    assert ending(Position.from_fen("7k/8/6K1/8/8/8/8/4B3 b - - 0 60")) == ending_of.INSUFFICIENT


def rook_round() -> list[str]:
    """A closed walk of 36 single steps over c1–h6, from c1."""
    cells = [(file, 0) for file in range(6)]
    for rank in range(1, 6):
        files = range(5, 0, -1) if rank % 2 else range(1, 6)
        cells += [(file, rank) for file in files]
    cells += [(0, rank) for rank in range(5, -1, -1)]
    names = ["cdefgh"[file] + str(rank + 1) for file, rank in cells]
    return [here + there for here, there in pairwise(names)]


def test_a_repetition_is_found_after_144_plies() -> None:
    white = rook_round() * 2
    black = [*["a8b8", "b8a8"] * 17, "a8b8", "b8a7", *["a7b7", "b7a7"] * 17, "a7b7", "b7a8"]
    position = Position.from_fen("k7/8/8/8/8/8/8/K1R5 w - - 0 1")
    seen = []
    for move in (move for pair in zip(white, black, strict=True) for move in pair):
        position = position.play(move)
        seen.append(position.repetitions)
    assert position.halfmove_clock == 144
    assert seen == [0] * 143 + [1]
