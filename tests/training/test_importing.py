"""Import: two readers of each game that agree, broken games with their reasons, duplicates, failures in mid-import."""

from __future__ import annotations

import gzip
import io
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NoReturn

import chess
import chess.pgn
import numpy as np
import pytest
from click.testing import Result
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import BadRecord, BadRequest, BadStore
from keima.games.archive import Archive
from keima.games.chess import board
from keima.games.chess.archive import ChessArchive
from keima.games.chess.position import Position
from keima.games.go.archive import GoArchive
from keima.games.go.archive.flat import WHITE_BIT
from keima.games.go.archive.reading import GoReader, go_row, read_result
from keima.games.go.records import parse_sgf
from keima.games.go.sgf_text import split_games
from keima.games.kernels import joined
from keima.games.rows import Chunk, Piece, ReadChunk, iso_date
from keima.training.data import importing
from keima.training.data.importing import import_games
from keima.training.data.store import GameStore

SGF = "(;GM[1]FF[4]SZ[19]KM[6.5]RU[Japanese]PB[b]PW[w]RE[W+2.5];B[pd];W[dp];B[pp];W[dd])"
OTHER = SGF.replace("pp", "pq")


def go_chunk(*games: str | bytes) -> Chunk:
    data = (game if isinstance(game, bytes) else game.encode() for game in games)
    return Chunk([Piece(0, index, game, index) for index, game in enumerate(data, 1)])


def both(chunk: Chunk, archive: type[Archive] = GoArchive) -> ReadChunk:
    """What both readers make of a chunk, which must be the same."""
    quick, other = (archive(fast).read(chunk, None, 0) for fast in (True, False))
    assert quick == other
    return quick


def rows(found: ReadChunk) -> list[dict[str, Any]]:
    return found.batch.to_pylist()


def codes(packed: bytes) -> list[int]:
    return np.frombuffer(packed, "<u2").tolist()


