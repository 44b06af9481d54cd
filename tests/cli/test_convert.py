"""`keima convert`: other forms and KataGo's checkpoints, and what is said where they cannot be."""

from __future__ import annotations

from pathlib import Path

import onnx

import keima
from tests.cli.conftest import Run

DATA = Path(__file__).parents[1] / "data"


def test_another_form(run: Run) -> None:
    keima.save(keima.create("leela-zero", blocks=1, channels=4, board_size=9), "lz.safetensors")
    result = run("convert", "lz.safetensors", "zero.safetensors", "--to", "alphago-zero")
    assert result.exit_code == 0, result.stderr
    assert "zero.safetensors: alphago-zero network leela-zero" in result.stderr + result.stdout
    assert keima.load("zero.safetensors").system == "alphago-zero"


def test_halves(run: Run) -> None:
    keima.save(keima.create("katago-b6c96", blocks=1, channels=16), "whole.safetensors")
    result = run("convert", "whole.safetensors", "half.safetensors", "--precision", "f16")
    assert result.exit_code == 0, result.stderr
    assert Path("half.safetensors").stat().st_size < 0.7 * Path("whole.safetensors").stat().st_size
    assert keima.load("half.safetensors").system == "katago"
    result = run("convert", "whole.safetensors", "half.bin.gz", "--precision", "f16")
    assert (result.exit_code, Path("half.bin.gz").exists()) == (2, False)
    assert "--precision f16 is for .safetensors and .onnx files; half.bin.gz holds float32" in result.stderr


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


def test_a_file_for_the_networks_own_engine(run: Run, chess_net: Path) -> None:
    keima.save(keima.create("katago-b6c96", blocks=1, channels=4), "go.bin.gz")
    result = run("convert", "go.bin.gz", "engine.onnx", "--engine", "9")
    assert result.exit_code == 0, result.stderr
    assert "for KataGo, boards of up to 9×9" in result.stderr + result.stdout
    props = {each.key: each.value for each in onnx.load("engine.onnx").metadata_props}
    assert (props["katago.build.nnXLen"], props["katago.modelVersion"]) == ("9", "15")
    for wrong in (("go.bin.gz", "engine.bin.gz"), (chess_net, "chess.onnx")):
        result = run("convert", *wrong, "--engine", "9")
        assert (result.exit_code, Path(wrong[1]).exists()) == (2, False)
        assert "--engine" in result.stderr
