"""`keima compress quantize` as a user meets it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import Result

import keima
from keima.cli.training import compress

Run = Callable[..., Result]
GAME = "(;GM[1]SZ[9]KM[7.5]RU[Chinese]RE[B+R];B[cc];W[gg];B[gc];W[cg];B[ee];W[ec];B[ce];W[eg];B[ge];W[dd])"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer positions to choose and compare on, speeds measured for less long."""
    for name, number in (("_CHOSEN", 64), ("_KEPT", 128), ("_TIMED", 0.05)):
        monkeypatch.setattr(compress, name, number)


def test_examples(run: Run) -> None:
    assert "keima compress quantize" in run("compress", "quantize", "--help").stdout.split("Examples:")[1]


def test_on_its_own_games_with_training_and_matches(run: Run, connect_four_net: Path) -> None:
    result = run(
        *("compress", "quantize", connect_four_net, "whole.safetensors", "--positions", "64", "--train", "0.03"),
        *("--games", "2", "--visits", "4", "--seconds", "0.01"),
    )
    assert result.exit_code == 0, result.stderr
    assert "in int8" in result.stdout
    assert "the same first move in" in result.stdout
    assert "evaluations/s" in result.stdout
    assert result.stdout.count("Elo") == 2
    first = keima.load("whole.safetensors").quantization
    assert first is not None
    shown = run("show", "whole.safetensors")
    assert "int8" in shown.stdout
    answer = run("bench", "--net", "whole.safetensors", "--batch", "1", "--seconds", "0.01", "--rounds", "1")
    assert "int8" in answer.stdout
    more = run("compress", "quantize", "whole.safetensors", "more.safetensors", "--positions", "64", "--train", "0.03")
    assert "they are trained on" in more.stderr
    assert "convolution 1 of" not in more.stderr
    second = keima.load("more.safetensors").quantization
    assert second is not None
    assert (second.layers.keys(), second.weights) == (first.layers.keys(), first.weights)
    kept, learned = ([torch.equal(each[part], first.layers[name][part]) for name, each in second.layers.items()]
                     for part in ("scale", "bias"))  # fmt: skip
    assert all(kept)
    assert not any(learned)


def test_on_games_beside_a_file_of_another_program(run: Run, go_net: Path) -> None:
    Path("a.sgf").write_text(GAME)
    assert run("data", "import", "a.sgf", "-o", "a.parquet", "--min-moves", "1").exit_code == 0
    command = ("compress", "quantize", go_net, "whole.bin.gz", "--positions", "64", "--limit", "1")
    result = run(*command, "--data", "a.parquet", "--test", "a.parquet")
    assert result.exit_code == 0, result.stderr
    assert Path("whole.bin.gz.int8").exists()
    Path("one.jsonl").write_text('{"size": 9, "komi": 7.5, "moves": [["B", "E5"]]}\n')
    answer = run("eval", "whole.bin.gz", "one.jsonl", "--precision", "int8")
    assert answer.exit_code == 0, answer.stderr


def test_what_cannot_be_is_one_line(run: Run, go_net: Path) -> None:
    result = run("compress", "quantize", go_net, "x.safetensors", "--data", "none.parquet")
    assert result.exit_code == 2
    assert "none.parquet" in result.stderr
    result = run("eval", go_net, "x.jsonl", "--precision", "int8")
    assert result.exit_code == 2
    assert "keima compress quantize makes them" in result.stderr
