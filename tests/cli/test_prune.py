"""`keima compress prune` as a user meets it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from click.testing import Result

import keima

Run = Callable[..., Result]
GAME = "(;GM[1]SZ[9]KM[7.5]RU[Chinese]RE[B+R];B[cc];W[gg];B[gc];W[cg];B[ee];W[ec];B[ce];W[eg];B[ge];W[dd])"


def test_examples(run: Run) -> None:
    assert "keima compress prune" in run("compress", "prune", "--help").stdout.split("Examples:")[1]


def test_by_weights(run: Run, chess_net: Path) -> None:
    result = run("compress", "prune", chess_net, "narrow.pb.gz", "--channels", "4")
    assert result.exit_code == 0, result.stderr
    assert keima.load("narrow.pb.gz").config.channels == 4
    assert "parameters before" in result.stderr
    assert "first move" not in result.stderr


def test_by_games(run: Run, go_net: Path) -> None:
    for number in range(4):
        Path(f"{number}.sgf").write_text(GAME.replace("[ee]", f"[{'defg'[number]}h]"))
    assert run("data", "import", "0.sgf", "1.sgf", "-o", "a.parquet", "--min-moves", "1").exit_code == 0
    assert run("data", "import", "2.sgf", "3.sgf", "-o", "b.parquet", "--min-moves", "1").exit_code == 0
    result = run(
        *("compress", "prune", go_net, "narrow.bin.gz", "--channels", "48", "--positions", "64"),
        *("--data", "a.parquet", "--data", "b.parquet"),
    )
    assert result.exit_code == 0, result.stderr
    assert keima.load("narrow.bin.gz").config.channels == 48
    assert "the same first move in" in result.stderr


def test_what_cannot_be_is_one_line(run: Run, go_net: Path, chess_net: Path) -> None:
    for command, message in (
        ((go_net, "x.bin.gz", "--channels", "97"), "cannot keep 97 channels of 96"),
        ((go_net, "x.bin.gz"), "nothing to prune"),
        ((go_net, "x.pb.gz", "--channels", "48"), "x.pb.gz"),
        ((chess_net, "x.pb.gz", "--channels", "4", "--data", "none.parquet"), "none.parquet"),
    ):
        result = run("compress", "prune", *command)
        assert result.exit_code == 2
        assert message in result.stderr
        assert not Path(str(command[1])).exists()
