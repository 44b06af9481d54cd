"""The Position people use: making one, playing, what is refused and why, JSON there and back."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keima
from keima.errors import BadPosition, IllegalMove
from keima.games.game import stack
from keima.games.go import Position, Rules
from keima.games.go.rules import NAMED_RULES
from tests.games.go.go_drawing import TRIPLE_KO, TRIPLE_KO_ROUND, drawn, position_of, stripped


def test_the_front_door() -> None:
    position = keima.go.Position.start(size=19, rules="chinese", komi=7.5).play("Q16", "d4")
    assert (position.xsize, position.ysize, position.to_play, position.komi) == (19, 19, "B", 7.5)
    assert position.rules == Rules.parse("chinese")
    assert position.moves == (("B", "Q16"), ("W", "D4"))
    assert position.stones[3, 15] == 1
    assert position.stones[15, 3] == 2
    assert int(np.count_nonzero(position.stones)) == 2
    assert len(position.legal()) == 19 * 19 - 2 + 1


@pytest.mark.parametrize(("rules", "komi"), [("chinese", 7.5), ("japanese", 6.5), ("nz", 7.0), ({"komi": 0.5}, 0.5)])
def test_komi_is_the_usual_one_of_the_rules_unless_given(rules: Any, komi: float) -> None:
    assert Position.start(9, rules).komi == komi
    assert Position.start(9, rules, -2).komi == -2.0


def test_playing_leaves_the_position_as_it_was() -> None:
    before = position_of(".X.\nXO.\n.X.", rules="japanese")
    copies = before.board.tobytes(), before.history.tobytes(), before.moves
    after = before.play("C2")
    assert drawn(after) == stripped(".X.\nX.X\n.X.")
    assert (before.board.tobytes(), before.history.tobytes(), before.moves) == copies
    assert before != after
    assert before == position_of(".X.\nXO.\n.X.", rules="japanese")
    assert hash(before) == hash(position_of(".X.\nXO.\n.X.", rules="japanese"))
    for array in (after.board, after.history):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]
    with pytest.raises(AttributeError):
        after.komi = 0.5  # type: ignore[misc]


def test_captures_and_the_drawing() -> None:
    position = position_of(".X.\nXO.\n.X.", rules="japanese").play("C2")
    assert position.captures == {"B": 0, "W": 1}
    assert str(position) == (
        "   A B C\n 3 . X .\n 2 X .(X)\n 1 . X .\nWhite to play, 1 moves made, japanese rules, komi 6.5"
    )
    assert repr(position) == "<Position 3x3 after 1 moves, W to play>"


def test_an_illegal_move_says_which_and_why() -> None:
    ko = position_of(".XO.\nXO.O\n.XO.\n....", rules="aga").play("C3")
    for position, vertex, reason in [
        (ko, "B4", "occupied by a black stone"),
        (ko, "B3", "ko"),
        (ko, "E1", "not a point of a 4x4 board"),
        (ko, "I1", "not a point"),
        (ko, "", "not a point"),
        (position_of(".O.\nO..\n..."), "A3", "suicide"),
        (position_of(".XO\nOO.\n...", rules="chinese"), "A3", "suicide"),
        (Position.start(9, "chinese").play("pass", "pass"), "A3", "over"),
    ]:
        with pytest.raises(IllegalMove, match=reason) as caught:
            position.play(vertex)
        number, colour = len(position.moves) + 1, position.to_play
        assert caught.value.place == f"move {number} ({colour} {vertex})"
        if reason != "over":
            assert not position.is_legal(vertex)


def test_superko_is_named_as_the_reason() -> None:
    with pytest.raises(IllegalMove, match="superko"):
        position_of(TRIPLE_KO).play(*TRIPLE_KO_ROUND)
    assert not position_of(TRIPLE_KO, rules="chinese").play(*TRIPLE_KO_ROUND).is_over


def test_play_stops_at_the_first_illegal_move() -> None:
    with pytest.raises(IllegalMove, match=r"move 3 \(B E5\): occupied by a white stone"):
        Position.start(9).play("D4", "E5", "E5", "A1")


def test_a_record_may_break_the_ko_rule_and_go_on_after_the_end() -> None:
    ko = position_of(".XO.\nXO.O\n.XO.\n....").play("C3")
    assert drawn(ko.play_as("W", "B3")) == drawn(position_of(".XO.\nXO.O\n.XO.\n...."))
    with pytest.raises(IllegalMove, match="ko"):
        ko.play_as("W", "B3", strict=True)
    over = Position.start(9).play("pass", "pass")
    assert over.is_over
    assert not over.play_as("B", "E5").is_over
    with pytest.raises(IllegalMove, match="occupied"):
        over.play_as("B", "E5").play_as("W", "E5")
    with pytest.raises(IllegalMove, match="suicide"):
        position_of(".O.\nO..\n...").play_as("B", "A3")
    assert drawn(position_of(".XO\nOO.\n...", rules="chinese").play_as("B", "A3")) == "..O\nOO.\n..."


def test_a_move_out_of_turn_begins_the_history_anew() -> None:
    game = Position.start(9, "aga-button").play("pass", "C3", "D4")
    assert not game.history[0]["has_button"]
    twice = game.play_as("B", "E5")
    assert twice.to_play == "W"
    assert twice.moves[-2:] == (("B", "D4"), ("B", "E5"))
    assert twice.history[0]["turns"] == 1
    assert twice.history[0]["has_button"] == 1
    turned = game.with_to_play("B")
    assert turned.to_play == "B"
    assert turned.moves == game.moves
    assert turned.history[0]["turns"] == 0
    assert np.array_equal(turned.stones, game.stones)
    assert game.with_to_play("W") is game
    assert turned.play("E5") == twice


def test_score_is_whites_and_of_the_side_to_move() -> None:
    position = Position.start(5, "chinese", 7.5).play("C3")
    assert position.score() == 7.5 - 25
    assert position.score_to_play() == 7.5 - 25
    assert position.play("pass").score_to_play() == 25 - 7.5
    assert position.result is None
    assert position.play("pass", "pass").result == "B+17.5"
    assert Position.start(5, "chinese", 0).play("pass", "pass").result == "0"
    assert Position.start(5, "chinese", 3).play("pass", "pass").result == "W+3"


def test_setup_and_whose_turn_it_is() -> None:
    assert Position.start(9, handicap=["C3"]).to_play == "W"
    assert Position.start(9, black=["C3"], white=["G7"]).to_play == "B"
    assert Position.start(9, white=["G7"]).to_play == "B"
    assert Position.start(9, handicap=["C3", "g7"], to_play="B").to_play == "B"
    assert Position.start(9, handicap=["C3", "g7"]).setup == (("B", "C3"), ("B", "G7"))
    assert Position.start((3, 5), black=["C5"]).stones.tolist() == [[0, 0, 1], *[[0, 0, 0]] * 4]


@pytest.mark.parametrize(
    "options",
    [
        {"size": 1},
        {"size": 20},
        {"size": (9, 25)},
        {"size": "19"},
        {"size": 9.0},
        {"size": (9,)},
        {"rules": "klingon"},
        {"komi": 6.3},
        {"komi": "6.5"},
        {"handicap": ["K10"], "size": 9},
        {"handicap": ["D4", "D4"]},
        {"handicap": ["D4"], "white": ["d4"]},
        {"handicap": ["pass"]},
        {"handicap": [4]},
        {"to_play": "green"},
        {"to_play": 1},
        {"size": 2, "black": ["A1", "A2", "B1", "B2"]},
        {"size": 3, "black": ["A1"], "white": ["A2", "B1"]},
        {"handicap_stones": -1},
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BadPosition):
        Position.start(**options)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(2, 9),
    st.integers(2, 9),
    st.sampled_from(sorted(NAMED_RULES)),
    st.booleans(),
    st.integers(-10, 20),
    st.integers(0, 2**32),
)
def test_json_there_and_back(xsize: int, ysize: int, rules: str, encore: bool, komi: int, seed: int) -> None:
    """A random game with setup, moves out of turn and passes reads back as the same position, history and all."""
    rng = random.Random(seed)
    empty = Position.start((xsize, ysize)).legal()[:-1]
    setup = rng.sample(empty, rng.randint(0, 2))
    handicap = rng.random() < 0.5
    position = Position.start(
        (xsize, ysize),
        rules,
        komi / 2,
        black=setup if handicap else setup[:1],
        white=[] if handicap else setup[1:],
        encore=encore,
    )
    for _ in range(rng.randint(0, 40)):
        if rng.random() < 0.05:
            position = position.with_to_play("W" if position.to_play == "B" else "B")
        position = position.play_as(position.to_play, rng.choice(position.legal()))
    again = Position.from_json(position.to_json())
    assert again.to_json() == position.to_json()
    assert again == position


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"xsize": "9"}, BadPosition, "whole number"),
        ({"xsize": 9, "moves": [["B"]]}, BadPosition, "pair"),
        ({"xsize": 9, "moves": [["B", 3]]}, BadPosition, "pair"),
        ({"xsize": 9, "moves": [["X", "A1"]]}, BadPosition, "item 1: expected"),
        ({"xsize": 9, "moves": [["B", "A1"], ["W", "A1"]]}, IllegalMove, r"move 2 \(W A1\): occupied"),
        ({"xsize": 9, "initialStones": [["B", "A1"], ["W", "A1"]]}, BadPosition, "already"),
        ({"xsize": 9, "rules": 4}, BadPosition, "rules"),
        ({"xsize": 9, "moves": 5}, BadPosition, "moves"),
        ({"xsize": 9, "handicap": "D4"}, BadPosition, "handicap"),
        ({"xsize": 9, "to_play": "?"}, BadPosition, "to_play"),
    ],
)
def test_json_that_is_no_position(fields: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Position.from_json(fields)


def test_from_moves_with_initial_stones_and_a_turn() -> None:
    position = Position.from_moves(
        [["W", "E5"], ["B", "pass"]],
        size=9,
        rules="japanese",
        initial_stones=[["B", "C3"], ["W", "G7"]],
        to_play="B",
    )
    assert position.komi == 6.5
    assert position.to_play == "B"
    assert position.history[0]["turns"] == 0
    assert int(np.count_nonzero(position.stones)) == 3


def test_stacking_positions_for_encoders() -> None:
    games = [Position.start(5).play("A1"), Position.start(5, "japanese").play("A1", "B2")]
    records = stack(games)
    boards, histories = records["board"], records["history"]
    assert (len(boards), len(histories)) == (2, 2)
    for i, game in enumerate(games):
        assert boards[i].tobytes() == game.board.tobytes()
        assert histories[i].tobytes() == game.history.tobytes()
    boards[0]["ko"] = 7
    assert games[0].board[0]["ko"] == 0
