"""Lc0's planes and policy indices: lc0's own answers, facts of its tests, and a twin written from full histories."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import chess
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import BadRequest, UnsupportedPosition
from keima.games.chess import Position
from keima.systems.lc0 import moves as lc0_moves
from keima.systems.lc0.inputs import (
    HISTORY_FILLS,
    INPUT_FORMATS,
    Lc0Encoding,
    choose_transform,
    encode_lc0,
    position_masks,
    rule50_value,
)

GoldenReader = Callable[[str], list[dict[str, Any]]]
Planes = np.ndarray[Any, Any]


def format_of(net: str) -> str:
    return "canonical" if "canonical" in net else "classical"


def planes_of(listed: dict[str, list[Any]]) -> Planes:
    """The golden files' planes: index → [mask, value]; bit i is the square row i // 8, column i % 8."""
    planes = np.zeros((112, 64), np.float32)
    for plane, (mask, value) in listed.items():
        for square in range(64):
            if int(mask, 16) >> square & 1:
                planes[int(plane), square] = value
    return planes.reshape(112, 8, 8)


def planes_by_us(position: Position, encoding: Lc0Encoding) -> Planes:
    return np.asarray(encoding.encode([position]).inputs["planes"][0])


def index_of(name: str) -> int:
    """The policy index of a move named from the side to move; "a7a8n" is "a7a8"."""
    return lc0_moves.MOVE_NAMES.index(name.removesuffix("n"))


def as_the_search(index: int, transform: int) -> int:
    """The policy index that lc0's search reads for a move whose index its Python bindings give.

    The bindings always ask for the index without a transform (`src/python/weights.h`: `MoveToNNIndex(m, 0)`), the
    search for the one under the transform of the planes (`src/neural/wrapper.cc`), as lc0's training data have it
    (`src/trainingdata/trainingdata.cc`). So for canonical formats the search is the truth, and the reference answers,
    made with the bindings, name other moves.
    """
    name = lc0_moves.MOVE_NAMES[index]
    squares = np.zeros((2, 8, 8))
    for board, part in zip(squares, (name[:2], name[2:4]), strict=True):
        board.reshape(64)[chess.parse_square(part)] = 1
    source, target = (as_number(turned(board, transform)).bit_length() - 1 for board in squares)
    return index_of(chess.square_name(source) + chess.square_name(target) + name[4:])


@pytest.mark.parametrize("name", ["lc0-maia", "lc0-random"])
def test_planes_moves_and_indices_are_lc0s(name: str, golden: GoldenReader) -> None:
    lines = golden(name)
    assert len(lines) > 80
    for line in lines:
        position = Position.from_fen(line["fen"], line["moves"])
        encoding = Lc0Encoding(format_of(line["net"]))
        np.testing.assert_array_equal(planes_by_us(position, encoding), planes_of(line["planes"]))
        legal = encoding.legal_moves(position)
        expected = [as_the_search(index, encoding.transform(position)) for index in line["policy_index"]]
        assert dict(zip(legal.names, legal.indices.tolist(), strict=True)) == dict(
            zip(line["legal"], expected, strict=True)
        )


# --- A twin: lists of whole positions by python-chess, planes as arrays, nothing incremental. ---


@dataclass
class Seen:
    """One position of a game: what lc0's encoder looks at."""

    board: chess.Board
    ep: int | None  # a square, where lc0 takes an en passant capture for possible
    repetitions: int

    @property
    def identity(self) -> tuple[Any, ...]:
        return self.board.board_fen(), self.board.turn, self.board.castling_rights, self.ep


def whole_game(fen: str, moves: list[str], chess960: bool) -> list[Seen]:
    board = chess.Board(fen, chess960=chess960)
    game = [Seen(board.copy(stack=False), board.ep_square, 0)]
    for move in moves:
        board.push_uci(move)
        now = Seen(board.copy(stack=False), board.ep_square if board.has_pseudo_legal_en_passant() else None, 0)
        if board.halfmove_clock >= 4:
            reversible = game[-board.halfmove_clock :]
            now.repetitions = sum(now.identity == before.identity for before in reversible)
        game.append(now)
    return game


