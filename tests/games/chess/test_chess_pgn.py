"""PGN: many games, comments, variations, NAGs, clocks; broken games reported in their place; writing, reading back."""

from __future__ import annotations

import gzip
import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import BadPosition, BadRecord, IllegalMove
from keima.games.chess import Position
from keima.games.chess.archive.reading import ChessReader
from keima.games.chess.editing import EDITING
from keima.games.chess.records import GameRecord, PlayedMove, format_pgn, read_pgn_text
from keima.games.files import read_records
from keima.games.trees.tree import GameTree

ANNOTATED = """\
[Event "Casual"]
[Round "3"]
[White "Anderssen, Adolf"]
[Black "Kieseritzky"]
[WhiteElo "2600"]
[Date "1851.06.??"]
[Result "1-0"]

{The immortal game} 1. e4 {[%clk 0:10:00.5] best by test} e5 $1 (1... c5 2. Nf3 ({closed} 2. Nc3 Nc6) 2... d6)
(1... e6) 2. f4! exf4 {[%clk 0:09:58]} 3. Bc4?? 1-0
"""

MIXED = (
    ANNOTATED
    + """
[Event "illegal"]

1. e4 e5 2. Qh7 Nc6 *

[Event "no kings"]
[SetUp "1"]
[FEN "8/8/8/8/8/8/8/8 w - - 0 1"]

1. e4 *

[Event "another game"]
[Variant "Atomic"]

1. e4 *

[Event "chess 960"]
[Variant "Chess960"]
[SetUp "1"]
[FEN "1r2k1r1/pppppppp/8/8/8/8/PPPPPPPP/1R2K1R1 w GBgb - 0 1"]

1. O-O O-O-O 2. e3 *

[Event "null"]

1. e4 -- 2. d4 *

[Event "broken variations"]

1. e4 e5 (1... Qh1 {lost} 2. e5 (2. d4 $3)) (1... c5 2. -- d6) 2. Nf3 $4 {kept} *
"""
)


def games(text: str) -> list[GameRecord]:
    found = list(read_pgn_text(text))
    assert all(isinstance(game, GameRecord) for game in found), found
    return [game for game in found if isinstance(game, GameRecord)]


def test_a_game_with_everything_written_about_it() -> None:
    (game,) = games(ANNOTATED)
    assert game.game == "chess"
    assert game.moves == ("e2e4", "e7e5", "f2f4", "e5f4", "f1c4")
    assert game.result == "1-0"
    assert game.players == {"w": "Anderssen, Adolf", "b": "Kieseritzky"}
    assert game.ranks == {"w": "2600", "b": ""}
    assert game.event == "Casual, 3"
    assert game.date == "1851.06"
    assert game.comments == {0: "The immortal game", 1: "[%clk 0:10:00.5] best by test", 4: "[%clk 0:09:58]"}
    assert [move.san for move in game.line] == ["e4", "e5", "f4", "exf4", "Bc4"]
    assert [move.nags for move in game.line] == [(), (1,), (1,), (), (4,)]
    assert [move.clock for move in game.line] == [600.5, None, None, 598.0, None]
    first, second = game.line[1].variations
    assert [move.uci for move in first] == ["c7c5", "g1f3", "d7d6"]
    assert [move.uci for move in second] == ["e7e6"]
    (closed,) = first[1].variations
    assert [move.uci for move in closed] == ["b1c3", "b8c6"]
    assert closed[0].comment_before == "closed"
    assert game.notes == ()
    assert game.final().fen() == "rnbqkbnr/pppp1ppp/8/8/2B1Pp2/8/PPPP2PP/RNBQK1NR b KQkq - 1 3"
    assert [position.to_play for position in game.positions()] == ["w", "b", "w", "b", "w", "b"]


