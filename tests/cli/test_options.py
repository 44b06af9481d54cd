"""A human network is told whom to imitate on every way to it: eval, planes' lines, review, match."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from keima.cli.main import app

pytestmark = pytest.mark.reference
LINE = {"id": 1, "xsize": 7, "moves": [["B", "D4"]]}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def human(reference: Path) -> Path:
    return reference / "nets" / "katago-random-meta.bin.gz"


@pytest.fixture
def game(tmp_path: Path) -> Path:
    path = tmp_path / "game.sgf"
    path.write_text("(;GM[1]SZ[7]KM[7.5]RU[Chinese];B[dd];W[cc];B[ee])")
    return path


def answers(human: Path, path: Path, lines: list[dict[str, object]], *options: str) -> list[dict[str, object]]:
    path.write_text("\n".join(map(json.dumps, lines)))
    return [json.loads(line) for line in run("eval", human, path, *options).stdout.splitlines()]


def test_eval_takes_a_profile_for_all_and_a_line_may_say_another(human: Path, tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    (missing,) = answers(human, path, [LINE])
    assert "profile" in str(missing["error"])
    bound = answers(human, path, [LINE, {**LINE, "profile": "rank_9d"}], "--option", "profile=rank_5k")
    weak, strong = answers(human, path, [{**LINE, "profile": "rank_5k"}, {**LINE, "profile": "rank_9d"}])
    assert bound == [weak, strong]
    assert weak["policy"] != strong["policy"]


def test_options_that_are_none_are_refused(human: Path, tmp_path: Path) -> None:
    path = tmp_path / "line.jsonl"
    path.write_text(json.dumps(LINE))
    for option, words in (("profile", "NAME=VALUE"), ("profile=rank_99k", "rank_99k"), ("colour=red", "colour")):
        result = run("eval", human, path, "--option", option)
        assert result.exit_code == 2
        assert words in result.stderr


@pytest.mark.parametrize("visits", [0, 4])
def test_review_judges_as_a_human_does(human: Path, game: Path, tmp_path: Path, visits: int) -> None:
    reviews = {}
    for profile in ("rank_5k", "rank_9d"):
        out = tmp_path / f"{profile}.html"
        options = ("--net", human, "--option", f"profile={profile}", "--visits", visits, "--json", "-", "-o", out)
        result = run("review", game, *options)
        assert result.exit_code == 0, result.stderr
        reviews[profile] = json.loads(result.stdout)
        assert reviews[profile]["options"]["network"] == {"profile": profile}
    weak, strong = reviews.values()
    assert weak["key"] != strong["key"]
    assert weak["positions"][0]["policy"] != strong["positions"][0]["policy"]


def test_match_players_have_profiles(human: Path, tmp_path: Path) -> None:
    a, b = f"{human},visits=4,profile=rank_5k", f"policy:{human},profile=rank_9d"
    options = ("--size", 5, "--games", 2, "--max-moves", 6, "--parallel", 1, "--openings", "none", "-o", tmp_path / "m")
    result = run("match", a, b, *options)
    assert result.exit_code == 0, result.output
    assert "fault" not in result.output
    refused = run("match", str(human), b, *options[:-2])
    assert refused.exit_code == 2
    assert "profile" in refused.stderr
