"""`keima recipes`: what the documents name is there in a clone and can be copied; the help names every verb."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from keima.cli import recipes
from keima.cli.main import app
from keima.training.run.recipe import read_recipe

Run = Callable[..., Result]
ROOT = Path(__file__).resolve().parents[2]


def test_all_that_the_documents_name_is_listed(run: Run) -> None:
    listed = {line.split()[0] for line in run("recipes").stdout.splitlines()}
    named: set[str] = set()
    for document in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        named |= set(
            re.findall(r"(?<![\w/.-])(?:recipes|examples)/[\w/-]+\.(?:toml|sgf|pgn)", document.read_text("utf-8"))
        )
    assert {"recipes/alphago-policy.toml", "recipes/selfplay/connect-four.toml"} <= named
    assert named <= listed


def test_a_copy_is_the_recipe_and_stays_as_it_is(run: Run, tmp_path: Path) -> None:
    name = "recipes/maia-finetune.toml"
    assert run("recipes", name, "-o", str(tmp_path / "new")).exit_code == 0
    copy = tmp_path / "new" / name
    assert read_recipe(copy).network.source == read_recipe(ROOT / name).network.source
    copy.write_text("mine")
    again = run("recipes", "-o", str(tmp_path / "new"))
    assert again.exit_code == 0
    assert copy.read_text() == "mine"
    assert "is there already" in again.stderr
    assert (tmp_path / "new/examples/go.sgf").read_bytes() == (ROOT / "examples/go.sgf").read_bytes()


def test_an_unknown_recipe_and_a_folder_that_cannot_be_are_said(run: Run, tmp_path: Path) -> None:
    assert "recipes/none.toml" in run("recipes", "recipes/none.toml").stderr
    (tmp_path / "file").touch()
    failed = run("recipes", "-o", str(tmp_path / "file"))
    assert failed.exit_code == 2
    assert str(tmp_path / "file") in failed.stderr


def test_an_installation_has_them_in_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shipped/recipes").mkdir(parents=True)
    (tmp_path / "shipped/recipes/one.toml").write_text("# One\n")
    monkeypatch.setattr(recipes, "_PACKAGE", tmp_path)
    assert dict(recipes.shipped()) == {"recipes/one.toml": tmp_path / "shipped/recipes/one.toml"}


def test_the_help_names_every_verb(run: Run) -> None:
    """At the top, and of the groups' verbs those that a group's line speaks of."""
    import typer

    command = typer.main.get_command(app)
    shown = run("--help").stdout
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in shown.splitlines() if re.match(r"  \w", line)}
    assert set(command.commands) <= set(lines)  # type: ignore[attr-defined]
    data = command.commands["data"]  # type: ignore[attr-defined]
    words = shown.replace("\n", " ")
    assert all(verb in words for verb in data.commands)
    table = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [verb for verb in command.commands if f"`keima {verb}" not in table] == []  # type: ignore[attr-defined]