class TestGo:
    def test_a_game_as_it_is_packed(self) -> None:
        sgf = "(;GM[1]SZ[9:7]KM[0.5]RU[Chinese]HA[2]AB[cc][ge]PB[Ann]WR[3k]DT[2010.6.1]RE[B+3,5];W[ac];B[];W[ig])"
        [row] = rows(both(go_chunk(sgf)))
        assert codes(row["moves"]) == [18 | WHITE_BIT, 63, 62 | WHITE_BIT]
        assert codes(row["setup"]) == [20, 42]
        assert (row["xsize"], row["ysize"], row["to_play_first"], row["handicap"]) == (9, 7, 1, 2)
        assert (row["rules"], row["komi"], row["winner"], row["score"]) == ("chinese", 0.5, 1, 3.5)
        assert (row["black"], row["white"], row["white_rank"], row["date"]) == ("Ann", "", "3k", "2010-06-01")

    @pytest.mark.parametrize(
        "sgf",
        [
            SGF,
            SGF.replace(";B[pp]", "(;B[pp]C[a \\] (;b]") + "(;B[aa];W[bb]))",
            SGF.replace(";", " ;\n").replace("W[dp]", "W [tt] WL[30]OW[3]C[:\\\\]N[;W[x\\]"),
            SGF.replace("W[dp]", "White[DP]"),
            SGF.replace("W[dp]", "AB[aa]"),
            SGF.replace(";W[dp]", "").replace("B[pd]", "B[pd]W[dp]"),
            SGF.replace("W[dp]", "W[zz]"),
            SGF.replace("W[dp]", "W[pd]"),
            SGF.replace("W[dp]", "W[dp][dd]"),
            SGF.replace("SZ[19]", "SZ[9]"),
            SGF.replace("SZ[19]", "SZ[37]"),
            SGF.replace("SZ[19]", "HA[4]"),
            SGF.replace("SZ[19]", "AB[pd]"),
            SGF.replace("SZ[19]", "AB[bb][cc]AW[dd:ee]PL[W]"),
            SGF.replace("SZ[19]", "GM[2]"),
            SGF.replace("SZ[19]", "B[aa]"),
            SGF.replace("PB[b]", "CA[GB2312]PB[\u9ed1]").encode("gb18030"),
            "(;)",
            "(;GM[1];;B[aa])",
            "(;GM[1]GM)",
            "(;GM[1]B)",
            "(;GM[1];1[aa])",
        ],
    )
    def test_the_readers_agree_on_what_is_bent_or_broken(self, sgf: str | bytes) -> None:
        both(go_chunk(sgf))

    @given(st.data())
    @settings(max_examples=60, deadline=None)
    def test_the_readers_agree_on_any_text(self, data: st.DataObject) -> None:
        point = st.sampled_from(["", "tt", "aa", "ab", "ba", "bb", "cc", "ss", "ee", "EE", "é", "x\\]"])
        node = st.tuples(st.sampled_from(["B", "W", "C", "AB", "PL", "b", "LB"]), point).map(
            lambda p: f"{p[0]}[{p[1]}]"
        )
        glue = st.sampled_from([";", ";", ";", "", " ;\n", "(;", ")", "]", "\\"])
        parts = data.draw(st.lists(st.tuples(glue, node), max_size=12))
        root = data.draw(st.sampled_from(["", "SZ[5]", "SZ[3:2]", "KM[650]RU[x]", "HA[2]AB[aa][ee]", "AW[bb]AB[bb]"]))
        both(go_chunk(f"(;GM[1]{root}" + "".join(a + b for a, b in parts) + ")"))

    @given(st.integers(0, 2**32), st.sampled_from([(2, 2), (5, 5), (3, 7), (19, 19)]))
    @settings(max_examples=15, deadline=None)
    def test_random_games_end_on_the_board_the_record_ends_on(self, seed: int, size: tuple[int, int]) -> None:
        """Captures, suicides and all: a game is taken if and only if its record can be played, and means the same."""
        rng = np.random.default_rng(seed)
        points = [(int(rng.integers(size[0])), int(rng.integers(size[1]))) for _ in range(40)]
        sgf = f"(;GM[1]SZ[{size[0]}:{size[1]}]"
        for number, (x, y) in enumerate(points):
            longer = f"{sgf};{'BW'[number % 2]}[{chr(97 + x)}{chr(97 + y)}]"
            try:
                final = parse_sgf(longer + ")").final()
            except BadRecord:
                raise
            except ValueError:
                assert both(go_chunk(longer + ")")).broken
            else:
                sgf = longer
                record = GoReader().read((sgf + ")").encode())
                assert len(record.moves) == len(final.moves)
        both(go_chunk(sgf + ")"))

    def test_the_reasons_of_broken_games(self) -> None:
        found = both(
            go_chunk(
                SGF,
                SGF.replace("dp", "pd"),
                SGF.replace("W[dp]", "W[zz]"),
                SGF.replace("SZ[19]", "SZ[21]"),
                SGF.replace("GM[1]", "GM[3]"),
            )
        )
        assert found.indices == [1]
        assert [(broken.index, broken.reason) for broken in found.broken] == [
            (2, "move 2 (W Q16): occupied by a black stone"),
            (3, "move 2 (W): [zz] is no point of this board"),
            (4, "root node: a board of 21×21: sizes from 2×2 to 19×19 are supported"),
            (5, "root node: GM[3] is not Go; Go is GM[1]"),
        ]

    def test_a_reference_month(self, reference: Path) -> None:
        """The first 300 games of a month: both readers, and sgfmill's points with the rules' own play, say the same."""
        with gzip.open(reference / "data" / "go" / "tygem-2010-06.sgf.gz") as stream:
            games = [raw for raw, _ in zip(split_games(stream), range(300), strict=False)]
        found = both(Chunk([Piece(0, raw.line, raw.data, raw.index, raw.problem) for raw in games]))
        assert len(found.indices) == 300
        for row, raw in list(zip(rows(found), games, strict=True))[::30]:
            final = parse_sgf(raw.data).final()
            assert len(final.moves) == len(row["moves"]) // 2
            for (colour, vertex), code in zip(final.moves, codes(row["moves"]), strict=True):
                y, x = divmod(code & 0x7FFF, 19)
                assert (colour, vertex) == ("W" if code & WHITE_BIT else "B", f"{'ABCDEFGHJKLMNOPQRST'[x]}{19 - y}")

    @pytest.mark.slow
    def test_a_whole_reference_month(self, reference: Path, tmp_path: Path) -> None:
        path = reference / "data" / "go" / "tygem-2010-06.sgf.gz"
        with gzip.open(path) as stream:
            games = list(split_games(stream))
        assert len(both(Chunk([Piece(0, raw.line, raw.data, raw.index, raw.problem) for raw in games])).indices) == 9080
        import_games([path], tmp_path / "a.parquet")
        report = import_games([path], tmp_path / "a.parquet", workers=2)
        assert (report.games, report.moves, report.duplicates, report.broken) == (9080, 1_910_059, 0, [])
        assert report.seconds < 10

    @pytest.mark.parametrize(
        ("text", "winner", "score"),
        [
            ("B+3.5", 1, 3.5),
            ("W+0.5", -1, -0.5),
            (" b+R ", 1, None),
            ("White+Time", -1, None),
            ("W+12,5", -1, -12.5),
            ("B+2 moku", 1, 2.0),
            ("B+", 1, None),
            ("0", 0, 0.0),
            ("Draw", 0, 0.0),
            ("Void", 0, None),
            ("?", None, None),
            ("", None, None),
            ("黑中盘胜", 1, None),
            ("白2目半勝", -1, None),
            ("Black wins", None, None),
        ],
    )
    def test_results(self, text: str, winner: int | None, score: float | None) -> None:
        assert read_result(text) == (winner, score)

    @pytest.mark.parametrize(
        ("text", "date"),
        [
            ("2010-06-01", "2010-06-01"),
            ("1846-07-21,22", "1846-07-21"),
            ("2010.6.1", "2010-06-01"),
            ("2010", "2010"),
            ("2010-06", "2010-06"),
            ("1972.??.??", "1972"),
            ("2010年6月1日", "2010-06-01"),
            ("spring 2010", "spring 2010"),
            ("2010-31-12", "2010-31-12"),
            ("", ""),
        ],
    )
    def test_dates(self, text: str, date: str) -> None:
        assert iso_date(text) == date

    def test_the_key_is_of_setup_and_moves(self) -> None:
        def key(sgf: str) -> int:
            return int(go_row(GoReader().read(sgf.encode()))["key"])

        assert key(SGF) == key(SGF.replace("PB[b]", "PB[c]").replace("KM[6.5]", ""))
        assert (
            len({key(SGF), key(OTHER), key(SGF.replace("SZ[19]", "SZ[18]")), key(SGF.replace("KM", "AB[aa]KM"))}) == 4
        )
        assert key(SGF.replace("KM", "AB[aa][bb]KM")) == key(SGF.replace("KM", "AB[bb][aa]KM"))