def pieces_for(board: chess.Board, us: bool) -> Planes:
    planes = np.zeros((12, 8, 8), np.float32)
    for square, piece in board.piece_map().items():
        row, column = divmod(square, 8)
        planes[piece.piece_type - 1 + (0 if piece.color == us else 6), row, column] = 1
    return planes if us == chess.WHITE else planes[:, ::-1]


def before_the_pawn_moved(seen: Seen) -> chess.Board:
    """The board with the pawn that may be taken en passant back on its square."""
    board = seen.board.copy(stack=False)
    assert seen.ep is not None
    step = 8 if board.turn == chess.BLACK else -8
    board.set_piece_at(seen.ep - step, board.remove_piece_at(seen.ep + step))
    return board


def history(game: list[Seen], number: int, fill: str) -> list[tuple[Seen, chess.Board, Planes | None]]:
    """(position, board to draw) of the up to eight positions to write, newest first, before canonical stops."""
    canonical, v2 = number >= 3, number in (5, 133)
    last = game[-1]
    found: list[Any] = []
    for back in range(len(game) + 8):
        if len(found) == 8:
            break
        index = len(game) - 1 - back
        seen = game[max(index, 0)]
        if canonical and seen.board.castling_rights != last.board.castling_rights:
            break
        if canonical and back and seen.ep is not None:
            break
        drawn = seen.board
        if index < 0:
            if fill == "no" and (index < -1 or seen.ep is None):
                break
            if fill == "fen_only" and seen.board.fen().split()[:4] == chess.STARTING_FEN.split()[:4]:
                break
            if seen.ep is not None:
                drawn = before_the_pawn_moved(seen)
        if not (v2 and back and seen.repetitions == 0):
            found.append((seen, drawn))
        if canonical and seen.board.halfmove_clock == 0:
            break
    return found


def turned(planes: Planes, transform: int) -> Planes:
    if transform & 1:
        planes = planes[..., ::-1]
    if transform & 2:
        planes = planes[..., ::-1, :]
    if transform & 4:
        planes = np.swapaxes(planes[..., ::-1, ::-1], -1, -2)
    return planes


def as_number(plane: Planes) -> int:
    return sum(1 << square for square, value in enumerate(plane.reshape(64)) if value)


def transform_of(board: chess.Board) -> int:
    if board.castling_rights:
        return 0
    planes = pieces_for(board, board.turn)
    row, column = (int(numbers[0]) for numbers in np.nonzero(planes[5]))
    transform = 1 if column < 4 else 0
    if board.pawns:
        return transform
    transform |= 2 if row >= 4 else 0
    row, column = min(row, 7 - row), max(column, 7 - column)
    if row + column > 7:
        return transform | 4
    if row + column < 7:
        return transform
    ours, theirs = planes[:6], planes[6:]
    sets = [planes.sum(0), ours.sum(0), *(ours[kind] + theirs[kind] for kind in (5, 4, 3, 1, 2))]
    for one in sets:
        straight, reflected = as_number(turned(one, transform)), as_number(turned(one, transform | 4))
        if straight != reflected:
            return transform if straight < reflected else transform | 4
    return transform


def planes_by_the_twin(game: list[Seen], number: int, fill: str) -> Planes:
    planes = np.zeros((112, 8, 8), np.float32)
    board = game[-1].board
    us = board.turn
    for age, (seen, drawn) in enumerate(history(game, number, fill)):
        planes[13 * age : 13 * age + 12] = pieces_for(drawn, us)
        planes[13 * age + 12] = seen.repetitions > 0
    for offset, queenside in ((0, True), (1, False)):
        for side, base in ((us, 104), (not us, 106)):
            king = board.king(side)
            for rook in chess.SquareSet(board.castling_rights & (chess.BB_RANK_1 if side else chess.BB_RANK_8)):
                if (rook < king) == queenside:
                    if number == 1:
                        planes[base + offset] = 1
                    else:
                        planes[104 + offset, 0 if side == us else 7, rook % 8] = 1
    if number < 3:
        planes[108] = us == chess.BLACK
    elif game[-1].ep is not None:
        planes[108, 7, game[-1].ep % 8] = 1
    planes[109] = np.float32(board.halfmove_clock) / np.float32(100 if number >= 4 else 1)
    planes[110] = us == chess.BLACK and number in (132, 133)
    planes[111] = 1
    if number >= 3:
        planes = np.ascontiguousarray(turned(planes, transform_of(board)))
    return planes