def test_broken_games_are_reported_in_their_place_and_the_others_read() -> None:
    found = list(read_pgn_text(MIXED, source="mixed.pgn"))
    kinds = [type(game) for game in found]
    assert kinds == [GameRecord, BadRecord, BadRecord, BadRecord, GameRecord, BadRecord, GameRecord]
    messages = {index: str(game) for index, game in enumerate(found, 1) if isinstance(game, BadRecord)}
    assert messages[2].startswith("mixed.pgn: game 2 (line 14): illegal san: 'Qh7'")
    assert messages[3].startswith("mixed.pgn: game 3 (line 16): White has no king")
    assert messages[4].startswith("mixed.pgn: game 4 (line 22): the variant 'Atomic' is neither")
    assert messages[6].startswith("mixed.pgn: game 6 (line 36): '--' is a null move")
    game960, cut = found[4], found[6]
    assert isinstance(game960, GameRecord)
    assert game960.start.chess960
    assert game960.moves == ("e1g1", "e8b8", "e2e3")
    assert isinstance(cut, GameRecord)
    assert cut.moves == ("e2e4", "e7e5", "g1f3")
    assert cut.index == 7
    assert cut.line[2].comment == "kept"
    assert cut.line[2].nags == (4,)
    assert cut.comments == {3: "kept"}, "what was written beside the impossible moves went with them"
    assert [len(line) for line in cut.line[1].variations] == [1]
    assert len(cut.notes) == 2
    assert "line 40: illegal san: 'Qh1'" in cut.notes[0]


def test_a_comment_that_is_never_closed_costs_its_own_game_only() -> None:
    first, unclosed, after = read_pgn_text('1. d4 *\n\n[Event "u"]\n\n1. e4 {oh\n2. d4\n\n[Event "after"]\n\n1. c4 *\n')
    assert isinstance(first, GameRecord)
    assert isinstance(unclosed, BadRecord)
    assert str(unclosed).startswith("game 2 (line 7): a comment {… is never closed")
    assert isinstance(after, GameRecord)
    assert (after.event, after.moves, after.index, after.first_line) == ("after", ("c2c4",), 3, 8)


def test_a_comment_that_runs_to_the_end_of_the_file_is_reported() -> None:
    for text in ("1. e4 {oh", "1. e4 {oh\n2. d4 *\n", "1. e4 {oh\n\n"):
        (unclosed,) = read_pgn_text(text)
        assert isinstance(unclosed, BadRecord)
        assert unclosed.message == "a comment {… is never closed; it runs to the end of the file"
    (closed,) = games("1. e4 {oh}")
    assert closed.line[0].comment == "oh"


def test_games_without_an_empty_line_between_them_are_told_apart() -> None:
    one, two = games('[Event "one"]\n1. d4 {a\n\nb} *\n[Event "two"]\n1. e4 *\n')
    assert (one.event, one.moves, one.comments) == ("one", ("d2d4",), {1: "a\n\nb"})
    assert (two.event, two.moves, two.first_line) == ("two", ("e2e4",), 5)


def test_what_has_neither_tags_nor_moves_is_no_game() -> None:
    (prose,) = read_pgn_text("Dear diary,\n", source="diary.pgn")
    assert isinstance(prose, BadRecord)
    assert str(prose) == "diary.pgn: game 1 (line 1): holds neither tags nor moves"
    (empty,) = games('\ufeff[Event "nothing played"]\n\n*\n')
    assert (empty.event, empty.moves) == ("nothing played", ())


def test_files_plain_zipped_and_gzipped_hold_the_same_games(tmp_path: Path) -> None:
    plain, packed, archive = tmp_path / "a.pgn", tmp_path / "a.pgn.gz", tmp_path / "a.zip"
    plain.write_text(MIXED)
    packed.write_bytes(gzip.compress(MIXED.encode()))
    with zipfile.ZipFile(archive, "w") as members:
        members.writestr("inside/a.pgn", MIXED)
        members.writestr("readme.txt", "nothing")
    expected = [game.moves if isinstance(game, GameRecord) else game.message for game in read_records([plain])]
    assert len(expected) == 7
    for path in (packed, archive):
        assert [g.moves if isinstance(g, GameRecord) else g.message for g in read_records([path])] == expected


