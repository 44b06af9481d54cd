"""Connect four came by one folder and one registration; every verb of the command line works with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

import keima
from keima.cli.main import app

Run = Callable[..., Result]

GAMES = """[First "Ada"]
[Second "Bob"]
[Date "2026-01-31"]

d d c {a trap} c e b f 1-0

[First "C"]
[Second "D"]
[Date "2026-02-01"]

g a g b g c f d 0-1
"""

RECIPE = """
[network]
name = "alphago-zero-connect-four"
blocks = 1
channels = 8
value_hidden = 8

[data]
train = "games.parquet"
test = "games.parquet"

[optimizer]
kind = "sgd"
learning_rate = 0.01

[run]
steps = 3
batch_size = 8
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run `keima ARGUMENTS...` in a folder with a tiny network, two games and a store of games."""
    monkeypatch.chdir(tmp_path)
    network = keima.create("alphago-zero-connect-four", blocks=1, channels=8, value_hidden=8)
    keima.save(network.eval(), "net.safetensors")
    Path("games.c4").write_text(GAMES)

    def call(*arguments: str) -> Result:
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == 0, result.output + result.stderr
        return result

    return call


def positions(*lines: dict[str, object]) -> str:
    Path("positions.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    return "positions.jsonl"


def test_eval_and_planes(run: Run) -> None:
    line: dict[str, object] = {"game": "connect_four", "moves": ["d", "d", "c"]}
    path = positions(line, {**line, "symmetry": 2}, {**line, "symmetry": "average"})
    plain, mirrored, mean = map(
        json.loads, run("eval", "net.safetensors", path, "--backend", "torch").stdout.splitlines()
    )
    assert set(plain["policy"]) == set("abcdefg")
    assert mean["value"] == pytest.approx((plain["value"] + mirrored["value"]) / 2, abs=1e-6)
    shown, turned = map(
        json.loads, run("planes", "connect-four", positions(line, {**line, "symmetry": 2})).stdout.splitlines()
    )
    assert shown["planes"][1][5] == [0, 0, 1, 1, 0, 0, 0]
    assert turned["planes"][1][5] == [0, 0, 0, 1, 1, 0, 0]
    assert shown["planes"][0][4] == [0, 0, 0, 1, 0, 0, 0]


def test_show(run: Run) -> None:
    assert "3×6×7" in run("show", "net.safetensors").stdout
    assert "alphago-zero-connect-four" in run("show", "--list").stdout
    run("show", "net.safetensors", "--position", "games.c4", "--move", "5", "-o", "policy.svg")
    assert "<svg" in Path("policy.svg").read_text()


def test_review_has_a_board(run: Run) -> None:
    run("review", "games.c4", "--net", "net.safetensors", "--visits", "8", "-o", "reports")
    pages = [page.read_text() for page in sorted(Path("reports").glob("games*.html"))]
    assert len(pages) == 2
    assert all("class ConnectFourBoard" in page for page in pages)


def test_search(run: Run) -> None:
    evaluator = keima.Evaluator(keima.load("net.safetensors"), backend="torch")
    position = keima.connect_four.Position.start().play(*"cadae")
    result = keima.search(evaluator, position, visits=60)
    assert result.best in position.legal()
    threat = keima.connect_four.Position.start().play(*"ababa").play("b")
    assert keima.search(evaluator, threat, visits=60).best == "a"  # four in the column


def test_match(run: Run) -> None:
    run("match", "net.safetensors,visits=6", "net.safetensors", "--games", "2", "-o", "match")
    assert len(list(Path("match").glob("*.c4"))) == 2


def test_data_and_training(run: Run) -> None:
    run("data", "play", "net.safetensors", "-o", "games.parquet", "--games", "30", "--backend", "torch")
    run("data", "split", "games.parquet", "-o", "split", "--test-fraction", "0.3")
    assert "connect_four" in run("data", "info", "split").stdout
    Path("recipe.toml").write_text(RECIPE)
    run("train", "recipe.toml", "-o", "run")
    trained = keima.load("run/network.safetensors")
    assert trained.encoding.game == "connect_four"


def test_import(run: Run) -> None:
    Path("long.c4").write_text('[Date "2026-01-31"]\n\nedgabeffbbfabgabffbaegdcggaegfcaececccdddd 1/2-1/2\n')
    run("data", "import", "long.c4", "-o", "games.parquet")
    assert "drawn 1" in run("data", "info", "games.parquet").stdout
