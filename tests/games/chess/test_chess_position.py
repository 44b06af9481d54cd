"""Positions at the edge: FEN and UCI in and out, what is refused and how, endings, drawing."""

from __future__ import annotations

import random

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import BadPosition, IllegalMove, KeimaError
from keima.games.chess import START_FEN, Outcome, Position

DANCE = ["g1f3", "g8f6", "f3g1", "f6g8"]


def test_the_start() -> None:
    position = Position.start()
    assert position.fen() == START_FEN == chess.STARTING_FEN
    assert position.to_play == "w"
    assert len(position.legal()) == 20
    assert position.outcome is None
    assert not position.is_over
    assert str(position).splitlines() == [
        "8 r n b q k b n r",
        "7 p p p p p p p p",
        "6 . . . . . . . .",
        "5 . . . . . . . .",
        "4 . . . . . . . .",
        "3 . . . . . . . .",
        "2 P P P P P P P P",
        "1 R N B Q K B N R",
        "  a b c d e f g h",
        "White to move, move 1",
    ]


def test_a_game_from_the_start() -> None:
    position = Position.from_fen(None, moves=["e2e4", "c7c5", "g1f3", "d7d6", "f1b5", "b8d7"]).play("e1g1")
    assert position.fen() == "r1bqkbnr/pp1npppp/3p4/1Bp5/4P3/5N2/PPPP1PPP/RNBQ1RK1 b kq - 3 4"
    assert position.moves[-1] == "e1g1"
    assert position.to_play == "b"
    assert position.san("g8f6") == "Nf6"  # the other knight is pinned
    assert position.parse_san("Nf6") == "g8f6"
    assert str(position).endswith("Black to move, move 4")


def test_playing_leaves_the_position_alone() -> None:
    start = Position.start()
    before = start.record.tobytes()
    start.play("e2e4", "e7e5")
    assert start.record.tobytes() == before
    with pytest.raises(ValueError, match="read-only"):
        start.record["rule50"] = 3
    with pytest.raises(AttributeError):
        start.chess960 = True  # type: ignore[misc]


def test_positions_are_equal_when_their_games_are() -> None:
    assert Position.start().play("e2e4") == Position.from_fen(None, ["e2e4"])
    assert hash(Position.start().play("e2e4")) == hash(Position.from_fen(None, ["e2e4"]))
    transposed = Position.from_fen(None, ["g1f3", "g8f6", "b1c3"])
    other = Position.from_fen(None, ["b1c3", "g8f6", "g1f3"])
    assert transposed != other
    assert transposed.key == other.key


