"""A page in a real browser: Debian's chromium, driven by Playwright, against the real server with small networks."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is missing")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is missing")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PHONE, TABLET, DESKTOP = (390, 844, "dark"), (820, 1180, "light"), (1400, 1000, "dark")
VIEWS = pytest.mark.parametrize("view", [PHONE, TABLET, DESKTOP], ids=["phone", "tablet", "desktop"])
IN_CHROMIUM = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="chromium is missing")]
PANELS = ("play", "analyse", "record", "review", "networks")
SGF = "(;GM[1]FF[4]SZ[9]KM[7]PB[Ada <b>x</b>]PW[Bo];B[ee];W[gc];B[cc](;W[cg];B[gg])(;W[gg];B[cg]))"
START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"


class Tab:
    """A page, and what may not happen on it: errors, warnings, requests to elsewhere."""

    def __init__(self, page: playwright.Page, address: str) -> None:
        self.page, self.wrong = page, []
        self.weight: dict[str, int] = {}
        page.set_default_timeout(120_000)  # two cores may search, test and draw at once
        page.on("console", lambda m: self.wrong.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", lambda request: self._asked(request.url))
        page.on("response", self._got)
        page.add_init_script(
            "const Real = WebSocket; window.sockets = [];"
            "window.WebSocket = class extends Real { constructor(u) { super(u); sockets.push(this); } };"
            "const Context = AudioContext; window.sounds = [];"
            "window.AudioContext = class extends Context { constructor() { super(); sounds.push('made'); } };"
            "const { start } = AudioScheduledSourceNode.prototype;"
            "AudioScheduledSourceNode.prototype.start ="
            " function (...at) { sounds.push('tone'); start.apply(this, at); };"
            "HTMLMediaElement.prototype.play = function () { sounds.push('played'); };"
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
        self.weight[response.url] = int(response.headers.get("content-length", 0))

    def open(self, name: str) -> None:
        """Turn to a panel."""
        self.page.click(f"#go-{name}")

    def new(self, game: str, side: str, **setup: str) -> None:
        """A game against the network with 2 visits a move."""
        page, panel = self.page, self.page.locator("#page-play")
        panel.get_by_label("Game", exact=True).select_option(game)
        for label, value in setup.items():
            panel.get_by_label(label, exact=True).fill(value)
        panel.get_by_label("You play").select_option(side)
        panel.get_by_label("Visits").fill("2")
        page.evaluate("document.querySelector('.where').firstChild.data = 'before'")  # a number is then the new game's
        page.click("#begin")
        self.until(
            f"document.body.className === '{ {'go': '', 'chess': 'squares', 'connect_four': 'squares discs'}[game] }'"
        )
        if side == "both":
            self.at(0)
        else:  # the network may have begun: 0 may have stood there for less than the time between two looks
            self.until("['0', '1'].includes(document.querySelector('.where').firstChild.data)")

    def until(self, expression: str, seconds: float = 40) -> None:
        """Wait until it is true. (Playwright's own way evaluates text within the page, which the page forbids.)"""
        end = time.monotonic() + seconds
        held = "() => { try { return " + expression + "; } catch { return false; } }"
        while not self.page.evaluate(held):
            if time.monotonic() > end:
                seen = self.page.locator("body").inner_text()
                raise AssertionError(f"{seconds} s without {expression}; the page says:\n{seen}")
            self.page.wait_for_timeout(20)

    def at(self, ply: int) -> None:
        """Wait until so many moves are played."""
        self.until(f"document.querySelector('.where').firstChild.data === '{ply}'")

    def shows(self, words: str, where: str = "#page-play .status") -> None:
        """Wait until it says that."""
        self.until(f"(document.querySelector({where!r}) || {{innerText: ''}}).innerText.includes({words!r})")

    def point(self, x: float, y: float) -> tuple[float, float]:
        """A place on the board as shares of its width and height, in pixels of the window."""
        left, top, width, height = self.page.evaluate(
            "() => { const board = document.querySelector('#board svg'); board.scrollIntoView({block: 'nearest'});"
            " const box = board.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]; }"
        )
        return left + x * width, top + y * height

    def tap(self, x: float, y: float) -> None:
        """Click there on the board."""
        self.page.mouse.click(*self.point(x, y))

    def drag(self, start: tuple[float, float], goal: tuple[float, float]) -> None:
        """Press, move and let go."""
        self.page.mouse.move(*self.point(*start))
        self.page.mouse.down()
        self.page.mouse.move(*self.point(*goal), steps=4)
        self.page.mouse.up()

    def reach(self, which: str, key: str = "Tab") -> None:
        """Go there by keyboard: Tab, or Shift+Tab."""
        for _ in range(120):
            if self.page.evaluate(f"document.activeElement.matches({which!r})"):
                return
            self.page.keyboard.press(key)
        raise AssertionError(f"{which} is not reached")

    def words(self) -> str:
        """What a screen reader is told last."""
        return self.page.locator("#live").inner_text()

    def button(self, name: str) -> playwright.Locator:
        """A button by its words."""
        return self.page.get_by_role("button", name=name, exact=True)

    def load(self, text: str) -> None:
        """Paste a record or a position anywhere on the page."""
        self.page.evaluate(
            "text => { const data = new DataTransfer(); data.setData('text', text);"
            " document.body.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true})); }",
            text,
        )

    def drop(self, text: str, name: str) -> None:
        """Drop a file anywhere on the page."""
        self.page.evaluate(
            "([text, name]) => { const data = new DataTransfer(); data.items.add(new File([text], name));"
            " document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true})); }",
            [text, name],
        )

    def saved(self) -> str:
        """The record as the page saves it."""
        with self.page.expect_download() as found:
            self.button("Save the record").click()
        with open(found.value.path(), encoding="utf-8") as file:
            return file.read()


Opened = Callable[..., Tab]


class Cursor:
    """The point of the board that the keyboard stands on, moved by arrows."""

    def __init__(self, tab: Tab, at: str) -> None:
        self.tab, self.at = tab, at

    def choose(self, point: str) -> None:
        """Go to a point and press Enter."""
        columns = "ABCDEFGHJKLMNOPQRST" if point[0].isupper() else "abcdefgh"
        right, up = columns.index(point[0]) - columns.index(self.at[0]), int(point[1:]) - int(self.at[1:])
        for steps, keys in ((right, ("ArrowLeft", "ArrowRight")), (up, ("ArrowDown", "ArrowUp"))):
            for _ in range(abs(steps)):
                self.tab.page.keyboard.press(keys[steps > 0])
        if (right, up) != (0, 0):
            assert self.tab.words().startswith(point)
        self.at = point
        self.tab.page.keyboard.press("Enter")


def violations(page: playwright.Page, state: str) -> list[str]:
    """What axe-core finds wrong with what the page shows at each size, dark or light."""
    found = []
    page.evaluate(axe.Axe().axe_script)
    for width, height, scheme in (PHONE, TABLET, DESKTOP):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        for one in page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]:
            for node in one["nodes"]:
                told = " ".join(node["failureSummary"].split())
                found.append(f"{state}, {width} {scheme}: {one['id']} {node['target']} {told}")
    return found


def go_point(name: str, size: int) -> tuple[float, float]:
    """The shares of the board's width and height at which a point lies, from the top left."""
    column, row = "ABCDEFGHJKLMNOPQRST".index(name[0]), size - int(name[1:])
    return (1.12 + column) / (size - 1 + 2.24), (1.12 + row) / (size - 1 + 2.24)


def square(name: str) -> tuple[float, float]:
    """Likewise of a square of the chess board."""
    return ("abcdefgh".index(name[0]) + 0.5) / 8, (8 - int(name[1]) + 0.5) / 8


def column(name: str) -> tuple[float, float]:
    """Likewise of a column of connect four."""
    return ("abcdefg".index(name) + 0.5) / 7, 0.5
