"""Games out of a store: written as records and imported again they are the same rows; self-play's say more as JSON."""

import itertools
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keima.cli.main import app
from keima.errors import BadRequest
from keima.training.data.export import export
from keima.training.data.importing import import_games
from keima.training.data.store import GameStore
from keima.training.selfplay.shards import write_shard
from keima.training.selfplay.store import Store
from tests.training.selfplay.runs import evaluator, play, recipe, started

RECORDS = {
    "games.sgf": """(;GM[1]SZ[9]KM[0.5]HA[2]RU[Japanese]PB[Ada]PW[Bo]BR[3d]WR[1k]DT[2020-02-03]RE[B+3.5]
AB[cc][gg];W[ee];B[dd];W[];B[tt])
(;GM[1]SZ[7]KM[7.5]RU[Chinese]RE[W+R]AB[aa][bb]AW[cc]PL[W];W[dd];B[ee];B[ff])
(;GM[1]SZ[13:9]KM[6]RU[AGA];B[aa];W[mi])
""",
    "games.pgn": """[Event "Cup, 3"]
[Date "2021.05.06"]
[White "Ada"]
[Black "Bo"]
[WhiteElo "2100"]
[Result "1-0"]

1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. O-O 1-0

[Event "?"]
[White "?"]
[Black "?"]
[Result "*"]
[SetUp "1"]
[FEN "8/P6k/8/8/8/8/7K/8 w - - 0 1"]

1. a8=N Kg7 *
""",
    "games.c4": """[First "Ada"]
[Date "2022-01-01"]
[Result "*"]

d d c e 1-0

[Second "Bo"]

a a b b c c d 1-0
""",
}

COUNTS = {"games.sgf": 3, "games.pgn": 2, "games.c4": 2}


def rows(path: Path) -> list[dict[str, object]]:
    return [{**row, "source": ""} for row in GameStore.open(path).table().to_pylist()]


@pytest.mark.parametrize("name", RECORDS)
def test_exported_and_imported_again_the_rows_are_the_same(tmp_path: Path, name: str):
    (tmp_path / name).write_text(RECORDS[name], encoding="utf-8")
    first, second, out = tmp_path / "a.parquet", tmp_path / "b.parquet", tmp_path / f"out-{name}"
    assert import_games([str(tmp_path / name)], first, min_moves=0).games == COUNTS[name]
    found = CliRunner().invoke(app, ["data", "export", str(first), "-o", str(out)])
    assert found.exit_code == 0, found.output
    import_games([str(out)], second, min_moves=0)
    assert rows(second) == rows(first)


def test_one_game_by_its_number(tmp_path: Path):
    (tmp_path / "games.c4").write_text(RECORDS["games.c4"])
    import_games([str(tmp_path / "games.c4")], tmp_path / "a.parquet", min_moves=0)
    store = GameStore.open(tmp_path / "a.parquet")
    (found,) = export(store, [2])
    assert [move for _, move in found.record.turns] == list("aabbccd")
    with pytest.raises(BadRequest, match="no game of number 3, 4"):
        list(export(store, [4, 3, 1]))


def test_what_searches_said_of_self_plays_moves(tmp_path: Path):
    small = recipe()
    games = sorted(itertools.islice(play(started(small, evaluator(small)), 3), 3), key=lambda game: game.number)
    write_shard(Store(str(tmp_path)), games)
    found = CliRunner().invoke(app, ["data", "export", str(tmp_path / "games"), "--json"])
    assert found.exit_code == 0, found.output
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    assert [line["number"] for line in lines] == [game.number for game in games]
    for line, game in zip(lines, games, strict=True):
        assert [move for _, move in line["moves"]] == [ply.move for ply in game.plies]
        for told, ply in zip(line["plies"], game.plies, strict=True):
            assert told["kind"] == "full"
            assert told["q"] == pytest.approx(ply.value, abs=1e-4)
            assert sum(told["policy"].values()) == pytest.approx(1, abs=1e-3)
            assert {"abcdefg"[code] for code in ply.moves.tolist()} >= set(told["policy"])
