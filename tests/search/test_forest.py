"""Evaluations kept for searches that meet a position again: what they are kept by, and that searches find the same."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keima
from keima.games.game import get_game
from keima.games.position import Position
from keima.search.expand import new_leaves
from keima.search.forest import HISTORY, keep, new_cache, recall
from keima.systems.lc0.inputs import INPUT_FORMATS, Lc0Encoding
from keima.systems.registry import SYSTEMS
from keima.training.selfplay import play
from keima.training.selfplay.play import Player, Players
from tests.training.selfplay.runs import by_number, evaluator, recipe

RUNS: dict[str, dict[str, Any]] = {
    "connect-four": {},
    "alphago-zero": {
        "network": {"name": "alphago-zero", "board_size": 5, "blocks": 1, "channels": 8},
        "games": {"max_moves": 30},
    },
    "katago": {
        "network": {"name": "katago-b6c96", "blocks": 1, "channels": 8},
        "games": {
            "size": [4, 5],
            "rules": ["chinese", "tromp-taylor"],
            "komi_stdev": 1.0,
            "fork": 0.9,
            "max_moves": 30,
        },
    },
    "lc0": {"network": {"name": "lc0", "blocks": 1, "channels": 8}, "games": {"max_moves": 20}},
}


@pytest.mark.parametrize("system", RUNS)
def test_games_are_the_same_whatever_was_evaluated_before(system: str, monkeypatch: pytest.MonkeyPatch):
    small = recipe(**RUNS[system])
    ev = evaluator(small)
    found, asked = [], []
    for memory in (0, 1 << 20):
        monkeypatch.setattr(play, "new_cache", lambda moves, memory=memory: new_cache(moves, memory))
        numbers = iter(range(40))
        players = Players(small, [Player(ev, 5)], lambda numbers=numbers: next(numbers, None))
        games = []
        while not players.idle:
            games += players.step()
        found.append(by_number(games, 40))
        asked.append(players.evaluations)
    assert len(found[0]) == 40
    assert found[0] == found[1]
    assert asked[1] < 0.9 * asked[0]


def key_of(position: Position) -> int:
    """Of a position's evaluation."""
    kernels = get_game(position.game).kernels
    return int(kernels.key(position.record[0], kernels.new_scratch(position.record)[0], HISTORY))


def orders(start: Position, first: list[str], then: list[str]) -> list[Position]:
    """The positions after the first moves in any order, each side's its own, and the others after them."""
    black, white = (itertools.permutations(first[side::2]) for side in (0, 1))
    lines = [[move for pair in zip(*both, strict=True) for move in pair] for both in itertools.product(black, white)]
    return [start.play(*line, *then) for line in lines]


GO = ["C3", "C5", "E3", "E5", "G3", "G5"], ["B7", "D7", "F7", "B8", "H2", "pass", "A1", "J9"]
CHESS = ["a2a3", "a7a6", "h2h3", "h7h6", "c2c3", "c7c6"], [
    "g1f3", "g8f6", "f3g1", "f6g8", "e2e3", "e7e6", "f1e2", "f8e7"]  # fmt: skip


@pytest.mark.parametrize(
    ("start", "moves"),
    [
        (keima.go.Position.start(9, "chinese", 7.0), GO),
        (keima.go.Position.start(9, "tromp-taylor", 7.0), GO),
        (keima.go.Position.start(9, "japanese", 6.5), GO),
        (keima.chess.Position.start(), CHESS),
    ],
    ids=["chinese", "tromp-taylor", "japanese", "chess"],
)
def test_positions_of_one_key_are_one_to_every_encoding(start: Position, moves: tuple[list[str], list[str]]):
    first, then = moves
    groups: dict[int, list[Position]] = {}
    for length in range(len(then) + 1):
        for position in orders(start, first, then[:length]):
            groups.setdefault(key_of(position), []).append(position)
    assert len(groups) > 2 * len(then)  # what was before counts,
    assert max(map(len, groups.values())) == 36  # if not too long ago
    encodings = [each for system in SYSTEMS.values() for each in system.encodings.values() if each.game == start.game]
    if start.game == "chess":
        encodings = [Lc0Encoding(number) for number in INPUT_FORMATS.values()]
    seen = 0
    for encoding in encodings:
        try:
            encoding.check(start)
        except keima.KeimaError:
            continue
        seen += 1
        for group in groups.values():
            for array in encoding.encode(group).inputs.values():
                assert (array == array[0]).all(), encoding.name
    assert seen > 1


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 99)), max_size=60))
def test_what_is_found_is_what_was_kept_last_under_a_key(kept: list[tuple[int, int]]):
    cache, leaves, known = new_cache(3, 16 * 44), new_leaves(1, 3), {}
    assert len(cache.keys) == 16
    leaves.counts[0], leaves.indices[0] = 2, [4, 0, 9]
    for key, number in kept:
        policy = np.arange(number, number + 5, dtype=np.float32)[None]
        keep(cache, np.uint64(key), leaves, policy, np.full((1, 6), -number, np.float32), 0)
        known = {each: said for each, said in known.items() if each % 16 != key % 16} | {key: number}
    for key in range(41):
        place = recall(cache, np.uint64(key))
        assert (place >= 0) == (key in known)
        if key in known:
            assert cache.logits[place, :2].tolist() == [known[key] + 4, known[key]]
            assert (cache.answers[place] == -known[key]).all()
