"""Small random networks on disk, and a way to run the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.small_games import small_games

Run = Callable[..., Result]

GO_GAME = "(;GM[1]SZ[5]KM[7.5]RU[Chinese]PB[Ada]PW[Bo];B[cc];W[bb];B[dd];W[ee])"
CHESS_GAME = '[White "Ada"]\n[Black "Bo"]\n[Result "0-1"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n'
RECIPE = """\
[network]
name = "connect-four"
blocks = 1
channels = 8

[search]
visits = 8

[games]
temperature_plies = 4

[optimizer]
learning_rate = 0.01

[run]
steps = 4
batch_size = 8
"""


@pytest.fixture(scope="session")
def go_net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A KataGo network of one block with random weights."""
    return _save(tmp_path_factory, "katago-b6c96", "go.bin.gz", blocks=1)


@pytest.fixture(scope="session")
def chess_net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An Lc0 network of one block with random weights."""
    return _save(tmp_path_factory, "lc0-10x128", "chess.pb.gz", blocks=1, channels=8, se_channels=8)


@pytest.fixture(scope="session")
def connect_four_net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network for connect four of one block with random weights."""
    return _save(tmp_path_factory, "alphago-zero-connect-four", "four.safetensors", blocks=1, channels=8)


def _save(factory: pytest.TempPathFactory, name: str, file: str, **sizes: Any) -> Path:
    import torch

    import keima

    torch.manual_seed(7)
    torch.set_num_threads(1)
    path = factory.mktemp("nets") / file
    keima.save(keima.create(name, **sizes).eval(), path)
    return path


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `keima ARGUMENTS...` in an empty folder."""
    from keima.cli.main import app

    monkeypatch.chdir(tmp_path)

    def call(*arguments: str | Path, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)

    return call


def lines(text: str) -> list[dict[str, Any]]:
    """JSON lines as objects."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def go_games(run: Run) -> None:
    """Six games of 12 random moves on 5×5, as a store in the folder."""
    Path("games.sgf").write_text(small_games(6))
    result = run("data", "import", "games.sgf", "-o", "games.parquet")
    assert result.exit_code == 0, result.stderr
