"""A game tree as a page edits it: played, gone through, deleted, undone, set up, loaded and saved."""

from __future__ import annotations

import base64
import io
import re

import chess.pgn
import pytest
from sgfmill import sgf

from tests.web.conversation import Page, two_thousand_moves


def moves(page: Page) -> list[str]:
    """The main line as the server tells it."""
    page.events.clear()
    page.ask("state")
    nodes = {node["node"]: node for node in page.event("tree", lambda event: event["whole"])["nodes"]}
    line, node = [], nodes[0]
    while node["children"]:
        node = nodes[node["children"][0]]
        line.append(node.get("move", "setup"))
    return line


def test_a_welcome_tells_games_and_networks(page: Page) -> None:
    page.ask("state")
    welcome = page.event("welcome")
    assert [game["name"] for game in welcome["games"]] == ["go", "chess", "connect_four"]
    assert {"name": "size", "title": "Board", "kind": "whole", "default": 19, "least": 2, "most": 19} in welcome[
        "games"
    ][0]["choices"]
    assert [network["name"] for network in welcome["networks"]] == ["small.safetensors"]


def test_playing_makes_variations_and_undo_takes_them_back(page: Page) -> None:
    page.new("go", size=9)
    first = page.ask("play", move="E5")["node"]
    page.ask("play", move="C3")
    assert page.ask("play", move="G7", node=first)["node"] == 3
    assert page.ask("play", move="C3", node=first)["node"] == 2  # it was there already
    assert page.event("tree", lambda event: any(n["children"] == [2, 3] for n in event["nodes"]))
    assert page.ask("promote", node=3)["did"] == "promote"
    assert moves(page) == ["E5", "G7"]
    page.ask("undo")
    assert moves(page) == ["E5", "C3"]
    page.ask("redo")
    page.ask("delete", node=first)
    assert moves(page) == []
    assert page.ask("play", move="E5", node=first)["field"] == "node"
    page.ask("undo")
    assert moves(page) == ["E5", "G7"]
    assert page.ask("delete", node=0)["error"].startswith("the root")


def test_a_position_tells_what_can_be_done(page: Page) -> None:
    page.new("chess", fen="8/P6k/8/8/8/8/7K/8 w - - 0 1")
    position = page.event("position", lambda event: event.get("fen", "").startswith("8/P6k"))
    assert {move for move in position["legal"] if move.startswith("a7a8")} == {"a7a8q", "a7a8r", "a7a8b", "a7a8n"}
    assert position["legal"]["a7a8q"] == "a8=Q"
    assert position["to_play"] == "white"
    page.ask("play", move="a7a8q")
    assert page.event("position", lambda event: event["ply"] == 1)["move"] == "a7a8q"
    error = page.ask("play", move="h2h4")
    assert error["field"] == "move"
    assert "not a legal move" in error["error"]


def test_steps_lead_through_the_tree(page: Page) -> None:
    page.new("connect_four")
    for move in "ddc":
        page.ask("play", move=move)
    assert [page.ask("go", by=by)["node"] for by in ("start", "end", "back", "forward", "back_ten")] == [0, 3, 2, 3, 0]
    assert page.ask("go", node=2)["node"] == 2
    assert page.ask("go")["field"] == "node"
    assert page.ask("go", node=77)["field"] == "node"
    page.ask("go", by="end")
    assert page.event("position", lambda event: event["ply"] == 3)["points"]["d"] == "d3"


def test_stones_are_set_up_and_impossible_boards_refused(page: Page) -> None:
    page.new("go", size=5)
    node = page.ask("set_up", changes=[["B", "A1"], ["W", "E5"]], to_play="white")["node"]
    position = page.event("position", lambda event: event["node"] == node)
    assert position["stones"].split("/") == ["....W", ".....", ".....", ".....", "B...."]
    assert position["to_play"] == "white"
    assert page.ask("set_up", changes=[["", "A1"]])["node"] == node
    assert "cannot be put" in page.ask("set_up", changes=[["B", "Z9"]])["error"]
    assert page.ask("set_up", changes=[], to_play="green")["field"] == "to_play"
    page.new("connect_four")
    assert "moves alone" in page.ask("set_up", changes=[["1", "a1"]])["error"]


