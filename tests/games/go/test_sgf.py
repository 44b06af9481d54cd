"""SGF: what real files hold is read, what is broken is named, and the games around it still come."""

from __future__ import annotations

import gzip
import io
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import BadRecord, IllegalMove
from keima.games.files import read_records
from keima.games.go import sgf_text
from keima.games.go.records import RECORDS, Edit, GameRecord, parse_sgf, write_sgf
from keima.games.go.rules import Rules
from keima.games.go.sgf_text import guess_encoding, split_games
from keima.games.go.vertices import fixed_handicap

SMALL = "(;GM[1]FF[4]SZ[9]KM[6.5]RU[Japanese]PB[Ada]PW[Bo]BR[3d]WR[1k]DT[2001-02-03]RE[B+2.5];B[ee];W[gc];B[];W[tt])"


def read_all(path: Path) -> list[GameRecord | BadRecord]:
    return list(read_records([path]))


class TestOneGame:
    def test_facts_and_moves(self) -> None:
        record = parse_sgf(SMALL)
        assert (record.xsize, record.ysize, record.komi, record.result) == (9, 9, 6.5, "B+2.5")
        assert record.rules == Rules.parse("japanese")
        assert record.players == {"B": "Ada", "W": "Bo"}
        assert record.ranks == {"B": "3d", "W": "1k"}
        assert record.moves == (("B", "E5"), ("W", "G7"), ("B", "pass"), ("W", "pass"))
        assert record.notes == ()

    def test_clocks_that_are_no_numbers_are_left_out(self) -> None:
        record = parse_sgf("(;SZ[9];B[ee]BL[nan];W[gc]WL[inf];B[aa]BL[1e999];W[bb]WL[12.5])")
        assert record.clocks == {4: 12.5}

    @pytest.mark.parametrize("to_play", ["", "PL[B]", "PL[W]"])
    def test_a_board_that_is_set_up_has_its_side_to_move(self, to_play: str) -> None:
        record = parse_sgf(f"(;SZ[9]AB[aa]AW[bb]{to_play})")
        assert record.final().to_json() == list(record.positions())[-1].to_json()
        assert record.final().to_play == (to_play or "PL[B]")[3]

    def test_positions_are_one_more_than_moves(self) -> None:
        positions = list(parse_sgf(SMALL).positions())
        assert len(positions) == 5
        assert positions[2].stones[4, 4] == 1
        assert positions[2].stones[2, 6] == 2
        assert positions[-1].is_over

    def test_column_letters_skip_i_only_in_vertices(self) -> None:
        record = parse_sgf("(;SZ[19];B[hh];W[ii];B[as])")
        assert [vertex for _, vertex in record.moves] == ["H12", "J11", "A1"]

    def test_rectangle(self) -> None:
        record = parse_sgf("(;SZ[5:9];B[ai];W[ea])")
        assert (record.xsize, record.ysize) == (5, 9)
        assert record.moves == (("B", "A1"), ("W", "E9"))
        assert record.start().xsize == 5

    def test_main_line_is_the_first_variation(self) -> None:
        record = parse_sgf("(;SZ[9];B[aa](;W[bb];B[cc](;W[dd])(;W[ee]))(;W[ff]))")
        assert [vertex for _, vertex in record.moves] == ["A9", "B8", "C7", "D6"]

    def test_comments_by_move_number_with_escapes(self) -> None:
        record = parse_sgf(r"(;SZ[9]C[start\]];B[aa]C[one\: first\\];W[bb])")
        assert record.comments == {0: "start]", 1: "one: first\\"}

    def test_old_style_long_property_names(self) -> None:
        record = parse_sgf("(;GaMe[1]SiZe[9]AddBlack[aa];Black[bb])")
        assert record.xsize == 9
        assert record.moves == (("B", "B8"),)

    @pytest.mark.parametrize(
        ("written", "name"),
        [
            ("Chinese", "chinese"),
            ("japanese", "japanese"),
            ("Japanese Rules", "japanese"),
            ("JP", "japanese"),
            ("Korean", "japanese"),
            ("AGA", "aga"),
            ("NZ", "new-zealand"),
            ("New Zealand", "new-zealand"),
            ("GOE", "ing"),
            ("日本ルール", "japanese"),
            ("koPOSITIONALscoreAREAtaxNONEsui1", "tromp-taylor"),
        ],
    )
    def test_rules(self, written: str, name: str) -> None:
        record = parse_sgf(f"(;SZ[9]KM[6.5]RU[{written}])")
        assert record.rules == Rules.parse(name)
        assert record.notes == ()

    def test_unknown_and_absent_rules_are_noted(self) -> None:
        unknown, absent = parse_sgf("(;KM[6.5]RU[house rules of my aunt])"), parse_sgf("(;KM[6.5])", rules="aga")
        assert unknown.rules == Rules.parse("chinese")
        assert "house rules of my aunt" in unknown.notes[0]
        assert absent.rules == Rules.parse("aga")
        assert "names no rules" in absent.notes[0]

    @pytest.mark.parametrize(
        ("written", "komi", "noted"),
        [
            ("KM[6.5]", 6.5, False),
            ("KM[0]", 0.0, False),
            ("KM[-5.5]", -5.5, False),
            ("KM[7,5]", 7.5, False),
            ("KM[650]", 6.5, True),
            ("KM[375]", 7.5, True),
            ("KM[3.75]", 7.5, True),
            ("KM[6.3]", 7.5, True),
            ("KM[100]", 100.0, False),
            ("KM[-150]", -150.0, False),
            ("KM[155]", 7.5, True),
            ("KM[6.5目]", 6.5, True),
            ("KM[六目半]", 6.5, True),
            ("KM[6目半]", 6.5, True),
            ("KM[６．５]", 6.5, True),
            ("KM[6 1/2]", 6.5, True),
            ("KM[-7½]", -7.5, True),
            ("KM[3 3/4子]", 7.5, True),
            ("KM[3.75子]", 7.5, True),
            ("KM[8目]", 8.0, True),
            ("KM[5.5 points]", 5.5, True),
            ("KM[目]", 7.5, True),
            ("KM[much]", 7.5, True),
            ("KM[1e999]", 7.5, True),
            ("KM[nan]", 7.5, True),
            ("", 7.5, True),
            ("HA[2]AB[dd][pp]", 0.5, True),
            ("HA[2];B[dd];B[pp];W[aa]", 0.5, True),
        ],
    )
    def test_komi(self, written: str, komi: float, noted: bool) -> None:
        record = parse_sgf(f"(;RU[Chinese]{written})")
        assert record.komi == komi
        assert parse_sgf(write_sgf(record)).komi == komi
        assert bool(record.notes) == noted


