"""The pages in a real browser: whole games, analyses, records and reviews, at three sizes, dark and light."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

import keima
from keima.systems.files.load import save
from keima.web.networks import Networks
from keima.web.server import Settings
from tests.web.browser import CHROMIUM, DESKTOP, PHONE, TABLET, Tab, column, go_point, playwright, square
from tests.web.conversation import Served, serve

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="chromium is missing")]

SOURCES = Path(keima.__file__).parent
NETWORKS = {
    "go": ("katago", {"blocks": 1}),
    "chess": ("lc0", {"blocks": 1, "channels": 8}),
    "connect_four": ("connect-four", {"blocks": 1, "channels": 8, "value_hidden": 8}),
}
SGF = "(;GM[1]FF[4]SZ[9]KM[7]PB[Ada <b>x</b>]PW[Bo];B[ee];W[gc];B[cc](;W[cg];B[gg])(;W[gg];B[cg]))"
START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
PANELS = ("play", "analyse", "record", "review", "networks")
VIEWS = pytest.mark.parametrize("view", [PHONE, TABLET, DESKTOP], ids=["phone", "tablet", "desktop"])


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
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
    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


Opened = Callable[..., Tab]


@pytest.fixture
def open_page(board: Served, browser: playwright.Browser) -> Iterator[Opened]:
    tabs: list[Tab] = []

    def opened(view: tuple[int, int, str] = DESKTOP, panel: str = "play") -> Tab:
        width, height, scheme = view
        context = browser.new_context(viewport={"width": width, "height": height}, locale="en", color_scheme=scheme)
        tabs.append(Tab(context.new_page(), f"http://127.0.0.1:{board.port}/#{panel}"))
        return tabs[-1]

    yield opened
    for tab in tabs:
        tab.page.context.close()
        assert tab.wrong == []


class TestPlay:
    @VIEWS
    def test_go_to_the_score(self, open_page: Opened, view: tuple[int, int, str]) -> None:
        """Two walls and a stone without hope: 15 points of area for Black, 10 for White, komi 1.5."""
        tab = open_page(view)
        tab.new("go", "both", Board="5", Komi="1.5")
        for ply, name in enumerate(["C1", "D1", "C2", "D2", "C3", "D3", "C4", "D4", "C5", "D5"]):
            tab.tap(*go_point(name, 5))
            tab.at(ply + 1)
        for ply, name in enumerate(["pass", "A3", "pass", "pass"], 11):
            if name == "pass":
                tab.button("Pass").click()
            else:
                tab.tap(*go_point(name, 5))
            tab.at(ply)
        tab.shows("Both passed")
        tab.shows("Tap stones", "#page-play .soft")
        for stone in ("C1", "D1", "A3"):  # the network knows nothing: say of each group whether it is dead
            dead = tab.page.locator("#board g[opacity='0.4'], #board circle[opacity='0.4']")
            before = dead.count()
            tab.tap(*go_point(stone, 5))
            tab.until(f"document.querySelectorAll('#board [opacity=\"0.4\"]').length !== {before}")
            if (dead.count() > before) != (stone == "A3"):
                before = dead.count()
                tab.tap(*go_point(stone, 5))
                tab.until(f"document.querySelectorAll('#board [opacity=\"0.4\"]').length !== {before}")
        tab.shows("B+3.5", "#page-play .soft")
        tab.button("Accept this score").click()
        tab.shows("Game over: B+3.5")

    @VIEWS
    def test_chess_to_mate_by_drag_and_click(self, open_page: Opened, view: tuple[int, int, str]) -> None:
        tab = open_page(view)
        tab.new("chess", "both")
        moves = ["e2e4", "e7e5", "f1c4", "b8c6", "d1h5", "g8f6", "h5f7"]
        for ply, (start, goal) in enumerate((square(move[:2]), square(move[2:])) for move in moves):
            if ply % 2:
                tab.tap(*start)
                assert tab.page.locator("#board circle[fill='#1f6feb']").count() > 0  # legal moves are shown
                tab.tap(*goal)
            else:
                tab.drag(start, goal)
            tab.at(ply + 1)
        tab.shows("Game over: 1-0")
        assert tab.words().startswith("White Qxf7#")

    @VIEWS
    def test_connect_four_to_four(self, open_page: Opened, view: tuple[int, int, str]) -> None:
        tab = open_page(view)
        tab.new("connect_four", "both")
        for ply, name in enumerate("dedeged"):
            tab.tap(*column(name))
            tab.at(ply + 1)
        tab.tap(*column("d"))
        tab.until("document.querySelector('.where').firstChild.data >= '8'")

    def test_castling_and_promotion(self, open_page: Opened) -> None:
        tab = open_page(TABLET)
        tab.load("r3k2r/P6p/8/8/8/8/7P/R3K2R w KQkq - 0 1")
        tab.page.wait_for_selector("body.squares")
        tab.tap(*square("e1"))
        tab.tap(*square("h1"))  # the king put on its rook castles
        tab.at(1)
        assert tab.words() == "White O-O"
        tab.load("8/P6k/8/8/8/8/7K/8 w - - 0 1")
        tab.at(0)
        tab.tap(*square("a7"))
        tab.tap(*square("a8"))
        tab.button("knight").click()
        tab.at(1)
        assert tab.words().startswith("White a8=N")

    def test_connect_four_by_keyboard_alone(self, open_page: Opened) -> None:
        """Against the network, to the end: Tab reaches the form and the board, arrows and Enter move."""
        tab = open_page()
        keyboard = tab.page.keyboard

        def reach(which: str) -> None:
            for _ in range(80):
                if tab.page.evaluate(f"document.activeElement.matches({which!r})"):
                    return
                keyboard.press("Tab")
            raise AssertionError(f"{which} is not reached")

        reach("#page-play select")
        keyboard.press("End")
        for _ in range(4):
            keyboard.press("Tab")
        reach("#begin")
        keyboard.press("Enter")
        tab.until("document.body.classList.contains('discs')")
        tab.until("document.activeElement.id === 'board'")
        over = "document.querySelector('#page-play .status').innerText.includes('over')"
        for ply in range(0, 42, 2):
            tab.until(f"document.querySelector('.where').firstChild.data === '{ply}' || {over}")
            if tab.page.evaluate(over):
                break
            keyboard.press("ArrowLeft" if ply % 4 else "ArrowRight")
            assert "column" in tab.words()
            keyboard.press("Enter")
            for step in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
                tab.page.wait_for_timeout(150)
                if "not" not in tab.words():  # the column is not full
                    break
                keyboard.press(step)
                keyboard.press("Enter")
        tab.shows("Game over")

    def test_against_the_network(self, open_page: Opened) -> None:
        """Hint, take back, a typed move, resignation, on a phone."""
        tab = open_page(PHONE)
        tab.new("go", "white", Board="5")
        tab.at(1)
        tab.button("Hint").click()
        tab.shows("Consider", "#page-play .soft")
        move = tab.page.locator("#page-play .soft").first.inner_text().split()[1].rstrip(".")
        tab.page.get_by_label("Type a move").fill(move.lower())
        tab.button("Play it").click()
        tab.at(3)
        tab.button("Take back").click()
        tab.at(1)
        tab.button("Resign").click()
        tab.shows("Game over: B+R")

    def test_a_tap_is_drawn_within_50_ms(self, open_page: Opened) -> None:
        tab = open_page()
        tab.new("go", "both", Board="19")
        tab.page.evaluate(
            "() => { const box = document.getElementById('board'); addEventListener('pointerup', () => {"
            " const began = performance.now(); const wait = () => box.querySelectorAll('circle[fill*=stone]').length"
            " ? (window.took = performance.now() - began) : requestAnimationFrame(wait);"
            " requestAnimationFrame(wait); }, true); }"
        )
        tab.tap(*go_point("Q16", 19))
        tab.until("window.took !== undefined")
        assert tab.page.evaluate("window.took") < 50

    def test_the_connection_lost_and_found(self, open_page: Opened) -> None:
        tab = open_page()
        tab.new("go", "both", Board="9")
        tab.tap(*go_point("E5", 9))
        tab.at(1)
        tab.page.evaluate("sockets.at(-1).close()")
        tab.page.wait_for_selector(".offline:not([hidden])")
        tab.page.wait_for_selector(".offline", state="hidden")
        tab.tap(*go_point("C7", 9))
        tab.at(2)
        tab.page.reload()
        tab.at(2)  # the session, and with it the game, is the same after loading the page again


class TestAnalyse:
    @VIEWS
    def test_candidates_stream(self, open_page: Opened, view: tuple[int, int, str]) -> None:
        tab = open_page(view, "analyse")
        page = tab.page
        tab.load(SGF)
        tab.until("document.querySelector('#board svg').viewBox.baseVal.width < 11")
        page.click("#analyse")
        page.wait_for_selector(".found .candidate[data-move]")
        seen = set()
        for _ in range(20):
            seen.add(page.locator(".found h2 span").first.inner_text())
            page.wait_for_timeout(60)
        assert len(seen) >= 5  # the numbers move
        assert page.locator("#board [data-choice]").count() >= 1
        page.click("#analyse")
        assert page.locator("#analyse").inner_text() == "Analyse"
        tab.until("!document.querySelector('.found h2 span').innerText.includes('visits/s')")
        visits = "Number(document.querySelector('.found h2 span').innerText.replace(/,/g, '').match(/[0-9]+/)[0])"
        before = page.evaluate(visits)
        page.wait_for_timeout(300)
        assert page.evaluate(visits) == before  # it does pause
        page.get_by_label("How many more visits").fill("50")
        tab.button("More visits:").click()
        tab.until(f"{visits} >= {before + 50}")
        page.locator(".found .candidate[data-move]").first.hover()
        page.wait_for_selector("#board circle[fill*=stone]")  # its variation stands on the board
        page.wait_for_selector(".graphs:not([hidden]) .plot")

    def test_two_networks_side_by_side_and_their_policies(self, open_page: Opened) -> None:
        tab = open_page(panel="analyse")
        page = tab.page
        tab.load(START)
        page.wait_for_selector("body.squares")
        page.locator("#page-analyse summary").first.click()
        page.locator("#page-analyse fieldset").nth(1).get_by_label("Network").select_option("chess.safetensors")
        page.click("#analyse")
        page.wait_for_selector(".found:nth-child(2) .candidate[data-move]")
        page.click("#analyse")
        tab.button("What each network would play").click()
        tab.shows("chess.safetensors", ".policies")
        assert page.locator(".policies tr").count() == 1
        page.locator(".policies button").click()
        assert page.locator("#board [data-choice]").count() >= 1


class TestPeople:
    def test_what_people_of_a_strength_would_play(
        self, reference: Path, browser: playwright.Browser, tmp_path: Path
    ) -> None:
        """Maia of 1100 and of 1900 side by side; every rank a network with KataGo's metadata knows."""
        names = ["maia-1100.pb.gz", "maia-1900.pb.gz", "katago-random-meta.bin.gz"]
        networks = Networks([str(reference / "nets" / name) for name in names], {"threads": 1}, own=False)
        with serve(networks, Settings(kept=tmp_path)) as served, served.page() as page:
            for name in names:
                page.ask("open_network", network=name, anyway=True)
                page.ready(name)
            tab = Tab(browser.new_page(locale="en"), f"http://127.0.0.1:{served.port}/#analyse")
            tab.load(START)
            tab.page.wait_for_selector("body.squares")
            tab.button("What each network would play").click()
            tab.shows("maia-1900", ".policies")
            rows = tab.page.locator(".policies tr").all_inner_texts()
            for name, row in zip(names, rows, strict=False):
                answer = keima.Evaluator(keima.load(reference / "nets" / name), "torch")(
                    [keima.chess.Position.start()]
                )[0]
                assert answer.best == "e2e4"
                assert row.split("\t")[:2] == [name, f"e4 {100 * answer.policy['e2e4']:.0f} %"]
            tab.load("(;GM[1]SZ[19])")
            tab.until("!document.body.classList.contains('squares')")
            tab.button("What each network would play").click()
            tab.shows("as 10k", ".policies")
            told = tab.page.locator(".policies").inner_text()
            assert all(f"{names[2]} as {rank}" in told for rank in ("20k", "10k", "1k", "1d", "9d"))
            assert tab.wrong == []
            tab.page.close()


