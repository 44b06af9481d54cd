"""The networks that come with keima: found, told apart, known wherever they lie; what must hold of the real ones."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keima
from keima.cli.bench import middle_game
from keima.engines.match.match import Match, MatchOptions
from keima.errors import BadRequest, BadWeights
from keima.systems.files import defaults
from keima.systems.files.contents import sha256_of
from keima.systems.files.defaults import DEFAULT_NETWORKS, FOLDER, default_network, find_network
from tests.default_networks import LACKS, install

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
LIMIT = 6_000_000
"""Bytes of all of them together."""
DOCUMENT = ROOT / "docs" / "default-networks.md"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A KataGo network of one block with random weights."""
    path = tmp_path_factory.mktemp("nets") / "small.bin.gz"
    keima.save(keima.create("katago-b6c96", blocks=1).eval(), path)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: Path) -> Path:
    """keima's own networks: a small one for Go, none for chess. The working folder is an empty one."""
    place, work = tmp_path / "default", tmp_path / "work"
    place.mkdir()
    work.mkdir()
    install(monkeypatch, place, go=small)
    monkeypatch.chdir(work)
    return place


class TestWhereTheyAre:
    def test_the_file_of_a_game(self, folder: Path) -> None:
        assert default_network("go") == folder / "go.bin.gz"

    def test_an_installation_without_it_says_what_to_name(self, folder: Path) -> None:
        with pytest.raises(BadWeights, match=rf"{LACKS} chess; name a network file \(--net FILE\)") as caught:
            default_network("chess")
        assert caught.value.source == str(folder / "chess.pb.gz")

    def test_another_file_in_its_place_is_refused(self, folder: Path) -> None:
        with (folder / "go.bin.gz").open("ab") as file:
            file.write(b"x")
        with pytest.raises(BadWeights, match="not the default network of this version: sha256"):
            default_network("go")

    def test_another_game(self) -> None:
        with pytest.raises(BadRequest, match="'shogi'; there is one for each of go, chess, connect_four"):
            default_network("shogi")

    def test_a_name_means_a_file_before_it_means_a_default_network(self, folder: Path) -> None:
        assert find_network("go") == str(folder / "go.bin.gz")
        assert find_network("other.bin.gz") == "other.bin.gz"
        Path("go").mkdir()
        assert find_network("go") == str(folder / "go.bin.gz")
        Path("chess").touch()
        assert find_network("chess") == "chess"


class TestPedigree:
    def test_it_tells_licence_recipe_and_games(self, folder: Path, small: Path) -> None:
        network = keima.load_default("go")
        pedigree = network.pedigree
        assert (pedigree.name, pedigree.licence, pedigree.sha256) == ("small-go", "CC0", sha256_of(small))
        assert pedigree.origin == str(folder / "go.bin.gz")
        assert pedigree.format.startswith("KataGo")
        assert pedigree.details == {"recipe": "recipes/small-go.toml", "training_data": "no games at all"}

    def test_wherever_the_file_lies(self, folder: Path, small: Path) -> None:
        shutil.copyfile(small, "renamed.gz")
        pedigree = keima.load("renamed.gz").pedigree
        assert (pedigree.name, pedigree.licence, pedigree.origin) == ("small-go", "CC0", "renamed.gz")

    def test_other_files_keep_their_own(self, folder: Path) -> None:
        keima.save(keima.create("maia-6x64", blocks=1, channels=8).eval(), "maia.pb.gz")
        pedigree = keima.load("maia.pb.gz").pedigree
        assert (pedigree.name, pedigree.licence) == ("maia", "unknown")
        assert "recipe" not in pedigree.details


class TestPackage:
    def test_a_built_package_holds_them(self, tmp_path: Path) -> None:
        """Setuptools takes what the patterns of `package-data` match below the package's folder."""
        settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        patterns = settings["tool"]["setuptools"]["package-data"]["keima"]
        folder = tmp_path / FOLDER.relative_to(ROOT / "keima")
        folder.mkdir(parents=True)
        files = {folder / f"{known.file}{end}" for known in DEFAULT_NETWORKS.values() for end in ("", ".int8")}
        for file in files:
            file.touch()
        assert {path for pattern in patterns for path in tmp_path.glob(pattern)} == files

    def test_nothing_else_lies_beside_them(self) -> None:
        """What lies there goes into the package, so it counts."""
        known = {known.file for known in DEFAULT_NETWORKS.values()}
        assert {path.name.removesuffix(".int8") for path in FOLDER.glob("*")} <= known
        assert sum(path.stat().st_size for path in FOLDER.glob("*")) <= LIMIT

    def test_the_document_tells_of_each(self) -> None:
        text = DOCUMENT.read_text(encoding="utf-8")
        for known in DEFAULT_NETWORKS.values():
            assert f"`{known.file}`" in text
            assert known.name in text