class TestSetup:
    def test_handicap_stones_make_white_begin(self) -> None:
        record = parse_sgf("(;RU[Japanese]KM[0.5]HA[3]AB[dd][pp][dp];W[pd])")
        assert set(record.handicap) == {"D16", "Q4", "D4"}
        assert record.to_play == "W"
        assert record.start().to_play == "W"
        assert next(iter(record.positions())).stones.sum() == 3

    def test_handicap_without_its_stones_takes_the_usual_points(self) -> None:
        record = parse_sgf("(;RU[Chinese]KM[0.5]HA[2];W[pd])")
        assert record.handicap == ("D4", "Q16")
        assert "HA[2]" in record.notes[0]

    def test_free_handicap_as_black_moves_in_a_row(self) -> None:
        record = parse_sgf("(;RU[Chinese]KM[0.5]HA[3];B[dd];B[pp];B[dp];W[pd])")
        assert record.handicap == ()
        assert list(record.positions())[-1].to_play == "B"

    def test_rectangles_of_points_and_removal(self) -> None:
        record = parse_sgf("(;SZ[9]AB[aa:cb]AW[ee]AE[bb];AE[aa]PL[W];W[gg])")
        assert set(record.black_setup) == {"B9", "C9", "A8", "C8"}
        assert record.white_setup == ("E5",)
        assert record.to_play == "W"

    def test_setup_before_the_first_move_in_a_later_node(self) -> None:
        assert parse_sgf("(;HA[2]KM[0.5]RU[Chinese];AB[dd][pp];W[pd])").handicap == ("D16", "Q4")

    def test_setup_that_says_what_stands_there_is_let_pass(self) -> None:
        record = parse_sgf("(;SZ[9];B[aa];W[bb]AB[aa]AE[cc];B[dd])")
        assert len(record.moves) == 3

    def test_setup_that_changes_the_board_in_mid_game_begins_a_game_of_its_own(self) -> None:
        record = parse_sgf("(;SZ[9];B[aa];AB[cc]AW[dc]AE[aa];W[bb];AE[bb]PL[W])")
        assert record.edits == (Edit(1, (("", "A9"), ("B", "C7"), ("W", "D7"))), Edit(2, (("", "B8"),), "W"))
        start, once, twice = record.positions()
        assert start.on_board() == []
        assert once.on_board() == [("B", "C7"), ("W", "D7")]
        assert (once.to_play, once.moves) == ("W", ())
        assert twice.on_board() == once.on_board()
        assert (twice.to_play, record.final()) == ("W", twice)
        assert parse_sgf(write_sgf(record)) == replace(record, notes=())

    def test_a_point_set_up_twice_at_once_is_what_it_was_made_last(self) -> None:
        record = parse_sgf("(;SZ[9];B[ee];AB[cc]AW[cc][gg]AE[cc][ee])")
        assert record.edits == (Edit(1, (("", "E5"), ("W", "C7"), ("W", "G3")), None),)
        assert parse_sgf(write_sgf(record)) == replace(record, notes=())

    def test_setup_in_mid_game_that_cannot_stand_is_refused(self) -> None:
        with pytest.raises(BadRecord, match="no liberty"):
            parse_sgf("(;SZ[9];B[ba];AW[aa]AB[ab];W[ee])")

    def test_a_stone_set_up_without_liberties_is_refused(self) -> None:
        record = parse_sgf("(;SZ[9]AW[aa]AB[ab][ba];B[ee])", source="x.sgf")
        with pytest.raises(BadRecord, match=r"x\.sgf: setup stones"):
            record.start()

    @pytest.mark.parametrize(
        ("stones", "size", "last"),
        [(2, (19, 19), "Q16"), (5, (19, 19), "K10"), (9, (13, 13), "G7"), (4, (8, 8), "C6")],
    )
    def test_fixed_handicap(self, stones: int, size: tuple[int, int], last: str) -> None:
        points = fixed_handicap(stones, size)
        assert len(set(points)) == stones
        assert points[-1] == last

    def test_no_fixed_handicap_where_there_is_no_custom(self) -> None:
        assert fixed_handicap(5, (8, 8)) == fixed_handicap(2, (5, 5)) == fixed_handicap(10, (19, 19)) == ()


