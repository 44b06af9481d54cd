"""`keima review`'s options that go together or do not, records that break off, annotated records, a second judge."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import chess.pgn
import pytest
from click.testing import Result
from sgfmill import sgf

from keima.review.report import read_review
from tests.cli.conftest import CHESS_GAME, GO_GAME, lines

Run = Callable[..., Result]
SCHOLARS_MATE = (
    '[White "Ada"]\n[Black "Bo"]\n[Result "1-0"]\n\n'
    "1. e4 {best by test} e5 (1... c5 2. Nf3 {Sicilian} (2. c3)) 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7# 1-0\n"
)
TEACHING = (
    "(;GM[1]SZ[5]KM[7.5]RU[Chinese]PB[Ada]PW[Bo]PC[Kyoto];B[cc]C[the middle]LB[bb:A]"
    "(;W[bb];B[dd];W[ee])(;W[dd]C[or here];B[bb]))"
)


@pytest.mark.parametrize("option", [("--preset", "katago"), ("--seed", "3"), ("--deeper", "50")])
def test_a_search_without_visits_is_an_error(run: Run, go_net: Path, option: tuple[str, str]) -> None:
    Path("game.sgf").write_text(GO_GAME)
    result = run("review", "game.sgf", "--net", go_net, *option)
    assert result.exit_code == 2
    assert f"{option[0]} belongs to a search: give --visits N too" in result.stderr


def test_mistakes_are_searched_again(run: Run, go_net: Path) -> None:
    Path("game.sgf").write_text(GO_GAME)
    arguments = ("review", "game.sgf", "--net", go_net, "-o", "out.html", "--backend", "torch", "--visits", "4")
    assert "more visits than the 4" in run(*arguments, "--deeper", "4").stderr
    assert run(*arguments, "--deeper", "16").exit_code == 0
    review = read_review("out.html")
    assert review is not None
    visits = [position["visits"] for position in review["positions"]]
    assert set(visits) <= {4, 16}
    for move in review["moves"]:
        again = visits[move["number"] - 1 : move["number"] + 1]
        assert move["grade"] == "good" or again == [16, 16]


@pytest.mark.parametrize(
    ("name", "text", "moves", "problem"),
    [
        ("game.sgf", "(;GM[1]SZ[5]KM[7]RU[Chinese];B[cc];W[bb];B[bb];W[dd])", 2, "move 3 (B B4): occupied"),
        ("game.sgf", "(;GM[1]SZ[5]KM[7]RU[Chinese];B[cc];W[bb];B[zz];W[dd])", 2, "[zz] is no point of this board"),
        ("game.sgf", "(;GM[1]SZ[5]KM[7]RU[Chinese];B[cc];W[bb];B[d", 2, "not closed"),
        ("game.pgn", CHESS_GAME.replace("2. g4 Qh4#", "2. Qd4 Qh4#"), 2, "illegal san: 'Qd4'"),
    ],
)
def test_a_broken_game_is_reviewed_up_to_the_break(
    run: Run, go_net: Path, chess_net: Path, name: str, text: str, moves: int, problem: str
) -> None:
    Path(name).write_text(text)
    net = go_net if name.endswith("sgf") else chess_net
    result = run("review", name, "--net", net, "-o", "out.html", "--backend", "torch")
    assert (result.exit_code, result.stdout) == (2, "out.html\n")
    assert problem in result.stderr
    assert "1 of 1 games reviewed, 1 of them up to where they break off" in result.stderr
    review = read_review("out.html")
    assert review is not None
    assert len(review["moves"]) == moves
    assert problem in review["game"]["problem"]


def test_a_game_without_moves_has_one_position(run: Run, go_net: Path) -> None:
    Path("game.sgf").write_text("(;GM[1]SZ[9]KM[7]RU[Chinese])")
    assert run("review", "game.sgf", "--net", go_net, "-o", "out.html", "--backend", "torch").exit_code == 0
    review = read_review("out.html")
    assert review is not None
    assert (len(review["positions"]), review["moves"], review["mistakes"]) == (1, [], [])
    assert "accuracy" not in review["players"]["black"]


def test_small_boards_are_judged_with_a_warning(run: Run, go_net: Path) -> None:
    for size, warned in ((5, True), (7, False)):
        Path("game.sgf").write_text(GO_GAME.replace("SZ[5]", f"SZ[{size}]"))
        run("review", "game.sgf", "--net", go_net, "-o", f"{size}.html", "--backend", "torch")
        review = read_review(f"{size}.html")
        assert review is not None
        assert [("5×5 board" in warning) for warning in review["warnings"]] == [True] * warned


class TestAnnotated:
    def test_sgf(self, run: Run, go_net: Path) -> None:
        Path("game.sgf").write_text(TEACHING)
        arguments = ("review", "game.sgf", "--net", go_net, "-o", "out.html", "--backend", "torch")
        result = run(*arguments, "--sgf", "told.sgf")
        assert result.stdout.splitlines() == ["out.html", "told.sgf"]
        review = read_review("out.html")
        assert review is not None
        game = sgf.Sgf_game.from_bytes(Path("told.sgf").read_bytes())
        root, first = game.get_root(), game.get_root()[0]
        assert root.get("PC") == "Kyoto"
        assert first.get("LB") == [((3, 1), "A")]
        assert "the middle" in first.get("C")
        assert [node.get_move()[1] for node in game.get_main_sequence()[1:]] == [(2, 2), (3, 1), (1, 3), (0, 4)]
        kept = next(node for node in first if node.get_move() == ("w", (1, 3)))
        assert "or here" in kept.get("C")
        assert kept[0].get_move() == ("b", (3, 1))
        position = review["positions"][1]
        chance = position["loss"] + position["draw"] / 2
        assert float(first.get_raw("SBKV")) == pytest.approx(100 * chance, abs=0.01)
        assert float(first.get_raw("V")) == pytest.approx(-position["lead"], abs=0.01)
        blamed = [move for move in review["moves"] if move["grade"] != "good"]
        line = game.get_main_sequence()
        for move in blamed:
            better = [sgf_name(child) for child in line[move["number"] - 1]]
            assert move["best"] in better
            assert f"better {move['best']}" in line[move["number"]].get("C")

    def test_pgn(self, run: Run, chess_net: Path) -> None:
        Path("game.pgn").write_text(SCHOLARS_MATE)
        result = run("review", "game.pgn", "--net", chess_net, "--pgn", "told", "--backend", "torch")
        assert result.stdout.splitlines() == ["reports/game.html", "told/game.pgn"]
        text = Path("told/game.pgn").read_text()
        game = chess.pgn.read_game(io.StringIO(text))
        assert game is not None
        assert game.errors == []
        assert game.headers["White"] == "Ada"
        first = game.variations[0]
        assert "best by test" in first.comment
        assert first.eval() is not None
        sicilian = next(node for node in first.variations if node.san() == "c5")
        assert "Sicilian" in sicilian.variations[0].comment
        assert [node.san() for node in sicilian.variations] == ["Nf3", "c3"]
        review = read_review("reports/game.html")
        assert review is not None
        node: chess.pgn.GameNode = game
        for move in review["moves"]:
            if move["grade"] != "good":
                assert move["best"] in [child.move.uci() for child in node.variations]
                assert node.variations[0].nags & {2, 4, 6}
            node = node.variations[0]

    def test_several_games_need_a_folder(self, run: Run, go_net: Path) -> None:
        Path("all.sgf").write_text(GO_GAME * 2)
        assert "name a folder" in run("review", "all.sgf", "--net", go_net, "--sgf", "one.sgf").stderr
        run("review", "all.sgf", "--net", go_net, "--sgf", "told", "--backend", "torch")
        assert sorted(path.name for path in Path("told").iterdir()) == ["all-2.sgf", "all.sgf"]


def sgf_name(node: sgf.Tree_node) -> str:
    row, column = node.get_move()[1]
    return f"{'ABCDE'[column]}{row + 1}"


STOCKFISH = shutil.which("stockfish") or shutil.which("stockfish", path="/usr/games")


class TestSecondJudge:
    @pytest.mark.skipif(STOCKFISH is None, reason="no stockfish")
    def test_stockfish_blames_what_loses(self, run: Run, chess_net: Path) -> None:
        Path("game.pgn").write_text(SCHOLARS_MATE)
        judge = f"uci,nodes=20000:{STOCKFISH}"
        arguments = ("review", "game.pgn", "--net", chess_net, "-o", "out.html", "--backend", "torch")
        assert run(*arguments, "--judge", judge, "--json", "out.json").exit_code == 0
        review = json.loads(Path("out.json").read_text())
        assert review["second"]["name"].startswith("Stockfish")
        assert review["options"]["judge"] == judge
        blunder = review["moves"][5]  # 3... Nf6 allows mate
        assert (blunder["san"], blunder["second"]["grade"]) == ("Nf6", "blunder")
        assert blunder["second"]["best_san"] in ("g6", "Qe7", "Qf6", "Nh6")
        assert review["positions"][6]["second"]["mate"] == 1
        assert review["moves"][6]["second"]["winrate_loss"] == 0
        assert review["mistakes"][0] == 6  # its word goes first
        assert review["players"]["white"]["second"]["accuracy"] > review["players"]["black"]["second"]["accuracy"]
        assert all("second" in position for position in review["positions"][:-1])

    @pytest.mark.parametrize(
        ("judge", "word"),
        [
            ("stockfish", "--judge takes PROTOCOL:COMMAND"),
            ("uci:no-such-engine", "no-such-engine: no such program"),
            ("uci:true", "does not start as a UCI program"),
        ],
    )
    def test_one_that_cannot_be(self, run: Run, chess_net: Path, judge: str, word: str) -> None:
        Path("game.pgn").write_text(CHESS_GAME)
        result = run("review", "game.pgn", "--net", chess_net, "--judge", judge, "--backend", "torch")
        assert result.exit_code == 2
        assert word in result.stderr

    def test_one_of_another_game(self, run: Run, go_net: Path) -> None:
        Path("game.sgf").write_text(GO_GAME)
        result = run("review", "game.sgf", "--net", go_net, "--judge", "uci:stockfish")
        assert result.exit_code == 2
        assert "programs that speak uci play chess, not Go" in result.stderr


def test_a_list_tells_of_games_that_failed_and_leads_back(run: Run, go_net: Path) -> None:
    Path("all.sgf").write_text(GO_GAME + "(;GM[1]SZ[29])")
    result = run("review", "all.sgf", "--net", go_net, "-o", "out", "--json", "out.jsonl", "--backend", "torch")
    assert result.exit_code == 2
    text = Path("out/index.html").read_text()
    assert "1 of 2 games" in text
    assert "a board of 29×29" in text
    assert "all.sgf" in text
    assert '<svg class="thumbnail"' in text
    assert "index.html" in Path("out/all.html").read_text()
    assert len(lines(Path("out.jsonl").read_text())) == 1
