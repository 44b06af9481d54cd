"""Commands where no network is named: keima's own play and judge; without those, one line says what to name."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import keima
from keima.engines.uci.options import Values
from keima.errors import BadWeights
from keima.review.report import read_review
from tests.cli.conftest import CHESS_GAME, GO_GAME, lines
from tests.default_networks import LACKS, install

Run = Callable[..., Result]
TORCH = ("--backend", "torch", "--threads", "1")


def refuse(path: str, value: str | None = None) -> Any:
    raise BadWeights("it is this one", source=path)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder beside the one that commands run in."""
    return tmp_path_factory.mktemp("default")


@pytest.fixture
def both(folder: Path, monkeypatch: pytest.MonkeyPatch, go_net: Path, chess_net: Path) -> Path:
    """An installation with a network for each game; the folder that holds them."""
    install(monkeypatch, folder, go=go_net, chess=chess_net)
    return folder


@pytest.fixture
def neither(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation without default networks."""
    install(monkeypatch, folder)
    return folder


def played_by(page: str) -> str:
    review = read_review(page)
    assert review is not None
    return str(review["network"]["name"])


class TestWithThem:
    @pytest.mark.parametrize(
        ("arguments", "opened"),
        [
            (["gtp"], "go.bin.gz"),
            (["gtp", "--net", "go"], "go.bin.gz"),
            (["analysis"], "go.bin.gz"),
            (["analysis", "--net", "chess"], "chess.pb.gz"),
        ],
    )
    def test_engines_open_them(
        self, run: Run, both: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], opened: str
    ) -> None:
        monkeypatch.setattr("keima.cli.common.open_network", refuse)
        assert run(*arguments).stderr == f"keima: {both / opened}: it is this one\n"

    @pytest.mark.parametrize("verb", ["gtp", "analysis"])
    def test_engines_open_what_is_named(self, run: Run, both: Path, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
        monkeypatch.setattr("keima.cli.common.open_network", refuse)
        assert run(verb, "--net", "other.bin.gz").stderr == "keima: other.bin.gz: it is this one\n"

    @pytest.mark.parametrize(("file", "opened"), [("", "chess.pb.gz"), ("chess", "chess.pb.gz"), ("go", "go.bin.gz")])
    def test_uci_opens_them(self, both: Path, monkeypatch: pytest.MonkeyPatch, file: str, opened: str) -> None:
        from keima.cli.uci import _Opener

        monkeypatch.setattr("keima.cli.common.open_network", refuse)
        with pytest.raises(BadWeights) as caught:
            _Opener({})(Values({"WeightsFile": file}))
        assert caught.value.source == str(both / opened)

    def test_review_takes_the_network_of_each_record(self, run: Run, both: Path) -> None:
        Path("games").mkdir()
        Path("games/a.sgf").write_text(GO_GAME)
        Path("games/b.pgn").write_text(CHESS_GAME)
        result = run("review", "games", *TORCH)
        assert result.exit_code == 0
        assert (played_by("reports/a.html"), played_by("reports/b.html")) == ("small-go", "small-chess")

    def test_review_goes_on_beside_a_broken_record(self, run: Run, both: Path) -> None:
        Path("broken.sgf").write_text("(;GM[1]SZ[29])")
        Path("good.sgf").write_text(GO_GAME)
        result = run("review", "broken.sgf", "good.sgf", *TORCH)
        assert result.exit_code == 2
        assert "1 of 2 games reviewed" in result.stderr
        assert played_by("reports/good.html") == "small-go"

    def test_a_network_that_is_named_judges_alone(self, run: Run, both: Path, tmp_path: Path) -> None:
        keima.save(keima.create("katago-b6c96", blocks=1).eval(), "mine.bin.gz")
        Path("a.sgf").write_text(GO_GAME)
        assert run("review", "a.sgf", "--net", "mine.bin.gz", *TORCH).exit_code == 0
        assert played_by("reports/a.html") not in ("small-go", "small-chess")

    def test_match_takes_them_by_name(self, run: Run, both: Path) -> None:
        result = run(
            "match", "policy:go,backend=torch", "policy:go,backend=torch,temperature=1", "--size", "5", "--games", "1",
            "--openings", "none", "--parallel", "1", "--threads", "1", "--max-moves", "3", "-o", "kept",
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        assert "A: go policy" in result.stdout
        sha256 = keima.load_default("go").pedigree.sha256
        assert Path("kept/match.json").read_text().count(sha256) == 2

    def test_match_refuses_two_games(self, run: Run, both: Path) -> None:
        result = run("match", "go", "policy:chess")
        assert result.exit_code == 2
        assert "A (go) plays go, B (policy:chess) plays chess" in result.stderr

    def test_show_prints_the_pedigree(self, run: Run, both: Path) -> None:
        for game in ("go", "chess"):
            shown = run("show", game).stdout
            assert shown.startswith(f"small-{game}\n")
            told = dict(line.split(None, 1) for line in shown.splitlines() if line.startswith("  "))
            assert (told["licence"], told["recipe"]) == ("CC0", f"recipes/small-{game}.toml")
            assert "training data" in shown

    def test_eval_takes_them_by_name(self, run: Run, both: Path) -> None:
        (answer,) = lines(run("eval", "go", "-", *TORCH, stdin='{"xsize": 5}').stdout)
        assert len(answer["policy"]) == 26

    def test_a_file_of_that_name_comes_first(self, run: Run, both: Path, chess_net: Path) -> None:
        shutil.copyfile(chess_net, "go")
        assert "lc0" in run("show", "go").stdout
        Path("game.sgf").write_text(GO_GAME)
        run("review", "game.sgf", *TORCH)
        assert played_by("reports/game.html") == "small-go"


class TestWithoutThem:
    @pytest.mark.parametrize(
        ("arguments", "game"),
        [
            (["gtp"], "go"),
            (["analysis"], "go"),
            (["show", "chess"], "chess"),
            (["match", "go,visits=2", "go"], "go"),
            (["review", "game.sgf"], "go"),
            (["review", "mate.pgn"], "chess"),
        ],
    )
    def test_one_line_says_what_to_name(self, run: Run, neither: Path, arguments: list[str], game: str) -> None:
        Path("game.sgf").write_text(GO_GAME)
        Path("mate.pgn").write_text(CHESS_GAME)
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"{LACKS} {game}; name a network file (--net FILE)" in result.stderr
        assert result.stderr.count("\n") == 1
        assert not Path("reports").exists()

    def test_uci_says_so_to_the_gui(self, neither: Path) -> None:
        from keima.cli.uci import _Opener

        with pytest.raises(BadWeights, match=f"{LACKS} chess"):
            _Opener({})(Values())

    def test_a_network_that_is_named_is_all_that_is_needed(self, run: Run, neither: Path, go_net: Path) -> None:
        Path("game.sgf").write_text(GO_GAME)
        assert run("review", "game.sgf", "--net", go_net, *TORCH).exit_code == 0
