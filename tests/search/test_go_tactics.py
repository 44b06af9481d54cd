"""Tactics on 9×9 with a real network of 6 blocks: what its first impression misses, the search must find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import keima
from keima.search import Limits, Search, SearchResult
from tests.systems.alphago.test_search import position_of

NAKADE = """
    . X O . . . O X .
    . X O O O O O X .
    . X X X X X X X .
    . . . . . . . . .
    . . . . . . . . .
    O O O O O O O O .
    . . . . . . . O .
    . . . . . . . . .
    . . . . . . . . .
"""

SNAPBACK = """
    . . . . . . . . .
    . . O . . . O . .
    . . . . . . . . .
    . . . . X . . . .
    . . . X O X . . .
    . . X O O O X . .
    . . X O . O X . .
    . . O X . X O . .
    . . O O X O O . .
"""

SEMEAI = """
    . . . . . . . . .
    . . . . . . . . .
    . . X . . . O . .
    . . . . . . . . .
    . X X X X . . . .
    . X O O O X O . .
    . O X X O X O . .
    . O X . O X O . .
    . O X . . X O . .
"""

LADDER = """
    . . . . . . . . .
    . . X . . . . . .
    . X O X . . . . .
    . X . . . . . . .
    . . . . . . . . .
    . . . . . {} . . .
    . . . . . . . . .
    . . O . . . X . .
    . . . . . . . . .
"""

PUZZLES = [
    # (name, drawing, side to play, moves that solve it)
    ("the vital point of three in a row kills", NAKADE, "B", {"E9"}),
    ("the shared liberty of four stones", SNAPBACK, "B", {"E3"}),
    ("one liberty ahead in a race", SEMEAI, "B", {"E1"}),
]


@pytest.fixture(scope="module")
def evaluator(reference: Path) -> Any:
    network = keima.load(reference / "nets" / "g170-b6c96-s175395328-d26788732.bin.gz")
    return keima.Evaluator(network, "openvino", "f32", 8, threads=2)


def run(evaluator: Any, drawing: str, side: str, visits: int = 300, **options: Any) -> SearchResult:
    search = Search(evaluator, "katago")
    search.set_position(position_of(drawing, komi=7.0, to_play=side))
    return search.run(Limits(visits=visits), **options)


@pytest.mark.parametrize(("name", "drawing", "side", "moves"), PUZZLES, ids=[puzzle[0] for puzzle in PUZZLES])
def test_puzzles_are_solved(evaluator: Any, name: str, drawing: str, side: str, moves: set[str]) -> None:
    result = run(evaluator, drawing, side)
    assert result.best in moves


def test_the_search_corrects_the_network(evaluator: Any) -> None:
    """In two of the puzzles the network alone would play elsewhere."""
    for drawing, move in ((NAKADE, "E9"), (SEMEAI, "E1")):
        result = run(evaluator, drawing, "B")
        assert max(result.policy, key=lambda name: result.policy[name]) != move
        assert result.best == move


def test_a_ladder_depends_on_its_breaker(evaluator: Any) -> None:
    """White runs out of atari: into a ladder that works it is lost; towards a stone of its own it lives."""
    works = run(evaluator, LADDER.format("."), "W", allow_moves=["C6"])
    broken = run(evaluator, LADDER.format("O"), "W", allow_moves=["C6"])
    assert works.principal_variation[1] in {"C5", "D6"}
    assert works.value < -0.9
    assert broken.value > works.value + 0.15


def test_what_is_found_after_a_move_agrees_with_the_tree_before_it(evaluator: Any) -> None:
    """Ownership, lead and value keep their sign from side to side."""
    search = Search(evaluator, "katago")
    position = position_of(NAKADE, komi=7.0, to_play="B")
    search.set_position(position)
    before = search.run(Limits(visits=200), ownership=True)
    search.set_position(position.play(before.best))
    after = search.run(Limits(visits=200), ownership=True)
    assert before.lead is not None
    assert after.lead is not None
    assert after.lead == pytest.approx(-before.lead, abs=5)
    assert before.ownership is not None
    assert after.ownership is not None
    assert float((before.ownership * after.ownership).mean()) < -0.3
