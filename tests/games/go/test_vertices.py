"""Names of points, there and back, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import IllegalMove
from keima.games.go import vertices
from keima.games.go.board import MAX_POINTS, NULL_LOC, PASS_LOC, loc_of


@settings(deadline=None)  # the first call may compile `loc_of`
@given(st.integers(2, 19), st.integers(2, 19), st.data())
def test_every_name_leads_back_to_its_point(xsize: int, ysize: int, data: st.DataObject) -> None:
    x, y = data.draw(st.integers(0, xsize - 1)), data.draw(st.integers(0, ysize - 1))
    vertex = vertices.xy_to_vertex(x, y, ysize)
    assert "I" not in vertex
    assert vertices.vertex_to_xy(f" {vertex.lower()} ", xsize, ysize) == (x, y)
    loc = vertices.vertex_to_loc(vertex, xsize, ysize)
    assert loc == loc_of(x, y, xsize) == vertices.board_locs(xsize, ysize)[y, x]
    assert vertices.loc_to_vertex(loc, xsize, ysize) == vertex


def test_names_everybody_knows() -> None:
    assert vertices.vertex_to_xy("A1", 19, 19) == (0, 18)
    assert vertices.vertex_to_xy("T19", 19, 19) == (18, 0)
    assert vertices.vertex_to_xy("J9", 9, 9) == (8, 0)


def test_passes() -> None:
    assert vertices.vertex_to_xy("PASS", 9, 9) is None
    assert vertices.vertex_to_loc("pass", 9, 9) == PASS_LOC
    assert vertices.loc_to_vertex(PASS_LOC, 9, 9) == "pass"
    table = vertices.vertex_table(5, 7)
    assert len(table) == MAX_POINTS
    assert table[NULL_LOC] == ""
    assert len(set(table)) == 5 * 7 + 2


@pytest.mark.parametrize(
    "vertex", ["", "A", "I5", "A0", "A10", "K1", "5A", "AA1", "A-1", "A1.0", "A+1", "A١", "A 1", "nul"]
)
def test_what_names_no_point_of_a_9x9_board(vertex: str) -> None:
    with pytest.raises(IllegalMove, match="9x9"):
        vertices.vertex_to_xy(vertex, 9, 9)


@given(st.text(max_size=6))
def test_any_text_is_a_point_or_refused(text: str) -> None:
    try:
        xy = vertices.vertex_to_xy(text, 13, 9)
    except IllegalMove:
        return
    assert xy is None or (0 <= xy[0] < 13 and 0 <= xy[1] < 9)