FENS = (
    "4k2r/6P1/8/3pP3/8/8/1p6/R3K3 w Qk d6 0 31",
    "r3k2r/pppq1ppp/2n2n2/8/4p3/2N2N2/PPPQPPPP/R3K2R b KQkq - 4 9",
    "8/8/8/4k3/8/8/1R6/4K3 b - - 17 60",
)


def random_pgn(seed: int, games: int, fen: str | None = None, chess960: bool = False) -> str:
    """Games of random legal moves, castling, promotion and capture more often, with comments, glyphs, variations."""
    rng = np.random.default_rng(seed)
    text = io.StringIO()
    for number in range(games):
        game = chess.pgn.Game()
        if fen is not None or chess960:
            start = chess.Board.from_chess960_pos(int(rng.integers(960))) if chess960 else chess.Board(fen or "")
            game.setup(start)
        game.headers.update({"White": f"A{number}", "Date": "2020.05.??", "WhiteElo": "1500", "Round": "-"})
        node: chess.pgn.GameNode = game
        here = game.board()
        for _ in range(int(rng.integers(1, 100))):
            legal = list(here.legal_moves)
            if not legal:
                break
            lively = [m for m in legal if here.is_capture(m) or m.promotion or here.is_castling(m)]
            choice = lively if lively and rng.random() < 0.4 else legal
            move = choice[int(rng.integers(len(choice)))]
            other = legal[int(rng.integers(len(legal)))]
            if rng.random() < 0.05 and other != move:
                node.add_variation(move).comment = "so (or so) $3 1. e4"
                node.add_variation(other)
                node = node.variations[0]
            else:
                node = node.add_variation(move, nags={1} if rng.random() < 0.05 else ())
            here.push(move)
        game.headers["Result"] = here.result()
        print(game, file=text, end="\n\n")
    return text.getvalue()


