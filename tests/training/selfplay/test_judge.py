"""The judge: who meets whom, what counts, when a generation is accepted, and that being killed changes nothing."""

from __future__ import annotations

import random

import pytest
import torch

import keima
from keima.elo import Sprt, Tally, expected_score
from keima.games.connect_four.position import Position
from keima.games.playing import Verdict
from keima.training.selfplay.checks import write_run
from keima.training.selfplay.game import SelfplayGame
from keima.training.selfplay.judge import Record, decide, judge, opponents_of
from keima.training.selfplay.networks import publish
from keima.training.selfplay.play import Players
from keima.training.selfplay.ratings import list_ratings, read_rating
from keima.training.selfplay.recipe import read_loop
from keima.training.selfplay.store import Store

RECIPE = """
network = {name = "connect-four", blocks = 1, channels = 8, value_hidden = 8}
search = {visits = 8}
games = {side_by_side = 8}
window = {steps = 4, first = 60}
judge = {games = 8, every = 2, gate = true}
optimizer = {learning_rate = 0.05}
run = {steps = 16, batch_size = 16, threads = 1, seed = 3}
"""


def run_of(folder, *overrides: str) -> Store:
    """A finished run of five generations of random networks."""
    (folder / "recipe.toml").write_text(RECIPE)
    store = Store(folder / "run")
    write_run(store, read_loop(folder / "recipe.toml", overrides), overrides)
    for generation in range(5):
        torch.manual_seed(generation)
        publish(store, generation, keima.create("connect-four", blocks=1, channels=8, value_hidden=8), 0, lambda: None)
        if generation:
            facts = f'{{"games": {generation}, "positions": {generation}, "window_positions": {generation}}}'
            store.write(f"windows/{generation:06d}.json", facts.encode())
    store.write("done.json", b"{}")
    return store


def ratings(store: Store) -> dict[str, bytes]:
    return {name: store.read(name) for name in store.list("ratings")}


def test_every_second_generation_meets_the_accepted_one_and_two_others(tmp_path):
    told = []
    store = run_of(tmp_path)
    judge(store, tmp_path / "judge", told.append)
    assert list_ratings(store) == [2, 4]
    second, fourth = read_rating(store, 2), read_rating(store, 4)
    assert [result.opponent for result in second.results] == [0]
    assert [result.opponent for result in fourth.results] == ([2] if second.accepted else [0, 2])
    for rating in (second, fourth):
        assert rating.reason
        for result in rating.results:
            assert result.wins + result.draws + result.losses == 2 * sum(result.pairs) <= 8
    assert told[-1]["generation"] == 4
    assert list((tmp_path / "judge").iterdir()) == []
    judge(store, tmp_path / "judge")
    assert read_rating(store, 4) == fourth


def test_killed_within_a_match_it_says_the_same(tmp_path, monkeypatch):
    (tmp_path / "whole").mkdir()
    (tmp_path / "broken").mkdir()
    whole, broken = run_of(tmp_path / "whole"), run_of(tmp_path / "broken")
    judge(whole, tmp_path / "whole" / "judge")

    class Killed(BaseException):
        pass

    step = Players.step
    for stop in (15, 40):
        left = stop

        def killed(self):
            nonlocal left
            left -= 1
            if not left:
                raise Killed
            return step(self)

        with monkeypatch.context() as patch:
            patch.setattr(Players, "step", killed)
            with pytest.raises(Killed):
                judge(broken, tmp_path / "broken" / "judge")
    judge(broken, tmp_path / "broken" / "judge")
    assert ratings(broken) == ratings(whole)


def test_points_are_the_first_networks_and_pairs_count_in_order():
    """Side 0 is the first network's in games of even numbers."""
    record = Record()
    start = Position.start()
    for number, winner in ((0, 0), (3, 1), (2, 1), (1, 1), (5, None)):
        record.add(SelfplayGame(number, start, start, verdict=Verdict(winner, "", "")))
    assert record.tally == Tally(3, 0, 1, (0, 0, 1, 0, 1))
    record.add(SelfplayGame(4, start, start, verdict=Verdict(None, "", "")))
    assert record.tally == Tally(3, 2, 1, (0, 0, 2, 0, 1))


def test_opponents():
    assert opponents_of(1, 1) == [0]
    assert opponents_of(2, 1) == [1]
    assert opponents_of(9, 1) == [8, 4]
    assert opponents_of(20, 4) == [16, 8]
    assert opponents_of(4, 4) == [0]


@pytest.mark.parametrize(("elo", "least", "most"), [(0, 0, 0.15), (35, 0.85, 1)])
def test_it_errs_as_seldom_as_it_says(elo, least, most):
    """Simulated pairs without a limit: alpha and beta are 5 %."""
    rng = random.Random(7)
    test, accepted, runs = Sprt(0, 35), 0, 60
    for _ in range(runs):
        tally = Tally()
        while test.verdict(tally) is None:
            points = [sum(rng.random() < expected_score(elo) for _ in range(2)) for _ in range(20)]
            pairs = [before + points.count(k / 2) for k, before in enumerate(tally.pairs)]
            tally = Tally(tally.wins + sum(points), 0, tally.losses + 40 - sum(points), tuple(pairs))
        accepted += decide(test, tally)[0]
    assert least <= accepted / runs <= most


def test_a_match_ends_with_the_pair_that_decides():
    test, start = Sprt(0, 35), Position.start()
    record = Record(test)
    for number in range(200):
        winner = number % 2 if number % 8 else 1 - number % 2  # the first network loses every eighth
        record.add(SelfplayGame(number, start, start, verdict=Verdict(winner, "", "")))
    assert record.over
    assert record.tally.games < 200
    assert test.verdict(record.tally) == "H1"
    pairs = (*record.tally.pairs[:4], record.tally.pairs[4] - 1)
    assert test.verdict(Tally(record.tally.wins - 2, 0, record.tally.losses, pairs)) is None


def test_undecided_the_likelier_holds():
    test = Sprt(0, 35)
    better, worse = Tally(30, 0, 24, (3, 0, 18, 0, 6)), Tally(24, 0, 30, (6, 0, 18, 0, 3))
    assert decide(test, better)[0]
    assert not decide(test, worse)[0]
    assert decide(test, better)[1].startswith("undecided after 54 games")
    assert decide(test, Tally(200, 0, 100, (20, 0, 60, 0, 70)))[1].startswith("H1")