class TestVariations:
    @VIEWS
    def test_drop_edit_save(self, open_page: Opened, view: tuple[int, int, str]) -> None:
        tab = open_page(view, "record")
        page = tab.page
        tab.drop(SGF, "game.sgf")
        tab.until("document.querySelectorAll('.tree .node').length === 8")
        assert page.locator(".side").first.inner_text().strip() == "Ada <b>x</b>"  # a name is text, never markup
        page.keyboard.press("End")
        tab.at(5)
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowDown")  # the other variation
        tab.until("document.getElementById('live').innerText.includes('White G3')")
        tab.button("Make main line").click()
        page.get_by_label("Comment").fill("joseki")
        tab.button("△").click()
        tab.tap(*go_point("G3", 9))
        page.wait_for_selector("#board [data-mark=triangle]")
        tab.button("→").click()
        tab.tap(*go_point("C3", 9))
        tab.tap(*go_point("E5", 9))
        page.wait_for_selector("#board [data-mark=arrow]")
        tab.button("→").click()
        tab.button("Undo").click()
        page.wait_for_selector("#board [data-mark=arrow]", state="detached")
        tab.button("Redo").click()
        page.wait_for_selector("#board [data-mark=arrow]")
        text = tab.saved()
        assert text.index("W[gg]") < text.index("W[cg]")
        assert "joseki" in text
        assert "TR[gg]" in text
        assert "AR[cg:ee]" in text
        page.reload()
        tab.until("document.querySelectorAll('.tree .node').length === 8")
        assert tab.saved() == text

    def test_setting_up_and_pictures(self, open_page: Opened) -> None:
        tab = open_page(panel="record")
        tab.page.locator("[data-tool='piece:W']").click()
        tab.tap(*go_point("D4", 19))
        tab.until("document.querySelectorAll('#board circle[fill*=white-stone]').length === 1")
        for kind, magic in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
            with tab.page.expect_download() as saved:
                tab.button(f"{kind} file").click()
            data = Path(saved.value.path()).read_bytes()
            assert data.startswith(magic)
            assert b"var(" not in data
        assert "AW[dp]" in tab.saved()

    def test_a_broken_file_gets_a_message(self, open_page: Opened) -> None:
        tab = open_page()
        tab.load("(;GM[1]SZ[9];B[zz")
        tab.page.wait_for_selector(".toast:not([hidden])")
        assert tab.page.locator(".toast").inner_text()


