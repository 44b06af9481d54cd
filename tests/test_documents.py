"""The README's and the documents' Python examples run as they stand."""

from __future__ import annotations

import doctest
import pydoc
import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from keima.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = sorted(path for folder in ("benchmarks", "scripts") for path in (ROOT / folder).glob("*.py"))
_OF_STORES = ("keima.store", "keima.game", "keima.selfplay", "keima.version")
_OF_NETWORKS = (
    "keima.network",
    "keima.pedigree",
    "keima.system",
    "keima.encoding",
    "keima.precision",
    "keima.counters",
)
METADATA = (*_OF_STORES, *_OF_NETWORKS)
"""Names in the metadata of game stores and network files, of no modules."""
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
HELP = sorted((ROOT / "keima" / "cli").rglob("*.py"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the network the examples open: a small fresh KataGo network."""
    import keima

    keima.save(keima.create("katago-b6c96", blocks=2), tmp_path / "model.bin.gz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_examples_in_documents_run(document: Path, folder: Path) -> None:
    results = doctest.testfile(str(document), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert results.failed == 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name}: {target} is not there"


@pytest.mark.parametrize("document", [*DOCUMENTS, *HELP], ids=lambda path: path.name)
def test_what_is_named_is_there(document: Path) -> None:
    """Files of the repository by their path from its root, modules and what they hold by their dotted name."""
    text = document.read_text(encoding="utf-8")
    for path in re.findall(r"(?<![\w/.-])(?:benchmarks|docs|examples|keima|recipes|scripts|tests)/[\w./-]*\w", text):
        if "NAME" not in path:
            assert (ROOT / path).exists(), f"{document.name}: {path} is not there"
    for name in re.findall(r"(?<![\w/.-])keima(?:\.[A-Za-z_]\w*)+", text):
        if name not in METADATA:
            assert find(name), f"{document.name}: there is no {name}"


def find(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    try:
        return pydoc.locate(name) is not None
    except pydoc.ErrorDuringImport:
        return False


@pytest.mark.parametrize("document", [*DOCUMENTS, *HELP], ids=lambda path: path.name)
def test_commands_are_taken(document: Path) -> None:
    """Lines that run keima have verbs, options and numbers of arguments that it knows; they are not run."""
    text = document.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in re.findall(r"^(?: {1,4}|\$ )?keima ([a-z].*?)(?: {2,}.*)?$", text, re.MULTILINE):
        command: Any = typer.main.get_command(app)
        context, words = command.context_class(command), shlex.split(line, comments=True)
        while True:
            _, words, _ = command.make_parser(context).parse_args(words)
            if not hasattr(command, "resolve_command") or (not words and command.invoke_without_command):
                break
            name, command, words = command.resolve_command(context, words)
            context = command.context_class(command, parent=context, info_name=name)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_benchmarks_and_scripts_find_what_they_import(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(path.parent)
    runpy.run_path(str(path), run_name="imported")


def test_readme_has_examples() -> None:
    assert (ROOT / "README.md").read_text(encoding="utf-8").count(">>>") >= 10
