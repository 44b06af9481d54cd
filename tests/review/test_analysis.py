"""A review's numbers: each for the player it names, losses against the network's own choice, worst first."""

from __future__ import annotations

from math import exp

import pytest

from keima.games.chess.records import read_pgn_text
from keima.review.analysis import grade, review_game, review_key, summarise
from keima.review.games import open_game
from tests.review.fakes import NETWORK, OPTIONS, Judge, go_record

ONE_UP = 1 / (1 + exp(-1))


def review(*moves: str, judge: Judge | None = None) -> dict:
    return review_game(open_game(go_record(*moves)), judge or Judge(), NETWORK, OPTIONS)


class TestGo:
    def test_the_networks_choice_loses_nothing(self) -> None:
        (move,) = review("A5")["moves"]
        assert (move["rank"], move["best"]) == (1, "A5")
        assert move["winrate_after"] == pytest.approx(ONE_UP, abs=1e-5)
        assert (move["winrate_loss"], move["points_loss"], move["grade"]) == (0, 0, "good")

    def test_a_loss_is_against_the_networks_choice_not_against_the_position_before(self) -> None:
        # The network would take A5 and be ten points up; Black plays C3 and is not.
        (move,) = review("C3")["moves"]
        assert move["best"] == "A5"
        assert move["winrate_before"] == 0.5
        assert move["winrate_best"] == pytest.approx(ONE_UP, abs=1e-5)
        assert move["winrate_after"] == 0.5
        assert move["winrate_loss"] == pytest.approx(ONE_UP - 0.5, abs=1e-5)
        assert (move["lead_best"], move["lead_after"], move["points_loss"]) == (10, 0, 10)
        assert move["grade"] == "blunder"

    def test_white_sees_it_from_the_other_side(self) -> None:
        # After Black A5, White's first choice B5 takes nothing from Black, and neither does C3.
        white = review("A5", "C3")["moves"][1]
        assert white["player"] == "white"
        assert white["lead_before"] == white["lead_after"] == -10
        assert white["points_loss"] == 0
        assert white["winrate_after"] == pytest.approx(1 - ONE_UP, abs=1e-5)

    def test_positions_tell_the_side_to_move_and_its_numbers(self) -> None:
        positions = review("A5", "C3")["positions"]
        assert [p["to_play"] for p in positions] == ["black", "white", "black"]
        assert [p["lead"] for p in positions] == [0, -10, 10]
        assert positions[1]["stones"] == "B..../...../...../...../....."
        assert positions[2]["stones"].split("/")[2] == "..W.."
        assert positions[1]["ownership"][0] == [-0.25] * 5

    def test_policy_is_ranked_and_cut(self) -> None:
        policy = review("A5")["positions"][0]["policy"]
        assert list(policy)[:2] == ["A5", "B5"]
        assert list(policy.values()) == sorted(policy.values(), reverse=True)
        assert len(policy) <= 20
        assert min(policy.values()) >= 0.0005

    def test_a_ko_is_marked(self) -> None:
        moves = ["B3", "C3", "C4", "D4", "C2", "D2", "A1", "E3", "D3", "C3"]
        assert review(*moves)["positions"][-1]["ko"] == "D3"

    def test_mistakes_are_sorted_by_loss(self) -> None:
        result = review("C3", "C4", "A5", "D4", "D3")
        losses = [result["moves"][number - 1]["winrate_loss"] for number in result["mistakes"]]
        assert result["mistakes"]
        assert losses == sorted(losses, reverse=True)
        assert set(result["mistakes"]) == {m["number"] for m in result["moves"] if m["grade"] != "good"}

    def test_a_finished_game_ends_on_what_was_thought_before_the_last_pass(self) -> None:
        last, before = review("A5", "pass", "pass")["positions"][::-1][:2]
        assert last["outcome"]
        assert (last["lead"], last["win"]) == (-before["lead"], before["loss"])
        assert last["policy"] == {}

    def test_moves_played_on_after_two_passes_are_judged(self) -> None:
        result = review("A5", "pass", "pass", "C3")
        assert all("lead" in position for position in result["positions"])
        assert "outcome" not in result["positions"][3]

    def test_a_player_who_moves_twice_is_not_judged_for_the_skipped_turn(self) -> None:
        record = go_record("A5", "B5")
        twice = open_game(type(record)(**{**vars(record), "moves": (("B", "A5"), ("B", "C3"))}))
        second = review_game(twice, Judge(), NETWORK, OPTIONS)["moves"][1]
        assert second["player"] == "black"
        assert "prior" not in second
        assert "winrate_loss" not in second

    def test_the_judge_is_asked_once_a_position_and_once_a_choice_not_played(self) -> None:
        judge, told = Judge(), []
        game = open_game(go_record("A5", "C3", "B5"))
        review_game(game, judge, NETWORK, {**OPTIONS, "symmetry": "average"}, told.append, chunk=2)
        assert judge.asked == 4 + 1 + 0
        assert sum(told) == len(game.positions) + len(game.moves) == 7
        assert judge.symmetries == {"average"}


