"""AlphaGo Zero's and Leela Zero's planes: the tables against the encoder, drawn boards, symmetries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import BadRequest, UnsupportedPosition
from keima.games.go.position import Position
from keima.games.go.vertices import symmetric_array
from keima.systems.alphago_zero.inputs import LEELA_ZERO_PLANES, PLANES, AlphaGoZeroEncoding, LeelaZeroEncoding

GAME = ("D4", "Q16", "Q4", "D16", "K10")


def planes_of(encoding, position, symmetry=0):
    return encoding.encode([position], symmetry).inputs["planes"][0]


def points(plane, size=19):
    """The vertices where a plane is 1; everything else must be 0."""
    assert set(np.unique(plane)) <= {0, 1}
    return {f"{'ABCDEFGHJKLMNOPQRST'[x]}{size - y}" for y, x in zip(*np.nonzero(plane), strict=True)}


def played(*moves, **start):
    return Position.start(**start).play(*moves)


# What each plane says after GAME (White to move), by its words in the table: own stones are White's.
AGO = [{"Q16", "D16"}, {"Q16", "D16"}, {"Q16"}, {"Q16"}, set(), set()]
AGO_OPPONENT = [{"D4", "Q4", "K10"}, {"D4", "Q4"}, {"D4", "Q4"}, {"D4"}, {"D4"}, set()]


def expected(words):
    """What a plane of the tables should hold after GAME, worked out from its words."""
    if words.startswith("all ones if"):
        return None if "Black" in words else {"everywhere"}
    whose, _, when = words.partition(" stones, ")
    t = 0 if when == "now" else int(when.split()[0])
    boards = AGO if whose == "own" else AGO_OPPONENT
    return boards[t] if t < len(boards) else set()


@pytest.mark.parametrize(
    ("encoding", "table"),
    [(AlphaGoZeroEncoding(), PLANES), (LeelaZeroEncoding(), LEELA_ZERO_PLANES)],
    ids=["alphago-zero", "leela-zero"],
)
def test_every_plane_holds_what_the_table_says(encoding, table):
    planes = planes_of(encoding, played(*GAME))
    assert len(planes) == encoding.planes == len(table)
    for plane, words in zip(planes, table, strict=True):
        wanted = expected(words)
        if wanted is None:
            assert not plane.any(), words
        elif wanted == {"everywhere"}:
            assert (plane == 1).all(), words
        else:
            assert points(plane) == wanted, words


def test_the_papers_order_interleaves_and_leela_zero_s_does_not():
    assert PLANES[:3] == ("own stones, now", "opponent's stones, now", "own stones, 1 move ago")
    assert LEELA_ZERO_PLANES[:2] == ("own stones, now", "own stones, 1 move ago")
    assert LEELA_ZERO_PLANES[8] == "opponent's stones, now"


def test_the_worked_values_of_the_docstring():
    position = played("D4", "Q16")
    zero = planes_of(AlphaGoZeroEncoding(), position)
    assert zero[0, 15, 3] == 1
    assert [points(plane) for plane in zero[:16]] == [{"D4"}, {"Q16"}, {"D4"}, *[set()] * 13]
    assert (zero[16] == 1).all()
    leela = planes_of(LeelaZeroEncoding(), position)
    assert [points(plane) for plane in leela[:16]] == [{"D4"}, {"D4"}, *[set()] * 6, {"Q16"}, *[set()] * 7]
    assert (leela[16] == 1).all()
    assert not leela[17].any()


def test_captured_stones_are_gone_now_and_there_before():
    position = played("A1", "A2", "E5", "B1", size=5)  # Black's A1 is captured; Black to move
    planes = planes_of(AlphaGoZeroEncoding(), position)
    assert points(planes[0], 5) == {"E5"}
    assert points(planes[1], 5) == {"A2", "B1"}
    assert points(planes[2], 5) == {"A1", "E5"}


def test_a_pass_repeats_the_board_and_eight_boards_are_kept():
    position = played("A1", *["pass"], "B5", "pass", "C5", "pass", "D5", "pass", "E5", size=5)
    planes = planes_of(LeelaZeroEncoding(), position)
    black = [points(plane, 5) for plane in planes[8:16]]  # White to move: Black is the opponent
    b, c, d, e = ({"A1"} | set(more.split()) for more in ("B5", "B5 C5", "B5 C5 D5", "B5 C5 D5 E5"))
    assert black == [e, d, d, c, c, b, b, {"A1"}]


def test_handicap_stones_are_there_from_the_start_and_not_before():
    position = Position.start(handicap=("D4", "Q16")).play("K10")
    planes = planes_of(AlphaGoZeroEncoding(), position)
    assert [points(plane) for plane in planes[:4]] == [{"D4", "Q16"}, {"K10"}, {"D4", "Q16"}, set()]
    assert not planes[4:16].any()


def moves_of(size):
    vertices = [f"{'ABCDEFGHJKLMNOPQRST'[x]}{y + 1}" for x in range(size[0]) for y in range(size[1])]
    return st.lists(st.sampled_from([*vertices, "pass"]), max_size=14)


@settings(max_examples=25, deadline=None)
@given(moves=moves_of((5, 4)), symmetry=st.integers(0, 7))
def test_a_symmetry_turns_planes_points_and_moves_alike(moves, symmetry):
    position = Position.start(size=(5, 4))
    for move in moves:
        if position.is_legal(move) and not position.is_over:
            position = position.play(move)
    for encoding in (AlphaGoZeroEncoding(), LeelaZeroEncoding()):
        plain = planes_of(encoding, position)
        turned = planes_of(encoding, position, symmetry)
        np.testing.assert_array_equal(turned, symmetric_array(plain, symmetry))
        assert turned.shape[1:] == encoding.shape(position, symmetry)
        np.testing.assert_array_equal(encoding.restore(turned[0], position, symmetry), plain[0])
        legal = encoding.legal_moves(position, symmetry)
        for index, name in zip(legal.indices, legal.names, strict=True):
            if name == "pass":
                assert index == 20
                continue
            where = np.zeros(20)
            where[index] = 1
            shown = encoding.restore(where.reshape(turned.shape[1:]), position, symmetry)
            row, column = np.argwhere(shown)[0]
            assert name == f"{'ABCDE'[column]}{4 - row}"


@pytest.mark.parametrize(("leelaz", "ours"), list(enumerate((0, 1, 2, 3, 7, 6, 5, 4))))
def test_leela_zero_numbers_the_transpositions_from_the_board_s_bottom(leelaz, ours):
    """With y counted upwards as in Leela Zero, its symmetry swaps x and y first and then flips (2: x, 1: y)."""
    position = played("D4", "C3", "E2", size=5)
    turned = planes_of(LeelaZeroEncoding(leelaz_symmetries=True), position, leelaz)
    np.testing.assert_array_equal(turned, planes_of(LeelaZeroEncoding(), position, ours))
    upwards = planes_of(LeelaZeroEncoding(), position)[:, ::-1]
    for y in range(5):
        for x in range(5):
            a, b = (y, x) if leelaz & 4 else (x, y)
            a = 4 - a if leelaz & 2 else a
            b = 4 - b if leelaz & 1 else b
            np.testing.assert_array_equal(turned[:, ::-1][:, y, x], upwards[:, b, a])


def test_leela_zero_s_symmetries_turn_back_and_name_moves():
    encoding = LeelaZeroEncoding(leelaz_symmetries=True)
    position = played("D4", size=5)
    for symmetry in range(8):
        turned = planes_of(encoding, position, symmetry)
        np.testing.assert_array_equal(encoding.restore(turned[8], position, symmetry), planes_of(encoding, position)[8])
        legal = encoding.legal_moves(position, symmetry)
        taken = set(range(25)) - set(legal.indices.tolist())
        assert taken == {int(np.flatnonzero(turned[8])[0])}


def test_rows_of_a_batch_are_those_of_single_positions():
    positions = [played(*GAME[:n]) for n in range(6)]
    symmetries = [0, 5, 2, 7, 4, 1]
    encoding = AlphaGoZeroEncoding()
    batch = encoding.encode(positions, symmetries)
    np.testing.assert_array_equal(batch.context["black_to_play"], [True, False] * 3)
    for row, position, symmetry in zip(batch.inputs["planes"], positions, symmetries, strict=True):
        np.testing.assert_array_equal(row, planes_of(encoding, position, symmetry))


def test_what_cannot_be_encoded_is_refused():
    encoding = AlphaGoZeroEncoding(board_size=9)
    with pytest.raises(UnsupportedPosition, match="for 9×9 boards, not 13×9"):
        encoding.encode([Position.start(size=(13, 9))])
    with pytest.raises(UnsupportedPosition, match="takes Go positions, not str"):
        encoding.check("a chess position")
    small = Position.start(size=9)
    with pytest.raises(BadRequest, match="are 0 to 7"):
        encoding.encode([small], 8)
    with pytest.raises(BadRequest, match="2 positions need 2 symmetries, not 1"):
        encoding.encode([small, small], [0])
    with pytest.raises(BadRequest, match="one shape, not 7×7, 9×9"):
        AlphaGoZeroEncoding().encode([small, Position.start(size=7)])
