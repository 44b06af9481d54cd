"""What a newcomer types and prints first: `./run`, `help`, an evaluation, a move as people write it."""

from __future__ import annotations

import os
import pydoc
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import keima
from keima.errors import IllegalMove
from keima.inference.evaluation import Evaluation
from keima.search import MoveInfo, SearchResult

Run = Callable[..., Result]
RUN = Path(keima.__file__).parents[1] / "run"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """`run` in a folder of its own, where Python is a program that prints what it is given."""
    home = tmp_path / "home"
    (home / "scripts").mkdir(parents=True)
    shutil.copy(RUN, home / "run")
    (home / "scripts" / "environment.sh").write_text("setup_environment() { PYTHON=echo; }\n")
    (home / "keima/systems/default").mkdir(parents=True)
    (home / "keima/systems/default/go.bin.gz").touch()
    return home


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["game.sgf"], "{cwd}/game.sgf -o reports"),
        (["games"], "{cwd}/games -o reports"),
        (["games/"], "{cwd}/games/ -o reports"),
        (["net.bin.gz"], "examples/go.sgf --net {cwd}/net.bin.gz -o reports"),
        (["net.bin.gz", "game.sgf"], "{cwd}/game.sgf --net {cwd}/net.bin.gz -o reports"),
        (["chess"], "examples/chess.pgn --net chess -o reports"),
        ([], "examples/go.sgf -o reports"),
    ],
)
def test_run_finds_what_lies_where_one_stands(
    copied: Path, tmp_path: Path, arguments: list[str], expected: str
) -> None:
    here = tmp_path / "here"
    (here / "games").mkdir(parents=True)
    (here / "game.sgf").touch()
    (here / "net.bin.gz").touch()
    done = subprocess.run(["sh", copied / "run", *arguments], cwd=here, capture_output=True, text=True, check=True)
    assert done.stdout == f"-m keima review {expected.format(cwd=os.path.realpath(here))}\n"


def test_run_tells_how_it_is_used(copied: Path) -> None:
    done = subprocess.run(["sh", copied / "run", "--help"], capture_output=True, text=True, check=True)
    assert "./run [NETWORK] [GAME]" in done.stdout
    assert "case" not in done.stdout


def test_help_of_search_tells_of_the_function() -> None:
    text = pydoc.plain(pydoc.render_doc(keima.search))
    assert "search(evaluator" in text
    assert "800, or without end where `seconds` is given" in text


def test_answers_print_in_a_line() -> None:
    evaluation = Evaluation({"Q16": 0.75, "D4": 0.25}, {"Q16": 1.0, "D4": 0.0}, win=0.5, draw=0.0, loss=0.5, lead=-1.25)
    assert repr(evaluation) == "<Evaluation best='Q16' (75.0% of 2), win=0.500, draw=0.000, loss=0.500, lead=-1.250>"
    assert repr(Evaluation({}, {})) == "<Evaluation no moves>"
    best = MoveInfo("Q16", 0, 8, 0.5, 0.1, 0.55, 0.0, 0.45, 0.1, 0.0, pv=("Q16", "D4"))
    result = SearchResult(None, "Q16", (best,), 12, 0.1, 0.55, 0.0, 0.45, 0.1)  # type: ignore[arg-type]
    assert repr(result) == "<SearchResult best='Q16', visits=12, value=0.100, 1 moves, pv: Q16 D4>"
    evaluator = keima.Evaluator(keima.create("connect-four", blocks=1, channels=8), "torch", batch_size=4)
    assert repr(evaluator) == "<Evaluator of alphago-zero-connect-four (alphago-zero), torch f32, batch size 4>"


@pytest.mark.parametrize(
    ("move", "told"),
    [
        ("e4", "moves are UCI: e4 is e2e4"),
        ("Nf3", "Nf3 is g1f3"),
        ("x", "moves are UCI, as e2e4"),
        ("e2e5", "KQkq - 0 1"),
    ],
)
def test_moves_of_chess_are_uci_and_it_is_said(move: str, told: str) -> None:
    with pytest.raises(IllegalMove) as error:
        keima.chess.Position.start().play(move)
    assert told in str(error.value)
    assert ("UCI" in str(error.value)) == (move != "e2e5")


def test_uci_refuses_a_network_of_another_game(run: Run, go_net: Path) -> None:
    result = run("uci", "--net", go_net, "--backend", "torch")
    assert result.exit_code == 2
    assert "go" in result.stderr.lower()


def test_an_even_match_is_not_minus_zero() -> None:
    from keima.cli.match import _signed
    from keima.elo import elo_of

    assert str(elo_of(0.5)) == "0.0"
    assert [_signed(number) for number in (-0.3, 0.0, 0.4, -12.6, 7, float("-inf"))] == [
        "0",
        "0",
        "0",
        "-13",
        "+7",
        "-inf",
    ]
