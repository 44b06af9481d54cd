"""What the rules remember: held to KataGo's own games state by state, to its golden answers, and to plain Python.

`data/go/katago-random-games.jsonl.gz` was made by KataGo v1.17.2's `BoardHistory` playing random moves: 176 games on
boards from 2×2 to 6×6 and 8 on larger ones, all 48 combinations of ko, scoring, tax and suicide, with setup stones,
moves out of turn, moves a record may hold though they break the ko rule, and moves after the end. `states` holds a
CRC-32 of what `state_text` writes, for the start and after each move.
"""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.games.go import Position
from keima.games.go import history as rules_of
from keima.games.go.area import calculate_area
from keima.games.go.board import MAX_POINTS
from keima.games.go.history import HISTORY, KO_HASHES
from keima.games.go.moves import play_move
from keima.games.go.vertices import board_locs, vertex_to_loc, xy_to_vertex
from tests.games.go.go_drawing import (
    TRIPLE_KO,
    TRIPLE_KO_ROUND,
    Grid,
    drawn,
    is_plainly_legal,
    played,
    position_of,
    stones_grid,
    stripped,
)

GAMES = Path(__file__).parents[2] / "data" / "go" / "katago-random-games.jsonl.gz"


def state_text(b: Any, h: Any) -> str:
    """Everything the rules say about a state, in the words of the file's maker."""
    locs = board_locs(int(b["xsize"]), int(b["ysize"])).ravel()
    colour = int(h["to_play"])
    moves = np.zeros(MAX_POINTS, np.int16)
    count = rules_of.legal_moves(b, h, moves)
    legal = np.zeros(MAX_POINTS, np.int8)
    legal[moves[: count - 1]] = 1
    area = np.zeros(MAX_POINTS, np.int8)
    score = rules_of.score_now(b, h, area)
    pass_alive = np.zeros(MAX_POINTS, np.int8)
    calculate_area(b, pass_alive, False, False, False, h["suicide"] == 1)
    scored = h["finished"] and not h["no_result"]
    final_score = score if scored else 0.0
    winner = 1 if final_score < 0 else 2 * (final_score > 0)
    pass_ends_phase = rules_of.pass_would_end_phase(b, h, colour)
    fields = [
        colour,
        _points(b["stones"], locs),
        _points(legal, locs),
        b["ko"],
        _points(h["superko_banned"], locs),
        h["encore_phase"],
        _halves(h["white_bonus"] * 2),
        _halves(h["white_handicap_bonus"] * 2),
        h["has_button"],
        f"{h['past_phase_end']}{h['finished']}{scored:d}{h['no_result']}{winner}",
        _halves(final_score * 2),
        f"{pass_ends_phase:d}{pass_ends_phase and rules_of.is_final_phase(h):d}"
        f"{rules_of.is_friendly_pass(b, h, colour):d}",
        h["valid_turns"],
        h["turns_this_phase"],
        h["consecutive_passes"],
        _points(h["ko_blocked"], locs),
        _points(h["encore_start"], locs),
        _points(area, locs),
        _halves(score * 2),
        int(pass_alive[locs].all()),
        _halves(rules_of.self_komi(h, colour, 0.75) * 4),
        b["captures"][1],
        b["captures"][2],
    ]
    return " ".join(map(str, fields))


def _points(values: Any, locs: Any) -> str:
    return "".join(map(str, values[locs].tolist()))


def _halves(value: float) -> str:
    return f"{value:g}" if value != 0 else "0"


def test_every_state_of_katagos_random_games() -> None:
    """Legal moves, ko and superko bans, phases, bonuses, ends, areas and scores equal KataGo's after every move."""
    states = phases = banned = marked = void = 0
    with gzip.open(GAMES, "rt") as lines:
        for number, line in enumerate(lines):
            game = json.loads(line)
            start = Position.start(
                (game["xsize"], game["ysize"]),
                game["rules"],
                game["komi"],
                black=game["black"],
                white=game["white"],
                to_play=game["to_play"],
                encore=game["encore"],
            )
            b, h = start.board.copy()[0], start.history.copy()[0]
            words = iter(game["moves"].split())
            for i, (letter, vertex) in enumerate([("", ""), *zip(words, words, strict=True)]):
                if letter:
                    colour, loc = "?BW".index(letter), vertex_to_loc(vertex, game["xsize"], game["ysize"])
                    if colour != h["to_play"]:
                        rules_of.give_turn(b, h, colour)
                    assert rules_of.is_playable(b, h, loc, colour)
                    play_move(b, h, loc, colour)
                text = state_text(b, h)
                crc = int(game["states"][8 * i : 8 * i + 8], 16)
                assert zlib.crc32(text.encode()) == crc, f"game {number}, after move {i} ({letter} {vertex}): {text}"
                states += 1
                phases += h["encore_phase"] > 0
                banned += h["superko_banned"].any()
                marked += h["ko_blocked"].any()
                void += h["no_result"] == 1
    assert states == 6655
    assert min(phases, banned, marked, void) > 0