@pytest.mark.parametrize(
    ("fen", "reason"),
    [
        ("8/8/8/8/8/8/8/4K3 w - - 0 1", "Black has no king"),
        ("4k3/8/8/8/8/8/8/8 w - - 0 1", "White has no king"),
        ("4k3/8/8/8/8/8/8/K3K3 w - - 0 1", "White has 2 kings"),
        ("4k3/8/8/8/8/8/4R3/4K3 w - - 0 1", "Black, not to move, stands in check"),
        ("4k3/4r3/8/8/8/8/8/4K3 b - - 0 1", "White, not to move, stands in check"),
        ("8/8/8/3kK3/8/8/8/8 w - - 0 1", "stands in check"),
        ("4k3/pppppppp/p7/8/8/8/8/4K3 w - - 0 1", "Black has 9 pawns"),
        ("4k3/8/8/8/8/8/QQQPPPPP/QQQQK3 w - - 0 1", "White has 6 promoted pieces beside 5 pawns"),
        ("P3k3/8/8/8/8/8/8/4K3 w - - 0 1", "pawn on a8"),
        ("4k3/8/8/8/8/8/8/p3K3 w - - 0 1", "pawn on a1"),
        ("4k3/8/8/8/8/8/8/4K3 w K - 0 1", "castling right 'K' without king and rook"),
        ("4k3/8/8/8/8/8/4K3/7R w K - 0 1", "castling right 'K' without king and rook"),
        ("4k3/8/8/8/8/8/8/3K3R w K - 0 1", "needs Chess960"),
        ("4k3/8/8/8/8/8/8/R3K2R w KK - 0 1", "one side twice"),
        ("4k3/8/8/8/8/8/8/R3K2R w Kx - 0 1", "'x' is no castling right"),
        ("4k3/8/8/8/8/8/8/4K3 w - e4 0 1", "en passant square e4 is not on rank 6"),
        ("4k3/8/8/8/8/8/8/4K3 w - e6 0 1", "no pawn can have just moved two squares over e6"),
        ("4k3/4p3/8/4p3/8/8/8/4K3 w - e6 0 1", "no pawn can have just moved"),
        ("4k3/8/8/8/8/8/8/4K3 w - j9 0 1", "'j9' is no en passant square"),
        ("4k3/8/8/8/8/8/8/4K3 white - - 0 1", "the side to move is 'w' or 'b'"),
        ("4k3/8/8/8/8/8/4K3 w - - 0 1", "8 ranks, not 7"),
        ("4k3/8/8/8/8/8/9/4K3 w - - 0 1", "'9' is no piece"),
        ("4k4/8/8/8/8/8/8/4K3 w - - 0 1", "rank 8 ('4k4') does not describe 8 squares"),
        ("4k2/8/8/8/8/8/8/4K3 w - - 0 1", "rank 8 ('4k2') does not describe 8 squares"),
        ("4k3/8/8/8/8/8/8/4K3 w - - x 1", "half-move clock is a whole number"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 -1", "move number is a whole number"),
        ("4k3/8/8/8/8/8/8/4K3 w", "4 to 6 fields"),
        ("", "4 to 6 fields"),
        ("8" * 1000, "at most"),
    ],
)
def test_impossible_fens_are_refused_by_name(fen: str, reason: str) -> None:
    with pytest.raises(BadPosition) as caught:
        Position.from_fen(fen)
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 400


def test_short_fens_have_their_clocks_filled_in() -> None:
    assert Position.from_fen("4k3/8/8/8/8/8/8/4K3 b - -").fen() == "4k3/8/8/8/8/8/8/4K3 b - - 0 1"
    assert Position.from_fen("4k3/8/8/8/8/8/8/4K3 b - - 7 0").fen() == "4k3/8/8/8/8/8/8/4K3 b - - 7 1"


def test_an_en_passant_square_without_a_capture_is_taken_and_left_out_again() -> None:
    after_e4 = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq"
    position = Position.from_fen(f"{after_e4} e3 0 1")
    assert position.fen() == f"{after_e4} - 0 1"
    assert position.key == Position.from_fen(f"{after_e4} - 0 1").key


@pytest.mark.parametrize("move", ["e2e5", "e7e5", "e2", "", "0000", "e2e4q", "E2E4", "e1g1", "e2e9", "e2 e4", "é2e4"])
def test_illegal_moves_name_the_move_and_the_position(move: str) -> None:
    with pytest.raises(IllegalMove) as caught:
        Position.from_fen(None, ["g1f3", "g8f6"]).play("b1c3", "b8c6", move)
    assert caught.value.place == "move 5"
    assert repr(move) in str(caught.value)
    assert "r1bqkb1r/pppppppp/2n2n2/8/8/2N2N2/PPPPPPPP/R1BQKB1R w KQkq - 4 3" in str(caught.value)
    assert not Position.start().is_legal(move)


def test_promotion_needs_its_piece() -> None:
    position = Position.from_fen("8/P6k/8/8/8/8/8/K7 w - - 0 1")
    assert not position.is_legal("a7a8")
    assert {"a7a8q", "a7a8r", "a7a8b", "a7a8n"} <= set(position.legal())
    assert position.play("a7a8n").fen() == "N7/7k/8/8/8/8/8/K7 b - - 0 1"


CASTLING = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"


@pytest.mark.parametrize(
    ("move", "name", "name960", "board"),
    [
        ("e1g1", "e1g1", "e1h1", "r3k2r/8/8/8/8/8/8/R4RK1"),
        ("e1h1", "e1g1", "e1h1", "r3k2r/8/8/8/8/8/8/R4RK1"),
        ("e1c1", "e1c1", "e1a1", "r3k2r/8/8/8/8/8/8/2KR3R"),
        ("e1a1", "e1c1", "e1a1", "r3k2r/8/8/8/8/8/8/2KR3R"),
    ],
)
def test_castling_is_understood_under_both_names(move: str, name: str, name960: str, board: str) -> None:
    for chess960, expected in ((False, name), (True, name960)):
        position = Position.from_fen(CASTLING, chess960=chess960)
        assert expected in position.legal()
        played = position.play(move)
        assert played.moves == (expected,)
        assert played.fen().split()[0] == board


def test_in_chess960_an_ordinary_king_move_is_meant_where_both_are_possible() -> None:
    position = Position.from_fen("4k3/8/8/8/8/8/8/5K1R w H - 0 1", chess960=True)
    assert position.play("f1g1").fen().split()[0] == "4k3/8/8/8/8/8/8/6KR"
    assert position.play("f1h1").fen().split()[0] == "4k3/8/8/8/8/8/8/5RK1"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 959), st.integers(0, 959), st.integers(0, 2**32))
