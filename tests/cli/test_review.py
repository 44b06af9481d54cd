"""`keima review` as a user meets it: pages and JSON, broken games beside good ones, and nothing done twice."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from keima.review.report import read_review
from tests.cli.conftest import CHESS_GAME, GO_GAME, lines

Run = Callable[..., Result]


def refuse(*_: Any, **__: Any) -> Any:
    raise AssertionError("the network was opened though nothing was to be evaluated")


class TestOneGame:
    def test_a_page_and_json(self, run: Run, go_net: Path) -> None:
        Path("game.sgf").write_text(GO_GAME)
        result = run(
            "review", "game.sgf", "--net", go_net, "-o", "out.html", "--json", "out.json", "--backend", "torch"
        )
        assert (result.exit_code, result.stdout) == (0, "out.html\n")
        review = json.loads(Path("out.json").read_text())
        assert review == read_review("out.html")
        assert [move["move"] for move in review["moves"]] == ["C3", "B4", "D2", "E1"]
        assert len(review["positions"]) == 5
        assert review["network"]["system"] == "katago"

    def test_chess(self, run: Run, chess_net: Path) -> None:
        Path("mate.pgn").write_text(CHESS_GAME)
        result = run("review", "mate.pgn", "--net", chess_net, "--backend", "torch")
        assert (result.exit_code, result.stdout) == (0, "reports/mate.html\n")
        review = read_review("reports/mate.html")
        assert review is not None
        assert review["positions"][-1]["outcome"] == "checkmate"

    def test_with_a_search(self, run: Run, go_net: Path) -> None:
        Path("game.sgf").write_text(GO_GAME)
        result = run(
            "review", "game.sgf", "--net", go_net, "-o", "out.html", "--visits", "6", "--preset", "alphago-zero",
            "--backend", "torch",
        )  # fmt: skip
        assert (result.exit_code, result.stdout) == (0, "out.html\n")
        review = read_review("out.html")
        assert review is not None
        assert (review["options"]["visits"], review["options"]["preset"]) == (6, "alphago-zero")
        assert [position["visits"] for position in review["positions"]] == [6] * 5

    @pytest.mark.parametrize(("option", "value", "word"), [("--visits", "1", "at least 2"), ("--preset", "x", "'x'")])
    def test_a_search_that_cannot_be(self, run: Run, go_net: Path, option: str, value: str, word: str) -> None:
        Path("game.sgf").write_text(GO_GAME)
        result = run("review", "game.sgf", "--net", go_net, "--visits", "8", option, value)
        assert result.exit_code == 2
        assert word in result.stderr

    def test_json_on_standard_output_stands_alone(self, run: Run, go_net: Path) -> None:
        Path("game.sgf").write_text(GO_GAME)
        result = run("review", "game.sgf", "--net", go_net, "--json", "-", "--backend", "torch")
        assert json.loads(result.stdout)["format"] == "keima-review"

    def test_a_game_the_network_does_not_play(self, run: Run, chess_net: Path) -> None:
        Path("game.sgf").write_text(GO_GAME)
        result = run("review", "game.sgf", "--net", chess_net, "--backend", "torch")
        assert result.exit_code == 2
        assert "game.sgf: a game of go; chess plays chess" in result.stderr
        assert not Path("reports").exists()


class TestManyGames:
    def test_a_broken_game_is_reported_and_the_others_done(self, run: Run, go_net: Path) -> None:
        Path("all.sgf").write_text(GO_GAME + "\n(;GM[1]SZ[5];B[cc];W[cc])\n(;GM[1]SZ[29])\n" + GO_GAME)
        result = run("review", "all.sgf", "--net", go_net, "-o", "out", "--json", "out.jsonl", "--backend", "torch")
        assert result.exit_code == 2
        assert result.stdout.splitlines() == ["out/all.html", "out/all-2.html", "out/all-4.html", "out/index.html"]
        assert "all.sgf: game 2: move 2 (W C3): occupied" in result.stderr
        assert "all.sgf: game 3 (line 3)" in result.stderr
        assert "3 of 4 games reviewed, 1 of them up to where they break off" in result.stderr
        reviews = lines(Path("out.jsonl").read_text())
        assert [review["game"]["index"] for review in reviews] == [1, 2, 4]
        assert [len(review["moves"]) for review in reviews] == [4, 1, 4]
        assert "move 2 (W C3): occupied" in reviews[1]["game"]["problem"]
        assert 'href="all-4.html"' in Path("out/index.html").read_text()

    def test_equal_names_from_different_folders_do_not_meet(self, run: Run, go_net: Path) -> None:
        for folder in ("x", "y"):
            Path(folder).mkdir()
            Path(folder, "game.sgf").write_text(GO_GAME.replace("cc", "aa") if folder == "y" else GO_GAME)
        run("review", "x", "y", "--net", go_net, "-o", "out", "--backend", "torch")
        assert sorted(path.name for path in Path("out").iterdir()) == ["game.html", "game~2.html", "index.html"]

    def test_names_with_exclamation_marks(self, run: Run, go_net: Path) -> None:
        """A file's own, and an archive's: the variation is in the record that is written."""
        varied = GO_GAME.rstrip().removesuffix(")") + "(;B[ba])(;B[ab]))"
        Path("a!b.sgf").write_text(varied)
        with zipfile.ZipFile("c!d.zip", "w") as archive:
            archive.writestr("e!f.sgf", varied)
        result = run(
            "review", "a!b.sgf", "c!d.zip", "--net", go_net, "-o", "out", "--sgf", "told", "--backend", "torch"
        )
        assert result.exit_code == 0, result.stderr
        told = {path.name: path.read_text() for path in Path("told").iterdir()}
        assert told.keys() == {"a!b.sgf", "e!f.sgf"}
        assert all("B[ba]" in text and "B[ab]" in text for text in told.values())

    def test_several_games_do_not_fit_one_page(self, run: Run, go_net: Path) -> None:
        Path("all.sgf").write_text(GO_GAME * 2)
        result = run("review", "all.sgf", "--net", go_net, "-o", "one.html")
        assert result.exit_code == 2
        assert "name a folder" in result.stderr
        assert (
            run("review", "all.sgf", "--net", go_net, "-o", "one.html", "--limit", "1", "--backend", "torch").exit_code
            == 0
        )


class TestAgain:
    def test_a_finished_game_is_not_evaluated_again(
        self, run: Run, go_net: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Path("game.sgf").write_text(GO_GAME)
        arguments = ("review", "game.sgf", "--net", go_net, "-o", "out.html", "--backend", "torch")
        run(*arguments)
        page = Path("out.html").read_text()
        monkeypatch.setattr("keima.cli.common.open_network", refuse)
        result = run(*arguments, "--json", "out.json")
        assert result.exit_code == 0
        assert "1 of them already before" in result.stderr
        assert Path("out.html").read_text() == page
        assert json.loads(Path("out.json").read_text()) == read_review("out.html")

    def test_a_search_is_not_made_again_and_not_taken_for_the_network_alone(
        self, run: Run, go_net: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Path("game.sgf").write_text(GO_GAME)
        alone = ("review", "game.sgf", "--net", go_net, "-o", "out.html", "--backend", "torch")
        run(*alone, "--visits", "4")
        monkeypatch.setattr("keima.cli.common.open_network", refuse)
        assert "1 of them already before" in run(*alone, "--visits", "4").stderr
        for other in ((), ("--visits", "5"), ("--visits", "4", "--seed", "1"), ("--visits", "4", "--preset", "lc0")):
            with pytest.raises(AssertionError, match="network was opened"):
                raise run(*alone, *other).exception  # type: ignore[misc]

    def test_another_game_option_or_network_is(self, run: Run, go_net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("game.sgf").write_text(GO_GAME)
        arguments = ("review", "game.sgf", "--net", go_net, "-o", "out.html", "--backend", "torch")
        run(*arguments)
        monkeypatch.setattr("keima.cli.common.open_network", refuse)
        with pytest.raises(AssertionError, match="network was opened"):
            raise run(*arguments, "--symmetry", "1").exception  # type: ignore[misc]
        Path("game.sgf").write_text(GO_GAME.replace("W[bb]", "W[ba]"))
        with pytest.raises(AssertionError, match="network was opened"):
            raise run(*arguments).exception  # type: ignore[misc]

    def test_an_interrupted_run_goes_on_where_it_stopped(
        self, run: Run, go_net: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from keima.review import batch

        Path("all.sgf").write_text(GO_GAME + GO_GAME.replace("ee", "ea"))
        arguments = ("review", "all.sgf", "--net", go_net, "-o", "out", "--json", "out.jsonl", "--backend", "torch")
        whole, done = batch.review_game, []

        def stop_at_the_second(game: Any, *rest: Any, **named: Any) -> Any:
            if done:
                raise KeyboardInterrupt
            done.append(game)
            return whole(game, *rest, **named)

        monkeypatch.setattr(batch, "review_game", stop_at_the_second)
        assert run(*arguments).exit_code == 130
        assert sorted(path.name for path in Path().iterdir()) == ["all.sgf", "out"]
        assert [path.name for path in Path("out").iterdir()] == ["all.html"]
        monkeypatch.setattr(batch, "review_game", whole)
        result = run(*arguments)
        assert result.exit_code == 0
        assert "2 of 2 games reviewed, 1 of them already before" in result.stderr

    def test_a_file_of_someone_elses_is_not_overwritten(self, run: Run, go_net: Path) -> None:
        Path("game.sgf").write_text(GO_GAME)
        Path("out.html").write_text("<p>my homework</p>")
        result = run("review", "game.sgf", "--net", go_net, "-o", "out.html", "--backend", "torch")
        assert result.exit_code == 2
        assert "not a review that keima wrote" in result.stderr
        assert Path("out.html").read_text() == "<p>my homework</p>"
