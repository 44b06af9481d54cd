"""Elo of generations against known strengths and closed forms; who plays; the picture."""

from __future__ import annotations

import json

import numpy as np
import pytest

import keima
from keima.elo import elo_of, expected_score
from keima.errors import BadStore
from keima.training.selfplay.networks import publish
from keima.training.selfplay.ratings import (
    Rating,
    Result,
    best_network,
    draw_curve,
    list_ratings,
    rate,
    read_rating,
    write_rating,
)
from keima.training.selfplay.store import Store
from tests.training.selfplay.runs import recipe


def test_one_pairing_is_the_formula_with_the_drawn_game():
    """30 wins, 10 draws, 20 losses, and the prior's drawn game: 35.5 of 61."""
    found = rate([Rating(1, (Result(0, 30, 10, 20),))])
    assert found[0].elo == found[0].half == 0
    assert found[1].elo == pytest.approx(elo_of(35.5 / 61), abs=1e-6)
    score = 35.5 / 61
    error = 400 / np.log(10) / np.sqrt(61 * score * (1 - score))  # of a logit, by Fisher's information
    assert found[1].half == pytest.approx(1.959964 * error, rel=1e-6)


def test_a_chain_adds_up():
    """Without a circle each link stands by itself."""
    found = rate([Rating(1, (Result(0, 40, 0, 20),)), Rating(2, (Result(1, 45, 0, 15),))])
    links = elo_of(40.5 / 61), elo_of(45.5 / 61)
    assert found[1].elo == pytest.approx(links[0], abs=1e-6)
    assert found[2].elo == pytest.approx(sum(links), abs=1e-6)
    assert found[2].half > found[1].half


def test_known_strengths_are_found_again():
    """Simulated results of twelve generations and a fixed opponent: within their intervals about as often as said."""
    rng = np.random.default_rng(5)
    inside = total = 0
    for _ in range(20):
        true = {0: 0.0, **{k: 60.0 * k + float(rng.normal(0, 30)) for k in range(1, 13)}, "fixed.bin.gz": 300.0}
        ratings = []
        for k in range(1, 13):
            results = []
            for other in dict.fromkeys((k - 1, k // 2, "fixed.bin.gz")):
                wins = int(rng.binomial(100, expected_score(true[k] - true[other])))
                results.append(Result(other, wins, 0, 100 - wins))
            ratings.append(Rating(k, tuple(results)))
        found = rate(ratings)
        assert found.keys() == true.keys()
        assert max(abs(found[player].elo - true[player]) for player in true) < 200
        inside += sum(abs(found[player].elo - true[player]) <= found[player].half for player in true if player != 0)
        total += len(true) - 1
    assert 0.9 <= inside / total <= 0.99


def test_everything_lost_and_nobody_linked():
    found = rate([Rating(1, (Result(0, 64, 0, 0),)), Rating(5, (Result(4, 10, 0, 0),))])
    assert found.keys() == {0, 1}
    assert found[1].elo == pytest.approx(elo_of(64.5 / 65), abs=1e-6)
    assert rate([]).keys() == {0}


def test_ratings_are_kept_once(tmp_path):
    store = Store(tmp_path)
    rating = Rating(
        3, (Result(2, 3, 1, 0, (0, 0, 0, 1, 1)), Result("x/b.bin.gz", 0, 0, 4, (2, 0, 0, 0, 0))), False, "H0"
    )
    assert write_rating(store, rating)
    assert not write_rating(store, Rating(3, ()))
    assert list_ratings(store) == [3]
    assert read_rating(store, 3) == rating
    written = json.loads(store.read("ratings/000003.json"))["results"]
    assert written[0]["elo"] == pytest.approx(elo_of(3.5 / 4), abs=0.05)
    assert written[1]["elo"] is None
    store.write("ratings/000004.json", b'{"generation": 4}')
    with pytest.raises(BadStore, match="is no rating"):
        read_rating(store, 4)


def test_who_plays(tmp_path):
    store, newest, gated = Store(tmp_path), recipe(), recipe(judge={"gate": True, "games": 8})
    assert best_network(store, newest) is None
    network = keima.create("connect-four", blocks=1, channels=4, value_hidden=4)
    for generation in range(4):
        publish(store, generation, network, generation, lambda: None)
    store.write("networks/000004.safetensors", b"not valid yet")
    assert best_network(store, newest) == 3
    assert best_network(store, gated) == 0
    write_rating(store, Rating(1, (), True))
    write_rating(store, Rating(2, (), False))
    assert best_network(store, gated) == 1
    assert best_network(store, newest) == 3


def test_the_picture_shows_what_there_is(tmp_path):
    store = Store(tmp_path)
    assert not draw_curve(store)
    network = keima.create("connect-four", blocks=1, channels=4, value_hidden=4)
    for generation in range(3):
        publish(store, generation, network, generation, lambda: None)
        facts = {"games": 100 * generation, "positions": 3000 * generation, "window_positions": 2000 * generation}
        store.write(f"windows/{generation:06d}.json", json.dumps(facts).encode())
    assert draw_curve(store)
    before = store.read("curve.png")
    assert before.startswith(b"\x89PNG")
    write_rating(store, Rating(1, (Result(0, 6, 1, 1),)))
    assert draw_curve(store)
    assert store.read("curve.png") != before