class TestCharsets:
    @pytest.mark.parametrize("name", ["utf-16", "hex", "rot13", "idna", "unicode_escape", "cp037", "undefined", "zlib"])
    def test_codecs_that_sgf_cannot_be_in_are_not_believed(self, name: str) -> None:
        data = f"(;CA[{name}]SZ[9]C[\xe9t\xe9]KM[6.5];B[aa])".encode("latin-1")
        record = parse_sgf(data)
        assert (record.comments, record.moves) == ({0: "été"}, (("B", "A9"),))
        (read,) = RECORDS.read(BytesIO(data))
        assert isinstance(read, GameRecord)
        assert read.comments == record.comments

    def test_latin_9_is_not_latin_1(self) -> None:
        assert parse_sgf("(;CA[ISO-8859-15]SZ[9]C[3 €])".encode("iso8859-15")).comments == {0: "3 €"}

    def test_a_comment_about_sgf_is_no_new_game(self) -> None:
        record = parse_sgf("(;SZ[9]KM[6.5]RU[Chinese];B[aa])")
        record = replace(record, comments={1: "write (;GM[1]) or ( ;SZ[9"})
        (again,) = RECORDS.read(BytesIO(write_sgf(record).encode()))
        assert again == record


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("no game here", "not well-formed SGF"),
            ("(;SZ[25])", "25×25.*19×19"),
            ("(;SZ[1])", "1×1"),
            ("(;SZ[big])", r"unreadable board size SZ\[big\]"),
            ("(;GM[3])", "not Go"),
            ("(;SZ[9];B[zz])", r"move 1 \(B\): \[zz\] is no point"),
            ("(;SZ[9];B[aa];W[jj])", r"move 2 \(W\): \[jj\]"),
            ("(;SZ[9]AB[aa:jj])", r"AB\[aa:jj\] is no point"),
            ("(;SZ[9];B[aa]W[bb])", "both Black and White"),
        ],
    )
    def test_message_says_what_and_where(self, text: str, message: str) -> None:
        with pytest.raises(BadRecord, match=message):
            parse_sgf(text)

    def test_illegal_move_names_number_and_vertex(self) -> None:
        record = parse_sgf("(;SZ[9];B[aa];W[bb];B[aa])", source="bad.sgf")
        with pytest.raises(IllegalMove, match=r"bad\.sgf: move 3 \(B A9\): occupied by a black stone"):
            list(record.positions())
        with pytest.raises(IllegalMove, match=r"bad\.sgf: move 3 \(B A9\)"):
            record.final()