@pytest.mark.parametrize(
    "name",
    [
        "katago-g170-b6c96",
        "katago-random-nbt",
        "katago-random-res-v17-passalive",
        pytest.param("katago-b7c96h3tfrs-test5-cnorm", marks=pytest.mark.slow),
        pytest.param("katago-random-meta", marks=pytest.mark.slow),
    ],
)
def test_legal_moves_are_those_katagos_policy_gives(name: str, golden: Callable[[str], list[dict[str, Any]]]) -> None:
    """Real games, handicap, passes, moves twice in a row: the points without policy are the illegal ones."""
    for line in golden(name):
        position = Position.from_json(line)
        rows = enumerate(line["out"]["policy"])
        legal = [xy_to_vertex(x, y, line["ysize"]) for y, row in rows for x, p in enumerate(row) if p is not None]
        assert position.legal() == [*legal, "pass"], line["id"]
        assert position.to_play == line["to_play"]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 4),
    st.integers(2, 4),
    st.sampled_from(["POSITIONAL", "SITUATIONAL"]),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_superko_forbids_exactly_the_repetitions(xsize: int, ysize: int, ko: str, suicide: bool, seed: int) -> None:
    """On small boards, where games repeat soon: all grids (with the side to move) are kept and looked through."""
    rng = random.Random(seed)
    position = Position.start((xsize, ysize), {"ko": ko, "suicide": suicide})
    grid: Grid = stones_grid(position)
    seen = {(grid, 1)}
    before, colour = None, 1
    for _ in range(60):
        legal = ["pass"]
        for y in range(ysize):
            for x in range(xsize):
                if not is_plainly_legal(grid, x, y, colour, suicide, before):
                    continue
                after = played(grid, x, y, colour)
                repeats = (after, 3 - colour) in seen or (ko == "POSITIONAL" and (after, colour) in seen)
                if not repeats:
                    legal.append(xy_to_vertex(x, y, ysize))
        assert sorted(legal) == sorted(position.legal())
        move = rng.choice(legal)
        position = position.play_as("?BW"[colour], move)
        before, grid, colour = grid, stones_grid(position), 3 - colour
        seen.add((grid, colour))


def test_a_position_for_the_third_time_is_no_result_under_simple_ko() -> None:
    start = position_of(TRIPLE_KO, rules="japanese")
    twice = start.play(*TRIPLE_KO_ROUND)
    assert drawn(twice) == stripped(TRIPLE_KO)
    assert not twice.is_over
    thrice = twice.play(*TRIPLE_KO_ROUND)
    assert thrice.is_over
    assert thrice.is_no_result
    assert thrice.result == "Void"


def test_passes_are_no_part_of_a_cycle_that_voids_the_game() -> None:
    start = position_of(TRIPLE_KO, rules="chinese")
    game = start.play(*TRIPLE_KO_ROUND[:3], "pass", "pass")
    assert game.result is not None  # two passes end it; played on below, as a record may
    for move in [*TRIPLE_KO_ROUND[3:], *TRIPLE_KO_ROUND, *TRIPLE_KO_ROUND]:
        game = game.play_as(game.to_play, move)
        if game.is_no_result:
            break
    assert len(game.moves) == 5 + 12


@pytest.mark.parametrize("ko", ["POSITIONAL", "SITUATIONAL", "SPIGHT"])
def test_superko_breaks_a_triple_ko(ko: str) -> None:
    almost = position_of(TRIPLE_KO, rules={"ko": ko}).play(*TRIPLE_KO_ROUND[:-1])
    assert not almost.is_legal(TRIPLE_KO_ROUND[-1])
    assert almost.play_as("W", TRIPLE_KO_ROUND[-1]).moves[-1] == ("W", TRIPLE_KO_ROUND[-1])


