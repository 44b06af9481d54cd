"""`keima convert`: other forms and KataGo's checkpoints, and what is said where they cannot be."""

from __future__ import annotations

from pathlib import Path

import keima
from tests.cli.conftest import Run

DATA = Path(__file__).parents[1] / "data"


def test_another_form(run: Run) -> None:
    keima.save(keima.create("leela-zero", blocks=1, channels=4, board_size=9), "lz.safetensors")
    result = run("convert", "lz.safetensors", "zero.safetensors", "--to", "alphago-zero")
    assert result.exit_code == 0, result.stderr
    assert "zero.safetensors: alphago-zero network leela-zero" in result.stderr + result.stdout
    assert keima.load("zero.safetensors").system == "alphago-zero"


def test_a_form_that_is_not_or_cannot_be(run: Run, chess_net: Path) -> None:
    result = run("convert", chess_net, "x.pb.gz", "--to", "wdl")
    assert (result.exit_code, Path("x.pb.gz").exists()) == (2, False)
    assert "no other form 'wdl'; it has NETWORK_CLASSICAL_WITH_HEADFORMAT, " in result.stderr
    result = run("convert", chess_net, "x.pb.gz", "--to", "VALUE_CLASSICAL")
    assert (result.exit_code, Path("x.pb.gz").exists()) == (2, False)
    assert f"{chess_net}: weights.ip2_val_w: " in result.stderr


def test_a_checkpoint_becomes_a_network_that_katago_loads(run: Run) -> None:
    result = run("convert", DATA / "katago-random-nbt-human.ckpt", "human.bin.gz")
    assert result.exit_code == 0, result.stderr
    assert keima.load("human.bin.gz").input_names == ("planes", "globals", "metadata")
