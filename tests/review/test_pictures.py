"""Pictures show the right things in the right places."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

from keima.errors import BadRequest
from keima.games.chess.drawing import draw_arrows
from keima.games.chess.position import Position as ChessPosition
from keima.games.go.drawing import draw_ownership, draw_policy
from keima.games.go.position import Position as GoPosition
from keima.inference.evaluation import Evaluation
from keima.review.pictures import activation_grid, caption, picture, save

GO = GoPosition.start(size=(5, 4), komi=7.5).play("A1", "E4", "C2")
GO_ANSWER = Evaluation(
    policy={"B3": 0.6, "D1": 0.3, "A4": 0.004, "pass": 0.096},
    logits={},
    win=0.25,
    draw=0.0,
    loss=0.75,
    value=-0.5,
    lead=-3.25,
    ownership=np.array([[0, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 0, -0.5, 0, 0], [-1, 0, 0, 0, 0]], np.float32),
)
CHESS = ChessPosition.from_fen("8/P3k3/8/8/8/8/4K3/8 w - - 0 1")
CHESS_ANSWER = Evaluation({"a7a8q": 0.75, "e2e3": 0.2, "e2d2": 0.001}, {}, 0.9, 0.08, 0.02, 0.88, moves_left=31.4)


def panel() -> Axes:
    return Figure().subplots()


def texts(axes: Axes) -> dict[tuple[float, float], str]:
    return {text.get_position(): text.get_text() for text in axes.texts}


def test_likely_moves_are_labelled_at_their_points_and_unlikely_ones_left_out() -> None:
    axes = panel()
    draw_policy(axes, GO, GO_ANSWER.policy)
    assert texts(axes) == {(1, 1): "60", (3, 3): "30"}  # row 0 is the top: B3 of four rows is row 1


def test_stones_stand_where_they_were_played_and_the_last_one_has_a_ring() -> None:
    axes = panel()
    draw_policy(axes, GO, {"pass": 1.0})
    circles = [patch for patch in axes.patches if isinstance(patch, Circle)]
    stones = {patch.center: to_hex(patch.get_facecolor()) for patch in circles if patch.radius > 0.4}
    assert stones == {(0, 3): "#161616", (4, 0): "#fafafa", (2, 2): "#161616"}
    assert [patch.center for patch in circles if patch.radius == pytest.approx(0.2)] == [(2, 2)]


def test_the_board_has_its_coordinates() -> None:
    axes = panel()
    draw_policy(axes, GoPosition.start(size=(9, 3)), {})
    assert [label.get_text() for label in axes.get_xticklabels()] == list("ABCDEFGHJ")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["3", "2", "1"]
    assert axes.get_ylim()[0] > axes.get_ylim()[1], "row 0 is at the top"


def owned(axes: Axes) -> dict[tuple[int, int], str]:
    squares = [patch for patch in axes.patches if isinstance(patch, Rectangle) and patch.get_width() > 0.1]
    return {
        (round(patch.get_x() + patch.get_width() / 2), round(patch.get_y() + patch.get_height() / 2)): to_hex(
            patch.get_facecolor()
        )
        for patch in squares
    }


def test_ownership_is_drawn_in_the_owners_colour_whoever_is_to_play() -> None:
    axes = panel()
    draw_ownership(axes, GO, GO_ANSWER.ownership)  # White to play: +1 is White's
    assert owned(axes) == {(4, 0): "#ffffff", (2, 2): "#111111", (0, 3): "#111111"}
    axes = panel()
    draw_ownership(axes, GO.play("pass"), GO_ANSWER.ownership)
    assert owned(axes) == {(4, 0): "#111111", (2, 2): "#ffffff", (0, 3): "#ffffff"}


def test_arrows_go_from_square_to_square_with_the_piece_promoted_to() -> None:
    axes = panel()
    draw_arrows(axes, CHESS, CHESS_ANSWER.policy)
    arrows = {patch._posA_posB[0]: patch._posA_posB[1] for patch in axes.patches if isinstance(patch, FancyArrowPatch)}
    assert arrows == {(0, 1): (0, 0), (4, 6): (4, 5)}  # a7a8, e2e3; e2d2 is too unlikely
    shown = texts(axes)
    assert shown[(0, 0.25)] == "75=Q"
    assert shown[(4, 5.25)] == "20"
    assert (shown[(0, 1)], shown[(4, 1)], shown[(4, 6)]) == ("♟", "♚", "♚")


def test_the_caption_is_for_the_side_to_move() -> None:
    assert caption(GO, GO_ANSWER) == "White to play · win 25.0 % · lead -3.2 · pass 9.6 %"
    assert caption(CHESS, CHESS_ANSWER) == "White to play · win 90.0 % · draw 8.0 % · 31 plies left"


@pytest.mark.parametrize(("position", "answer"), [(GO, GO_ANSWER), (CHESS, CHESS_ANSWER)])
def test_files_are_pictures_and_the_same_every_time(
    tmp_path: Path, position: GoPosition | ChessPosition, answer: Evaluation
) -> None:
    for ending in ("png", "svg"):
        save(picture(position, answer), tmp_path / f"a.{ending}")
        save(picture(position, answer), tmp_path / f"b.{ending}")
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    height, width, _ = imread(tmp_path / "a.png").shape
    assert height > 400
    assert width > 400
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")


def test_ownership_has_a_panel_only_where_there_is_some() -> None:
    assert len(picture(GO, GO_ANSWER).axes) == 2
    assert len(picture(GO, replace(GO_ANSWER, ownership=None)).axes) == 1


def test_other_endings_and_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"ends in .png or .svg, not '.pdf'"):
        save(picture(GO, GO_ANSWER), tmp_path / "a.pdf")
    with pytest.raises(BadRequest, match="cannot write the picture"):
        save(picture(GO, GO_ANSWER), tmp_path / "nowhere" / "a.png")


def test_a_grid_shows_each_channel_on_one_scale() -> None:
    activation = np.arange(-12, 6, dtype=np.float32).reshape(3, 2, 3)
    figure = activation_grid(activation, "tower.3")
    images = [axes.images[0] for axes in figure.axes if axes.images]
    assert len(images) == 3
    for image, channel in zip(images, activation, strict=True):
        np.testing.assert_array_equal(image.get_array(), channel)
        assert image.get_clim() == (-12, 12)
    assert figure.get_suptitle() == "tower.3"


def test_a_grid_may_leave_channels_out_and_says_so() -> None:
    figure = activation_grid(np.zeros((9, 2, 2), np.float32), "stem", limit=4)
    assert sum(bool(axes.images) for axes in figure.axes) == 4
    assert figure.get_suptitle() == "stem (the first 4 of 9 channels)"


def test_vectors_and_tokens_are_one_image() -> None:
    assert activation_grid(np.ones(5, np.float32)).axes[0].images[0].get_array().shape == (1, 5)
    assert activation_grid(np.ones((4, 7), np.float32)).axes[0].images[0].get_array().shape == (4, 7)
    with pytest.raises(BadRequest, match="1 to 3 axes"):
        activation_grid(np.ones((1, 2, 3, 4), np.float32))
