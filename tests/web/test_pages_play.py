"""Whole games in a real browser, by click, drag and keyboard, at three sizes."""

from __future__ import annotations

from tests.web.browser import IN_CHROMIUM, PHONE, TABLET, VIEWS, Opened, column, go_point, square

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
