"""The perfect player: against a plain search to the end of the game, and what is known of the beginning."""

from __future__ import annotations

import pytest

from benchmarks.connect_four_solver import Solver, random_positions
from keima.games.connect_four.position import Position


@pytest.fixture(scope="module")
def solver() -> Solver:
    return Solver()


def plain_score(position: Position, seen: dict[tuple[str, ...], int]) -> int:
    """By the definition: every game to its end, by the public rules."""
    if position.winner is not None:
        return -((44 - len(position.moves)) // 2)
    if position.is_over:
        return 0
    key = tuple(position.rows())
    if key not in seen:
        seen[key] = max(-plain_score(position.play(move), seen) for move in position.legal())
    return seen[key]


def test_against_every_game_to_its_end(solver: Solver) -> None:
    for position in random_positions(40, 33, seed=1):
        seen: dict[tuple[str, ...], int] = {}
        assert solver.score(position) == plain_score(position, seen)
        assert solver.scores(position) == {move: -plain_score(position.play(move), seen) for move in position.legal()}


def test_mirror_images_have_mirrored_scores(solver: Solver) -> None:
    for position in random_positions(10, 14, seed=2):
        mirrored = Position.start().play(*(chr(ord("a") + ord("g") - ord(move)) for move in position.moves))
        assert list(solver.scores(mirrored).values()) == list(solver.scores(position).values())[::-1] or (
            len(position.legal()) < 7
        )


def test_wins_and_losses_a_reader_sees(solver: Solver) -> None:
    three = Position.start().play(*"cadae")  # c, d, e with b and f open: every answer loses to the next disc
    assert solver.score(three) == -((42 - 5) // 2)
    column = Position.start().play(*"ababab")
    assert solver.score(column) == (43 - 6) // 2


@pytest.mark.slow
def test_the_first_player_wins_with_its_last_disc(solver: Solver) -> None:
    """The score of the game is +1 (Allis 1988; Pons), and filling the middle column is best play of both sides.

    `benchmarks/connect_four_solver.py` without arguments shows all seven first moves, in an hour.
    """
    assert solver.score(Position.start().play(*"dddddd")) == 1
