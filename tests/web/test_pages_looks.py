"""How the pages look in a real browser: sizes, dark and light, languages, weight, accessibility."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from typer.testing import CliRunner

import keima
from keima.cli.main import app
from tests.web.browser import IN_CHROMIUM, PANELS, PHONE, Opened, playwright, violations

SIZES = [(390, 844), (820, 1180), (1280, 720), (1366, 640), (1920, 1080)]
SOURCES = Path(keima.__file__).parent
GO = "(;GM[1]SZ[9]KM[7]PB[Ada]PW[Bo];B[ee]C[joseki]TR[cc];W[gc];B[cc](;W[cg])(;W[gg]))"
CHESS = '[White "Ada"]\n[Black "Bo"]\n\n1. f3 e5 2. g4 {a joke} d6 *\n'
FOUR = '[First "Ada"]\n[Second "Bo"]\n\nd d c e *\n'

pytestmark = IN_CHROMIUM


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`keima review` of a game of Go and one of chess, both with mistakes, and the page that lists them."""
    folder = tmp_path_factory.mktemp("reports")
    (folder / "go.sgf").write_text("(;GM[1]SZ[9]KM[7]PB[Ada]PW[Bo];B[ee];W[ge];B[aa];W[ec];B[ii];W[cg];B[ia])")
    (folder / "none.sgf").write_text("(;GM[1]SZ[9]KM[7])")
    (folder / "cut.pgn").write_text("1. e4 e5 2. Ke5 *\n")
    (folder / "chess.pgn").write_text('[White "Ada"]\n[Black "Bo"]\n\n1. f3 e5 2. g4 d6 3. a3 Qg5 4. b3 Qxd2+ *\n')
    result = CliRunner().invoke(app, ["review", str(folder), "--visits", "8", "-o", str(folder)])
    assert result.exit_code == 2, result.output  # one record breaks off
    return folder


