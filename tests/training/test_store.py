"""The game store: what is written is what is read, damage is named, flat arrays follow the store."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from keima.errors import BadRequest, BadStore
from keima.games.chess.archive import SCHEMA as CHESS_SCHEMA
from keima.games.chess.archive import UNKNOWN_ELO
from keima.games.game import GAMES
from keima.games.go.archive.flat import SCHEMA as GO_SCHEMA
from keima.games.go.archive.flat import WHITE_BIT
from keima.games.rows import UNKNOWN_WINNER
from keima.training.data.store import GameStore, TestGames, split_store, writing


def codes(*moves: int) -> bytes:
    return np.array(moves, "<u2").tobytes()


def go_row(**fields: Any) -> dict[str, Any]:
    plain = {
        "moves": codes(60, 72 | WHITE_BIT, 361),
        "setup": b"",
        "to_play_first": 0,
        "xsize": 19,
        "ysize": 19,
        "rules": "japanese",
        "komi": 6.5,
        "handicap": 0,
        "winner": 1,
        "result": "B+R",
        "black": "Honinbo",
        "white": "",
        "score": None,
        "black_rank": "9d",
        "white_rank": "",
        "date": "2010-06-01",
        "source": "a.sgf#1",
        "key": 7,
    }
    return plain | fields


def chess_row(**fields: Any) -> dict[str, Any]:
    plain = {
        "moves": codes(12 | 28 << 6),
        "start_fen": None,
        "chess960": False,
        "winner": None,
        "result": "*",
        "black": "",
        "white": "",
        "white_elo": 1500,
        "black_elo": None,
        "date": "",
        "event": "",
        "source": "a.pgn#1",
        "key": 9,
    }
    return plain | fields


def write(path: Path, game: str, *rows: dict[str, Any]) -> Path:
    with writing(path, game) as writer:
        writer.write(pa.RecordBatch.from_pylist(list(rows), schema=GAMES[game].archive.schema))
    return path


@pytest.fixture
def store(tmp_path: Path) -> GameStore:
    """Three games: an ordinary one, a 9×7 one with handicap, one nobody knows the end of."""
    small = go_row(
        moves=codes(0 | WHITE_BIT),
        setup=codes(20, 24),
        to_play_first=1,
        xsize=9,
        ysize=7,
        rules="chinese",
        komi=0.5,
        handicap=2,
        winner=-1,
        score=-3.5,
        white_rank="1k",
        key=8,
    )
    unknown = go_row(moves=b"", winner=None, result="", key=2**64 - 1, date="spring")
    return GameStore.open(write(tmp_path / "games.parquet", "go", go_row(), small, unknown))


class TestReading:
    def test_rows_come_back(self, store: GameStore) -> None:
        assert (store.game, len(store)) == ("go", 3)
        table = store.table(["komi", "handicap", "winner", "score", "key"])
        assert table.column_names == ["komi", "handicap", "winner", "score", "key"]
        assert table.to_pylist()[1] == {"komi": 0.5, "handicap": 2, "winner": -1, "score": -3.5, "key": 8}
        assert store.table().column_names == GO_SCHEMA.names

    def test_flat_arrays_say_the_same(self, store: GameStore) -> None:
        flat = store.flat()
        assert isinstance(flat.moves, np.memmap)
        assert flat.moves.tolist() == [60, 72 | WHITE_BIT, 361, WHITE_BIT]
        assert flat.start.tolist() == [0, 3, 4, 4]
        assert (flat.setup.tolist(), flat.setup_start.tolist()) == ([20, 24], [0, 0, 2, 2])
        assert flat.winner.tolist() == [1, -1, UNKNOWN_WINNER]
        assert flat.score[1] == -3.5
        assert np.isnan(flat.score[[0, 2]]).all()
        assert [flat.rules[i].name for i in flat.rules_index] == ["japanese", "chinese", "japanese"]
        assert [flat.ranks[i] for i in flat.white_rank] == ["", "1k", ""]
        assert (flat.xsize.tolist(), flat.ysize.tolist()) == ([19, 9, 19], [19, 7, 19])
        assert flat.key.tolist() == [7, 8, 2**64 - 1]
        kinds = {"start": np.int64, "moves": np.uint16, "komi": np.float32, "to_play_first": np.uint8}
        assert {name: getattr(flat, name).dtype.type for name in kinds} == kinds

    def test_flat_chess(self, tmp_path: Path) -> None:
        fen = "4k3/8/8/8/8/8/8/4K2R w K - 0 1"
        rows = [chess_row(), chess_row(start_fen=fen, chess960=True, winner=0), chess_row(start_fen=fen)]
        flat = GameStore.open(write(tmp_path / "c.parquet", "chess", *rows)).flat()
        assert (flat.start_fen.tolist(), flat.start_fens) == ([-1, 0, 0], (fen,))
        assert flat.chess960.tolist() == [False, True, False]
        assert flat.winner.tolist() == [UNKNOWN_WINNER, 0, UNKNOWN_WINNER]
        assert (flat.white_elo[0], flat.black_elo[0]) == (1500, UNKNOWN_ELO)

    def test_a_folder_is_one_store(self, tmp_path: Path) -> None:
        for number in range(3):
            write(tmp_path / f"part-0000{number}.parquet", "go", go_row(key=number), go_row(key=number + 10))
        store = GameStore.open(tmp_path)
        assert store.table(["key"])["key"].to_pylist() == [0, 10, 1, 11, 2, 12]
        assert len(store.flat()) == len(store) == 6

    @pytest.mark.parametrize("game", ["go", "chess"])
    def test_an_empty_store(self, tmp_path: Path, game: str) -> None:
        with writing(tmp_path / "none.parquet", game):
            pass
        store = GameStore.open(tmp_path / "none.parquet")
        flat = store.flat()
        assert (len(store), len(flat), len(flat.moves), flat.start.tolist()) == (0, 0, 0, [0])
        assert store.info()["games"] == 0

    def test_info(self, store: GameStore) -> None:
        info = store.info()
        assert json.loads(json.dumps(info)) == info
        assert info["results"] == {"black": 1, "white": 1, "unknown": 1}
        assert info["sizes"] == {"19x19": 2, "9x7": 1}
        assert info["ranks"] == {"9d": 3, "unknown": 2, "1k": 1}
        assert info["dates"] == {"first": "2010-06-01", "last": "2010-06-01", "years": {"2010": 2, "unknown": 1}}
        assert info["moves_per_game"] == {"min": 0, "mean": 1.3, "median": 1, "max": 3}
        assert (info["moves"], info["scored"], info["handicap"]) == (4, 1, {"0": 2, "2": 1})

    def test_info_of_chess_by_steps_of_elo(self, tmp_path: Path) -> None:
        path = write(tmp_path / "c.parquet", "chess", chess_row(), chess_row(white_elo=1399, start_fen="8/8 w - - 0 1"))
        info = GameStore.open(path).info()
        assert info["elo"] == {"1200-1399": 1, "1400-1599": 1, "unknown": 2}
        assert info["starts"] == {"usual": 1, "other": 1}


class TestCache:
    def test_made_once(self, store: GameStore) -> None:
        store.flat()
        [folder] = store.path.with_name("games.parquet.cache").iterdir()
        before = {file.name: file.stat().st_ino for file in folder.iterdir()}
        assert len(store.flat()) == 3
        assert {file.name: file.stat().st_ino for file in folder.iterdir()} == before

    def test_made_anew_when_the_store_changes(self, store: GameStore) -> None:
        old = store.flat()
        write(store.path, "go", go_row(key=1))
        new = GameStore.open(store.path).flat()
        assert (len(new), new.key.tolist()) == (1, [1])
        assert len(list(store.path.with_name("games.parquet.cache").iterdir())) == 1
        assert old.moves.tolist() == [60, 72 | WHITE_BIT, 361, WHITE_BIT], "a map in use stays whole"

    def test_elsewhere_if_the_folder_cannot_be_written(
        self, store: GameStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.path.with_name("games.parquet.cache").write_text("in the way")
        (tmp_path / "temporary").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        assert len(store.flat()) == 3
        assert list((tmp_path / "temporary").rglob("moves.bin"))

    def test_nowhere(self, store: GameStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        store.path.with_name("games.parquet.cache").write_text("in the way")
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
        with pytest.raises(BadStore, match=r"games.parquet: no room for its flat arrays"):
            store.flat()

    def test_unfinished_arrays_of_a_killed_process_go(self, store: GameStore) -> None:
        import os

        left = store.path.with_name("games.parquet.cache") / ".making-killed"
        left.mkdir(parents=True)
        os.utime(left, (0, 0))
        store.flat()
        assert not left.exists()


class TestDamage:
    def test_no_such_file(self, tmp_path: Path) -> None:
        with pytest.raises(BadStore, match=r"gone.parquet: no such game store"):
            GameStore.open(tmp_path / "gone.parquet")
        with pytest.raises(BadStore, match=r"no \.parquet files in this folder"):
            GameStore.open(tmp_path)

    @pytest.mark.parametrize("content", [b"", b"(;GM[1])", b"PAR1" + b"\0" * 50 + b"PAR1"])
    def test_no_parquet(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "x.parquet").write_bytes(content)
        with pytest.raises(BadStore, match=r"x.parquet: cannot be read"):
            GameStore.open(tmp_path / "x.parquet")

    def test_another_kind_of_parquet(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
        with pytest.raises(BadStore, match="no game store"):
            GameStore.open(tmp_path / "x.parquet")

    def test_a_later_version(self, tmp_path: Path) -> None:
        schema = GO_SCHEMA.with_metadata({"keima.store": "2", "keima.game": "go"})
        pq.write_table(schema.empty_table(), tmp_path / "x.parquet")
        with pytest.raises(BadStore, match="version '2'; this keima reads version 1"):
            GameStore.open(tmp_path / "x.parquet")

    def test_a_column_missing_or_of_another_type(self, tmp_path: Path) -> None:
        for schema, message in (
            (GO_SCHEMA.remove(3), "column xsize is missing"),
            (GO_SCHEMA.set(3, pa.field("xsize", pa.string())), "column xsize is string; it must be uint8"),
        ):
            pq.write_table(schema.empty_table(), tmp_path / "x.parquet")
            with pytest.raises(BadStore, match=message):
                GameStore.open(tmp_path / "x.parquet")

    def test_two_games_in_a_folder(self, tmp_path: Path) -> None:
        write(tmp_path / "a.parquet", "go", go_row())
        write(tmp_path / "b.parquet", "chess", chess_row())
        with pytest.raises(BadStore, match=r"b.parquet: holds chess, but a.parquet beside it holds go"):
            GameStore.open(tmp_path)

    def test_cut_short_and_overwritten(self, store: GameStore) -> None:
        data = store.path.read_bytes()
        store.path.write_bytes(data[: len(data) // 2])
        with pytest.raises(BadStore, match=r"games.parquet: cannot be read"):
            GameStore.open(store.path)
        store.path.write_bytes(b"PAR1" + b"\xff" * 600 + data[604:])
        damaged = GameStore.open(store.path)
        for read in (damaged.flat, damaged.table, damaged.info):
            with pytest.raises(BadStore, match=r"games.parquet: cannot be read"):
                read()

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"moves": codes(362)}, "row 2: a move off the board"),
            ({"moves": codes(3)[:1]}, "moves must be two bytes each"),
            ({"setup": codes(361)}, "row 2: a setup stone off the board"),
            ({"xsize": 20}, "row 2: board sides must be 2 to 19"),
            ({"ysize": 1}, "row 2: board sides must be 2 to 19"),
            ({"winner": 3}, "row 2: winner must be"),
            ({"rules": "bridge"}, "bridge"),
            ({"komi": None}, "komi must not be null"),
        ],
    )
    def test_what_no_import_writes_never_reaches_a_kernel(
        self, tmp_path: Path, fields: dict[str, Any], message: str
    ) -> None:
        path = write(tmp_path / "x.parquet", "go", go_row(), go_row(**fields))
        with pytest.raises(BadStore, match=message):
            GameStore.open(path).flat()

    @pytest.mark.parametrize("name", ["moves", "xsize", "ysize", "komi", "handicap"])
    def test_counts_of_rows_that_lack_a_value(self, tmp_path: Path, name: str) -> None:
        path = write(tmp_path / "x.parquet", "go", go_row(), go_row(**{name: None}))
        with pytest.raises(BadStore, match=rf"x.parquet: {name} must not be null"):
            GameStore.open(path).info()

    def test_other_rows_than_the_footers_tell(self, store: GameStore) -> None:
        with pytest.raises(BadStore, match=r"games.parquet: damaged: 3 rows, where its files say 5"):
            GameStore(store.path, "go", store.files, (5,)).flat()

    def test_keys_that_are_missing_divide_nothing(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.parquet", "go", go_row(), go_row(key=None))
        with pytest.raises(BadStore, match=r"x.parquet: key must not be null"):
            split_store(GameStore.open(path), tmp_path / "split", TestGames(fraction=0.5))

    def test_codes_that_are_no_chess_moves(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.parquet", "chess", chess_row(moves=codes(12 | 28 << 6, 7 << 12)))
        with pytest.raises(BadStore, match="row 1: a code that is no move"):
            GameStore.open(path).flat()

    def test_an_unknown_column(self, store: GameStore) -> None:
        with pytest.raises(BadStore, match="no column 'elo'; a go store has moves, setup"):
            store.table(["elo"])

    def test_writing_that_fails_leaves_what_was_there(self, store: GameStore, tmp_path: Path) -> None:
        before = store.path.read_bytes()
        with pytest.raises(pa.ArrowException):
            write(store.path, "go", go_row(key=1), go_row(komi="much"))
        assert store.path.read_bytes() == before
        assert [file.name for file in tmp_path.iterdir()] == ["games.parquet"]

    def test_a_full_disk(self, tmp_path: Path) -> None:
        resource = pytest.importorskip("resource")
        kept = resource.getrlimit(resource.RLIMIT_FSIZE)
        row = go_row(moves=np.random.default_rng(0).bytes(40_000))
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, kept[1]))
            with pytest.raises(BadStore, match=r"x.parquet: cannot be written"):
                write(tmp_path / "x.parquet", "go", row)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, kept)
        assert not list(tmp_path.iterdir())

    def test_without_pyarrow_the_extra_is_named(self, store: GameStore) -> None:
        code = f"import sys; sys.modules['pyarrow'] = None; sys.argv = ['keima', 'data', 'info', {str(store.path)!r}]\n"
        code += "from keima.cli.main import main; main()"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "pip install 'keima[train]'" in done.stderr
        assert "Traceback" not in done.stderr


class TestSplit:
    @pytest.fixture
    def many(self, tmp_path: Path) -> GameStore:
        rng = np.random.default_rng(1)
        keys = rng.integers(1, 2**63, 4000)
        rows = [
            go_row(key=int(key), date=f"2010-0{5 + i % 2}-01", source=f"m{i % 4}.sgf.gz#{i}")
            for i, key in enumerate(keys)
        ]
        return GameStore.open(write(tmp_path / "many.parquet", "go", *rows))

    def sides(self, folder: Path) -> tuple[set[int], set[int]]:
        train, test = (
            GameStore.open(folder / f"{name}.parquet").table(["key"])["key"].to_pylist() for name in ("train", "test")
        )
        return set(train), set(test)

    def test_by_fraction_each_game_stays_on_its_side(self, many: GameStore, tmp_path: Path) -> None:
        report = split_store(many, tmp_path / "a", TestGames(fraction=0.05))
        train, test = self.sides(tmp_path / "a")
        assert train | test == set(many.table(["key"])["key"].to_pylist())
        assert not train & test
        assert (report.train, report.test) == (len(train), len(test))
        assert 150 < len(test) < 250
        fewer = many.table().slice(0, 1000).to_pylist()
        split_store(
            GameStore.open(write(tmp_path / "few.parquet", "go", *fewer)), tmp_path / "b", TestGames(fraction=0.05)
        )
        assert self.sides(tmp_path / "b")[1] == test & {row["key"] for row in fewer}

    def test_by_date_and_by_source(self, many: GameStore, tmp_path: Path) -> None:
        assert split_store(many, tmp_path / "a", TestGames(date="2010-06")).test == 2000
        assert split_store(many, tmp_path / "a", TestGames(source="m[13].sgf.gz")).test == 2000
        assert split_store(many, tmp_path / "a", TestGames(source="m3*")).test == 1000

    def test_what_cannot_be_split(self, many: GameStore, tmp_path: Path) -> None:
        for choice, message in (
            ({}, "exactly one"),
            ({"fraction": 1.5}, "between 0 and 1"),
            ({"date": "June"}, "2010-06"),
        ):
            with pytest.raises(BadRequest, match=message):
                TestGames(**choice)
        with pytest.raises(BadRequest, match=r"no game is a test game; the first game's date is '2010-05-01'"):
            split_store(many, tmp_path / "a", TestGames(date="2011"))
        with pytest.raises(BadRequest, match="every game would be a test game"):
            split_store(many, tmp_path / "a", TestGames(source="*"))
        assert not (tmp_path / "a").exists()
        (tmp_path / "file").write_text("")
        with pytest.raises(BadStore, match="cannot be made"):
            split_store(many, tmp_path / "file" / "a", TestGames(date="2010-06"))

    def test_not_over_itself(self, many: GameStore, tmp_path: Path) -> None:
        many.path.rename(tmp_path / "train.parquet")
        with pytest.raises(BadRequest, match="over itself"):
            split_store(GameStore.open(tmp_path / "train.parquet"), tmp_path, TestGames(date="2010-06"))


def test_the_schemas_are_told_in_the_documents() -> None:
    document = (Path(__file__).resolve().parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    for schema in (GO_SCHEMA, CHESS_SCHEMA):
        for field in schema:
            assert any(f"`{field.name}`" in line and str(field.type) in line for line in document.splitlines()), (
                field.name
            )