class TestManyGames:
    def test_plain_gz_zip_and_folder_hold_the_same(self, tmp_path: Path) -> None:
        games = SMALL * 3
        (tmp_path / "a.sgf").write_text(games)
        (tmp_path / "b.sgf.gz").write_bytes(gzip.compress(games.encode()))
        with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
            archive.writestr("deep/inside.sgf", games)
            archive.writestr("readme.txt", "nothing")
        moves = parse_sgf(SMALL).moves
        for path in (tmp_path / "a.sgf", tmp_path / "b.sgf.gz", tmp_path / "c.zip"):
            records = read_all(path)
            assert [r.index for r in records if isinstance(r, GameRecord)] == [1, 2, 3]
            assert all(isinstance(r, GameRecord) and r.moves == moves for r in records)
        assert len(read_all(tmp_path)) == 9

    def test_folders_are_read_in_natural_order(self, tmp_path: Path) -> None:
        for number in (10, 9, 1):
            (tmp_path / f"game{number}.sgf").write_text(f"(;SZ[9]PB[{number}])")
        assert [r.players["B"] for r in read_all(tmp_path) if isinstance(r, GameRecord)] == ["1", "9", "10"]

    @pytest.mark.parametrize(
        ("broken", "message"),
        [
            ("(;GM[1]SZ[9];B[aa];W[bb]\n", "a `)` is missing"),
            ("(;GM[1]SZ[9];B[aa]C[never closed\n", "a `]` is missing"),
            ("(;GM[1]SZ[9];B[aa];W)\n", "property with no values"),
            ("(;GM[1]SZ[9] B[aa] ?? ;W[bb])\n", "not well-formed"),
        ],
    )
    def test_a_broken_game_does_not_take_its_neighbours(self, tmp_path: Path, broken: str, message: str) -> None:
        path = tmp_path / "mixed.sgf"
        path.write_text(f"{SMALL}\n{broken}{SMALL}\n{SMALL}")
        records = read_all(path)
        bad = [r for r in records if isinstance(r, BadRecord)]
        assert [isinstance(r, GameRecord) for r in records] == [True, False, True, True]
        assert "mixed.sgf: game 2 (line 2)" in str(bad[0])
        assert message in str(bad[0])

    def test_a_file_cut_anywhere_gives_records_or_errors(self, tmp_path: Path) -> None:
        data = (SMALL + "\n" + SMALL).encode()
        path = tmp_path / "cut.sgf"
        for length in range(0, len(data), 7):
            path.write_bytes(data[:length])
            records = read_all(path)
            assert records
            if length < len(SMALL):
                assert isinstance(records[-1], BadRecord)

    def test_files_that_are_not_there_or_not_what_they_seem(self, tmp_path: Path) -> None:
        (tmp_path / "not.zip").write_bytes(b"PK no")
        (tmp_path / "cut.sgf.gz").write_bytes(gzip.compress(SMALL.encode() * 50)[:-9])
        (tmp_path / "empty.sgf").write_bytes(b"")
        for name in ("not.zip", "cut.sgf.gz", "empty.sgf", "absent.sgf"):
            last = read_all(tmp_path / name)[-1]
            assert isinstance(last, BadRecord)
            assert name in str(last)

    def test_games_are_read_as_they_are_asked_for(self) -> None:
        class Endless(io.RawIOBase):
            def read(self, size: int = -1) -> bytes:
                return SMALL.encode() * 100

        games = split_games(Endless())  # type: ignore[arg-type]
        assert [next(games).index for _ in range(250)] == list(range(1, 251))