class TestLooks:
    def test_nothing_is_wider_than_the_window(self, open_page: Opened) -> None:
        measure = (
            "names => names.map((name) => { document.getElementById(`go-${name}`).click();"
            " const tabs = document.querySelector('.pages'), board = document.getElementById('board');"
            " return [document.documentElement.scrollWidth, tabs.scrollWidth - tabs.clientWidth, board.clientWidth]; })"
        )
        for language in ("en", "ja"):
            page = open_page(language=language).page
            for width, height in SIZES:
                page.set_viewport_size({"width": width, "height": height})
                for whole, hidden, board in page.evaluate(measure, PANELS):
                    assert whole <= width
                    assert hidden <= 0
                    assert board >= min(340, width - 60)

    @pytest.mark.parametrize("language", ["en", "ja"])
    def test_no_words_are_cut_off(self, open_page: Opened, language: str) -> None:
        """Of buttons, labels and headings, at every size; a player's long name may end in an ellipsis."""
        tab = open_page(panel="record", language=language)
        tab.load(GO)
        tab.until("document.querySelector('.where small').innerText.includes('4')")
        tab.page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        cut = (
            "() => [...document.querySelectorAll('button, label, legend, summary, h2, h3, th, .status, .tag')]"
            ".filter((one) => one.checkVisibility() && one.textContent.trim() && (one.scrollWidth > one.clientWidth + 1"
            " || one.getBoundingClientRect().right > innerWidth) && getComputedStyle(one).display !== 'inline')"
            ".map((one) => one.textContent)"
        )
        for width, height in SIZES:
            tab.page.set_viewport_size({"width": width, "height": height})
            for panel in PANELS:
                tab.open(panel)
                assert tab.page.evaluate(cut) == [], (width, panel)

    @pytest.mark.parametrize("game", ["go", "chess", "connect_four"])
    @pytest.mark.parametrize("view", [PHONE, (1366, 640, "light")], ids=["phone", "laptop"])
    def test_nothing_is_too_small_to_read(self, open_page: Opened, view: tuple[int, int, str], game: str) -> None:
        """Letters have 11 pixels at least, those on a board of 19×19 too."""
        tab = open_page(view)
        small = (
            "() => [...document.querySelectorAll('body :not(.sr)')].filter((one) => one.checkVisibility()"
            " && [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())).map((one) => ["
            " parseFloat(getComputedStyle(one).fontSize) * (one.ownerSVGElement ? one.getScreenCTM().a : 1),"
            " one.textContent]).filter(([size]) => size < 10.99)"
        )
        tab.new(game, "both")
        tab.button("Hint").click()
        tab.shows("Consider", "#page-play .soft")
        for panel in PANELS:
            assert tab.page.evaluate(small) == []
            tab.open(panel)

    def test_a_report_fits_a_laptop(self, reports: Path, browser: playwright.Browser) -> None:
        """At a mistake: nothing of what goes with the board is outside the window, nor the list of mistakes."""
        page = browser.new_page()
        for name, (width, height) in product(("go", "chess"), SIZES[2:4]):
            page.set_viewport_size({"width": width, "height": height})
            page.goto((reports / f"{name}.html").as_uri())
            page.locator("#panel-mistakes tr[data-move]").first.dispatch_event("click")
            assert page.locator(".instead").is_visible()
            for part in (".controls", "#panel-mistakes thead"):
                box = page.locator(part).bounding_box()
                assert box is not None
                assert box["y"] + box["height"] <= height
        page.close()

    def test_a_report_without_moves_and_one_that_breaks_off(self, reports: Path, browser: playwright.Browser) -> None:
        """Columns stand under their heads, and no line of a message leaves a phone's window, nor the list's cells."""
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.goto((reports / "none.html").as_uri())
        rows = "[...document.querySelectorAll('[data-part=choice] .candidate')].map((row) => row.offsetHeight)"
        assert max(page.evaluate(rows)) < 40
        page.goto((reports / "cut.html").as_uri())
        assert "the review ends before it" in page.locator(".notice").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.goto((reports / "index.html").as_uri())
        game = page.locator("td:nth-child(3)", has_text="illegal san").bounding_box()
        assert game is not None
        assert game["x"] + game["width"] <= 382
        page.close()

    def test_a_phone_keeps_the_board_in_sight(self, reports: Path, browser: playwright.Browser) -> None:
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.goto((reports / "go.html").as_uri())
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        box = page.locator("[data-part=board] svg").bounding_box()
        assert box is not None
        assert page.evaluate("scrollY") > 100
        assert box["y"] >= 0
        assert box["y"] + box["height"] < 600
        page.close()

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

    def test_notes_rules_refusals_and_endings_are_worded_in_japanese(self, open_page: Opened) -> None:
        tab = open_page()
        with tab.page.expect_navigation():
            tab.page.get_by_label("Language").select_option("ja")
        tab.until("document.querySelector('#page-play select').options.length === 3")
        rules = tab.page.locator("#page-play select:has(option[value=aga-button]) option").all_inner_texts()
        assert {"日本", "中国", "AGA ボタン"} <= set(rules)
        tab.load("(;SZ[9]KM[750];B[ee])")
        tab.shows("コミ KM[750] を 7.5 と解釈しました", ".toast")
        tab.shows("棋譜にルールの記載がないため、中国ルールとします", ".toast")
        tab.load("hello")
        tab.shows("棋譜でも局面でもありません", ".toast")
        tab.load("1. f3 e5 2. g4 Qh4# 0-1")
        tab.until("document.querySelector('.where small').textContent.includes('4')")
        tab.page.keyboard.press("End")
        tab.open("play")
        tab.shows("終局：チェックメイト")

    def test_a_review_warns_in_japanese(self, open_page: Opened) -> None:
        """Of a network that learned on other boards."""
        tab = open_page(panel="review", language="ja")
        tab.load("(;GM[1]SZ[5]KM[7];B[cc];W[cb];B[bb])")
        tab.until("document.querySelector('#board svg').viewBox.baseVal.width < 8")
        tab.page.locator("#page-review input[type=number]").fill("0")
        tab.page.click("#review-start")
        tab.shows(" は 7×7 から 19×19 の盤で学習しました。5×5 の盤での評価は", "#report .notice")

    def test_every_text_has_its_translation(self) -> None:
        keys = [
            set(re.findall(r'^  "?([\w. -]+?)"?: "|, "?([a-z][\w. -]*?)"?: "', (SOURCES / path).read_text(), re.M))
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


class TestAxe:
    """axe-core finds no violation at three sizes, dark or light."""

    @pytest.mark.parametrize(
        ("language", "record"),
        [("en", GO), ("ja", CHESS), ("en", FOUR)],
        ids=["go", "chess in Japanese", "connect four"],
    )
    def test_every_panel(self, open_page: Opened, language: str, record: str) -> None:
        """With a record, with what searches found, every fold open, with a message."""
        tab = open_page(panel="record", language=language)
        page = tab.page
        tab.load(record)
        tab.until("document.querySelector('.where small').innerText.includes('4')")
        page.keyboard.press("End")
        tab.at(4)
        page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        found = violations(page, "variations")
        tab.open("analyse")
        page.click("#analyse")
        page.wait_for_selector(".found .candidate[data-move]")
        page.click("#analyse")
        page.locator("#page-analyse section:has(.policies) button").first.click()
        page.wait_for_selector(".policies button")
        found += violations(page, "analyse")
        tab.open("review")
        page.locator("#page-review input[type=number]").fill("8")
        page.click("#review-start")
        page.wait_for_selector("#report .plot")
        tab.until("document.querySelector('#page-review progress').hidden")
        page.evaluate("document.querySelector('#panel-all tr[data-move]').click()")
        found += violations(page, "report")
        page.click(".reportbox > .button")
        page.locator("#page-review section:has(.tasks, .stack) button").first.click()
        page.wait_for_selector("#page-review .stack > .stack > *, .verdict", state="attached")
        found += violations(page, "review")
        tab.open("play")
        page.click("[data-act=hint]")
        page.wait_for_selector("#page-play p.soft:not(:empty)")
        found += violations(page, "play")
        tab.load("(;GM[1]SZ[9];B[zz")
        page.wait_for_selector(".toast:not([hidden])")
        tab.open("networks")
        found += violations(page, "networks and a message")
        assert not found, "\n".join(found)

    def test_reports(self, reports: Path, browser: playwright.Browser) -> None:
        page = browser.new_page()
        found = []
        for name in ("go", "chess", "index"):
            page.goto((reports / f"{name}.html").as_uri())
            for tab in page.get_by_role("tab").all() or [page.locator("body")]:
                tab.click()
                found += violations(page, f"{name} {tab.get_attribute('id')}")
        page.close()
        assert not found, "\n".join(found)
