"""`keima study` as a user meets it: trained, played, told; errors as one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]

pytestmark = pytest.mark.usefixtures("quick_training")

STUDY = """\
[study]
positions = 16
held_out = 64
games = 2
visits = 2
move_seconds = 0.002

[network]
name = "comparison-residual"
blocks = 1
channels = 4
board_size = 5
value_hidden = 4

[data]
train = "games.parquet"
test = "games.parquet"
workers = 1

[optimizer]
learning_rate = 0.01

[run]
batch_size = 8
log_every = 1
threads = 1

[variant.post]
network.block = "post"
network.name = "comparison-residual"
network.blocks = 1
network.channels = 4
network.board_size = 5
network.value_hidden = 4

[variant.pre]
network.block = "pre"
"""


@pytest.mark.slow  # two trainings and two matches
@pytest.mark.usefixtures("go_games")
def test_variants_are_trained_matched_and_compared(run: Run) -> None:
    Path("study.toml").write_text(STUDY)
    result = run("study", "study.toml", "--quiet")
    assert result.exit_code == 0, result.stderr
    found = json.loads(Path("runs/study/study.json").read_text())
    rows = {line.split()[0]: line for line in result.stdout.splitlines()}
    for name, known in found["variants"].items():
        assert f"{known['parameters']:,}" in rows[name]
        assert f"{100 * known['evaluation']['top1']:.2f} %" in rows[name]
    assert found["variants"]["post"]["recipe"]["network"]["sizes"]["block"] == "post"
    matches = found["variants"]["pre"]["matches"]
    for limit, words in (("visits=2", "visits-2"), ("seconds=0.002", "seconds-0.002")):
        assert (matches[limit]["a"], matches[limit]["b"], matches[limit]["games"]) == ("pre", "post", 2)
        assert len(list(Path(f"runs/study/pre/match-post-{words}").glob("*.sgf"))) == 2
    assert Path("runs/study/study.png").stat().st_size > 10_000
    assert "| pre |" in Path("runs/study/table.md").read_text()
    again = run("study", "study.toml", "--quiet")
    assert again.stdout == result.stdout
    assert again.stderr == ""


@pytest.mark.usefixtures("go_games")
def test_what_is_wrong_is_one_line_with_its_place(run: Run) -> None:
    assert run("study", "none.toml").stderr == "keima: none.toml: cannot read the study: No such file or directory\n"
    Path("study.toml").write_text(STUDY.replace("games = 2", "game = 2"))
    result = run("study", "study.toml")
    assert result.exit_code == 2
    assert result.stderr.startswith("keima: study.toml: line 4: study.game: unknown key; [study] has title")
    Path("study.toml").write_text(STUDY)
    result = run("study", "study.toml", "--set", "network.block=wide")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "keima: study.toml: --set network.block: variant post: network.block: cannot be made"
    )
    result = run("study", "study.toml", "-o", "a,b")
    assert "a,b: a match cannot be played with a file whose name has a comma" in result.stderr
    assert not Path("runs").exists()


@pytest.mark.usefixtures("go_games")
def test_a_variant_that_diverges_makes_the_status_2(run: Run) -> None:
    Path("study.toml").write_text(STUDY + "optimizer.learning_rate = 1e30\n")
    result = run("study", "study.toml", "--quiet", "--set", "study.games=0", "-o", "out")
    assert result.exit_code == 2
    assert result.stderr.endswith("keima: not trained: pre\n")
    assert "diverged" in next(line for line in result.stdout.splitlines() if line.startswith("pre "))


def test_help_has_examples(run: Run) -> None:
    assert "\n  study " in run("--help").stdout
    result = run("study", "--help")
    assert result.exit_code == 0
    assert "keima study recipes/studies/dual-head.toml" in result.stdout.split("Examples:")[1]
