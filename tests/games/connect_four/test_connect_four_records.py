"""Games of connect four as text: there and back, several in a file, and what a broken one says."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keima.errors import BadRecord, IllegalMove
from keima.games.connect_four.editing import EDITING
from keima.games.connect_four.position import Position
from keima.games.connect_four.records import RECORDS, GameRecord
from keima.games.records import PlayedGame
from keima.games.trees.tree import GameTree, TreeNode


def read(text: str | bytes) -> list[GameRecord | BadRecord]:
    return list(RECORDS.read(BytesIO(text if isinstance(text, bytes) else text.encode()), "games.c4"))


TEXT = """
[First "Ada"]
[Second "keima \\"c4\\""]
[Result "1-0"]

{hello} d d c {a trap, \\{really\\}} c e f b
1-0

[First "Grace"]

1. d d 2. c
*
"""


def test_two_games() -> None:
    first, second = read(TEXT)
    assert isinstance(first, GameRecord)
    assert isinstance(second, GameRecord)
    assert first.players == {"1": "Ada", "2": 'keima "c4"'}
    assert first.turns[:3] == (("1", "d"), ("2", "d"), ("1", "c"))
    assert first.comments == {0: "hello", 3: "a trap, {really}"}
    assert (first.result, first.final().result, first.first_line) == ("1-0", "1-0", 2)
    assert (second.moves, second.result, second.index, second.first_line) == (("d", "d", "c"), "*", 2, 9)


text = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=20)


@given(
    st.lists(st.sampled_from("abcdefg"), max_size=6),
    st.dictionaries(st.from_regex(r"[A-Z]\w{0,8}", fullmatch=True, alphabet=st.characters(codec="ascii")), text),
    st.dictionaries(st.integers(0, 6), text.filter(bool)),
    st.sampled_from(["1-0", "0-1", "1/2-1/2", "*"]),
)
def test_there_and_back(moves: list[str], tags: dict[str, str], comments: dict[int, str], result: str) -> None:
    tags.pop("Result", None)
    comments = {number: comment for number, comment in comments.items() if number <= len(moves)}
    record = GameRecord(tuple(moves), tags, result, comments, "games.c4")
    try:
        written = RECORDS.write(record)
    except IllegalMove:
        return
    assert read(written) == [record]


point = st.builds(str.__add__, st.sampled_from("abcdefg"), st.sampled_from("123456"))
shape = st.sampled_from(["circle", "cross", "square", "triangle"])
mark = st.one_of(
    st.fixed_dictionaries({"point": point, "kind": shape}, optional={"colour": st.sampled_from("CR")}),
    st.fixed_dictionaries(
        {"point": point, "kind": st.just("label"), "text": text.filter(lambda words: 0 < len(words) < 9)}
    ),
    st.fixed_dictionaries({"point": point, "kind": st.just("arrow"), "to": point}),
)


@given(st.lists(st.tuples(st.lists(mark, max_size=4), text), min_size=1, max_size=7))
def test_marks_and_comments_come_back(told: list[tuple[list[dict[str, str]], str]]) -> None:
    tree = GameTree(Position.start())
    node = tree.root
    for number, (marks, comment) in enumerate(told):
        node = node.add(TreeNode(("12"[(number - 1) % 2], "d" if number < 4 else "c"))) if number else node
        node.marks, node.comment = marks, comment
    written = EDITING.write(tree)
    assert bool(EDITING.recognises(written)) == (len(told) > 1)
    (again,) = EDITING.trees(written.encode())
    assert isinstance(again, GameTree)
    assert [(node.marks, node.comment) for node in again.root.main_line()] == told


@pytest.mark.parametrize(
    "words",
    [
        "kind=star&point=d1",
        "kind=circle&point=h9",
        "kind=arrow&point=d1",
        "d1",
        "kind=circle&point=d1&x=1",
        f"kind=label&point=d1&text={'x' * 1001}",
        "kind=circle&point=d1&colour=%22onload%3D",
        " ".join(["kind=circle&point=d1"] * 401),
    ],
)
def test_marks_that_cannot_be_stay_words(words: str) -> None:
    (tree,) = EDITING.trees(f"d {{[%marks {words}] odd}} *".encode())
    assert isinstance(tree, GameTree)
    node = tree.root.children[0]
    assert (node.marks, node.comment) == ([], f"[%marks {words}] odd")


@pytest.mark.parametrize(
    ("broken", "word", "line"),
    [
        ('[First "A"]\n\nd d h 1-0\n', "'h'", 3),
        ('[First "A\\q"]\n\nd 1-0\n', "JSON", 1),
        ("d d {open\n", "out of place", 1),
        ("d 1-0 e\n", "out of place", 1),
        (b"d \xff 1-0\n", "UTF-8", 1),
        ("d" * (1 << 20) + "\n1-0", "1 MB", 1),
    ],
)
def test_broken_games_say_where_and_the_next_goes_on(broken: str | bytes, word: str, line: int) -> None:
    data = broken if isinstance(broken, bytes) else broken.encode()
    following = [] if b"{" in data else read(data + b'\n[First "B"]\n\nd 1-0\n')[1:]
    bad = read(data)[0]
    assert isinstance(bad, BadRecord)
    assert word in str(bad)
    assert bad.place == f"game 1, line {line}"
    assert [record.players["1"] for record in following if isinstance(record, GameRecord)] == ["B"] * len(following)


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    for record in read(data):
        if isinstance(record, GameRecord):
            try:
                record.final()
            except IllegalMove:
                continue
            again = read(RECORDS.write(record))[0]
            assert isinstance(again, GameRecord)
            assert (again.moves, again.tags, again.result) == (record.moves, record.tags, record.result)


def test_a_game_played_here() -> None:
    position = Position.start().play(*"abababa")
    played = PlayedGame(position, ("A", "B"), "1-0", "a match", 3, "ab", "four in a line", "2026-01-31")
    record = RECORDS.of_game(played)
    assert record.final() == position
    assert record.players == {"1": "A", "2": "B"}
    assert record.comments == {7: "four in a line"}
    assert "[First " in RECORDS.write(record)


@pytest.mark.parametrize("tagged", ["", '[Result "first"]\n', '[Result "\\ud800"]\n'])
def test_a_tag_that_tells_no_result_or_no_text(tagged: str) -> None:
    record = read(f'[First "\\ud800"]\n{tagged}\nd d\n')[0]
    assert isinstance(record, GameRecord)
    assert (record.players["1"], record.result) == ("?", "*")
    assert read(RECORDS.write(record).encode())[0] == record
    assert "d d *" in RECORDS.write(replace(record, result="first"))


def test_a_tree_that_is_read_is_written_as_it_was() -> None:
    text = '[Event "E"]\n[Round "3"]\n[FirstRank "1d"]\n[Remark "x"]\n[Result "*"]\n\nd {hm} d *\n'
    (tree,) = EDITING.trees(text.encode())
    assert isinstance(tree, GameTree)
    assert EDITING.write(tree) == text
    tree.event, tree.players["2"] = "F", "B"
    assert EDITING.write(tree) == text.replace('[Event "E"]\n[Round "3"]', '[Event "F"]').replace(
        "[Result", '[Second "B"]\n[Result'
    )


def test_what_cannot_be_played_is_not_written() -> None:
    with pytest.raises(IllegalMove):
        RECORDS.write(GameRecord(tuple("aaaaaaa")))
