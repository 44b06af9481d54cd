from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import keima
from keima.systems.files.load import save
from keima.web.networks import Networks
from keima.web.server import Settings
from tests.web.conversation import Page, Served, serve

if TYPE_CHECKING:  # it skips who imports it where Playwright is missing
    from tests.web.browser import Opened, Tab, playwright

NETWORKS = {
    "go": ("katago", {"blocks": 1}),
    "chess": ("lc0", {"blocks": 1, "channels": 8}),
    "connect_four": ("connect-four", {"blocks": 1, "channels": 8, "value_hidden": 8}),
}

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


@pytest.fixture(scope="session")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    import torch

    from tests.web.browser import SGF

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("networks")
    for name, (kind, sizes) in NETWORKS.items():
        save(keima.create(kind, **sizes), folder / f"{name}.safetensors")
    games = tmp_path_factory.mktemp("games")
    (games / "ada.sgf").write_text(SGF)
    networks = Networks([str(folder / f"{name}.safetensors") for name in NETWORKS], {"threads": 1}, own=False)
    with serve(networks, Settings(games=games)) as found, found.page() as page:
        for name in NETWORKS:
            page.ask("open_network", network=f"{name}.safetensors", anyway=True)
            page.ready(f"{name}.safetensors")
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    from tests.web.browser import CHROMIUM, playwright

    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def open_page(board: Served, browser: playwright.Browser) -> Iterator[Opened]:
    from tests.web.browser import DESKTOP, Tab

    tabs: list[Tab] = []

    def opened(view: tuple[int, int, str] = DESKTOP, panel: str = "play", language: str = "en") -> Tab:
        width, height, scheme = view
        context = browser.new_context(viewport={"width": width, "height": height}, locale=language, color_scheme=scheme)
        tabs.append(Tab(context.new_page(), f"http://127.0.0.1:{board.port}/#{panel}"))
        return tabs[-1]

    yield opened
    for tab in tabs:
        tab.page.context.close()
        assert tab.wrong == []