class TestChess:
    @given(st.integers(0, 2**32), st.booleans(), st.sampled_from([None, *FENS]))
    @settings(max_examples=12, deadline=None)
    def test_the_readers_agree_and_python_chess_with_them(self, seed: int, chess960: bool, fen: str | None) -> None:
        text = random_pgn(seed, 2, fen, chess960)
        found = both(Chunk([Piece(0, 1, text.encode())]), ChessArchive)
        stream = io.StringIO(text)
        for row in rows(found):
            game = chess.pgn.read_game(stream)
            assert game is not None
            position = Position.from_fen(row["start_fen"], chess960=row["chess960"])
            state = joined([position.record])
            here = game.board()
            for code, move in zip(codes(row["moves"]), game.mainline_moves(), strict=True):
                assert position.name(code, int(state["side"][0])) == here.uci(move)
                here.push(move)
                board.make(state[0], np.uint16(code))
            assert row["white"] == game.headers["White"]

    def test_a_game_as_it_is_packed(self) -> None:
        tags = '[Event "Open"]\n[Round "3"]\n[White "A"]\n[WhiteElo "1510"]\n[BlackElo "?"]\n[Date "2020.01.02"]\n'
        text = tags + '[Result "1-0"]\n\n1. e4 e5 2. Nf3 {good} Nc6 3. Bc4 Bc5 4. O-O $1 Nf6 1-0\n'
        [row] = rows(both(Chunk([Piece(0, 1, text.encode())]), ChessArchive))
        king_takes_rook = 4 | 7 << 6 | board.CASTLING << 12
        assert codes(row["moves"])[:2] == [12 | 28 << 6] * 2, "Black's e5 seen from its own side is e4"
        assert codes(row["moves"])[6] == king_takes_rook
        assert (row["winner"], row["result"], row["white_elo"], row["black_elo"]) == (1, "1-0", 1510, None)
        assert (row["event"], row["date"], row["start_fen"], row["chess960"]) == ("Open, 3", "2020-01-02", None, False)

    @pytest.mark.parametrize(
        "moves",
        [
            "1. e4 e5 *",
            "1.e4 e5 2.Nf3!? Nc6?? 3. Bb5+ a6 *",
            "1. e4 e5",
            "1. e4 e5 2. Ke3 *",
            "1. e4 e5 2. Nc4 *",
            "1. e4 -- 2. d4 *",
            "1. e4 (1. d4 d5 (1... Nf6) {)} 2. c4) 1... e5 *",
            "1. e4 ( 1. d4 ; a line ) of comment\n) 1... e5 *",
            "{before} 1. e4 {never closed *",
            "(1. d4) 1. e4 *",
            "1. e4 e5\n\n2. Nf3 *",
            "1. e4 e5\n% hidden\n2. Nf3 *",
            "1. e4 e5 2. Nf3 Nc6 3. Nd4 d6 4. Nb3 d5 5. N3d2 *",
            "1. e4 d5 2. e4xd5 *",
            "1. e4 d5 2. exd5 e.p. *",
            "1. e2e4 *",
            "1. e4 e5 1-0 2. Nf3 *",
            "1. e4 e5 1/2",
            "1. e4 e5 1/2-1/2",
            "1. e4 e5 2. 0-0 *",
            "e4 e5 Nf3 *",
            "1. e4. e5 *",
            "12a e4 *",
            "1. e4 e5 2.",
            "",
        ],
    )
    def test_the_readers_agree_on_what_is_bent_or_broken(self, moves: str) -> None:
        sound = '[Event "b"]\n\n1. d4 *\n\n'
        both(Chunk([Piece(0, 1, f'[Event "a"]\n\n{moves}\n\n{sound}'.encode())]), ChessArchive)

    @pytest.mark.parametrize(
        ("tag", "moves"),
        [
            ('[FEN "4k3/8/8/8/8/8/8/4K2R w K - 0 1"]', "1. O-O Kd7 *"),
            ('[FEN "4k3/8/8/8/8/8/8/4K2R b K - 0 17"]', "17... Kd7 18. O-O *"),
            ('[FEN "4k3/8/8/8/8/8/8/4K2R b K - 0 17"]', "17... O-O *"),
            ('[FEN "4k3/8/8/8/8/8/8/4K1R1 w K - 0 1"]', "1. Kd2 *"),
            ('[FEN "4k3/8/8/8/8/8/8/5K1R w K - 0 1"]', "1. Kf2 *"),
            ('[FEN "4k3/8/8/8/8/8/8/4K2R w H - 0 1"]', "1. O-O *"),
            ('[FEN "4k3/8/8/8/8/8/8/4K2R w K -"]', "1. O-O *"),
            ('[FEN "4k3/8/8/8/8/8/8/4K2R  w K - 0 1 "]', "1. O-O *"),
            ('[FEN "4k2R/8/8/8/8/8/8/4K3 w - - 0 1"]', "1. Kd2 *"),
            ('[FEN "8/8/8/8/8/8/8/4K2R w K - 0 1"]', "1. Kd2 *"),
            ('[FEN "4k3/8/8/8/8/8/8/4K2R w K e6 0 1"]', "1. Kd2 *"),
            ('[FEN ""]', "1. e4 *"),
            ('[FEN "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"]', "1. e4 *"),
            ('[FEN "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 3 1"]', "1. e4 *"),
            ('[SetUp "0"]\n[FEN "4k3/8/8/8/8/8/8/4K2R w K - 0 1"]', "1. O-O *"),
            ('[SetUp "1"]', "1. e4 *"),
            ('[Variant "Chess960"]\n[FEN "4k3/8/8/8/8/8/8/4K2R w H - 0 1"]', "1. O-O *"),
            ('[Variant "Standard"]', "1. e4 *"),
        ],
    )
    def test_the_readers_agree_on_where_games_begin(self, tag: str, moves: str) -> None:
        both(Chunk([Piece(0, 1, f'[Event "a"]\n{tag}\n\n{moves}\n\n'.encode())]), ChessArchive)

    def test_a_sound_fen_is_read_by_the_kernel(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("keima.games.chess.archive.reading.read_pgn_text", None)
        text = f'[Event "a"]\n[SetUp "1"]\n[FEN "{FENS[0]}"]\n\n31. exd6 bxa1=Q+ 32. Kd2 Rg8 *\n'
        chunk = ChessArchive().read(Chunk([Piece(0, 1, text.encode())]), None, 0)
        [row] = rows(chunk)
        assert row["start_fen"] == FENS[0]
        assert len(codes(row["moves"])) == 4

    def test_tags_that_are_not_plain(self) -> None:
        for tag in (
            '[White "a \\"b\\" c"]',
            '[FEN "4k3/8/8/8/8/8/8/4K2R w K - 0 1"]',
            '[Variant "Atomic"]',
            '[White "é"]',
        ):
            text = f'[Event "a"]\n{tag}\n\n1. Rg1 Kd7 *\n'
            both(Chunk([Piece(0, 1, text.encode())]), ChessArchive)
            both(Chunk([Piece(0, 1, text.encode("latin-1").replace(b"Rg1 Kd7", b"e4 e5"))]), ChessArchive)
            both(Chunk([Piece(0, 1, text.replace("\n", "\r\n").encode())]), ChessArchive)

    def test_pieces_cut_anywhere_give_the_same_store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text = random_pgn(5, 40).replace("1. ", "1. Ke5 ", 1)
        (tmp_path / "a.pgn").write_text(text)
        whole = import_games([tmp_path / "a.pgn"], tmp_path / "whole.parquet", min_moves=0)
        monkeypatch.setattr("keima.games.chess.archive.CHUNK_BYTES", 700)
        cut = import_games([tmp_path / "a.pgn"], tmp_path / "cut.parquet", min_moves=0)
        assert GameStore.open(tmp_path / "cut.parquet").table() == GameStore.open(tmp_path / "whole.parquet").table()
        assert (cut.games, cut.broken) == (whole.games, whole.broken)
        [(source, reason)] = cut.broken
        assert source == f"{tmp_path / 'a.pgn'}: game 1 (line 10)", "the line of the move"
        assert "Ke5" in reason


class TestImport:
    def test_what_is_left_out_is_counted(self, tmp_path: Path) -> None:
        (tmp_path / "in" / "deep").mkdir(parents=True)
        (tmp_path / "in" / "b.sgf").write_text(SGF + "\n" + SGF.replace("dp", "pd") + "\n(;GM[1];B[aa])\n" + OTHER)
        with gzip.open(tmp_path / "in" / "deep" / "a.sgf.gz", "wt") as stream:
            stream.write(SGF.replace("PB[b]", "PB[other]") + OTHER.replace("dp", "dq"))
        (tmp_path / "in" / "empty.sgf").write_text("nothing")
        report = import_games([tmp_path / "in"], tmp_path / "out.parquet", min_moves=2)
        assert (report.games, report.duplicates, report.short, report.files) == (3, 1, 1, 3)
        assert report.broken == [
            (f"{tmp_path / 'in' / 'b.sgf'}: game 2 (line 2)", "move 2 (W Q16): occupied by a black stone"),
            (f"{tmp_path / 'in' / 'empty.sgf'}", "holds no SGF game: nothing begins with `(;`"),
        ]
        sources = GameStore.open(tmp_path / "out.parquet").table(["source"])["source"].to_pylist()
        assert sources == ["b.sgf#1", "b.sgf#4", "deep/a.sgf.gz#2"]

    def test_a_file_that_breaks_off_gives_what_it_holds(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("keima.games.go.sgf_text.CHUNK", 256)
        games = [SGF.replace("pp", f"{x}{y}") for x in "efghijk" for y in "efghijk"]
        (tmp_path / "cut.sgf.gz").write_bytes(gzip.compress("".join(games).encode())[:-12])
        report = import_games([tmp_path / "cut.sgf.gz"], tmp_path / "out.parquet", min_moves=0)
        assert 30 < report.games < 49
        [(source, reason)] = report.broken
        assert (source, "cannot be read" in reason) == (str(tmp_path / "cut.sgf.gz"), True)

    @pytest.mark.slow
    def test_more_workers_make_the_same_store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        games = [SGF.replace("pp", f"{x}{y}") for x in "efghijk" for y in "efghijk"]
        (tmp_path / "a.sgf").write_text("\n".join([*games, SGF.replace("dp", "pd"), *games[:5]]))
        monkeypatch.setattr("keima.games.go.archive.ARCHIVE.chunk_games", 7)
        alone = import_games([tmp_path / "a.sgf"], tmp_path / "1.parquet", min_moves=0, workers=1)
        monkeypatch.setattr(importing, "ALONE_SECONDS", -1.0)
        two = import_games([tmp_path / "a.sgf"], tmp_path / "2.parquet", min_moves=0, workers=2)
        assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()
        assert (
            (two.games, two.duplicates, two.broken)
            == (alone.games, alone.duplicates, alone.broken)
            == (49, 5, alone.broken)
        )

    def test_a_killed_worker(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(importing, "ALONE_SECONDS", -1.0)
        deaths = importing._in_order(signal.raise_signal, iter([signal.SIGCHLD, signal.SIGKILL]), 2)  # type: ignore[arg-type]
        with pytest.raises(BrokenProcessPool):
            list(deaths)

        def broken(*_: Any) -> NoReturn:
            raise BrokenProcessPool

        monkeypatch.setattr(importing, "_in_order", broken)
        (tmp_path / "a.sgf").write_text(SGF)
        with pytest.raises(BadStore, match="nothing written: a worker process was killed"):
            import_games([tmp_path / "a.sgf"], tmp_path / "a.parquet")
        assert [file.name for file in tmp_path.iterdir()] == ["a.sgf"]

    def test_killed_in_mid_import_the_old_store_stays(self, tmp_path: Path) -> None:
        (tmp_path / "a.sgf").write_text(SGF + OTHER)
        import_games([tmp_path / "a.sgf"], tmp_path / "a.parquet", min_moves=0)
        before = (tmp_path / "a.parquet").read_bytes()
        code = (
            "import os, signal; from keima.games.go import archive; from keima.training.data import importing, store\n"
            "store.ROW_GROUP = archive.ARCHIVE.chunk_games = 1\n"
            "die = lambda games, *_: games > 1 and os.kill(os.getpid(), signal.SIGKILL)\n"
            "importing.import_games(['a.sgf'], 'a.parquet', min_moves=0, workers=1, progress=die)"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
        assert done.returncode == -signal.SIGKILL
        assert list(tmp_path.glob(".a.parquet.*")), "it was killed while it wrote"
        assert (tmp_path / "a.parquet").read_bytes() == before

    @pytest.mark.parametrize(
        ("paths", "out", "options", "message"),
        [
            (["a.sgf"], "x.txt", {}, r"x.txt: a game store's name must end in .parquet"),
            (["a.sgf"], "a.sgf/x.parquet", {}, "its folder cannot be made"),
            (["gone.sgf"], "x.parquet", {}, r"gone.sgf: no such file or folder"),
            (["a.sgf", "b.pgn"], "x.parquet", {}, r"b.pgn is chess and .*a.sgf is go; choose with --game"),
            (["a.sgf"], "x.parquet", {"game": "shogi"}, "unknown game"),
            (["a.sgf"], "x.parquet", {"rules": "bridge"}, "bridge"),
            (["a.sgf"], "x.parquet", {"workers": 0}, "workers 0"),
            (["a.sgf"], "x.parquet", {"game": "chess"}, "no chess records"),
            (["a.sgf"], "x.parquet", {"min_moves": 99}, r"no game to write \(0 broken, 1 too short"),
        ],
    )
    def test_what_cannot_be_is_refused(
        self, tmp_path: Path, paths: list[str], out: str, options: dict[str, Any], message: str
    ) -> None:
        (tmp_path / "a.sgf").write_text(SGF)
        (tmp_path / "b.pgn").write_text('[Event "a"]\n\n1. e4 *\n')
        with pytest.raises((BadRequest, BadRecord), match=message):
            import_games([tmp_path / path for path in paths], tmp_path / out, **options)
        assert not list(tmp_path.glob("*parquet*"))

    def test_of_a_mixed_folder_one_game(self, tmp_path: Path) -> None:
        (tmp_path / "a.sgf").write_text(SGF)
        (tmp_path / "b.pgn").write_text('[Event "a"]\n\n1. e4 *\n')
        assert import_games([tmp_path], tmp_path / "x.parquet", game="chess", min_moves=0).moves == 1

    def test_keys_by_the_hundred_thousand(self) -> None:
        rng = np.random.default_rng(2)
        seen, kept = importing._KeySet(), set()
        for _ in range(20):
            keys = rng.integers(0, 200_000, 10_000).astype(np.uint64)
            fresh = [key not in kept and not kept.add(key) for key in np.maximum(keys, np.uint64(1)).tolist()]
            assert seen.add(keys).tolist() == fresh


class TestCommand:
    @pytest.fixture
    def run(self) -> Any:
        from click.testing import CliRunner
        from typer.main import get_command

        from keima.cli.main import app

        def invoke(*arguments: object) -> Result:
            return CliRunner().invoke(get_command(app), [str(argument) for argument in arguments])

        return invoke

    def test_from_games_to_a_split(self, run: Any, tmp_path: Path) -> None:
        games = [SGF.replace("pp", f"{x}{y}") for x in "efghijk" for y in "efghijk"]
        (tmp_path / "a.sgf").write_text("".join(games))
        (tmp_path / "b.sgf").write_text(OTHER + SGF.replace("dp", "pd"))
        store = tmp_path / "s.parquet"
        done = run("data", "import", tmp_path / "a.sgf", tmp_path / "b.sgf", "-o", store, "--min-moves", 1,
                   "--broken", tmp_path / "broken.txt")  # fmt: skip
        assert done.exit_code == 0
        assert "50 games of go, 200 moves" in done.stderr
        assert "left out: 1 broken" in done.stderr
        assert (tmp_path / "broken.txt").read_text() == (
            f"{tmp_path / 'b.sgf'}: game 2 (line 1): move 2 (W Q16): occupied by a black stone\n"
        )
        assert "sizes           19x19 50" in run("data", "info", store).stdout
        assert '"games": 50' in run("data", "info", store, "--json").stdout
        done = run("data", "split", store, "-o", tmp_path / "split", "--test-source", "b*")
        assert "49 games in train.parquet, 1 in test.parquet" in done.stderr
        assert len(GameStore.open(tmp_path / "split" / "test.parquet")) == 1

    def test_errors_are_one_line(self, run: Any, tmp_path: Path) -> None:
        for arguments in (
            ("data", "info", tmp_path / "gone.parquet"),
            ("data", "import", tmp_path / "gone.sgf", "-o", tmp_path / "x.parquet"),
            ("data", "split", tmp_path / "gone.parquet", "-o", tmp_path, "--test-fraction", 0.5),
        ):
            done = run(*arguments)
            assert done.exit_code == 2
            assert done.stderr.startswith("keima: ")
            assert done.stderr.count("\n") == 1

    @pytest.mark.parametrize("verb", ["import", "info", "split"])
    def test_help_has_examples(self, run: Any, verb: str) -> None:
        assert f"keima data {verb} " in run("data", verb, "--help").stdout.split("Examples:")[1]
