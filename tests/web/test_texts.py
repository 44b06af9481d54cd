"""What the server says in English and a page words in its language: the same texts, the same places."""

from __future__ import annotations

import ast
import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from keima.plain import Note, told
from tests.web.conversation import Page

SOURCES = Path(__file__).parents[2] / "keima"


def texts(path: str) -> dict[str, str]:
    """A text file of the page."""
    found = re.findall(r'"([\w. -]+)": ("(?:[^"\\]|\\.)*")', (SOURCES / path).read_text(encoding="utf-8"))
    return {key: json.loads(text) for key, text in found}


def trees() -> Iterator[ast.Module]:
    """The code that makes notes."""
    for folder in ("games", "review", "systems/files", "web"):
        for path in sorted((SOURCES / folder).rglob("*.py")):
            yield ast.parse(path.read_text(encoding="utf-8"))


def calls(tree: ast.Module, name: str) -> Iterator[ast.Call]:
    """The calls of a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def notes() -> Iterator[tuple[str, str]]:
    """(key, template) of every `Note`; a template may be a variable set just before."""
    for tree in trees():
        named: dict[tuple[str, int], str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                text = str(node.value.value)
                named |= {(one.id, node.lineno): text for one in node.targets if isinstance(one, ast.Name)}
        for node in calls(tree, "Note"):
            first, key = node.args
            if not isinstance(key, ast.Constant):
                continue  # the sides, and the reasons below
            if isinstance(first, ast.Name):
                line = max(line for name, line in named if name == first.id and line < node.lineno)
                template = named[first.id, line]
            else:
                template = ast.literal_eval(first)
            yield str(key.value), template
        for node in calls(tree, "Outcome"):
            yield f"reason.{ast.literal_eval(node.args[0])}", ast.literal_eval(node.args[0])
    yield "error.at", "{where}: {what}"


def test_every_note_is_worded_in_both_languages() -> None:
    english, japanese = texts("review/page/text-en.js"), texts("web/page/text-ja.js")
    found = dict(notes())
    assert len(found) > 70
    assert {key: english.get(key) for key in found} == found
    places = {key: set(re.findall(r"\{(\w+)\}", template)) for key, template in found.items()}
    assert {key: set(re.findall(r"\{(\w+)\}", japanese[key])) for key in found} == places
    assert {
        key for key in english if key.startswith(("note.", "rules.", "error.", "reason.", "warning."))
    } <= found.keys()


def test_a_note_is_its_text_and_knows_its_key() -> None:
    note = Note("unknown rules RU[{written}]; {rules} assumed", "note.rules", written="{x}", rules=Note("Ing", "r.ing"))
    assert note == "unknown rules RU[{x}]; Ing assumed"
    assert told(pickle.loads(pickle.dumps(note))) == {
        "text": str(note),
        "key": "note.rules",
        "values": {"written": "{x}", "rules": {"text": "Ing", "key": "r.ing", "values": {}}},
    }
    assert told("plain") == "plain"


@pytest.mark.parametrize(
    ("record", "key", "values"),
    [
        ("(;SZ[9]KM[7.5];B[ee])", "note.norules", {"rules": told(Note("Chinese", "rules.chinese"))}),
        ("(;SZ[9]RU[Japanese]KM[750];B[ee])", "note.komi.read", {"written": "750", "komi": "7.5"}),
        ("1. e4 e5 2. Ke5 Nf6", "note.broken", {}),
        ("ddddddd", "note.unplayable", {"number": "7", "move": "d"}),
    ],
)
def test_notes_reach_the_page_with_their_keys(page: Page, record: str, key: str, values: dict[str, object]) -> None:
    (note,) = (one for one in page.ask("load", text=record)["notes"] if one["key"] == key)
    assert note["values"].items() >= values.items()
    assert note in page.event("tree", lambda event: event["whole"])["game"]["notes"]


BLACK = Note("black", "side.black")
OCCUPIED = Note("occupied by a {side} stone", "error.occupied", side=BLACK)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("play", {"move": "E5"}), Note("{where}: {what}", "error.at", where="move 2 (W E5)", what=OCCUPIED)),
        (("redo", {}), Note("there is nothing to redo", "error.redo")),
        (("resign", {}), Note("no game is being played", "error.nogame")),
        (("play", {"node": 99, "move": "E5"}), "node: there is no node 99"),
    ],
)
def test_errors_reach_the_page_with_their_keys(page: Page, asked: tuple[str, dict[str, object]], words: str) -> None:
    page.new("go", size=9)
    page.ask("play", move="E5")
    answer = page.ask(asked[0], **asked[1])
    assert answer["error"] == words
    assert answer.get("worded", words) == told(words)


def test_how_a_game_ended_is_told_by_key(page: Page) -> None:
    page.new("chess", fen="6k1/5ppp/8/8/8/8/8/K3R3 w - - 0 1")
    page.ask("play", move="e1e8")
    over = page.event("position", lambda event: event["over"])
    assert page.ask("play", move="g8h7")["worded"] == told(Note("the game is over", "error.over"))
    assert over["reason"] == told(Note("checkmate", "reason.checkmate"))
    page.new("go", size=9)
    page.ask("start_game", engine={})
    page.ask("resign", side="black")
    game = page.event("game", lambda event: event["result"])
    assert (game["result"], game["reason"]) == ("W+R", told(Note("{side} resigned", "reason.resigned", side=BLACK)))