def test_pgn_comes_back_with_variations_comments_and_marks(page: Page) -> None:
    page.new("chess")
    for move in ("e2e4", "e7e5"):
        page.ask("play", move=move)
    page.ask("play", move="c7c5", node=1)
    page.ask("comment", text="Sicilian {sharp}", node=3)
    page.ask("marks", marks=[{"point": "e2", "kind": "arrow", "to": "e4"}], node=3)
    assert page.ask("marks", marks=[{"point": "j9", "kind": "circle"}])["field"] == "marks.0.point"
    page.ask("describe", players={"white": "Ada", "black": "Bo"}, result="1-0")
    saved = page.ask("save")
    assert saved["name"].endswith(".pgn")
    game = chess.pgn.read_game(io.StringIO(saved["text"]))
    assert game is not None
    assert game.headers["White"] == "Ada"
    assert [node.uci() for node in game.mainline_moves()] == ["e2e4", "e7e5"]
    assert game.variations[0].variations[1].comment.endswith("Sicilian (sharp)")
    assert game.variations[0].variations[1].arrows()
    loaded = page.ask("load", text=saved["text"])
    assert loaded["games"] == [{"index": 1, "title": "Ada – Bo, 1-0"}]
    assert moves(page) == ["e2e4", "e7e5"]
    assert page.ask("save")["text"] == saved["text"]


def test_every_mark_comes_back_from_pgn(page: Page) -> None:
    """Kinds are colours there, as other programs draw them."""
    page.new("chess")
    page.ask("play", move="e2e4")
    kinds = {"a1": "circle", "b2": "cross", "c3": "triangle", "d4": "square"}
    marks = [{"point": point, "kind": kind} for point, kind in kinds.items()]
    label, arrow = {"point": "e5", "kind": "label", "text": "A]"}, {"point": "e2", "kind": "arrow", "to": "e4"}
    page.ask("marks", marks=[*marks, label, arrow])
    saved = page.ask("save")["text"]
    game = chess.pgn.read_game(io.StringIO(saved))
    assert game is not None
    first = game.next()
    assert first is not None
    drawn = {(chess.square_name(one.tail), chess.square_name(one.head), one.color) for one in first.arrows()}
    colours = zip(kinds, ("green", "red", "yellow", "blue"), strict=True)
    assert drawn == {("e2", "e4", "green"), *((point, point, colour) for point, colour in colours)}
    page.ask("load", text=saved)
    page.events.clear()
    page.ask("go", by="end")
    position = page.event("position", lambda event: event["ply"] == 1 and len(event["marks"]) > 1)
    found = {(mark["point"], mark["kind"], mark.get("to"), mark.get("text")) for mark in position["marks"]}
    shapes = {(point, kind, None, None) for point, kind in kinds.items()}
    assert {(a, b, c or None, d or None) for a, b, c, d in found} == {
        *shapes,
        ("e5", "label", None, "A"),
        ("e2", "arrow", "e4", None),
    }
    assert page.ask("save")["text"] == saved


def test_foreign_colours_stay_what_they_were(page: Page) -> None:
    """Arrows of every colour and squares of colours without a kind, also after a mark made on the page."""
    text = '[White "A"]\n\n1. e4 { [%csl Ra1,Cb2] [%cal Re2e4,Yd7d5,Ga1a8] } *\n'
    assert "error" not in page.ask("load", text=text)
    page.events.clear()
    page.ask("go", by="end")
    marks = page.event("position", lambda event: event["ply"] == 1 and len(event["marks"]) > 1)["marks"]
    page.ask("marks", marks=[*marks, {"point": "h1", "kind": "arrow", "to": "h8"}])
    game = chess.pgn.read_game(io.StringIO(page.ask("save")["text"]))
    assert game is not None
    node = game.next()
    assert node is not None
    drawn = {(chess.square_name(one.tail), chess.square_name(one.head), one.color) for one in node.arrows()}
    assert drawn >= {("e2", "e4", "red"), ("d7", "d5", "yellow"), ("a1", "a8", "green"), ("h1", "h8", "green")}
    assert "[%csl Ra1,Cb2]" in page.ask("save")["text"]


