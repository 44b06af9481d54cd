"""The pages in a real browser: Debian's chromium, driven by Playwright, against the real server with small networks."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import keima
from keima.systems.files.load import save
from keima.web.networks import Networks
from keima.web.server import Settings
from tests.web.conversation import Served, serve

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is missing")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="chromium is missing")]

SOURCES = Path(keima.__file__).parent
NETWORKS = {
    "go": ("katago", {"blocks": 1}),
    "chess": ("lc0", {"blocks": 1, "channels": 8}),
    "connect_four": ("connect-four", {"blocks": 1, "channels": 8, "value_hidden": 8}),
}
SGF = "(;GM[1]FF[4]SZ[9]KM[7]PB[Ada <b>x</b>]PW[Bo];B[ee];W[gc];B[cc](;W[cg];B[gg])(;W[gg];B[cg]))"
FOOL = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
PROMOTING = "8/P6k/8/8/8/8/7K/8 w - - 0 1"


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("networks")
    for name, (kind, sizes) in NETWORKS.items():
        save(keima.create(kind, **sizes), folder / f"{name}.safetensors")
    games = tmp_path_factory.mktemp("games")
    (games / "ada.sgf").write_text(SGF)
    networks = Networks([str(folder / f"{name}.safetensors") for name in NETWORKS], {"threads": 1}, own=False)
    with serve(networks, Settings(games=games)) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Tab:
    """A page of the browser, and what may not happen on it: errors, warnings, requests to elsewhere."""

    def __init__(self, page: playwright.Page, address: str) -> None:
        self.page, self.wrong = page, []
        self.weight = 0
        page.set_default_timeout(30_000)
        page.on("console", lambda m: self.wrong.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", lambda request: self._asked(request.url))
        page.on("response", self._got)
        page.add_init_script(
            "const Real = WebSocket; window.sockets = []; window.sent = [];"
            "window.WebSocket = class extends Real { constructor(u) { super(u); sockets.push(this); }"
            " send(t) { sent.push(t); super.send(t); } };"
        )
        page.goto(address)
        page.wait_for_selector("#board svg")
        self.until("document.querySelector('#page-play select').options.length === 3")

    def _asked(self, url: str) -> None:
        if urlsplit(url).scheme not in ("data", "blob") and urlsplit(url).hostname != "127.0.0.1":
            self.wrong.append(f"asked for {url}")

    def _got(self, response: playwright.Response) -> None:
        if response.status >= 400:
            self.wrong.append(f"{response.status} {response.url}")

    def new(self, game: str, side: str, **setup: str) -> None:
        """A game against the network with 2 visits a move."""
        page = self.page
        page.get_by_label("Game", exact=True).first.select_option(game)
        for label, value in setup.items():
            page.locator("#page-play").get_by_label(label, exact=True).fill(value)
        page.get_by_label("You play").select_option(side)
        page.locator("#page-play").get_by_label("Visits").fill("2")
        page.click("#begin")

    def until(self, expression: str, seconds: float = 40) -> None:
        """Wait until it is true. (Playwright's own way evaluates text within the page, which the page forbids.)"""
        end = time.monotonic() + seconds
        while not self.page.evaluate(expression):
            assert time.monotonic() < end, expression
            self.page.wait_for_timeout(40)

    def at(self, ply: int) -> None:
        """Wait until so many moves are played."""
        self.until(f"document.querySelector('.where').firstChild.data === '{ply}'")

    def point(self, x: float, y: float) -> tuple[float, float]:
        """A place on the board as shares of its width and height, in pixels of the window."""
        box = self.page.locator("#board svg").bounding_box()
        assert box is not None
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    def tap(self, x: float, y: float) -> None:
        self.page.mouse.click(*self.point(x, y))

    def words(self) -> str:
        """What a screen reader is told last."""
        return self.page.locator("#live").inner_text()

    def load(self, text: str) -> None:
        """Paste a record or a position anywhere on the page."""
        self.page.evaluate(
            "text => { const data = new DataTransfer(); data.setData('text', text);"
            " document.body.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true})); }",
            text,
        )


Opened = Callable[..., Tab]


@pytest.fixture
def open_page(board: Served, browser: playwright.Browser) -> Iterator[Opened]:
    tabs: list[Tab] = []

    def opened(width: int = 1400, height: int = 1000, fragment: str = "", **options: object) -> Tab:
        context = browser.new_context(viewport={"width": width, "height": height}, locale="en", **options)
        tabs.append(Tab(context.new_page(), f"http://127.0.0.1:{board.port}/{fragment}"))
        return tabs[-1]

    yield opened
    for tab in tabs:
        tab.page.context.close()
        assert tab.wrong == []


def go_point(column: int, row: int, size: int) -> tuple[float, float]:
    """The share of the board's side at which a point lies, from the top left."""
    return tuple((1.12 + n) / (size - 1 + 2.24) for n in (column, row))  # type: ignore[return-value]


def square(name: str) -> tuple[float, float]:
    return ("abcdefgh".index(name[0]) + 0.5) / 8, (8 - int(name[1]) + 0.5) / 8


class TestPlay:
    def test_chess_by_drag_and_click(self, open_page: Opened) -> None:
        tab = open_page()
        tab.new("chess", "both")
        page = tab.page
        page.wait_for_selector("body.squares")
        for ply, (start, goal) in enumerate([("e2", "e4"), ("e7", "e5"), ("g1", "f3"), ("b8", "c6"), ("f1", "b5")]):
            tab.at(ply)
            if ply % 2:
                tab.tap(*square(start))
                assert page.locator("#board circle[fill='#1f6feb']").count() > 0  # legal moves are shown
                tab.tap(*square(goal))
            else:
                page.mouse.move(*tab.point(*square(start)))
                page.mouse.down()
                page.mouse.move(*tab.point(*square(goal)), steps=4)
                page.mouse.up()
        tab.at(5)
        assert tab.words() == "White Bb5"
        for ply, (start, goal) in enumerate([("a7", "a6"), ("b5", "a4"), ("g8", "f6"), ("e1", "h1"), ("f8", "e7")], 5):
            tab.tap(*square(start))
            tab.tap(*square(goal))  # the king put on its rook castles
            tab.at(ply + 1)
        assert "r1bqk2r/1pppbppp/p1n2n2/4p3/B3P3/5N2/PPPP1PPP/RNBQ1RK1" in (
            page.locator("#board svg").get_attribute("aria-label") or ""
        )

    def test_promotion_asks_for_the_piece(self, open_page: Opened) -> None:
        tab = open_page()
        tab.load(PROMOTING)
        tab.page.wait_for_selector("body.squares")
        tab.tap(*square("a7"))
        tab.tap(*square("a8"))
        tab.page.get_by_role("button", name="knight").click()
        tab.at(1)
        assert tab.words().startswith("White a8=N")


class TestVariations:
    def test_drop_edit_save(self, open_page: Opened) -> None:
        tab = open_page(fragment="#record")
        page = tab.page
        page.evaluate(
            "text => { const data = new DataTransfer(); data.items.add(new File([text], 'game.sgf'));"
            " document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true})); }",
            SGF,
        )
        tab.until("document.querySelectorAll('.tree .node').length === 8")
        assert page.locator(".side").first.inner_text().strip() == "Ada <b>x</b>"  # a name is text, never markup
        page.keyboard.press("End")
        tab.at(5)
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowDown")  # the other variation
        tab.until("document.getElementById('live').innerText.includes('White G3')")
        page.get_by_role("button", name="Make main line").click()
        page.get_by_label("Comment").fill("joseki")
        page.get_by_role("button", name="△").click()
        tab.tap(*go_point(6, 6, 9))
        page.wait_for_selector("#board path[d*='l.26 .43']")
        page.get_by_role("button", name="△").click()
        page.get_by_role("button", name="Undo").click()
        page.wait_for_selector("#board path[d*='l.26 .43']", state="detached")
        page.get_by_role("button", name="Redo").click()
        page.wait_for_selector("#board path[d*='l.26 .43']")
        with page.expect_download() as saved:
            page.get_by_role("button", name="Save the record").click()
        text = Path(saved.value.path()).read_text()
        assert re.search(r"W\[gg\]", text)
        assert "joseki" in text
        assert "TR[gg]" in text
        assert text.index("W[gg]") < text.index("W[cg]")


class TestReview:
    def test_the_library_is_searched(self, open_page: Opened) -> None:
        tab = open_page(fragment="#review")
        page = tab.page
        page.get_by_label("Player", exact=True).fill("Ada")
        page.get_by_role("button", name="Search").click()
        page.get_by_role("button", name="Ada").first.click()
        tab.until("document.querySelector('.where small').innerText.includes('5')")


class TestLooks:
    @pytest.mark.parametrize(("width", "height"), [(390, 844), (820, 1180), (1280, 720), (1920, 1080)])
    def test_nothing_is_wider_than_the_window(self, open_page: Opened, width: int, height: int) -> None:
        tab = open_page(width, height)
        for name in ("play", "analyse", "record", "review", "networks"):
            tab.page.click(f"#go-{name}")
            assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.page.locator("#board").bounding_box()["width"] >= min(340, width - 60)

    def test_dark_light_and_japanese(self, open_page: Opened) -> None:
        tab = open_page(color_scheme="dark")
        page = tab.page
        background = "getComputedStyle(document.documentElement).backgroundColor"
        assert page.evaluate(background) == "rgb(18, 19, 22)"
        page.get_by_label("Light or dark").select_option("light")
        assert page.evaluate(background) == "rgb(244, 242, 238)"
        with page.expect_navigation():
            page.get_by_label("Language").select_option("ja")
        page.wait_for_selector("#board svg")
        assert page.locator("#go-play").inner_text() == "対局"
        assert page.evaluate("document.documentElement.lang") == "ja"

    def test_every_text_has_its_translation(self) -> None:
        keys = [
            set(re.findall(r'^  "?([\w. ]+?)"?: "|, "?([a-z][\w. ]*?)"?: "', (SOURCES / path).read_text(), re.M))
            for path in ("review/page/text-en.js", "web/page/text-ja.js")
        ]
        english, japanese = ({a or b for a, b in found} for found in keys)
        assert japanese - english == set()
        assert len(japanese) > 0.85 * len(english)

    def test_the_pages_are_light(self) -> None:
        files = [*SOURCES.glob("*/page/*.*"), *SOURCES.glob("games/*/board.js")]
        assert sum(path.stat().st_size for path in files) < 400_000

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_axe_finds_no_violation(self, open_page: Opened, scheme: str) -> None:
        axe = Path(os.environ.get("KEIMA_AXE", "node_modules/axe-core/axe.min.js"))
        if not axe.is_file():
            pytest.skip("axe-core is missing (npm install axe-core, or KEIMA_AXE names axe.min.js)")
        tab = open_page(color_scheme=scheme)
        found = {}
        for name in ("play", "analyse", "record", "review", "networks"):
            tab.page.click(f"#go-{name}")
            tab.page.evaluate(axe.read_text())
            violations = tab.page.evaluate("axe.run().then((result) => result.violations)")
            found[name] = [f"{v['id']}: {json.dumps([n['target'] for n in v['nodes']][:4])}" for v in violations]
        assert {name: told for name, told in found.items() if told} == {}
