"""POSITIONS lines: what they mean, and that a bad one names its place and harms no other."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import BadPosition, IllegalMove, KeimaError
from keima.games.positions import BadLine, PositionLine, parse_json, parse_position, read_positions


def write(path: Path, *lines: Any) -> str:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return str(path)


class TestGo:
    def test_design_example(self) -> None:
        line = parse_position(
            {"id": 7, "game": "go", "xsize": 19, "ysize": 19, "rules": "chinese", "komi": 7.5, "handicap": ["D4"],
             "moves": [["W", "Q16"], ["B", "pass"]], "to_play": "W", "symmetry": 3}, 7,
        )  # fmt: skip
        position = line.position
        assert (line.id, line.game, line.symmetry) == (7, "go", 3)
        assert position.stones[15, 3] == 1
        assert position.stones[3, 15] == 2
        assert position.to_play == "W"

    def test_an_empty_object_is_the_empty_board(self) -> None:
        position = parse_position({}).position
        assert (position.xsize, position.ysize, position.komi, position.rules.name) == (19, 19, 7.5, "chinese")

    def test_komi_follows_the_rules_where_it_is_absent(self) -> None:
        assert parse_position({"rules": "japanese"}).position.komi == 6.5

    def test_rules_as_an_object_and_rectangle(self) -> None:
        position = parse_position(
            {"xsize": 7, "ysize": 4, "rules": {"ko": "SITUATIONAL", "scoring": "TERRITORY"}}
        ).position
        assert (position.xsize, position.ysize) == (7, 4)
        assert position.rules.ko == "SITUATIONAL"

    def test_xsize_alone_is_a_square(self) -> None:
        assert parse_position({"xsize": 9}).position.ysize == 9

    def test_initial_stones_and_side_to_move(self) -> None:
        position = parse_position({"xsize": 9, "initialStones": [["W", "A1"], ["B", "B2"]], "to_play": "W"}).position
        assert position.stones[8, 0] == 2
        assert position.to_play == "W"

    def test_options_and_notes_go_with_the_line(self) -> None:
        line = parse_position({"profile": "rank_5k", "policy_optimism": 0.2, "symmetry": "average", "remark": "mine"})
        assert line.others == {"profile": "rank_5k", "policy_optimism": 0.2, "remark": "mine"}
        assert line.symmetry == "average"

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"xsize": "19"}, 'field "xsize": expected a whole number, found "19"'),
            ({"xsize": True}, 'field "xsize"'),
            ({"xsize": 20}, "20"),
            ({"ysize": 1}, "1"),
            ({"komi": "seven"}, 'field "komi": expected a number, found "seven"'),
            ({"komi": 7.3}, "7.3"),
            ({"rules": 3}, 'field "rules": expected a name or an object, found a number'),
            ({"rules": "mine"}, "mine"),
            ({"rules": {"ko": "NEVER"}}, "NEVER"),
            ({"handicap": "D4"}, 'field "handicap": expected a list, found a string'),
            ({"handicap": [4]}, 'field "handicap": item 1: expected a string, found 4'),
            ({"handicap": ["Z9"]}, "Z9"),
            ({"moves": {}}, 'field "moves": expected a list, found an object'),
            ({"moves": ["Q16"]}, 'field "moves": item 1: expected a pair like'),
            ({"moves": [["B", "Q16"], ["X", "D4"]]}, 'field "moves": item 2: expected "B" or "W", found "X"'),
            ({"moves": [["B", "Q16", 3]]}, "item 1"),
            ({"to_play": "red"}, 'field "to_play": expected "B" or "W", found "red"'),
            ({"symmetry": 8}, 'field "symmetry": expected 0 to 7 or "average", found 8'),
            ({"symmetry": True}, 'field "symmetry"'),
            ({"game": "checkers"}, 'field "game": expected "go", "chess" or "connect_four", found "checkers"'),
            ({"game": ["go"]}, 'field "game"'),
            ({"encore": "yes"}, 'field "encore": expected true or false'),
        ],
    )
    def test_a_bad_field_is_named(self, fields: dict[str, Any], message: str) -> None:
        with pytest.raises(BadPosition, match="(?s)" + message.replace("[", r"\[")):
            parse_position(fields)

    def test_an_illegal_move_is_numbered(self) -> None:
        with pytest.raises(IllegalMove, match=r"move 2 \(W Q16\): occupied"):
            parse_position({"moves": [["B", "Q16"], ["W", "Q16"]]})


class TestChess:
    def test_moves_from_the_usual_start(self) -> None:
        line = parse_position({"id": 8, "game": "chess", "fen": None, "moves": ["e2e4", "c7c5"]}, 8)
        assert line.position.fen().startswith("rnbqkbnr/pp1ppppp/8/2p5/4P3")

    def test_a_fen_makes_it_chess(self) -> None:
        line = parse_position({"fen": "8/8/8/8/8/4k3/4p3/4K3 b - - 0 1"})
        assert (line.game, line.position.to_play) == ("chess", "b")

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"fen": "8/8 w"}, 'field "fen"'),
            ({"fen": 5}, 'field "fen": expected a FEN or null, found a number'),
            ({"game": "chess", "moves": ["e2e5"]}, "move 1.*e2e5|e2e5"),
            ({"game": "chess", "moves": [["B", "D4"]]}, 'field "moves": item 1: expected a string'),
            ({"game": "chess", "chess960": 1}, 'field "chess960"'),
        ],
    )
    def test_a_bad_field_is_named(self, fields: dict[str, Any], message: str) -> None:
        with pytest.raises(KeimaError, match=message):
            parse_position(fields)


class TestFiles:
    def test_bad_lines_stand_in_their_place(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p.jsonl", {"id": "a"}, "", "{not json", {"id": "c", "komi": []}, "[1]", {"xsize": 9})
        lines = list(read_positions(path))
        assert [type(line).__name__ for line in lines] == [
            "PositionLine",
            "BadLine",
            "BadLine",
            "BadLine",
            "PositionLine",
        ]
        assert [line.id for line in lines] == ["a", 3, "c", 5, 6]
        assert "p.jsonl: line 3: column 2: not JSON" in str(lines[1].error)  # type: ignore[union-attr]
        assert 'p.jsonl: line 4: field "komi"' in str(lines[2].error)  # type: ignore[union-attr]
        assert "expected a JSON object, found a list" in str(lines[3].error)  # type: ignore[union-attr]

    def test_gzip_and_standard_input(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        data = b'{"id": 1}\n{"id": 2}\n'
        (tmp_path / "p.jsonl.gz").write_bytes(gzip.compress(data))
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        for path in (str(tmp_path / "p.jsonl.gz"), "-"):
            assert [line.id for line in read_positions(path)] == [1, 2]

    def test_a_file_that_cannot_be_read_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "cut.gz").write_bytes(gzip.compress(b'{"id": 1}\n' * 1000)[:-12])
        for name in ("absent.jsonl", "cut.gz"):
            with pytest.raises(BadPosition, match=name):
                list(read_positions(str(tmp_path / name)))

    def test_an_endless_line_is_refused_and_the_next_one_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("keima.games.positions.MAX_LINE", 100)
        path = write(tmp_path / "p.jsonl", '{"id": 1, "x": "' + "y" * 500 + '"}', {"id": 2})
        bad, good = read_positions(path)
        assert isinstance(bad, BadLine)
        assert "longer than" in str(bad.error)
        assert good.id == 2


class TestFuzz:
    @given(st.binary(max_size=80))
    @settings(max_examples=200, deadline=None)
    def test_any_bytes_are_an_object_or_a_named_error(self, data: bytes) -> None:
        with contextlib.suppress(BadPosition):
            assert isinstance(parse_json(data), dict)

    def test_numbers_json_does_not_have(self) -> None:
        with pytest.raises(BadPosition, match="NaN is not a JSON number"):
            parse_json('{"komi": NaN}')
        with pytest.raises(BadPosition, match='"1e999" is too large a number'):
            parse_json('{"id": 1e999}')

    def test_nesting_without_end(self) -> None:
        with pytest.raises(BadPosition):
            parse_json("[" * 100_000)

    words = st.sampled_from(["B", "W", "D4", "go", "chess", "e2e4", ""])
    values = st.recursive(
        st.none() | st.booleans() | st.integers(-30, 30) | st.floats(allow_nan=False) | words,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["ko", "tax"]), inner, max_size=2),
        max_leaves=6,
    )
    names = st.sampled_from(
        ["game", "xsize", "ysize", "rules", "komi", "handicap", "moves", "to_play", "fen", "symmetry", "initialStones"]
    )

    @given(st.dictionaries(names, values, max_size=5))
    @settings(max_examples=300, deadline=None)
    def test_any_fields_are_a_position_or_a_named_error(self, fields: dict[str, Any]) -> None:
        with contextlib.suppress(KeimaError):
            assert isinstance(parse_position(fields), PositionLine)