def test_marks_on_a_record_of_one_line_come_back(page: Page) -> None:
    page.new("connect_four")
    page.ask("play", move="d")
    marks = [{"point": "d1", "kind": "label", "text": "A]"}, {"point": "a1", "kind": "arrow", "to": "g6"}]
    page.ask("marks", marks=marks)
    page.ask("comment", text="{centre}")
    saved = page.ask("save")["text"]
    assert "error" not in page.ask("load", text=saved)
    page.events.clear()
    page.ask("go", by="end")
    position = page.event("position", lambda event: event["ply"] == 1)
    assert (position["marks"], position["comment"]) == (marks, "{centre}")
    assert page.ask("save")["text"] == saved


def test_sgf_comes_back_whole(page: Page) -> None:
    text = "(;GM[1]SZ[9]KM[6.5]RU[Japanese]PB[Ada];B[ee]C[first]TR[bb]XX[kept](;W[gc]N[a])(;W[cg];AB[aa]AE[ee];B[ab]))"
    loaded = page.ask("load", data=base64.b64encode(text.encode("utf-16")).decode(), name="a.sgf")
    assert loaded["games"][0]["title"] == "Ada – White"
    assert "error" not in page.ask("load", text=text)
    saved = page.ask("save")["text"]
    root = sgf.Sgf_game.from_string(saved).get_root()
    assert root.get("KM") == 6.5
    first = root[0]
    assert (first.get("C"), first.get("TR"), first.get_raw("XX")) == ("first", {(7, 1)}, b"kept")
    assert [child.get_move() for child in first] == [("w", (6, 6)), ("w", (2, 2))]
    assert first[1][0].get_setup_stones() == ({(8, 0)}, set(), {(4, 4)})
    page.ask("load", text=saved)
    assert page.ask("save")["text"] == saved


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("8/8/8/4k3/8/8/4P3/4K3 w - - 0 1", None),
        ("1. d4 d5", "d2d4"),
        ("ddc", "d"),
        ('{"game": "go", "xsize": 7, "moves": [["B", "D4"]]}', "D4"),
        ("(;SZ[19];B[pd])", "Q16"),
    ],
)
def test_what_is_pasted_is_recognised(page: Page, text: str, first: str | None) -> None:
    assert "error" not in page.ask("load", text=text)
    assert moves(page)[:1] == ([] if first is None else [first])


def test_broken_records_open_as_far_as_they_go_or_leave_the_board_alone(page: Page) -> None:
    loaded = page.ask("load", text="1. e4 e5 2. Ke5 Nf6")
    assert "illegal san" in loaded["notes"][0]["text"]
    assert moves(page) == ["e2e4", "e7e5"]
    assert "neither SGF" in page.ask("load", text="what is this?")["error"]
    assert page.ask("load", data="%%%")["field"] == "data"
    assert page.ask("load")["field"] == "text"
    assert moves(page) == ["e2e4", "e7e5"]


def test_two_thousand_moves(page: Page) -> None:
    """Read, gone to the end of, and written whole."""
    record = two_thousand_moves()
    assert "error" not in page.ask("load", text=record)
    page.ask("go", by="end")
    assert page.event("position", lambda event: event["ply"] == 2000)["player"] == "white"
    written = "".join(page.ask("save")["text"].split())  # it breaks lines
    moves = re.findall(r";[BW]\[\w*\]", written)
    assert moves == re.findall(r";[BW]\[\w*\]", record)


def test_names_and_comments_are_data(page: Page) -> None:
    script = "<script>alert(1)</script>]"
    page.new("go", size=9)
    page.ask("play", move="E5")
    page.ask("describe", players={"black": script})
    page.ask("comment", text=script)
    page.ask("load", text=page.ask("save")["text"])
    page.events.clear()
    page.ask("state")
    tree = page.event("tree", lambda event: event["whole"])
    assert tree["game"]["players"]["black"] == script
    assert page.ask("describe", players={"green": "x"})["field"] == "players"
