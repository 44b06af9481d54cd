"""Kernels come back from the cache: recursion stays within what Numba's cache can keep (see `keima.jit`)."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np

import keima
from keima.encodings import alphago
from keima.games.chess import board
from keima.games.chess.position import Position
from keima.search import chess_leaves

RECURSIVE = {"_perft", "is_true_eye", "_succeeds", "forced_mate"}


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
    back_rank = Position.from_fen("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1")
    boards, moves = np.zeros(6, board.BOARD), np.zeros((6, board.MAX_MOVES), np.uint16)
    chess_leaves.copy_board(boards[0], back_rank.state[0])
    assert chess_leaves.forced_mate(boards, moves, 0, 2, np.array([10_000])) >= 0
    for kernel in (alphago.is_true_eye, alphago._succeeds, board._perft, chess_leaves.forced_mate):
        # none where the kernel that calls it came from the cache whole
        assert len(kernel.signatures) <= 1, f"{kernel.__name__} has versions {kernel.signatures}"


def test_no_kernel_passes_a_literal_to_one_that_calls_itself() -> None:
    """A literal number is a type of its own to Numba: it would compile the called kernel a second time."""
    for path in Path(keima.__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef) or not any(ast.unparse(d) == "njit" for d in node.decorator_list):
                continue
            for call in (c for c in ast.walk(node) if isinstance(c, ast.Call) and ast.unparse(c.func) in RECURSIVE):
                literals = [ast.unparse(a) for a in call.args if isinstance(a, ast.Constant)]
                assert not literals, f"{path.name}:{call.lineno} passes {literals}"
