"""Analyses, variations and reviews in a real browser, at three sizes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import keima
from keima.cli.main import app
from keima.web.networks import Networks
from keima.web.server import Settings
from tests.web.browser import IN_CHROMIUM, SGF, START, VIEWS, Opened, Tab, go_point, playwright, square
from tests.web.conversation import serve, two_thousand_moves

pytestmark = IN_CHROMIUM


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
        for _ in range(100):
            seen.add(page.locator(".found h2 span").first.inner_text())
            if len(seen) >= 5:
                break
            page.wait_for_timeout(50)
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
            tab.open("play")
            for profile in ("preaz_5k", "proyear_1950"):  # as opponent: its first move is the likeliest of such people
                panel = tab.page.locator("#page-play")
                panel.get_by_label("You play").select_option("white")
                panel.get_by_label("Plays like").select_option(profile)
                panel.get_by_label("Board", exact=True).fill("9")
                panel.get_by_label("Komi").fill("7")
                panel.get_by_label("Visits").fill("1")
                tab.page.evaluate("document.getElementById('live').textContent = ''")
                tab.page.click("#begin")
                tab.until("document.getElementById('live').innerText.startsWith('Black')")
                human = keima.Evaluator(keima.load(reference / "nets" / names[2]), "torch").bind(profile=profile)
                answer = human([keima.go.Position.start(9, rules="chinese", komi=7)])[0]
                assert tab.words() == f"Black {answer.best}"
                assert tab.page.locator(".side").first.inner_text().split("\n")[0] == f"{names[2]} ({profile})"
            assert tab.wrong == []
            tab.page.close()


class TestNetworks:
    def test_what_is_too_large_says_so_and_loads_anyway(
        self, small_network: Path, browser: playwright.Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Here whatever has fewer than 10¹² visits a second."""
        monkeypatch.setattr("keima.web.networks.SLOW", 1e12)
        networks = Networks([str(small_network)], {"threads": 1}, own=False)
        with serve(networks, Settings(kept=tmp_path)) as served:
            tab = Tab(browser.new_page(locale="en"), f"http://127.0.0.1:{served.port}/#networks")
            panel, about = "#page-networks", r"about ([\d.]+) visits a second on this machine, too few to play with"
            tab.page.wait_for_selector(f"{panel} li .notice")  # it was read, and is not loaded
            tab.page.locator(panel).get_by_role("button", name="Load", exact=True).click()
            question = tab.page.get_by_role("dialog")
            asked = re.search(about, question.inner_text())
            listed = re.search(about, tab.page.locator(f"{panel} li .notice").inner_text())
            assert asked is not None
            assert listed is not None
            assert asked[1] == listed[1]
            whole = re.search(r"about (\d+) visits/s here", tab.page.locator(panel).inner_text())
            assert whole is not None
            assert abs(int(whole[1]) - float(asked[1])) <= 0.5  # both are rounded
            assert "not loaded" in tab.page.locator(panel).inner_text()
            question.get_by_role("button", name="Load it anyway").click()
            tab.until(f"/\\bready\\b/.test(document.querySelector('{panel}').innerText)")
            tab.page.get_by_text("Architecture and pedigree").click()
            assert "ConnectFourNetwork" in tab.page.locator(panel).inner_text()
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

    def test_variations_are_promoted_deleted_and_come_back(self, open_page: Opened) -> None:
        """Three answers to one move; undo and redo by button and by keyboard."""
        tab = open_page(panel="record")
        page = tab.page

        def order() -> list[str]:
            return re.findall(r"W\[(\w\w)\]", tab.saved())

        def nodes(count: int) -> None:
            tab.until(f"document.querySelectorAll('.tree .node').length === {count}")

        tab.load("(;GM[1]SZ[9]KM[7];B[ee](;W[gc])(;W[gg])(;W[cc];B[cg]))")
        nodes(6)
        page.keyboard.press("ArrowRight")
        tab.at(1)
        assert order() == ["gc", "gg", "cc"]
        page.locator(".branches").get_by_role("button", name="C7").click()
        tab.until("document.getElementById('live').innerText.includes('White C7')")
        tab.button("Promote").click()
        assert order() == ["gc", "cc", "gg"]
        tab.button("Delete").click()
        nodes(4)
        tab.at(1)
        assert order() == ["gc", "gg"]
        tab.button("Undo").click()
        nodes(6)
        tab.button("Redo").click()
        nodes(4)
        page.keyboard.press("Control+z")
        nodes(6)
        page.keyboard.press("Control+z")  # the promotion too
        tab.until("document.querySelector('[data-act=redo]').disabled === false")
        assert order() == ["gc", "gg", "cc"]
        page.keyboard.press("Control+Shift+z")
        page.keyboard.press("Control+Shift+z")
        nodes(4)
        assert order() == ["gc", "gg"]

    def test_the_clipboard_gives_and_takes(self, open_page: Opened) -> None:
        """Ctrl+V with SGF, PGN, FEN and JSON; the board copied as SVG and as PNG."""
        tab = open_page(panel="record")
        page = tab.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        text = "document.getElementById('board').getAttribute('aria-label')"
        position = '{"game": "connect_four", "moves": ["d", "d"]}'
        pasted = [(SGF, "", 5), ("1. e4 e5 *", "squares", 2), (position, "squares discs", 2)]
        for record, classes, moves in [*pasted, ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "squares", 0)]:
            page.evaluate("text => navigator.clipboard.writeText(text)", record)
            before = page.evaluate(text)
            page.keyboard.press("Control+v")
            tab.until(f"document.body.className === {classes!r} && {text} !== {before!r}")
            tab.until(f"document.querySelector('.where small').innerText.includes('{moves}')")
        page.evaluate("navigator.clipboard.writeText('')")
        tab.button("Copy SVG").click()
        tab.shows("Copied.", ".toast")
        assert page.evaluate("navigator.clipboard.readText()").startswith("<svg")
        page.locator(".toast").get_by_role("button").click()  # its "Copied." was the SVG's
        tab.button("Copy PNG").click()
        page.wait_for_selector(".toast:not([hidden])")
        tab.shows("Copied.", ".toast")
        kinds = "(async () => (await navigator.clipboard.read()).flatMap((one) => one.types))()"
        assert page.evaluate(kinds) == ["image/png"]

    def test_marks_of_other_programs_have_their_colours(self, open_page: Opened) -> None:
        tab = open_page(panel="record")
        tab.load("1. e4 { [%csl Ra1,Yb2] [%cal Re2e4,Yd7d5,Ga1a8,Bh1h8] } *")
        tab.page.wait_for_selector("body.squares")
        tab.page.keyboard.press("End")
        tab.page.wait_for_selector("#board [data-mark]")
        drawn = tab.page.evaluate(
            "[...document.querySelectorAll('#board [data-mark]')]"
            ".map((one) => [one.dataset.mark, getComputedStyle(one).stroke])"
        )
        red, yellow, green, blue = "rgb(160, 32, 32)", "rgb(184, 110, 0)", "rgb(21, 120, 27)", "rgb(0, 60, 158)"
        arrows = [["arrow", colour] for colour in (red, yellow, green, blue)]
        assert drawn == [["cross", red], ["triangle", yellow], *arrows]

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

    def test_two_thousand_moves(self, open_page: Opened) -> None:
        tab = open_page(panel="record")
        tab.load(two_thousand_moves())
        tab.until("document.querySelector('.where small').innerText.includes('2000')")
        tab.page.keyboard.press("End")
        tab.at(2000)
        tab.page.keyboard.press("PageUp")
        tab.at(1990)

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
        page.locator("#page-review").get_by_label("Visits").fill("120")
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
        assert "with 30 visits, 120 where it matters" in page.locator("#report").inner_text()
        page.locator("#report").get_by_role("tab", name="All moves").click()
        assert page.locator("#panel-all tr[data-move]").count() == 7
        page.locator("#panel-all tr[data-move='4']").click()
        assert page.locator("#report .where").inner_text().startswith("4")
        tab.button("Back to the board").click()
        tab.button("Take them from this game").click()
        page.locator(".tasks button", has_text="Move 4").click()
        tab.shows("Find the better move for Black", ".verdict")
        tab.until("document.querySelector('.verdict').getBoundingClientRect().top >= 0")
        for part in (".verdict", "#board"):  # what is asked stands beside the board, on every screen
            box = page.locator(part).bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= view[1]
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

    def test_a_report_plays_its_variations_and_sorts_its_lists(
        self, browser: playwright.Browser, tmp_path: Path
    ) -> None:
        """The better move stands on the board; its variation moves pieces; all moves sort by what they lost."""
        (tmp_path / "a.pgn").write_text('[White "Ada"]\n\n1. f3 e5 2. g4 d6 3. a3 Qg5 4. b3 Qxd2+ *\n')
        (tmp_path / "b.pgn").write_text('[White "Bo"]\n\n1. e4 *\n')
        assert CliRunner().invoke(app, ["review", str(tmp_path), "--visits", "8", "-o", str(tmp_path)]).exit_code == 0
        page = browser.new_page()
        page.goto((tmp_path / "a.html").as_uri())
        page.locator("#panel-mistakes tr[data-move]").first.click()
        board = "document.querySelector('[data-part=board]').innerHTML"
        assert "better" in page.locator("[data-part=legend]").inner_text()
        before = page.evaluate(board)
        page.locator(".instead .candidate[data-candidate]").first.click()
        shown = page.evaluate(board)
        page.keyboard.press("]")
        assert len({before, shown, page.evaluate(board)}) == 3
        page.get_by_role("tab", name="All moves").click()
        page.locator("#panel-all").get_by_role("button", name="Chances").click()
        losses = page.locator("#panel-all td:nth-child(3)").all_inner_texts()
        numbers = [float(text.replace("−", "-")) for text in losses]
        assert len(numbers) == 8
        assert numbers == sorted(numbers)
        page.get_by_role("link", name="All games").click()
        rows = page.locator("tbody tr")
        for order, first in (("ascending", "a.pgn"), ("descending", "b.pgn")):
            page.get_by_role("button", name="File").click()
            assert page.locator(f"th[aria-sort={order}]").count() == 1
            assert first in rows.first.inner_text()
        page.close()
