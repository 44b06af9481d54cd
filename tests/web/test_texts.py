"""What the server says in English and a page words in its language: the same texts, the same places."""

from __future__ import annotations

import ast
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
    return dict(re.findall(r'"([\w. -]+)": "((?:[^"\\]|\\.)*)"', (SOURCES / path).read_text(encoding="utf-8")))


def notes() -> Iterator[tuple[str, str]]:
    """(key, template) of every `Note` that the games make; a template may be a variable set just before."""
    for path in sorted((SOURCES / "games").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named: dict[tuple[str, int], str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                text = str(node.value.value)
                named |= {(one.id, node.lineno): text for one in node.targets if isinstance(one, ast.Name)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Note":
                first, key = node.args
                if isinstance(first, ast.Name):
                    line = max(line for name, line in named if name == first.id and line < node.lineno)
                    template = named[first.id, line]
                else:
                    template = ast.literal_eval(first)
                yield ast.literal_eval(key), template


def test_every_note_is_worded_in_both_languages() -> None:
    english, japanese = texts("review/page/text-en.js"), texts("web/page/text-ja.js")
    found = dict(notes())
    assert len(found) > 20
    assert {key: english.get(key) for key in found} == found
    places = {key: set(re.findall(r"\{(\w+)\}", template)) for key, template in found.items()}
    assert {key: set(re.findall(r"\{(\w+)\}", japanese[key])) for key in found} == places
    assert {key for key in english if key.startswith(("note.", "rules."))} <= found.keys()


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
