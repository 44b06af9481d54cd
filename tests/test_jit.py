"""Kernels come back from the cache: recursion stays within what Numba's cache can keep (see `keima.jit`)."""

from __future__ import annotations

import ast
from pathlib import Path

import keima
from keima.encodings import alphago
from keima.games.chess import board
from keima.games.chess.position import Position

RECURSIVE = {"_perft", "is_true_eye", "_succeeds"}


def kernel_calls() -> dict[str, set[str]]:
    """Every kernel of the package and the names it calls."""
    calls: dict[str, set[str]] = {}
    for path in Path(keima.__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(ast.unparse(d) == "njit" for d in node.decorator_list):
                names = {c.func.id for c in ast.walk(node) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)}
                calls.setdefault(node.name, set()).update(names)
    return calls


def reached(calls: dict[str, set[str]], start: str) -> set[str]:
    """The kernels that a kernel calls, directly or not."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = (calls[waiting.pop()] & calls.keys()) - found
        found |= new
        waiting.extend(new)
    return found


def test_no_kernels_call_each_other_in_a_circle() -> None:
    calls = kernel_calls()
    assert len(calls) > 100
    below = {name: reached(calls, name) for name in calls}
    circles = {(a, b) for a in calls for b in below[a] if a < b and a in below[b]}
    assert circles == set()
    assert {name for name in calls if name in below[name]} == RECURSIVE, "a new one needs a line in the next test"


def test_kernels_that_call_themselves_are_compiled_once() -> None:
    alphago.AlphaGoEncoding().encode([keima.go.Position.start(9)])
    board.perft(Position.start().state, 2)
    for kernel in (alphago.is_true_eye, alphago._succeeds, board._perft):
        assert len(kernel.signatures) == 1, f"{kernel.__name__} has versions {kernel.signatures}"