STARTS = [
    chess.STARTING_FEN,
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 3",
    "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1",
    "rnbqkbnr/pppp1ppp/8/4pP2/8/8/PPPPP1PP/RNBQKBNR w KQkq e6 0 3",
    "8/8/3k4/8/3R4/8/3K4/8 b - - 17 60",
    "8/8/4n3/3k4/8/2K1B3/8/8 w - - 3 60",
    "k7/8/8/8/8/8/8/K6R w - - 90 100",
    "8/8/1K6/8/5k2/8/7r/8 w - - 5 60",
    "5K2/8/8/2k5/8/8/8/N7 w - - 5 60",
]


def shuffling_game(board: chess.Board, seed: int, plies: int) -> list[str]:
    """Random legal moves that often go back where they came from, so that positions repeat."""
    chance, moves = random.Random(seed), []
    for _ in range(plies):
        legal = list(board.legal_moves)
        if not legal:
            break
        back = board.move_stack[-2] if len(board.move_stack) > 1 else None
        undo = chess.Move(back.to_square, back.from_square) if back else None
        move = undo if undo in legal and chance.random() < 0.7 else chance.choice(legal)
        moves.append(board.uci(move, chess960=board.chess960))
        board.push(move)
    return moves


def compare_with_the_twin(fen: str, moves: list[str], chess960: bool) -> None:
    game = whole_game(fen, moves, chess960)
    position = Position.from_fen(fen, moves, chess960)
    for name, number in INPUT_FORMATS.items():
        for fill in HISTORY_FILLS:
            ours = planes_by_us(position, Lc0Encoding(name, fill))
            np.testing.assert_array_equal(ours, planes_by_the_twin(game, number, fill), err_msg=f"{name} {fill}")


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(STARTS), st.integers(0, 2**32), st.integers(0, 60))
def test_all_formats_equal_the_twin(fen: str, seed: int, plies: int) -> None:
    compare_with_the_twin(fen, shuffling_game(chess.Board(fen), seed, plies), chess960=False)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 959), st.integers(0, 2**32), st.integers(0, 60))
def test_all_formats_equal_the_twin_in_chess960(number: int, seed: int, plies: int) -> None:
    board = chess.Board.from_chess960_pos(number)
    compare_with_the_twin(board.fen(), shuffling_game(board, seed, plies), chess960=True)


def test_the_games_of_the_twin_do_repeat_and_turn() -> None:
    """The comparisons above would prove little otherwise."""
    repeated, transforms = 0, set()
    for seed, fen in enumerate(STARTS * 4):
        game = whole_game(fen, shuffling_game(chess.Board(fen), seed, 40), chess960=False)
        repeated += sum(seen.repetitions > 0 for seen in game)
        transforms |= {transform_of(seen.board) for seen in game}
    assert repeated > 200
    assert transforms == set(range(8))


# Squares of the kings after lc0's transform, from the facts its encoder_test.cc states.
@pytest.mark.parametrize(
    ("fen", "transform", "our_king", "their_king"),
    [
        ("3r4/4k3/8/1K6/8/8/8/8 w - - 0 1", 7, 12, 38),
        ("3r4/4k3/2K5/8/8/8/8/8 w - - 0 1", 3, 21, 11),
    ],
)
def test_the_canonical_transform_of_lc0s_own_tests(fen: str, transform: int, our_king: int, their_king: int) -> None:
    position = Position.from_fen(fen)
    batch = Lc0Encoding("canonical", "no").encode([position])
    planes = batch.inputs["planes"][0]
    assert batch.context["transform"].tolist() == [transform] == [choose_transform(position.record[0])]
    assert as_number(planes[5]) == 1 << our_king
    assert as_number(planes[11]) == 1 << their_king


