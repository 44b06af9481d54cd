"""The runs for an accelerator: done in their order, stopped and gone on with, and each of them in a reduced size."""

from __future__ import annotations

import gzip
import json
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from keima.cli.main import app
from keima.training.run.recipe import read_recipe

GPU = Path(__file__).resolve().parents[2] / "recipes" / "gpu"
LETTERS = "abcdefghijklmnopqrs"


@pytest.fixture
def pieces() -> dict[str, Any]:
    """recipes/gpu/next.py as a module's names."""
    return runpy.run_path(str(GPU / "next.py"))


@pytest.fixture
def start(pieces: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Start next.py on three pieces of its own: one that ends, one that needs to be told twice, one that fails."""
    scripts = {
        "ends": "open('ended.txt', 'a').write('x')",
        "long": "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path('half.txt').write_text('kept'), sys.exit(130)))\n"
        "print('begun', flush=True)\n"
        "time.sleep(0 if pathlib.Path('half.txt').exists() else 60)",
        "fails": "print('what went wrong'); raise SystemExit(3)",
    }
    table = ""
    for name, text in scripts.items():
        (tmp_path / f"{name}.py").write_text(text)
        table += f'[[piece]]\nname = "{name}"\ncommand = ["{{root}}/{name}.py"]\n'
    (tmp_path / "pieces.toml").write_text(table)
    names = pieces["main"].__globals__
    for name, value in (("HERE", tmp_path), ("ROOT", tmp_path), ("LEAST", 0.5)):
        monkeypatch.setitem(names, name, value)

    def call(*arguments: str) -> int:
        status: int = pieces["main"](["--runs", str(tmp_path / "runs"), *arguments])
        return status

    return call


def test_pieces_go_on_where_they_stopped(
    start: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start("--minutes", "0.04") == 0
    assert "long: stopped" in capsys.readouterr().out
    assert list(json.loads((tmp_path / "runs/done.json").read_text())) == ["ends"]
    assert (tmp_path / "half.txt").read_text() == "kept"
    assert start("--minutes", "1") == 3
    said = capsys.readouterr()
    assert "long: done" in said.out
    assert "fails: failed with status 3" in said.err
    assert "what went wrong" in (tmp_path / "runs/fails.log").read_text()
    assert (tmp_path / "ended.txt").read_text() == "x"
    assert start("--list") == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[2].split() == ["fails", "to", "do"]


def test_recipes_are_recipes() -> None:
    for recipe in sorted(GPU.glob("*.toml")):
        if recipe.stem != "pieces":
            assert read_recipe(str(recipe), ()).run.keep == 1  # what travels has to be small


def records(folder: Path) -> None:
    """Games of random points on 19×19, under the names of the months that the pieces ask for."""
    folder.mkdir()
    for month in ("2009-01", "2010-06"):
        rng = np.random.default_rng(int(month[-2:]))
        lines = []
        for game in range(12):
            points = rng.permutation(361)[:60].tolist()
            moves = (f";{'BW'[k % 2]}[{LETTERS[p // 19]}{LETTERS[p % 19]}]" for k, p in enumerate(points))
            lines.append(f"(;GM[1]FF[4]SZ[19]KM[6.5]RE[{'BW'[game % 2]}+R]{''.join(moves)})")
        with gzip.open(folder / f"tygem-{month}.sgf.gz", "wt") as file:
            file.write("\n".join(lines))


@pytest.mark.slow
def test_every_piece_works_in_a_reduced_size(
    pieces: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands of pieces.toml as they stand, their small arguments added, one after another in one process."""
    records(tmp_path / "records")
    import keima

    (tmp_path / "nets").mkdir()
    keima.save(keima.create("katago-b6c96", blocks=1).eval(), tmp_path / "nets/g170-b6c96-s175395328-d26788732.bin.gz")
    monkeypatch.chdir(GPU.parents[1])

    def do(command: Sequence[str], log: Path, end: float) -> int:
        if command[1].endswith(".py"):
            monkeypatch.setattr(sys, "argv", list(command[1:]))
            monkeypatch.syspath_prepend(Path(command[1]).resolve().parent)
            runpy.run_path(command[1], run_name="__main__")
            return 0
        result = CliRunner().invoke(app, list(command[3:]))
        assert result.exit_code == 0, (command, result.output, result.exception)
        log.write_text(result.output)
        return 0

    monkeypatch.setitem(pieces["main"].__globals__, "do", do)
    folders = [f"--{name}={tmp_path / name}" for name in ("runs", "records", "nets")]
    assert pieces["main"]([*folders, "--small", "--minutes", "60"]) == 0
    assert "all done" in capsys.readouterr().out
    runs = tmp_path / "runs"
    logs = [(runs / f"{name}.log").read_text() for name in ("all-kept", "checkpointed")]
    kept, forgotten = (float(log.split("kept for backward")[1].split()[0]) for log in logs)
    assert 0 < forgotten < kept
    assert keima.load(runs / "value/network.safetensors").output_names == ("value",)
    assert keima.load(runs / "default-go/network.bin.gz").system == keima.load_default("go").system
    assert list((runs / "go9/networks").iterdir())
