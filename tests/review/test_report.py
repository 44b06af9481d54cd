"""Pages: whole, self-contained, safe against what records may hold, and readable back."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from keima.errors import BadRecord, BadRequest
from keima.review.analysis import review_game
from keima.review.batch import Result
from keima.review.games import open_game
from keima.review.index import render_index
from keima.review.report import read_review, render_html, write_text
from tests.review.fakes import NETWORK, OPTIONS, Judge, go_record


def review(**facts: Any) -> dict[str, Any]:
    return review_game(open_game(go_record("A5", "C3", **facts)), Judge(), NETWORK, OPTIONS)


class Page(HTMLParser):
    """What a browser would make of a page: its elements with their attributes, and its script texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.title = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "title":
            self.title += data


class TestPage:
    def test_a_page_loads_nothing(self) -> None:
        text = render_html(review())
        loading = [
            (tag, a)
            for tag, a in Page(text).elements
            if "src" in a or (tag == "link") or (tag == "a" and "://" in str(a))
        ]
        assert loading == []
        assert "@import" not in text
        assert not re.search(r"url\(\s*['\"]?(https?:|//)", text)
        assert set(re.findall(r"https?://[^\s\"'<]+", text)) <= {"http://www.w3.org/2000/svg"}

    def test_no_place_of_the_template_is_left_open(self) -> None:
        assert not re.search(r"\{\{\w+\}\}", render_html(review()))

    def test_names_cannot_become_markup(self) -> None:
        nasty = "</script><img src=x onerror=alert(1)>{{data}}<!--"
        text = render_html(review(players={"B": nasty, "W": "Bo"}, comments={0: nasty}, event=nasty))
        page = Page(text)
        assert [tag for tag, _ in page.elements].count("script") == 2
        assert "img" not in [tag for tag, _ in page.elements]
        assert nasty in page.title

    def test_only_the_games_own_board_is_in_it(self) -> None:
        text = render_html(review())
        assert "class GoBoard" in text
        assert "class ChessBoard" not in text

    def test_scripts_never_write_markup(self) -> None:
        text = render_html(review())
        assert "innerHTML" not in text
        assert "insertAdjacentHTML" not in text


class TestFiles:
    def test_a_page_and_a_json_file_give_the_review_back(self, tmp_path: Path) -> None:
        original = review()
        write_text(tmp_path / "deep" / "game.html", render_html(original))
        write_text(tmp_path / "game.json", json.dumps(original))
        assert read_review(tmp_path / "deep" / "game.html") == original
        assert read_review(tmp_path / "game.json") == original

    def test_an_absent_file_is_none(self, tmp_path: Path) -> None:
        assert read_review(tmp_path / "none.html") is None

    @pytest.mark.parametrize("content", ["my notes", "<html></html>", '{"format": "other"}', "[]", b"\xff\xfe\x00"])
    def test_other_files_are_refused(self, tmp_path: Path, content: str | bytes) -> None:
        path = tmp_path / "notes.html"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(BadRecord, match=r"notes\.html"):
            read_review(path)

    def test_a_page_cut_short_is_refused_not_trusted(self, tmp_path: Path) -> None:
        path = tmp_path / "cut.html"
        text = render_html(review())
        path.write_text(text[: text.index('"moves"')])
        with pytest.raises(BadRecord, match="not a review that keima wrote"):
            read_review(path)

    def test_a_place_that_cannot_be_written_leaves_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        with pytest.raises(BadRequest, match="cannot be written"):
            write_text(tmp_path / "file" / "page.html", "text")
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    def test_an_index_links_to_its_pages(self) -> None:
        good = Result(Path("a&b.html"), review(players={"B": "<Ada>", "W": "Bo"}, source="x/game.sgf"))
        failed = Result(Path("bad.html"), error=BadRecord("no <game>", source="x/bad.sgf"))
        text = render_index([good, failed])
        page = Page(text)
        assert "<td>bad.sgf</td>" in text
        assert "no &lt;game&gt;" in text
        assert ">game.sgf</td>" in text
        assert ("circle", {"cx": "0.5", "cy": "0.5", "r": ".46", "fill": "#161616"}) in page.elements  # Black's A5
        assert ("a", {"href": "a&b.html"}) in page.elements