def test_spight_ko_is_lifted_by_a_pass_and_passes_in_a_row_do_not_end_the_game() -> None:
    game = position_of(TRIPLE_KO, rules={"ko": "SPIGHT"}).play(*TRIPLE_KO_ROUND[:-1])
    lifted = game.play("pass", "pass")
    assert lifted.is_legal(TRIPLE_KO_ROUND[-1])
    assert not lifted.is_over
    # White passes where White passed before
    assert lifted.play("pass").is_over


def test_the_button_goes_to_the_first_pass() -> None:
    start = Position.start(9, "aga-button")
    assert start.komi == 7.0
    assert start.score() == 6.5  # were the game to end, the side to move would have it
    game = start.play("pass")
    assert game.score() == 6.5
    assert not game.play("pass").is_over
    over = game.play("pass", "pass")
    assert over.is_over
    assert over.score() == 6.5
    assert start.play("E5", "pass").history[0]["white_bonus"] == 0.5


@pytest.mark.parametrize(("rules", "stones", "bonus"), [
    ("chinese", 4, 4), ("aga", 4, 3), ("japanese", 4, 0), ("chinese", 1, 0), ("aga", 1, 0), ("chinese", 0, 0),
])  # fmt: skip
def test_white_is_paid_for_handicap_stones(rules: str, stones: int, bonus: int) -> None:
    """By stones set up, and by black moves at the start with White passing or sent away; one stone is none."""
    points = ["D4", "Q16", "D16", "Q4"][:stones]
    game = Position.start(19, rules, handicap=points)
    assert game.history[0]["white_handicap_bonus"] == bonus
    assert game.to_play == ("W" if stones else "B")
    moves = [move for point in points for move in (point, "pass")]
    assert Position.start(19, rules).play(*moves).history[0]["white_handicap_bonus"] == bonus


def test_black_moves_are_counted_until_white_has_a_stone() -> None:
    game = Position.start(19, "chinese").play("D4", "pass", "Q16", "K10", "Q4", "pass", "D16")
    assert game.history[0]["white_handicap_bonus"] == 2
    assert Position.start(19, "chinese", black=["D4", "Q4"], white=["Q16"]).history[0]["white_handicap_bonus"] == 0
    assert Position.start(19, "chinese", handicap_stones=5).history[0]["white_handicap_bonus"] == 5


KO = """
    . X O .
    X O . O
    . X O .
    . . . .
"""


def encore_of(drawing: str, to_play: str = "B") -> Position:
    """A drawn position in the first encore of territory rules."""
    game = position_of(drawing, to_play, rules="japanese", encore=True).play("pass", "pass")
    assert game.history[0]["encore_phase"] == 1
    assert not game.is_over
    return game


def test_retaking_a_ko_in_an_encore_needs_a_pass_for_ko() -> None:
    taken = encore_of(KO).play("C3")
    assert taken.is_legal("B3")
    assert taken.is_legal("C3"), "a pass for ko may also name the marked stone"
    for vertex in ("B3", "C3"):
        passed = taken.play(vertex)
        assert np.array_equal(passed.stones, taken.stones), "a pass for ko changes no stone"
        assert not passed.is_over
        retaken = passed.play("A1", "B3")
        assert retaken.stones[1].tolist() == [1, 2, 0, 2]


def test_each_ko_is_taken_once_in_each_position_of_an_encore() -> None:
    """Black takes it, White retakes it: now Black may not take it again in this same position."""
    again = encore_of(KO).play("C3", "B3", "pass", "B3")
    again = again.play("C3", "pass")  # Black's own pass for ko, then the position is the first one again
    assert drawn(again) == stripped(KO)
    assert again.to_play == "B"
    assert not again.is_legal("C3")
    assert again.play("A1", "pass").is_legal("C3")


def test_encores_follow_each_other_and_then_the_game_is_scored() -> None:
    game = Position.start(5, "japanese", encore=True).play("C3", "pass", "pass")
    assert game.history[0]["encore_phase"] == 1
    game = game.play("pass", "pass")
    assert game.history[0]["encore_phase"] == 2
    assert game.history[0]["encore_start"][board_locs(5, 5)].sum() == 1
    over = game.play("pass", "pass")
    assert over.is_over
    assert over.score() == 6.5 - 24


