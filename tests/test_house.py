"""The house as DESIGN draws it: who names whom, no circles, pages that can be read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

import keima
from keima.games.game import GAMES
from keima.systems.system import SYSTEMS

PACKAGE = Path(keima.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

FREE = ("games", "systems", "engines/gtp", "engines/uci")
"""Folders that may name games and systems; GTP is Go's protocol and UCI is chess's."""
MEMBERS = {member.package for member in (*GAMES.values(), *SYSTEMS.values())}
GAME_WORDS = r"chess|connect_?four"
SYSTEM_WORDS = r"alpha_?go\w*|katago\w*|lc0\w*|leela\w*"
CLASSES = re.compile(r"(KataGo|Lc0|AlphaGo|AlphaZero|LeelaZero|Chess|ConnectFour)[A-Z]?\w*|Go[A-Z]\w*")
NAMES = re.compile(
    rf"_*(go_(?!on)\w+|go|({GAME_WORDS}|{SYSTEM_WORDS})(_\w+)?)|\w+_({GAME_WORDS}|{SYSTEM_WORDS})", re.IGNORECASE
)


def sources(*, outside: tuple[str, ...] = ()) -> Iterator[tuple[str, ast.Module]]:
    """The package's files by their path in it, parsed."""
    for path in FILES:
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(outside):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def documentation(tree: ast.AST) -> set[int]:
    """Docstrings and help texts with examples: constants of several words, by identity."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\s", node.value.strip()):
            found.add(id(node))
    return found


def naming_lines(name: str, tree: ast.Module) -> Iterator[str]:
    """The code of a file that names a game or a system."""
    registered = {*GAMES, *SYSTEMS}
    prose = documentation(tree)
    for node in ast.walk(tree):
        found = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            found = node.value if node.value in registered else ""
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[:2] in (["keima", "games"], ["keima", "systems"]):
                imported = {*parts[2:3], *(alias.name for alias in node.names if len(parts) == 2)}
                found = ", ".join(n for n in imported if f"keima.{parts[1]}.{n}" in MEMBERS)
        elif isinstance(node, ast.Attribute | ast.Name | ast.arg | ast.FunctionDef | ast.ClassDef):
            word = {ast.Attribute: "attr", ast.Name: "id", ast.arg: "arg"}.get(type(node), "name")
            text = getattr(node, word)
            found = text if CLASSES.fullmatch(text.lstrip("_")) or NAMES.fullmatch(text) else ""
        if found:
            yield f"{name}:{getattr(node, 'lineno', 0)}: {found}"


def test_nothing_outside_names_a_game_or_a_system() -> None:
    lines = [line for name, tree in sources(outside=FREE) for line in naming_lines(name, tree)]
    assert lines == []


def test_no_file_imports_in_a_circle() -> None:
    graph = grimp.build_graph("keima", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert [module for module in sorted(imports) if module in _reached(imports, module)] == []


def _reached(imports: dict[str, set[str]], start: str) -> set[str]:
    """The modules that a module imports, directly or not."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = imports[waiting.pop()] - found
        found |= new
        waiting.extend(new)
    return found


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in FILES}), ids=lambda p: p.relative_to(PACKAGE.parent).as_posix()
)
def test_folders_can_be_taken_in_at_a_glance(folder: Path) -> None:
    assert len(list((PACKAGE.parent / folder).glob("*.py"))) <= 15


def test_files_can_be_read_at_one_sitting() -> None:
    lengths = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8").count("\n") for path in FILES}
    assert {name: length for name, length in lengths.items() if length > 600} == {}


def test_types_say_what_things_are() -> None:
    """`Any` is for what no type can say."""
    counts = {
        path.relative_to(PACKAGE).as_posix(): len(re.findall(r"\bAny\b", path.read_text(encoding="utf-8")))
        for path in FILES
    }
    assert sum(counts.values()) < 300, sorted(counts.items(), key=lambda item: -item[1])[:20]


def test_the_front_door_is_light() -> None:
    """Importing keima imports nothing heavy: names are fetched on first use."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    imported = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    assert not imported & {"torch", "numba", "openvino", "matplotlib"}