class TestChess:
    MATE = "1. f3 e5 2. g4 Qh4# 0-1"

    def review(self, text: str) -> dict:
        (record,) = read_pgn_text(f'[White "Ada"]\n[Black "Bo"]\n\n{text}\n')
        return review_game(open_game(record), Judge(), NETWORK, OPTIONS)

    def test_names_boards_and_check(self) -> None:
        result = self.review(self.MATE)
        assert [move["san"] for move in result["moves"]] == ["f3", "e5", "g4", "Qh4#"]
        assert [move["move"] for move in result["moves"]] == ["f2f3", "e7e5", "g2g4", "d8h4"]
        assert result["positions"][-1]["check"] == "e1"
        assert result["game"]["players"] == {"white": "Ada", "black": "Bo"}

    def test_mate_is_a_certain_result(self) -> None:
        last = self.review(self.MATE)["positions"][-1]
        assert (last["to_play"], last["win"], last["loss"], last["outcome"]) == ("white", 0, 1, "checkmate")

    def test_chances_count_draws_by_half(self) -> None:
        result = self.review(self.MATE)
        assert result["moves"][0]["winrate_after"] == pytest.approx(0.65)
        assert result["moves"][3]["winrate_after"] == 1
        assert result["moves"][3]["winrate_loss"] == pytest.approx(0.35 - 1)

    def test_san_of_the_networks_moves(self) -> None:
        first = self.review(self.MATE)["positions"][0]
        best = next(iter(first["policy"]))
        assert first["san"][best] in {"a3", "a4", "Na3", "Nc3", "b3", "h3", "h4", "b4", "Nf3", "Nh3", "c3", "d3", "e3"}


class TestKeyAndSummary:
    def test_the_key_follows_what_decides_the_review_and_nothing_else(self) -> None:
        key = review_key(open_game(go_record("A5", "C3")), "aa", OPTIONS)
        same = review_key(
            open_game(go_record("A5", "C3", players={"B": "X", "W": "Y"}, source="other.sgf")), "aa", OPTIONS
        )
        assert key == same
        others = [
            review_key(open_game(go_record("A5", "C2")), "aa", OPTIONS),
            review_key(open_game(go_record("A5", "C3")), "bb", OPTIONS),
            review_key(open_game(go_record("A5", "C3")), "aa", {**OPTIONS, "symmetry": 1}),
        ]
        assert len({key, *others}) == 4

    @pytest.mark.parametrize(
        ("loss", "name"), [(-0.3, "good"), (0.0499, "good"), (0.05, "inaccuracy"), (0.1, "mistake"), (0.2, "blunder")]
    )
    def test_grades(self, loss: float, name: str) -> None:
        assert grade(loss) == name

    def test_averages_count_gains_as_no_loss(self) -> None:
        moves = [
            {"winrate_loss": 0.2, "points_loss": 3.0, "rank": 1, "prior": 0.5, "grade": "blunder"},
            {"winrate_loss": -0.2, "points_loss": -3.0, "rank": 3, "prior": 0.1, "grade": "good"},
        ]
        summary = summarise(moves)
        assert (summary["mean_winrate_loss"], summary["mean_points_loss"]) == (0.1, 1.5)
        assert (summary["first_choice"], summary["among_three"], summary["mean_prior"]) == (0.5, 1.0, 0.3)
        assert (summary["blunders"], summary["mistakes"], summary["inaccuracies"]) == (1, 0, 0)

    def test_a_player_without_moves_has_no_averages(self) -> None:
        assert summarise([]) == {"moves": 0, "inaccuracies": 0, "mistakes": 0, "blunders": 0}