@pytest.mark.parametrize("content", [b"", b"\n\n", gzip.compress(MIXED.encode())[:-200], b"PK\x03\x04rubbish", None])
def test_files_that_cannot_be_read_are_reported_not_raised(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / ("a.zip" if content and content.startswith(b"PK") else "a.pgn")
    if content is not None:
        path.write_bytes(content)
    last = list(read_records([path]))[-1]
    assert isinstance(last, BadRecord)
    assert str(path) in str(last)


def test_names_in_latin_1_and_utf_8_are_read(tmp_path: Path) -> None:
    path = tmp_path / "names.pgn"
    path.write_bytes('[White "Réti"]\n\n1. Nf3 *\n\n'.encode() + '[White "Grünfeld"]\n\n1. d4 *\n'.encode("latin-1"))
    names = [game.players["w"] for game in read_records([path]) if isinstance(game, GameRecord)]
    assert names == ["Réti", "Grünfeld"]


def test_what_is_written_is_read_back() -> None:
    before = [game for game in read_pgn_text(MIXED) if isinstance(game, GameRecord)]
    after = games("".join(map(format_pgn, before)))
    assert [game.line for game in after] == [game.line for game in before]
    assert [game.comment for game in after] == [game.comment for game in before]
    assert [game.result for game in after] == [game.result for game in before]
    assert [game.start.fen() for game in after] == [game.start.fen() for game in before]
    assert [game.players for game in after] == [game.players for game in before]


def test_a_comment_before_a_cut_variation_goes_with_it() -> None:
    """It came to stand before the next move of the main line, and was then written after the one before."""
    (game,) = games("1. e4 e5 (1... {beyond} Qxh9 2. d4) 2. Nf3 {here} *")
    assert [move.comment_before for move in game.line] == ["", "", ""]
    (again,) = games(format_pgn(game))
    assert again.line == game.line


@pytest.mark.parametrize(
    ("comment", "read"),
    [("a {b} c", "a (b) c"), ("one\n[Event two]", "one\n [Event two]"), (" x\n\n% ; y ", "x\n\n% ; y"), ("{", "{")],
)
def test_what_a_comment_cannot_hold_is_changed_and_no_more(comment: str, read: str) -> None:
    record = GameRecord(Position.start(), (PlayedMove("e2e4", "e4", comment),), comment=comment)
    (again,) = games(format_pgn(record))
    assert (again.comment, again.line[0].comment) == (read, read)


def test_a_result_that_is_none_is_unknown() -> None:
    (game,) = games('[Result "O-O"]\n\n1. e4 *\n')
    assert (game.result, len(game.moves)) == ("*", 1)
    assert format_pgn(game).endswith("1. e4 *\n\n")


@pytest.mark.parametrize(
    ("tag", "written", "result"),
    [("White wins", "1-0", "1-0"), ("*", "0-1", "0-1"), ("1/2-1/2", "1-0", "1/2-1/2"), ("resigned", "*", "*")],
)
def test_a_tag_that_tells_no_result_leaves_it_to_the_moves(tag: str, written: str, result: str) -> None:
    text = f'[White "A"]\n[Result "{tag}"]\n\n1. e4 {written}\n'
    (game,) = games(text)
    assert game.result == result
    assert game.headers["Result"] == (tag if tag != "*" else written)
    rows = [next(iter(ChessReader(fast).read(text.encode()))) for fast in (True, False)]
    assert [row["result"] for row in rows if not isinstance(row, BadRecord)] == [result] * 2


@given(
    st.dictionaries(
        st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_]{0,8}\Z"), st.text(st.characters(codec="utf-8"), max_size=20)
    )
)
def test_tags_come_back_but_for_the_ends_of_lines(tags: dict[str, str]) -> None:
    tags = {name: text for name, text in tags.items() if name not in ("FEN", "Result", "SetUp", "Variant")}
    (game,) = games(format_pgn(GameRecord(Position.start(), headers=tags)))
    for name, text in tags.items():
        assert game.headers[name] == re.sub(r"[\r\n]+", " ", text)


def test_comments_to_the_end_of_a_line_are_read() -> None:
    (game,) = games(
        "1. e4 ; the } best\n1... e5 {no; this} 2. Nf3;\n% hidden ; line\n; whole line\n2... Nc6 {a\n;b} *\n"
    )
    assert game.comments == {1: "the ) best", 2: "no; this", 3: "whole line", 4: "a\n;b"}