class TestReview:
    @VIEWS
    def test_from_a_dropped_game_to_a_solved_exercise(self, open_page: Opened, view: tuple[int, int, str]) -> None:
        """White leaves the queen to be taken; who takes it in the exercise has found the better move."""
        tab = open_page(view, "review")
        page = tab.page
        tab.drop('[White "Ada <b>x</b>"]\n\n1. f3 e5 2. g4 d6 3. a3 d5 4. b3 *', "fool.pgn")  # Qh4# thrice not played
        tab.until("document.querySelector('.where small').innerText.includes('7')")
        page.locator("#page-review").get_by_label("Visits").fill("300")
        page.click("#review-start")
        tab.shows("Finished", "#page-review .soft[role=status]")
        page.wait_for_selector("#report .plot")
        if view[0] >= 1000:  # no scrolling is needed to see them
            page.set_viewport_size({"width": 1366, "height": 640})
            box = page.locator("#report .lists thead").first.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] < 640
            page.set_viewport_size({"width": view[0], "height": view[1]})
        assert page.locator("#report h1").inner_text().startswith("Ada <b>x</b>")
        page.locator("#report").get_by_role("tab", name="All moves").click()
        assert page.locator("#panel-all tr[data-move]").count() == 7
        page.locator("#panel-all tr[data-move='4']").click()
        assert page.locator("#report .where").inner_text().startswith("4")
        tab.button("Back to the board").click()
        tab.button("Take them from this game").click()
        page.locator(".tasks button", has_text="Move 4").click()
        tab.tap(*square("a7"))
        tab.tap(*square("a6"))
        tab.shows("Try again", ".verdict")
        tab.tap(*square("d8"))
        tab.tap(*square("h4"))
        tab.shows("Right: ", ".verdict")

    def test_the_library_is_searched(self, open_page: Opened) -> None:
        tab = open_page(panel="review")
        tab.page.get_by_label("Player", exact=True).fill("Ada")
        tab.button("Search").click()
        tab.page.get_by_role("button", name="Ada").first.click()
        tab.until("document.querySelector('.where small').innerText.includes('5')")


