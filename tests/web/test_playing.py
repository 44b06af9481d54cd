"""Games against a network, analyses, reviews, exercises and the library, as conversations."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from keima.games.game import GAMES
from keima.games.trees.editing import tree_of_position
from keima.web.networks import Networks
from keima.web.server import Settings
from tests.web.conversation import Page, Served, serve

NET = "small.safetensors"
MOVER = {"network": NET, "visits": 8}


@pytest.fixture
def board(page: Page) -> Page:
    """An empty board of connect four, the network ready."""
    page.ready(NET)
    page.new("connect_four")
    page.events.clear()
    return page


def test_a_whole_game_ends_with_a_result(board: Page) -> None:
    assert "error" not in board.ask("start_game", engine={"second player": MOVER})
    board.ask("play", move="d")
    for _ in range(22):
        position = board.event("position", lambda event: event["to_play"] == "first player" or event["over"])
        if position["over"]:
            break
        answer = board.ask("play", move=next(iter(position["legal"])))
        assert "error" not in answer
    game = board.event("game", lambda event: event["result"] != "")
    assert not game["playing"]
    assert game["result"] in ("1-0", "0-1", "1/2-1/2")
    assert "[Second" in board.ask("save")["text"]
    assert board.ask("resign")["error"] == "no game is being played"


def test_it_is_not_your_turn_while_the_network_thinks(board: Page) -> None:
    board.ask("start_game", engine={"second player": {"network": NET, "visits": 1_000_000}})
    board.ask("play", move="d")
    assert board.event("game", lambda event: event["thinking"] == "second player")
    assert "network's turn" in board.ask("play", move="d")["error"]
    began = time.monotonic()
    assert board.ask("take_back")["node"] == 0  # the search ends at once
    assert time.monotonic() - began < 2
    assert board.ask("play", move="c")["node"] == 2
    assert board.ask("resign", side="first player")["result"] == "0-1"
    assert board.ask("take_back")["node"] == 0


def test_the_clock_runs_and_a_flag_falls(board: Page) -> None:
    board.ask("start_game", engine={"second player": MOVER}, clock={"main": 0.4, "increment": 0})
    game = board.event("game", lambda event: event["result"] != "")
    assert (game["result"], game["reason"]["text"]) == ("0-1", "first player ran out of time")
    assert game["clocks"]["first player"]["main"] == 0


def test_an_analysis_streams_follows_the_board_and_stops(board: Page) -> None:
    assert "error" not in board.ask("analyse", networks=[{"network": NET}], every=0.05)
    events = [board.event("analysis") for _ in range(3)]
    visits = [event["entry"]["visits"] for event in events]
    assert visits == sorted(visits)
    assert visits[0] < visits[-1]
    entry = events[-1]["entry"]
    assert sum(one["visits"] for one in entry["candidates"]) <= entry["visits"]
    assert entry["win"] + entry["draw"] + entry["loss"] == pytest.approx(1, abs=1e-4)
    node = board.ask("play", move="d")["node"]
    assert board.event("analysis", lambda event: event["node"] == node)["running"]
    board.ask("comment", text="it goes on")
    began = time.monotonic()
    board.ask("stop")
    assert not board.event("analysis", lambda event: not event["running"])["running"]
    assert time.monotonic() - began < 1
    assert board.event("tree", lambda event: any("judged" in one for one in event["nodes"]))
    assert board.ask("analyse", networks=[{"network": "nothing"}])["field"] == "networks.0.network"


def test_two_networks_side_by_side_and_limits(board: Page) -> None:
    board.ask("analyse", networks=[{"network": NET, "visits": 30}, {"network": NET, "visits": 60}])
    ended = {event["number"]: event for event in (board.event("analysis", lambda e: not e["running"]) for _ in "ab")}
    assert ended[0]["entry"]["visits"] == 30
    assert ended[1]["entry"]["visits"] == 60
    assert {ended[0]["stopped_by"], ended[1]["stopped_by"]} == {"visits"}


def test_a_page_that_leaves_ends_its_search(served: Served) -> None:
    with served.page() as page:
        page.ready(NET)
        page.new("connect_four")
        page.ask("analyse", networks=[{"network": NET}])
        page.event("analysis")
        pool = served.server.networks.get(NET).pool
        assert pool is not None
        assert pool.searching == 1
    began = time.monotonic()
    while pool.searching:
        assert time.monotonic() - began < 2
        time.sleep(0.005)


def test_hints_policies_and_no_score(board: Page) -> None:
    hint = board.ask("hint", visits=20)
    assert hint["move"] in "abcdefg"
    policies = board.ask("policies")["policies"]
    assert [one["network"] for one in policies] == [NET]
    assert sum(policies[0]["entry"]["policy"].values()) == pytest.approx(1, abs=1e-3)
    assert "rules decide" in board.ask("score")["error"]


def test_a_game_is_reviewed_and_its_mistakes_are_exercises(board: Page) -> None:
    """Three in a row are left open: whoever judges with a search sees that."""
    board.ask("load", text="dededea")  # d d d and e e e: then a, where d wins at once
    board.ask("review", visits=60)
    review = board.event("review", lambda event: event["state"] in ("done", "failed"), seconds=60)
    assert review["state"] == "done", review["message"]
    assert len(review["nodes"]) == 8
    board.events.clear()
    board.ask("state")
    report = board.event("review", lambda event: "report" in event)["report"]
    assert report["moves"][6]["grade"] == "blunder"
    exercises = board.ask("exercises", count=2, player="first player")["exercises"]
    assert exercises[0]["number"] == 7
    assert "d" in exercises[0]["position"]["legal"]
    assert not {"best", "played"} & exercises[0].keys()
    right = board.ask("answer", exercise=1, move="d")
    assert (right["verdict"], right["best"], right["played"]) == ("right", "d", "a")
    wrong = board.ask("answer", exercise=1, move="b")
    assert wrong["verdict"] == "wrong"
    assert wrong["loss"] > 0.2
    assert board.ask("answer", exercise=1, move="z")["field"] == "move"
    assert board.ask("answer", exercise=9, move="d")["field"] == "exercise"


def test_the_library_is_searched(page: Page) -> None:
    while page.ask("library")["reading"]:
        time.sleep(0.02)
    found = page.ask("library")
    assert found["total"] == 4
    assert {game["file"] for game in found["games"]} == {"first.c4", "second.sgf", "broken.pgn"}
    assert next(game for game in found["games"] if game["file"] == "broken.pgn")["error"]
    assert [game["index"] for game in page.ask("library", player="cleo")["games"]] == [2]
    assert page.ask("library", result="W")["games"][0]["players"] == {"black": "Dan", "white": "Eve"}
    assert page.ask("library", opening="d  d c")["total"] == 2
    assert page.ask("library", text="second eve")["total"] == 1
    assert page.ask("library", game="connect_four", first=1, count=1)["games"][0]["players"]["first player"] == "Cleo"
    assert "error" not in page.ask("open_game", file="first.c4", index=2)
    assert (
        page.event("tree", lambda event: event["game"]["players"].get("first player") == "Cleo")["game"]["result"]
        == "0-1"
    )
    assert page.ask("open_game", file="../first.c4")["field"] == "file"
    assert page.ask("open_game", file="/etc/passwd")["field"] == "file"


def test_networks_that_cannot_be_loaded_say_why(tmp_path: Path) -> None:
    bad = tmp_path / "bad.bin.gz"
    bad.write_bytes(b"nonsense")
    with serve(Networks([str(bad)], own=False), Settings(kept=tmp_path)) as served, served.page() as page:
        (network,) = page.event("welcome")["networks"]
        if network["state"] != "failed":  # otherwise it failed before the page came
            network = page.event("network", lambda event: event["network"]["state"] == "failed")["network"]
        assert "bad.bin.gz" in network["message"]
        assert page.ask("open_network", network=str(tmp_path / "none.pb.gz"))["error"].endswith("no such network file")
        assert page.ask("analyse", networks=[{"network": "bad.bin.gz"}])["field"] == "networks.0.network"


def test_every_game_is_edited() -> None:
    """The laws of the facet, for each game there is."""
    for game in GAMES.values():
        start = game.editing.start({choice.name: choice.default for choice in game.editing.choices})
        position = start
        for _ in range(6):
            position = position.play(position.legal()[0])
        tree = tree_of_position(position)
        text = game.editing.write(tree)
        best = max(GAMES.values(), key=lambda one: one.editing.recognises(text))
        assert best.name == game.name
        again = next(game.editing.trees(text.encode()))
        assert [n.move for n in again.root.main_line()] == [n.move for n in tree.root.main_line()]


@pytest.mark.slow
@pytest.mark.reference
def test_real_networks_play_and_score(reference: Path, tmp_path: Path) -> None:
    """KataGo's small network on 9×9: the game is scored by its ownership; Maia answers 1. e4."""
    katago = reference / "nets" / "g170-b6c96-s175395328-d26788732.bin.gz"
    maia = reference / "nets" / "maia-1900.pb.gz"
    with serve(Networks([str(katago), str(maia)], own=False), Settings(kept=tmp_path)) as served, served.page() as page:
        assert page.ready(katago.name)["gives"] == ["value", "lead", "ownership"]
        page.new("go", size=5, komi=0.5)
        wall = ["C1", "D1", "C2", "D2", "C3", "D3", "C4", "D4", "C5", "D5", "pass", "A3", "pass", "pass"]
        for move in wall:
            assert "error" not in page.ask("play", move=move)
        score = page.ask("score")
        assert score["dead"] == ["A3"]
        assert score["result"] == "B+4.5"  # 15 points against 10 and komi
        assert page.ask("score", dead=[])["result"] != "B+4.5"
        assert page.ask("score", dead=["A3"], final=True)["final"] is True
        assert page.event("game", lambda event: event["result"] != "")["result"] == "B+4.5"
        page.ready(maia.name)
        page.new("chess")
        page.ask("play", move="e2e4")
        policy = page.ask("policies")["policies"][0]["entry"]["policy"]
        assert {"e7e5", "c7c5"} <= set(list(policy)[:3])