def test_chess960_fens_are_written_as_python_chess_writes_them(white: int, black: int, seed: int) -> None:
    chance = random.Random(seed)
    oracle = chess.Board.from_chess960_pos(white)
    for _ in range(chance.randrange(40)):
        moves = list(oracle.legal_moves)
        if not moves:
            break
        oracle.push(chance.choice(moves))
    for text in (oracle.fen(), oracle.shredder_fen()):
        assert Position.from_fen(text, chess960=True).fen() == oracle.fen()


@pytest.mark.parametrize(
    ("fen", "moves", "outcome", "result"),
    [
        (None, ["f2f3", "e7e5", "g2g4", "d8h4"], Outcome("checkmate", "b"), "0-1"),
        ("7k/5Q2/6K1/8/8/8/8/8 w - - 10 60", ["f7g7"], Outcome("checkmate", "w"), "1-0"),
        ("7k/8/6K1/8/8/8/8/5Q2 w - - 10 60", ["f1f7"], Outcome("stalemate"), "1/2-1/2"),
        ("7k/8/6K1/8/8/8/4p3/8 b - - 10 60", ["e2e1n"], Outcome("insufficient material"), "1/2-1/2"),
        ("7k/8/6K1/8/8/8/8/5Q2 w - - 149 160", ["f1f2"], Outcome("seventy-five moves"), "1/2-1/2"),
        (None, DANCE * 4, Outcome("fivefold repetition"), "1/2-1/2"),
    ],
)
def test_endings_nobody_has_to_claim(fen: str | None, moves: list[str], outcome: Outcome, result: str) -> None:
    position = Position.from_fen(fen, moves)
    assert position.outcome == outcome
    assert position.is_over
    assert outcome.result == result


def test_draws_that_may_be_claimed_do_not_end_the_game() -> None:
    threefold = Position.from_fen(None, DANCE * 2)
    assert threefold.repetitions == 2
    assert threefold.claimable == Outcome("threefold repetition")
    assert not threefold.is_over
    fifty = Position.from_fen("7k/8/6K1/8/8/8/8/5Q2 w - - 99 160", ["f1f2"])
    assert fifty.claimable == Outcome("fifty moves")
    assert not fifty.is_over
    assert Position.start().claimable is None


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="rnbqkpRNBQKP12345678/ w-KQkq03ae", max_size=80))
def test_any_text_is_read_or_refused_by_name(text: str) -> None:
    try:
        position = Position.from_fen(text)
    except KeimaError:
        return
    assert Position.from_fen(position.fen()).fen() == position.fen()


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False))
def test_random_piece_placements_are_taken_where_python_chess_finds_them_valid(chance: random.Random) -> None:
    oracle = chess.Board.empty()
    for letter in "Kk" + "".join(chance.choices("QRBNPqrbnpPp", k=chance.randrange(20))):
        oracle.set_piece_at(chance.randrange(64), chess.Piece.from_symbol(letter))
    oracle.turn = chance.random() < 0.5
    fatal = (
        chess.STATUS_NO_WHITE_KING
        | chess.STATUS_NO_BLACK_KING
        | chess.STATUS_TOO_MANY_KINGS
        | chess.STATUS_TOO_MANY_WHITE_PAWNS
        | chess.STATUS_TOO_MANY_BLACK_PAWNS
        | chess.STATUS_PAWNS_ON_BACKRANK
        | chess.STATUS_TOO_MANY_WHITE_PIECES
        | chess.STATUS_TOO_MANY_BLACK_PIECES
        | chess.STATUS_OPPOSITE_CHECK
    )
    if oracle.status() & fatal:
        with pytest.raises(BadPosition):
            Position.from_fen(oracle.fen())
        return
    try:
        position = Position.from_fen(oracle.fen())
    except BadPosition as error:
        assert "promoted pieces" in str(error)  # noqa: PT017 - python-chess does not count these
        return
    assert sorted(position.legal()) == sorted(move.uci() for move in oracle.legal_moves)
