"""AlphaGo's player of three files, policy, value and rollout policy, on every way to it: gtp, match, analysis."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import keima
from keima.games import go
from tests.cli.conftest import Run, lines

SIDE = 5


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A policy, a value network and a rollout policy, small and random; the last likes to play beside the last move."""
    folder = tmp_path_factory.mktemp("player")
    torch.manual_seed(3)
    sizes = {"filters": 4, "layers": 2, "board_size": SIDE}
    made = {
        "policy": keima.create("alphago-policy", **sizes),
        "value": keima.create("alphago-value", hidden=8, **sizes),
        "rollout": keima.create("alphago-rollout", patterns=8, responses=8),
    }
    with torch.no_grad():
        made["rollout"].neighbour.fill_(2.0)
    for name, network in made.items():
        keima.save(network.eval(), folder / f"{name}.safetensors")
    return {name: folder / f"{name}.safetensors" for name in made}


def options(files: dict[str, Path]) -> list[str]:
    return [text for name, path in files.items() for text in (f"--{name}", str(path))]


QUERY = {"id": "q", "boardXSize": SIDE, "boardYSize": SIDE, "moves": [["B", "C3"]], "rules": "chinese", "komi": 6.5}


@pytest.mark.slow
def test_analysis_answers_with_all_three(files: dict[str, Path]) -> None:
    """The raw win rate is the value network's own; the search's is half playouts, or what λ says."""
    weights = (0.0, 0.5, 1.0)
    queries = [{**QUERY, "id": str(w), "overrideSettings": {"rollout_weight": w}} for w in weights]
    arguments = (sys.executable, "-m", "keima", "analysis", *options(files), "--visits", "60")
    settings = ("--override-config", "reportAnalysisWinratesAs=SIDETOMOVE")
    text = "".join(json.dumps(query) + "\n" for query in queries)
    result = subprocess.run((*arguments, *settings), input=text, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    found = {answer["id"]: answer["rootInfo"] for answer in lines(result.stdout)}
    assert len(found) == len(weights)
    position = go.Position.start(SIDE, komi=6.5).play("C3")
    value = keima.Evaluator(keima.load(files["value"]), "torch")([position])[0].win
    for root in found.values():
        assert root["rawWinrate"] == pytest.approx(value, abs=1e-4)
    assert len({root["winrate"] for root in found.values()}) == 3


def test_gtp_plays_with_all_three(run: Run, files: dict[str, Path]) -> None:
    talk = f"boardsize {SIDE}\nkata-get-param rollout_weight\ngenmove b\nkata-raw-nn w 0\nquit\n"
    result = run("gtp", *options(files), "--override-config", "rollout_weight=0.25", "--visits", 60, stdin=talk)
    assert result.exit_code == 0, result.stderr
    answers = [each.removeprefix("=").strip() for each in result.stdout.split("\n\n")]
    assert answers[1] == "0.25"
    assert go.Position.start(SIDE).is_legal(answers[2])
    white = float(answers[3].split("whiteWin")[1].split()[0])
    position = go.Position.start(SIDE).play(answers[2])
    value = keima.Evaluator(keima.load(files["value"]), "torch")([position])[0].win
    assert value is not None
    assert white == pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize("missing", [(), ("policy",), ("value",), ("policy", "value")])
def test_match_takes_every_mixture(run: Run, files: dict[str, Path], missing: tuple[str, ...]) -> None:
    """As in Nature 529, Extended Data Table 7; where the policy network is missing, the rollout policy is the prior."""
    player = f"{files['rollout' if 'policy' in missing else 'policy']},rollout={files['rollout']}"
    player += "" if "value" in missing else f",value={files['value']},rollout_weight=0.5"
    table = ("--size", SIDE, "--openings", "none", "--parallel", 1, "--max-moves", 8, "--visits", 30)
    result = run("match", player, f"policy:{files['policy']}", "--games", 2, *table, "-o", "m")
    assert result.exit_code == 0, result.stderr
    assert "fault" not in result.stdout
    again = json.loads(Path("m/match.json").read_text())
    assert ("+" in again["a_sha256"]) == ("value" not in missing)


def test_files_that_do_not_go_together(run: Run, files: dict[str, Path]) -> None:
    swapped = run("gtp", "--policy", files["value"], "--value", files["policy"], stdin="quit\n")
    assert swapped.exit_code == 2
    assert "takes no value network" in swapped.stderr
    wrong = run("gtp", "--policy", files["policy"], "--override-config", "rollout_waight=1", stdin="quit\n")
    assert wrong.exit_code == 2
    assert "rollout_waight" in wrong.stderr