@pytest.fixture(params=sorted(DEFAULT_NETWORKS))
def real(request: pytest.FixtureRequest) -> Any:
    """A game, and what is known of its default network; skipped until there is one."""
    known = DEFAULT_NETWORKS[request.param]
    if not known.sha256 and not (FOLDER / known.file).exists():
        pytest.skip(f"keima has no default network for {request.param} yet")
    return request.param, known


class TestTheRealOnes:
    def test_the_file_is_the_one_that_the_table_describes(self, real: Any) -> None:
        game, known = real
        assert default_network(game) == FOLDER / known.file

    def test_the_table_has_no_gaps(self, real: Any) -> None:
        _, known = real
        assert all((known.name, known.licence, known.recipe, known.training_data))
        assert (ROOT / known.recipe).is_file(), f"{known.recipe} is not in the repository"

    def test_the_document_is_filled_in(self, real: Any) -> None:
        game, known = real
        text = DOCUMENT.read_text(encoding="utf-8")
        assert known.sha256 in text
        assert known.recipe in text
        title = game.replace("_", " ")
        sections = [part for part in text.split("\n## ")[1:] if part.lower().startswith(f"{title}:")]
        rows = [line for line in text.splitlines() if line.startswith(f"| `{known.file}`")]
        assert sections
        assert not [part for part in (*sections, *rows) if "to be filled in" in part.lower()]

    def test_it_plays_its_game_on_every_board(self, real: Any) -> None:
        game, known = real
        network = keima.load_default(game)
        assert (network.encoding.game, network.pedigree.name) == (game, known.name)
        assert network.system == {"go": "katago", "chess": "lc0", "connect_four": "alphago-zero"}[game]
        evaluate = keima.Evaluator(network, backend="torch")
        starts = {
            "go": [keima.go.Position.start(size) for size in (7, 9, 13, 19)],
            "chess": [keima.chess.Position.start()],
            "connect_four": [keima.connect_four.Position.start()],
        }
        for answer in (evaluate([start])[0] for start in starts[game]):
            assert sum(answer.policy.values()) == pytest.approx(1, abs=1e-4)
            assert 0 <= answer.win <= 1

    def test_it_answers_in_int8_almost_as_in_float(self, real: Any) -> None:
        game, _ = real
        network = keima.load_default(game)
        assert keima.Evaluator(network).precision == "f32"
        positions = middle_game(game, 16)
        answers = [keima.Evaluator(network, "torch", precision)(positions) for precision in ("int8", "f32")]
        pairs = [(whole, plain) for whole, plain in zip(*answers, strict=True) if plain.policy]
        assert np.mean([abs(whole.win - plain.win) for whole, plain in pairs]) <= 0.01
        moves = [[max(answer.policy, key=answer.policy.__getitem__) for answer in pair] for pair in pairs]
        assert np.mean([one == other for one, other in moves]) >= 0.85

    def test_it_knows_a_won_game(self, real: Any) -> None:
        """A queen ahead; in Go, two walls that leave Black twice White's ground; three in a row, open at both ends."""
        game, _ = real
        if game == "chess":
            won = keima.chess.Position.from_fen("rnb1kbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", moves=[])
        elif game == "connect_four":
            won = keima.connect_four.Position.start().play(*"ddccee")
        else:
            black, white = ([f"{column}{row}" for row in range(1, 10)] for column in "FG")
            won = keima.go.Position.start(9, komi=7, black=black, white=white)
        assert keima.Evaluator(keima.load_default(game), backend="torch")([won])[0].win > 0.8

    @pytest.mark.slow
    def test_chess_mates_with_king_and_rook(self, tmp_path: Path) -> None:
        """At 800 visits, against its own policy; benchmarks/rook_mates.py plays fifty positions against Stockfish."""
        fens = (ROOT / "benchmarks" / "rook_endings.fen").read_text(encoding="utf-8").splitlines()
        white_has_it = [fen for fen in fens if "R" in fen.split()[0]][:4]
        (tmp_path / "some.fen").write_text("\n".join(white_has_it), encoding="utf-8")
        options = MatchOptions(games=2 * len(white_has_it), openings=str(tmp_path / "some.fen"))
        results = Match("chess,visits=800", "policy:chess", options).run().results
        with_the_rook = [(result.winner, result.reason) for result in results if result.first == "A"]
        assert with_the_rook == [("A", "checkmate")] * len(white_has_it)


def test_the_table_is_what_the_names_promise() -> None:
    files = {"go": "go.bin.gz", "chess": "chess.pb.gz", "connect_four": "connect_four.safetensors"}
    assert {game: known.file for game, known in DEFAULT_NETWORKS.items()} == files
    assert Path(defaults.__file__).parents[1] / "default" == FOLDER
