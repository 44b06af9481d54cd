from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import keima
from keima.systems.files.load import save
from keima.web.networks import Networks
from keima.web.server import Settings
from tests.web.conversation import Page, Served, serve

GAME = """[First "Ada"]
[Second "Bo"]
[Date "2026-01-31"]

d d c e {hm} b 1-0
"""


@pytest.fixture(scope="session")
def small_network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny network of connect four."""
    path = tmp_path_factory.mktemp("networks") / "small.safetensors"
    save(keima.create("connect-four", blocks=1, channels=8, value_hidden=8), path)
    return path


@pytest.fixture(scope="module")
def served(small_network: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    games = tmp_path_factory.mktemp("games")
    (games / "first.c4").write_text(GAME + GAME.replace("Ada", "Cleo").replace("1-0", "0-1"))
    (games / "second.sgf").write_text("(;GM[1]SZ[9]PB[Dan]PW[Eve]RE[W+R];B[ee];W[gc])")
    (games / "broken.pgn").write_text('[Event "x"]\n\n1. e4 e5 2. Ke5 *\n')
    with serve(Networks([str(small_network)], {"threads": 1}, own=False), Settings(games=games)) as found:
        yield found


@pytest.fixture
def page(served: Served) -> Iterator[Page]:
    with served.page() as found:
        found.event("review")  # the last of what is sent at first
        yield found
