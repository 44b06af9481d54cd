"""A searched review: the search's numbers for the right player, variations that can be played, the same each time."""

from __future__ import annotations

from typing import Any

import pytest

from keima.errors import BadRequest, IllegalMove, UnsupportedPosition
from keima.games.chess.drawing import DRAWING
from keima.games.chess.records import read_pgn_text
from keima.games.go import Position
from keima.inference.evaluator import Evaluator
from keima.review.analysis import review_game, review_key, steps, summarise
from keima.review.games import ReviewGame, open_game
from keima.review.report import read_review, render_html, write_text
from keima.review.variations import after_best, against_search, check_search
from keima.search import MoveInfo, SearchResult
from tests.review.fakes import NETWORK, OPTIONS, go_record

SEARCH = {**OPTIONS, "visits": 12, "preset": "auto", "seed": 0}


def evaluator(name: str, **sizes: Any) -> Evaluator:
    import torch

    import keima

    torch.manual_seed(11)
    torch.set_num_threads(1)
    return Evaluator(keima.create(name, **sizes).eval(), backend="torch", precision="f32")


@pytest.fixture(scope="module")
def go() -> Evaluator:
    return evaluator("katago-b6c96", blocks=1)


@pytest.fixture(scope="module")
def chess() -> Evaluator:
    return evaluator("lc0-10x128", blocks=1, channels=8, se_channels=8)


MOVES = ("C3", "B4", "D2", "pass", "E1")


@pytest.fixture(scope="module")
def review(go: Evaluator) -> dict[str, Any]:
    return review_game(open_game(go_record(*MOVES)), go, NETWORK, SEARCH)


def open_chess(text: str) -> ReviewGame:
    (record,) = read_pgn_text(f"{text}\n")
    return open_game(record)


def chances(numbers: dict[str, Any], mine: bool) -> float:
    return (numbers["win"] if mine else numbers["loss"]) + numbers["draw"] / 2


class TestGo:
    def test_every_position_is_searched_with_the_visits_asked_for(self, review: dict[str, Any]) -> None:
        assert [position["visits"] for position in review["positions"]] == [12] * 6
        for position in review["positions"]:
            visits = [candidate["visits"] for candidate in position["candidates"]]
            assert 0 < sum(visits) <= 11
            assert len(visits) <= 10
            assert set(position["raw"]) >= {"win", "loss", "value", "lead"}
            assert len(position["ownership"]) == 5

    def test_variations_can_be_played(self, review: dict[str, Any]) -> None:
        for ply, position in enumerate(review["positions"]):
            for candidate in position["candidates"]:
                assert candidate["pv"][0] == candidate["move"]
                Position.start(5, "chinese", 7.5).play(*MOVES[:ply], *candidate["pv"])

    def test_a_loss_is_the_best_moves_value_less_the_next_positions(self, review: dict[str, Any]) -> None:
        lost = 0
        for move in review["moves"]:
            before, after = review["positions"][move["number"] - 1 : move["number"] + 1]
            best = before["candidates"][0]
            assert move["best"] == best["move"]
            assert move["winrate_after"] == pytest.approx(chances(after, mine=False), abs=2e-5)
            assert move["lead_after"] == -after["lead"]
            if move["move"] == best["move"]:
                assert (move["place"], move["winrate_loss"], move["points_loss"]) == (1, 0, 0)
                continue
            lost += 1
            assert move["place"] > 1
            if not move["visits"]:
                continue  # compared on equal terms, see the next test
            assert move["winrate_loss"] == pytest.approx(chances(best, mine=True) - move["winrate_after"], abs=3e-5)
            assert move["points_loss"] == pytest.approx(best["lead"] + after["lead"], abs=3e-5)
        assert lost

    def test_a_move_without_visits_is_judged_by_searches_of_its_own(
        self, go: Evaluator, review: dict[str, Any]
    ) -> None:
        from keima.search import search_batch

        unseen = [move for move in review["moves"] if not move["visits"]]
        assert unseen
        for move in unseen:
            assert move["after_visits"] == 12
            before = Position.start(5, "chinese", 7.5).play(*MOVES[: move["number"] - 1])
            (alone,) = search_batch(go, [before.play(move["best"])], visits=12)
            assert move["winrate_best"] == pytest.approx(
                alone.loss + alone.draw / 2, abs=0.02
            )  # the seed's place differs
            assert move["winrate_loss"] == pytest.approx(move["winrate_best"] - move["winrate_after"], abs=2e-5)

    def test_the_same_seed_gives_the_same_review(self, go: Evaluator, review: dict[str, Any]) -> None:
        assert review_game(open_game(go_record(*MOVES)), go, NETWORK, SEARCH) == review

    def test_a_page_gives_it_back(self, review: dict[str, Any], tmp_path: Any) -> None:
        write_text(tmp_path / "game.html", render_html(review))
        assert read_review(tmp_path / "game.html") == review

    def test_progress_adds_up(self, go: Evaluator) -> None:
        told: list[int] = []
        game = open_game(go_record("A5", "pass", "pass"))
        result = review_game(game, go, NETWORK, SEARCH, told.append)
        assert sum(told) == steps(game, SEARCH) == len(game.positions)
        assert "visits" not in result["positions"][-1]
        assert result["positions"][-1]["outcome"]

    def test_a_game_of_the_other_kind_is_refused(self, chess: Evaluator) -> None:
        with pytest.raises(UnsupportedPosition):
            review_game(open_game(go_record("A5")), chess, NETWORK, SEARCH)


