"""The guide's 22 planes: the table against the encoder, drawn boards, ko, liberties, rules."""

from __future__ import annotations

import numpy as np
import pytest

from keima.errors import UnsupportedPosition
from keima.games.go.board import loc_of
from keima.games.go.position import Position
from keima.games.go.vertices import symmetric_array
from keima.systems.katago_guide import inputs as guide
from keima.systems.katago_guide.inputs import PLANES, KataGoGuideEncoding

ENCODING = KataGoGuideEncoding()


def planes_of(position, symmetry=0):
    return ENCODING.encode([position], symmetry).inputs["planes"][0]


def drawn(plane):
    """A plane as text, row by row: "." for 0, "1" for 1, "-" for −1."""
    return ["".join({0: ".", 1: "1", -1: "-"}[int(value)] for value in row) for row in plane]


KO = ("B3", "C3", "A2", "D2", "B1", "C1", "C2", "B2")
"""A ko on 5×5: White's last move B2 took the stone on C2, which Black may not retake at once."""


@pytest.fixture
def ko():
    return Position.start(size=5, rules="japanese", komi=6).play(*KO)


def test_the_table_has_a_line_for_each_plane():
    assert len(PLANES) == ENCODING.planes == 22
    assert PLANES[guide.KO] == "points forbidden by ko"
    assert PLANES[guide.LIBERTIES] == "stones of chains with 1 liberty"
    assert PLANES[guide.LIBERTIES + 5] == "stones of chains with 6 liberties"
    assert PLANES[guide.KOMI] == "komi / 15 everywhere"


def test_stones_for_the_side_to_move(ko):
    planes = planes_of(ko)  # Black to move
    assert drawn(planes[guide.OWN]) == [".....", ".....", ".1...", "1....", ".1..."]
    assert drawn(planes[guide.OPPONENT]) == [".....", ".....", "..1..", ".1.1.", "..1.."]
    np.testing.assert_array_equal(planes[0] + planes[1] + planes[guide.VACANT], np.ones((5, 5)))


def test_history_is_one_plane_a_step_own_plus_one_opponent_minus_one(ko):
    planes = planes_of(ko)
    assert drawn(planes[guide.HISTORY]) == [".....", ".....", ".1-..", "1-.-.", ".1-.."]
    assert drawn(planes[guide.HISTORY + 1]) == [".....", ".....", ".1-..", "1.1-.", ".1-.."]
    assert drawn(planes[guide.HISTORY + 7]) == [".....", ".....", ".1...", ".....", "....."]
    early = planes_of(Position.start(size=5).play("C3"))
    assert drawn(early[guide.HISTORY]) == [".....", ".....", "..-..", ".....", "....."]
    assert not early[guide.HISTORY + 1 : guide.KO].any()


def test_the_ko_is_marked_and_gone_after_another_move(ko):
    assert drawn(planes_of(ko)[guide.KO]) == [".....", ".....", ".....", "..1..", "....."]
    assert not planes_of(ko.play("E5", "A5"))[guide.KO].any()


def test_points_that_superko_forbids_are_marked_where_they_are_empty(ko):
    """The history says which points superko forbids; the encoder reads it whatever the rule set."""
    position = ko.play("E5", "A5")
    record = position.record.copy()
    for x, y in ((0, 1), (4, 3), (1, 3)):
        record[0]["history"]["superko_banned"][loc_of(x, y, 5)] = 1
    planes = np.empty((1, 22, 5, 5), np.float32)
    guide.encode_katago_guide(record, np.zeros(1, np.int64), planes)
    assert drawn(planes[0, guide.KO].reshape(5, 5)) == [".....", "1....", ".....", "....1", "....."]


def test_liberties_are_counted_by_chain_up_to_six():
    """A corner stone has 2, one on the edge 3, one in the open 4; a chain of three in a row 8, in no plane."""
    position = Position.start(size=9).play("A1", "A5", "E5", "pass", "E9", "G7", "C7", "G6", "D7", "pass", "C6", "pass")
    planes = planes_of(position)
    counts = {n: drawn(planes[guide.LIBERTIES + n - 1]) for n in range(1, 7)}
    assert [(n, sum(row.count("1") for row in rows)) for n, rows in counts.items()] == [
        (1, 0),
        (2, 1),
        (3, 2),
        (4, 1),
        (5, 0),
        (6, 2),
    ]
    assert counts[2][8] == "1........"
    assert counts[6][2] == "......1.."
    assert planes[guide.LIBERTIES : guide.LIBERTIES + 6, 2, 2].sum() == 0  # C7, of a chain with 7


@pytest.mark.parametrize(
    ("rules", "komi", "area", "territory"),
    [("chinese", 7.5, 1, 0), ("japanese", 6.5, 0, 1), ("tromp-taylor", 0, 1, 0), ("korean", -15, 0, 1)],
)
def test_rules_komi_and_colour_fill_their_planes(rules, komi, area, territory):
    start = Position.start(size=5, rules=rules, komi=komi)
    for position, black in ((start, 1), (start.play("C3"), 0)):
        planes = planes_of(position)
        assert (planes[guide.AREA] == area).all()
        assert (planes[guide.TERRITORY] == territory).all()
        np.testing.assert_allclose(planes[guide.KOMI], komi / 15, rtol=1e-6)
        assert (planes[guide.COLOUR] == black).all()


def test_the_worked_values_of_the_docstring():
    planes = planes_of(Position.start(size=19, rules="chinese", komi=7.5).play("D4"))
    d4 = np.zeros((19, 19))
    d4[15, 3] = 1
    everywhere = np.ones((19, 19))
    wanted = {1: d4, 2: 1 - d4, 3: -d4, 15: d4, 18: everywhere, 20: 0.5 * everywhere}
    for number, plane in enumerate(planes):
        np.testing.assert_array_equal(plane, wanted.get(number, 0 * d4), err_msg=PLANES[number])


@pytest.mark.parametrize("symmetry", range(8))
def test_symmetries_turn_the_planes_on_any_rectangle(symmetry):
    position = Position.start(size=(6, 4), komi=6.5).play("B2", "C2", "F4", "B3", "A1")
    planes = planes_of(position, symmetry)
    np.testing.assert_array_equal(planes, symmetric_array(planes_of(position), symmetry))
    np.testing.assert_array_equal(
        ENCODING.restore(planes[0], position, symmetry), ENCODING.restore(planes_of(position)[0], position, 0)
    )


def test_another_size_is_refused_where_the_network_fixes_it():
    with pytest.raises(UnsupportedPosition, match="for 19×19 boards, not 9×9"):
        KataGoGuideEncoding(board_size=19).encode([Position.start(size=9)])
