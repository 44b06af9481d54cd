"""Games by search, many side by side: each is what it would be alone, and what the rules allow."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from keima.errors import BadStore
from keima.games.game import get_game
from keima.games.go.rules import Rules
from keima.training.selfplay.game import FAST, FULL, OPENING
from keima.training.selfplay.journal import Journal
from keima.training.selfplay.play import Player, Players
from tests.training.selfplay.runs import by_number, evaluator, play, recipe, started, told


def test_a_game_is_the_same_whatever_is_played_beside_it():
    ev = evaluator(recipe())
    alone, many = recipe(games={"side_by_side": 2}), recipe(games={"side_by_side": 14})
    one = by_number(list(play(started(alone, ev), 6)), 4)
    assert len(one) == 4
    other = by_number(list(play(started(many, ev), 14)), 4)
    assert {number: other[number] for number in one} == one


def test_games_in_another_order_by_two_workers_are_the_same():
    small = recipe()
    ev = evaluator(small)
    whole = by_number(list(play(started(small, ev), 12)), 6)
    halves = {}
    for first in (0, 1):
        numbers = iter(range(first, 8, 2))
        players = Players(small, [Player(ev, 5)], lambda numbers=numbers: next(numbers, None))
        halves |= by_number(list(play(players, 4)), 6)
        assert players.idle
    assert {number: halves[number] for number in whole} == whole


@pytest.mark.parametrize("options", [{}, {"fork": 0.9, "opening_plies": 2.0}])
def test_a_worker_that_was_killed_goes_on_with_the_same_games(tmp_path: Path, options: dict[str, float]):
    small = recipe(games=options)
    ev = evaluator(small)
    whole = by_number(list(play(started(small, ev), 24)), 8)
    path = tmp_path / "journal"
    kept = Journal(path)
    players = started(small, ev, kept)
    counter = itertools.count(8 if not options else 0)
    for _ in range(150):
        players.step()
    kept._stream.close()
    # Killed here. What it held comes back, and the numbers nobody has begun are given out.
    with path.open("ab") as stream:
        stream.write(b'{"n": 3, "m": "d", "k"')
    journal = Journal(path)
    held = set(journal.games)
    assert held
    rest = (number for number in counter if number not in held)
    again = by_number(list(play(Players(small, [Player(ev, 5)], lambda: next(rest), journal), 24)), 8)
    journal.close()
    assert {number: again[number] for number in whole} == whole


def test_what_is_forgotten_does_not_come_back(tmp_path: Path):
    small = recipe()
    journal = Journal(tmp_path / "journal")
    ended = list(play(started(small, evaluator(small), journal), 3))
    journal.forget(game.number for game in ended)
    journal.close()
    again = Journal(tmp_path / "journal")
    assert not {game.number for game in ended} & set(again.games)
    again.close()


def test_a_damaged_journal_is_named(tmp_path: Path):
    (tmp_path / "journal").write_bytes(b'{"n": 1, "m": "d", "k": 2, "v": 0.5, "g": 1}\nnonsense\n')
    with pytest.raises(BadStore, match="line 2"):
        Journal(tmp_path / "journal")


def test_targets_are_distributions_over_legal_moves_and_games_follow_the_rules():
    small = recipe()
    for game in play(started(small, evaluator(small)), 8):
        kernels, position = get_game("connect_four").kernels, game.start
        for ply in game.plies:
            legal = {kernels.code(position, name) for name in position.legal()}
            assert ply.kind == FULL
            assert set(ply.moves.tolist()) <= legal
            assert ply.weights.sum() == pytest.approx(1, abs=1e-5)
            assert -1 <= ply.value <= 1
            position = position.play(ply.move)
        assert position.result == game.position.result == game.verdict.result  # type: ignore[union-attr]


def test_fast_searches_teach_no_policy():
    small = recipe(search={"fast_visits": 3, "full_share": 0.25})
    plies = [ply for game in play(started(small, evaluator(small)), 8) for ply in game.plies]
    kinds = np.array([ply.kind for ply in plies])
    assert 0.1 < (kinds == FULL).mean() < 0.4
    assert all((len(ply.moves) > 0) == (ply.kind == FULL) for ply in plies)
    assert set(kinds.tolist()) == {FAST, FULL}


def test_forks_leave_their_parents_at_a_random_move():
    small = recipe(games={"fork": 0.99})
    games = {game.number: game for game in play(started(small, evaluator(small)), 24)}
    forks = 0
    for number, game in games.items():
        parent = games.get(number - 1)
        kinds = [ply.kind for ply in game.plies]
        if number % 2 and parent is not None and kinds[0] == OPENING and FULL in kinds:
            common = kinds.index(FULL)
            mine, theirs = ([ply.move for ply in each.plies] for each in (game, parent))
            assert mine[: common - 1] == theirs[: common - 1]
            assert mine[common - 1] != theirs[common - 1] or len(set(theirs)) == 1
            forks += 1
    assert forks > 3


def test_who_resigns_loses_and_games_played_out_show_whether_that_was_right():
    small = recipe(games={"resign": 0.05, "play_out": 0.5})
    games = list(play(started(small, evaluator(small), resign=0.05), 16))
    resigned = [game for game in games if game.verdict and game.verdict.reason == "resignation"]
    assert resigned
    assert not any(game.played_out for game in resigned)
    for game in resigned:
        loser = game.position.to_play
        assert game.verdict is not None
        assert game.verdict.winner == 1 - int(loser == "2")
    assert all(game.position.is_over for game in games if game.played_out)


def test_a_match_plays_each_opening_with_both_colours():
    small = recipe()
    numbers = iter(range(16))
    networks = [Player(evaluator(small, seed), seed) for seed in (1, 2)]
    games = {game.number: game for game in play(Players(small, networks, lambda: next(numbers, None)), 16)}
    assert len(games) == 16
    for pair in range(8):
        first, second = games[2 * pair], games[2 * pair + 1]
        openings = [[ply.move for ply in game.plies if ply.kind == OPENING] for game in (first, second)]
        assert openings[0] == openings[1] != []
        at = len(openings[0])
        for game, generations in ((first, (1, 2)), (second, (2, 1))):
            for ply, searched in enumerate(game.plies[at:], at):
                assert searched.network == generations[ply % 2]


def test_go_with_komi_by_chance():
    network = {"name": "alphago-zero", "blocks": 1, "channels": 8, "board_size": 5, "value_hidden": 8}
    games = {"komi": [3.5], "komi_stdev": 2.0, "rules": "tromp-taylor", "max_moves": 30}
    small = recipe(network=network, search={"visits": 4}, games=games)
    found = list(play(started(small, evaluator(small)), 8))
    komi = {game.start.to_json()["komi"] for game in found}
    assert len(komi) > 2
    assert all(float(each) * 2 % 1 == 0 for each in komi)  # type: ignore[arg-type]
    for game in found:
        assert len(game.plies) <= 30
        assert game.verdict is not None


def test_boards_of_several_sizes_and_rules_side_by_side():
    network = {"name": "katago-b6c96", "blocks": 1, "channels": 16}
    rules = ["chinese", "tromp-taylor"]
    games = {"size": [4, 5], "rules": rules, "max_moves": 12, "side_by_side": 4, "fork": 0.5}
    small = recipe(network=network, search={"visits": 3}, games=games)
    found = {game.number: game for game in play(started(small, evaluator(small)), 12)}
    for number, game in found.items():
        assert game.start.to_json()["xsize"] == game.position.to_json()["xsize"] == [4, 5][number // 2 % 2]
        assert game.position.rules == Rules.parse(rules[number // 4 % 2])  # type: ignore[attr-defined]
    assert {number // 2 % 2 for number in found} == {0, 1}


def test_games_share_evaluations_if_they_began_alike_and_else_none():
    network = {"name": "katago-b6c96", "blocks": 1, "channels": 8}
    games = {"size": [3], "rules": ["chinese", "aga"], "komi_stdev": 1.0, "max_moves": 8, "fork": 0.99}
    small = recipe(network=network, search={"visits": 2}, games=games)
    players = started(small, evaluator(small))
    found = set()
    while players.games < 80:
        players.step()
        slots = [slot for group in players._groups for slot in group.slots if slot.game is not None]
        found |= {(slot.salt, str(slot.game.start.to_json())) for slot in slots if slot.game is not None}
    assert len(found) > 4
    assert len(found) == len({salt for salt, _ in found}) == len({start for _, start in found})


def test_a_fork_that_was_killed_before_its_own_move_still_leaves_its_parent(tmp_path: Path):
    small = recipe(games={"fork": 0.99})
    ev = evaluator(small)
    games = {game.number: game for game in play(started(small, ev), 24)}
    number, at = next(
        (number, kinds.index(FULL) - 1)
        for number, game in sorted(games.items())
        if number % 2 and number - 1 in games and FULL in (kinds := [ply.kind for ply in game.plies])[2:]
        if kinds[1] == OPENING
    )
    path, parent, fork = tmp_path / "journal", games[number - 1], games[number]
    before = Journal(path)
    for each, plies in ((parent, parent.plies), (fork, fork.plies[:at])):
        for ply in plies:
            before.add(each.number, ply)
    assert parent.verdict is not None
    before.end(parent.number, parent.verdict)
    before._stream.close()
    journal = Journal(path)
    again = {game.number: game for game in play(Players(small, [Player(ev, 5)], lambda: None, journal), 2)}
    journal.close()
    assert told(again[number]) == told(fork)