class TestChess:
    def test_a_missed_mate_is_found_and_named(self, chess: Evaluator) -> None:
        # 1. Re8 is mate; the rook went to e7 instead.
        game = open_chess('[SetUp "1"]\n[FEN "6k1/5ppp/8/8/8/8/5PPP/4R1K1 w - - 0 1"]\n\n1. Re7 h6 *')
        review = review_game(game, chess, NETWORK, {**SEARCH, "visits": 200})
        best, missed = review["positions"][0]["candidates"][0], review["moves"][0]
        assert (best["pv_san"], best["pv"], best["mate"]) == (["Re8#"], ["e1e8"], 1)
        assert (missed["best"], missed["best_san"]) == ("e1e8", "Re8#")
        assert missed["winrate_best"] == 1
        assert missed["winrate_loss"] == pytest.approx(1 - missed["winrate_after"], abs=2e-5)
        assert missed["winrate_loss"] > 0.2
        assert review["mistakes"][0] == 1

    def test_a_game_that_ends_in_mate(self, chess: Evaluator) -> None:
        review = review_game(open_chess("1. f3 e5 2. g4 Qh4# 0-1"), chess, NETWORK, SEARCH)
        assert review["positions"][-1]["outcome"] == "checkmate"
        assert "candidates" not in review["positions"][-1]
        assert review["moves"][-1]["winrate_after"] == 1
        for position in review["positions"][:-1]:
            assert all(len(c["pv"]) == len(c["pv_san"]) for c in position["candidates"])

    def test_standard_notation_of_a_line_stops_where_it_cannot_go_on(self) -> None:
        start = open_chess("1. e4 *").positions[0]
        assert DRAWING.written(start, ["e2e4", "e7e5", "g1f3"]) == ["e4", "e5", "Nf3"]
        assert DRAWING.written(start, ["e2e4", "e2e4"]) == ["e4"]
        with pytest.raises(IllegalMove):
            start.play("e2e5")


def info(move: str, order: int, visits: int, value: float, lead: float | None = None) -> MoveInfo:
    return MoveInfo(move, order, visits, 0.5, value, (0.9 + value) / 2, 0.1, (0.9 - value) / 2, value, 0.0, lead)


class TestNumbers:
    RESULT = SearchResult(
        None, "C3", (info("C3", 0, 8, 0.5, 3.0), info("D4", 1, 3, -0.1, -2.0)), 12, 0.4, 0.6, 0.1, 0.3, 0.4,
        policy={"C3": 0.6, "D4": 0.4},
    )  # fmt: skip

    def test_the_best_move_is_told_to_the_other_side(self) -> None:
        judged = after_best(self.RESULT, "white")
        assert judged == {"to_play": "white", "win": 0.2, "draw": 0.1, "loss": 0.7, "value": -0.5, "lead": -3.0}

    def test_places(self) -> None:
        facts = against_search(Position.start(5), "D4", self.RESULT)
        assert facts == {"visits": 3, "place": 2, "best": "C3", "best_prior": 0.6, "best_visits": 8}
        unseen = against_search(Position.start(5), "A1", self.RESULT)
        assert (unseen["visits"], unseen["place"]) == (0, 3)

    def test_summaries_count_by_the_searchs_order(self) -> None:
        moves = [{"rank": 1, "place": 2, "prior": 0.5}, {"rank": 9, "place": 1, "prior": 0.1}]
        summary = summarise(moves)
        assert (summary["first_choice"], summary["among_three"]) == (0.5, 1.0)


class TestOptions:
    def test_the_key_tells_searches_apart_and_from_the_network_alone(self) -> None:
        game = open_game(go_record("A5"))
        options = [OPTIONS, SEARCH, {**SEARCH, "visits": 13}, {**SEARCH, "preset": "lc0"}, {**SEARCH, "seed": 1}]
        assert len({review_key(game, "aa", chosen) for chosen in options}) == 5

    @pytest.mark.parametrize(("change", "word"), [({"visits": 1}, "at least 2"), ({"preset": "zen"}, "zen")])
    def test_wrong_ones_are_refused(self, change: dict[str, Any], word: str) -> None:
        with pytest.raises(BadRequest, match=word):
            check_search({**SEARCH, **change})
