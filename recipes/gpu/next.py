"""Do the next of the runs that want an accelerator, for some minutes, and keep what was done.

    python recipes/gpu/next.py                     the next pieces of pieces.toml, for nine minutes
    python recipes/gpu/next.py --list              which are done
    python recipes/gpu/next.py --small             each small enough for a CPU, which shows that it works

A piece that the time does not suffice for is told to stop, keeps what it has, and goes on when this is started
again, also on another machine with the same --runs folder. RUNS/done.json says what is done, RUNS/NAME.log what a piece
printed.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GRACE = 60.0
"""Seconds a piece has to finish its step after it was told to stop; what is under way after them is lost."""
LEAST = 30.0
"""Seconds worth beginning another piece for."""
STOPPED = "stopped: the time is over; start this again to go on"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 where nothing went wrong, finished or not; else the failed piece's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", default="runs/gpu", help="where results are kept (runs/gpu)")
    parser.add_argument("--records", default=str(ROOT.parent / "shared/data/go"), help="where the games' records lie")
    parser.add_argument("--nets", default=str(ROOT.parent / "shared/nets"), help="where published networks lie")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--small", action="store_true", help="reduced sizes")
    parser.add_argument("--list", action="store_true", help="say what is done, and do nothing")
    given = parser.parse_args(arguments)
    runs = Path(given.runs).resolve()
    folders = {"runs": str(runs), "records": given.records, "nets": given.nets, "root": str(ROOT)}
    pieces = tomllib.loads((HERE / "pieces.toml").read_text(encoding="utf-8"))["piece"]
    done = json.loads((runs / "done.json").read_text()) if (runs / "done.json").exists() else {}
    if given.list:
        for piece in pieces:
            print(f"{piece['name']:20}{done.get(piece['name'], 'to do')}")
        return 0
    runs.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * given.minutes
    for piece in pieces:
        name = piece["name"]
        if name in done:
            continue
        if end - time.monotonic() < LEAST:
            break
        began = time.monotonic()
        command = command_of(piece, folders, given.small)
        for folder in {Path(word).parent for word in command if word.startswith(str(runs))}:
            folder.mkdir(parents=True, exist_ok=True)
        status = do(command, runs / f"{name}.log", end)
        if status is None:
            print(f"{name}: {STOPPED}")
            return 0
        if status:
            print(f"{name}: failed with status {status}; see {runs / f'{name}.log'}", file=sys.stderr)
            return status
        done[name] = f"{time.monotonic() - began:.0f} s"
        write_whole(runs / "done.json", json.dumps(done, indent=1))
        print(f"{name}: done in {done[name]}")
    left = [piece["name"] for piece in pieces if piece["name"] not in done]
    print(f"to do: {', '.join(left)}" if left else "all done")
    return 0


def command_of(piece: Mapping[str, object], folders: Mapping[str, str], small: bool) -> list[str]:
    """The command line of a piece: a Python file of the repository, else keima's; patterns of file names filled in."""
    more = piece.get("small" if small else "large")
    words = [str(word).format(**folders) for word in [*_list(piece["command"]), *_list(more)]]
    found = [file for word in words for file in (sorted(glob.glob(word)) if "*" in word else [word])]
    return [sys.executable, *([] if found[0].endswith(".py") else ["-m", "keima"]), *found]


def _list(words: object) -> list[object]:
    return list(words) if isinstance(words, list) else []


def do(command: Sequence[str], log: Path, end: float) -> int | None:
    """Run a command until it ends or the time is over, its output to the log as well: its status, None if stopped."""
    with log.open("a", encoding="utf-8") as kept:
        kept.write(f"$ {' '.join(command)}\n")
        kept.flush()
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(command, cwd=ROOT, stdout=kept, stderr=subprocess.STDOUT, env=environment)
        try:
            return process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        kept.write(STOPPED + "\n")
    return None


def write_whole(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    beside = path.with_suffix(".part")
    beside.write_text(text)
    beside.replace(path)


if __name__ == "__main__":
    sys.exit(main())
