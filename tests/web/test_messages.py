"""Bad messages: every one gets an answer that names the field, and the connection stays."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from keima.web.messages import EVENTS, REQUESTS, BadMessage, Request, read_request
from tests.web.conversation import Page, Served

DOCUMENT = (Path(__file__).parents[2] / "docs" / "web.md").read_text(encoding="utf-8")


def test_the_document_has_every_message() -> None:
    table = DOCUMENT.split("### Requests")[1].split("MOVER:")[0]
    rows = dict(re.findall(r"^\| ([a-z_, ]+) \| (.*?) ?\|", table, re.M))
    told = {name: fields for names, fields in rows.items() for name in names.split(", ")}
    assert set(told) - {"do", "networks: [MOVER] (1 or 2), ownership?, every?"} == set(REQUESTS)
    for name, request in REQUESTS.items():
        assert set(request.model_fields) - {"id"} <= set(re.findall(r"[a-z_]+", told[name])), name
    assert all(f"| {event} |" in DOCUMENT for event in EVENTS)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"id": 1}, "do"),
        ({"id": 1, "do": "fly"}, "do"),
        ({"do": "play", "move": "d"}, "id"),
        ({"id": 1, "do": "play"}, "move"),
        ({"id": 1, "do": "play", "move": ["d"]}, "move"),
        ({"id": 1, "do": "play", "move": "d", "colour": 1}, "colour"),
        ({"id": 1, "do": "go", "node": -1}, "node"),
        ({"id": 1, "do": "analyse", "networks": []}, "networks"),
        ({"id": 1, "do": "analyse", "networks": [{"network": "a", "visits": 0}]}, "networks.0.visits"),
        ({"id": 1, "do": "start_game", "engine": {"black": {"network": "x", "seconds": 1e99}}}, "engine.black.seconds"),
        ({"id": 1, "do": "marks", "marks": [{"point": "a1", "kind": "skull"}]}, "marks.0.kind"),
    ],
)
def test_a_bad_field_is_named(message: dict[str, object], field: str) -> None:
    with pytest.raises(BadMessage) as caught:
        read_request(message)
    assert caught.value.field == field


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null", '{"id": NaN}', "[" * 5000, '{"id": 1e999}', "\x00", "é"])
def test_what_is_no_message_is_answered_too(page: Page, text: str) -> None:
    page.socket.send(text)
    answer = page.answer(None)
    assert answer["error"]
    assert answer["field"] in ("", "do")


def test_bytes_are_read_as_text(page: Page) -> None:
    page.socket.send(b'{"id": "b", "do": "networks"}')
    assert page.answer("b")["did"] == "networks"
    page.socket.send(b"\xff\xfe\x00")
    assert "error" in page.answer(None)


def test_too_long_a_message_is_refused_and_the_board_stays(page: Page) -> None:
    page.new("connect_four")
    page.socket.send('{"id": 9, "do": "load", "text": "' + "d" * (12 << 20) + '"}')
    assert "12 MB" in page.answer(None)["error"]
    page.socket.send('{"id": 9, "do": "load", "text": "' + "d" * (9 << 20) + '"}')
    assert page.answer(9)["field"] == "text"
    assert page.ask("play", move="d")["node"] == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
MOVES = st.sampled_from(["d", "a", "E5", "pass", "e2e4", "Z99", ""])
FIELDS = sorted({name for request in REQUESTS.values() for name in request.model_fields} | {"text", "by"})
VALUES = (
    JSON | MOVES | st.integers(0, 6) | st.sampled_from(["small.safetensors", "go", "chess", "start", "end", "back"])
)
MESSAGES = st.fixed_dictionaries(
    {"id": st.integers(0, 10**6), "do": st.sampled_from(sorted(REQUESTS))},
    optional=dict.fromkeys([name for name in FIELDS if name != "id"], VALUES),
)


@given(fields=st.dictionaries(st.text(max_size=10), JSON, max_size=5) | MESSAGES)
@settings(max_examples=25, deadline=None, phases=[Phase.generate])
def test_reading_never_fails_otherwise(fields: dict[str, object]) -> None:
    try:
        _, request = read_request(fields)
    except BadMessage:
        return
    assert isinstance(request, Request)


def plausible(name: str, rng: random.Random) -> dict[str, object]:
    """A message with the fields it needs, some of them sensible."""
    guesses: dict[str, list[object]] = {
        "move": ["d", "E5", "e2e4", "pass", "xx"],
        "node": [0, 1, 2, 3, 99],
        "game": ["go", "chess", "connect_four", "checkers"],
        "setup": [{}, {"size": 5}, {"size": 1}, {"fen": "x"}, {"komi": "a"}, {"moves": [["B", "A1"]]}, {"size": 2.5}],
        "network": ["small.safetensors", "/etc/passwd", "keima"],
        "networks": [[{"network": "small.safetensors", "visits": 5}], [{"network": "nothing"}]],
        "engine": [{"first": {"network": "small.safetensors", "visits": 2}}, {"black": {"network": "a"}}, {}],
        "text": ["ddc", "1. e4", "(;SZ[5];B[aa])", "", "{}", "(;", '{"game": "go"}', "(;SZ[99])"],
        "data": ["KDspKQ==", "?"],
        "by": ["start", "end", "back", "forward", "next", "previous"],
        "changes": [[["B", "A1"]], [["K", "e4"]], [["", "a1"]], []],
        "marks": [[], [{"point": "A1", "kind": "circle"}], [{"point": "d3", "kind": "arrow"}]],
        "dead": [[], ["A1"], ["?"]],
        "side": ["black", "first", "white", "x"],
        "file": ["first.c4", "../first.c4", "/etc/passwd"],
        "exercise": [1, 5],
        "visits": [1, 3],
    }
    fields = [field for field in REQUESTS[name].model_fields if field != "id"]
    chosen = {field: rng.choice(guesses[field]) for field in fields if field in guesses and rng.random() < 0.8}
    return {"do": name, **chosen}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_messages_leave_it_answering(served: Served, seed: int) -> None:
    """250 a seed: some sensible, some nearly, some nonsense."""
    rng = random.Random(seed)
    names = sorted(set(REQUESTS) - {"open_network"})
    with served.page() as page:
        for number in range(250):
            kind = rng.random()
            if kind < 0.1:
                page.socket.send(rng.choice(["", "{}", "[1]", '{"id": 5}', "x" * 1000, '{"do": "play"}']))
                continue
            message = plausible(rng.choice(names), rng)
            if kind < 0.25:
                message[rng.choice([*message, "extra"])] = rng.choice([None, -1, 1e30, "", [[]], {"a": 1}])
            page.socket.send(json.dumps({"id": number, **message}))
        assert page.ask("new", game="connect_four")["did"] == "new"
        page.ask("stop_game")
        assert page.ask("play", move="d")["node"] == 1


@given(fields=MESSAGES)
@settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_every_message_gets_its_answer(page: Page, fields: dict[str, object]) -> None:
    page.socket.send(json.dumps(fields))
    answer = page.answer(fields["id"], seconds=5)
    assert "error" in answer or answer["did"] == fields["do"]