@pytest.mark.parametrize(
    ("fen", "meant"),
    [
        ("4k3/8/8/8/8/8/8/4K2R w KQkq - 0 1", "4k3/8/8/8/8/8/8/4K2R w K - 0 1"),
        ("4k3/8/8/8/8/8/8/4K3 b - e3 0 1", "4k3/8/8/8/8/8/8/4K3 b - - 0 1"),
    ],
)
def test_rights_that_cannot_be_are_left_out_with_a_note(fen: str, meant: str) -> None:
    with pytest.raises(BadPosition):
        Position.from_fen(fen)
    (game,) = games(f'[FEN "{fen}"]\n[SetUp "1"]\n\n*\n')
    assert game.start.fen() == meant
    assert meant in game.notes[0]
    assert isinstance(next(iter(read_pgn_text(f'[FEN "{fen[1:]}"]\n\n*\n'))), BadRecord)


TOLD = """\
[Event "F/S"]
[Site "X"]
[Date "1992.??.??"]
[Round "29"]
[White "A \\"the\\" B"]
[Black "?"]
[Result "1-0"]
[ECO "C40"]

1. e4 { [%eval 0.3] hi } 1... e5 ( 1... c5 { [%clk 0:01:00] } ) 2. Nf3 $1 $10
1-0

"""


def test_a_tree_that_is_read_is_written_as_it_was() -> None:
    (tree,) = EDITING.trees(TOLD.encode())
    assert isinstance(tree, GameTree)
    assert EDITING.write(tree) == TOLD


def test_facts_that_were_changed_are_written_anew() -> None:
    (tree,) = EDITING.trees(TOLD.encode())
    assert isinstance(tree, GameTree)
    tree.event, tree.date, tree.players["w"] = "Rematch, 30", "1993-01-02", "C"
    tree.root.children[0].judged = {"to_play": "black", "win": 0.5, "draw": 0.0, "loss": 0.5, "value": 0.0}
    (again,) = games(EDITING.write(tree))
    assert (again.event, again.date, again.players["w"]) == ("Rematch, 30", "1993.01.02", "C")
    assert again.line[0].comment.count("%eval") == 1
    assert "0.00" in again.line[0].comment


def test_a_record_that_cannot_be_played_is_not_written() -> None:
    with pytest.raises(IllegalMove):
        format_pgn(GameRecord(Position.start(), (PlayedMove("e2e5", "e5"),)))


def test_a_game_that_was_played_here_becomes_a_record() -> None:
    position = Position.from_fen(None, ["f2f3", "e7e5", "g2g4", "d8h4"])
    record = GameRecord.of(position, {"White": "A", "Black": "B"})
    assert record.result == "0-1"
    assert format_pgn(record).endswith("1. f3 e5 2. g4 Qh4# 0-1\n\n")
    black_first = Position.from_fen("4k3/8/8/8/8/8/4P3/4K3 b - - 3 40", ["e8d7"])
    text = format_pgn(GameRecord.of(black_first))
    assert '[FEN "4k3/8/8/8/8/8/4P3/4K3 b - - 3 40"]' in text
    assert games(text)[0].final().fen() == black_first.fen()


TOKENS = [
    "1.",
    "e4",
    "e5",
    "Nf3",
    "(",
    ")",
    "{",
    "}",
    "$3",
    "--",
    "*",
    "\n",
    "\n\n",
    '[A "b"]\n',
    "Qh5",
    "1-0",
    ";x\n",
    "%",
]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=40))
def test_any_text_gives_records_or_reports(tokens: list[str]) -> None:
    for game in read_pgn_text(" ".join(tokens)):
        if isinstance(game, GameRecord):
            assert game.final().moves == game.moves
            assert games(format_pgn(game))[0].line == game.line
        else:
            assert isinstance(game, BadRecord)


def test_a_comment_begins_and_ends_with_what_it_says() -> None:
    (game,) = games("1. e4 { \n } e5 {} Nf3 { a\nb \n} *")
    assert [move.comment for move in game.line] == ["", "", "a\nb"]


def test_variations_nested_out_of_all_proportion_are_cut() -> None:
    text = "1. e4 " + "(1. d4 " * 300 + ")" * 300 + " *"
    (game,) = games(text)
    assert game.moves == ("e2e4",)
