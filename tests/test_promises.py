"""docs/promises.md: every figure has a command, and every command is one."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from keima.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
MISSING = "not measured: "
Row = tuple[int, str, str, str, str]  # number, promise, ours, command, difference


def rows() -> list[Row]:
    """The table's rows, all documents' together."""
    found = []
    for line in (ROOT / "docs/promises.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and cells[0].isdigit():
            assert len(cells) == 5, line
            number, promise, ours, command, difference = cells
            found.append((int(number), promise, ours, command, difference))
    return found


ROWS = rows()


def test_rows_are_numbered_in_their_order() -> None:
    assert [row[0] for row in ROWS] == list(range(1, len(ROWS) + 1))
    assert len(ROWS) >= 83


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0]))
def test_a_figure_has_a_command_and_a_command_is_one(row: Row) -> None:
    _, promise, ours, command, _ = row
    assert promise
    assert ours
    if ours.startswith(MISSING):
        assert not command
        return
    written = re.fullmatch(r"`([^`]+)`", command)
    assert written, f"no command: {ours}"
    program, *words = shlex.split(written[1])
    {"keima": check_keima, "pytest": check_pytest, "python": check_python}[program](words)


def check_keima(words: list[str]) -> None:
    """Verb, options and number of arguments are keima's; recipes and registered networks that are named are there."""
    command: Any = typer.main.get_command(app)
    context, left = command.context_class(command), list(words)
    while True:
        _, left, _ = command.make_parser(context).parse_args(left)
        if not hasattr(command, "resolve_command") or (not left and command.invoke_without_command):
            break
        name, command, left = command.resolve_command(context, left)
        context = command.context_class(command, parent=context, info_name=name)
    for word in words:
        if word.startswith("recipes/"):
            assert (ROOT / word).is_file(), word
    if words[0] == "show" and words[1].islower():
        from keima.cli.show import open_or_create

        assert open_or_create(words[1]) is not None if words[1] == "go" else registered(words[1])


def registered(name: str) -> bool:
    """Does `keima show` know a network of that name?"""
    from keima.systems.registry import find

    return find(name).name != ""


def check_pytest(words: list[str]) -> None:
    """The file is there, and the test in it."""
    (target,) = words
    path, _, name = target.partition("::")
    assert (ROOT / path).exists(), path
    if name:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, target


def check_python(words: list[str]) -> None:
    """The program is there, and knows the figure that is asked for."""
    program = ROOT / words[0]
    assert program.is_file(), words[0]
    if len(words) > 1:
        names = {
            node.name for node in ast.walk(ast.parse(program.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)
        }
        assert words[1] in names
