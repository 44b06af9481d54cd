"""Elo, intervals and SPRT against fishtest's own figures, Newcombe's published table, and brute force."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.elo import Sprt, Tally, elo_of, expected_score, wilson
from keima.errors import BadRequest

# Units (pairs or games) from A's worst result to the best → elo, half the 95 % interval, superiority, and the LLR of
# (0, 10), (−5, 5), (0, 35). Made with fishtest's `stat_util.get_elo` and `LLRcalc.LLR_logistic`.
FISHTEST = [
    ([10, 20, 40, 25, 15], (23.7256, 37.326055, 0.895181), (0.518128, 0.654275, 0.603612)),
    ([3, 5, 14, 6, 2], (-5.791129, 63.885082, 0.428693), (-0.104333, -0.055961, -0.77786)),
    ([2, 3, 5, 4, 1], (-11.585478, 101.695231, 0.409116), (-0.066011, -0.045993, -0.405343)),
    ([12042, 78, 13000, 80, 12500], (4.23026, 2.832108, 0.998294), (-3.685115, 20.25995, -221.782489)),
    ([120, 200, 180], (41.89414, 23.683084, 0.999773), (2.537487, 2.877935, 5.877189)),
    ([20, 0, 80], (240.820739, 89.022653, 1.0), (1.68554, 1.726956, 5.537786)),
]
FISHTEST_LLR_ONLY = ([0, 0, 0, 2, 18], (0.567389, 0.575673, 1.913529))


def tally_of(units: list[int]) -> Tally:
    """A tally with those units; half points of pairs count as draws."""
    if len(units) == 3:
        return Tally(units[2], units[1], units[0])
    games, halves = 2 * sum(units), sum(index * count for index, count in enumerate(units))
    draws = units[1] + units[3]
    wins = (halves - draws) // 2
    return Tally(wins, draws, games - wins - draws, (units[0], units[1], units[2], units[3], units[4]))


@pytest.mark.parametrize(("units", "elo", "ratios"), FISHTEST)
def test_fishtest_says_the_same(units, elo, ratios):
    tally = tally_of(units)
    low, high = tally.elo_interval
    # fishtest counts 0.001 of each result that has not occurred; we do so in the LLR only
    assert (tally.elo, (high - low) / 2, tally.superiority) == pytest.approx(elo, rel=1e-4)
    for (elo0, elo1), ratio in zip(((0, 10), (-5, 5), (0, 35)), ratios, strict=True):
        assert Sprt(elo0, elo1).ratio(tally) == pytest.approx(ratio, abs=1e-5)


def test_fishtest_says_the_same_of_a_rout():
    units, ratios = FISHTEST_LLR_ONLY
    found = [Sprt(elo0, elo1).ratio(tally_of(units)) for elo0, elo1 in ((0, 10), (-5, 5), (0, 35))]
    assert found == pytest.approx(ratios, abs=1e-5)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_as_published(successes, trials, low, high):
    assert wilson(successes / trials, trials) == pytest.approx((low, high), abs=5e-5)
    assert Tally(successes, 0, trials - successes).score_interval == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("elo", "score"), [(0, 0.5), (100, 0.640065), (400, 10 / 11), (-400, 1 / 11)])
def test_logistic_elo(elo, score):
    assert expected_score(elo) == pytest.approx(score, abs=1e-6)
    assert elo_of(score) == pytest.approx(elo, abs=1e-3)


def test_every_point_to_one_side():
    tally = Tally(40, 0, 0, (0, 0, 0, 0, 20))
    assert tally.elo == math.inf
    assert tally.score_interval == pytest.approx((40 / (40 + 1.959964**2), 1.0), abs=1e-6)
    assert tally.elo_interval == (pytest.approx(elo_of(tally.score_interval[0])), math.inf)
    assert tally.superiority == 1 - 0.5**21


def test_nothing_played():
    tally = Tally()
    assert (tally.elo, tally.score_interval, tally.superiority) == (0.0, (0.0, 1.0), 0.5)
    assert tally.elo_interval == (-math.inf, math.inf)
    assert Sprt().verdict(tally) is None


def test_pairs_that_always_split_tell_less_than_chance_would():
    """Colours decide every game: the score is known exactly, so far as pairs go; Wilson's interval is not fooled."""
    split = Tally(50, 0, 50, (0, 0, 50, 0, 0))
    assert split.standard_error == 0
    assert split.score_interval == pytest.approx(wilson(0.5, 100))
    assert split.elo_interval == pytest.approx((elo_of(wilson(0.5, 100)[0]), elo_of(wilson(0.5, 100)[1])))


def test_pairs_that_go_the_same_way_widen_the_interval():
    alike = Tally(50, 0, 50, (25, 0, 0, 0, 25))
    low, high = alike.score_interval
    assert (low, high) == pytest.approx(wilson(0.5, 50))  # each pair tells no more than one game


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 60), min_size=5, max_size=5).filter(any))
def test_the_other_side_sees_the_mirror(units):
    ours, theirs = tally_of(units), tally_of(units[::-1])
    assert theirs.score == pytest.approx(1 - ours.score)
    low, high = ours.score_interval
    assert theirs.score_interval == pytest.approx((1 - high, 1 - low))
    assert theirs.superiority == pytest.approx(1 - ours.superiority)
    assert Sprt(-5, 5).ratio(theirs) == pytest.approx(-Sprt(-5, 5).ratio(ours), abs=1e-6)


def test_ratio_by_brute_force():
    """The likeliest win–draw–loss distribution of each mean, searched on a grid."""
    losses, draws, wins = 30, 50, 40

    def best(mean):
        found = -math.inf
        for step in range(1, 20000):
            draw = step / 20000
            win = mean - draw / 2
            loss = 1 - win - draw
            if win > 0 and loss > 0:
                found = max(found, losses * math.log(loss) + draws * math.log(draw) + wins * math.log(win))
        return found

    expected = best(expected_score(20)) - best(expected_score(-10))
    assert Sprt(-10, 20).ratio(Tally(wins, draws, losses)) == pytest.approx(expected, abs=1e-4)


def test_verdicts_and_bounds():
    test = Sprt(0, 50)
    assert (test.lower, test.upper) == pytest.approx((-2.944439, 2.944439), abs=1e-6)
    assert test.verdict(Tally(300, 0, 100)) == "H1"
    assert test.verdict(Tally(100, 0, 300)) == "H0"
    assert test.verdict(Tally(3, 0, 2)) is None


@pytest.mark.parametrize("wrong", [(5, 5, 0.05, 0.05), (0, math.inf, 0.05, 0.05), (0, 5, 0, 0.05), (0, 5, 0.05, 0.7)])
def test_impossible_tests_are_refused(wrong):
    with pytest.raises(BadRequest):
        Sprt(*wrong)


def test_errors_of_the_test_keep_their_promise():
    """Exactly: the chance that a match of at most 60 games between equals ends in H1 stays near alpha."""
    test = Sprt(0, 200, alpha=0.05, beta=0.05)
    verdicts = {(wins, losses): test.verdict(Tally(wins, 0, losses)) for wins, losses in product(range(61), repeat=2)}
    paths, accepted = {(0, 0): 1.0}, 0.0
    for _ in range(60):
        following: dict[tuple[int, int], float] = {}
        for (wins, losses), chance in paths.items():
            for state in ((wins + 1, losses), (wins, losses + 1)):
                if verdicts[state] == "H1":
                    accepted += chance / 2
                elif verdicts[state] is None:
                    following[state] = following.get(state, 0.0) + chance / 2
        paths = following
    assert accepted < 0.055
