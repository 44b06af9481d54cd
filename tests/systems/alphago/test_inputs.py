"""AlphaGo's planes: equal to the reference encoder's, true to their table, and turned by symmetries as boards are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import BadRequest, UnsupportedPosition
from keima.games.go import Position
from keima.games.go.vertices import symmetric_array, xy_to_vertex
from keima.systems.alphago.inputs import PLANES, AlphaGoEncoding

ENCODING = AlphaGoEncoding()


def planes_of(position: Position, symmetry: int = 0) -> np.ndarray:
    return ENCODING.encode([position], symmetry).inputs["planes"][0]


def drawn(picture: str, to_play: str = "B") -> Position:
    """A position from rows of . X O; X is Black."""
    rows = picture.split()
    size = len(rows[0]), len(rows)
    black = [xy_to_vertex(x, y, size[1]) for y, row in enumerate(rows) for x, c in enumerate(row) if c == "X"]
    white = [xy_to_vertex(x, y, size[1]) for y, row in enumerate(rows) for x, c in enumerate(row) if c == "O"]
    return Position.start(size, black=black, white=white, to_play=to_play)


def points(plane: np.ndarray) -> set[str]:
    """The vertices where a plane is 1."""
    return {xy_to_vertex(int(x), int(y), plane.shape[0]) for y, x in np.argwhere(plane == 1)}


def reference_position(row: dict[str, Any]) -> Position:
    vertices = []
    for _, letters in row["moves"]:
        x, y = (ord(letter) - ord("a") for letter in letters) if len(letters) == 2 else (None, None)
        vertices.append("pass" if x is None or letters == "tt" else xy_to_vertex(x, y, 19))
    return Position.start(19).play(*vertices)


@pytest.mark.parametrize("name", ["alphago48-lee-sedol", "alphago48-tygem"])
def test_all_48_planes_equal_the_reference_encoder(golden: Callable[[str], list[dict[str, Any]]], name: str) -> None:
    """Also the two ladder planes, although that reference's reader is only a guide."""
    for row in golden(name):
        wanted = np.zeros((48, 19, 19), np.float32)
        for index, lines in row["planes"].items():
            wanted[int(index)] = [[int(digit) for digit in line] for line in lines]
        found = planes_of(reference_position(row))
        differing = np.argwhere(found != wanted)
        assert not len(differing), (row["game"], row["move_number"], differing.tolist())


def test_table_names_every_plane_once() -> None:
    listed: list[int] = []
    for span, _, _ in PLANES:
        first, _, last = span.partition("-")
        listed.extend(range(int(first), int(last or first) + 1))
    assert listed == list(range(49))


def test_turns_since_counts_moves_and_passes() -> None:
    found = planes_of(Position.start(9).play("E5", "C3", "pass", "G7"))
    assert points(found[4]) == {"G7"}
    assert points(found[6]) == {"C3"}
    assert points(found[7]) == {"E5"}


def test_ages_stop_at_seven() -> None:
    moves = ["A1", "C1", "E1", "G1", "J1", "A3", "C3", "E3", "G3", "J3"]
    found = planes_of(Position.start(9).play(*moves))
    assert points(found[11]) == {"A1", "C1", "E1"}


CORNER = """
OOX..
.XX..
.....
.....
.....
"""


def test_capture_size_counts_the_stones_taken() -> None:
    found = planes_of(drawn(CORNER))
    assert points(found[22]) == {"A4"}  # takes the two white stones in the corner
    assert "A4" not in points(found[20])
    assert len(points(found[20])) == 25 - 5 - 1  # every other empty point captures nothing


def test_liberties_after_a_move_count_what_it_captures() -> None:
    found = planes_of(drawn(CORNER))
    after = [n + 1 for n in range(8) if "A4" in points(found[36 + n])]
    assert after == [7]  # A4 joins B4, C4 and C5: A5 and B5 (taken), D5, D4, C3, B3, A3


def test_self_atari_size_is_the_new_chain() -> None:
    found = planes_of(drawn(CORNER, to_play="W"))
    assert points(found[30]) == {"A4"}  # three white stones whose one liberty is A3


LADDER = """
.......
.......
...X...
..XO...
..X....
.......
.......
"""


def test_a_ladder_captures_from_the_right_side_only() -> None:
    assert points(planes_of(drawn(LADDER))[44]) == {"E4"}


def test_a_stone_in_the_way_breaks_the_ladder() -> None:
    rows = LADDER.split()
    rows[5] = ".....O."
    assert points(planes_of(drawn("\n".join(rows)))[44]) == set()
    rows[3] = "..XOX.."
    assert points(planes_of(drawn("\n".join(rows), to_play="W"))[45]) == {"D3"}
    rows[5] = "......."
    assert points(planes_of(drawn("\n".join(rows), to_play="W"))[45]) == set()


def test_sensible_moves_leave_true_eyes_alone() -> None:
    position = drawn(
        """
        .XO..
        XX...
        OOO..
        .....
        .....
        """
    )
    found = planes_of(position)
    assert "A5" in points(found[20])  # legal
    assert "A5" not in points(found[46])  # but an own eye


def test_colour_plane_of_the_value_network() -> None:
    encoding = AlphaGoEncoding(planes=49)
    black, white = Position.start(9), Position.start(9).play("E5")
    batch = encoding.encode([black, white])
    assert batch.inputs["planes"][:, 48].mean(axis=(1, 2)).tolist() == [1.0, 0.0]
    assert np.array_equal(batch.inputs["planes"][1, :48], planes_of(white))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 7), st.lists(st.integers(0, 10**6), max_size=60))
def test_planes_turn_as_the_board_does(symmetry: int, choices: list[int]) -> None:
    position = Position.start((7, 5))
    for choice in choices:
        moves = [move for move in position.legal() if move != "pass"]
        if not moves:
            break
        position = position.play(moves[choice % len(moves)])
    upright = planes_of(position)
    turned = planes_of(position, symmetry)
    for index in range(48):
        assert np.array_equal(turned[index], symmetric_array(upright[index], symmetry)), index
        assert np.array_equal(ENCODING.restore(turned[index], position, symmetry), upright[index])
    moves = ENCODING.legal_moves(position, symmetry)
    assert moves.names == [name for name in position.legal() if name != "pass"]
    assert all(turned[20:28].sum(axis=0).flat[index] == 1 for index in moves.indices)


def test_wrong_requests_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedPosition, match="takes Go positions"):
        ENCODING.check("not a position")
    with pytest.raises(BadRequest, match="0 to 7, not 9"):
        ENCODING.encode([Position.start(9)], 9)
    with pytest.raises(ValueError, match="48 or 49"):
        AlphaGoEncoding(planes=50)


def test_boards_of_several_sizes_are_no_batch() -> None:
    """The kernel writes by each board's own size: a larger one would be written past the end of the planes."""
    with pytest.raises(BadRequest, match="planes of one shape, not 9×9, 13×13"):
        ENCODING.encode([Position.start(9), Position.start(13)])
    with pytest.raises(BadRequest, match="one shape, not no positions"):
        ENCODING.encode([])
    with pytest.raises(UnsupportedPosition, match="for 9×9 boards, not 13×13"):
        AlphaGoEncoding(board_size=9).encode([Position.start(13)])
