"""Whole games in a real browser, by click, drag and keyboard, at three sizes."""

from __future__ import annotations

import re

from tests.web.browser import IN_CHROMIUM, PHONE, TABLET, VIEWS, Cursor, Opened, column, go_point, square

pytestmark = IN_CHROMIUM


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
        keyboard, reach = tab.page.keyboard, tab.reach
        reach("#page-play select")
        keyboard.press("End")
        for _ in range(4):
            keyboard.press("Tab")
        reach("#begin")
        keyboard.press("Enter")
        tab.until("document.body.classList.contains('discs')")
        tab.until("document.activeElement.id === 'board'")
        over = "document.querySelector('#page-play .status').innerText.includes('over')"
        moved = "Number(document.querySelector('.where').firstChild.data) > "
        for ply in range(0, 42, 2):
            tab.until(f"document.querySelector('.where').firstChild.data === '{ply}' || {over}")
            if tab.page.evaluate(over):
                break
            keyboard.press("ArrowLeft" if ply % 4 else "ArrowRight")
            assert "column" in tab.words()
            keyboard.press("Enter")
            for step in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
                tab.until(f"{moved}{ply} || document.getElementById('live').innerText.includes('not')")
                if "not" not in tab.words():  # the column is not full
                    break
                keyboard.press(step)
                keyboard.press("Enter")
        tab.shows("Game over")

    def test_go_by_keyboard_alone(self, open_page: Opened) -> None:
        """Set up, played, passed, a dead stone marked, the score accepted: 15 points to 10, komi 1.5."""
        tab = open_page()
        keyboard = tab.page.keyboard
        tab.reach("#page-play select")
        keyboard.press("Tab")
        keyboard.press("End")
        keyboard.press("ArrowUp")  # both sides
        for text in ("5", "", "1.5"):  # board, rules, komi
            keyboard.press("Tab")
            keyboard.type(text)
        tab.reach("#begin")
        keyboard.press("Enter")
        tab.until("document.querySelector('#board svg').viewBox.baseVal.width < 8")
        tab.until("document.activeElement.id === 'board'")
        at = Cursor(tab, "C3")
        for ply, name in enumerate(["C1", "D1", "C2", "D2", "C3", "D3", "C4", "D4", "C5", "D5"], 1):
            at.choose(name)
            tab.at(ply)
        for ply, name in enumerate(["pass", "A3", "pass", "pass"], 11):
            if name == "pass":
                tab.reach("[data-act=pass]")
                keyboard.press("Enter")
            else:
                tab.reach("#board", "Shift+Tab")
                at.choose(name)
            tab.at(ply)
        tab.shows("Tap stones", "#page-play .soft")
        tab.reach("#board", "Shift+Tab")
        dead = tab.page.locator("#board [opacity='0.4']")
        for stone in ("C1", "D1", "A3"):
            for _ in range(2):  # the network knows nothing: once or twice
                before = dead.count()
                at.choose(stone)
                tab.until(f"document.querySelectorAll('#board [opacity=\"0.4\"]').length !== {before}")
                if (dead.count() > before) == (stone == "A3"):
                    break
        tab.shows("B+3.5", "#page-play .soft")
        tab.reach("[data-act=accept]")
        keyboard.press("Enter")
        tab.shows("Game over: B+3.5")

    def test_chess_by_keyboard_alone(self, open_page: Opened) -> None:
        """To mate; then from a FEN that is typed, a pawn promoted to a knight."""
        tab = open_page()
        keyboard = tab.page.keyboard
        tab.reach("#page-play select")
        keyboard.type("Ch")
        keyboard.press("Tab")
        keyboard.press("End")
        keyboard.press("ArrowUp")  # both sides
        tab.reach("#begin")
        keyboard.press("Enter")
        tab.until("document.body.classList.contains('squares') && document.activeElement.id === 'board'")
        at = Cursor(tab, "e4")
        for ply, move in enumerate(["e2e4", "e7e5", "f1c4", "b8c6", "d1h5", "g8f6", "h5f7"], 1):
            at.choose(move[:2])
            assert "moves" in tab.words()
            at.choose(move[2:])
            tab.at(ply)
        tab.shows("Game over: 1-0")
        tab.reach("#page-play select")
        for _ in range(2):  # the side, the FEN
            keyboard.press("Tab")
        keyboard.type("8/P6k/8/8/8/8/7K/8 w - - 0 1")
        tab.reach("#begin")
        keyboard.press("Enter")
        tab.at(0)
        tab.until("document.activeElement.id === 'board'")
        at.choose("a7")
        at.choose("a8")
        tab.reach("dialog .row button:last-child")
        assert tab.page.evaluate("document.activeElement.innerText") == "knight"
        keyboard.press("Enter")
        tab.at(1)
        assert tab.words().startswith("White a8=N")

    def test_handicap(self, open_page: Opened) -> None:
        """Three stones of Black; the network, White, moves first."""
        tab = open_page()
        tab.new("go", "black", Board="9", Handicap="3")
        tab.at(1)
        assert tab.page.locator("#board circle[fill*=black-stone]").count() == 3
        assert tab.words().startswith("White")
        tab.open("record")
        text = tab.saved()
        assert "HA[3]" in text
        assert re.search(r"AB(\[\w\w\]){3}", text)

    def test_temperature(self, open_page: Opened) -> None:
        """One visit's first move: always the policy's likeliest at temperature 0, soon another one at 10."""
        tab = open_page()
        panel = tab.page.locator("#page-play")
        panel.get_by_label("Game", exact=True).select_option("connect_four")
        panel.get_by_label("You play").select_option("second player")
        panel.get_by_label("Visits").fill("1")

        def first() -> str:
            tab.page.evaluate("document.getElementById('live').textContent = ''")
            tab.page.click("#begin")
            tab.until("document.getElementById('live').innerText.startsWith('First player')")
            return tab.words()

        cold = {first() for _ in range(4)}
        panel.get_by_label("Temperature").fill("10")
        warm = {first() for _ in range(8)}
        assert len(cold) == 1 < len(warm)

    def test_clocks_run_out(self, open_page: Opened) -> None:
        """Byo-yomi once the main time is used up; then the game is lost. An increment is added to who moves."""
        tab = open_page()
        tab.page.locator("#page-play").get_by_text("Clock").click()
        clocks = "[...document.querySelectorAll('[data-clock]')].map((one) => one.innerText)"
        tab.new("go", "both", **{"Board": "9", "Main time, s": "1", "Byo-yomi, s": "1", "Periods": "2"})
        tab.until(f"{clocks}[0] === '0:01 × 2'")
        assert tab.page.evaluate(clocks) == ["0:01 × 2", "0:01"]
        tab.shows("Game over: W+T – black ran out of time")
        tab.new("chess", "both", **{"Main time, s": "2", "Byo-yomi, s": "0", "Periods": "0", "Increment, s": "60"})
        for ply, (start, goal) in enumerate((("e2", "e4"), ("e7", "e5")), 1):
            tab.drag(square(start), square(goal))
            tab.at(ply)
        tab.until(f"{clocks}[0].startsWith('1:0') && {clocks}[1].startsWith('1:0')")
        tab.new("chess", "both", **{"Main time, s": "1", "Increment, s": "0"})
        tab.shows("Game over: 0-1 – white ran out of time")

    def test_two_tabs_with_one_board(self, open_page: Opened) -> None:
        """A tab that is duplicated takes the board over; the first one says so, and takes it back when asked."""
        first = open_page().page
        with first.expect_popup() as opened:
            first.evaluate("void open(location.href)")
        second = opened.value
        second.wait_for_selector("#board svg")
        first.wait_for_selector(".offline:not([hidden])")
        assert "open in another tab" in first.locator(".offline").inner_text()
        first.wait_for_timeout(1500)
        assert second.locator(".offline").is_hidden()  # the first does not take it back by itself
        second.locator("#page-play").get_by_label("Type a move").fill("Q16")
        second.get_by_role("button", name="Play it").click()
        second.wait_for_selector("#board circle[fill*=black-stone]")
        first.get_by_role("button", name="Use it here").click()
        first.wait_for_selector("#board circle[fill*=black-stone]")
        second.wait_for_selector(".offline:not([hidden])")
        assert first.locator(".offline").is_hidden()

    def test_the_form_follows_the_board(self, open_page: Opened) -> None:
        """A position that was pasted is played on from, though the form offered another game."""
        tab = open_page()
        tab.load("rnbqkbnr/8/8/8/8/8/8/RNBQKBNR w KQkq - 0 1")
        tab.page.wait_for_selector("body.squares")
        tab.page.locator("#page-play").get_by_label("You play").select_option("black")
        tab.page.locator("#page-play").get_by_label("Visits").fill("2")
        tab.button("Play on from here").click()
        tab.at(1)
        assert tab.page.evaluate("document.querySelectorAll('#board g > path').length") > 0
        tab.shows("Black to move")

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

    def test_sounds_are_off_until_turned_on(self, open_page: Opened) -> None:
        tab = open_page()
        tab.new("connect_four", "both")
        heard: list[str] = []
        for ply, (name, more) in enumerate([("d", []), ("d", ["made", "tone"]), ("e", ["tone"]), ("e", [])], 1):
            if ply in (2, 4):
                tab.button("Sounds").click()
            tab.tap(*column(name))
            tab.at(ply)
            heard += more
            tab.until(f"sounds.length >= {len(heard)}")
            assert tab.page.evaluate("sounds") == heard

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