def test_without_encore_two_passes_end_a_territory_game() -> None:
    over = Position.start(5, "japanese").play("C3", "pass", "pass")
    assert over.is_over
    assert over.history[0]["past_phase_end"] == 1
    assert over.result == "B+17.5"


WALLS = """
    . . X O .
    . . X O .
    . . X O .
    . . X O .
    . . X O .
"""


@pytest.mark.parametrize(
    ("rules", "komi", "score"),
    [
        ("chinese", 0, 10 - 15),
        ("tromp-taylor", 7.5, 10 - 15 + 7.5),
        ("japanese", 0, 5 - 10),
        ("japanese", 6.5, 5 - 10 + 6.5),
        ("stone-scoring", 0, 10 - 15),  # one living group each: the tax is even
        ({"scoring": "AREA", "tax": "SEKI"}, 0, 10 - 15),
        ("ancient-territory", 0, 5 - 10),
    ],
)
def test_counting_a_finished_board(rules: Any, komi: float, score: float) -> None:
    position = position_of(WALLS, rules=rules, komi=komi)
    assert position.score() == score
    assert position.owners().tolist() == [[1, 1, 1, 2, 2]] * 5


def test_a_group_tax_takes_two_points_from_each_living_group() -> None:
    drawing = """
        . X O . O X .
        . X O O O X .
        X X O . O X X
        O O O O O O O
        . . . . . . .
    """
    plain = position_of(drawing, rules={"tax": "NONE"}, komi=0)
    taxed = position_of(drawing, rules={"tax": "ALL"}, komi=0)
    assert plain.score() == 23 - 12
    assert taxed.score() == (23 - 2) - (12 - 2 * 2)


def test_prisoners_count_under_territory_rules() -> None:
    moves = ("C3", "A1", "B1", "pass", "A2")
    japanese = Position.start(3, "japanese", 0).play(*moves)
    assert japanese.captures == {"B": 0, "W": 1}
    assert japanese.score() == -(6 + 1)  # empty points and a prisoner; a pass costs nothing
    assert Position.start(3, "chinese", 0).play(*moves).score() == -9


def test_recent_boards_and_moves_are_newest_first() -> None:
    moves = ["A1", "B2", "pass", "C3", "D4", "E5", "A5", "E1", "A3", "B4"]
    games = [Position.start(5, "tromp-taylor")]
    for move in moves:
        games.append(games[-1].play(move))
    h = games[-1].history[0]
    locs = board_locs(5, 5)
    for i in range(rules_of.RECENT):
        assert np.array_equal(h["recent_stones"][i][locs], games[-1 - i].stones)
        assert h["recent_loc"][i] == vertex_to_loc(moves[-1 - i], 5, 5)
        assert h["recent_colour"][i] == (2 if i % 2 == 0 else 1)
    assert h["turns"] == len(moves)
    ages = {move: int(h["turns"] - h["placed"][vertex_to_loc(move, 5, 5)]) for move in moves if move != "pass"}
    assert ages == {move: len(moves) - 1 - i for i, move in enumerate(moves) if move != "pass"}


def test_before_the_start_the_recent_boards_are_the_first_one() -> None:
    game = position_of(KO).play("C3")
    h = game.history[0]
    locs = board_locs(4, 4)
    assert h["recent_ko"][0] == vertex_to_loc("B3", 4, 4)
    assert h["recent_ko"][1:].any() == np.False_
    for i in range(1, rules_of.RECENT):
        assert np.array_equal(h["recent_stones"][i][locs], position_of(KO).stones)
        assert h["recent_colour"][i] == 0


def test_in_a_very_long_game_the_oldest_situations_are_forgotten() -> None:
    start = Position.start(5, "tromp-taylor").play("A1")
    b, h = start.board.copy()[0], start.history.copy()[0]
    empty = Position.start(5).board[0]["hash"]
    assert rules_of.occurrences(h, empty) == 1
    for i in range(KO_HASHES - 2):
        play_move(b, h, 1, 2 - i % 2)
    assert rules_of.occurrences(h, empty) == 1
    play_move(b, h, 1, int(h["to_play"]))
    assert rules_of.occurrences(h, empty) == 0
    assert rules_of.occurrences(h, b["hash"]) == KO_HASHES


def test_a_history_is_small_enough_to_copy_in_a_search() -> None:
    assert HISTORY.itemsize <= 20_000
