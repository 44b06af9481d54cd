"""`python -m tests.fuzz KIND COUNT [SEED]`: so many inputs of a kind ("all": of each); exit status 1 on failure."""

from __future__ import annotations

import sys
import time
import traceback
from importlib import import_module
from pathlib import Path

KINDS = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
SHOWN = 20
"""Failures printed with their traceback; the others are only counted."""
_FRAMES = 12
"""Of a traceback, the innermost."""


def fuzz(kind: str, count: int, first: int = 0) -> list[int]:
    """The seeds that failed, of `count` from `first` on."""
    one = import_module(f"tests.fuzz.{kind}").one
    failed = []
    began = time.monotonic()
    for seed in range(first, first + count):
        try:
            one(seed)
        except Exception:
            failed.append(seed)
            if len(failed) <= SHOWN:
                print(f"{kind} {seed}:\n{traceback.format_exc(limit=-_FRAMES)}", flush=True)
    print(
        f"{kind}: {count} inputs in {time.monotonic() - began:.0f} s, {len(failed)} failed {failed[:SHOWN]}", flush=True
    )
    return failed


def main(arguments: list[str]) -> int:
    """The exit status."""
    if len(arguments) not in (2, 3) or not arguments[1].isdigit() or arguments[0] not in (*KINDS, "all"):
        print(f"usage: python -m tests.fuzz KIND COUNT [SEED]; kinds: {', '.join(KINDS)}, all", file=sys.stderr)
        return 2
    kinds = KINDS if arguments[0] == "all" else [arguments[0]]
    failed = [fuzz(kind, int(arguments[1]), int(arguments[2]) if len(arguments) == 3 else 0) for kind in kinds]
    return 1 if any(failed) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