def test_en_passant_is_drawn_as_in_lc0s_own_tests() -> None:
    position = Position.from_fen(None, ["e2e4", "g7g6", "e4e5", "f7f5"])
    planes = planes_by_us(position, Lc0Encoding("canonical"))
    assert as_number(planes[108]) == 1 << 61
    assert not planes[13:104].any()


def test_worked_values_of_the_table() -> None:
    planes = planes_by_us(Position.start(), Lc0Encoding())
    assert planes[0].tolist() == [[1.0 if row == 1 else 0.0] * 8 for row in range(8)]
    assert as_number(planes[3]) == 1 << 0 | 1 << 7
    assert planes[[104, 105, 106, 107, 111]].all()
    assert not planes[13:104].any()
    assert not planes[108:111].any()


def test_rows_of_a_batch_do_not_depend_on_each_other() -> None:
    positions = [Position.from_fen(fen).play(*shuffling_game(chess.Board(fen), 3, n)) for n, fen in enumerate(STARTS)]
    for name in INPUT_FORMATS:
        encoding = Lc0Encoding(name)
        together = encoding.encode(positions)
        for row, position in enumerate(positions):
            alone = encoding.encode([position])
            np.testing.assert_array_equal(together.inputs["planes"][row], alone.inputs["planes"][0])
            assert together.context["transform"][row] == alone.context["transform"][0]


def test_the_batch_kernel_overwrites_what_was_there() -> None:
    states = Position.start().play("e2e4").record
    planes, transforms = np.full((1, 112, 8, 8), 7, np.float32), np.full(1, 9, np.int64)
    encode_lc0(states, 1, 1, planes, transforms)
    np.testing.assert_array_equal(planes, Lc0Encoding().encode([Position.start().play("e2e4")]).inputs["planes"])
    masks = np.empty(112, np.uint64)
    assert position_masks(states[0], 1, 1, masks) == transforms[0] == 0
    masks[109] = 2**64 - 1 if rule50_value(states[0], 1) else 0
    assert [as_number(plane) for plane in planes[0]] == masks.tolist()


# --- The policy. ---


def test_the_move_table_is_lc0s() -> None:
    """SHA-256 of lc0's own tables: its move names joined by spaces, and its 73 × 64 map of the convolutional head."""
    names = " ".join(lc0_moves.MOVE_NAMES)
    assert hashlib.sha256(names.encode()).hexdigest() == (
        "c4c47aca96e213995c772d1aab24498e3ad9c91209d3467889f20fa1a10678dd"
    )
    table = np.full(73 * 64, -1, "<i2")
    table[lc0_moves.CONVOLUTION_INDEX] = np.arange(1858)
    assert hashlib.sha256(table.tobytes()).hexdigest() == (
        "a65b9ce4b8cf3f99c8a98ad8da746ad09f3397b0ef7271a5dab8bee3cf01c94f"
    )


def test_each_move_has_its_index_and_place() -> None:
    assert lc0_moves.MOVES == len(lc0_moves.MOVE_NAMES) == len(set(lc0_moves.CONVOLUTION_INDEX.tolist())) == 1858
    for name, index in {"a1b1": 0, "a1a2": 7, "d2d4": 293, "e2e4": 322, "e1h1": 103, "e1a1": 97, "a7a8q": 1792,
                        "h7h8b": 1857, "a7a8n": index_of("a7a8")}.items():  # fmt: skip
        assert index_of(name) == index