class TestEncodings:
    @pytest.mark.parametrize(
        ("codec", "declared", "name"),
        [
            ("utf-8", "UTF-8", "曺薫鉉"),
            ("utf-8", "", "Ødegård"),
            ("utf-8", "ISO-8859-1", "古力"),
            ("gb18030", "GB2312", "古力、常昊（九段）"),
            ("gb18030", "", "古力执黑中盘胜常昊九段"),
            ("cp932", "Shift_JIS", "表ソ能"),
            ("cp932", "", "本因坊秀策ソの対局です"),
            ("euc_kr", "EUC-KR", "이창호"),
            ("big5", "Big5", "周俊勳功"),
            ("cp932", "", "井山裕太"),
            ("cp932", "", "趙治勲"),
            ("cp932", "", "第35期名人戦挑戦手合七番勝負第1局"),
            ("euc_jp", "", "藤沢秀行"),
            ("gb18030", "", "聂卫平"),
            ("gb18030", "", "范廷钰"),
            ("big5", "", "陳詩淵"),
            ("big5", "", "第5屆棋王賽挑戰賽"),
            ("euc_kr", "", "이세돌"),
            ("euc_kr", "", "제10회 LG배 세계기왕전"),
            ("latin-1", "", "Fernández"),
            ("latin-1", "ISO-8859-1", "Jürgen"),
            ("latin-1", "", "Jürgen Müller"),
        ],
    )
    def test_names_survive(self, tmp_path: Path, codec: str, declared: str, name: str) -> None:
        charset = f"CA[{declared}]" if declared else ""
        path = tmp_path / "x.sgf"
        path.write_bytes(f"(;GM[1]{charset}SZ[9]PB[{name}]PW[B];B[aa])".encode(codec))
        (record,) = read_all(path)
        assert isinstance(record, GameRecord)
        assert record.players["B"] == name
        assert record.moves == (("B", "A9"),)

    @pytest.mark.parametrize(
        ("charset", "name", "read"),
        [
            ("CA[UTF-8]", "古力".encode() + b"\xfc", "古力\ufffd"),
            ("", "古力と井山裕太、張栩".encode() + b"\xfc", "古力と井山裕太、張栩\ufffd"),
            ("CA[UTF-8]", "聂卫平".encode("gb18030"), "聂卫平"),
            ("CA[UTF-8]", b"M\xfcller", "Müller"),
        ],
    )
    def test_a_broken_letter_costs_itself_alone(self, charset: str, name: bytes, read: str) -> None:
        record = parse_sgf(f"(;GM[1]{charset}SZ[9]PB[".encode() + name + b"];B[aa])")
        assert record.players["B"] == read

    @given(st.permutations(range(5)), st.integers(10, 400))
    @settings(max_examples=30, deadline=None)
    def test_every_game_of_a_file_has_its_own(self, order: list[int], chunk: int) -> None:
        """Also where pieces of the file end in the middle of a game, or of a letter."""
        games = [
            ("utf-8", "CA[UTF-8]", "曺薫鉉"),
            ("gb18030", "CA[GB2312]", "古力、镕镕[九段\\]"),
            ("cp932", "CA[Shift_JIS]", "表ソ能"),
            ("cp932", "", "第35期名人戦表ソ能"),
            ("ascii", "", "plain"),
        ]
        each = [games[k] for k in order]
        data = b"\n".join(
            f"(;GM[1]{charset}SZ[9]PB[{name}];B[aa];W[bb])".encode(codec) for codec, charset, name in each
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sgf_text, "CHUNK", chunk)
            records = list(RECORDS.read(io.BytesIO(data)))
        names = [name.replace("\\", "") for _, _, name in each]
        assert [record.players["B"] for record in records if isinstance(record, GameRecord)] == names
        assert [len(record.moves) for record in records if isinstance(record, GameRecord)] == [2] * 5

    def test_utf_16_with_a_byte_order_mark(self, tmp_path: Path) -> None:
        path = tmp_path / "x.sgf"
        path.write_bytes("(;GM[1]SZ[9]PB[古力])".encode("utf-16"))
        (record,) = read_all(path)
        assert isinstance(record, GameRecord)
        assert record.players["B"] == "古力"

    @given(st.binary(max_size=60))
    @settings(max_examples=200, deadline=None)
    def test_any_bytes_have_an_encoding_that_decodes_them(self, data: bytes) -> None:
        data.decode(guess_encoding(data), errors="replace")