class TestLooks:
    @pytest.mark.parametrize(("width", "height"), [(390, 844), (820, 1180), (1280, 720), (1366, 640), (1920, 1080)])
    def test_nothing_is_wider_than_the_window(self, open_page: Opened, width: int, height: int) -> None:
        tab = open_page((width, height, "light"))
        for language, panel in product(("en", "ja"), PANELS):
            if panel == "play" and language == "ja":
                with tab.page.expect_navigation():
                    tab.page.get_by_label("Language").select_option("ja")
                tab.page.wait_for_selector("#board svg")
            tab.open(panel)
            assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
            assert tab.page.evaluate(
                "document.querySelector('.pages').scrollWidth <= document.querySelector('.pages').clientWidth"
            )
        assert tab.page.locator("#board").bounding_box()["width"] >= min(340, width - 60)

    def test_dark_light_and_japanese(self, open_page: Opened) -> None:
        tab = open_page()
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

    def test_the_pages_are_light(self, open_page: Opened) -> None:
        """All that one visit loads, in every panel, in bytes as sent."""
        tab = open_page()
        for panel in PANELS:
            tab.open(panel)
        assert len(tab.weight) > 15
        assert sum(tab.weight.values()) <= 400_000

    @pytest.mark.parametrize("view", [PHONE, TABLET, (1400, 1000, "light"), DESKTOP])
    def test_axe_finds_no_violation(self, open_page: Opened, view: tuple[int, int, str]) -> None:
        axe = Path(os.environ.get("KEIMA_AXE", "node_modules/axe-core/axe.min.js"))
        if not axe.is_file():
            pytest.skip("axe-core is missing (npm install axe-core, or KEIMA_AXE names axe.min.js)")
        tab = open_page(view)
        tab.page.evaluate(axe.read_text())
        found = {}
        for name in PANELS:
            tab.open(name)
            violations = tab.page.evaluate("axe.run().then((result) => result.violations)")
            found[name] = [f"{v['id']}: {json.dumps([n['target'] for n in v['nodes']][:4])}" for v in violations]
        assert {name: told for name, told in found.items() if told} == {}
