"""The rollout policy: incremental features equal those from scratch, its numbers follow its weights, games end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import BadRequest, UnsupportedPosition
from keima.games.go import Position
from keima.games.go.board import BLACK, PASS_LOC, WHITE
from keima.games.go.vertices import loc_to_vertex
from keima.systems.alphago.local_features import (
    ROLLOUT,
    apply_local_features,
    response_code,
    response_key,
    rollout_play,
    start_rollout,
    undo_local_features,
)
from keima.systems.alphago.rollout import RolloutPolicy, choose_move


def random_policy(seed: int) -> RolloutPolicy:
    rng = np.random.default_rng(seed)
    return RolloutPolicy(
        patterns={int(code): float(rng.normal()) for code in rng.integers(0, 1 << 24, 5000)},
        nakade=rng.normal(size=8192).astype(np.float32),
        neighbour=rng.normal(size=8).astype(np.float32),
        save_atari=1.5,
    )


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(5, 5), (9, 9), (7, 4), (19, 19)]))
def test_incremental_features_equal_those_from_scratch(seed: int, size: tuple[int, int]) -> None:
    policy = random_policy(seed)
    tables = policy.weights[0]
    position = Position.start(size)
    board = position.board.copy()
    kept, fresh = np.zeros(2, ROLLOUT).reshape(2, 1)
    start_rollout(board[0], position.history[0], kept[0], tables)
    random = np.array([seed + 1], np.uint64)
    colour = BLACK
    for _ in range(60):
        loc = choose_move(board[0], kept[0], tables, colour, random)
        position = position.play_as("B" if colour == BLACK else "W", loc_to_vertex(int(loc), *size))
        rollout_play(board[0], kept[0], tables, loc, colour)
        start_rollout(position.board[0], position.history[0], fresh[0], tables)
        for name in ("state", "previous", "captured_count"):
            assert np.array_equal(kept[name], fresh[name]), name
        on_board = (kept["state"][0] == 0) & (position.board["stones"][0] == 0)
        assert np.array_equal(kept["code"][0][:, on_board], fresh["code"][0][:, on_board])
        assert np.array_equal(kept["weight"], fresh["weight"])
        assert np.array_equal(kept["row"], fresh["row"])
        colour = BLACK + WHITE - colour
        if position.is_over:
            break


def test_local_features_are_undone_exactly() -> None:
    policy = random_policy(3)
    position = Position.start(9).play("E5", "E6", "D6", "D5")
    state = np.zeros(1, ROLLOUT)
    start_rollout(position.board[0], position.history[0], state[0], policy.weights[0])
    before = state.copy()
    apply_local_features(position.board[0], state[0], policy.weights[0], BLACK)
    assert not np.array_equal(state["weight"], before["weight"])
    undo_local_features(position.board[0], state[0], policy.weights[0], BLACK)
    assert np.array_equal(state["weight"], before["weight"])
    assert np.array_equal(state["row"], before["row"])
    assert not state["dirty"].any()


def test_without_weights_all_sensible_moves_are_alike() -> None:
    probabilities = RolloutPolicy().probabilities(Position.start(9).play("E5"))
    assert len(probabilities) == 80
    assert set(np.round(list(probabilities.values()), 9)) == {round(1 / 80, 9)}


def test_a_neighbour_weight_multiplies_the_odds() -> None:
    weights = np.zeros(8, np.float32)
    weights[4] = np.log(10)  # the point to the right of the previous move
    probabilities = RolloutPolicy(neighbour=weights).probabilities(Position.start(9).play("E5"))
    assert probabilities["F5"] == pytest.approx(10 / 89, rel=1e-6)
    assert probabilities["D5"] == pytest.approx(1 / 89, rel=1e-6)


def test_a_known_response_counts_even_with_no_weight_of_its_own() -> None:
    position = Position.start(9).play("E5")
    state = np.zeros(1, ROLLOUT)
    start_rollout(position.board[0], position.history[0], state[0], RolloutPolicy().weights[0])
    key = response_key(response_code(state[0], WHITE, 10), 4)  # the point to the right, in just this diamond
    policy = RolloutPolicy(responses={int(key): 0.0}, response=float(np.log(10)))
    assert policy.probabilities(position)["F5"] == pytest.approx(10 / 89, rel=1e-6)


def test_save_atari_runs_out_or_captures() -> None:
    hunted = Position.start(9, black=["E5"], white=["E4", "D5"], to_play="W").play("F5")
    policy = RolloutPolicy(save_atari=float(np.log(50)))
    probabilities = policy.probabilities(hunted)
    assert max(probabilities, key=lambda move: probabilities[move]) == "E6"


def test_never_fills_an_eye_or_commits_suicide() -> None:
    alive = Position.start((4, 3), black=["A2", "B2", "B1", "B3", "A3"], white=["C1", "C2", "C3"], to_play="B")
    assert "A1" not in RolloutPolicy().probabilities(alive)
    dead = Position.start((3, 3), black=["A2", "B1", "B2", "C2"], to_play="W")
    assert "A1" not in RolloutPolicy().probabilities(dead)


def test_the_same_seed_plays_the_same_games() -> None:
    policy = random_policy(1)
    first, second = (policy.play_out(Position.start(9), games=20, seed=7) for _ in range(2))
    assert np.array_equal(first.scores, second.scores)
    assert first.moves == second.moves
    assert not np.array_equal(first.scores, policy.play_out(Position.start(9), games=20, seed=8).scores)


def test_playing_out_favours_the_side_that_is_ahead() -> None:
    ahead = Position.start(9, komi=0.5, black=["C5", "E5", "G5", "C7", "G7", "E3"], to_play="W")
    assert (RolloutPolicy().play_out(ahead, games=100, seed=1).scores > 0).mean() > 0.8


def test_nothing_left_to_play_is_a_pass() -> None:
    full = Position.start((3, 2), black=["A1", "B1", "B2", "C1"], to_play="B")
    assert RolloutPolicy().probabilities(full) == {"pass": 1.0}
    state = np.zeros(1, ROLLOUT)
    start_rollout(full.board[0], full.history[0], state[0], RolloutPolicy().weights[0])
    random = np.array([1], np.uint64)
    assert choose_move(full.board[0], state[0], RolloutPolicy().weights[0], BLACK, random) == PASS_LOC


def test_wrong_requests_are_refused() -> None:
    with pytest.raises(BadRequest, match="cannot play 0 games"):
        RolloutPolicy().play_out(Position.start(9), games=0)
    with pytest.raises(BadRequest, match=r"neighbour weights must have shape \(8,\)"):
        RolloutPolicy(neighbour=np.zeros(7, np.float32))
    with pytest.raises(UnsupportedPosition):
        RolloutPolicy().probabilities("x")
