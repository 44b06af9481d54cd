"""Another program's word on chess positions: what is asked, what is read, and what goes wrong."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import chess
import chess.engine
import pytest

from keima.errors import BadRequest
from keima.games.chess.engine import Engine, chances
from keima.games.chess.position import Position

PROGRAM = """
import sys
options, answers = {options!r}, {answers!r}
asked = 0
for line in sys.stdin:
    with open({log!r}, "a") as log:
        log.write(line)
    word = line.split()[0]
    if word == "uci":
        known = [f"option name {{name}} type string default x" for name in options]
        print("id name Told", *known, "uciok", sep="\\n", flush=True)
    elif word == "isready":
        print("readyok", flush=True)
    elif word == "go":
        if asked == len(answers):
            sys.exit(3)
        print(answers[asked], flush=True)
        asked += 1
    elif word == "quit":
        break
"""
START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"


@contextmanager
def told(
    folder: Path, *answers: str, moves: int = 1, options: tuple[str, ...] = ("MultiPV", "UCI_Chess960")
) -> Iterator[tuple[Engine, Path]]:
    """A program that gives these answers to one `go` after another, then ends; and the file of what it was told."""
    script, log = folder / "program.py", folder / "told.txt"
    script.write_text(PROGRAM.format(options=options, answers=answers, log=str(log)))
    engine = Engine(shlex.join([sys.executable, "-S", str(script)]), nodes=700, moves=moves)
    try:
        yield engine, log
    finally:
        engine.close()


def test_the_last_word_on_each_move_counts(tmp_path: Path) -> None:
    answer = """info string score cp 900 pv a2a3
info depth 1 multipv 1 score cp 10 nodes 5 pv d2d4
info depth 1 multipv 2 score cp 5 nodes 9 pv e2e4 e7e5
info depth 2 multipv 2 score mate -2 nodes 99 pv d2d4 d7d5 c2c4
info depth 2 multipv 1 score cp 31 upperbound nodes 80 pv e2e4 e7e5 e1e5 a7a6
info depth 2 currmove e2e4
info depth 2 multipv 3 score mate 4 nodes 99
bestmove e2e4 ponder e7e5"""
    with told(tmp_path, answer, moves=3) as (engine, _):
        assert engine.name == "Told"
        (found,) = engine([Position.start()])
    assert found is not None
    assert (found.centipawns, found.winrate, found.mate) == (31, chances(31), None)
    assert [one.pv for one in found.moves] == [("e2e4", "e7e5"), ("d2d4", "d7d5", "c2c4"), ()]  # up to what is illegal
    assert [(one.winrate, one.mate) for one in found.moves[1:]] == [(0.0, -4), (1.0, 7)]


def test_what_a_program_is_told(tmp_path: Path) -> None:
    answer = "info score cp 0 pv e2e4\nbestmove e2e4"
    first, mate = Position.start(), Position.start()
    for move in ("f2f3", "e7e5", "g2g4", "d8h4"):
        mate = mate.play(move)
    with told(tmp_path, answer, answer, answer, moves=2) as (engine, log):
        found = list(engine([first, first.play("e2e4"), mate]))
        assert [one is None for one in found] == [False, False, True]
        assert len(list(engine([first]))) == 1
    setup = ["setoption name UCI_Chess960 value false", "setoption name MultiPV value 2", "ucinewgame", "isready"]
    asked = [f"position fen {START}", "go nodes 700"]
    lines = log.read_text().splitlines()
    lines = lines[lines.index(setup[0]) :]
    assert lines == [*setup, *asked, f"position fen {START} moves e2e4", "go nodes 700", *setup, *asked, "quit"]


@pytest.mark.parametrize(
    ("answers", "word"),
    [
        ((), "failed at rnbqkbnr/.*: engine process died"),
        (("bestmove e2e4",), "failed at .*: told no score"),
        (("info score cp much pv e2e4\nbestmove e2e4",), "failed at .*: invalid literal"),
        (("info pv e2e4 score cp\nbestmove e2e4",), "failed at .*: list index"),
    ],
)
def test_one_that_fails(tmp_path: Path, answers: tuple[str, ...], word: str) -> None:
    with told(tmp_path, *answers) as (engine, _), pytest.raises(BadRequest, match=word):
        list(engine([Position.start()]))


def test_one_without_an_option_that_is_needed(tmp_path: Path) -> None:
    with (
        told(tmp_path, moves=2, options=()) as (engine, _),
        pytest.raises(BadRequest, match="Told: has no option MultiPV"),
    ):
        list(engine([Position.start()]))
    shuffled = Position.from_fen("bqnrkbrn/pppppppp/8/8/8/8/PPPPPPPP/BQNRKBRN w DGdg - 0 1", chess960=True)
    with told(tmp_path, options=()) as (engine, _), pytest.raises(BadRequest, match="has no option UCI_Chess960"):
        list(engine([shuffled]))


STOCKFISH = shutil.which("stockfish") or shutil.which("stockfish", path="/usr/games")


@pytest.mark.skipif(STOCKFISH is None, reason="no stockfish")
@pytest.mark.parametrize("moves", [1, 3])
def test_a_real_program_is_read_as_python_chess_reads_it(moves: int) -> None:
    assert STOCKFISH is not None
    game = ["e2e4", "c7c5", "g1f3", "d7d6", "d2d4", "c5d4", "f3d4", "g8f6"]
    positions = [Position.start()]
    for move in game:
        positions.append(positions[-1].play(move))
    ours = Engine(STOCKFISH, 3000, moves)
    found = list(ours(positions))
    ours.close()
    with chess.engine.SimpleEngine.popen_uci(STOCKFISH) as theirs:
        board, same = chess.Board(), object()
        for move, opinion in zip([*game, None], found, strict=True):
            lines = theirs.analyse(board, chess.engine.Limit(nodes=3000), multipv=moves, game=same)
            assert opinion is not None
            for line, one in zip(lines, opinion.moves or (opinion,), strict=True):
                assert one.centipawns == line["score"].relative.score()
                assert one.pv == tuple(each.uci() for each in line["pv"])
            if move:
                board.push_uci(move)