def seen_by_the_mover(move: chess.Move, board: chess.Board) -> str:
    """The name Lc0's table has for a move: ranks from the mover's side, castling onto the rook."""
    if board.is_castling(move):
        rook = next(
            rook
            for rook in chess.SquareSet(
                board.clean_castling_rights() & chess.BB_RANKS[chess.square_rank(move.from_square)]
            )
            if (rook > move.from_square) == (move.to_square > move.from_square)
        )
        move = chess.Move(move.from_square, rook)
    flip = 0 if board.turn else 56
    return chess.Move(move.from_square ^ flip, move.to_square ^ flip, move.promotion).uci()


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([*STARTS, "r3k2r/P6p/8/8/8/8/p6P/R3K2R w KQkq - 0 1"]), st.integers(0, 2**32), st.integers(0, 60)
)
def test_policy_indices_name_the_moves(fen: str, seed: int, plies: int) -> None:
    board = chess.Board(fen)
    position = Position.from_fen(fen).play(*shuffling_game(board, seed, plies))
    legal = Lc0Encoding().legal_moves(position)
    expected = {move.uci(): index_of(seen_by_the_mover(move, board)) for move in board.legal_moves}
    assert dict(zip(legal.names, legal.indices.tolist(), strict=True)) == expected
    assert legal.indices.dtype == np.int64


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(STARTS), st.integers(0, 2**32), st.integers(0, 40))
def test_a_canonical_policy_is_turned_as_the_planes_are(fen: str, seed: int, plies: int) -> None:
    position = Position.from_fen(fen).play(*shuffling_game(chess.Board(fen), seed, plies))
    plain = Lc0Encoding().legal_moves(position)
    encoding = Lc0Encoding("canonical")
    legal, transform = encoding.legal_moves(position), encoding.transform(position)
    assert legal.names == plain.names
    assert legal.indices.tolist() == [as_the_search(index, transform) for index in plain.indices.tolist()]
    batch = encoding.encode([position])
    indices = np.full((1, 256), -1, np.int32)
    codes = np.zeros((1, 256), np.int16)
    codes[0, : len(legal.names)] = position.legal_codes.view(np.int16)
    encoding.write_indices(codes, np.array([len(legal.names)], np.int32), np.zeros(1, np.int64), batch, indices)
    assert indices[0, : len(legal.names)].tolist() == legal.indices.tolist()


def test_restore_turns_squares_back_to_the_board() -> None:
    for fen in STARTS:
        position = Position.from_fen(fen)
        for name in ("classical", "canonical"):
            encoding = Lc0Encoding(name)
            kings = encoding.restore(planes_by_us(position, encoding)[5], position, 0)
            board = chess.Board(fen)
            assert as_number(kings) == 1 << board.king(board.turn)


# --- Requests. ---


def test_input_formats_go_by_our_name_and_by_lc0s() -> None:
    for name, number in INPUT_FORMATS.items():
        assert Lc0Encoding(name).input_format == Lc0Encoding(number).input_format == name
    assert Lc0Encoding("INPUT_CLASSICAL_112_PLANE").input_format == "classical"
    assert Lc0Encoding("INPUT_112_WITH_CANONICALIZATION_V2_ARMAGEDDON").input_format == "canonical-v2-armageddon"


@pytest.mark.parametrize("options", [{"input_format": "x"}, {"input_format": 6}, {"history_fill": "yes"}])
def test_unknown_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match="choose one of"):
        Lc0Encoding(**options)


def test_other_games_symmetries_and_options_are_refused() -> None:
    encoding, start = Lc0Encoding(), Position.start()
    with pytest.raises(UnsupportedPosition):
        encoding.encode(["a Go position"])
    with pytest.raises(BadRequest, match="0 alone"):
        encoding.encode([start], 3)
    with pytest.raises(BadRequest, match="no option 'profile'; it takes none"):
        encoding.bind(profile="rank_5k")
    assert encoding.shape(start) == (8, 8)
    assert (encoding.name, encoding.game, encoding.planes, encoding.globals, encoding.symmetries) == (
        "lc0", "chess", 112, 0, (0,)
    )  # fmt: skip
