"""`keima selfplay`: what it says before any work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from keima.cli.training.selfplay import facts
from keima.training.selfplay.ratings import Elo
from keima.training.selfplay.roles.status import Overview
from tests.cli.conftest import RECIPE

Run = Callable[..., Result]


@pytest.mark.parametrize("words", [[], ["run"], ["worker"], ["learner"], ["judge"]])
def test_help_has_examples(run: Run, words: list[str]) -> None:
    result = run("selfplay", *words, "--help")
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
    assert "keima selfplay " + ("recipes/" if words in ([], ["run"]) else words[0]) in result.stdout


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("visits = 8", "visits = 0", "line 7: search.visits: should be more than 0, not 0"),
        ("visits = 8", "vists = true", "line 7: search.vists: unknown"),
        ("visits = 8", 'preset = "deep"', "line 7: search.preset: "),
        ("visits = 8", 'precision = "f8"', "line 7: search.precision: "),
        ("temperature_plies = 4", "komi = [6.5]", "line 10: games.komi: "),
        ("temperature_plies = 4", "size = [9]", "line 10: games.size: "),
        ("[games]", "[game]", "line 9: unknown section [game]"),
        ("channels = 8", "channles = 8", "line 4: network.channles: "),
        ("learning_rate = 0.01", "learning_rate = -1", "line 13: optimizer.learning_rate: should be more than 0"),
        ("[run]", "[judge]\ngate = true\ngames = 0\n[run]", "line 16: judge.gate: needs games"),
        ("batch_size = 8", "batch_size = 8\n[judge]\nopponents = ['none.bin.gz']", "judge.opponents: "),
    ],
)
def test_a_bad_recipe_names_its_line_before_any_work(run: Run, old: str, new: str, words: str) -> None:
    Path("recipe.toml").write_text(RECIPE.replace(old, new))
    result = run("selfplay", "recipe.toml", "-o", "run", "--quiet")
    assert result.exit_code == 2
    assert result.stderr.startswith("keima: recipe.toml: ")
    assert words in result.stderr
    assert not Path("run").exists() or not list(Path("run").glob("*.json"))


def test_the_recipe_may_stand_after_the_options(run: Run) -> None:
    result = run("selfplay", "--quiet", "-o", "run", "missing.toml")
    assert result.exit_code == 2
    assert "missing.toml: cannot read the recipe" in result.stderr


def test_a_folder_of_another_recipe_is_refused(run: Run) -> None:
    from keima.training.selfplay.checks import write_run
    from keima.training.selfplay.recipe import read_loop
    from keima.training.selfplay.store import Store

    Path("recipe.toml").write_text(RECIPE)
    write_run(Store("run"), read_loop("recipe.toml"))
    result = run("selfplay", "recipe.toml", "-o", "run", "--set", "search.visits=9")
    assert result.exit_code == 2
    assert "--set search.visits: search.visits: is 9; the run in run was begun with 8" in result.stderr


def test_a_role_without_a_run_says_so(run: Run) -> None:
    result = run("selfplay", "worker", "--store", "nowhere")
    assert result.exit_code == 2
    assert "run.json" in result.stderr
    assert run("selfplay", "worker", "--store", "nowhere", "--name", "a/b").exit_code == 2


def test_what_is_shown() -> None:
    overview = Overview(
        3, 40, 310, 4000, 1280, 12.5, 400.0, 30_000.0, 20_000.0, 0.91, 9000, {"loss": 2.5}, Elo(120.0, 30.0), 2
    )
    overview.seconds_left = 3 * 3600 + 300
    shown = dict(facts(overview))
    assert shown["generation"] == "3 of 40"
    assert shown["games"] == "1,280 (12.5/s)"
    assert shown["evaluations/s"] == "30,000 (91 % of the evaluators' own), 20,000 known"
    assert shown["losses"] == "loss 2.500"
    assert shown["Elo"] == "+120 ± 30 (generation 2)"
    assert shown["time left"] == "3 h 05 min"