vertices = st.sampled_from([f"{column}{row}" for column in "ABCDEFGHJ" for row in range(1, 10)] + ["pass"])
moves = st.lists(st.tuples(st.sampled_from("BW"), vertices), max_size=30)
words = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp")), max_size=20)


class TestRoundTripAndFuzz:
    @given(moves=moves, player=words, comment=words, komi=st.integers(-40, 40))
    @settings(max_examples=100, deadline=None)
    def test_what_is_written_is_read_back(
        self, moves: list[tuple[str, str]], player: str, comment: str, komi: int
    ) -> None:
        record = GameRecord(
            xsize=9,
            ysize=9,
            rules=Rules.parse("aga"),
            komi=komi / 2,
            to_play="W",
            moves=tuple(moves),
            players={"B": player, "W": "W"},
            ranks={"B": "", "W": "5d"},
            comments={0: comment} if comment else {},
        )
        assert parse_sgf(write_sgf(record)) == record

    @pytest.mark.parametrize(
        "rules", ["chinese", "japanese", "aga", "aga-button", "ing", "koSPIGHTscoreAREAtaxALLsui1"]
    )
    def test_every_rule_set_is_written_so_that_it_is_read_back(self, rules: str) -> None:
        nobody = {"B": "", "W": ""}
        stones = {"black_setup": ("A1",), "white_setup": ("E9",)}
        record = GameRecord(5, 9, Rules.parse(rules), 6.5, players=nobody, ranks=nobody, **stones)
        assert parse_sgf(write_sgf(record)) == record

    @given(st.text("(;)[]\\ABCWEZKMSPL:abcstz019.\n", max_size=120))
    @settings(max_examples=300, deadline=None)
    def test_any_text_is_a_record_or_a_named_error(self, text: str) -> None:
        try:
            record = parse_sgf(text)
        except BadRecord:
            return
        assert record.xsize in range(2, 20)

    @given(
        st.lists(st.sampled_from([SMALL, "(;GM[1]SZ[9]", "(;B[aa])", "]", "[", ")", "\\", "\n", "junk "]), max_size=8)
    )
    @settings(max_examples=200, deadline=None)
    def test_splitting_never_loses_a_closed_game_at_the_end(self, pieces: list[str]) -> None:
        text = "".join(pieces) + "\n" + SMALL
        games = list(split_games(io.BytesIO(text.encode())))
        assert games[-1].data == SMALL.encode()
        assert [game.index for game in games] == list(range(1, len(games) + 1))


class TestRealGames:
    def test_lee_sedol_against_alphago(self, reference: Path) -> None:
        records = read_all(reference / "data" / "go" / "lee-sedol")
        assert [record.final().result for record in records if isinstance(record, GameRecord)] == [None] * 5
        assert all(isinstance(r, GameRecord) for r in records)
        assert sorted(len(r.moves) for r in records if isinstance(r, GameRecord)) == [176, 180, 186, 211, 280]
        assert {r.komi for r in records if isinstance(r, GameRecord)} == {7.5}

    def test_the_first_games_of_a_month_of_tygem(self, reference: Path) -> None:
        path = reference / "data" / "go" / "tygem-2010-06.sgf.gz"
        games = [game for game, _ in zip(read_records([path]), range(200), strict=False)]
        assert all(isinstance(game, GameRecord) for game in games)
        assert [game.index for game in games if isinstance(game, GameRecord)] == list(range(1, 201))

    @pytest.mark.slow
    def test_the_whole_month_is_read(self, reference: Path) -> None:
        path = reference / "data" / "go" / "tygem-2010-06.sgf.gz"
        kinds = [type(game) for game in read_records([path])]
        assert kinds.count(GameRecord) == 9080
        assert BadRecord not in kinds
