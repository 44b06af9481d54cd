"""Nothing leaves the machine: converting, evaluating, reviewing and playing open no socket and look up no name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

WATCH = """
import os, sys

def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg"):
        with open(os.environ["SEEN"], "a") as file:
            print(event, arguments, file=file)
        raise OSError("no network here")

sys.addaudithook(watch)
"""
"""`sitecustomize.py` of every process, those it starts as well."""

GO_LINE = '{"game": "go", "xsize": 5, "ysize": 5, "moves": [["B", "C3"]]}\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files, and a network that no cache knows."""
    import torch

    import keima

    path = tmp_path_factory.mktemp("offline")
    (path / "home").mkdir()
    (path / "sitecustomize.py").write_text(WATCH)
    (path / "positions.jsonl").write_text(GO_LINE)
    (path / "game.sgf").write_text("(;GM[1]SZ[5]KM[7.5];B[cc];W[bb])")
    torch.manual_seed(3)
    keima.save(keima.create("katago-b6c96", blocks=1).eval(), path / "net.bin.gz")
    return path


def seen_by(folder: Path, *command: str, stdin: str = "") -> str:
    """Run Python; what it tried to reach, one line each."""
    seen = folder / "seen.txt"
    seen.unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if name != "CI"}  # OpenVINO keeps silent in CI
    environment |= {"PYTHONPATH": os.pathsep.join([str(folder), str(Path(__file__).parents[2])])}
    environment |= {"SEEN": str(seen), "HOME": str(folder / "home"), "KEIMA_CACHE": str(folder / "cache")}
    finished = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        input=stdin,
        text=True,
        capture_output=True,
        timeout=300,
    )
    assert finished.returncode == 0, finished.stderr
    return seen.read_text() if seen.exists() else ""


def test_the_watch_sees_what_it_should(folder: Path) -> None:
    attempt = "import socket\ntry: socket.getaddrinfo('example.invalid', 80)\nexcept OSError: pass"
    assert "socket.getaddrinfo ('example.invalid'" in seen_by(folder, "-c", attempt)


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (("eval", "net.bin.gz", "positions.jsonl", "--backend", "openvino"), ""),
        (("review", "game.sgf", "--net", "net.bin.gz", "--visits", "2", "--json", "out.json"), ""),
        (("gtp", "--net", "net.bin.gz", "--visits", "2"), "boardsize 5\ngenmove b\nquit\n"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_no_socket_is_opened_and_no_name_looked_up(folder: Path, arguments: tuple[str, ...], stdin: str) -> None:
    assert seen_by(folder, "-m", "keima", *arguments, stdin=stdin) == ""


@pytest.mark.slow
def test_onnx_runtime_gives_the_machine_no_number(folder: Path) -> None:
    """Its reports leave by no socket of Python's; before the first, it keeps a device's number in the user's home."""
    seen_by(folder, "-m", "keima", "eval", "net.bin.gz", "positions.jsonl", "--backend", "onnx")
    assert list((folder / "home").rglob("*deviceid*")) == []


def test_nothing_is_sent_by_us_where_a_program_had_imported_openvino_itself(folder: Path) -> None:
    program = """
import os, time
import openvino  # tells its makers that it was
import openvino_telemetry
until = time.monotonic() + 5
while time.monotonic() < until and not os.path.exists(os.environ["SEEN"]):
    time.sleep(0.05)
time.sleep(0.2)
if os.path.exists(os.environ["SEEN"]):
    os.remove(os.environ["SEEN"])
import keima
keima.Evaluator(keima.load("net.bin.gz"), backend="openvino")([keima.go.Position.start(6)])
import openvino_telemetry  # whoever wants it has it
"""
    assert seen_by(folder, "-c", program) == ""
