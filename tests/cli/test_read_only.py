"""The commands from an installation that cannot be written, in a home that cannot either: as in a container's image.

Both lie on read-only mounts, which bind root too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import keima
from keima.places import temporary
from tests.cli.conftest import RECIPE

pytestmark = pytest.mark.slow

MOUNT = (
    'for place in "$1" "$2"; do mount --bind "$place" "$place" && mount -o remount,bind,ro "$place" || exit 99; done; '
)
UNSHARE = ["unshare", "--mount", *(["--map-root-user"] if getattr(os, "geteuid", int)() else [])]
SAID = "what is compiled cannot be kept in"
OURS = ("HOME", "TMPDIR", "KEIMA_CACHE", "NUMBA_CACHE_DIR", "MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")

SELFPLAY = (
    "selfplay recipe.toml -o run --set games.side_by_side=8 --set games.block=8"
    " --set window.steps=2 --set window.first=100 --set judge.games=2 --set run.steps=2"
)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a wheel has it, an empty home, and two folders that can be written."""
    place = tmp_path_factory.mktemp("read_only")
    shutil.copytree(
        Path(keima.__file__).parent, place / "installed" / "keima", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("home", "tmp", "here"):
        (place / name).mkdir()
    (place / "here" / "game.sgf").write_text("(;GM[1]SZ[5]KM[7.5];B[cc];W[bb])")
    (place / "here" / "line.jsonl").write_text('{"game": "go", "xsize": 5, "ysize": 5, "moves": [["B", "C3"]]}\n')
    (place / "here" / "recipe.toml").write_text(RECIPE)
    if sys.platform != "linux" or in_it(place, "true").returncode:
        pytest.skip("read-only mounts are not to be had here")
    assert in_it(place, "touch", place / "installed" / "new").returncode
    assert in_it(place, "touch", place / "home" / "new").returncode
    return place


def in_it(place: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    environment |= {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp"), "PYTHONPATH": str(place / "installed")}
    return subprocess.run(
        [*UNSHARE, "sh", "-c", MOUNT + 'shift 2; exec "$@"', "sh", place / "installed", place / "home", *command],
        cwd=place / "here",
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("eval go line.jsonl", '"policy"'),
        ("show go", "KataGo"),
        ("show go --position game.sgf -o policy.png", "policy.png"),
        ("review game.sgf --visits 2", "1 of 1 games reviewed"),
        ("match policy:connect_four policy:connect_four --games 2", "games 2: A wins"),
        ("bench --net connect_four --batch 1 --rounds 1 --seconds 0.01", "positions/s"),
        ("convert go go.onnx", "of PyTorch's float32"),
        (SELFPLAY, "run/networks/000001.safetensors"),
    ],
)
def test_a_command_does_its_work_and_says_once_where_it_keeps_things(
    installation: Path, command: str, says: str
) -> None:
    shutil.rmtree(installation / "tmp" / temporary().name, ignore_errors=True)
    done = in_it(installation, sys.executable, "-m", "keima", *command.split())
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert says in told
    assert "Traceback" not in told
    assert "Matplotlib" not in told
    assert told.count(SAID) == (command.split()[0] not in ("convert", "selfplay") and command != "show go"), told
    for log in (installation / "here").glob("run/logs/*.log"):  # each of its processes says so in its own
        words = log.read_text(encoding="utf-8")
        assert (words.count(SAID), words.count("Traceback")) == (1, 0), words
