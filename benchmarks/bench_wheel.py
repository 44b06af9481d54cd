"""From the end of an installation to the first reviewed game: a wheel, in an empty environment, on empty caches.

    python benchmarks/bench_wheel.py
    python benchmarks/bench_wheel.py --python python3.10 --python python3.13 --torch "torch==2.13.0"
    python benchmarks/bench_wheel.py --wheel dist/keima-0.1.0-cp311-cp311-linux_x86_64.whl

For each Python: builds the wheel from this clone, installs it into a fresh environment with the tested versions, and in
a folder elsewhere, with a home of its own, runs `keima recipes` and `keima review`. Prints the size of the environment
and the seconds of the review; ends with status 1 where one takes more than 60.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 60.0
GAME = "examples/go.sgf"


def run(*command: object, **options: object) -> None:
    subprocess.run(list(map(str, command)), check=True, stdout=sys.stderr, **options)  # type: ignore[call-overload]


def measure(python: str, torch: str, wheel: Path | None, folder: Path) -> tuple[float, float]:
    """Seconds of the first review, and the environment's gigabytes."""
    run(python, "-m", "venv", folder / "environment")
    program = folder / "environment" / "bin" / "python"
    pip = [program, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    if wheel is None:
        run(*pip, "wheel", "--no-deps", "-w", folder / "dist", ROOT)
        wheel = next((folder / "dist").glob("keima-*.whl"))
    run(*pip, "install", "--no-compile", "-c", ROOT / "constraints.txt", torch)
    run(*pip, "install", "-c", ROOT / "constraints.txt", wheel)
    home = folder / "home"
    home.mkdir()
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KEIMA", "NUMBA", "XDG"))
    }
    surroundings = {**kept, "HOME": str(home)}
    started = time.perf_counter()
    run(program, "-m", "keima", "recipes", GAME, "-o", ".", cwd=home, env=surroundings)
    run(program, "-m", "keima", "review", GAME, "-o", "out", cwd=home, env=surroundings)
    seconds = time.perf_counter() - started
    if not (home / "out" / "go.html").stat().st_size:
        raise SystemExit("the report is empty")
    files = [path for path in (folder / "environment").rglob("*") if path.is_file() and not path.is_symlink()]
    return seconds, sum(path.stat().st_size for path in files) / 1e9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", help="an interpreter; repeatable; this one if not given")
    parser.add_argument(
        "--torch", default="", help="what pip is asked for; the tested version's CPU build if not given"
    )
    parser.add_argument("--wheel", type=Path, help="a wheel that is there already")
    arguments = parser.parse_args()
    pinned = next(line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch=="))
    slow = 0
    for python in arguments.python or [sys.executable]:
        with tempfile.TemporaryDirectory() as folder:
            seconds, size = measure(python, arguments.torch or f"{pinned}+cpu", arguments.wheel, Path(folder))
        print(f"{python}: {size:.1f} GB installed, the first game reviewed after {seconds:.1f} s", flush=True)
        slow += seconds > LIMIT
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
