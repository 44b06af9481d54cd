"""SGF as a tree and back: what is read is written, and the tree says what the record's own reader says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sgfmill import sgf_grammar

from keima.errors import BadRecord
from keima.games.go.editing import EDITING
from keima.games.go.records import parse_sgf
from keima.games.trees.tree import GameTree

FILE = {"FF", "GM", "CA", "AP", "PL"}
"""What a writer says of its own file, and of who begins."""


def tree_of(text: str | bytes) -> GameTree:
    (tree,) = EDITING.trees(text if isinstance(text, bytes) else text.encode())
    assert isinstance(tree, GameTree)
    return tree


def nodes(text: str) -> list[dict[str, Any]]:
    """Every node's properties, by another reader, each before its children."""
    found, waiting = [], [sgf_grammar.parse_sgf_game(text.encode())]
    while waiting:
        part = waiting.pop()
        for node in part.sequence:
            told = {name: sorted(map(sgf_grammar.text_value, values)) for name, values in node.items()}
            found.append({name: texts for name, texts in told.items() if name not in FILE})
        waiting += reversed(part.children)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "(;SZ[9]EV[Meijin]RO[3]GN[a name]PB[ A ]DT[1962-08-05,06];B[aa])",
        "(;SZ[9]GN[a name];B[aa]V[3.5]SBKV[60];W[bb]V[1])",
        "(;SZ[9]HA[2];B[gg];B[cc];W[ee])",
        "(;SZ[9]HA[3]AB[aa][bb];W[ee])",
        "(;SZ[9]KM[375]RU[weird]RE[?]TM[300]OT[5x30 byo-yomi];B[aa]BL[123.4]OB[3])",
        "(;SZ[9];B[aa]BM[2];W[bb]DO[];B[cc]IT[];W[dd]TE[2]GB[1])",
        "(;SZ[9];B[aa]LB[bb:a label that is long]TR[cc][dd]AR[aa:bb]LN[aa:cc];W[bb]N[na\\]me]C[said: \\[so\\]])",
        "(;SZ[9];B[aa](;W[bb];B[cc])(;W[cc](;B[bb])(;B[dd])))",
    ],
)
def test_nothing_that_is_read_is_lost(text: str) -> None:
    written = EDITING.write(tree_of(text))
    assert nodes(written) == nodes(text)
    assert EDITING.write(tree_of(written)) == written


point = st.builds(lambda x, y: x + y, st.sampled_from("abcdefghi"), st.sampled_from("abcdefghi"))
words = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp")), min_size=1, max_size=9)
escaped = words.map(lambda text: re.sub(r"([]\\:])", r"\\\1", text))
named = st.sampled_from(["TR", "SQ", "MA", "CR"])
extra = st.fixed_dictionaries(
    {},
    optional={"N": escaped, "BM": st.sampled_from(["1", "2"]), "XX": escaped, "BL": st.just("12.5"), "V": st.just("7")},
)
root = st.fixed_dictionaries(
    {"SZ": st.just("9")},
    optional=dict.fromkeys(("PB", "PW", "BR", "DT", "EV", "RO", "GN", "RU", "KM", "RE", "HA", "SO", "OT"), escaped),
)


@given(root, st.lists(extra, max_size=5), st.lists(st.tuples(named, point), max_size=3))
@settings(max_examples=100, deadline=None)
def test_any_facts_come_back(root: dict[str, str], extras: list[dict[str, str]], marks: list[tuple[str, str]]) -> None:
    text = "(;" + "".join(f"{name}[{value}]" for name, value in root.items())
    for number, one in enumerate(extras):
        text += f";{'BW'[number % 2]}[{'abcdefghi'[number]}a]" + "".join(f"{name}[{one[name]}]" for name in one)
    text += "".join(f"{name}[{where}]" for name, where in dict(marks).items()) + ")"
    assert nodes(EDITING.write(tree_of(text))) == nodes(text)


def test_facts_that_were_changed_are_written_anew() -> None:
    tree = tree_of("(;SZ[9]EV[Meijin]RO[3]PB[A]KM[375];B[aa]BM[2])")
    assert tree.event == "Meijin, 3"
    tree.event, tree.players["W"], tree.root.children[0].grade = "Honinbo, 4", "C", "mistake"
    (first, move) = nodes(EDITING.write(tree))
    assert first == {"SZ": [b"9"], "EV": [b"Honinbo, 4"], "PB": [b"A"], "PW": [b"C"], "KM": [b"375"]}
    assert move == {"B": [b"aa"], "DO": [b""]}


@pytest.mark.parametrize("move", ["PASS", "pass", "Q16", "q16", "D4", "zz", "a", "aaa"])
def test_what_is_no_point_of_sgf_cuts_its_variation(move: str) -> None:
    tree = tree_of(f"(;SZ[9]KM[7]RU[chinese];B[gg](;W[cc])(;W[{move}];B[aa]))")
    assert [node.move for node in tree.root.below()] == [None, ("B", "G3"), ("W", "C7")]
    assert len(tree.notes) == 1
    assert move in tree.notes[0]
    assert "aa" not in EDITING.write(tree)


def on(position: Any) -> set[tuple[str, str]]:
    return set(position.on_board())


@pytest.mark.parametrize(
    "text",
    [
        "(;SZ[9];B[aa];PL[W]AB[aa];W[bb])",
        "(;SZ[9];B[aa];PL[W];W[bb];AB[bb:dd]AE[bb]PL[B];B[ee])",
        "(;SZ[9];B[aa];AB[cc]AW[dd];W[bb])",
        "(;SZ[9];B[aa]AB[ff];W[bb]AE[aa]AW[gg])",
        "(;SZ[9]AB[aa];AW[bb];AE[aa]PL[B];B[cc])",
        "(;SZ[9]B[aa]C[hi];W[bb])",
    ],
)
def test_the_tree_and_the_record_are_one_game(text: str) -> None:
    record, tree = parse_sgf(text), tree_of(text)
    position = tree.start
    for node in tree.root.main_line():
        position = tree.position_after(position, node)
    final = record.final()
    assert (position.to_json(), on(position)) == (final.to_json(), on(final))
    assert record.moves == tuple(node.move for node in tree.root.main_line() if node.move)
    written = parse_sgf(EDITING.write(tree))
    assert (written.moves, on(written.final()), written.comments) == (record.moves, on(final), record.comments)


@given(st.text("(;)[]\\ABCWEPLbw:abcstz19.\n", max_size=80))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_tree_that_can_be_written(text: str) -> None:
    for tree in EDITING.trees(b"(;SZ[9]" + text.encode()):
        if not isinstance(tree, BadRecord):
            written = EDITING.write(tree)
            assert EDITING.write(tree_of(written)) == written
