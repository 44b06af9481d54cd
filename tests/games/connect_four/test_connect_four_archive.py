"""Games of connect four in a store: rows of records, and the positions replayed from arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from keima.games.connect_four.archive import ARCHIVE, SCHEMA
from keima.games.connect_four.kernels import RECORD
from keima.games.connect_four.position import Position
from keima.games.streams import GameFile

TEXT = """[First "Ada"]
[Second "Bob"]

abababa 1-0

[First "C"]

dddx 1-0

[First "D"]

aaaaaaa 1-0

[First "E"]

dc 1/2-1/2
"""


def test_records_to_positions(tmp_path: Path) -> None:
    path = tmp_path / "games.c4"
    path.write_text(TEXT)
    (chunk,) = ARCHIVE.chunks([GameFile(str(path), path)], lambda done: None)
    read = ARCHIVE.read(chunk, None, 0)
    assert (read.games, read.indices, [broken.index for broken in read.broken]) == (4, [1, 4], [2, 3])
    assert [broken.line for broken in read.broken] == [6, 10]
    assert "neither" in read.broken[0].reason
    assert "full" in read.broken[1].reason
    assert read.batch.column("winner").to_pylist() == [1, 0]
    assert read.batch.column("first").to_pylist() == ["Ada", "E"]

    columns = ARCHIVE.columns()
    moves = np.frombuffer(columns.add(read.batch), np.uint16)
    arrays, texts = columns.finish()
    games = ARCHIVE.games.load(moves, arrays, texts)
    records = np.zeros(3, RECORD)
    games.replay(np.array([0, 1, 0]), np.array([7, 1, 2]), records)
    expected = [Position.start().play(*moves) for moves in ("abababa", "d", "ab")]
    assert [record.tobytes() for record in records] == [position.record.tobytes() for position in expected]
    assert games.next_moves(np.array([0, 1]), np.array([1, 1])).tolist() == [1, 2]
    assert games.first_to_move(np.array([0, 0]), np.array([2, 3])).tolist() == [True, False]


def test_a_file_without_games(tmp_path: Path) -> None:
    path = tmp_path / "empty.c4"
    path.write_text("\n\n")
    chunks = list(ARCHIVE.chunks([GameFile(str(path), path)], lambda done: None))
    assert "holds no game" in chunks[-1].problem


def test_the_schema_names_the_game() -> None:
    assert SCHEMA.metadata[b"keima.game"] == b"connect_four"
