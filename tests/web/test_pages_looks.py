"""How the pages look in a real browser: sizes, dark and light, languages, weight, accessibility."""

from __future__ import annotations

import json
import os
import re
from itertools import product
from pathlib import Path

import pytest

import keima
from tests.web.browser import DESKTOP, IN_CHROMIUM, PANELS, PHONE, TABLET, Opened

SOURCES = Path(keima.__file__).parent

pytestmark = IN_CHROMIUM


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

    def test_notes_and_rules_are_worded_in_japanese(self, open_page: Opened) -> None:
        tab = open_page()
        with tab.page.expect_navigation():
            tab.page.get_by_label("Language").select_option("ja")
        tab.until("document.querySelector('#page-play select').options.length === 3")
        rules = tab.page.locator("#page-play select:has(option[value=aga-button]) option").all_inner_texts()
        assert {"日本", "中国", "AGA ボタン"} <= set(rules)
        tab.load("(;SZ[9]KM[750];B[ee])")
        tab.shows("コミ KM[750] を 7.5 と解釈しました", ".toast")
        tab.shows("棋譜にルールの記載がないため、中国ルールとします", ".toast")

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
